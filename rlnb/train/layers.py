"""The layers of an environment (wrappers and what they wrap) and their attributes, pickled in place.

Pickling an environment as a whole goes wrong silently: EzPickle classes come back un-reset, MuJoCo models
lose their state. So only the attributes of each layer are pickled, and put back into the living layers.
References to the layers themselves, to spaces, specs, models, modules and functions are kept as they are.
"""

from __future__ import annotations

import io
import pickle
import types
from typing import Any

import gymnasium as gym
import numpy as np

_GROWING = {"episode_returns", "episode_lengths", "episode_times"}
"""Monitor's lists of all episodes so far: history for people, which training never reads."""

_KEPT = (
    gym.Space, gym.envs.registration.EnvSpec, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type,
)  # fmt: skip


def layers(env: gym.Env[Any, Any]) -> list[Any]:
    """Returns the environment's wrappers from outside in, and last what they wrap."""
    found: list[Any] = [env]
    while isinstance(found[-1], gym.Wrapper):
        found.append(found[-1].env)
    return found


def dump_layers(stack: list[Any], *, kept: dict[int, tuple[int, str]] | None = None) -> bytes:
    """Pickles the attributes of all layers as one graph, so that what they share stays shared.

    Args:
        stack: from `layers`.
        kept: id of further objects that stay as they are, to (layer, attribute).

    Raises:
        Exception: whatever pickling raises for an attribute that cannot be pickled.
    """
    names = _fixed(stack) | (kept or {})
    states = []
    for index, layer in enumerate(stack):
        attributes = dict(vars(layer))
        if index < len(stack) - 1:
            attributes.pop("env", None)
        for name in _GROWING & attributes.keys():
            if type(layer).__name__ == "Monitor":
                del attributes[name]
        states.append(attributes)
    spaces = [_space_rngs(layer) for layer in stack]
    try:
        return _dump((states, spaces), _Pickler, stack, names)
    except (pickle.PicklingError, AttributeError, TypeError):
        # An object of a class that only this process knows (a cell's class in a subprocess worker).
        import cloudpickle

        class ByValue(cloudpickle.Pickler):  # type: ignore[misc]
            persistent_id = _Pickler.persistent_id

        return _dump((states, spaces), ByValue, stack, names)


def load_layers(stack: list[Any], data: bytes) -> None:
    """Puts attributes back that `dump_layers` took, into layers of the same classes."""
    states, spaces = _Unpickler(io.BytesIO(data), stack).load()
    for layer, attributes, rngs in zip(stack, states, spaces, strict=True):
        living = vars(layer)
        for name in set(living) - set(attributes) - _GROWING - {"env"}:
            del living[name]
        living.update(attributes)
        for name, state in rngs.items():
            restore_space_rng(living[name], state)


def space_rng(space: gym.Space[Any]) -> Any:
    """Returns the state of a space's generators, without making one that is not there yet."""
    generator = space._np_random
    own = None if generator is None else generator.bit_generator.state
    parts = getattr(space, "spaces", None)
    if isinstance(parts, dict):
        return {"own": own, "parts": {str(key): space_rng(part) for key, part in parts.items()}}
    if isinstance(parts, (list, tuple)):
        return {"own": own, "parts": {str(key): space_rng(part) for key, part in enumerate(parts)}}
    return {"own": own}


def restore_space_rng(space: gym.Space[Any], state: Any) -> None:
    """Puts back what `space_rng` took."""
    if state["own"] is None:
        vars(space)["_np_random"] = None
    else:
        space.np_random.bit_generator.state = state["own"]
    parts = getattr(space, "spaces", None)
    if parts is not None and "parts" in state:
        pairs = parts.items() if isinstance(parts, dict) else enumerate(parts)
        for key, part in pairs:
            restore_space_rng(part, state["parts"][str(key)])


def plain_attributes(layer: Any) -> dict[str, Any]:
    """Returns the attributes that are numbers, text, arrays or generators: what survives a reset by itself."""
    return {name: value for name, value in vars(layer).items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject
    return isinstance(value, (bool, int, float, str, np.generic, np.random.Generator))


def _fixed(stack: list[Any]) -> dict[int, tuple[int, str]]:
    names: dict[int, tuple[int, str]] = {}
    for index, layer in enumerate(stack):
        for name, value in vars(layer).items():
            if isinstance(value, _KEPT):
                names.setdefault(id(value), (index, name))
    return names


def _space_rngs(layer: Any) -> dict[str, Any]:
    return {name: space_rng(value) for name, value in vars(layer).items() if isinstance(value, gym.Space)}


def _dump(value: Any, pickler: type[Any], stack: list[Any], names: dict[int, tuple[int, str]]) -> bytes:
    file = io.BytesIO()
    writer = pickler(file, protocol=5)
    writer.layer_ids = {id(layer): index for index, layer in enumerate(stack)}
    writer.names = names
    writer.dump(value)
    return file.getvalue()


class _Pickler(pickle.Pickler):
    layer_ids: dict[int, int]
    names: dict[int, tuple[int, str]]

    def persistent_id(self, obj: Any) -> Any:
        """Names a living object instead of copying it."""
        number = id(obj)
        if number in self.layer_ids:
            return ("layer", self.layer_ids[number])
        if number in self.names:
            return ("kept", *self.names[number])
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, stack: list[Any]) -> None:
        super().__init__(file)
        self._stack = stack

    def persistent_load(self, pid: Any) -> Any:
        """Returns the living object of that name."""
        return self._stack[pid[1]] if pid[0] == "layer" else vars(self._stack[pid[1]])[pid[2]]
