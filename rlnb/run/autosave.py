"""Saving a moment after the last change, in a thread of its own."""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

#: delays after which it saves although there is no quiet moment: a drag may be long, and a kernel killed
PATIENCE = 10


class Autosave:
    """Calls `save` once things have been quiet for a moment; no touch is lost.

    Args:
        save: writes what is to be saved as it stands then; called by one thread at a time.
        delay: seconds without a touch before it saves.
        on_error: told once of each error in the background; the next touch tries again.
    """

    def __init__(
        self,
        save: Callable[[], None],
        delay: float = 0.4,
        on_error: Callable[[Exception], None] | None = None,
    ) -> None:
        self._save = save
        self._delay = delay
        self._on_error = on_error
        self._changed = threading.Condition()
        self._saving = threading.RLock()
        self._touches = 0  # so far
        self._saved = 0  # the touches that a save has covered
        self._failed = 0  # the touches at which a save failed: not tried again before the next
        self._closed = False
        self._thread: threading.Thread | None = None
        atexit.register(self.close)

    @property
    def pending(self) -> bool:
        """Whether there is something that has not been saved."""
        return self._saved < self._touches

    def touch(self) -> None:
        """Says that something has changed; returns at once."""
        with self._changed:
            self._touches += 1
            if not self._closed and (self._thread is None or not self._thread.is_alive()):
                # Also in a forked child, whose parent's threads it does not have.
                self._thread = threading.Thread(target=self._run, name="rlnb-autosave", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self) -> None:
        """Saves now, in this thread, if something is pending; what `save` raises goes to the caller."""
        with self._saving:
            touches = self._touches
            if self._saved < touches:
                try:
                    self._save()
                except Exception:
                    self._failed = touches
                    raise
                self._saved = touches

    def close(self, *, save: bool = True) -> None:
        """Saves what is pending, unless it is told not to, and ends the thread; further touches wait for `flush`.

        An error goes to `on_error`, since at the end of a process nobody else would hear of it.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        atexit.unregister(self.close)
        if save:
            self._try()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or max(self._saved, self._failed) < self._touches)
                latest = time.monotonic() + PATIENCE * self._delay
                while not self._closed and time.monotonic() < latest:
                    seen = self._touches  # every touch begins the quiet moment anew
                    self._changed.wait(self._delay)
                    if self._touches == seen:
                        break
                if self._closed:
                    return
            self._try()

    def _try(self) -> None:
        try:
            self.flush()
        except Exception as error:
            if self._on_error is not None:
                with contextlib.suppress(Exception):
                    self._on_error(error)
