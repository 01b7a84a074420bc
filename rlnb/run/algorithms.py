"""SB3's algorithms as a static table: argument names, kinds and defaults, without importing torch.

`tests/run/test_experiment_algorithms.py` holds the table against the installed signatures, so a new SB3
release that adds, drops or changes an argument fails a test instead of a run. What rlnb itself decides
(`env`, `seed`, `device`, logging) is no hyperparameter and stands in `GOVERNED` with the reason.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from rlnb.errors import ExperimentError, MissingExtra, did_you_mean
from rlnb.run.arguments import Argument, Kind

GOVERNED: Final = {
    "policy": "give it as Experiment(policy=…)",
    "env": "give it as Experiment(env=…)",
    "seed": "give it as Experiment(seed=…)",
    "device": "give it as Experiment(device=…)",
    "verbose": "rlnb writes train.log and the live plots itself",
    "tensorboard_log": "rlnb writes TensorBoard files to logs/tb of the run folder itself",
    "_init_setup_model": "a model without networks cannot be trained",
}
"""Arguments of SB3's constructors that are no hyperparameters here, with what to do instead."""


def _int(name: str, default: int | None, low: int = 1, *, optional: bool = False) -> Argument:
    return Argument(name, Kind.INT, default, low=low, optional=optional or default is None)


def _float(name: str, default: float | None, low: float | None = 0.0, high: float | None = None) -> Argument:
    return Argument(name, Kind.FLOAT, default, low=low, high=high, optional=default is None)


def _unit(name: str, default: float) -> Argument:
    return _float(name, default, 0.0, 1.0)


def _bool(name: str, default: bool) -> Argument:
    return Argument(name, Kind.BOOL, default)


def _rate(default: float) -> Argument:
    return Argument("learning_rate", Kind.SCHEDULE, default, low=0.0)


def _buffer(which: str) -> tuple[Argument, ...]:
    return (
        Argument(f"{which}_buffer_class", Kind.CLASS, None, optional=True),
        Argument(f"{which}_buffer_kwargs", Kind.MAPPING, None, optional=True),
    )


_WINDOW: Final = _int("stats_window_size", 100)
_POLICY: Final = Argument("policy_kwargs", Kind.MAPPING, None, optional=True)
_SDE: Final = (_bool("use_sde", False), _int("sde_sample_freq", -1, low=-1))
_AUTO_ENTROPY: Final = (
    Argument("ent_coef", Kind.AUTO, "auto", low=0.0),
    _int("target_update_interval", 1),
    Argument("target_entropy", Kind.AUTO, "auto"),
)


def _on_policy(
    *own: Argument, rate: float, steps: int, gae_lambda: float, advantage: bool
) -> tuple[Argument, ...]:
    return (
        _rate(rate), _int("n_steps", steps), _unit("gamma", 0.99), _unit("gae_lambda", gae_lambda),
        *own, *_SDE, *_buffer("rollout"), _bool("normalize_advantage", advantage), _WINDOW, _POLICY,
    )  # fmt: skip


def _off_policy(*own: Argument, rate: float, batch: int, tau: float, frequency: int) -> tuple[Argument, ...]:
    return (
        _rate(rate), _int("buffer_size", 1_000_000), _int("learning_starts", 100, low=0), _int("batch_size", batch),
        _unit("tau", tau), _unit("gamma", 0.99), Argument("train_freq", Kind.FREQUENCY, frequency, low=1),
        _int("gradient_steps", 1, low=-1), *_buffer("replay"), _bool("optimize_memory_usage", False),
        _int("n_steps", 1), *own, _WINDOW, _POLICY,
    )  # fmt: skip


def _q_learning(*, rate: float, fraction: float, final: float, norm: float | None) -> tuple[Argument, ...]:
    return _off_policy(
        _int("target_update_interval", 10_000), _unit("exploration_fraction", fraction),
        _unit("exploration_initial_eps", 1.0), _unit("exploration_final_eps", final),
        Argument("max_grad_norm", Kind.FLOAT, norm, low=0.0, optional=norm is None),
        rate=rate, batch=32, tau=1.0, frequency=4,
    )  # fmt: skip


def _actor_critic(*own: Argument, rate: float) -> tuple[Argument, ...]:
    noise = Argument("action_noise", Kind.NOISE, None, optional=True)
    return _off_policy(noise, *own, rate=rate, batch=256, tau=0.005, frequency=1)


def _without(arguments: tuple[Argument, ...], *names: str) -> tuple[Argument, ...]:
    return tuple(argument for argument in arguments if argument.name not in names)


