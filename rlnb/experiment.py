"""`rlnb.Experiment`: what a user writes in a notebook cell; live objects outside, plain data inside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rlnb.design.design import Design
from rlnb.design.names import component_names
from rlnb.envs.compatibility import check_spaces
from rlnb.envs.make import EnvFactory, resolve_env
from rlnb.envs.signals import Signal, check_signals
from rlnb.errors import ExperimentError, UsageError
from rlnb.experiment_design import bound_design, design_of
from rlnb.experiment_live import read_callbacks
from rlnb.run.experiment import ExperimentSpec
from rlnb.run.experiment_yaml import read_experiment
from rlnb.run.identity import current

if TYPE_CHECKING:
    from rlnb.check import CheckReport


class Lab(Protocol):
    """What an Experiment asks of a lab: the workbench where a design is shaped.

    A lab may have `files() -> list[Path]`: absolute paths of what it needs in a job, besides its notebook.
    """

    env: Any

    def flush(self) -> None:
        """Writes what widgets have changed to the design file."""

    def design(self) -> Design:
        """Returns the design as it stands now."""


class Experiment:
    """One experiment: an environment, a design, an algorithm and everything it is trained with.

    Args:
        name: short name for people.
        lab: the lab whose environment and design are used, as they stand when the experiment is promoted.
        env: gymnasium id, class or function (also from a cell), instead of a lab.
        env_kwargs: keyword arguments of the environment, plain data.
        names: names of the observation's components, where the environment's are not known.
        reward: what the agent is paid: a `RewardSpec`, or a list of terms.
        state: what the agent sees: a `StateSpec`, or a list of operations.
        design: both, as a `Design`, or the path of a design file. A file that exists beats `reward` and `state`;
            one that does not exist yet needs them.
        algo: PPO, A2C, DQN, SAC, TD3, DDPG, or TQC, QR-DQN, TRPO of sb3-contrib.
        policy: "MlpPolicy", "CnnPolicy", "MultiInputPolicy" or a policy class.
        total_timesteps: environment steps to train for.
        n_envs: number of parallel environments.
        workers: "dummy" (in one process) or "subprocess" (one each).
        start_method: how subprocess workers start; by default "forkserver".
        normalize: True or VecNormalize's keyword arguments.
        seed: of everything.
        device: torch device.
        torch_threads: torch's intra-op threads. One is fastest for small networks, and the same everywhere.
        deterministic: whether torch uses deterministic algorithms only.
        checkpoint: a mapping with every_steps, every_minutes, keep_last, keep_best, keep_every.
        stop_when: e.g. "return_mean > 240 for 20 episodes".
        max_hours: hours of training after which it ends.
        tags: words to find the run by.
        init_from: "RUN" or "RUN@step" to start from.
        signals: functions of the environment, by name, for reward terms to use.
        callbacks: SB3 callbacks.
        **hyperparameters: the algorithm's arguments under SB3's names.

    Raises:
        UsageError: (its kinds) in one sentence, when a value is unknown, mistyped or does not fit.
    """

    def __init__(
        self,
        name: str,
        lab: Lab | None = None,
        *,
        env: Any = None,
        env_kwargs: Mapping[str, Any] | None = None,
        names: Sequence[str] | None = None,
        reward: Any = None,
        state: Any = None,
        design: Design | Mapping[str, Any] | str | Path | None = None,
        algo: Any = "PPO",
        policy: Any = "MlpPolicy",
        total_timesteps: int | None = None,
        n_envs: int = 1,
        workers: str = "dummy",
        start_method: str | None = None,
        normalize: bool | Mapping[str, Any] | None = None,
        seed: int = 0,
        device: str = "auto",
        torch_threads: int = 1,
        deterministic: bool = True,
        checkpoint: Mapping[str, Any] | None = None,
        stop_when: str | None = None,
        max_hours: float | None = None,
        tags: Iterable[str] = (),
        init_from: Any = None,
        signals: Mapping[str, Signal] | None = None,
        callbacks: Sequence[Any] = (),
        **hyperparameters: Any,
    ) -> None:
        if lab is not None and not all(hasattr(lab, need) for need in ("env", "flush", "design")):
            raise ExperimentError(f"the second argument is {lab!r:.80}, which is no lab; give env=… instead")
        if lab is not None and not (env is None and reward is None and state is None and design is None):
            raise ExperimentError(
                "the lab already brings env and design; leave out env, reward, state and design"
            )
        if lab is None and env is None:
            raise ExperimentError('the experiment lacks env; add e.g. env="CartPole-v1", or give a lab')
        self.callbacks = read_callbacks(callbacks)
        self.signals = check_signals(signals or getattr(lab, "signals", None) or {})
        self._lab = lab
        self._factory = resolve_env(env if lab is None else lab.env, env_kwargs)
        self._names = names if names is not None else getattr(lab, "names", None)
        self._reward, self._state, self._design = reward, state, design
        self._given = {
            "name": name, "algo": algo, "policy": policy, "total_timesteps": total_timesteps, "n_envs": n_envs,
            "workers": workers, "start_method": start_method, "normalize": normalize, "seed": seed, "device": device,
            "torch_threads": torch_threads, "deterministic": deterministic, "checkpoint": checkpoint,
            "stop_when": stop_when, "max_hours": max_hours, "tags": tags, "init_from": init_from,
            "signals": tuple(self.signals), "hyperparameters": hyperparameters,
        }  # fmt: skip
        self._changes: dict[str, Any] = {}
        _ = self.spec  # a wrong value is shown in the cell that wrote it, not when it is promoted

    @property
    def name(self) -> str:
        """The experiment's name."""
        return str(self._given["name"])

    @property
    def spec(self) -> ExperimentSpec:
        """The experiment as data, as it stands now: the lab is flushed and the design file read anew."""
        spaces = self._factory.spaces()
        found = component_names(spaces.observation, spaces.id, self._names)
        spec = ExperimentSpec.resolve(
            **self._given,
            env=self._factory.reference,
            names=found or None,
            design=self._current_design().to_dict(),
        )
        if self._changes:
            spec = spec.with_changes(**self._changes)
        spec.algorithm.require()
        check_spaces(spec, spaces, Design.from_dict(spec.design))
        return spec

    @property
    def design(self) -> Design:
        """The design as it is trained, with its Python terms bound to the functions of the notebook."""
        current = self._current_design()
        if any(change.partition(".")[0] == "design" for change in self._changes):
            return bound_design(Design.from_dict(self.spec.design), current)
        return current

    @property
    def make_env(self) -> EnvFactory:
        """Makes one environment per call, without signals."""
        if not any(change.partition(".")[0] == "env" for change in self._changes):
            return self._factory
        before = self._factory.reference.kwargs
        changed = {
            key: value
            for key, value in self.spec.env.kwargs.items()
            if key not in before or before[key] != value
        }
        kwargs = {key: value for key, value in self._factory.kwargs.items() if key in self.spec.env.kwargs}
        return self._factory.with_kwargs({**kwargs, **changed})

    def lab_files(self) -> list[Path]:
        """Returns what the lab needs in a job: its design file and its recordings; [] without a lab."""
        files = getattr(self._lab, "files", None)
        return [] if files is None else [Path(path) for path in files()]

    def with_changes(self, **changes: Any) -> Experiment:
        """Returns the same experiment with some values changed, as a fork or grid member trains it.

        Args:
            **changes: fields, hyperparameters or dotted paths, as in `ExperimentSpec.with_changes`.
        """
        other = object.__new__(Experiment)
        other.__dict__.update(self.__dict__)
        other._changes = {**self._changes, **changes}
        spec, factory = other.spec, other.make_env
        if factory is not self._factory:
            check_spaces(spec, factory.spaces(), Design.from_dict(spec.design))
        return other

    def check(
        self, store: str | Path | None = None, *, notebook: str | Path | None = None, skip: Iterable[str] = ()
    ) -> CheckReport:
        """Rehearses the experiment in a throwaway folder and reports what a job would meet.

        Args:
            store: where the run would be stored; a real write, read and delete is tried there.
            notebook: path of the notebook, when it cannot be found from the kernel.
            skip: parts to leave out: "notebook", "store", "rehearsal".
        """
        from rlnb.check import check

        return check(self, store=store, notebook=notebook, skip=skip)

    @classmethod
    def from_yaml(
        cls,
        source: str | Path,
        *,
        env: Any = None,
        terms: Iterable[Callable[..., Any]] = (),
        signals: Mapping[str, Signal] | None = None,
        callbacks: Sequence[Any] = (),
        environ: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> Experiment:
        """Reads a file with sections (see `rlnb.run.experiment_yaml`), overridden by environment variables.

        Args:
            source: path of the file, or its text.
            env: the environment, where it is defined in the notebook and not named in the file.
            terms: reward functions that the design names.
            signals: functions of the environment, by name.
            callbacks: SB3 callbacks.
            environ: where `RLNB_<SECTION>__<KEY>` is looked up; by default this process's environment.
            **changes: as in `with_changes`.
        """
        given = read_experiment(source, environ=environ)
        declared = given.pop("signals", None)
        reference = given.pop("env", None) or {}
        if env is None and "value" not in reference:
            raise ExperimentError(
                "the file names no environment and none is given; add 'env: CartPole-v1' to it"
            )
        if declared is not None and set(declared) != set(signals or {}):
            raise UsageError(
                f"the file declares the signals {sorted(declared)}, and signals={sorted(signals or {})} are given; "
                "give a function for each"
            )
        hyperparameters = given.pop("hyperparameters")
        given["design"] = design_of(given.pop("design"), None, None, functions=terms)
        made = cls(
            given.pop("name", Path(source).stem if isinstance(source, Path) else "experiment"),
            env=reference if env is None else env,
            env_kwargs=None if env is None else reference.get("kwargs"),
            signals=signals,
            callbacks=callbacks,
            **given,
            **hyperparameters,
        )
        return made.with_changes(**changes) if changes else made

    def _current_design(self) -> Design:
        if self._lab is not None:
            if current() is None:  # in a job the design file is what was promoted, and nobody writes it
                self._lab.flush()
            return design_of(self._lab.design())
        return design_of(self._design, self._reward, self._state)

    def __repr__(self) -> str:
        given = self._given
        algo = getattr(given["algo"], "__name__", given["algo"])
        steps = given["total_timesteps"]
        amount = f"{steps:,.0f}" if isinstance(steps, (int, float)) else steps
        changed = "".join(f", {key}={value!r}" for key, value in self._changes.items())
        return (
            f"Experiment({self.name!r}: {algo} on {self._factory.label}, {amount} steps, "
            f"{given['n_envs']} env{'' if given['n_envs'] == 1 else 's'}, seed {given['seed']}{changed})"
        )
