"""A file that only grows, kept in a store that cannot append: as objects that are byte ranges of it.

`logs/events.jsonl@0-512` holds the bytes [0, 512) of `logs/events.jsonl`. The name carries the range,
so publishing is idempotent, a torn part (its size is not that of its range) is recognised and passed
over, and small parts can be replaced by one that covers them without a moment in which bytes are
missing. Parts may overlap; they then hold the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from rlnb.run.storage import Entry

#: Where everything is kept as parts; elsewhere an `@` in a name means nothing.
APPENDED = "logs/"

_RANGE = re.compile(r"(?P<name>.+)@(?P<start>\d{1,18})-(?P<end>\d{1,18})", re.DOTALL)


class Part(NamedTuple):
    """The bytes [start, end) of the file `name`."""

    name: str
    start: int
    end: int

    @property
    def object_name(self) -> str:
        return f"{self.name}@{self.start}-{self.end}"

    @property
    def size(self) -> int:
        return self.end - self.start


def parse_part(object_name: str) -> Part | None:
    """Returns what an object's name says it holds, None when it is no part."""
    match = _RANGE.fullmatch(object_name) if object_name.startswith(APPENDED) else None
    if match is None or int(match["end"]) <= int(match["start"]):
        return None
    return Part(match["name"], int(match["start"]), int(match["end"]))


def whole_parts(entries: Iterable[Entry]) -> dict[str, list[Part]]:
    """Returns the untorn parts among a store's objects, by file."""
    found: dict[str, list[Part]] = {}
    for entry in entries:
        part = parse_part(entry.name)
        if part is not None and part.size == entry.size:
            found.setdefault(part.name, []).append(part)
    return found


def chain(parts: Iterable[Part], start: int = 0) -> list[Part]:
    """Returns the fewest parts that cover a file from byte `start` without a gap, in order.

    Whatever lies behind a gap is left out: it may be read once the gap is filled.
    """
    found: list[Part] = []
    rest, offset = list(parts), start
    while True:
        rest = [part for part in rest if part.end > offset]
        next_part = max((p for p in rest if p.start <= offset), key=lambda p: p.end, default=None)
        if next_part is None:
            return found
        found.append(next_part)
        offset = next_part.end
