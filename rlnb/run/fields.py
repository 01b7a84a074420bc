"""How each field of an experiment is checked and filled in."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from rlnb.design.design import Design
from rlnb.errors import ExperimentError, did_you_mean
from rlnb.run.algorithms import GOVERNED, Algorithm, algorithm
from rlnb.run.arguments import Argument, Kind
from rlnb.run.env_reference import EnvReference
from rlnb.run.plans import CheckpointPlan, InitFrom
from rlnb.run.policies import POLICIES, resolve_policy
from rlnb.run.references import KEY, References
from rlnb.run.stop import StopRule


class Workers(StrEnum):
    """Where the parallel environments run."""

    DUMMY = "dummy"  # in the training process, one after the other
    SUBPROCESS = "subprocess"  # one process each


_NORMALIZE: Final = {
    argument.name: argument
    for argument in (
        Argument("training", Kind.BOOL, True),
        Argument("norm_obs", Kind.BOOL, True),
        Argument("norm_reward", Kind.BOOL, True),
        Argument("clip_obs", Kind.FLOAT, 10.0, low=0.0),
        Argument("clip_reward", Kind.FLOAT, 10.0, low=0.0),
        Argument("gamma", Kind.FLOAT, 0.99, low=0.0, high=1.0),
        Argument("epsilon", Kind.FLOAT, 1e-8, low=0.0),
    )
}
_PLAIN: Final = {
    argument.name: argument
    for argument in (
        Argument("total_timesteps", Kind.INT, None, low=1, high=2**63 - 1),
        Argument("n_envs", Kind.INT, 1, low=1, high=65_536),
        Argument("seed", Kind.INT, 0, low=0, high=2**32 - 1),
        Argument("torch_threads", Kind.INT, 1, low=1),
        Argument("deterministic", Kind.BOOL, True),
        Argument("max_hours", Kind.FLOAT, None, low=0.0, optional=True),
    )
}

_OTHER_WORDS: Final = {"lr": "learning_rate", "timesteps": "total_timesteps", "num_envs": "n_envs"}
"""What other libraries call some arguments."""

_PYTHON_ONLY: Final = ("reward", "state", "callbacks", "env_kwargs")
"""Names that `rlnb.Experiment` takes and run.yaml holds in another form."""


def resolve_fields(given: Mapping[str, Any], references: References, *, known: list[str]) -> dict[str, Any]:
    """Returns every field of an ExperimentSpec, checked and resolved.

    Raises:
        ExperimentError: see `ExperimentSpec.resolve`.
    """
    for key in given.keys() - set(known):
        raise ExperimentError(f"an experiment has no {key!r}.{did_you_mean(key, known)}")
    for key, hint in (("env", 'env="CartPole-v1"'), ("total_timesteps", "total_timesteps=100_000")):
        if given.get(key) is None:
            raise ExperimentError(f"the experiment lacks {key}; add e.g. {hint}")
    chosen = algorithm(given.get("algo", "PPO"))
    values = {
        name: argument.plain(given.get(name, argument.default), references)
        for name, argument in _PLAIN.items()
    }
    if values["max_hours"] == 0:
        raise ExperimentError("max_hours=0 would never train; give a number of hours, or None for no limit")
    policy = _policy(given.get("policy", "MlpPolicy"), references)
    hyperparameters = resolve_hyperparameters(
        chosen, policy, given.get("hyperparameters") or {}, references, fields=known
    )
    _check_rollout(chosen, hyperparameters, values["n_envs"])
    workers = _workers(given.get("workers", Workers.DUMMY))
    stop_when = given.get("stop_when")
    names = given.get("names")
    design = given.get("design")
    return values | {
        "name": _name(given.get("name", "experiment")),
        "env": EnvReference.parse(given["env"]),
        "names": None if names is None else _words(names, "names"),
        "design": Design.from_dict({} if design is None else design).to_dict(),
        "algo": chosen.name,
        "policy": policy,
        "hyperparameters": hyperparameters,
        "workers": workers,
        "start_method": _start_method(given.get("start_method"), workers),
        "normalize": _normalize(given.get("normalize"), hyperparameters),
        "device": _device(given.get("device", "auto")),
        "checkpoint": CheckpointPlan.parse(given.get("checkpoint")),
        "stop_when": None if stop_when is None else str(StopRule.parse(str(stop_when))),
        "tags": _words(given.get("tags") or (), "tags"),
        "init_from": InitFrom.parse(given.get("init_from")),
        "signals": tuple(sorted(_words(given.get("signals") or (), "signals"))),
    }


def resolve_hyperparameters(
    chosen: Algorithm,
    policy: Any,
    given: Mapping[str, Any],
    references: References,
    *,
    fields: Iterable[str] = (),
) -> dict[str, Any]:
    """Returns every argument of the algorithm as plain data, defaults filled in.

    Args:
        chosen: the algorithm.
        policy: as resolved.
        given: what the user gave.
        references: live objects of the experiment.
        fields: the experiment's other names, one of which may have been meant by an unknown one.

    Raises:
        ExperimentError: for an unknown argument (naming the nearest), or one that rlnb governs.
    """
    for key in given:
        if key in GOVERNED:
            raise ExperimentError(f"{key} is no hyperparameter here: {GOVERNED[key]}")
        if key not in chosen.by_name:
            meant = _OTHER_WORDS.get(key, key)
            near = did_you_mean(meant, [*chosen.by_name, *fields, *_PYTHON_ONLY])
            raise ExperimentError(
                f"{chosen.name} has no argument {key!r}." + (near or f" It takes {', '.join(chosen.by_name)}")
            )
    resolved = {
        argument.name: argument.plain(given.get(argument.name, argument.default), references)
        for argument in chosen.arguments
    }
    resolved["policy_kwargs"] = resolve_policy(
        chosen.name, policy, resolved["policy_kwargs"], references, settings=resolved
    )
    return resolved


def _check_rollout(chosen: Algorithm, values: Mapping[str, Any], n_envs: int) -> None:
    if not chosen.off_policy and values["normalize_advantage"] and values["n_steps"] * n_envs == 1:
        raise ExperimentError(
            "n_steps=1 with n_envs=1 leaves one advantage, which cannot be normalized; raise n_steps"
        )
    if isinstance(values.get("train_freq"), list) and n_envs > 1:
        raise ExperimentError(
            f"train_freq={values['train_freq']} counts episodes, which SB3 does only with n_envs=1, not {n_envs}; "
            "give a number of steps"
        )


def _policy(value: object, references: References) -> Any:
    if isinstance(value, Mapping):
        return references.freeze(value, "policy")  # as run.yaml holds a class
    if isinstance(value, type) and any(base.__name__ == "BasePolicy" for base in value.__mro__):
        return references.freeze(value, "policy")
    if not isinstance(value, str):
        raise ExperimentError(
            f"policy={value!r:.80} is no policy; give one of {', '.join(POLICIES)}, or a class derived from SB3's policies"
        )
    if ":" in value:
        return references.freeze({KEY: value}, "policy")
    if value not in POLICIES:
        raise ExperimentError(
            f"policy={value!r} is unknown.{did_you_mean(value, POLICIES)} "
            f"It is one of {', '.join(POLICIES)}, or a policy class"
        )
    return value


def _normalize(value: object, hyperparameters: Mapping[str, Any]) -> dict[str, Any] | None:
    """VecNormalize's arguments; its gamma follows the algorithm's, as in rl-baselines3-zoo."""
    if value is None or value is False:
        return None
    if not isinstance(value, Mapping):
        if value is not True:
            raise ExperimentError(f"normalize={value!r} is neither true, false nor VecNormalize's arguments")
        value = {}
    keys = [*_NORMALIZE, "norm_obs_keys"]
    for key in value.keys() - set(keys):
        raise ExperimentError(
            f"normalize.{key} is no argument of VecNormalize.{did_you_mean(str(key), keys)} It takes {', '.join(keys)}"
        )
    defaults = {name: argument.default for name, argument in _NORMALIZE.items()} | {
        "gamma": hyperparameters["gamma"]
    }
    plain = {
        name: argument.plain(value.get(name, defaults[name]), References(), where=f"normalize.{name}")
        for name, argument in _NORMALIZE.items()
    }
    keys_given = value.get("norm_obs_keys")
    return plain | {
        "norm_obs_keys": None if keys_given is None else list(_words(keys_given, "normalize.norm_obs_keys"))
    }


def _workers(value: object) -> Workers:
    if value not in list(Workers):
        raise ExperimentError(
            f"workers={value!r} is unknown; it is 'dummy' (one process) or 'subprocess' (one each)"
        )
    return Workers(str(value))


def _start_method(value: object, workers: Workers) -> str | None:
    methods = multiprocessing.get_all_start_methods()
    if value is not None and value not in methods:
        raise ExperimentError(
            f"start_method={value!r} is not possible here; it is one of {', '.join(methods)}"
        )
    if workers is Workers.DUMMY:
        return None  # nothing is started; a value would only make equal experiments look different
    return str(value) if value is not None else ("forkserver" if "forkserver" in methods else "spawn")


def _device(value: object) -> str:
    device = str(value)
    if device.partition(":")[0] not in ("auto", "cpu", "cuda", "mps", "xpu"):
        raise ExperimentError(f"device={device!r} is unknown; write 'auto', 'cpu', 'cuda' or 'cuda:1'")
    return device


def _name(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 100 or not value.isprintable():
        raise ExperimentError(f"name={value!r:.120} is no name; give a short printable text")
    return value


def _words(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, Iterable):
        raise ExperimentError(f"{where}={value!r:.80} is no list of words; write e.g. {where}=['a', 'b']")
    words = (value,) if isinstance(value, str) else tuple(value)
    for word in words:
        if not isinstance(word, str) or not word:
            raise ExperimentError(f"{where} has {word!r} where a word belongs")
    for index, word in enumerate(words):
        if word in words[:index]:
            raise ExperimentError(f"{where} names {word!r} twice")
    return words
