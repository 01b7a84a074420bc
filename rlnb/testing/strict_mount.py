"""A real file system as poor as a mounted bucket: no rename, append, lock, link, or write out of order.

It speaks the kernel's FUSE protocol (linux/fuse.h, version 7.31) over /dev/fuse itself, so that it
needs no library; mounting needs root. What it holds lies in an ordinary folder behind it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

_LIBC = ctypes.CDLL(None, use_errno=True)
_MAX_WRITE = 128 << 10
_DETACH = 2
_TRUNCATE = 1 << 3  # both FATTR_SIZE and FUSE_ATOMIC_O_TRUNC
_ASKED = 1 << 1 | _TRUNCATE | 1 << 5 | 1 << 10  # POSIX locks, truncating open, big writes, flock: to us
_REFUSED = {
    6,
    8,
    12,
    13,
    31,
    32,
    33,
    43,
    45,
}  # symlink mknod rename link getlk setlk setlkw fallocate rename2
_SILENT = {2, 36, 42}  # forget, interrupt, batch forget: no reply
_OK = {18, 20, 25, 27, 29, 30, 34}  # release fsync flush opendir releasedir fsyncdir access


class StrictMount:
    """A context manager around a mounted bucket's folder.

    Args:
        mountpoint: an existing empty folder.
        backing: the folder that holds the bytes.
    """

    def __init__(self, mountpoint: Path, backing: Path) -> None:
        self.mountpoint, self.backing = mountpoint, backing
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def available() -> bool:
        """Says whether this process may mount: root, with /dev/fuse."""
        return os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK) and _may_mount()

    def __enter__(self) -> StrictMount:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rlnb.testing.strict_mount", str(self.mountpoint), str(self.backing)]
        )
        deadline = time.monotonic() + 20
        while not os.path.ismount(self.mountpoint):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.mountpoint} could not be mounted")
            time.sleep(0.01)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _LIBC.umount2(os.fsencode(self.mountpoint), _DETACH)
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class _Server:
    """Answers the kernel's requests, one after the other."""

    def __init__(self, device: int, backing: Path) -> None:
        self.device, self.backing = device, backing
        self.nodes: dict[int, str] = {1: ""}
        self.numbers: dict[str, int] = {"": 1}
        self.written: dict[int, int] = {}  # file handle → bytes written through it

    def serve(self) -> None:
        while True:
            try:
                request = os.read(self.device, _MAX_WRITE + 4096)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return  # unmounted
                continue
            _, opcode, unique, node = struct.unpack_from("IIQQ", request)
            if opcode in _SILENT:
                continue
            try:
                code, answer = 0, self._answer(opcode, node, request[40:])
            except OSError as error:
                code, answer = -(error.errno or errno.EIO), b""
            try:
                os.write(self.device, struct.pack("IiQ", 16 + len(answer), code, unique) + answer)
            except OSError:
                continue  # the request was interrupted meanwhile

    def _answer(self, opcode: int, node: int, body: bytes) -> bytes:
        if opcode in _REFUSED:
            raise OSError(errno.EOPNOTSUPP, "refused")
        if opcode in _OK:
            if opcode == 18:
                self.written.pop(self._close(body), None)
            return bytes(16) if opcode == 27 else b""
        verbs = {
            1: self._lookup, 3: self._getattr, 4: self._setattr, 9: self._mkdir, 10: self._unlink, 11: self._rmdir,
            14: self._open, 15: self._read, 16: self._write, 17: self._statfs, 26: self._init, 28: self._readdir,
            35: self._create,
        }  # fmt: skip
        if opcode not in verbs:
            raise OSError(errno.ENOSYS, "unknown")
        return verbs[opcode](node, body)

    def _path(self, node: int, name: bytes = b"") -> Path:
        relative = self.nodes[node]
        text = os.fsdecode(name.rstrip(b"\0"))
        return self.backing / (f"{relative}/{text}" if relative and text else relative or text)

    def _init(self, node: int, body: bytes) -> bytes:
        _, _, readahead, flags = struct.unpack_from("IIII", body)
        return struct.pack("IIIIHHIIHHI28x", 7, 31, readahead, flags & _ASKED, 12, 9, _MAX_WRITE, 1, 0, 0, 0)

    def _attributes(self, path: Path) -> bytes:
        seen = os.lstat(path)
        times = (seen.st_atime_ns, seen.st_mtime_ns, seen.st_ctime_ns)
        return struct.pack(
            "6Q10I", seen.st_ino, seen.st_size, seen.st_blocks, *(t // 10**9 for t in times),
            *(t % 10**9 for t in times), seen.st_mode, 1, seen.st_uid, seen.st_gid, 0, 4096, 0,
        )  # fmt: skip

    def _entry(self, path: Path) -> bytes:
        attributes = self._attributes(path)
        relative = str(path.relative_to(self.backing))
        number = self.numbers.setdefault(relative, len(self.numbers) + 1)
        self.nodes[number] = relative
        return struct.pack("QQQQII", number, 0, 0, 0, 0, 0) + attributes

    def _lookup(self, node: int, body: bytes) -> bytes:
        return self._entry(self._path(node, body))

    def _getattr(self, node: int, body: bytes) -> bytes:
        return struct.pack("QII", 0, 0, 0) + self._attributes(self._path(node))

    def _setattr(self, node: int, body: bytes) -> bytes:
        valid, _, _, size = struct.unpack_from("IIQQ", body)
        if valid & _TRUNCATE:
            if size:
                raise OSError(errno.EOPNOTSUPP, "only truncation to nothing")
            os.truncate(self._path(node), 0)
        return self._getattr(node, body)

    def _mkdir(self, node: int, body: bytes) -> bytes:
        path = self._path(node, body[8:])
        path.mkdir()
        return self._entry(path)

    def _unlink(self, node: int, body: bytes) -> bytes:
        self._path(node, body).unlink()
        return b""

    def _rmdir(self, node: int, body: bytes) -> bytes:
        self._path(node, body).rmdir()
        return b""

    def _handle(self, path: Path, flags: int) -> bytes:
        if flags & os.O_APPEND:
            raise OSError(errno.EOPNOTSUPP, "no append")
        handle = os.open(path, flags & (os.O_ACCMODE | os.O_TRUNC | os.O_CREAT | os.O_EXCL), 0o644)
        self.written[handle] = 0
        return struct.pack("QII", handle, 1, 0)  # 1: direct I/O, nothing is cached by the kernel

    def _open(self, node: int, body: bytes) -> bytes:
        return self._handle(self._path(node), struct.unpack_from("I", body)[0] & ~(os.O_CREAT | os.O_EXCL))

    def _create(self, node: int, body: bytes) -> bytes:
        path = self._path(node, body[16:])
        opened = self._handle(path, struct.unpack_from("I", body)[0] | os.O_CREAT)
        return self._entry(path) + opened

    def _close(self, body: bytes) -> int:
        handle = int(struct.unpack_from("Q", body)[0])
        os.close(handle)
        return handle

    def _read(self, node: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("QQI", body)
        return os.pread(handle, size, offset)

    def _write(self, node: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("QQI", body)
        if offset != self.written[handle]:
            raise OSError(errno.EOPNOTSUPP, "only sequential writes")
        count = os.pwrite(handle, body[40 : 40 + size], offset)
        self.written[handle] += count
        return struct.pack("II", count, 0)

    def _statfs(self, node: int, body: bytes) -> bytes:
        return struct.pack("5Q4I24x", 1 << 40, 1 << 40, 1 << 40, 1 << 20, 1 << 20, 4096, 255, 4096, 0)

    def _readdir(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("QQI", body)
        path, answer = self._path(node), b""
        for number, name in enumerate(sorted(os.listdir(path))[offset:], start=offset + 1):
            raw = os.fsencode(name)
            kind = stat.S_IFMT(os.lstat(path / name).st_mode) >> 12
            entry = struct.pack("QQII", 1, number, len(raw), kind) + raw
            entry += bytes(-len(entry) % 8)
            if len(answer) + len(entry) > size:
                break
            answer += entry
        return answer


def _mount(device: int, mountpoint: Path) -> bool:
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
    failed = int(_LIBC.mount(b"bucket", os.fsencode(mountpoint), b"fuse.bucket", 0, options.encode()))
    return failed == 0


def _may_mount() -> bool:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        device = os.open("/dev/fuse", os.O_RDWR)
        try:
            mounted = _mount(device, Path(folder))
            if mounted:
                _LIBC.umount2(os.fsencode(folder), _DETACH)
            return mounted
        finally:
            os.close(device)


def main() -> int:
    """Mounts and serves until it is unmounted: MOUNTPOINT BACKING."""
    mountpoint, backing = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
    device = os.open("/dev/fuse", os.O_RDWR)
    if not _mount(device, mountpoint):
        print(f"{mountpoint}: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
        return 1
    _Server(device, backing).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
