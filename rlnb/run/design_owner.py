"""One lab owns a design file: a lock that goes with the process, and a record that says whose it is.

The lock (`owner.lock`, flock) is held by an open descriptor, so it is gone when its process is, also after
SIGKILL. The record (`owner.json`) says who it is, and carries a token: whoever takes the file over writes
another one, and the former owner sees that before it writes next.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import threading
import uuid
import weakref
from dataclasses import asdict, dataclass
from pathlib import Path

from rlnb.run.atomic import write_atomic
from rlnb.run.host import ProcessIdentity, utc_now
from rlnb.run.layout import read_json

#: what flock answers where a filesystem has no locks
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.ENOTTY)


@dataclass(frozen=True)
class Owner:
    """The lab that has a design file.

    Attributes:
        process: the kernel it lives in.
        notebook: its notebook's path or name, "" if unknown.
        cell: the cell that made it, "" if unknown.
        since: when it took the file, ISO 8601 in UTC.
        token: differs for every claim.
    """

    process: ProcessIdentity
    notebook: str = ""
    cell: str = ""
    since: str = ""
    token: str = ""

    def __str__(self) -> str:
        """Who it is, to stand in a sentence."""
        lab = f"the lab of {Path(self.notebook).name}" if self.notebook else "another lab"
        since = f" since {self.since[11:16]} UTC on {self.since[:10]}" if len(self.since) > 15 else ""
        place = "" if self.process.here else f" on {self.process.host}"
        return f"{lab} (process {self.process.pid}{place}{since})"

    def to_json(self) -> bytes:
        """Returns the content of `owner.json`."""
        values = {**asdict(self.process), **{key: getattr(self, key) for key in _TEXTS}}
        return json.dumps(values, indent=1).encode() + b"\n"


_TEXTS = ("notebook", "cell", "since", "token")


def read_owner(folder: Path) -> Owner | None:
    """Returns who is written down as the owner, living or not; None when nobody is."""
    data = read_json(folder / "owner.json")
    if data is None:
        return None
    try:
        process = ProcessIdentity.from_dict(data)
    except ValueError:
        return None
    return Owner(process, **{key: str(data.get(key, "")) for key in _TEXTS})


class Ownership:
    """The right of one lab to write its design file.

    Args:
        folder: the lab's folder, which need not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock_path = folder / "owner.lock"
        self._lock: weakref.finalize[..., Ownership] | None = None  # closes the descriptor
        self._mine: Owner | None = None
        self._guard = threading.RLock()
        _forked.add(self)

    def claim(self, notebook: str = "", cell: str = "") -> Owner | None:
        """Takes the file for this lab.

        Returns:
            None when this lab has it now; else the living owner, and nothing is changed.

        Raises:
            OSError: the folder cannot be written.
        """
        with self._guard:
            if self.holds():
                return None
            self._folder.mkdir(parents=True, exist_ok=True)
            if not self._try_lock():
                return read_owner(self._folder) or Owner(ProcessIdentity("", "", 0, 0))
            written = read_owner(self._folder)
            if self._lock is None and written is not None and _may_live(written):
                return written
            self._write(notebook, cell)
            return None

    def take_over(self, notebook: str = "", cell: str = "") -> None:
        """Takes the file from whoever has it; they find out before they write next.

        Raises:
            OSError: the folder cannot be written.
        """
        with self._guard:
            if self.holds():
                return
            self._folder.mkdir(parents=True, exist_ok=True)
            if not self._try_lock():
                # The other's lock stays on a file without a name; the next claim meets ours.
                self._lock_path.unlink(missing_ok=True)
                self._try_lock()
            self._write(notebook, cell)

    def holds(self) -> bool:
        """Whether this lab has the file still; False also where it never did."""
        with self._guard:
            if self._mine is None:
                return False
            written = read_owner(self._folder)
            if written is None:  # somebody tidied the folder away; nobody else has taken the file
                notebook, cell = self._mine.notebook, self._mine.cell
                self._let_go()
                return self.claim(notebook, cell) is None
            if written.token != self._mine.token:
                self._let_go()
                return False
            return True

    def release(self) -> None:
        """Gives the file back."""
        with self._guard:
            if self.holds():
                (self._folder / "owner.json").unlink(missing_ok=True)
            self._let_go()

    def _try_lock(self) -> bool:
        """Takes the lock; True also where the filesystem has none, then `_lock` stays None."""
        while self._lock is None:
            held = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(held)
                return error.errno in _NO_LOCKS
            if _is_still(held, self._lock_path):
                self._lock = weakref.finalize(self, os.close, held)  # a forgotten lab owns nothing
            else:
                os.close(held)  # taken over in between: the lock of a file that has lost its name
        return True

    def _write(self, notebook: str, cell: str) -> None:
        mine = Owner(ProcessIdentity.of(), notebook, cell, utc_now(), uuid.uuid4().hex)
        try:
            write_atomic(self._folder / "owner.json", mine.to_json())
        except OSError:
            self._let_go()
            raise
        self._mine = mine

    def _let_go(self) -> None:
        self._mine = None
        if self._lock is not None:
            self._lock()
            self._lock = None


def _is_still(held: int, path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(held), os.stat(path))
    return False


def _may_live(owner: Owner) -> bool:
    """Whether an owner may be alive; of another machine's nothing is known, so it may."""
    return owner.process.alive if owner.process.here else True


#: A forked child (a vector environment's worker) shares its parent's lock and would keep it alive.
_forked: weakref.WeakSet[Ownership] = weakref.WeakSet()


def _after_fork() -> None:
    for ownership in list(_forked):
        ownership._guard = threading.RLock()
        ownership._let_go()


os.register_at_fork(after_in_child=_after_fork)
