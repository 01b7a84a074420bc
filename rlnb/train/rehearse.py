"""A rehearsal of a training: what would go wrong in the job, in seconds and in a throwaway folder."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stable_baselines3.common.env_checker import check_env

from rlnb.design.design import Design
from rlnb.envs.signals import Signal
from rlnb.errors import RlnbError
from rlnb.run.arguments import Kind
from rlnb.run.checkpoints import Checkpoint
from rlnb.run.experiment import ExperimentSpec
from rlnb.run.findings import Finding, Level
from rlnb.run.layout import RunLayout
from rlnb.train.determinism import conditions, determined
from rlnb.train.envstate import StateKind
from rlnb.train.hashing import weights_sha256
from rlnb.train.probe import ProbeResult, probe_env
from rlnb.train.recorder import resident_mb
from rlnb.train.sb3 import SB3Trainer
from rlnb.train.snapshot import read_snapshot
from rlnb.train.stateful import global_rngs, restore_global_rngs
from rlnb.train.unrehearsed import check_device, check_memory_of, check_workers, describe_error
from rlnb.train.vecenv import MakeEnv, MonitoredFactory
from rlnb.train.writer import CheckpointWriter

LONGEST = 12.0
"""Seconds after which a rehearsal leaves at its next safe point; slow environments get fewer rollouts."""


@dataclass
class _Measured:
    steps: int = 0
    seconds: float = 0.0
    rollouts: int = 0


def rehearse(
    spec: ExperimentSpec,
    *,
    make_env: MakeEnv,
    design: Design,
    folder: Path,
    signals: Mapping[str, Signal] | None = None,
    callbacks: Sequence[Any] = (),
) -> list[Finding]:
    """Checks the environment, trains two rollouts, writes a checkpoint, and restores it into a second trainer.

    The process's generators, threads and torch settings are left as they were.

    Args:
        spec: the experiment.
        make_env: makes one environment.
        design: reward and state, Python terms bound.
        folder: an empty folder that the caller removes.
        signals: functions of the environment, by name, which reward terms may need.
        callbacks: are looked at and not called, because theirs may reach beyond the rehearsal.

    Returns:
        One sentence per finding, with a remedy; time, memory and disk as findings of level info.
    """
    rngs = global_rngs()
    before = resident_mb()
    short = _shortened(spec)
    findings = [
        *check_device(spec), *check_workers(spec, make_env, signals), *check_memory_of(callbacks, design),
    ]  # fmt: skip
    try:
        with determined(spec):
            findings += _check_env(make_env, spec)
            probe = probe_env(MonitoredFactory(make_env, signals))
            findings += _judge_probe(probe)
            trainer = SB3Trainer(short, make_env=make_env, design=design, signals=signals, probe=probe)
            try:
                measured = _rollouts(trainer)
                layout = RunLayout(folder)
                checkpoint = _write(trainer, layout)
                again = SB3Trainer(short, make_env=make_env, design=design, signals=signals, probe=probe)
                findings += _restore(again, checkpoint)
                findings += _estimates(
                    spec, trainer, measured, checkpoint, memory=resident_mb() - before, folder=folder
                )
            finally:
                trainer.close()
    except RlnbError as error:
        findings = _failed(findings, str(error))
    except Exception as error:  # foreign code: an environment, a policy, a term of the user
        said = (
            f"A short training failed with {describe_error(error)}; run exp.check() again once that is fixed."
        )
        findings = _failed(findings, said)
    finally:
        restore_global_rngs(rngs)
    return findings


def _failed(findings: list[Finding], message: str) -> list[Finding]:
    """The findings of a rehearsal that broke off; the probe has met the same fault and would only repeat it."""
    kept = [one for one in findings if one.code != "env_state"]
    return [*kept, Finding(Level.ERROR, "training", message)]


def _shortened(spec: ExperimentSpec) -> ExperimentSpec:
    """The same experiment with two short rollouts and a small replay buffer."""
    changes: dict[str, Any] = {"init_from": None, "workers": "dummy", "start_method": None, "stop_when": None}
    values = spec.hyperparameters
    if spec.algorithm.off_policy:
        batch = int(values["batch_size"])
        changes |= {"buffer_size": max(4 * spec.n_envs, 4 * batch), "learning_starts": 4}
        frequency, updates = values["train_freq"], int(values["gradient_steps"])
        if not isinstance(frequency, list) and frequency > 16:
            # Fewer steps between updates, and as many fewer updates, so that the time measured is the job's.
            changes |= {
                "train_freq": 16,
                "gradient_steps": max(1, updates * 16 // frequency) if updates > 0 else updates,
            }
        changes["total_timesteps"] = 60 * spec.n_envs
    else:
        steps = min(int(values["n_steps"]), 64)
        changes["n_steps"] = steps
        changes["total_timesteps"] = 2 * steps * spec.n_envs
        if "batch_size" in values and spec.algorithm.by_name["batch_size"].kind is Kind.INT:
            changes["batch_size"] = min(int(values["batch_size"]), steps * spec.n_envs)
    return spec.with_changes(**changes)


def _check_env(make_env: MakeEnv, spec: ExperimentSpec) -> list[Finding]:
    env = make_env()
    found: list[Finding] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check_env(env, warn=True, skip_render_check=True)
        for one in caught:
            if issubclass(one.category, UserWarning) and not issubclass(one.category, DeprecationWarning):
                text = " ".join(str(one.message).split())
                if spec.normalize is None or "normalize" not in text:
                    found.append(
                        Finding(Level.WARNING, "env_checker", f"SB3's environment checker says: {text}")
                    )
    except AssertionError as error:
        text = " ".join(str(error).split())
        found.append(
            Finding(Level.ERROR, "env_checker", f"SB3's environment checker refuses the environment: {text}")
        )
    finally:
        env.close()
    return found


def _judge_probe(probe: ProbeResult) -> list[Finding]:
    found = []
    if probe.outside:
        found.append(Finding(
            Level.WARNING, "env_state",
            f"The environment changes {', '.join(probe.outside)}, which lies outside its own attributes and is not "
            "captured, so a resumed run says 'not exact'; keep it in self.",
        ))  # fmt: skip
    if probe.kind is StateKind.NONE:
        return [*found, Finding(
            Level.WARNING, "env_state",
            f"The environment's state cannot be captured exactly ({probe.reason}), so a resumed run begins new episodes "
            "and says 'not exact'; keep its state in attributes that can be pickled, and draw from self.np_random only.",
        )]  # fmt: skip
    return [
        *found,
        Finding(
            Level.INFO,
            "env_state",
            f"The environment's state is captured by {probe.kind.value}, tried and exact.",
        ),
    ]


def _rollouts(trainer: SB3Trainer) -> _Measured:
    trainer.setup()
    measured, started = _Measured(), time.monotonic()

    def at_safe_point() -> bool:
        measured.rollouts += 1
        return time.monotonic() - started < LONGEST

    trainer.step_until_safe(at_safe_point, _ignore, _ignore)
    measured.steps, measured.seconds = trainer.step, time.monotonic() - started
    return measured


def _ignore(*_: Any) -> None:
    """A rehearsal's episodes and values are not recorded."""


