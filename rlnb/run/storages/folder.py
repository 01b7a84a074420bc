"""A folder as store: a local or shared disk, or a bucket that is mounted as one.

On an ordinary file system an object is written under a private name and renamed, so that nobody
sees half of it. A mounted bucket (any FUSE file system, or one that refused a rename once) gets the
bytes under their own name at once, because there a rename copies or fails.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rlnb.errors import RunFormatError, StoreConflict, StoreDenied, StoreError, StoreFull, StoreUnreachable
from rlnb.run.host import hostname, process_start
from rlnb.run.layout import safe_join
from rlnb.run.storage import Entry, StoreMissing

_COPY = 1 << 20
_TEMPORARY = ".rlnb-upload-"
_LEFTOVER = re.compile(re.escape(_TEMPORARY) + r"(?P<pid>\d{1,9})-[0-9a-f]+@(?P<host>.+)")
_NO_RENAME = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.EACCES}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class FolderStorage:
    """Objects as files below a folder, which is made when first written to.

    Args:
        root: absolute path.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.url = str(root)
        self._renames: bool | None = None
        self._swept: set[Path] = set()

    @property
    def single_host(self) -> bool:
        """Whether `O_EXCL` is decided on this machine alone: the case for mounted buckets."""
        return file_system(self.root).startswith("fuse")

    def read(self, name: str, *, start: int = 0, end: int | None = None) -> bytes:
        path = self._path(name)
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError as error:
            raise self._explain(error, name) from error
        with os.fdopen(handle, "rb") as file:
            try:
                file.seek(start)
                return file.read() if end is None else file.read(max(0, end - start))
            except OSError as error:
                raise self._explain(error, name) from error

    def write(self, name: str, data: bytes | Path, *, exclusive: bool = False) -> None:
        path = self._path(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if exclusive:
                self._fill(path, data, os.O_EXCL)
            elif self._can_rename():
                self._replace(path, data)
            else:
                self._fill(path, data, os.O_TRUNC)
        except FileExistsError as error:
            if exclusive:
                raise StoreConflict(f"{self.url} already has {name}.") from None
            raise StoreError(
                f"{path} cannot be written: a file is in the place of one of its folders."
            ) from error
        except OSError as error:
            raise self._explain(error, name) from error

    def list(self, prefix: str = "") -> Iterator[Entry]:
        folder = prefix.rpartition("/")[0]
        base = self._path(folder) if folder else self.root
        try:
            found = sorted(_files(base, f"{folder}/" if folder else ""))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise self._explain(error, prefix) from error
        yield from (entry for entry in found if entry.name.startswith(prefix))

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            path = self._path(name)
            try:
                path.unlink(missing_ok=True)
                self._prune(path.parent)
            except NotADirectoryError:
                continue
            except OSError as error:
                raise self._explain(error, name) from error

    def close(self) -> None:
        """Nothing is held open between two verbs."""

    def _path(self, name: str) -> Path:
        try:
            return safe_join(self.root, name)
        except RunFormatError as error:
            if self.root.is_symlink() or ".." in name or name.startswith("/"):
                raise
            raise StoreDenied(str(error)) from None
        except OSError as error:  # a mount that has died fails even to be looked at
            raise self._explain(error, name) from error

    def _can_rename(self) -> bool:
        if self._renames is None:
            self._renames = not self.single_host
        return self._renames

    def _replace(self, path: Path, data: bytes | Path) -> None:
        self._sweep(path.parent)
        temporary = path.with_name(f"{_TEMPORARY}{os.getpid()}-{uuid.uuid4().hex[:12]}@{hostname()}")
        try:
            self._fill(temporary, data, os.O_EXCL)
            try:
                os.replace(temporary, path)
            except OSError as error:
                if error.errno not in _NO_RENAME or path.is_dir():
                    raise
                self._renames = False
                self._fill(path, data, os.O_TRUNC)
        finally:
            temporary.unlink(missing_ok=True)

    def _sweep(self, folder: Path) -> None:
        """Removes, once a folder, what killed writers of this machine left half-written there."""
        if folder in self._swept:
            return
        self._swept.add(folder)
        for name in os.listdir(folder):
            match = _LEFTOVER.fullmatch(name)
            if match and match["host"] == hostname() and process_start(int(match["pid"])) is None:
                (folder / name).unlink(missing_ok=True)

    def _fill(self, path: Path, data: bytes | Path, flags: int) -> None:
        with pieces(data) as source:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | flags, 0o644)
            try:
                with os.fdopen(handle, "wb") as file:
                    for piece in source:
                        file.write(piece)
                    file.flush()
                    os.fsync(file.fileno())
            except BaseException:
                if flags & os.O_EXCL:  # ours alone, and incomplete
                    path.unlink(missing_ok=True)
                raise

    def _prune(self, folder: Path) -> None:
        """Removes folders that became empty, as an object store would not show them either."""
        while folder != self.root and self.root in folder.parents:
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent

    def _explain(self, error: OSError, name: str) -> StoreError:
        where = f"{self.url}/{name}" if name else self.url
        reason = error.strerror or str(error)
        if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
            return StoreMissing(f"{self.url} has no {name}.")
        if error.errno in _FULL:
            return StoreFull(f"No space is left for {where} ({reason}); free space or raise the quota.")
        if error.errno in _DENIED:
            return StoreDenied(f"{where} is refused ({reason}); correct the permissions of the folder.")
        if error.errno == errno.ELOOP:
            return StoreDenied(f"{where} is a symbolic link, which is never followed; remove it.")
        return StoreUnreachable(f"{where} does not work now ({reason}); it is tried again.")


@contextmanager
def pieces(data: bytes | Path, size: int = _COPY) -> Iterator[Iterator[bytes]]:
    """Opens what is to be written and gives its bytes in pieces.

    Raises:
        OSError: a path is missing, a link, or no regular file; nothing has been written then.
    """
    if not isinstance(data, Path):
        yield (data[start : start + size] for start in range(0, len(data), size))
        return
    handle = os.open(data, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(data))
        yield iter(lambda: file.read(size), b"")


def file_system(path: Path) -> str:
    """Returns the type of the file system that holds `path` (or would), e.g. "ext4", "fuse.obsfs"."""
    place, best, kind = os.path.realpath(path), "", ""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return ""
    for line in lines:
        left, _, right = line.partition(" - ")
        mount = left.split()[4].encode().decode("unicode_escape")
        inside = place == mount or place.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, right.split()[0]
    return "" if kind == "fuseblk" else kind  # fuseblk is NTFS or exFAT on a local disk


def _files(folder: Path, prefix: str) -> Iterator[Entry]:
    with os.scandir(folder) as children:
        for child in children:
            if child.is_dir(follow_symlinks=False):
                yield from _files(Path(child.path), f"{prefix}{child.name}/")
            elif child.is_file(follow_symlinks=False) and not child.name.startswith(_TEMPORARY):
                try:
                    seen = child.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                yield Entry(f"{prefix}{child.name}", seen.st_size, seen.st_mtime)
