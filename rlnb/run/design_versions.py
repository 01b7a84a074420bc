"""Versions of a design: `versions/0001.yaml`, `0002.yaml`, …, each a design file, none ever changed."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from rlnb.design.design import Design
from rlnb.errors import DesignError
from rlnb.run.host import utc_now

_HEAD = "# version: "
_KEYS = ("time", "fingerprint", "summary")


@dataclass(frozen=True)
class Version:
    """One kept state of a design.

    Attributes:
        number: 1 for the first.
        time: ISO 8601 in UTC.
        fingerprint: of the design (`Design.fingerprint`).
        summary: what changed since the version before, in words.
    """

    number: int
    time: str
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
        number = max(self._numbers(), default=0)
        while True:
            number += 1
            made = Version(number, utc_now(), fingerprint, summary)
            # JSON on one line: a summary may hold what a YAML comment may not.
            head = [f"{_HEAD}{number}", *(f"# {key}: {json.dumps(getattr(made, key))}" for key in _KEYS)]
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
        except FileNotFoundError:
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
                return Version(number, **values)
            return Version(number, "", Design.from_yaml(path).fingerprint(), "")
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
