"""The parts of an SB3 model that move while it trains and that `state_dict()` does not hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm


def cloned(value: Any) -> Any:
    """Returns nested tensors as copies that share nothing."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, Mapping):
        return {key: cloned(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(cloned(inner) for inner in value)
    return value


def capture_logger(model: BaseAlgorithm) -> dict[str, Any]:
    """Returns the values that the logger holds until its next dump."""
    logger = model.logger
    plain = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in logger.name_to_value.items()
        if isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    }
    return {
        "values": plain,
        "counts": {name: int(logger.name_to_count[name]) for name in plain if name in logger.name_to_count},
        "excluded": {name: logger.name_to_excluded.get(name) for name in plain},
    }


def restore_logger(model: BaseAlgorithm, state: Mapping[str, Any]) -> None:
    """Puts back what `capture_logger` returned."""
    logger = model.logger
    logger.name_to_value.clear()
    logger.name_to_value.update(state["values"])
    logger.name_to_count.clear()
    logger.name_to_count.update(state["counts"])
    logger.name_to_excluded.clear()
    logger.name_to_excluded.update(state["excluded"])


def _noises(noise: Any) -> list[Any]:
    return [] if noise is None else list(getattr(noise, "noises", [noise]))


def capture_noise(noise: Any) -> list[Any]:
    """Returns what an Ornstein-Uhlenbeck noise remembers, per environment."""
    return [np.array(one.noise_prev) if hasattr(one, "noise_prev") else None for one in _noises(noise)]


def restore_noise(noise: Any, state: list[Any]) -> None:
    """Puts back what `capture_noise` returned."""
    for one, value in zip(_noises(noise), state, strict=False):
        if value is not None and hasattr(one, "noise_prev"):
            one.noise_prev = np.array(value)


def _sde_modules(model: BaseAlgorithm) -> dict[str, Any]:
    found = {}
    for name, module in model.policy.named_modules():
        distribution = getattr(module, "action_dist", None)
        if hasattr(distribution, "exploration_mat"):
            found[name] = distribution
    return found


def capture_sde(model: BaseAlgorithm) -> dict[str, Any]:
    """Returns the exploration matrices of gSDE, per module."""
    return {
        name: {key: getattr(one, key).detach().clone() for key in ("exploration_mat", "exploration_matrices")}
        for name, one in _sde_modules(model).items()
    }


def restore_sde(model: BaseAlgorithm, state: Mapping[str, Any]) -> None:
    """Puts back what `capture_sde` returned."""
    for name, one in _sde_modules(model).items():
        for key, tensor in state.get(name, {}).items():
            setattr(one, key, tensor.to(model.device))


def plain_lstm(states: Any) -> list[list[Any]]:
    """Returns recurrent states as nested lists."""
    return [list(pair) for pair in states]


def live_lstm(fresh: Any, saved: list[list[Any]]) -> Any:
    """Returns recurrent states in the model's own type."""
    return type(fresh)(
        *(
            tuple(one.to(old.device) for one, old in zip(s, f, strict=True))
            for s, f in zip(saved, fresh, strict=True)
        )
    )
