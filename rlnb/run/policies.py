"""The policies' own arguments and defaults, so that no layer size hides in a default of SB3.

SB3 resolves `net_arch=None` and the optimizer inside its constructors (`common/policies.py`,
`*/policies.py`, `a2c/a2c.py`); this table says the same beforehand. A test builds every algorithm with and
without the resolved values and finds equal weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rlnb.errors import ExperimentError, did_you_mean
from rlnb.run.references import KEY, References

POLICIES: Final = ("MlpPolicy", "CnnPolicy", "MultiInputPolicy")
"""The policy names every algorithm knows."""

_LAYERS: Final = "stable_baselines3.common.torch_layers"
_ACTIVATIONS: Final = "torch.nn.modules.activation"
_OPTIMIZERS: Final = "torch.optim"
_ADAM: Final = {KEY: f"{_OPTIMIZERS}.adam:Adam"}

_EXTRACTOR: Final = {
    "MlpPolicy": f"{_LAYERS}:FlattenExtractor",
    "CnnPolicy": f"{_LAYERS}:NatureCNN",
    "MultiInputPolicy": f"{_LAYERS}:CombinedExtractor",
}
_COMMON: Final[Mapping[str, Any]] = {
    "features_extractor_kwargs": {},
    "normalize_images": True,
    "optimizer_class": _ADAM,
    "optimizer_kwargs": {},
}
_TANH: Final = {KEY: f"{_ACTIVATIONS}:Tanh"}
_RELU: Final = {KEY: f"{_ACTIVATIONS}:ReLU"}
_ON_POLICY: Final[Mapping[str, Any]] = {
    "net_arch": {"pi": [64, 64], "vf": [64, 64]},
    "activation_fn": _TANH,
    "ortho_init": True,
    "log_std_init": 0.0,
    "full_std": True,
    "use_expln": False,
    "squash_output": False,
    "share_features_extractor": True,
}
_SAC: Final[Mapping[str, Any]] = {
    "net_arch": [256, 256],
    "activation_fn": _RELU,
    "log_std_init": -3.0,
    "use_expln": False,
    "clip_mean": 2.0,
    "n_critics": 2,
    "share_features_extractor": False,
}
_TD3: Final[Mapping[str, Any]] = {
    "net_arch": [400, 300],
    "activation_fn": _RELU,
    "n_critics": 2,
    "share_features_extractor": False,
}
_DQN: Final[Mapping[str, Any]] = {"net_arch": [64, 64], "activation_fn": _RELU}
_OWN: Final[Mapping[str, Mapping[str, Any]]] = {
    "PPO": _ON_POLICY,
    "A2C": _ON_POLICY,
    "TRPO": _ON_POLICY,
    "SAC": _SAC,
    "TQC": {**_SAC, "n_quantiles": 25},
    "TD3": _TD3,
    "DDPG": {**_TD3, "n_critics": 1},
    "DQN": _DQN,
    "QRDQN": {**_DQN, "n_quantiles": 200},
}
_IMAGE_ARCH: Final = {"SAC": [256, 256], "TQC": [256, 256], "TD3": [256, 256], "DDPG": [256, 256]}
"""`net_arch` after NatureCNN; the other algorithms add no layer."""

_SHORT: Final[Mapping[str, Mapping[str, str]]] = {
    "activation_fn": dict.fromkeys(
        ("CELU", "ELU", "GELU", "Hardswish", "Hardtanh", "LeakyReLU", "Mish", "PReLU", "ReLU", "ReLU6", "SELU",
         "Sigmoid", "SiLU", "Softplus", "Softsign", "Tanh"), _ACTIVATIONS,
    ),
    "optimizer_class": {
        "Adam": f"{_OPTIMIZERS}.adam", "AdamW": f"{_OPTIMIZERS}.adamw", "SGD": f"{_OPTIMIZERS}.sgd",
        "RMSprop": f"{_OPTIMIZERS}.rmsprop", "RMSpropTFLike": "stable_baselines3.common.sb2_compat.rmsprop_tf_like",
    },
    "features_extractor_class": dict.fromkeys(("FlattenExtractor", "NatureCNN", "CombinedExtractor"), _LAYERS),
}  # fmt: skip


def resolve_policy(
    algorithm: str,
    policy: object,
    given: Mapping[str, Any] | None,
    references: References,
    *,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Returns `policy_kwargs` with every default of the policy written out.

    Args:
        algorithm: canonical name.
        policy: a name of `POLICIES`, or a reference to a policy class (its defaults are its own business).
        given: what the user gave, as plain data.
        references: live objects of the experiment.
        settings: the algorithm's resolved hyperparameters (A2C's RMSprop depends on them).

    Raises:
        ExperimentError: for a key that the policy does not take, or one that belongs to the algorithm.
    """
    named = {key: _spell_out(key, value, references) for key, value in (given or {}).items()}
    if "use_sde" in named:
        raise ExperimentError(
            "policy_kwargs has use_sde, which SB3 sets from Experiment(use_sde=…); move it there"
        )
    if not isinstance(policy, str):
        return named
    defaults = {**_COMMON, "features_extractor_class": {KEY: _EXTRACTOR[policy]}, **_OWN[algorithm]}
    for key in named.keys() - defaults.keys():
        raise ExperimentError(
            f"policy_kwargs.{key} is no argument of {algorithm}'s {policy}.{did_you_mean(key, defaults)} "
            f"It takes {', '.join(sorted(defaults))}"
        )
    if named.get("net_arch") is not None:
        _check_layers(
            named["net_arch"],
            critic="vf" if _OWN[algorithm] is _ON_POLICY else "qf",
            split=algorithm not in ("DQN", "QRDQN"),
        )
    resolved = {key: default if named.get(key) is None else named[key] for key, default in defaults.items()}
    if named.get("net_arch") is None and resolved["features_extractor_class"][KEY] == _EXTRACTOR["CnnPolicy"]:
        resolved["net_arch"] = _IMAGE_ARCH.get(algorithm, [])
    return resolved | _optimizer(algorithm, named, settings)


