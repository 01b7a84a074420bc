"""Action noise of TD3, DDPG, SAC and TQC as plain data.

`"normal_0.1"` and `"ornstein-uhlenbeck_0.1"` name the noise and its standard deviation, as the zoo's
`noise_type` and `noise_std` do; an SB3 noise object is read into the same mapping, so that run.yaml
holds the numbers and no pickle.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from rlnb.errors import ExperimentError

_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "normal": {"mean": 0.0, "sigma": 0.1},
    "ornstein-uhlenbeck": {"mean": 0.0, "sigma": 0.1, "theta": 0.15, "dt": 0.01},
}
_CLASSES: Final = {"NormalActionNoise": "normal", "OrnsteinUhlenbeckActionNoise": "ornstein-uhlenbeck"}
_FORM: Final = "write 'normal_0.1' or 'ornstein-uhlenbeck_0.1', or pass SB3's NormalActionNoise"


def plain_noise(value: object, where: str) -> dict[str, Any]:
    """Returns noise as `{"noise": name, "mean": …, "sigma": …}`; `mean` and `sigma` a float or one per action.

    Raises:
        ExperimentError: if it is no noise rlnb can write down.
    """
    if isinstance(value, str):
        name, _, sigma = value.rpartition("_")
        try:
            given: dict[str, Any] = {"noise": name, "sigma": float(sigma)}
        except ValueError:
            raise ExperimentError(f"{where}={value!r} is no action noise; {_FORM}") from None
    elif isinstance(value, Mapping):
        given = dict(value)
    elif type(value).__name__ in _CLASSES:
        given = _read(value)
    else:
        raise ExperimentError(f"{where}={value!r} is no action noise that run.yaml can carry; {_FORM}")
    name = given.pop("noise", None)
    if name not in _DEFAULTS or not given.keys() <= _DEFAULTS[name].keys():
        raise ExperimentError(f"{where}={value!r} is no action noise; {_FORM}")
    numbers = {key: _numbers(number, where) for key, number in (dict(_DEFAULTS[name]) | given).items()}
    return {"noise": name, **numbers}


def make_noise(plain: Mapping[str, Any] | None, *, actions: int) -> Any:
    """Returns SB3's noise object (imports SB3) for `actions` action components, or None for None."""
    if plain is None:
        return None
    module = importlib.import_module("stable_baselines3.common.noise")
    mean, sigma = (
        np.broadcast_to(np.asarray(plain[key], dtype=np.float64), (actions,)).copy()
        for key in ("mean", "sigma")
    )
    if plain["noise"] == "normal":
        return module.NormalActionNoise(mean=mean, sigma=sigma)
    return module.OrnsteinUhlenbeckActionNoise(mean=mean, sigma=sigma, theta=plain["theta"], dt=plain["dt"])


def _read(noise: Any) -> dict[str, Any]:
    given = {
        "noise": _CLASSES[type(noise).__name__],
        "mean": np.asarray(noise._mu).tolist(),
        "sigma": np.asarray(noise._sigma).tolist(),
    }
    if given["noise"] == "ornstein-uhlenbeck":
        if noise.initial_noise is not None:
            raise ExperimentError(
                "action_noise has an initial_noise, which rlnb does not carry; leave it out"
            )
        given |= {"theta": float(noise._theta), "dt": float(noise._dt)}
    return given


def _numbers(value: Any, where: str) -> Any:
    values = value if isinstance(value, list) else [value]
    for number in values:
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
            raise ExperimentError(f"{where} has {number!r} where a finite number belongs")
    return [float(number) for number in value] if isinstance(value, list) else float(value)
