"""Making a run go on: a word to its living supervisor, or a new attempt on this machine.

One writer is the rule (DESIGN.md): a new attempt claims `attempts/<n>` by exclusive create, here and, where
the store honours it, in the store, so that an older attempt that still lives somewhere is fenced off. Where
the store does not honour it, only the machine that owns the run resumes it, or a person who knows that the
other one is gone says `takeover=True`.
"""

from __future__ import annotations

import time

from rlnb import settings
from rlnb.errors import UsageError
from rlnb.run.claims import attempt_owner, latest_attempt
from rlnb.run.control import Verb
from rlnb.run.host import ProcessIdentity, hostname
from rlnb.run.layout import RunLayout
from rlnb.run.progress import Flag, FlagReader
from rlnb.run.record import RunRecord, read_record
from rlnb.run.status import Observation, State
from rlnb.source import RunSource
from rlnb.trust import require_trust

SILENCE_INTERVALS = 4  # heartbeats; the observer calls a run silent after three


def resume(
    source: RunSource, *, takeover: bool = False, trust: bool = False, timeout: float | None = None
) -> tuple[RunLayout, str]:
    """Makes a run go on.

    Args:
        source: the run.
        takeover: resume here although another machine owns the run and the store cannot fence it off.
        trust: execute a bundle that is not in this machine's index.
        timeout: seconds to wait for a living supervisor's acknowledgement.

    Returns:
        The folder to follow from now on, and one sentence that says what was done.

    Raises:
        UsageError: there is nothing to resume, or resuming here could make two writers.
        RunError: the supervisor refused or did not answer.
        StoreError: the store cannot be reached.
    """
    source.refresh(max_age=0)
    seen = _look_long_enough(source)
    run_id, state = source.layout.id, seen.state
    if (state is State.PAUSED or _is_about_to_pause(source, seen)) and not seen.silent and not takeover:
        return source.layout, source.ask(Verb.RESUME, timeout=timeout).message
    if state is State.COMPLETED:
        raise UsageError(
            f"{run_id} has completed, so there is nothing to resume; fork() starts a new run from one of its "
            "checkpoints, for example with a larger total_timesteps."
        )
    if state.living and not seen.silent and not takeover and _has_supervisor(source, seen):
        raise UsageError(f"{run_id} is {state.value}, so there is nothing to resume.")
    record = read_record(source.layout)
    layout = _working_copy(source, record, seen, takeover=takeover, trust=trust)
    from rlnb.jobs.executors.local import LocalExecutor

    # What could make two writers was decided above; the executor is told so.
    attempt = LocalExecutor().submit(layout, takeover=takeover or source.remote or seen.silent)
    return layout, f"Attempt {attempt} has started."


def _look_long_enough(source: RunSource) -> Observation:
    """Observes until a foreign heartbeat has moved or has stood still for long enough to be silent."""
    seen = source.observe()
    if seen.status is None or not seen.state.living or seen.status.supervisor.here:
        return seen
    beat = (seen.status.attempt, seen.status.heartbeat)
    deadline = time.monotonic() + SILENCE_INTERVALS * max(settings.heartbeat(), 1.0)
    while time.monotonic() < deadline:
        source.refresh(max_age=0.5)
        seen = source.observe()
        if seen.silent or seen.status is None or (seen.status.attempt, seen.status.heartbeat) != beat:
            return seen
        time.sleep(0.2)
    return seen


def _is_about_to_pause(source: RunSource, seen: Observation) -> bool:
    """Whether a pause was asked that training has not come to, so that resuming takes it back."""
    return seen.state in (State.STARTING, State.RUNNING) and FlagReader(source.layout).read() is Flag.PAUSE


def _has_supervisor(source: RunSource, seen: Observation) -> bool:
    if seen.status is not None:
        return True
    # No supervisor has spoken yet: it is about to, or submit was cut short and the run would be "queued"
    # for ever, so that a new attempt is what the user wants.
    owner = attempt_owner(source.layout, latest_attempt(source.layout))
    return owner is not None and ProcessIdentity.from_dict(owner).alive


def _working_copy(
    source: RunSource, record: RunRecord, seen: Observation, *, takeover: bool, trust: bool
) -> RunLayout:
    if not source.remote:
        require_trust(source.layout, trust=trust)
        return source.layout
    owner = _owner(source.layout, seen)
    if owner != hostname() and not record.store.get("exclusive") and not takeover:
        raise UsageError(
            f"{source.layout.id} belongs to {owner or 'another machine'}, and its store does not honour exclusive "
            "create, so two machines could run it at once; if that one is really gone, resume(takeover=True)."
        )
    source.refresh(what="all", max_age=0)
    require_trust(source.layout, trust=trust, restored=True)
    from rlnb.run.pull import pull

    layout = RunLayout(settings.runs_dir() / source.layout.id)
    if layout.root.exists():
        _put_aside(layout)
    pull(source.url, layout.root, what="all")
    require_trust(
        layout, trust=trust, restored=True
    )  # what is executed is what was looked at, or trust was given
    return layout


def _put_aside(layout: RunLayout) -> None:
    """Moves a working copy away that a newer attempt elsewhere has overtaken; nothing of it is deleted."""
    from rlnb.jobs.survivors import end_survivors

    end_survivors(layout)
    place = settings.home() / "superseded" / f"{layout.id}-{time.time_ns()}"
    place.parent.mkdir(parents=True, exist_ok=True)
    layout.root.rename(place)


def _owner(layout: RunLayout, seen: Observation) -> str:
    if seen.status is not None:
        return seen.status.supervisor.host
    claimed = attempt_owner(layout, latest_attempt(layout)) or {}
    return str(claimed.get("host", ""))
