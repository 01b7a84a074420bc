"""The outermost wrapper of every training environment: capture and restore, also inside a subprocess.

A vector environment calls these methods by name (`env_method`), in this process or in a worker's. Worker
processes are prepared here too: their global generators are seeded, and they neither take the interrupt that
is meant for the kernel nor outlive it.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import sys
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from rlnb.train.envstate import JournalState, StateKind, make_state
from rlnb.train.hashing import crc32
from rlnb.train.layers import plain_attributes

Env = gym.Env[Any, Any]

_PR_SET_PDEATHSIG = 1


class StatefulEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Passes everything through, and can give and take the whole state of what it wraps.

    Args:
        env: the environment with all other wrappers.
        kind: how the state is captured, as `rlnb.train.probe` found out.
        alone: whether this process exists for this environment only, so that the process's global generators
            are part of its state.
    """

    def __init__(self, env: Env, kind: StateKind, *, alone: bool = False) -> None:
        super().__init__(env)
        self._state = make_state(kind)
        self._alone = alone

    def step(self, action: Any) -> Any:
        return self.env.step(action)

    def reset(self, **kwargs: Any) -> Any:
        return self.env.reset(**kwargs)

    def rlnb_capture(self) -> Any:
        """Returns the state as a tree."""
        state: dict[str, Any] = {"env": None if self._state is None else self._state.capture(self.env)}
        if self._alone:
            state["process"] = global_rngs()
        return state

    def rlnb_restore(self, state: Any) -> None:
        """Puts back what `rlnb_capture` returned."""
        if self._state is not None and state["env"] is not None:
            self._state.restore(self.env, state["env"])
        if self._alone and "process" in state:
            restore_global_rngs(state["process"])

    def rlnb_crc(self) -> int:
        """CRC32 of the innermost layer's plain attributes and generator, and of mjData's positions."""
        base = self.env.unwrapped
        values: dict[str, Any] = {}
        for name, value in plain_attributes(base).items():
            if isinstance(value, np.random.Generator):
                values[name] = np.frombuffer(repr(value.bit_generator.state).encode(), dtype=np.uint8)
            elif isinstance(value, str):
                values[name] = np.frombuffer(value.encode(), dtype=np.uint8)
            else:
                values[name] = np.asarray(value)
        data: Any = vars(base).get("data")
        if hasattr(data, "qpos") and hasattr(data, "qvel"):
            values |= {"data.qpos": np.array(data.qpos), "data.qvel": np.array(data.qvel)}
        return crc32(values)


class JournaledEnv(StatefulEnv):
    """A StatefulEnv that writes the journal its kind needs."""

    def __init__(self, env: Env, kind: StateKind, *, alone: bool = False) -> None:
        super().__init__(env, kind, alone=alone)
        assert isinstance(self._state, JournalState)
        self._journal = self._state

    def step(self, action: Any) -> Any:
        self._journal.note_step(action)
        return self.env.step(action)

    def reset(self, **kwargs: Any) -> Any:
        self._journal.note_reset(self.env, kwargs)
        return self.env.reset(**kwargs)


def wrap_stateful(env: Env, kind: StateKind, *, alone: bool = False) -> StatefulEnv:
    """Returns the environment in the wrapper its kind needs."""
    journaled = kind in (StateKind.JOURNAL, StateKind.JOURNAL_NEW_WORLD)
    return JournaledEnv(env, kind, alone=alone) if journaled else StatefulEnv(env, kind, alone=alone)


class StatefulFactory:
    """Makes one training environment; travels to the worker that runs it.

    Args:
        make: makes the environment with all wrappers but the outermost.
        kind: how its state is captured.
        seed: of the worker's global generators.
    """

    def __init__(self, make: Callable[[], Env], kind: StateKind, *, seed: int) -> None:
        self.make, self.kind, self.seed = make, kind, seed
        self.parent = os.getpid()

    def __call__(self) -> StatefulEnv:
        alone = os.getpid() != self.parent
        if alone:
            prepare_worker(self.seed)
        return wrap_stateful(self.make(), self.kind, alone=alone)


def prepare_worker(seed: int) -> None:
    """Makes a worker process deterministic and loyal: seeded, deaf to Ctrl-C, ending with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed)
        torch.set_num_threads(1)


def global_rngs() -> dict[str, Any]:
    """Returns the states of Python's, NumPy's and (where loaded) torch's global generators, as a tree."""
    version, words, gauss = random.getstate()
    state: dict[str, Any] = {
        "python": (version, np.array(words, dtype=np.uint64), gauss),
        "numpy": tuple(np.random.get_state(legacy=True)),
    }
    if (torch := sys.modules.get("torch")) is not None:
        state["torch"] = torch.get_rng_state().numpy().copy()
        if torch.cuda.is_initialized():
            state["cuda"] = [one.cpu().numpy().copy() for one in torch.cuda.get_rng_state_all()]
    return state


def restore_global_rngs(state: dict[str, Any]) -> None:
    """Puts back what `global_rngs` returned."""
    version, words, gauss = state["python"]
    random.setstate((version, tuple(int(word) for word in words), gauss))
    np.random.set_state(tuple(state["numpy"]))
    torch = sys.modules.get("torch")
    if torch is not None and "torch" in state:
        torch.set_rng_state(torch.from_numpy(np.array(state["torch"], dtype=np.uint8)))
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state_all([torch.from_numpy(np.array(one)) for one in state["cuda"]])
