"""The terms against each other: one that drowns the rest, one that never fires, two that say the same."""

from __future__ import annotations

from functools import partial

import numpy as np

from rlnb.design.checks.finding import Finding, Severity
from rlnb.design.checks.reward.payments import Payments, finite
from rlnb.design.checks.wording import counted, listed, number, percent
from rlnb.design.columns import Array

#: share of the variance above which a term leaves nothing to the others
DOMINATES = 0.95

#: correlation above which two terms say the same
CORRELATED = 0.95

_DOMINATED_WHY = "The agent hardly notices what the other terms ask for."
_NEVER_WHY = "A term that is always 0 teaches nothing; its condition may be wrong, or no episode got there."
_CORRELATED_WHY = (
    "Two terms that move together are one term with a larger weight, and hide each other's effect."
)


def check_dominated(payments: Payments) -> Finding:
    """Finds the term that has nearly all of the reward's variance, per step and per episode alike."""
    names = [name for name in _counting(payments) if name not in payments.shapings]
    if len(names) < 2:
        what = listed([repr(name) for name in names]) or "no term"
        return Finding(
            "reward.dominated", Severity.FINE, f"Only {what} counts: nothing can be dominated.", _DOMINATED_WHY
        )  # fmt: skip
    by_step, by_episode = _step_shares(payments, names), _episode_shares(payments, names)
    by_both = {name: _least(by_step, by_episode, name) for name in names}
    top = max(by_both, key=lambda name: by_both[name])
    share = by_both[top]
    parts = [
        f"{percent(shares[top])} of the reward's variance {how}"
        for shares, how in ((by_step, "from step to step"), (by_episode, "between episodes"))
        if shares
    ]
    if not parts:
        return Finding("reward.dominated", Severity.FINE, "The reward does not vary at all.", _DOMINATED_WHY)
    sentence = f"{top!r} makes up {' and '.join(parts)} ({payments.among})."
    if share <= DOMINATES:
        return Finding(
            "reward.dominated", Severity.FINE, sentence, _DOMINATED_WHY, value=share, names=(top,)
        )  # fmt: skip
    others = [name for name in names if name != top]
    advice = _balance(payments, top, others)
    sentence = sentence[:-1] + f"; hidden: {listed([repr(name) for name in others])}."
    return Finding(
        "reward.dominated", Severity.WARNING, sentence, _DOMINATED_WHY, advice, value=share, names=(top, *others)
    )  # fmt: skip


def check_never_fires(payments: Payments) -> Finding:
    """Finds the terms that are 0 in every row."""

    def span(name: str) -> tuple[float, float]:
        values = finite(payments.result.terms[name])
        return float(values.min()), float(values.max())

    key = payments.term_keys
    spans = {name: payments.keep(("span", key[name]), partial(span, name)) for name in key}
    silent = tuple(name for name, ends in spans.items() if ends == (0.0, 0.0))
    constant = [f"{name!r} ({number(low)})" for name, (low, high) in spans.items() if low == high != 0.0]
    steps = counted(len(payments.batch), "step")
    if not silent:
        who = "The term is" if len(spans) == 1 else f"All {len(spans)} terms are"
        sentence = f"{who} other than 0 somewhere in {steps}"
        sentence += f"; the same at every step: {listed(constant)}." if constant else "."
        return Finding("reward.never_fires", Severity.FINE, sentence, _NEVER_WHY, value=0.0)
    names = listed([repr(name) for name in silent])
    return Finding(
        "reward.never_fires",
        Severity.WARNING,
        f"{names} {'is' if len(silent) == 1 else 'are'} 0 in all {steps}.",
        _NEVER_WHY,
        f"Check the condition of {silent[0]!r}, record episodes in which it should fire, or remove it.",
        value=float(len(silent)),
        names=silent,
    )


def check_correlated(payments: Payments) -> Finding:
    """Finds pairs of terms whose values rise and fall together."""
    names = _counting(payments)
    key = ("correlated", tuple((name, payments.term_keys[name]) for name in names))
    pairs = payments.keep(key, lambda: _pairs(payments, names))
    if not pairs:
        return Finding(
            "reward.correlated", Severity.FINE, "There are no two varying terms to compare.", _CORRELATED_WHY
        )  # fmt: skip
    r, one, other = pairs[0]
    sentence = f"{one!r} and {other!r} are correlated by r = {r:.3f} in {payments.among}"
    if abs(r) <= CORRELATED:
        return Finding(
            "reward.correlated", Severity.FINE, f"{sentence}, more than any other pair.", _CORRELATED_WHY,
            value=abs(r), names=(one, other),
        )  # fmt: skip
    close = [pair for pair in pairs if abs(pair[0]) > CORRELATED]
    more = f"; so are {counted(len(close) - 1, 'more pair')}" if len(close) > 1 else ""
    kept = number(
        payments.result.weight(one)
        + np.sign(r) * payments.result.weight(other) * _ratio(payments, one, other)
    )
    return Finding(
        "reward.correlated",
        Severity.WARNING,
        f"{sentence}{more}.",
        _CORRELATED_WHY,
        f"Keep one of them: without {other!r}, a weight of {kept} for {one!r} pays about the same.",
        value=abs(r),
        names=tuple(dict.fromkeys(name for pair in close for name in pair[1:])),
    )


