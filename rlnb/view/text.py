"""A run in a terminal: what it is, how far, how well."""

from __future__ import annotations

import shutil

from rlnb.run.status import State
from rlnb.view.facts import Facts


def job_text(facts: Facts, *, width: int | None = None, unicode: bool = True, closing: bool = True) -> str:
    """Writes a run in a few lines.

    Args:
        facts: the run at one moment.
        width: columns to use; the terminal's, at most 100, when None.
        unicode: off for a terminal that shows ASCII only.
        closing: whether to end with `closing_text`.

    Returns:
        Lines without a trailing newline: heading, progress bar, details, the reason if there is one, and
        the folder.
    """
    if width is None:
        width = min(100, shutil.get_terminal_size((80, 24)).columns)
    heading = f"{facts.name or facts.id}: {facts.state_words}"
    if facts.what:
        heading += f" ({facts.what})"
    lines = [heading]
    if facts.fraction is not None:
        tail = " ".join(part for part in (facts.progress_words, facts.left_words) if part)
        lines.append(
            f"{progress_bar(facts.fraction, max(10, width - len(tail) - 3), unicode=unicode)} {tail}"
        )
    if facts.details:
        lines.append(" · ".join(facts.details) if unicode else ", ".join(facts.details))
    return "\n".join([*lines, closing_text(facts)] if closing else lines)


def closing_text(facts: Facts) -> str:
    """Writes why a run is as it is, and where to read on: the lines that belong below its picture."""
    lines = [facts.explanation] if facts.explanation else []
    if facts.evidence is not None and facts.evidence.log and facts.state in (State.FAILED, State.LOST):
        lines.append(f"log: {facts.folder}/{facts.evidence.log}")
    lines.append(f"run {facts.id} in {facts.folder}" if facts.folder else f"run {facts.id}")
    return "\n".join(lines)


def progress_bar(fraction: float, width: int, *, unicode: bool = True) -> str:
    """Draws a progress bar of exactly `width` columns; the filled part never shows more than is done."""
    inner = max(1, width - 2)
    if not unicode:
        done = int(fraction * inner)
        return "[" + "#" * done + "." * (inner - done) + "]"
    eighths = int(fraction * inner * 8)
    full, rest = divmod(eighths, 8)
    part = "▏▎▍▌▋▊▉"[rest - 1] if rest else ""
    return "▕" + (("█" * full) + part).ljust(inner) + "▏"
