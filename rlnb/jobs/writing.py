"""Writing that must not end a job when the disk is full."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable


def try_to_write(action: Callable[[], object]) -> bool:
    """Writes something that can be written again later; a full disk is survived.

    Returns:
        Whether it was written.
    """
    try:
        action()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(f"pid {os.getpid()}: {error}", file=sys.stderr, flush=True)
        return False
    return True
