"""What every operation of a state design has in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.memory import Memory
from rlnb.design.operations.components import Components
from rlnb.design.operations.image_layout import ImageLayout
from rlnb.errors import DesignError

#: float64 (n, d) and a memory → float64 (n, d'); of pictures (n, ...) → (n, ...)
Apply = Callable[[Array, Memory], Array]

Names = Sequence[str] | None


class Operation(ABC):
    """One row of a state design.

    Attributes:
        kind: its name in design files.
    """

    kind: ClassVar[str]

    @abstractmethod
    def fit(self, before: Components, key: int) -> tuple[Components, Apply]:
        """Fits the operation to the components in front of it.

        Args:
            key: its place in the design, under which it asks the memory.

        Raises:
            DesignError: a component is missing, or a name is taken.
        """

    def fit_image(self, before: ImageLayout, key: int) -> tuple[ImageLayout, Apply]:
        """Fits the operation to the picture in front of it; as `fit`.

        Raises:
            DesignError: the operation works on named numbers, or the picture does not suit it.
        """
        raise DesignError(
            f"The state operation {self.kind} works on named numbers, and at that point there is a {before}; "
            "of a picture there are only grayscale, resize, to_unit and stack."
        )


def read_names(names: object, owner: str) -> tuple[str, ...] | None:
    """Returns names as a tuple; one name may stand for itself, None for all.

    Raises:
        DesignError: they are not names, or one stands there twice.
    """
    if names is None:
        return None
    listed = (names,) if isinstance(names, str) else names
    if not isinstance(listed, list | tuple) or not all(isinstance(name, str) for name in listed):
        raise DesignError(
            f"The names of the state operation {owner} are {names!r:.60}; give a list of names."
        )
    twice = next((name for name in listed if listed.count(name) > 1), None)
    if twice is not None:
        raise DesignError(f"The state operation {owner} names {twice!r} twice; once is enough.")
    return tuple(listed)


def read_number(value: object, what: str) -> float:
    """Returns a number that is not NaN as a float.

    Raises:
        DesignError: it is something else.
    """
    plain = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not plain or math.isnan(value):  # type: ignore[arg-type]
        raise DesignError(f"The {what} is {value!r:.60}; it must be a number.")
    return float(value)  # type: ignore[arg-type]


def read_count(value: object, what: str, low: int, high: int) -> int:
    """Returns a whole number within bounds.

    Raises:
        DesignError: it is something else.
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not low <= value <= high:  # type: ignore[operator]
        raise DesignError(f"The {what} is {value!r:.60}; it must be a whole number from {low} to {high}.")
    return int(value)  # type: ignore[call-overload, no-any-return]


def as_list(values: object) -> list[object]:
    """Returns a sequence as a list; one value may stand for itself."""
    return list(values) if isinstance(values, list | tuple | np.ndarray) else [values]


def changing(places: Array, function: Callable[[Array, Memory], Array]) -> Apply:
    """Returns the step that replaces some components by a function of them."""

    def apply(x: Array, memory: Memory) -> Array:
        changed = x.copy()
        changed[:, places] = function(x[:, places], memory)
        return changed

    return apply
