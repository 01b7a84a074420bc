"""What a run trains, as data: every value resolved, none hidden in a default of a library.

`ExperimentSpec` is torch-free and serialisable; run.yaml holds it. The user-facing `rlnb.Experiment`
makes one from live objects; the trainer makes SB3's arguments from one (`live_hyperparameters`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from rlnb.errors import ExperimentError, did_you_mean
from rlnb.run.algorithms import Algorithm, algorithm
from rlnb.run.arguments import Kind
from rlnb.run.env_reference import EnvReference
from rlnb.run.fields import Workers, resolve_fields
from rlnb.run.noise import make_noise
from rlnb.run.plans import CheckpointPlan, InitFrom
from rlnb.run.references import References
from rlnb.run.schedule import parse_schedule
from rlnb.run.stop import StopRule

LABELS: Final = frozenset({"name", "tags"})
"""Fields that name a run but do not change what it trains; no part of the fingerprint."""


@dataclass(frozen=True)
class ExperimentSpec:
    """One experiment, resolved; build it with `resolve`, `from_dict` or `from_yaml`.

    Attributes:
        name: short name for people.
        env: which environment, with its keyword arguments.
        names: names of the observation's components in order, or None where it has none (images, dicts).
        design: reward and state specs, as `Design.to_dict` writes them.
        algo: canonical algorithm name, e.g. "PPO".
        policy: "MlpPolicy", "CnnPolicy", "MultiInputPolicy" or a reference to a class.
        hyperparameters: every argument of the algorithm, plain; includes a fully resolved `policy_kwargs`.
        total_timesteps: environment steps to train for, over all environments.
        n_envs: number of parallel environments.
        workers: where they run.
        start_method: how subprocess workers start, or None.
        normalize: VecNormalize's keyword arguments, or None.
        seed: seed of everything, >= 0.
        device: torch device; "auto" takes a GPU where there is one.
        torch_threads: intra-op threads, >= 1.
        deterministic: whether torch's deterministic algorithms are switched on.
        checkpoint: when checkpoints are written and kept.
        stop_when: the stop rule's text, or None.
        max_hours: hours of training after which it ends, or None.
        tags: words to find the run by.
        init_from: the run it starts from, or None.
        signals: names of the recorded signals.
        objects: live classes and functions by argument path; never written.
    """

    name: str
    env: EnvReference
    names: tuple[str, ...] | None
    design: Mapping[str, Any]
    algo: str
    policy: Any
    hyperparameters: Mapping[str, Any]
    total_timesteps: int
    n_envs: int
    workers: Workers
    start_method: str | None
    normalize: Mapping[str, Any] | None
    seed: int
    device: str
    torch_threads: int
    deterministic: bool
    checkpoint: CheckpointPlan
    stop_when: str | None
    max_hours: float | None
    tags: tuple[str, ...]
    init_from: InitFrom | None
    signals: tuple[str, ...]
    objects: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def resolve(cls, *, objects: Mapping[str, object] | None = None, **given: Any) -> ExperimentSpec:
        """Checks what is given, fills in every default and returns the spec.

        Args:
            objects: live objects known already, by argument path.
            **given: fields of this class; hyperparameters as `hyperparameters={…}`. Needed are `env` and
                `total_timesteps`.

        Raises:
            ExperimentError: naming the field, the value and what it takes; a misspelt name names the nearest.
            DesignError: if the design cannot be read.
        """
        references = References(objects)
        return cls(**resolve_fields(given, references, known=cls.field_names()), objects=references.objects)

    @classmethod
    def field_names(cls) -> list[str]:
        """Names of the fields that are written, in order."""
        return [one.name for one in fields(cls) if one.name != "objects"]

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], *, objects: Mapping[str, object] | None = None
    ) -> ExperimentSpec:
        """Reads what `to_dict` wrote; a field that an older version did not write gets its default."""
        return cls.resolve(objects=objects, **{str(key): value for key, value in data.items()})

    @classmethod
    def from_yaml(
        cls, source: str | Path, *, environ: Mapping[str, str] | None = None, **changes: Any
    ) -> ExperimentSpec:
        """Reads a file with sections; see `rlnb.run.experiment_yaml`.

        Args:
            source: path of the file, or its text.
            environ: environment whose RLNB_<SECTION>__<KEY> variables override the file; by default this
                process's.
            **changes: as in `with_changes`.
        """
        from rlnb.run.experiment_yaml import read_experiment

        spec = cls.resolve(**read_experiment(source, environ=environ))
        return spec.with_changes(**changes) if changes else spec

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data (YAML- and JSON-ready) that `from_dict` reads back equal."""
        data: dict[str, Any] = {}
        for name in self.field_names():
            value = getattr(self, name)
            if isinstance(value, (EnvReference, CheckpointPlan, InitFrom)):
                value = value.to_dict()
            data[name] = _copied(value)
        return data

    def fingerprint(self) -> str:
        """SHA-256 over everything that decides what is trained (not `name` and `tags`)."""
        identity = {key: value for key, value in self.to_dict().items() if key not in LABELS}
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    def differences(self, other: ExperimentSpec) -> list[tuple[str, Any, Any]]:
        """Lists where two experiments train differently.

        Returns:
            `(field, mine, theirs)` with dotted field names, e.g. `("hyperparameters.gamma", 0.99, 0.98)`;
            what one of them lacks is given as the text "(absent)".
        """
        mine, theirs = (_flat(spec.to_dict()) for spec in (self, other))
        absent = "(absent)"
        return [
            (key, mine.get(key, absent), theirs.get(key, absent))
            for key in sorted(mine.keys() | theirs.keys())
            if key.partition(".")[0] not in LABELS
            and json.dumps(mine.get(key, absent)) != json.dumps(theirs.get(key, absent))
        ]

    def with_changes(self, **changes: Any) -> ExperimentSpec:
        """Returns a spec with some values changed, checked anew.

        Args:
            **changes: fields, hyperparameters, or dotted paths into either, such as
                `{"learning_rate": 1e-4, "policy_kwargs.net_arch": [32], "checkpoint.keep_last": 5}`.

        Raises:
            ExperimentError: if a name is neither, or the value does not fit.
        """
        from rlnb.run.changes import apply_changes

        data, objects = apply_changes(self, changes)
        return self.resolve(objects=objects, **data)

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm's row of the static table."""
        return algorithm(self.algo)

    @property
    def stop_rule(self) -> StopRule | None:
        """The parsed stop rule."""
        return None if self.stop_when is None else StopRule.parse(self.stop_when)

    def live_hyperparameters(self, *, actions: int = 0) -> dict[str, Any]:
        """Returns SB3's keyword arguments with schedules as functions and references as classes.

        Imports torch where classes of it are named.

        Args:
            actions: number of action components, for action noise.

        Raises:
            ExperimentError: if a class or function is not at hand here.
        """
        references = References(self.objects)
        live: dict[str, Any] = {}
        for name, value in self.hyperparameters.items():
            kind = self.algorithm.by_name[name].kind
            if kind is Kind.SCHEDULE and isinstance(value, str):
                live[name] = parse_schedule(value, where=name)
            elif kind is Kind.FREQUENCY and isinstance(value, list):
                live[name] = (value[0], value[1])
            elif kind is Kind.NOISE:
                live[name] = make_noise(value, actions=actions)
            else:
                live[name] = references.thaw(value, name)
        return live

    def live_policy(self) -> Any:
        """Returns the policy as SB3 takes it: a name or a class."""
        return References(self.objects).thaw(self.policy, "policy")

    def require_hyperparameter(self, name: str) -> Any:
        """Returns one hyperparameter's plain value, or raises naming the nearest."""
        if name not in self.hyperparameters:
            raise ExperimentError(
                f"{self.algo} has no hyperparameter {name!r}.{did_you_mean(name, self.hyperparameters)}"
            )
        return self.hyperparameters[name]


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _copied(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(inner) for inner in value]
    return value.value if isinstance(value, Workers) else value


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Flattens nested mappings, and lists of mappings, to dotted paths."""
    if isinstance(value, Mapping) and value:
        pairs = [(str(key), inner) for key, inner in value.items()]
    elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        pairs = [(_label(inner, index), inner) for index, inner in enumerate(value)]
    else:
        return {prefix: value}
    flat: dict[str, Any] = {}
    for key, inner in pairs:
        flat |= _flat(inner, f"{prefix}.{key}" if prefix else key)
    return flat


def _label(item: Any, index: int) -> str:
    name = item.get("name") if isinstance(item, Mapping) else None
    return str(name) if name is not None else str(index)
