"""What a check found: one sentence each, with a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad a finding is."""

    ERROR = "error"  # promotion is refused
    WARNING = "warning"  # it will run, but perhaps not as meant
    INFO = "info"  # a number worth knowing


@dataclass(frozen=True)
class Finding:
    """One result of a check.

    Attributes:
        level: whether it stops promotion.
        code: a short stable word, e.g. "parameter_unknown".
        message: one sentence: what, with the value, and what to do.
    """

    level: Level
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.level.value}: {self.message}"
