"""`train`: what `promote()` calls inside a job. Resumes by itself; ends with a record, or is ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlnb.design.design import Design
from rlnb.envs.signals import Signal
from rlnb.errors import CheckpointError
from rlnb.run.checkpoints import Checkpoint, valid_from_newest
from rlnb.run.events import EventLog
from rlnb.run.experiment import ExperimentSpec
from rlnb.run.layout import RunLayout, read_json, write_json
from rlnb.run.progress import Phase, Progress, write_progress
from rlnb.train.determinism import conditions, determined, differences, hash_seed_reason
from rlnb.train.hashing import weights_sha256
from rlnb.train.initial import start_from
from rlnb.train.interrupts import wait_to_be_ended
from rlnb.train.replay import check_chunks
from rlnb.train.sb3 import SB3Trainer
from rlnb.train.session import EndedBy, Session
from rlnb.train.snapshot import Restorable, read_snapshot
from rlnb.train.vecenv import MakeEnv

NOT_EXACT = "not exact: "


def train(
    spec: ExperimentSpec,
    *,
    make_env: MakeEnv,
    design: Design,
    layout: RunLayout,
    attempt: int,
    callbacks: Sequence[Any] = (),
    signals: Mapping[str, Signal] | None = None,
    block: Callable[[Phase], None] = wait_to_be_ended,
) -> dict[str, Any]:
    """Trains a run from its newest valid checkpoint, or from the beginning, to its end.

    Whatever earlier cells drew or set does not matter: everything is seeded here. Returns at once when the
    run's record exists. After a suspend or stop it never returns; `block` waits for this process to be ended.

    Args:
        spec: the experiment.
        make_env: makes one environment.
        design: reward and state, Python terms bound.
        layout: the run folder.
        attempt: this attempt, >= 1.
        callbacks: the user's SB3 callbacks or functions.
        signals: functions of the environment, by name.
        block: called with the phase after a suspend or stop.

    Returns:
        The training record, which is also in training.json: weights_sha256, step, return_mean,
        return_designed_mean, episodes, ended_by, exact_resume, time, seconds, checkpoint, attempt, initial.

    Raises:
        CheckpointError: the checkpoint does not fit the experiment.
        RlnbError: the environment or a term failed.
    """
    if (record := read_json(layout.training_json)) is not None:
        return record
    write_progress(layout, Progress(Phase.SETUP, attempt, 0, spec.total_timesteps))
    with determined(spec):
        trainer = SB3Trainer(spec, make_env=make_env, design=design, callbacks=callbacks, signals=signals)
        trainer.setup()
        try:
            return _train(trainer, layout, attempt, block)
        finally:
            trainer.close()


def _train(
    trainer: SB3Trainer, layout: RunLayout, attempt: int, block: Callable[[Phase], None]
) -> dict[str, Any]:
    spec, events = trainer.spec, EventLog(layout, attempt=attempt)
    now = conditions(spec)
    checkpoint, saved = _newest(layout, events)
    reasons = trainer.inexact_reasons()
    if checkpoint is not None:
        reasons = _with_history(reasons, checkpoint, now, spec)
    exact: bool | str = True if not reasons else NOT_EXACT + "; ".join(reasons)
    session = Session(trainer, layout=layout, attempt=attempt, exact=exact, conditions=now, block=block)
    session.recorder.say("training begins", conditions=now, exact=exact, env_state=str(trainer.probe))
    try:
        with session.interrupts:
            if checkpoint is None or saved is None:
                if spec.init_from is not None:
                    events.append(
                        "init_from",
                        start_from(trainer, spec.init_from, staged=RunLayout(layout.init)),
                        step=0,
                    )
                session.ended_by = _run(session)
            else:
                events.append("resumed", f"Training goes on from step {checkpoint.step:,}.", step=checkpoint.step,
                              checkpoint=checkpoint.folder.name, exact=exact)  # fmt: skip
                session.expect(checkpoint)
                session.ended_by = _resume(session, saved, same=_is_same(checkpoint, spec))
            return _finish(session)
    except BaseException:
        # Or the time the cell takes to report the error would count as a training that makes no step.
        if not session.halted:
            session.progress(Phase.BROKEN_OFF)
        raise
    finally:
        session.recorder.close()


def _run(session: Session) -> EndedBy:
    done = session.trainer.step_until_safe(session.at_safe_point, session.at_episode, session.at_values)
    if done:
        return EndedBy.STEPS
    return session.ended_by or EndedBy.CALLBACK


def _newest(layout: RunLayout, events: EventLog) -> tuple[Checkpoint | None, Restorable | None]:
    """Returns the newest checkpoint that is whole and can be read; reports those that are passed over."""

    def report(folder: Path, why: str) -> None:
        events.append(
            "checkpoint_damaged", f"The checkpoint {folder.name} is skipped: {why}.", checkpoint=folder.name
        )

    for checkpoint in valid_from_newest(layout, report=report):
        try:
            saved = read_snapshot(checkpoint)
            if "replay" in saved.state:
                check_chunks(saved.state["replay"], saved.read_chunk)
            return checkpoint, saved
        except CheckpointError as error:
            report(checkpoint.folder, str(error).rstrip("."))
    return None, None


def _resume(session: Session, saved: Restorable, *, same: bool) -> EndedBy:
    trainer = session.trainer
    ended_by = saved.state["extra"].get("ended_by") if same else None
    steps_done = session.resumed_from is not None and session.resumed_from >= trainer.spec.total_timesteps
    if steps_done or ended_by is not None:
        # Training had ended; only its record was not written yet.
        trainer.restore_ended(saved)
        session.at_safe_point()
        return EndedBy.STEPS if ended_by is None else EndedBy(ended_by)
    trainer.restore(saved)
    return _run(session)


def _finish(session: Session) -> dict[str, Any]:
    """Writes the final checkpoint and, last, the record."""
    trainer, layout = session.trainer, session.layout
    session.last_values()
    checkpoint = session.checkpoint()
    assert session.ended_by is not None
    record = {
        "weights_sha256": weights_sha256(trainer.model.policy.state_dict()),
        "step": trainer.step,
        "return_mean": session.recorder.mean("own"),
        "return_designed_mean": session.recorder.mean("paid"),
        "episodes": session.recorder.episodes,
        "ended_by": session.ended_by.value,
        "exact_resume": session.exact,
        "time": time.time(),
        "seconds": round(session.seconds, 3),
        "checkpoint": checkpoint.folder.name,
        "attempt": session.attempt,
        "initial": trainer.initial,
        "conditions": session.conditions,
    }
    write_json(layout.training_json, record)
    session.progress(Phase.FINISHED)
    session.recorder.say("training has finished", record=record)
    session.events.append(
        "trained",
        f"Training has finished at step {trainer.step:,} ({session.ended_by.value}).",
        step=trainer.step,
    )
    return record


def _with_history(
    reasons: list[str], checkpoint: Checkpoint, now: Mapping[str, Any], spec: ExperimentSpec
) -> list[str]:
    """Adds what an earlier attempt found, and what has changed since."""
    found = []
    if isinstance(checkpoint.exact, str):
        found += checkpoint.exact.removeprefix(NOT_EXACT).split("; ")
    found += differences(checkpoint.versions, now)
    if checkpoint.attempt != 0 and not _is_same(checkpoint, spec):
        found.append("the experiment was changed during the run")
    found += hash_seed_reason()
    return list(dict.fromkeys(found + reasons))


def _is_same(checkpoint: Checkpoint, spec: ExperimentSpec) -> bool:
    """Whether a checkpoint was written by the very experiment that goes on now."""
    return checkpoint.meta.get("fingerprint") in (None, spec.fingerprint())
