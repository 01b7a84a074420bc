"""Where runs are published: four verbs under a URL, the same for a folder, a mounted bucket and S3.

A store promises little, and rlnb asks for no more: no rename, no append, no lock. What is written
replaces the whole object; a reader may see a torn object only on a folder whose file system cannot
rename, and then only until its size matches.

URLs: a path or `file:///path`; `s3://bucket/prefix?endpoint=…&region=…`;
`obs://bucket/prefix?region=…` (or `endpoint=…`); `memory://name` for tests. Credentials come from
the environment or the provider's standard chain, never from the URL.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from rlnb.errors import RunFormatError, StoreConflict, StoreError, UsageError, did_you_mean

SCHEMES = ("file", "s3", "obs", "memory")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_OPTIONS = {
    "s3": ("endpoint", "region", "addressing"),
    "obs": ("endpoint", "region"),
    "file": (),
    "memory": (),
}


class StoreMissing(StoreError, FileNotFoundError):
    """The store has no object of that name."""


class Entry(NamedTuple):
    """One object.

    Attributes:
        name: relative to the store's URL, with slashes.
        size: bytes.
        modified: seconds since the epoch by the store's clock; 0.0 when it does not tell.
    """

    name: str
    size: int
    modified: float


class Storage(Protocol):
    """A place for objects under one URL. All names are relative, with slashes, without `..`.

    Every verb raises StoreUnreachable (try later), StoreDenied (a person must act) or StoreFull.
    """

    @property
    def url(self) -> str: ...

    def read(self, name: str, *, start: int = 0, end: int | None = None) -> bytes:
        """Returns the bytes [start, end) of an object; shorter where the object ends earlier.

        Raises:
            StoreMissing: there is no such object.
        """

    def write(self, name: str, data: bytes | Path, *, exclusive: bool = False) -> None:
        """Creates or replaces an object.

        Args:
            name: the object.
            data: its bytes, or the regular file that holds them (a link is refused).
            exclusive: create only; whether that holds between hosts, `probe` finds out.

        Raises:
            StoreConflict: `exclusive`, and the name is taken.
        """

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Yields every object whose name starts with `prefix`, sorted by name."""

    def remove(self, names: Iterable[str]) -> None:
        """Removes objects in the given order; one that is not there is no error."""

    def close(self) -> None:
        """Releases connections; the storage is not used afterwards."""


@dataclass(frozen=True)
class StoreAddress:
    """A store's URL, taken apart.

    Attributes:
        scheme: one of `SCHEMES`.
        place: bucket of an object store, name of a memory store, "" for a folder.
        path: absolute path of a folder, else the prefix without outer slashes.
        options: the query, e.g. {"region": "cn-north-4"}.
    """

    scheme: str
    place: str
    path: str
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, url: str) -> StoreAddress:
        """Parses a URL or a path.

        Raises:
            UsageError: it is malformed, of an unknown scheme, or holds a secret.
        """
        if not url.strip():
            raise UsageError(
                "The store is empty; give a folder such as './runs' or a URL such as 's3://bucket/prefix'."
            )
        if "://" not in url:
            return cls("file", "", os.path.abspath(os.path.expanduser(url)))
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise UsageError(f"The store URL cannot be read ({error}); correct it.") from None
        shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        if parts.scheme not in SCHEMES:
            raise UsageError(
                f"The store {shown!r} has the unknown scheme {parts.scheme!r}; use a path, "
                f"{', '.join(s + '://' for s in SCHEMES[:3])}.{did_you_mean(parts.scheme, SCHEMES)}"
            )
        if "@" in parts.netloc:
            raise UsageError(
                f"The store URL {shown!r} was given with a user or key before '@'; take it out and set "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment instead."
            )
        options = _options(parts.scheme, parts.query, shown)
        if parts.fragment:
            raise UsageError(
                f"The store URL {shown!r} has a '#{parts.fragment}', which means nothing here; take it out."
            )
        if parts.scheme == "file":
            if parts.netloc not in ("", "localhost"):
                raise UsageError(
                    f"The store {shown!r} names the host {parts.netloc!r}; a folder is written file:///path, "
                    "with three slashes, or as a plain path."
                )
            return cls("file", "", os.path.abspath(unquote(parts.path)), options)
        prefix = unquote(parts.path).strip("/")
        if prefix:
            check_name(prefix, shown)
        if parts.scheme in ("s3", "obs") and not _BUCKET.fullmatch(parts.netloc):
            raise UsageError(
                f"The store {shown!r} has no valid bucket name ({parts.netloc!r}); bucket names have 3 to 63 "
                "lower-case letters, digits, dots and hyphens."
            )
        if parts.scheme == "obs" and not (options.get("region") or options.get("endpoint")):
            raise UsageError(
                f"The store {shown!r} does not say where the bucket is; add ?region=…, e.g. {shown}?region=cn-north-4."
            )
        return cls(parts.scheme, parts.netloc, prefix, options)

    @property
    def url(self) -> str:
        """The canonical URL; a folder is its plain absolute path."""
        if self.scheme == "file":
            return self.path
        query = f"?{urlencode(self.options, safe=':/')}" if self.options else ""
        return f"{self.scheme}://{self.place}{'/' if self.path else ''}{self.path}{query}"

    def below(self, name: str) -> StoreAddress:
        """Returns the address of a name under this one; the query stays."""
        check_name(name, self.url)
        path = f"{self.path.rstrip('/')}/{name}" if self.path else name
        return StoreAddress(self.scheme, self.place, path, dict(self.options))


