"""From the terms' values to the reward: weights, groups, sum or expression.

The order is fixed once, when a reward is made: ungrouped terms where they stand, each group where its
first term stands, groups without terms last. Everything is elementwise in float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.expressions.expression import BLOCK, Expression, quiet
from rlnb.design.groups import TermGroup
from rlnb.design.schedule import weight_at
from rlnb.design.shaping import Shaping
from rlnb.design.term import Term, compile_for
from rlnb.errors import ExpressionError


@dataclass(frozen=True, eq=False)
class RewardResult:
    """What a batch of n transitions is paid.

    Attributes:
        total: float32 (n,).
        terms: enabled term → float64 (n,), clipped, before its weight.
        weights: enabled term → its own weight that counted.
        groups: enabled group → float64 (n,), its value times its weight.
        group_weights: enabled group → the weight that counted.
        group_of: enabled term → its group, for those that have one.
    """

    total: Array
    terms: dict[str, Array]
    weights: dict[str, float]
    groups: dict[str, Array] = field(default_factory=dict)
    group_weights: dict[str, float] = field(default_factory=dict)
    group_of: dict[str, str] = field(default_factory=dict)

    def weight(self, name: str) -> float:
        """Returns what a term's value is multiplied by in all: its own weight times its group's."""
        group = self.group_of.get(name)
        return self.weights[name] if group is None else self.weights[name] * self.group_weights[group]

    def contribution(self, name: str) -> Array:
        """Returns a term's value times its weight and its group's, float64 (n,)."""
        with np.errstate(all="ignore"):
            return np.asarray(self.weight(name) * self.terms[name])

    def nonfinite(self) -> dict[str, int]:
        """Returns how many rows are NaN or infinite, for each term and group (and "total") that has any."""
        columns = {**self.terms, **self.groups, "total": self.total}
        counts = {name: int(np.count_nonzero(~np.isfinite(values))) for name, values in columns.items()}
        return {name: count for name, count in counts.items() if count}


class Total:
    """How a reward's terms become one number; made once for a reward.

    Args:
        terms: in order.
        groups: checked (`groups.check_groups`).
        combine: expression over group names and ungrouped terms' names; None for the sum.

    Raises:
        ExpressionError: the expression uses another name.
    """

    def __init__(
        self, terms: Sequence[Term | Shaping], groups: Sequence[TermGroup], combine: str | None
    ) -> None:
        members = {group.name: [part.name for part in terms if part.group == group.name] for group in groups}
        order = list(dict.fromkeys(part.name if part.group is None else part.group for part in terms))
        self._order = (*order, *(name for name in members if name not in order))
        self._groups = tuple(_Objective(group, members[group.name]) for group in groups if group.enabled)
        self._group_of = {part.name: part.group for part in terms if part.group is not None}
        self._combined: Expression | None = None
        if combine is not None:
            self._combined = compile_for("combine", combine)
            for name, position in self._combined.names.items():
                if name in self._group_of:
                    raise ExpressionError(
                        f"{name!r} in {combine!r:.80} is in the group {self._group_of[name]!r}; write the "
                        "group's name instead.",
                        position,
                    )
            self._combined.check(self._order)

    def __call__(
        self, terms: dict[str, Array], weights: dict[str, float], rows: int, progress: float
    ) -> RewardResult:
        """Weights and combines.

        Args:
            terms: enabled term → float64 (rows,), clipped.
            weights: enabled term → its weight.
            progress: fraction of training that is done, for groups' weights.
        """
        total = np.empty(rows, dtype=np.float32)
        if not self._groups:
            for start in range(0, rows, BLOCK):
                cut, block = _cut(terms, start, rows)
                if self._combined is None:
                    total[block] = quiet(_sum_weighted(cut, weights, block.stop - start))
                else:
                    total[block] = quiet(self._join(_weighted(cut, weights), block.stop - start))
            return RewardResult(total, terms, weights)
        found = {one.name: np.empty(rows) for one in self._groups}
        factors = {one.name: weight_at(one.weight, progress) for one in self._groups}
        for start in range(0, rows, BLOCK):
            cut, block = _cut(terms, start, rows)
            parts = _weighted(cut, weights)
            for one in self._groups:
                value = quiet(one.value(parts, block.stop - start) * factors[one.name])
                found[one.name][block] = value
                if factors[one.name] != 0.0:
                    parts[one.name] = value
            total[block] = quiet(self._join(parts, block.stop - start))
        group_of = {name: self._group_of[name] for name in terms if name in self._group_of}
        return RewardResult(total, terms, weights, found, factors, group_of)

    def _join(self, parts: dict[str, Array], rows: int) -> Array:
        if self._combined is None:
            return _sum([parts[name] for name in self._order if name in parts], rows)
        return _evaluated(self._combined, self._order, parts, rows)


class _Objective:
    """A group and the names of its terms, in order."""

    def __init__(self, group: TermGroup, members: list[str]) -> None:
        self.name, self.weight = group.name, group.weight
        self._combined = group.combined
        self._members = members

    def value(self, parts: dict[str, Array], rows: int) -> Array:
        """Returns the group's value before its weight, a fresh array."""
        if self._combined is None:
            return _sum([parts[name] for name in self._members if name in parts], rows)
        return _evaluated(self._combined, self._members, parts, rows)


def _cut(terms: dict[str, Array], start: int, rows: int) -> tuple[dict[str, Array], slice]:
    """Returns a few rows at a time: blocks that stay in the cache."""
    block = slice(start, min(start + BLOCK, rows))
    if block.stop - start == rows:
        return terms, block
    return {name: values[block] for name, values in terms.items()}, block


def _weighted(terms: dict[str, Array], weights: dict[str, float]) -> dict[str, Array]:
    """Returns what is added: terms of weight 0 are not, so that a NaN there spoils nothing."""
    return {name: values * weights[name] for name, values in terms.items() if weights[name] != 0.0}


def _sum_weighted(terms: dict[str, Array], weights: dict[str, float], rows: int) -> Array:
    """Returns `_sum` of `_weighted`: what most rewards are, at every step of training, in one go."""
    total: Array | None = None
    for name, values in terms.items():
        weight = weights[name]
        if weight != 0.0:
            part = values * weight
            total = part if total is None else np.add(total, part, out=total)
    return np.zeros(rows) if total is None else total


def _sum(parts: list[Array], rows: int) -> Array:
    if not parts:
        return np.zeros(rows)
    if len(parts) == 1:
        return parts[0]
    total = parts[0] + parts[1]
    for part in parts[2:]:
        np.add(total, part, out=total)
    return total


def _evaluated(expression: Expression, names: Sequence[str], parts: Mapping[str, Array], rows: int) -> Array:
    values: dict[str, Any] = {name: parts.get(name, _ZERO) for name in names}
    total = np.empty(rows)
    expression.fill(total, values)
    return total


_ZERO = np.float64(0.0)
