"""As strict as OBS: a forward proxy before the real S3 server that refuses what OBS refuses.

Requests pass verbatim, so the client's own SigV4 signature, made over the virtual host, is what the
server verifies. The client is sent here by `http_proxy`, because `<bucket>.obs.rlnb.test` need not
resolve then. Refused are path-style addressing, aws-chunked bodies and checksum trailers, conditional
PUT, DeleteObjects without Content-MD5, rename and append; besides, requests are answered 503 SlowDown
and connections are cut at given rates.
"""

from __future__ import annotations

import http.client
import random
import socket
import struct
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from rlnb.testing.seaweed import DOMAIN, SeaweedServer

_HOP = {"connection", "proxy-connection", "keep-alive", "expect", "te", "upgrade", "proxy-authorization"}


class ObsProxy:
    """A context manager around the proxy.

    Args:
        server: the running S3 server behind.
        slow_down: share of the requests that are answered 503 SlowDown.
        cut: share of the requests whose connection is cut: before the server sees them, after it has
            acted but before it is told, or within the answer.
        seed: of the dice.

    Attributes:
        refused: how often each rule was broken, by the error code answered.
        slowed, cuts: how often the dice hit.
    """

    def __init__(
        self, server: SeaweedServer, *, slow_down: float = 0.0, cut: float = 0.0, seed: int = 0
    ) -> None:
        self.server, self.slow_down, self.cut = server, slow_down, cut
        self.refused: Counter[str] = Counter()
        self.slowed = self.cuts = 0
        self._dice, self._lock = random.Random(seed), threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def environment(self) -> dict[str, str]:
        """What a client process needs: credentials, and the way here."""
        own = {"http_proxy": f"http://127.0.0.1:{self._http.server_port}", "no_proxy": "127.0.0.1,localhost"}
        return {**self.server.environment, **own}

    def url(self, prefix: str = "") -> str:
        """Returns the store URL of a prefix in the server's bucket, seen through the proxy."""
        return f"obs://{self.server.bucket}{'/' if prefix else ''}{prefix}?endpoint=http://{DOMAIN}&region=us-east-1"

    def __enter__(self) -> ObsProxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def roll(self) -> tuple[bool, int]:
        """Returns whether to answer SlowDown, and where to cut: 0 nowhere, 1 before, 2 after, 3 within."""
        with self._lock:
            slow, cut = self._dice.random() < self.slow_down, self._dice.random() < self.cut
            place = self._dice.randrange(1, 4) if cut and not slow else 0
            self.slowed += slow
            self.cuts += bool(place)
            return slow, place

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(_Handler):
            owner = proxy

        return Handler


class _Handler(BaseHTTPRequestHandler):
    owner: ObsProxy
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Tests look at the counters."""

    def do_GET(self) -> None:
        self._pass()

    do_PUT = do_POST = do_DELETE = do_HEAD = do_GET

    def _pass(self) -> None:
        target = urlsplit(self.path)
        host = target.netloc or self.headers.get("Host", "")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = _fault(
            self.command, host.split(":")[0], parse_qs(target.query, keep_blank_values=True), self.headers
        )
        if fault is not None:
            self.owner.refused[fault[1]] += 1
            self._refuse(*fault)
            return
        slow, cut = self.owner.roll()
        if slow:
            self._refuse(503, "SlowDown", "Please reduce your request rate.")
            return
        if cut == 1:
            self._cut()
            return
        path = target.path + (f"?{target.query}" if target.query else "")
        try:
            status, headers, content = self._forward(path, host, body)
        except OSError:
            self._cut()  # the server is down: so is OBS
            return
        if cut == 2:
            self._cut()
            return
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in (*_HOP, "transfer-encoding", "content-length"):
                self.send_header(name, value)
        length = {name.lower(): value for name, value in headers}.get("content-length")
        self.send_header("Content-Length", length if self.command == "HEAD" and length else str(len(content)))
        self.end_headers()
        if cut == 3:
            self.wfile.write(content[: len(content) // 2])
            self._cut()
        elif self.command != "HEAD":
            self.wfile.write(content)

    def _forward(self, path: str, host: str, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.owner.server.port, timeout=60)
        try:
            connection.putrequest(self.command, path, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", host)
            for name, value in self.headers.items():
                if name.lower() not in (*_HOP, "host"):
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _refuse(self, status: int, code: str, message: str) -> None:
        content = (
            f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'.encode()
        )
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _cut(self) -> None:
        """Resets the connection, as a failing network does."""
        self.close_connection = True
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.shutdown(socket.SHUT_RDWR)


def _fault(method: str, host: str, query: dict[str, list[str]], headers: Any) -> tuple[int, str, str] | None:
    """Returns the rule that a request breaks, as status, code and message."""
    if not host.endswith(f".{DOMAIN}"):
        return (
            403,
            "VirtualHostDomainRequired",
            "Virtual host domain is required when accessing a specific bucket.",
        )
    present = {name.lower() for name in headers}
    encoding, digest = headers.get("Content-Encoding", ""), headers.get("x-amz-content-sha256", "")
    if "aws-chunked" in encoding or digest.startswith("STREAMING-") or "x-amz-trailer" in present:
        return 400, "InvalidEncoding", "aws-chunked bodies and trailers are not supported."
    if any(name.startswith(("x-amz-checksum-", "x-amz-sdk-checksum")) for name in present):
        return 400, "InvalidChecksum", "Checksum headers are not supported."
    if method in ("PUT", "POST") and present & {"if-none-match", "if-match"}:
        return 501, "NotImplemented", "Conditional writes are not supported."
    if method == "POST" and "delete" in query and "content-md5" not in present:
        return 400, "InvalidRequest", "DeleteObjects needs Content-MD5."
    if "rename" in query or "x-amz-rename-source" in present:
        return 405, "MethodNotAllowed", "Objects cannot be renamed."
    if "append" in query or "x-amz-write-offset-bytes" in present:
        return 409, "ObjectNotAppendable", "Objects cannot be appended to."
    return None
