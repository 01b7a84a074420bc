"""File names of recordings, and how a new one gets its number when several processes want one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rlnb.run.atomic import remove_leftovers

_SUFFIX: Final = ".parquet"
_FRAMES: Final = ".frames.parquet"
_NUMBERED = re.compile(r"(\d{3,9})-[^.]*(\.frames)?\.parquet")


def slug(label: str) -> str:
    """Returns a label as a part of a file name: letters, digits, "_", "-" and "@"."""
    return re.sub(r"[^A-Za-z0-9_@-]+", "-", label).strip("-")[:48] or "episodes"


class RecordingNames:
    """Names of the files of one folder.

    Args:
        folder: it need not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def transitions(self, name: str) -> Path:
        """Returns the path of the transitions of `name` ("001-random")."""
        return self.folder / f"{name}{_SUFFIX}"

    def frames(self, name: str) -> Path:
        """Returns the path of the frames of `name`."""
        return self.folder / f"{name}{_FRAMES}"

    def all_transitions(self) -> list[Path]:
        """Returns every file that should be a recording, by number; files of other names come last."""
        found = [path for path in self._visible() if not path.name.endswith(_FRAMES)]
        return sorted(found, key=lambda path: (self.number_of(path) or 10**9, path.name))

    def frames_by_number(self) -> dict[int, Path]:
        """Returns the files of frames. The number ties them to their recording: a label may change."""
        return {self.number_of(path): path for path in self._visible() if path.name.endswith(_FRAMES)}

    def number_of(self, path: Path) -> int:
        """Returns the number in a file's name, 0 for another name."""
        match = _NUMBERED.fullmatch(path.name)
        return int(match[1]) if match else 0

    @contextmanager
    def number(self) -> Iterator[int]:
        """Reserves a number that no recording here has, for as long as the block writes its files.

        Raises:
            OSError: if the folder cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._sweep()
        number = max(self._taken(), default=0) + 1
        while True:
            claim = self.folder / f".{number:03d}.claim"
            try:
                os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            except FileExistsError:
                number += 1
                continue
            if number not in self._taken():
                break
            # Somebody published under this number, and gave up the claim, since the folder was listed.
            claim.unlink(missing_ok=True)
            number += 1
        try:
            yield number
        finally:
            claim.unlink(missing_ok=True)

    def _visible(self) -> list[Path]:
        try:
            names = os.listdir(self.folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [self.folder / name for name in names if name.endswith(_SUFFIX) and not name.startswith(".")]

    def _taken(self) -> set[int]:
        return {self.number_of(path) for path in self._visible()}

    def _sweep(self) -> None:
        """Removes what writers that were killed long ago left: claims, half-written files, lone frames."""
        whole = {self.number_of(path) for path in self.all_transitions()}
        lone = [path for number, path in self.frames_by_number().items() if number and number not in whole]
        hidden = [path for end in ("claim", "tmp") for path in self.folder.glob(f".*.{end}")]
        remove_leftovers([*lone, *hidden])
