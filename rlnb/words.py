"""A run in words: one line, a failure with all a person needs, or everything for a terminal."""

from __future__ import annotations

import shlex
from dataclasses import replace

from rlnb.errors import RlnbError
from rlnb.run.claims import latest_attempt
from rlnb.run.events import read_events
from rlnb.run.layout import RunLayout, read_json
from rlnb.run.record import read_record
from rlnb.run.status import Evidence, Observation, State
from rlnb.summary import current_progress, known_checkpoints, total_timesteps
from rlnb.view.facts import Facts, number, size

TRACEBACK_LINES = 40
EVENTS_SHOWN = 8
CHECKPOINTS_SHOWN = 5


def gather(layout: RunLayout, seen: Observation) -> Facts:
    """Collects what a line about the run needs, from small files only (no metric rows)."""
    facts = Facts(layout.id, state=seen.state, silent=seen.silent, why=seen.why, folder=str(layout.root))
    facts = replace(facts, attempt=latest_attempt(layout))
    try:
        record = read_record(layout)
        facts = replace(facts, name=record.name, total=total_timesteps(record) or 0)
    except RlnbError:
        pass  # a run that is being written, or of a newer format: the status still speaks
    if seen.status is not None:
        status = seen.status
        facts = replace(
            facts,
            attempt=max(facts.attempt, status.attempt),
            step=status.step,
            total=status.total or facts.total,
            return_mean=status.return_mean,
            upload_pending=status.upload_pending,
            store=status.store,
            evidence=None if status.state in (State.RUNNING, State.STARTING) else status.evidence,
        )
    progress = current_progress(layout, facts.attempt)
    if progress is not None:
        facts = replace(
            facts,
            phase=progress.phase,
            step=max(facts.step, progress.step),
            total=progress.total or facts.total,
            return_mean=facts.return_mean if progress.return_mean is None else progress.return_mean,
            steps_per_second=progress.steps_per_second,
        )
    training = read_json(layout.training_json)
    if training is not None:
        facts = replace(
            facts,
            step=int(training.get("step") or facts.step),
            return_mean=facts.return_mean
            if training.get("return_mean") is None
            else float(training["return_mean"]),
        )
    return facts


def progress_text(layout: RunLayout, seen: Observation) -> str:
    """Returns one line, e.g. "running, 12,000 of 50,000 steps (24.0 %), return 181.2, 12 s left"."""
    facts = gather(layout, seen)
    parts = [facts.state_words, facts.progress_words, *facts.details, facts.left_words]
    if not facts.total and not facts.step:
        parts.remove(facts.progress_words)
    if facts.explanation and facts.state in (State.QUEUED, State.SUSPENDED, State.STOPPED, State.LOST):
        parts.append(facts.explanation)
    return ", ".join(part for part in parts if part)


def failure_text(layout: RunLayout, seen: Observation) -> str:
    """Returns why a run failed: the cell and its traceback, the exit, the log, and the next commands."""
    evidence = seen.status.evidence if seen.status else None
    lines = [f"{layout.id} {seen.state.value}: {_cause(evidence, seen)}"]
    if evidence is not None and evidence.cell:
        cell = evidence.cell
        error = f"{cell.get('ename') or ''}: {cell.get('evalue', '')}"
        if cell.get("ename") and error not in lines[0]:  # the cause mostly says it already
            lines.append(f"cell {cell.get('number', '?')}: {error}")
        lines += _traceback(cell.get("traceback") or [])
    log = layout.root / evidence.log if evidence is not None and evidence.log else layout.stdout_log
    name = shlex.quote(layout.id)
    go_on = "go on from the newest checkpoint" if known_checkpoints(layout) else "try again from the start"
    lines += [
        f"log:  {log}",
        f"more: rlnb logs {name}   rlnb show {name}",
        f"{go_on}: rlnb resume {name}",
    ]
    return "\n".join(lines)


def _cause(evidence: Evidence | None, seen: Observation) -> str:
    if evidence is None or seen.state is State.LOST:
        return seen.why or "nothing is known of the end"
    code = "" if evidence.exit_code is None else f" (exit code {evidence.exit_code})"
    signal = "" if evidence.signal is None else f" (signal {evidence.signal})"
    return f"{evidence.message or evidence.kind.value.replace('_', ' ')}{code}{signal}"


def _traceback(lines: list[str]) -> list[str]:
    flat = [_plain(line) for text in lines for line in str(text).splitlines()]
    if len(flat) > TRACEBACK_LINES:
        # The first frames say where the user's cell stood, the last where it broke.
        cut = len(flat) - TRACEBACK_LINES
        flat = [*flat[:10], f"… {cut} lines left out …", *flat[10 + cut :]]
    return ["  " + line for line in flat]


def _plain(text: str) -> str:
    """Removes terminal colours, which IPython puts into tracebacks."""
    kept, rest = "", text
    while "\x1b[" in rest:
        before, _, rest = rest.partition("\x1b[")
        kept += before
        rest = rest.lstrip("0123456789;")[1:]
    return kept + rest


def handle_text(layout: RunLayout, seen: Observation, url: str) -> str:
    """Returns everything about a run as text for a terminal."""
    facts = gather(layout, seen)
    record = read_record(layout)
    lines = [
        f"{layout.id}  ({record.name})",
        f"state        {facts.state_words}" + (f": {facts.explanation}" if facts.explanation else ""),
        f"progress     {facts.progress_words}" + (f", {facts.left_words}" if facts.left_words else ""),
        f"return       {'none yet' if facts.return_mean is None else number(facts.return_mean)}",
        f"attempt      {facts.attempt}",
        f"folder       {layout.root}",
        f"store        {url}"
        + (f" ({size(facts.upload_pending)} to upload)" if facts.upload_pending else ""),
        f"promoted     {record.created[:19].replace('T', ' ')} UTC by {record.owner.get('user', '?')} "
        f"on {record.owner.get('host', '?')}",
    ]
    if record.parent is not None:
        at = "" if record.parent.step is None else f" at step {record.parent.step:,}"
        lines.append(f"parent       {record.parent.run}{at} ({record.parent.kind})")
    training = read_json(layout.training_json)
    if training is not None:
        exact = training.get("exact_resume")
        lines.append(f"weights      sha256 {str(training.get('weights_sha256'))[:16]}…")
        lines.append(f"exact        {'yes' if exact is True else exact}")
    found = known_checkpoints(layout)
    if found:
        shown = ", ".join(f"{item.step:,}" for item in found[-CHECKPOINTS_SHOWN:])
        more = "" if len(found) <= CHECKPOINTS_SHOWN else f"{len(found)}, newest: "
        lines.append(f"checkpoints  {more}{shown}")
    events = read_events(layout)[-EVENTS_SHOWN:]
    lines += [f"  {event.time[11:19]} {event.kind}: {event.message}" for event in events]
    if seen.state in (State.FAILED, State.LOST):
        lines += ["", failure_text(layout, seen)]
    return "\n".join(lines)