_GRADIENT: Final = (_float("ent_coef", 0.0), _float("vf_coef", 0.5), _float("max_grad_norm", 0.5))
_PPO: Final = _on_policy(
    _int("batch_size", 64), _int("n_epochs", 10), Argument("clip_range", Kind.SCHEDULE, 0.2, low=0.0),
    Argument("clip_range_vf", Kind.SCHEDULE, None, low=0.0, optional=True), *_GRADIENT, _float("target_kl", None),
    rate=3e-4, steps=2048, gae_lambda=0.95, advantage=True,
)  # fmt: skip
_A2C: Final = _on_policy(
    *_GRADIENT, _float("rms_prop_eps", 1e-5), _bool("use_rms_prop", True),
    rate=7e-4, steps=5, gae_lambda=1.0, advantage=False,
)  # fmt: skip
_TRPO: Final = _on_policy(
    _int("batch_size", 128), _int("cg_max_steps", 15), _float("cg_damping", 0.1),
    _float("line_search_shrinking_factor", 0.8), _int("line_search_max_iter", 10), _int("n_critic_updates", 10),
    _float("target_kl", 0.01), _int("sub_sampling_factor", 1),
    rate=1e-3, steps=2048, gae_lambda=0.95, advantage=True,
)  # fmt: skip
_SAC: Final = _actor_critic(*_AUTO_ENTROPY, *_SDE, _bool("use_sde_at_warmup", False), rate=3e-4)
_TQC: Final = (*_SAC[:-2], _int("top_quantiles_to_drop_per_net", 2, low=0), *_SAC[-2:])
_TD3: Final = _actor_critic(
    _int("policy_delay", 2), _float("target_policy_noise", 0.2), _float("target_noise_clip", 0.5), rate=1e-3
)
_DDPG: Final = _without(_TD3, "policy_delay", "target_policy_noise", "target_noise_clip", "stats_window_size")
_DQN: Final = _q_learning(rate=1e-4, fraction=0.1, final=0.05, norm=10)
_QRDQN: Final = _q_learning(rate=5e-5, fraction=0.005, final=0.01, norm=None)


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of SB3 or sb3-contrib.

    Attributes:
        name: canonical name, as its class is called.
        module: package it is imported from.
        arguments: its hyperparameters.
        discrete: whether it takes discrete action spaces.
        continuous: whether it takes Box action spaces.
        off_policy: whether it keeps a replay buffer.
    """

    name: str
    module: str
    arguments: tuple[Argument, ...]
    discrete: bool
    continuous: bool
    off_policy: bool

    @cached_property
    def by_name(self) -> dict[str, Argument]:
        """The arguments by name."""
        return {argument.name: argument for argument in self.arguments}

    def require(self) -> None:
        """Raises MissingExtra if the package that holds the algorithm is not installed (imports nothing)."""
        if importlib.util.find_spec(self.module) is None:
            raise MissingExtra("contrib", self.name)

    def load(self) -> Any:
        """Imports and returns the class (imports torch)."""
        self.require()
        return getattr(importlib.import_module(self.module), self.name)


def _core(name: str, arguments: tuple[Argument, ...], **kinds: bool) -> Algorithm:
    return Algorithm(name, "stable_baselines3", arguments, **kinds)


def _contrib(name: str, arguments: tuple[Argument, ...], **kinds: bool) -> Algorithm:
    return Algorithm(name, "sb3_contrib", arguments, **kinds)


_ANY: Final = {"discrete": True, "continuous": True, "off_policy": False}
_DISCRETE: Final = {"discrete": True, "continuous": False, "off_policy": True}
_CONTINUOUS: Final = {"discrete": False, "continuous": True, "off_policy": True}

ALGORITHMS: Final = {
    algorithm.name: algorithm
    for algorithm in (
        _core("PPO", _PPO, **_ANY), _core("A2C", _A2C, **_ANY), _core("DQN", _DQN, **_DISCRETE),
        _core("SAC", _SAC, **_CONTINUOUS), _core("TD3", _TD3, **_CONTINUOUS), _core("DDPG", _DDPG, **_CONTINUOUS),
        _contrib("TQC", _TQC, **_CONTINUOUS), _contrib("QRDQN", _QRDQN, **_DISCRETE), _contrib("TRPO", _TRPO, **_ANY),
    )
}  # fmt: skip
"""Every supported algorithm by name."""


def algorithm(name: object) -> Algorithm:
    """Returns the algorithm of that name; case and hyphens do not matter ("QR-DQN" is "QRDQN").

    Raises:
        ExperimentError: if there is none, naming the nearest.
    """
    key = str(getattr(name, "__name__", name))
    folded = key.upper().replace("-", "").replace("_", "")
    if folded not in ALGORITHMS:
        raise ExperimentError(
            f"algo={key!r} is unknown.{did_you_mean(folded, ALGORITHMS)} rlnb trains with {', '.join(ALGORITHMS)}"
        )
    return ALGORITHMS[folded]
