"""What a check found: a sentence with its number, why it matters, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters, the worst first."""

    PROBLEM = "problem"  # training on this would learn the wrong thing, or fail
    WARNING = "warning"  # likely to make learning slow or the result surprising
    HINT = "hint"  # worth a look
    FINE = "fine"  # the check passed; its number is shown all the same


@dataclass(frozen=True)
class Finding:
    """The outcome of one check.

    Attributes:
        code: stable name of the check, such as "reward.idle".
        severity: how much it matters.
        sentence: what was found, with its number and unit.
        why: why it matters; one sentence.
        advice: what to do about it; one sentence, "" where there is nothing to do.
        value: the number itself, or None where a check has none.
        names: the terms or components it is about.
        rows: a few rows of the batch that show it, to jump to.
    """

    code: str
    severity: Severity
    sentence: str
    why: str
    advice: str = ""
    value: float | None = None
    names: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()

    def __str__(self) -> str:
        return " ".join(part for part in (self.sentence, self.why, self.advice) if part)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Returns findings by severity; those of one severity stay in their order."""
    order = list(Severity)
    return sorted(findings, key=lambda finding: order.index(finding.severity))
