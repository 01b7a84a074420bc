"""What a check found, for a notebook and for a terminal."""

from __future__ import annotations

import html
from dataclasses import dataclass

from rlnb.errors import ExperimentError
from rlnb.run.findings import Finding, Level

_MARKS = {Level.ERROR: "✗", Level.WARNING: "!", Level.INFO: "·"}
_COLOURS = {Level.ERROR: "#c62828", Level.WARNING: "#b26a00", Level.INFO: "inherit"}


@dataclass(frozen=True)
class CheckReport:
    """What a check found.

    Attributes:
        findings: errors first.
        seconds: how long it took.
        exclusive: whether the store honours exclusive create; None when it was not tried.
    """

    findings: tuple[Finding, ...]
    seconds: float = 0.0
    exclusive: bool | None = None

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.level is Level.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.level is Level.WARNING)

    @property
    def ok(self) -> bool:
        """Whether nothing stands in the way of promotion."""
        return not self.errors

    def require(self) -> CheckReport:
        """Returns itself, or raises ExperimentError with every error's sentence."""
        if not self.ok:
            raise ExperimentError(
                "Not promoted: "
                + " ".join(finding.message for finding in self.errors)
                + " (check=False, or --no-check, promotes without these checks.)"
            )
        return self

    def __repr__(self) -> str:
        lines = [f"{_MARKS[finding.level]} {finding.message}" for finding in self.findings]
        return "\n".join([self._headline(), *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<li style="list-style:none;color:{_COLOURS[f.level]}">{_MARKS[f.level]} {html.escape(f.message)}</li>'
            for f in self.findings
        )
        return f'<b>{html.escape(self._headline())}</b><ul style="margin:0;padding-left:0.5em">{rows}</ul>'

    def _headline(self) -> str:
        verdict = "ready to promote" if self.ok else f"{len(self.errors)} problem(s) to solve"
        hints = f", {len(self.warnings)} warning(s)" if self.warnings else ""
        return f"check: {verdict}{hints} ({self.seconds:.1f} s)"
