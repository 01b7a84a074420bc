"""Finding out how an environment's state can be captured: try each way, step copies, compare every byte."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from rlnb.train.codec import decode_tree, encode_tree
from rlnb.train.envstate import StateKind, has_box2d_world, has_mujoco_data
from rlnb.train.hashing import crc32
from rlnb.train.outside import changed, outside_state
from rlnb.train.stateful import StatefulEnv, global_rngs, restore_global_rngs, wrap_stateful

BEFORE, AFTER = 15, 40
"""Steps before the snapshot and after it; then one more reset, because that is where generators are used."""


@dataclass(frozen=True)
class ProbeResult:
    """What was found.

    Attributes:
        kind: the way that works; NONE when none does.
        reason: why the others do not, for a person; "" when the first one works.
        bytes: size of one captured state.
        outside: names of what changed outside the environment's own attributes, where nothing is captured.
    """

    kind: StateKind
    reason: str
    bytes: int = 0
    outside: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}" if self.reason else str(self.kind)


def probe_env(make: Callable[[], gym.Env[Any, Any]]) -> ProbeResult:
    """Probes the ways in turn and returns the first that is exact.

    A copy that is restored from a snapshot has to give, byte for byte, the observations, rewards and ends of an
    environment that was never touched, across a reset as well. Global generators are left as they were.

    Args:
        make: makes one environment with the wrappers that training uses.
    """
    rngs = global_rngs()
    reasons: list[str] = []
    outside: tuple[str, ...] = ()
    try:
        first = make()
        kinds = [StateKind.MUJOCO if has_mujoco_data(first) else StateKind.PICKLE, StateKind.JOURNAL]
        kinds += [StateKind.JOURNAL_NEW_WORLD] if has_box2d_world(first) else []
        first.close()
        for kind in kinds:
            restore_global_rngs(rngs)
            wrong, size, outside = _try(make, kind, rngs)
            if wrong is None:
                return ProbeResult(kind, ", ".join(reasons), size, outside)
            reasons.append(f"{kind.value}: {wrong}")
        return ProbeResult(StateKind.NONE, ", ".join(reasons), outside=outside)
    finally:
        restore_global_rngs(rngs)


def _try(
    make: Callable[[], gym.Env[Any, Any]], kind: StateKind, rngs: dict[str, Any]
) -> tuple[str | None, int, tuple[str, ...]]:
    """Returns what is wrong with that way, the size of one state, and what changed outside the environment."""
    envs: list[StatefulEnv] = []
    outside: tuple[str, ...] = ()

    def fresh() -> StatefulEnv:
        envs.append(wrap_stateful(make(), kind))
        return envs[-1]

    try:
        untouched = fresh()
        before = outside_state(untouched.env)
        restore_global_rngs(rngs)
        _play(untouched, BEFORE, seed=7, start=11)
        expected = _play(untouched, AFTER, seed=8)
        outside = changed(before, outside_state(untouched.env))

        watched = fresh()
        restore_global_rngs(rngs)
        _play(watched, BEFORE, seed=7, start=11)
        data = encode_tree(watched.rlnb_capture())
        middle = global_rngs()
        if _play(watched, AFTER, seed=8) != expected:
            return "capturing changes the environment or it is not deterministic", len(data), outside

        copy = fresh()
        _play(copy, 5, seed=9, start=12)
        copy.rlnb_restore(decode_tree(data))
        restore_global_rngs(middle)
        if _play(copy, AFTER, seed=8) != expected:
            return "a restored copy goes on differently", len(data), outside
        return None, len(data), outside
    except Exception as error:  # whatever a foreign environment raises means: not this way
        return f"{type(error).__name__}: {str(error)[:120]}", 0, outside
    finally:
        for env in envs:
            env.close()


def _play(env: StatefulEnv, steps: int, *, seed: int, start: int | None = None) -> list[Any]:
    """Steps with seeded random actions, resets without a seed, and steps again; with `start` after a seeded reset."""
    actions = np.random.default_rng(seed)
    seen: list[Any] = []
    if start is not None:
        seen.append(crc32(env.reset(seed=start)[0]))
    for half in range(2):
        if half == 1:
            seen.append(crc32(env.reset()[0]))
        for _ in range(steps):
            obs, reward, terminated, truncated, _ = env.step(_action(env.action_space, actions))
            seen.append((crc32(obs), float(reward), bool(terminated), bool(truncated)))
            if terminated or truncated:
                seen.append(crc32(env.reset()[0]))
    return seen


def _action(space: gym.Space[Any], rng: np.random.Generator) -> Any:
    """Draws an action without touching the space's own generator."""
    if isinstance(space, gym.spaces.Discrete):
        return np.int64(space.start + rng.integers(space.n))
    if isinstance(space, gym.spaces.MultiDiscrete):
        return (space.start + rng.integers(space.nvec)).astype(space.dtype)
    if isinstance(space, gym.spaces.MultiBinary):
        return rng.integers(2, size=space.shape).astype(space.dtype)
    if isinstance(space, gym.spaces.Box):
        low = np.maximum(space.low, -1e3)
        high = np.minimum(space.high, 1e3)
        return rng.uniform(low, high).astype(space.dtype)
    raise TypeError(f"actions of {space} are not known")
