"""What an environment keeps outside its own attributes: in its class, in closures, in a notebook's variables.

Capturing takes attributes of the environment and its wrappers. A count in a class attribute (`Env.episodes += 1`)
or in a notebook's variable may decide something only after thousands of episodes, which no probe can wait for.
So whatever of that kind changes while the environment is played is named, and the run says that it is not exact.
"""

from __future__ import annotations

import pickle
import random
import types
import zlib
from collections import deque
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from rlnb.train.layers import layers

_DATA = (
    bool, int, float, str, bytes, list, dict, set, tuple, deque, np.ndarray, np.generic,
    np.random.Generator, np.random.RandomState, random.Random,
)  # fmt: skip
_LIBRARIES = ("gymnasium", "stable_baselines3", "rlnb", "numpy", "abc", "typing", "builtins")
_LARGEST = 100_000
"""Entries; what is larger is data to learn from rather than state."""


def outside_state(env: gym.Env[Any, Any]) -> dict[str, int]:
    """Returns a checksum of each plain value that the environment's methods can reach outside the object, by name."""
    found: dict[str, int] = {}
    for layer in layers(env):
        for kind in type(layer).__mro__:
            if kind.__module__.partition(".")[0] not in _LIBRARIES:
                for name, value in _reachable(kind):
                    check = _checksum(value)
                    if check is not None:
                        found[name] = check
    return found


def changed(before: dict[str, int], after: dict[str, int]) -> tuple[str, ...]:
    """Returns the names whose values differ."""
    return tuple(sorted(name for name in before.keys() & after.keys() if before[name] != after[name]))


def _reachable(kind: type) -> Iterator[tuple[str, Any]]:
    for name, value in list(vars(kind).items()):
        function = getattr(value, "__func__", value.fget if isinstance(value, property) else value)
        if isinstance(function, types.FunctionType):
            yield from _of_function(function)
        elif not name.startswith("__"):
            yield f"{kind.__name__}.{name}", value


def _of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"{name} (a variable around {function.__qualname__.rpartition('.')[0]})", cell.cell_contents
        except ValueError:  # not filled yet
            continue
    for name in function.__code__.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _checksum(value: Any) -> int | None:
    if not isinstance(value, _DATA) or (hasattr(value, "__len__") and len(value) > _LARGEST):
        return None
    try:
        return zlib.crc32(pickle.dumps(value, protocol=5))
    except Exception:  # whatever an object in it raises: then nothing can be said of it
        return None
