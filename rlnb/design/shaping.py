"""Potential-based shaping: help on the way that does not change where the way leads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from rlnb.design.columns import Array, Columns
from rlnb.design.expressions.expression import Expression
from rlnb.design.expressions.namespace import subscript
from rlnb.design.schedule import read_weight
from rlnb.design.term import check_group, check_name, compile_for
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError, ExpressionError, did_you_mean


@dataclass(frozen=True)
class Shaping:
    """Potential-based shaping: F = gamma * Phi(s') - Phi(s), which leaves the optimal policy unchanged.

    Phi of a terminal state is 0 (otherwise a bonus is paid for ending); at truncation, where the episode
    would have gone on, Phi(s') counts as it is. Source: Ng, Harada, Russell, "Policy invariance under
    reward transformations", ICML 1999.

    Attributes:
        name: an identifier, unique in the reward.
        potential: an expression over observation components only (`x`, `obs["x"]`).
        gamma: the discount the agent is trained with; another one would change the optimal policy.
        weight: a number. A schedule or a clip would change the optimal policy, so there is none.
        enabled: as for a term; `group` likewise.
    """

    name: str
    potential: str
    gamma: float = 0.99
    weight: float = 1.0
    enabled: bool = True
    group: str | None = None
    _compiled: Expression | None = field(default=None, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        check_group(self.group, f"shaping {self.name!r}")
        object.__setattr__(self, "_compiled", compile_for(self.name, self.potential))
        number = isinstance(self.gamma, int | float) and not isinstance(self.gamma, bool)
        if not number or not 0.0 <= self.gamma <= 1.0:
            raise DesignError(
                f"The gamma of shaping {self.name!r} is {self.gamma!r}; it must lie between 0 and 1."
            )
        object.__setattr__(self, "gamma", float(self.gamma))
        weight = read_weight(self.weight, f"shaping {self.name!r}")
        if isinstance(weight, str):
            raise DesignError(
                f"The weight of shaping {self.name!r} is the schedule {weight!r}; a potential whose scale "
                "changes over training changes the optimal policy, so give a number."
            )
        object.__setattr__(self, "weight", weight)

    @property
    def clip(self) -> None:
        """Shaping is never clipped."""
        return None

    @property
    def is_environment(self) -> bool:
        return False

    def check(self, names: Mapping[str, Array]) -> None:
        """Checks that the potential uses observation components only.

        Raises:
            ExpressionError: it uses something else, or an unknown name.
        """
        assert self._compiled is not None
        components = {name[5:-2] for name in names if name.startswith('obs["')}
        self._compiled.check({*components, *(subscript("obs", name) for name in components)})

    def fill(self, out: Array, batch: Transitions) -> None:
        """Computes F into `out`, float64 (n,)."""
        assert self._compiled is not None
        before = np.empty_like(out)
        self._compiled.fill(before, _State(batch.obs))
        self._compiled.fill(out, _State(batch.next_obs))
        out[batch.terminated] = 0.0
        out *= self.gamma
        out -= before


class _State(Mapping[str, Array]):
    """The components of one observation, plain or as `obs["x"]`, whichever observation it is."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def __getitem__(self, name: str) -> Array:
        plain = name[5:-2] if name.startswith('obs["') else name
        if plain not in self._columns:
            raise ExpressionError(
                f"A potential uses observation components only, and {name!r} is none of them."
                f"{did_you_mean(plain, self._columns)} There are: {', '.join(self._columns)}."
            )
        values = self._columns[plain]
        return values if values.dtype.char == "d" else values.astype(np.float64)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