def _check_layers(value: Any, *, critic: str, split: bool) -> None:
    """Refuses a `net_arch` that is neither sizes of layers nor, for an actor and a critic, two lists of them."""
    example = f"[64, 64] or {{'pi': [64, 64], '{critic}': [64, 64]}}" if split else "[64, 64]"
    if isinstance(value, Mapping) and split:
        if set(value) != {"pi", critic}:
            raise ExperimentError(
                f"policy_kwargs.net_arch has the parts {', '.join(map(str, value)) or 'none'}; "
                f"it needs pi and {critic}, as in {example}"
            )
        layers = [size for part in value.values() for size in (part if isinstance(part, list) else [part])]
    else:
        layers = value if isinstance(value, list) else [value]
    for size in layers:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ExperimentError(
                f"policy_kwargs.net_arch={value!r:.80} has {size!r:.40} where the size of a layer belongs; write e.g. {example}"
            )


def _optimizer(algorithm: str, named: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The optimizer as SB3's constructors choose it from what is named and what is not."""
    chosen = named.get("optimizer_class")
    if chosen is None and algorithm == "A2C" and settings["use_rms_prop"]:
        return {  # replaces optimizer_kwargs too, as a2c.py does
            "optimizer_class": {KEY: f"{_OPTIMIZERS}.rmsprop:RMSprop"},
            "optimizer_kwargs": {"alpha": 0.99, "eps": settings["rms_prop_eps"], "weight_decay": 0},
        }
    if chosen is None and algorithm == "QRDQN":
        return {"optimizer_class": _ADAM, "optimizer_kwargs": {"eps": 0.01 / settings["batch_size"]}}
    given = named.get("optimizer_kwargs")
    if given is None:
        on_policy_adam = _OWN[algorithm] is _ON_POLICY and chosen in (None, _ADAM)
        given = {"eps": 1e-5} if on_policy_adam else {}
    return {"optimizer_class": chosen or _ADAM, "optimizer_kwargs": given}


def _spell_out(key: str, value: Any, references: References) -> Any:
    """Turns `"ReLU"`, `"nn.ReLU"` or `"module:Class"` of a YAML file into a reference."""
    if key not in _SHORT or not isinstance(value, str):
        return value
    if ":" in value:
        return references.freeze({KEY: value}, f"policy_kwargs.{key}")
    name = value.rpartition(".")[2]
    if name not in _SHORT[key]:
        raise ExperimentError(
            f"policy_kwargs.{key}={value!r} is unknown.{did_you_mean(name, _SHORT[key])} "
            f"Write one of {', '.join(sorted(_SHORT[key]))}, or 'module:Class'"
        )
    return {KEY: f"{_SHORT[key][name]}:{name}"}
