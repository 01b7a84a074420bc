"""What an experiment holds beside its data: functions and objects of the notebook, checked when they are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlnb.errors import ExperimentError


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
