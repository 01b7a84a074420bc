"""What a check found, for a notebook and for a terminal."""

from __future__ import annotations

import html
from dataclasses import dataclass

from rlnb.errors import ExperimentError
from rlnb.run.findings import Finding, Level

_MARKS = {Level.ERROR: "✗", Level.WARNING: "!", Level.INFO: "·"}
# JupyterLab's colours, which follow its theme; the second is for other front ends.
_COLOURS = {
    Level.ERROR: "var(--jp-error-color1, #c62828)",
    Level.WARNING: "var(--jp-warn-color1, #b26a00)",
    Level.INFO: "var(--jp-ui-font-color2, inherit)",
}
_GOOD = "var(--jp-success-color1, #16803c)"


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
        mark, colour = ("✓", _GOOD) if self.ok else ("✗", _COLOURS[Level.ERROR])
        rows = "".join(
            # The mark hangs out, so that a long sentence does not run below it.
            f'<div style="color:{_COLOURS[f.level]};padding-left:1.4em;text-indent:-1.4em">'
            f'<span style="display:inline-block;text-indent:0;width:1.4em">{_MARKS[f.level]}</span>'
            f"{html.escape(f.message)}</div>"
            for f in self.findings
        )
        head = f'<span style="color:{colour};display:inline-block;width:1.4em">{mark}</span>'
        return f'<div style="line-height:1.55"><div>{head}<b>{html.escape(self._headline())}</b></div>{rows}</div>'

    def _headline(self) -> str:
        verdict = "ready to promote" if self.ok else f"{_count(self.errors, 'problem')} to solve"
        hints = f", {_count(self.warnings, 'warning')}" if self.warnings else ""
        return f"check: {verdict}{hints} ({self.seconds:.1f} s)"


def _count(found: tuple[Finding, ...], word: str) -> str:
    return f"{len(found)} {word}{'' if len(found) == 1 else 's'}"
