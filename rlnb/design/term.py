"""A reward's terms: an expression, or a Python function from a notebook's cell."""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from rlnb.design.columns import Array, UnknownName
from rlnb.design.expressions.expression import Expression, compile_expression
from rlnb.design.schedule import Weight, read_weight
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError, ExpressionError, did_you_mean

#: a Python term: a batch of n transitions → (n,) numbers, each row for itself
TermFunction = Callable[[Transitions], Any]

F = TypeVar("F", bound=TermFunction)

_MARKED: dict[str, TermFunction] = {}


def reward_term(function: F) -> F:
    """Marks a function `f(batch) -> (n,)` as a reward term, so that design files find it by its name.

    The function must treat each row for itself: `batch.prev_action`, `batch.next_obs` and `batch.t` are
    there so that it need not look at other rows. This is checked (`RewardSpec.check_rowwise`). A term
    with state is an object with `__call__`, `state_dict` and `load_state_dict`.
    """
    given: object = function
    if not callable(given) or isinstance(given, type):
        raise DesignError(
            f"@rlnb.reward_term marks a function of a batch, not {given!r:.60}; write it above 'def'."
        )
    _MARKED[name_of(function)] = function
    return function


def marked_terms() -> dict[str, TermFunction]:
    """Returns every function marked in this process by name; the latest definition of a name counts."""
    return dict(_MARKED)


@dataclass(frozen=True)
class Term:
    """One part of a reward.

    Attributes:
        name: an identifier, unique in the reward.
        expression: over the names of a batch (`Transitions.namespace`); a function given here becomes a
            Python term.
        weight: a number, or a schedule such as "lin_1" (`schedule`).
        clip: (low, high), applied to the term's value before the weight.
        enabled: a term that is not enabled is neither computed nor logged.
        python: the name by which a Python term's function is found.
        group: name of the `TermGroup` it belongs to, if any.
        function: the Python term itself; not part of the design file.
    """

    name: str
    expression: str | TermFunction | None = None
    weight: Weight = 1.0
    clip: tuple[float, float] | None = None
    enabled: bool = True
    python: str | None = None
    function: TermFunction | None = field(default=None, compare=False, repr=False)
    group: str | None = None
    _compiled: Expression | None = field(default=None, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        if callable(self.expression):
            object.__setattr__(self, "function", self.expression)
            object.__setattr__(self, "expression", None)
        if self.function is not None and self.python is None:
            object.__setattr__(self, "python", name_of(self.function))
        if (self.expression is None) == (self.python is None):
            raise DesignError(
                f"Term {self.name!r} needs either an expression or a Python function, one of the two."
            )
        if self.expression is not None and not isinstance(self.expression, str):
            raise DesignError(
                f"The expression of term {self.name!r} is {self.expression!r:.60}; write a text such as '-abs(x)'."
            )
        if not isinstance(self.enabled, bool):
            raise DesignError(
                f"The enabled of term {self.name!r} is {self.enabled!r:.60}; it must be true or false."
            )
        check_group(self.group, f"term {self.name!r}")
        object.__setattr__(self, "weight", read_weight(self.weight, f"term {self.name!r}"))
        object.__setattr__(self, "clip", read_clip(self.clip, self.name))
        if isinstance(self.expression, str):
            object.__setattr__(self, "_compiled", compile_for(self.name, self.expression))

    @property
    def is_environment(self) -> bool:
        """The term is the environment's own reward, unchanged."""
        return self.expression == "reward" and self.weight == 1.0 and self.clip is None and self.enabled

    @property
    def names(self) -> tuple[str, ...]:
        """The names of a batch that the expression uses; () for a Python term."""
        return () if self._compiled is None else tuple(self._compiled.names)

    def check(self, names: Mapping[str, Array]) -> None:
        """Checks the term's names against a batch's namespace.

        Raises:
            DesignError: a name is unknown, or the Python function is missing.
        """
        if self._compiled is not None:
            self._compiled.check(names)
        elif self.function is None:
            raise self._unbound()

    def fill(self, out: Array, batch: Transitions) -> None:
        """Computes the term before clip and weight into `out`, float64 (n,).

        Raises:
            DesignError: a Python term is missing, fails or returns something else than n numbers.
        """
        if self._compiled is not None:
            try:
                self._compiled.fill(out, batch.namespace)
            except UnknownName as error:
                raise DesignError(f"In {self.name!r}: {error}") from None
            return
        function = self.function
        if function is None:
            raise self._unbound()
        try:
            found = np.asarray(function(batch.read_only))
        except (Exception, SystemExit) as error:
            hint = "; copy the array before you change it" if "read-only" in str(error) else ""
            raise DesignError(
                f"The Python term {self.name!r} failed on a batch of {len(batch)} transitions: "
                f"{type(error).__name__}: {error}{hint}"
            ) from error
        if found.shape != (len(batch),) or found.dtype.kind not in "biuf":
            raise DesignError(
                f"The Python term {self.name!r} returned {found.dtype} of shape {found.shape} for "
                f"{len(batch)} transitions; it must return one number for each, shape ({len(batch)},)."
            )
        out[...] = found

    def _unbound(self) -> DesignError:
        near = did_you_mean(str(self.python), _MARKED)
        return DesignError(
            f"The Python term {self.name!r} needs the function {self.python!r}, which is not defined here.{near} "
            f"Run the cell with '@rlnb.reward_term' above 'def {self.python}(batch)', or bind it."
        )


def check_name(name: object) -> None:
    """Checks that a name can stand in an expression.

    Raises:
        DesignError: it is not an identifier.
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise DesignError(f"{name!r} cannot be a name; use letters, digits and _, as in 'soft_landing'.")


def check_group(group: object, owner: str) -> None:
    """Checks a term's group: a name, or None.

    Raises:
        DesignError: it is neither.
    """
    if group is not None and not isinstance(group, str):
        raise DesignError(f"The group of {owner} is {group!r:.60}; it must be a group's name.")


def compile_for(owner: str, text: str) -> Expression:
    """Compiles an expression and says whose it is if it is wrong.

    Raises:
        ExpressionError: as `compile_expression`, with the owner's name in front.
    """
    try:
        return compile_expression(text)
    except ExpressionError as error:
        raise ExpressionError(f"In {owner!r}: {error}", error.position) from None


def read_clip(clip: object, name: str) -> tuple[float, float] | None:
    """Returns a clip as (low, high) floats.

    Raises:
        DesignError: it is not two numbers in order.
    """
    if clip is None:
        return None
    if isinstance(clip, list | tuple) and len(clip) == 2:
        low, high = clip
        numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in clip)
        if numbers and not math.isnan(low) and not math.isnan(high) and low <= high:
            return (float(low), float(high))
    raise DesignError(
        f"The clip of term {name!r} is {clip!r}; it must be [low, high], for example [-1.0, 1.0]."
    )


def name_of(function: TermFunction) -> str:
    """Returns the name of a Python term's function, or of its class.

    Raises:
        DesignError: it has none, as a lambda.
    """
    name = getattr(function, "__name__", None) or type(function).__name__
    if not str(name).isidentifier():
        raise DesignError(
            f"A reward term needs a name of its own, and {name!r} is none; write it with 'def'."
        )
    return str(name)