def _counting(payments: Payments) -> list[str]:
    """The terms that are added: those of a weight."""
    return [name for name in payments.result.terms if payments.result.weight(name) != 0.0]


def _step_shares(payments: Payments, names: list[str]) -> dict[str, float]:
    """Returns each term's share of the variance from step to step; {} if there is none."""
    small = payments.sampled_terms
    parts = {name: finite(small[name]) * payments.result.weight(name) for name in names}
    if payments.reward.combine is None and not any(group.combine for group in payments.reward.groups):
        return _shares(parts, np.sum(list(parts.values()), axis=0))
    # terms are combined otherwise than by a sum: what is missing where one stands still at its mean
    total = payments.sampled_total
    still = {name: {**small, name: np.full(len(total), finite(small[name]).mean())} for name in names}
    left = {name: finite(payments.reward.pay(still[name]).total) for name in names}
    return _shares({name: total - left[name] for name in names}, total)


def _episode_shares(payments: Payments, names: list[str]) -> dict[str, float]:
    if len(payments.starts) < 3:
        return {}
    parts = {name: payments.term_sums(name) * payments.result.weight(name) for name in names}
    return _shares(parts, np.sum(list(parts.values()), axis=0))


def _shares(parts: dict[str, Array], total: Array) -> dict[str, float]:
    """Returns |Cov(part, total)| for each part, scaled to add up to 1; {} if the total does not vary.

    Without the absolute value these are the shares of the variance. With it two terms that cancel each
    other (Cov of opposite signs) do not count as one that drowns the other.
    """
    away = total - total.mean()
    variance = float(away @ away)
    if variance <= 1e-18 * max(float(total @ total), 1e-300):
        return {}
    shares = {name: abs(float(part @ away)) for name, part in parts.items()}
    whole = sum(shares.values())
    return {name: share / whole for name, share in shares.items()} if whole else {}


def _least(by_step: dict[str, float], by_episode: dict[str, float], name: str) -> float:
    return min([shares[name] for shares in (by_step, by_episode) if shares], default=0.0)


def _balance(payments: Payments, top: str, others: list[str]) -> str:
    """Proposes the weight at which the largest hidden term varies a third as much as the dominating one."""
    spreads = {name: float(finite(payments.sampled_terms[name]).std()) for name in (top, *others)}
    if not spreads[top]:
        spreads = {name: float(payments.term_sums(name).std()) for name in (top, *others)}
    weight = payments.result.weights
    moving = {name: abs(weight[name]) * spreads[name] for name in others if spreads[name] > 0.0}
    if not moving:
        return f"Lower the weight of {top!r} (now {number(weight[top])})."
    other = max(moving, key=lambda name: moving[name])
    wanted = weight[other] * abs(weight[top]) * spreads[top] / (3.0 * moving[other])
    lower = weight[top] * 3.0 * moving[other] / (abs(weight[top]) * spreads[top])
    return (
        f"Raise the weight of {other!r} (now {number(weight[other])}, try {number(_round(wanted))}) or lower that "
        f"of {top!r} (now {number(weight[top])}, try {number(_round(lower))})."
    )


def _round(value: float) -> float:
    return float(f"{value:.2g}")


def _pairs(payments: Payments, names: list[str]) -> list[tuple[float, str, str]]:
    """Returns (r, one, other) of all pairs of varying terms, the strongest first."""
    moved = {}
    for name in names:
        values = finite(payments.sampled_terms[name])
        away = values - values.mean()
        size = float(np.sqrt(away @ away))
        if size > 1e-9 * max(float(np.abs(values).max()), 1e-300) * np.sqrt(len(values)):
            moved[name] = away / size
    varying = list(moved)
    found = [
        (float(moved[one] @ moved[other]), one, other)
        for place, one in enumerate(varying)
        for other in varying[place + 1 :]
    ]
    return sorted(found, key=lambda pair: -abs(pair[0]))


def _ratio(payments: Payments, one: str, other: str) -> float:
    small = payments.sampled_terms
    return float(finite(small[other]).std() / finite(small[one]).std())
