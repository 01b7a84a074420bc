"""What `Lab.check()` returns: a list of findings that reads as a report, in a notebook and in a terminal."""

from __future__ import annotations

from rlnb.design.checks.finding import Finding, Severity
from rlnb.view.lab.checks.findings_html import SIGNS, findings_html, summary


class Findings(list[Finding]):
    """Findings, the worst first."""

    def __repr__(self) -> str:
        told = [one for one in self if one.severity is not Severity.FINE]
        return "\n".join([summary(self), *(f"{SIGNS[one.severity]} {one}" for one in told)])

    def _repr_html_(self) -> str:
        return findings_html(self)
