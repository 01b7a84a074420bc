"""What an experiment holds beside its data: functions and objects of the notebook, checked when they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlnb.design.term import check_name
from rlnb.envs.signals import Signal
from rlnb.errors import ExperimentError


def read_signals(given: Any) -> dict[str, Signal]:
    """Returns the signals as functions by name.

    Raises:
        ExperimentError: it is no mapping, or holds something that is no function.
        DesignError: a name cannot stand in an expression.
    """
    if not isinstance(given, Mapping):
        raise ExperimentError(
            f"signals={given!r:.80} is no mapping; write e.g. signals={{'force': lambda env: env.unwrapped.force}}"
        )
    for name, function in given.items():
        check_name(name)
        if not callable(function):
            raise ExperimentError(
                f"signals[{name!r}]={function!r:.80} is no function; give one that takes the environment and returns a number"
            )
    return dict(given)


def read_callbacks(given: Any) -> tuple[Any, ...]:
    """Returns the callbacks: SB3 callbacks or functions `f(locals, globals)`. Imports no torch.

    Raises:
        ExperimentError: it is something else, or the class of a callback instead of one.
    """
    if isinstance(given, Sequence) and not isinstance(given, str):
        callbacks = tuple(given)
    else:
        callbacks = (given,)
    for one in callbacks:
        if isinstance(one, type):
            raise ExperimentError(
                f"callbacks has the class {one.__name__}; give an object of it: {one.__name__}(…)"
            )
        if not callable(one) and not any(base.__name__ == "BaseCallback" for base in type(one).__mro__):
            raise ExperimentError(
                f"callbacks has {one!r:.80}, which is no callback; derive its class from SB3's BaseCallback, "
                "or give a function of (locals, globals)"
            )
    return callbacks


def read_names(given: Any) -> tuple[str, ...] | None:
    """Returns names of the observation's components, or None.

    Raises:
        ExperimentError: it is no list.
    """
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ExperimentError(
            f"names={given!r:.80} is no list; write one name for each component, as names=['x', 'y']"
        )
    return tuple(given)
