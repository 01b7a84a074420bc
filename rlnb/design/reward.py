"""RewardSpec: what the agent is paid, as a value.

Arithmetic: float64, terms in the order they are listed, combined elementwise, cast once to float32. No
BLAS and no reductions over an axis, so that one row, eight environments and a million recorded rows give
the same bytes. A term is clipped first, then weighted. A term of weight 0 is still computed and logged,
but not added, so that a diagnostic that is NaN cannot spoil the reward.

The environment's own reward enters as SB3's vector environments pass it on, rounded to float32.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.groups import TermGroup, check_combine, check_groups
from rlnb.design.measure import as_paid, clipped, measure
from rlnb.design.rowwise import differing_row
from rlnb.design.schedule import weight_at
from rlnb.design.shaping import Shaping
from rlnb.design.term import Term, TermFunction, marked_terms, name_of, reward_term
from rlnb.design.total import RewardResult, Total
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError, did_you_mean

__all__ = ["RewardResult", "RewardSpec", "Shaping", "Term", "TermGroup", "reward_term"]


@dataclass(frozen=True)
class RewardSpec:
    """A reward: terms, and how they are combined.

    Attributes:
        terms: in the order in which they are summed; a bare function counts as `Term(its name, it)`.
        combine: None for the weighted sum, or an expression in which each term's name stands for its
            weighted value (0 if it is not enabled), and a group's name for its terms.
        groups: objectives that terms belong to by their `group`.
    """

    terms: Sequence[Term | Shaping] = field(default_factory=lambda: (Term("env", "reward"),))
    combine: str | None = None
    groups: Sequence[TermGroup] = ()
    _total: Total | None = field(default=None, init=False, compare=False, repr=False)
    _enabled: tuple[Term | Shaping, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        given: Sequence[Any] = [self.terms] if isinstance(self.terms, Term | Shaping) else self.terms
        if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
            given = [given]  # refused below, by its value
        functions = [callable(part) and not isinstance(part, type) for part in given]
        terms = tuple(
            Term(name_of(part), part) if is_function else part
            for part, is_function in zip(given, functions, strict=True)
        )
        for part in terms:
            if not isinstance(part, Term | Shaping):
                raise DesignError(
                    f"A reward is made of terms, not of {part!r:.60}; write rlnb.Term('name', 'expression'), "
                    "or give a function of a batch."
                )
        names = [part.name for part in terms]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise DesignError(f"Two terms are called {twice!r}; give each its own name.")
        if not terms:
            raise DesignError("A reward needs at least one term; RewardSpec.env() is the environment's own.")
        object.__setattr__(self, "terms", terms)
        listed: Any = self.groups
        groups = tuple(listed) if isinstance(listed, list | tuple) else (listed,)
        check_groups(terms, groups)
        object.__setattr__(self, "groups", groups)
        if self.combine is not None:
            check_combine(self.combine, "the reward")
        object.__setattr__(self, "_total", Total(terms, groups, self.combine))
        off = {group.name for group in groups if not group.enabled}
        on = tuple(part for part in terms if part.enabled and part.group not in off)
        object.__setattr__(self, "_enabled", on)

    @classmethod
    def env(cls) -> RewardSpec:
        """Returns the environment's own reward, unchanged."""
        return cls()

    @property
    def is_identity(self) -> bool:
        """The total is the environment's own reward."""
        plain = self.combine is None and not self.groups
        return plain and len(self.terms) == 1 and self.terms[0].is_environment

    @property
    def enabled(self) -> tuple[Term | Shaping, ...]:
        """The terms that are computed: those of a group only while it is enabled."""
        return self._enabled

    @property
    def discount(self) -> float | None:
        """The gamma that all of its shapings share: the agent's; None without shaping, or where they differ."""
        gammas = {part.gamma for part in self.enabled if isinstance(part, Shaping)}
        return gammas.pop() if len(gammas) == 1 else None

    @property
    def unbound(self) -> tuple[str, ...]:
        """Names of Python functions that are still missing."""
        return tuple(
            str(part.python)
            for part in self.terms
            if isinstance(part, Term) and part.python and not part.function
        )

    def bind(self, functions: Mapping[str, TermFunction] | None = None) -> RewardSpec:
        """Returns the reward with its Python terms' functions filled in by name.

        Args:
            functions: name → function; None takes those marked with `@rlnb.reward_term`. Names that are
                not found stay as they are; a term that is already bound is bound anew.
        """
        known = marked_terms() if functions is None else functions
        return replace(self, terms=[_bound(part, known) for part in self.terms])

    def check(self, batch: Transitions) -> None:
        """Checks that every name is known to a batch and every Python term is there.

        Raises:
            DesignError: naming the term, and the nearest known name.
        """
        for part in self.enabled:
            part.check(batch.namespace)

    def evaluate(self, batch: Transitions, *, progress: float = 0.0) -> RewardResult:
        """Pays a batch.

        Args:
            progress: fraction of training that is done, 0 to 1, for weights with a schedule.

        Raises:
            DesignError: a name is unknown or a Python term fails.
        """
        return self.score(self.measure(batch), progress=progress, rows=len(batch))

    def measure(self, batch: Transitions) -> dict[str, Array]:
        """Returns each enabled term's value before clip and weight, float64 (n,).

        This is the slow half: keep it while weights, clips and the combination change.
        """
        return measure(self.enabled, as_paid(batch))

    def score(
        self, measured: Mapping[str, Array], *, progress: float = 0.0, rows: int | None = None
    ) -> RewardResult:
        """Clips, weights and combines what `measure` returned; the fast half.

        Args:
            rows: number of transitions, needed only where no term is enabled.
        """
        terms = {part.name: clipped(part, measured[part.name]) for part in self.enabled}
        return self.pay(terms, progress=progress, rows=rows)

    def pay(self, terms: dict[str, Array], *, progress: float = 0.0, rows: int | None = None) -> RewardResult:
        """Weights and combines terms that are clipped already: the part of `score` that a weight changes.

        Args:
            terms: each enabled term's value, float64 (n,), in their order.
            rows: number of transitions, needed only where no term is enabled.
        """
        weights = {part.name: weight_at(part.weight, progress) for part in self.enabled}
        if rows is None:
            rows = len(next(iter(terms.values()), ()))
        with np.errstate(all="ignore"):
            assert self._total is not None
            return self._total(terms, weights, rows, progress)

    def check_rowwise(self, batch: Transitions) -> None:
        """Checks that each Python term treats every row for itself: whole, halves and single rows alike.

        Terms with a `state_dict` are left out: they remember on purpose.

        Raises:
            DesignError: naming the term and the first row that came out differently.
        """
        seen = as_paid(batch)
        for part in self.enabled:
            if not isinstance(part, Term) or part.function is None or hasattr(part.function, "state_dict"):
                continue
            found = differing_row(partial(_alone, part), seen)
            if found is not None:
                row, whole, alone = found
                raise DesignError(
                    f"The Python term {part.name!r} gives row {row} the value {whole!r} within the whole batch "
                    f"but {alone!r} with other rows around it; it must look at each row for itself, without "
                    "mean, cumsum or memory (prev_action, next_obs and t are in the batch)."
                )

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of those Python terms that have one, by term."""
        return {name: function.state_dict() for name, function in self._stateful().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Puts back what `state_dict` returned.

        Raises:
            DesignError: the state is of another reward.
        """
        stateful = self._stateful()
        for name in {**state, **stateful}:
            if name not in stateful or name not in state:
                raise DesignError(
                    f"The saved state of the reward does not fit: term {name!r} is in only one of the two."
                    f"{did_you_mean(name, stateful)}"
                )
            stateful[name].load_state_dict(state[name])

    def _stateful(self) -> dict[str, Any]:
        bound = [(part.name, part.function) for part in self.terms if isinstance(part, Term)]
        return {name: function for name, function in bound if hasattr(function, "state_dict")}


def _alone(part: Term, batch: Transitions) -> Array:
    return measure([part], batch)[part.name]


def _bound(part: Term | Shaping, known: Mapping[str, TermFunction]) -> Term | Shaping:
    if isinstance(part, Term) and part.python is not None and part.python in known:
        return replace(part, function=known[part.python])
    return part
