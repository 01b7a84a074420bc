"""What people, signals, clocks and the disk want of a run, and the one flag that tells training."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import dataclass

from rlnb.run import control
from rlnb.run.control import Request, Verb
from rlnb.run.events import EventLog
from rlnb.run.layout import RunLayout
from rlnb.run.progress import Flag, write_flag
from rlnb.run.writing import try_to_write

#: A paused training goes on above this many times the least free space, so that it does not flutter.
RELEASE = 1.5


@dataclass(frozen=True)
class _Wish:
    flag: Flag
    reason: str


class Helm:
    """Collects the wishes of one run and writes the flag.

    Args:
        layout: the run.
        least_free: free bytes below which training is paused.
    """

    def __init__(self, layout: RunLayout, *, least_free: float) -> None:
        self.layout, self.least_free = layout, least_free
        self._wish = _Wish(Flag.RUN, "")
        self._disk: str | None = None
        self._written: Flag | None = None
        self._heard_ns = 0

    @property
    def flag(self) -> Flag:
        """What training is to do; a full disk pauses what would run."""
        return Flag.PAUSE if self._wish.flag is Flag.RUN and self._disk else self._wish.flag

    @property
    def reason(self) -> str:
        """Why, one sentence, or ""."""
        if self._wish.flag in (Flag.RUN, Flag.PAUSE) and self._disk:
            return self._disk
        return self._wish.reason

    @property
    def disk_full(self) -> bool:
        """Whether the local disk was full when it was last looked at."""
        return self._disk is not None

    @property
    def halting(self) -> bool:
        """Whether the attempt is to end."""
        return self._wish.flag in (Flag.SUSPEND, Flag.STOP)

    def want(self, flag: Flag, reason: str) -> None:
        """Sets what is wanted."""
        self._wish = _Wish(flag, reason)
        self.tell()

    def tell(self, *, anew: bool = False) -> None:
        """Writes the flag for training when it has changed, or in any case when `anew`."""
        if anew:
            self._written = None
        flag = self.flag
        if flag is not self._written and try_to_write(lambda: write_flag(self.layout, flag)):
            self._written = flag

    def preempt(self, signum: int) -> None:
        """Takes a signal by which a scheduler announces that it wants the machine back."""
        if not self.halting:
            self.want(Flag.SUSPEND, f"preempted by {signal.Signals(signum).name}")

    def look_at_disk(self) -> None:
        """Pauses training while the local disk is full."""
        free = shutil.disk_usage(self.layout.root).free
        full = free < self.least_free * (RELEASE if self._disk else 1.0)
        if full:
            self._disk = (
                f"the local disk is full: {free / 1e6:.0f} MB free under {self.layout.root}, {self.least_free / 1e6:.0f} MB "
                "needed; training goes on by itself when there is space"
            )
        elif self._disk:
            self._disk = None
        self.tell()

    def drop_stale(self, *, before_ns: int) -> None:
        """Answers requests that were left from a time when nobody was there to hear them."""
        for asked in control.pending(self.layout):
            stamp = asked.id.split("-", 1)[0]
            if stamp.isdigit() and int(stamp) < before_ns:
                fresh = asked.verb in (Verb.RESUME, Verb.INSPECTED, Verb.NOTE)
                message = (
                    "the run was resumed" if fresh else "too late: the run was resumed after it was asked"
                )
                self._acknowledge(asked, ok=fresh, message=message)

    def hear(self, events: EventLog, *, trained: bool, thoroughly: bool = True) -> None:
        """Takes and answers the requests that have arrived.

        Args:
            events: where to note them.
            trained: whether training has finished, so that there is nothing to pause.
            thoroughly: read the folder even when its time says that nothing has changed; a request
                that arrives within the clock's granularity after a look does not show in it.
        """
        try:
            changed_ns = os.stat(self.layout.control).st_mtime_ns
        except FileNotFoundError:
            return
        if changed_ns == self._heard_ns and not thoroughly:
            return
        self._heard_ns = changed_ns
        for asked in control.pending(self.layout):
            ok, message = self._answer(asked, trained=trained)
            if not self._acknowledge(asked, ok=ok, message=message):
                continue  # it is heard again at the next look, and means the same then
            text = str(asked.args.get("text") or asked.args.get("expression") or message)
            kind = str(asked.verb) if asked.verb in (Verb.INSPECTED, Verb.NOTE) else f"{asked.verb}_requested"
            self._note(events, kind, text, asked)

    def _acknowledge(self, asked: Request, *, ok: bool, message: str) -> bool:
        return try_to_write(lambda: control.acknowledge(self.layout, asked, ok=ok, message=message))

    def _note(self, events: EventLog, kind: str, text: str, asked: Request) -> None:
        try_to_write(lambda: events.append(kind, text, request=asked.id, host=asked.host))

    def _answer(self, asked: Request, *, trained: bool) -> tuple[bool, str]:
        who = f"asked from {asked.host}" if asked.host else "asked"
        match asked.verb:
            case Verb.NOTE:
                return True, "noted"
            case Verb.INSPECTED:
                return True, "noted; the run is marked as inspected"
            case Verb.RESUME:
                if self.halting:
                    return False, f"it is being ended ({self.reason}); resume it when it has ended"
                self.want(Flag.RUN, "")
                return True, "training goes on" if not self._disk else self._disk
            case Verb.PAUSE:
                if trained:
                    return False, "training has finished; there is nothing to pause"
                if self.halting:
                    return False, f"it is being ended ({self.reason})"
                self.want(Flag.PAUSE, f"pause {who}")
                return True, "training pauses at its next safe point"
            case Verb.SUSPEND:
                if self._wish.flag is Flag.STOP:
                    return False, "it is being stopped"
                self.want(Flag.SUSPEND, f"suspend {who}")
                return True, "training is suspended at its next safe point"
            case Verb.STOP:
                self.want(Flag.STOP, f"stop {who}")
                return True, "training is stopped at its next safe point"
