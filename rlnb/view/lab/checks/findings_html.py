"""Findings of the checks as HTML, without a widget: for the tab Checks, and for documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from rlnb.design.checks.finding import Finding, Severity, worst_first

#: how a severity is shown: always a sign and a word, beside the colour
SIGNS = {Severity.PROBLEM: "✖", Severity.WARNING: "▲", Severity.HINT: "●", Severity.FINE: "✔"}

# Styles of its own, for documents without the Lab's stylesheet; the colours follow the theme where there is one.
_TONES = {
    Severity.PROBLEM: "var(--rlnb-bad, #c8291f)",
    Severity.WARNING: "var(--rlnb-waiting, #9a6200)",
    Severity.HINT: "var(--rlnb-busy, #1d63d8)",
    Severity.FINE: "var(--rlnb-good, #16803c)",
}

_GROUPS = {"reward": "Reward", "state": "State"}

# A number that is no part of a name: "12 %", "1,240", "-0.3", "1e-5"
_NUMBER = re.compile(r"(?<![\w.&#])[-−]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?: ?%)?(?!\w)")


def findings_html(findings: Iterable[Finding]) -> str:
    """Returns findings grouped by what they are about, the worst first, those that passed folded.

    Returns:
        HTML in which everything is escaped; `lab_tables.css` styles it.
    """
    ordered = worst_first(findings)
    if not ordered:
        return '<div class="rlnb-findings"><p class="rlnb-muted">Nothing has been checked yet.</p></div>'
    parts = [f'<p class="rlnb-summary">{escape(summary(ordered))}</p>']
    for name, group in grouped(ordered).items():
        parts.append(f'<h4 class="rlnb-group">{escape(name)}</h4>')
        parts += [finding_card(one) for one in group if one.severity is not Severity.FINE]
        parts.append(passed_html(group))
    return f'<div class="rlnb-findings">{"".join(parts)}</div>'


def summary(findings: Iterable[Finding]) -> str:
    """Returns "2 problems, 1 warning, 14 passed"."""
    severities = [one.severity for one in findings]
    words: list[str] = []
    for severity in Severity:
        count = severities.count(severity)
        if severity is Severity.FINE:
            words += [f"{count} passed"] if count or not words else []
        elif count:
            words.append(f"{count} {severity}" + ("" if count == 1 else "s"))
    return ", ".join(words)


def grouped(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Returns findings by what they are about, "Reward" first; their order stays."""
    groups: dict[str, list[Finding]] = {name: [] for name in _GROUPS.values()}
    for one in findings:
        groups.setdefault(_GROUPS.get(one.code.partition(".")[0], "Other"), []).append(one)
    return {name: group for name, group in groups.items() if group}


def finding_card(finding: Finding) -> str:
    """Returns one finding: how bad, what, why it matters, what to do."""
    lines = [f'<p class="rlnb-sentence" style="margin:0">{_sentence(finding)} {_name(finding)}</p>']
    if finding.why:
        lines.append(f'<p class="rlnb-why" style="margin:0;opacity:0.75">{escape(finding.why)}</p>')
    if finding.advice:
        lines.append(f'<p class="rlnb-advice" style="margin:0"><b>Do:</b> {escape(finding.advice)}</p>')
    tone = _TONES[finding.severity]
    return (
        f'<div class="rlnb-finding" style="border-left:3px solid {tone};margin:4px 0;padding:3px 0 4px 10px">'
        f"{_badge(finding.severity)}<div>{''.join(lines)}</div></div>"
    )


def passed_html(findings: Sequence[Finding]) -> str:
    """Returns those that passed as a folded list with their numbers; "" where there is none."""
    fine = [one for one in findings if one.severity is Severity.FINE]
    if not fine:
        return ""
    items = "".join(
        f'<li title="{escape(one.why)}">{_sentence(one)} {_name(one)}'
        + (f' <span style="opacity:0.75">{escape(one.advice)}</span>' if one.advice else "")
        + "</li>"
        for one in fine
    )
    words = "1 check passed" if len(fine) == 1 else f"{len(fine)} checks passed"
    return (
        f'<details class="rlnb-passed"><summary><span style="color:{_TONES[Severity.FINE]}">{SIGNS[Severity.FINE]}</span> '
        f"{words}</summary><ul>{items}</ul></details>"
    )


def _badge(severity: Severity) -> str:
    return (
        f'<span class="rlnb-badge" style="color:{_TONES[severity]};font-weight:600">'
        f'<span aria-hidden="true">{SIGNS[severity]}</span> {severity.capitalize()}</span>'
    )


def _name(finding: Finding) -> str:
    """Returns the check's name, by which texts and people speak of it."""
    return f'<span class="rlnb-check-name" style="font-size:12px;opacity:0.75">{escape(finding.code)}</span>'


def _sentence(finding: Finding) -> str:
    """Returns the sentence with the finding's number in bold: the one that is its value, else the first."""
    text = escape(finding.sentence)
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    same = [one for one in found if finding.value is not None and _says(one.group(), finding.value)]
    first = (same or found)[0]
    return f"{text[: first.start()]}<b>{first.group()}</b>{text[first.end() :]}"


def _says(words: str, value: float) -> bool:
    """Whether a written number is a value, as far as its digits go."""
    plain = words.replace("−", "-").replace(",", "").replace(" ", "")
    share = plain.endswith("%")
    plain = plain.rstrip("%")
    mantissa = plain.partition("e")[0]
    digits = len(mantissa.lstrip("-").replace(".", "").lstrip("0")) or 1
    told, meant = float(plain), 100 * value if share else value
    return abs(told - meant) <= 0.6 * 10.0 ** (1 - digits) * max(abs(told), 1e-12)
