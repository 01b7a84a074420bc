"""What belongs to a lab and not to its design: colours, preferences, which episodes are good (`lab.json`)."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rlnb.run.atomic import write_atomic

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True)
class LabNotes:
    """A lab's own notes. None of it changes what is trained.

    Attributes:
        colours: term → "#rrggbb".
        preferences: (key of the better episode, key of the worse one), in the order they were said.
        good: policy labels whose episodes show what is wanted.
        buffer_size: transitions of the replay memory that the State tab reckons with.
        axes: the two components of the coverage map; None lets it choose.
    """

    colours: Mapping[str, str] = field(default_factory=dict)
    preferences: tuple[tuple[str, str], ...] = ()
    good: tuple[str, ...] = ()
    buffer_size: int = 1_000_000
    axes: tuple[str, str] | None = None

    def to_json(self) -> bytes:
        """Returns the content of `lab.json`."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return (
            json.dumps({"format": 1, **values}, indent=1, ensure_ascii=False, default=dict).encode() + b"\n"
        )


def read_notes(path: Path) -> tuple[LabNotes, str | None]:
    """Reads a lab's notes; a file that is damaged is no reason to open no lab.

    Args:
        path: `lab.json`, which need not exist.

    Returns:
        The notes, with the defaults for what cannot be read; a sentence about that, or None.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return LabNotes(), None
    except OSError as error:
        return (
            LabNotes(),
            f"{path.name} cannot be read ({error.strerror}); colours and preferences begin anew.",
        )
    try:
        given = json.loads(data)
    except (ValueError, RecursionError):
        given = None
    values: dict[str, Any] = {}
    wrong = [] if isinstance(given, dict) else ["all of it"]
    for name, check in _CHECKS.items() if isinstance(given, dict) else ():
        if name in given:
            try:
                values[name] = check(given[name])
            except (TypeError, ValueError, AttributeError):
                wrong.append(name)
    if not wrong:
        return LabNotes(**values), None
    return LabNotes(**values), (
        f"{path.name} is damaged ({', '.join(wrong)}) and begins anew there; the next change keeps the damaged "
        f"file as {path.name}.damaged."
    )


def write_notes(path: Path, notes: LabNotes) -> bool:
    """Writes a lab's notes, whole and durably; False when the file says that already.

    A damaged file is first put aside as `lab.json.damaged`.

    Raises:
        OSError: it cannot be written.
    """
    data = notes.to_json()
    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            return False
        if read_notes(path)[1] is not None:
            os.replace(path, path.with_name(f"{path.name}.damaged"))
    write_atomic(path, data)
    return True


def _colours(given: Any) -> dict[str, str]:
    if not all(_COLOUR.fullmatch(colour) for colour in given.values()):
        raise ValueError
    return dict(given)


def _texts(given: Any, length: int | None = None) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
        raise TypeError
    if length is not None and len(given) != length:
        raise ValueError
    return tuple(given)


def _count(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ValueError
    return given


def _preferences(given: Any) -> tuple[tuple[str, ...], ...]:
    if not isinstance(given, list):
        raise TypeError
    return tuple(_texts(pair, 2) for pair in given)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "colours": _colours,
    "preferences": _preferences,
    "good": _texts,
    "buffer_size": _count,
    "axes": lambda given: None if given is None else _texts(given, 2),
}
