"""EnvState: the state of one environment, taken and put back; three ways, none trusted before it was probed.

- `PickleState` pickles the attributes of every layer (classic control, grid worlds, most own environments).
- `MujocoState` does the same and copies `mjData` field by field; the model and the renderer stay.
- `JournalState` keeps what is plain at each reset and the actions since, and plays them again (Box2D). Where an
  environment keeps its Box2D world across resets (BipedalWalker), the order of contacts in it depends on all
  episodes before; there each reset begins in a new world, as LunarLander does by itself.

A captured state is a tree for `rlnb.train.codec`. It may hold a pickle: it is only ever restored inside the
job of the run that wrote it, whose bundle is trusted to execute anyway; no reader of a run folder opens it.
"""

from __future__ import annotations

import pickle
from enum import StrEnum
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from rlnb.train.layers import dump_layers, layers, load_layers, plain_attributes


class StateKind(StrEnum):
    """How an environment's state is captured."""

    PICKLE = "pickle"
    MUJOCO = "mujoco"
    JOURNAL = "journal"
    JOURNAL_NEW_WORLD = "journal_new_world"  # the same, with a new Box2D world at every reset
    NONE = "none"  # nothing works: a resumed run begins new episodes, and says that it is not exact


class EnvState(Protocol):
    """Seam: takes and puts back the state of one environment; capturing only reads."""

    def capture(self, env: gym.Env[Any, Any]) -> Any:
        """Returns everything that the environment's future depends on, as a tree."""

    def restore(self, env: gym.Env[Any, Any], state: Any) -> None:
        """Puts a captured state into an environment of the same making that has been reset."""


class PickleState:
    """The attributes of every layer, pickled."""

    def capture(self, env: gym.Env[Any, Any]) -> Any:
        return {"layers": dump_layers(layers(env))}

    def restore(self, env: gym.Env[Any, Any], state: Any) -> None:
        load_layers(layers(env), state["layers"])


class MujocoState:
    """The attributes of every layer, and `mjData` as a whole.

    `mjSTATE_INTEGRATION` and gymnasium's FULLPHYSICS leave out what some models need, so all of `mjData` is
    copied; it goes back into the same object, to which renderers and the environment's own views refer.
    """

    def capture(self, env: gym.Env[Any, Any]) -> Any:
        stack = layers(env)
        base = stack[-1]
        return {
            "layers": dump_layers(stack, kept=_mujoco_objects(stack)),
            "data": pickle.dumps(base.data, protocol=5),
        }

    def restore(self, env: gym.Env[Any, Any], state: Any) -> None:
        import mujoco

        stack = layers(env)
        base = stack[-1]
        load_layers(stack, state["layers"])
        mujoco.mj_copyData(base.data, base.model, pickle.loads(state["data"]))  # noqa: S301 (see the module)


class JournalState:
    """What was plain before the last reset, that reset's arguments, and the actions since.

    The environment calls `note_reset` and `note_step` through `JournaledEnv`.
    """

    def __init__(self, *, new_world: bool = False) -> None:
        self.new_world = new_world
        self.before: Any = None
        self.arguments: dict[str, Any] = {}
        self.actions: list[Any] = []

    def note_reset(self, env: gym.Env[Any, Any], arguments: dict[str, Any]) -> None:
        """Begins a new journal; to be called before the reset."""
        if self.new_world:
            _renew_world(env.unwrapped)
        self.before = _plain_layers(layers(env))
        self.arguments = dict(arguments)
        self.actions = []

    def note_step(self, action: Any) -> None:
        """Writes down one action; to be called before the step."""
        self.actions.append(np.array(action))

    def capture(self, env: gym.Env[Any, Any]) -> Any:
        actions = np.stack(self.actions) if self.actions else None
        return {"before": self.before, "arguments": dict(self.arguments), "actions": actions}

    def restore(self, env: gym.Env[Any, Any], state: Any) -> None:
        for layer, plain in zip(layers(env), state["before"], strict=True):
            for name, value in plain.items():
                if isinstance(value, dict):
                    _restore_generator(layer, name, value)
                else:
                    vars(layer)[name] = value.copy() if isinstance(value, np.ndarray) else value
        self.note_reset(env, state["arguments"])
        env.reset(**state["arguments"])
        for action in [] if state["actions"] is None else state["actions"]:
            self.note_step(action)
            env.step(action)


def make_state(kind: StateKind) -> EnvState | None:
    """Returns a new EnvState of that kind, None for NONE."""
    if kind in (StateKind.JOURNAL, StateKind.JOURNAL_NEW_WORLD):
        return JournalState(new_world=kind is StateKind.JOURNAL_NEW_WORLD)
    if kind is StateKind.NONE:
        return None
    return MujocoState() if kind is StateKind.MUJOCO else PickleState()


def has_mujoco_data(env: gym.Env[Any, Any]) -> bool:
    """Whether the innermost layer keeps its state in an `mjData`."""
    data = vars(env.unwrapped).get("data")
    return type(data).__name__ == "MjData" and hasattr(env.unwrapped, "model")


def has_box2d_world(env: gym.Env[Any, Any]) -> bool:
    """Whether the innermost layer holds a Box2D world that can be made anew."""
    base = env.unwrapped
    return type(vars(base).get("world")).__name__ == "b2World" and callable(getattr(base, "_destroy", None))


def _renew_world(base: Any) -> None:
    base._destroy()
    base.world = type(base.world)(gravity=base.world.gravity)


def _mujoco_objects(stack: list[Any]) -> dict[int, tuple[int, str]]:
    return {
        id(value): (index, name)
        for index, layer in enumerate(stack)
        for name, value in vars(layer).items()
        if type(value).__module__.partition(".")[0] == "mujoco" or type(value).__name__ == "MujocoRenderer"
    }


def _plain_layers(stack: list[Any]) -> list[dict[str, Any]]:
    states = []
    for layer in stack:
        plain: dict[str, Any] = {}
        for name, value in plain_attributes(layer).items():
            if isinstance(value, np.random.Generator):
                plain[name] = value.bit_generator.state
            else:
                plain[name] = value.copy() if isinstance(value, np.ndarray) else value
        states.append(plain)
    return states


def _restore_generator(layer: Any, name: str, state: dict[str, Any]) -> None:
    kind = getattr(np.random, str(state["bit_generator"]))
    generator = vars(layer).get(name)
    if not isinstance(generator, np.random.Generator) or type(generator.bit_generator) is not kind:
        generator = np.random.Generator(kind())
        vars(layer)[name] = generator
    generator.bit_generator.state = state
