"""The live view: a thread that follows a run and keeps a widget, and an image for later, up to date.

The thread sends through the widget's comm, so that the charts move while another cell is busy: an
asyncio task in the kernel would stand still.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Protocol

from rlnb.errors import RlnbError
from rlnb.run.control import Verb
from rlnb.view.subject import Subject
from rlnb.view.widget import ChartsWidget

INTERVAL = 0.1
"""Seconds between two looks, so at most ten updates a second (JupyterLab limits messages by count)."""

IDLE_INTERVAL = 0.5
"""Seconds between two looks when nothing has moved for a while."""

ANSWER_STAYS = 20.0
"""Seconds that the answer to a button stays to be read."""

_IDLE_AFTER = 5.0
_SHARE = 0.1  # of one core: looking at a very long run may take no more of the kernel's time


class Output(Protocol):
    """A place where the view is shown, and where its image stays."""

    def halt(self, png: bytes, text: str) -> None:
        """The subject has paused: keep an image beside the live view."""

    def end(self, png: bytes, text: str, closing: str) -> None:
        """The subject has ended: the image takes the live view's place."""


class LiveView:
    """Follows a subject and shows it in any number of outputs.

    Args:
        subject: what to follow; it has been polled once.
        interval: seconds between two looks.
    """

    def __init__(self, subject: Subject, *, interval: float = INTERVAL) -> None:
        self.subject = subject
        self.widget = ChartsWidget()
        self._interval = interval
        self._outputs: list[Output] = []
        self._lock = threading.Lock()
        self._answer = ""
        self._answered = 0.0
        self._busy = False
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._version: int | None = None
        self._halted = "" if subject.ended else subject.halted  # outputs open with the image of a pause
        self._ended = False
        self.widget.on_verb(self._on_verb)
        self._show()
        self._thread = threading.Thread(target=self._follow, name="rlnb-view", daemon=True)

    def start(self) -> None:
        """Begins to follow."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it still follows."""
        return self._thread.is_alive() and not self._stop.is_set()

    def close(self) -> None:
        """Stops following; the widget keeps its last picture."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(10)

    def attach(self, output: Output) -> None:
        """Adds a place where the view is shown; it gets the images from now on."""
        with self._lock:
            self._outputs.append(output)
            late = self._ended
        if late:  # the end came between opening the output and this
            output.end(self.subject.still(), self.subject.text(), self.subject.closing())

    # -- the thread -------------------------------------------------------------------------
    def _follow(self) -> None:
        moved = time.monotonic()
        while not self._stop.is_set():
            began, worked = time.monotonic(), time.thread_time()
            try:
                changed = self.subject.poll()
            except RlnbError as error:  # e.g. a folder of a newer format: say it and stop
                self._tell(str(error), busy=False)
                self._show()
                return
            except OSError as error:  # e.g. a network drive that is away for a while
                self._tell(f"The run folder cannot be read now: {error}", busy=False)
                self._show()
                self._stop.wait(IDLE_INTERVAL)
                continue
            woken = self._wake.is_set()
            self._wake.clear()
            ended = self.subject.ended
            if changed or woken or ended or self._forget_answer(began):
                moved = began
                self._show()
            # Work, not waiting: a slow store must not slow down the looks at what has arrived.
            worked = time.thread_time() - worked
            self._keep_image()  # seldom, so its time does not count
            if ended:
                self._stop.set()
                return
            idle = began - moved > _IDLE_AFTER
            spent = time.monotonic() - began
            pause = max(IDLE_INTERVAL if idle else self._interval - spent, worked * (1 / _SHARE - 1))
            self._wake.wait(max(pause, 0.01))

    def _show(self) -> None:
        with self._lock:
            head: dict[str, Any] = dict(self.subject.head(busy=self._busy, answer=self._answer))
        version = self.subject.version
        if version == self._version:
            self.widget.show(head)
        else:
            self._version = version
            self.widget.show(head, self.subject.panels(), self.subject.marks())

    def _keep_image(self) -> None:
        halted = self.subject.halted
        if halted == self._halted:
            return
        self._halted = halted
        if not halted:
            return
        with self._lock:
            outputs, self._ended = list(self._outputs), self.subject.ended
        if not outputs:
            return
        png, text = self.subject.still(), self.subject.text()
        for output in outputs:
            if self.subject.ended:
                output.end(png, text, self.subject.closing())
            else:
                output.halt(png, text)

    # -- buttons ------------------------------------------------------------------------------
    def _on_verb(self, word: str) -> None:
        if word == "refresh":  # the browser asks whether anybody is here
            self._wake.set()
            return
        if word not in list(Verb):
            return
        with self._lock:
            if self._busy:
                return
            self._busy = True
            self._answer = f"Asked to {word} …"
        self._wake.set()
        # Not in the thread that received the message: it may be the one that runs cells.
        threading.Thread(target=self._perform, args=(Verb(word),), name=f"rlnb-{word}", daemon=True).start()

    def _perform(self, verb: Verb) -> None:
        try:
            answer = self.subject.perform(verb).message
        except (RlnbError, OSError) as error:
            answer = f"{verb} failed: {error}"
        self._tell(answer, busy=False)
        self._wake.set()

    def _tell(self, answer: str, *, busy: bool) -> None:
        with self._lock:
            self._answer, self._busy, self._answered = answer, busy, time.monotonic()

    def _forget_answer(self, now: float) -> bool:
        """Takes an old answer away; returns whether there was one."""
        with self._lock:
            old = bool(self._answer) and not self._busy and now - self._answered > ANSWER_STAYS
            if old:
                self._answer = ""
        return old