def _write(trainer: SB3Trainer, layout: RunLayout) -> Checkpoint:
    written: list[Checkpoint] = []
    writer = CheckpointWriter(
        layout, 1, trainer.spec.checkpoint, replay=trainer.replay, written=written.append
    )
    assert trainer.probe is not None
    meta = {"exact": True, "versions": conditions(trainer.spec), "return_mean": None}
    writer.start(trainer.snapshot({"env_state": trainer.probe.kind.value}), meta)
    writer.wait()
    if writer.disk_full:
        raise RlnbError(f"There is no space for a checkpoint in {layout.root}; make room or set TMPDIR.")
    return written[0]


def _restore(again: SB3Trainer, checkpoint: Checkpoint) -> list[Finding]:
    try:
        again.setup()
        again.restore_ended(read_snapshot(checkpoint))
        same = weights_sha256(again.model.policy.state_dict()) == checkpoint.weights_sha256
    finally:
        again.close()
    if same:
        return []
    return [
        Finding(
            Level.ERROR,
            "checkpoint",
            "A checkpoint came back with other weights than were written; report it.",
        )
    ]


def _estimates(
    spec: ExperimentSpec,
    trainer: SB3Trainer,
    measured: _Measured,
    checkpoint: Checkpoint,
    *,
    memory: float,
    folder: Path,
) -> list[Finding]:
    found = []
    speed = measured.steps / max(measured.seconds, 1e-9)
    hours = spec.total_timesteps / max(speed, 1e-9) / 3600
    found.append(Finding(
        Level.INFO, "time",
        f"{spec.total_timesteps:,} steps at about {speed:,.0f} steps/s take about {_duration(hours)}, "
        "judged from short rollouts.",
    ))  # fmt: skip
    replay = _replay_bytes(spec, trainer)
    found.append(Finding(
        Level.INFO, "memory",
        f"The model took {max(memory, 0):,.0f} MB here" + (f"; the replay buffer will take {replay / 1e6:,.0f} MB." if replay else "."),
    ))  # fmt: skip
    import psutil

    free_memory = psutil.virtual_memory().available
    if replay > 0.8 * free_memory:
        found.append(Finding(
            Level.ERROR, "memory",
            f"The replay buffer needs {replay / 1e9:.1f} GB and {free_memory / 1e9:.1f} GB are free; lower buffer_size.",
        ))  # fmt: skip
    own = sum(
        int(one["bytes"])
        for one in checkpoint.files
        if "/" in one["name"] and not one["name"].startswith("chunks/")
    )
    kept = (spec.checkpoint.keep_last + spec.checkpoint.keep_best) * own + replay
    found.append(Finding(Level.INFO, "disk", f"Checkpoints will take about {kept / 1e6:,.1f} MB."))
    free_disk = shutil.disk_usage(folder).free
    if kept > 0.8 * free_disk:
        found.append(Finding(
            Level.ERROR, "disk",
            f"Checkpoints need about {kept / 1e9:.1f} GB and {free_disk / 1e9:.1f} GB are free; lower buffer_size or "
            "checkpoint.keep_last.",
        ))  # fmt: skip
    return found


def _replay_bytes(spec: ExperimentSpec, trainer: SB3Trainer) -> int:
    if not spec.algorithm.off_policy:
        return 0
    buffer: Any = getattr(trainer.model, "replay_buffer", None)
    from rlnb.train.replay import ring_columns

    row = sum(array.nbytes for array in ring_columns(buffer).values()) / max(int(buffer.buffer_size), 1)
    return int(row * max(int(spec.hyperparameters["buffer_size"]) // spec.n_envs, 1))


def _duration(hours: float) -> str:
    if hours < 1 / 60:
        return f"{hours * 3600:.0f} s"
    return f"{hours * 60:.0f} min" if hours < 2 else f"{hours:.1f} h"
