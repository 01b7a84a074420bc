"""Policies of earlier runs, to record episodes with: found in the local index, loaded from checkpoints.

    store.add(record_rollouts(env, load_policy("exp-2026-11-30-lander-1a2b@best")).batch)

Nothing of a run is unpickled or executed, and torch is imported only when a policy is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlnb.envs.make import resolve_env
from rlnb.errors import EnvError, ExperimentError, RlnbError, UsageError
from rlnb.run.checkpoints import Checkpoint, best, checkpoints
from rlnb.run.env_reference import EnvReference
from rlnb.run.experiment import ExperimentSpec
from rlnb.run.index import Index
from rlnb.run.layout import RunLayout
from rlnb.run.plans import InitFrom
from rlnb.run.record import read_record

if TYPE_CHECKING:
    from rlnb.train.acting import TrainedActor


@dataclass(frozen=True)
class TrainedPolicy:
    """A checkpoint that can act.

    Attributes:
        run_id: its run.
        name: the run's experiment.
        which: "best" or "latest".
        step: environment steps it was trained for.
        return_mean: mean return of the last training episodes before it, or None.
        created: when the run was promoted, ISO 8601, UTC.
    """

    run_id: str
    name: str
    which: str
    step: int
    return_mean: float | None
    created: str

    @property
    def label(self) -> str:
        """The policy's name in recordings, and what `load_policy` takes: "<run id>@<which>"."""
        return f"{self.run_id}@{self.which}"


def trained_policies(env: object) -> list[TrainedPolicy]:
    """Lists the policies of this machine's runs that were trained in an environment, newest run first.

    The latest checkpoint of a run is listed beside the best where they differ.

    Args:
        env: a reference (`EnvFactory.reference`), its plain data, or what `resolve_env` takes.

    Raises:
        EnvError: there is no such environment.
    """
    wanted = _reference(env)
    found: list[TrainedPolicy] = []
    for row in Index().rows(env=wanted.value):
        layout = RunLayout(row.folder)
        try:
            told = (read_record(layout).experiment or {}).get("env")
            if not row.folder or not EnvReference.parse(told).matches(wanted):
                continue
        except (RlnbError, OSError):
            continue  # its folder was removed, or a newer rlnb wrote it
        for which, checkpoint in _listed(layout).items():
            found.append(
                TrainedPolicy(row.id, row.name, which, checkpoint.step, checkpoint.return_mean, row.created)
            )
    return found


def load_policy(name: str, *, env: object = None) -> TrainedActor:
    """Returns a run's policy: it acts on raw observations exactly as it did in its run.

    It applies the run's state design, with the statistics that it had when the checkpoint was written, and its
    VecNormalize, frozen. `record_rollouts` and `rlnb.record` take it as a policy, and its label is
    "<run id>@<which>".

    Args:
        name: "RUN", "RUN@best", "RUN@latest", "RUN@final" or "RUN@20000"; RUN as in `rlnb.job`. Without "@" the
            best is meant.
        env: the environment it is to act in, as in `trained_policies`, or a factory; by default the run's own.

    Raises:
        UsageError: the name cannot be read.
        RunNotFound: there is no such run.
        EnvError: the run was trained in another environment.
        CheckpointError: there is no such checkpoint, or it is damaged.
        ExperimentError: the policy is made of classes that exist only in the notebook of the run.
    """
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"policy={name!r:.80} names no run; write 'RUN@best', 'RUN@latest' or 'RUN@20000'")
    try:
        source = InitFrom.parse(name.strip() if "@" in name else f"{name.strip()}@best")
    except ExperimentError:
        raise UsageError(
            f"policy={name!r:.80} cannot be read; write 'RUN@best', 'RUN@latest' or 'RUN@20000'"
        ) from None
    assert source is not None
    from rlnb.listing import job

    run = job(source.run)
    run.fetch_all()
    record = read_record(run.layout)
    if record.experiment is None:
        raise ExperimentError(f"{run.id} has not resolved its experiment yet; wait until it trains")
    spec = ExperimentSpec.from_dict(record.experiment)
    if env is not None and not spec.env.matches(_reference(env)):
        raise EnvError(
            f"{run.id} was trained in {spec.env}, not in {_reference(env)}; choose a run of this environment"
        )
    factory = resolve_env(spec.env if env is None else env)
    from rlnb.train.acting import TrainedActor

    return TrainedActor(
        run.layout,
        source.step,
        spec=spec,
        space=factory.spaces().observation,
        label=f"{run.id}@{source.step}",
    )


def _listed(layout: RunLayout) -> dict[str, Checkpoint]:
    """A run's best and latest checkpoint, by name."""
    found = sorted(checkpoints(layout), key=lambda one: (one.attempt, one.step))
    if not found:
        return {}
    chosen = {"best": best(found) or found[-1], "latest": found[-1]}
    return chosen if chosen["best"] != chosen["latest"] else {"best": chosen["best"]}


def _reference(env: object) -> EnvReference:
    if isinstance(env, EnvReference | Mapping):
        return EnvReference.parse(env)
    return resolve_env(env).reference
