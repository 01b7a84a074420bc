"""Names of observation components, where gymnasium's documentation gives them a meaning.

Names are short, valid in an expression, and follow one habit: `vx` for a linear velocity, `…_rate` or
`…_dot` for an angular one. An environment that is not listed, or whose observation has another length
than the listed one, gets `obs0`, `obs1`, …
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rlnb.design.spaces import space_names
from rlnb.design.term import check_name
from rlnb.errors import DesignError

_LEG = ("angle", "thigh", "leg", "foot")
_CHEETAH = ("bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot")
_ANT = tuple(f"{part}{i}" for i in range(1, 5) for part in ("hip", "ankle"))


def _with_rates(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}_rate" for name in names)


_WALKER = (*_LEG, "left_thigh", "left_leg", "left_foot")

#: environment (id without version) → component names in order
KNOWN: dict[str, tuple[str, ...]] = {
    "CartPole": ("x", "x_dot", "theta", "theta_dot"),
    "Pendulum": ("cos_theta", "sin_theta", "theta_dot"),
    "MountainCar": ("position", "velocity"),
    "MountainCarContinuous": ("position", "velocity"),
    "Acrobot": ("cos_theta1", "sin_theta1", "cos_theta2", "sin_theta2", "theta1_dot", "theta2_dot"),
    "LunarLander": ("x", "y", "vx", "vy", "angle", "angle_rate", "left_contact", "right_contact"),
    "BipedalWalker": (
        "angle", "angle_rate", "vx", "vy",
        "hip1", "hip1_rate", "knee1", "knee1_rate", "contact1",
        "hip2", "hip2_rate", "knee2", "knee2_rate", "contact2",
        *(f"lidar{i}" for i in range(10)),
    ),
    "HalfCheetah": ("z", "angle", *_CHEETAH, "vx", "vz", *_with_rates("angle", *_CHEETAH)),
    "Hopper": ("z", *_LEG, "vx", "vz", *_with_rates(*_LEG)),
    "Walker2d": ("z", *_WALKER, "vx", "vz", *_with_rates(*_WALKER)),
    "Swimmer": ("angle", "joint1", "joint2", "vx", "vy", *_with_rates("angle", "joint1", "joint2")),
    "InvertedPendulum": ("x", "theta", "x_dot", "theta_dot"),
    "InvertedDoublePendulum": (
        "x", "sin_theta1", "sin_theta2", "cos_theta1", "cos_theta2",
        "x_dot", "theta1_dot", "theta2_dot", "constraint_force",
    ),
    "Reacher": (
        "cos_theta1", "cos_theta2", "sin_theta1", "sin_theta2", "target_x", "target_y",
        "theta1_dot", "theta2_dot", "distance_x", "distance_y",
    ),
    "Ant": (
        "z", "qw", "qx", "qy", "qz", *_ANT, "vx", "vy", "vz", "wx", "wy", "wz", *_with_rates(*_ANT),
        *(f"contact{i}" for i in range(78)),
    ),
}  # fmt: skip
KNOWN["BipedalWalkerHardcore"] = KNOWN["BipedalWalker"]


def component_names(
    space: Any, env_id: str | None = None, names: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Returns one name for each component of a flattened observation; () for images.

    Args:
        space: the gymnasium observation space.
        env_id: a gymnasium id such as "LunarLander-v3"; None for an environment without one.
        names: names given by the user, which win.

    Raises:
        DesignError: the given names do not fit, or the space is of a kind that has no components.
    """
    plain = space_names(space)
    if names is not None:
        listed: object = names
        if isinstance(listed, str) or not isinstance(listed, Sequence):
            raise DesignError(
                f"names={listed!r:.80} is no list; write one name for each component, as names=['x', 'y']."
            )
        given = tuple(listed)
        for name in given:
            check_name(name)
        if len(given) != len(plain) or len(set(given)) != len(given):
            raise DesignError(
                f"names= has {len(given)} names ({len(set(given))} different), but the observation has "
                f"{len(plain)} components; give one name for each."
            )
        return given
    base = re.sub(r"-v\d+$", "", (env_id or "").split("/")[-1].split(":")[-1])
    known = KNOWN.get(base, ())
    return known if len(known) == len(plain) and len(known) > 0 else plain