def _options(scheme: str, query: str, shown: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if re.search(r"key|secret|token|passw|credential|signature|^ak$|^sk$", key, re.IGNORECASE):
            raise UsageError(
                f"The store URL {shown!r} was given with {key!r}: credentials do not belong in a URL; set "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment instead."
            )
        if key not in _OPTIONS[scheme]:
            known = ", ".join(_OPTIONS[scheme]) or "none"
            raise UsageError(
                f"The store URL {shown!r} has the unknown option {key!r} (known: {known})."
                f"{did_you_mean(key, _OPTIONS[scheme])}"
            )
        if key == "endpoint" and ("@" in value or not re.match(r"https?://[^/?#]", value)):
            raise UsageError(
                f"The endpoint of {shown!r} must be http://host or https://host without a user; correct it."
            )
        if key == "addressing" and value not in ("path", "virtual", "auto"):
            raise UsageError(f"addressing={value!r} of {shown!r} is unknown; use path, virtual or auto.")
        found[key] = value
    return found


def check_name(name: str, where: str = "the store") -> str:
    """Returns `name` if it is a plain relative name.

    Raises:
        RunFormatError: it is absolute, empty, or climbs.
    """
    if not name or "\\" in name or "\0" in name or any(p in ("", ".", "..") for p in name.split("/")):
        raise RunFormatError(
            f"The name {name!r} in {where} is not a plain relative name; refusing to use it."
        )
    return name


def open_storage(url: str, *, options: Mapping[str, str] | None = None) -> Storage:
    """Opens a store; nothing is contacted or created before the first verb.

    Args:
        url: see the module's text.
        options: as in the URL's query, over which they win.

    Raises:
        UsageError: the URL is malformed or holds a secret.
    """
    address = StoreAddress.parse(url)
    if options:
        merged = {**address.options, **_options(address.scheme, urlencode(dict(options)), address.url)}
        address = StoreAddress(address.scheme, address.place, address.path, merged)
    if address.scheme == "file":
        from rlnb.run.storages.folder import FolderStorage

        return FolderStorage(Path(address.path))
    if address.scheme == "memory":
        from rlnb.run.storages.memory import MemoryStorage

        return MemoryStorage(address)
    from rlnb.run.storages.s3 import S3Storage

    return S3Storage(address)


@dataclass(frozen=True)
class ProbeResult:
    """What a store was seen to do.

    Attributes:
        writes, reads, deletes: whether a real object made the round trip.
        exclusive: whether create-only is honoured between hosts.
        error: one sentence when one of the first three failed, else None.
    """

    writes: bool = False
    reads: bool = False
    deletes: bool = False
    exclusive: bool = False
    error: str | None = None


def probe(storage: Storage) -> ProbeResult:
    """Finds out by really writing, reading and deleting, since a Head can pass where a Put fails."""
    name, content = f".rlnb-probe-{uuid.uuid4().hex}", uuid.uuid4().bytes
    writes = reads = exclusive = False
    try:
        storage.write(name, content)
        writes = True
        if storage.read(name) != content:
            raise StoreError(f"The store {storage.url} returned other bytes than were written to {name}.")
        reads = name in {entry.name for entry in storage.list(name)}
        exclusive = _honours_exclusive(storage, name, content)
        storage.remove([name])
        if any(True for _ in storage.list(name)):
            raise StoreError(f"The store {storage.url} still has {name} after it was deleted.")
    except StoreError as error:
        return ProbeResult(writes, reads, False, exclusive, str(error))
    return ProbeResult(writes, reads, True, exclusive)


def _honours_exclusive(storage: Storage, name: str, content: bytes) -> bool:
    if getattr(storage, "single_host", False):
        return False
    fresh = f"{name}-new"
    try:
        storage.write(fresh, content, exclusive=True)
        storage.write(name, b"lost", exclusive=True)
    except StoreConflict:
        return storage.read(name) == content
    except StoreError:
        return False  # it refuses conditional writes altogether
    finally:
        storage.remove([fresh])
    storage.write(name, content)
    return False
