"""Writing that must not end a job when the disk is full."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable


def is_full(error: BaseException | None) -> bool:
    """Whether an error says that a disk, or what one may have of it, is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def try_to_write(action: Callable[[], object]) -> bool:
    """Writes something that can be written again later, or left out; a full disk is survived.

    Returns:
        Whether it was written.
    """
    try:
        action()
    except OSError as error:
        if not is_full(error):
            raise
        complain(f"pid {os.getpid()}: {error}")
        return False
    return True


def complain(text: str) -> None:
    """Writes a line to stderr, which may be a log on the very disk that is full."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)
