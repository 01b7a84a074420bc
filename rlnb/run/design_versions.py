"""Versions of a design: `versions/0001.yaml`, `0002.yaml`, …, each a design file, none ever changed."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rlnb.design.design import Design
from rlnb.errors import DesignError

_HEAD = "# version: "
_KEYS = ("time", "fingerprint", "summary")


@dataclass(frozen=True)
class Version:
    """One kept state of a design.

    Attributes:
        number: 1 for the first.
        time: when it was kept, in this machine's time zone.
        fingerprint: of the design (`Design.fingerprint`).
        summary: what changed since the version before, in words.
    """

    number: int
    time: datetime
    fingerprint: str
    summary: str


class Versions:
    """The versions in one folder.

    Args:
        folder: need not exist yet.
        name: of the design file, for messages.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._known: dict[int, Version] = {}

    def all(self) -> list[Version]:
        """Returns the versions, oldest first; what is no version is left out."""
        for number in self._numbers():
            if number not in self._known and (found := self._read_head(number)) is not None:
                self._known[number] = found
        return [self._known[number] for number in self._numbers() if number in self._known]

    def keep(self, design: Design, summary: str) -> Version | None:
        """Writes a version, durably; None when it equals the newest.

        Raises:
            OSError: it cannot be written.
        """
        fingerprint = design.fingerprint()
        kept = self.all()
        if kept and kept[-1].fingerprint == fingerprint:
            return None
        self._folder.mkdir(parents=True, exist_ok=True)
        number, now = max(self._numbers(), default=0), datetime.now().astimezone().replace(microsecond=0)
        while True:
            number += 1
            made = Version(number, now, fingerprint, summary)
            # JSON on one line: a summary may hold what a YAML comment may not.
            values = (now.astimezone(UTC).isoformat(), fingerprint, summary)
            head = [
                f"{_HEAD}{number}",
                *(f"# {k}: {json.dumps(v)}" for k, v in zip(_KEYS, values, strict=True)),
            ]
            text = "\n".join(head) + "\n" + design.to_yaml()
            if _create(self._path(number), text.encode()):
                self._known[number] = made
                return made

    def read(self, number: int) -> Design:
        """Returns a version's design.

        Raises:
            DesignError: there is no such version, or its file is damaged.
        """
        path = self._path(number)
        if not path.is_file():
            numbers = [version.number for version in self.all()]
            kept = f"there are {numbers[0]} to {numbers[-1]}" if numbers else "none has been kept yet"
            raise DesignError(f"{self._name} has no version {number!r}; {kept}.")
        return Design.from_yaml(path)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:04d}.yaml"

    def _numbers(self) -> list[int]:
        try:
            names = os.listdir(self._folder)
        except OSError:  # it is not there, or is no folder: writing will say so
            return []
        stems = [name.removesuffix(".yaml") for name in names if name.endswith(".yaml")]
        return sorted({int(stem) for stem in stems if stem.isdecimal()})

    def _read_head(self, number: int) -> Version | None:
        """Reads what stands above a version's design; of a file put there by hand, what can be known."""
        path = self._path(number)
        try:
            with open(path, encoding="utf-8") as file:
                lines = [file.readline() for _ in range(1 + len(_KEYS))]
            if lines[0].startswith(_HEAD):
                values = {}
                for key, line in zip(_KEYS, lines[1:], strict=True):
                    values[key] = str(json.loads(line.removeprefix(f"# {key}: ")))
                time = datetime.fromisoformat(values.pop("time")).astimezone()
                return Version(number, time, **values)
            written = datetime.fromtimestamp(path.stat().st_mtime).astimezone()
            return Version(number, written, Design.from_yaml(path).fingerprint(), "")
        except (OSError, ValueError, DesignError):
            return None


def _create(path: Path, data: bytes) -> bool:
    """Writes a file whole under a name that nobody has; False when it is taken."""
    private = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with open(private, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(private, path)
        except FileExistsError:
            return False
        except OSError:  # a filesystem without hard links: exclusive, though a reader may see half of it
            with contextlib.suppress(FileExistsError), open(path, "xb") as file:
                file.write(data)
                return True
            return False
        return True
    finally:
        private.unlink(missing_ok=True)
