"""Help on the way that changes where the way leads: shaping that is not potential-based.

A reward F added to another one leaves every optimal policy optimal exactly if F = gamma * Phi(s') - Phi(s).
Source: Ng, Harada, Russell, "Policy invariance under reward transformations", ICML 1999.

A term is asked what it would pay between other states. If F(s, s') splits into a part of s and a part of
s', and the one is -gamma' times the other, it is a difference of a state function with the discount gamma'
(that is certain). A term that uses both states of a component and does not split is shaping only if it
pays for going there and back; a cost of moving does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rlnb.design.checks.finding import Finding, Severity
from rlnb.design.checks.reward.payments import Payments
from rlnb.design.checks.reward.presence import paid_for_presence
from rlnb.design.checks.reward.probe import (
    may_be_asked,
    shared_components,
    value_of,
    with_components,
    with_states,
)
from rlnb.design.checks.wording import listed, number
from rlnb.design.columns import Array
from rlnb.design.measure import as_paid
from rlnb.design.shaping import Shaping
from rlnb.design.term import Term
from rlnb.design.transitions import Transitions

#: states between which a term is asked what it would pay
_ASKED = 400

#: relative error up to which two numbers of a term count as equal; recorded states are float32
_EXACT = 1e-5

_WHY = "Shaping that is not gamma * Phi(s') - Phi(s) changes which policy is best (Ng, Harada, Russell 1999)."


@dataclass(frozen=True)
class _Difference:
    """A term of the form gamma * Phi(s') - Phi(s).

    Attributes:
        gamma: the discount that is in it.
        potential: Phi over the asked states, up to a constant, before the term's weight.
        constant: that constant, or NaN where gamma is 1 and nothing tells it.
    """

    gamma: float
    potential: Array
    constant: float

    @property
    def span(self) -> float:
        return float(self.potential.max() - self.potential.min())


def check_shaping(payments: Payments) -> list[Finding]:
    """Examines every enabled term of a weight; returns what is wrong, or one finding that nothing is."""
    rows = payments.keep("asked", lambda: _asked_rows(payments.batch))
    found = []
    asked = 0
    if len(rows) >= 4:
        batch = payments.keep("asked batch", lambda: as_paid(payments.batch.slice(rows)))
        for part in payments.reward.enabled:
            if payments.result.weight(part.name) == 0.0:
                continue
            finding = None
            if isinstance(part, Shaping):
                asked += 1
                finding = _of_shaping(payments, part, batch)
            elif may_be_asked(part) and not part.is_environment:
                asked += 1
                finding = _of_term(payments, part, batch)
            if finding is not None:
                found.append(finding)
    if found:
        return found
    names = listed([repr(name) for name in payments.shapings])
    fine = f" ({names} {'is' if len(payments.shapings) == 1 else 'are'} potential-based)" if names else ""
    return [
        Finding(
            "reward.shaping", Severity.FINE,
            f"{_none_of(asked)} is shaping that changes the best policy{fine}.",
            _WHY, value=0.0,
        )
    ]  # fmt: skip


def _none_of(asked: int) -> str:
    what = f"None of the {asked} terms" if asked > 1 else "No term"
    return f"{what} besides the environment's reward"


def _of_shaping(payments: Payments, part: Shaping, batch: Transitions) -> Finding | None:
    if part.name in payments.shapings:
        return None
    weight = payments.result.weight(part.name)
    if not np.isclose(part.gamma, payments.gamma, atol=1e-9):
        apart = value_of(part, batch) - value_of(replace(part, gamma=payments.gamma), batch)
        most = float(np.abs(weight * apart).max())
        return Finding(
            "reward.shaping", Severity.WARNING,
            f"The shaping {part.name!r} discounts by {part.gamma:g}, the agent by {payments.gamma:g}: up to "
            f"{number(most)} a step is paid beyond a potential.",
            _WHY, f"Set gamma={payments.gamma:g} in {part.name!r}.", value=most, names=(part.name,),
        )  # fmt: skip
    return Finding(
        "reward.shaping", Severity.HINT,
        f"The shaping {part.name!r} enters an expression (combine) instead of a sum.",
        _WHY, f"Add {part.name!r} outside the expression, unless it is only added there.", names=(part.name,),
    )  # fmt: skip


def _of_term(payments: Payments, part: Term, batch: Transitions) -> Finding | None:
    shared: tuple[str, ...] | None = None
    if part.expression is not None:
        shared = shared_components(part, batch)
        if not shared:
            return paid_for_presence(payments, part)
    weight = payments.result.weight(part.name)
    key = ("difference", payments.term_keys[part.name], shared, payments.gamma)
    difference, back = payments.keep(key, lambda: _examine(part, batch, shared, payments.gamma))
    if difference is not None:
        return _of_difference(payments, part, difference, weight)
    if shared is None or not np.isfinite(back):
        return None  # what a Python function does with two states cannot be told from outside
    paid, size = weight * back, abs(weight) * float(np.abs(value_of(part, batch)).mean())
    if paid <= 1e-6 * size:
        return None
    names = listed([f"{name} and next_{name}" for name in shared])
    return Finding(
        "reward.shaping", Severity.WARNING,
        f"{part.name!r} uses {names} and is paid {number(paid)} on average for one step there and the same step "
        f"back: {number(paid / 2 * payments.limit)} in {payments.limit:,} steps of going to and fro.",
        _WHY,
        f"Pay steps back as much negatively (no max, abs or clip around the difference), or replace {part.name!r} by "
        f"rlnb.Shaping({part.name!r}, '…', gamma={payments.gamma:g}).",
        value=paid, names=(part.name,),
    )  # fmt: skip


def _of_difference(payments: Payments, part: Term, found: _Difference, weight: float) -> Finding | None:
    gamma = payments.gamma
    code = part.expression or f"the function {part.python}"
    if abs(found.gamma - gamma) <= _EXACT:
        ended = payments.batch.terminated.any()
        if not ended or not np.isfinite(found.constant):
            return None
        most = float(np.abs(weight * (found.potential + found.constant)).max())
        return Finding(
            "reward.shaping", Severity.HINT,
            f"{part.name!r} is a potential written by hand: it pays for ending, too, by gamma times Phi of the last "
            f"state (up to {number(gamma * most)} in the states seen), where a potential must count 0.",
            _WHY, f"Write rlnb.Shaping({part.name!r}, '…', gamma={gamma:g}): it does that.",
            value=gamma * most, names=(part.name,),
        )  # fmt: skip
    # F is the shaping of the agent's gamma plus (found.gamma - gamma) * Phi(s'): pay for where one is
    beyond = weight * (found.gamma - gamma)
    extra, end = abs(beyond) * found.span, "highest" if beyond > 0.0 else "lowest"
    others = [
        name
        for name in payments.result.terms
        if name != part.name and payments.result.weight(name) != 0.0 and name not in payments.shapings
    ]
    what = "has no gamma" if found.gamma == 1.0 else f"has the discount {number(found.gamma)}"
    sentence = (
        f"{part.name!r} ({code}) is Phi(s') - Phi(s) and {what}; to an agent that discounts by {gamma:g} "
        f"it is worth up to {number(extra)} more a step to stay where Phi is {end}."
    )
    if not others:
        return Finding(
            "reward.shaping", Severity.HINT, f"{sentence} It is all there is, so it is the aim and no shaping.",
            _WHY, value=extra, names=(part.name,),
        )  # fmt: skip
    return Finding(
        "reward.shaping", Severity.WARNING, sentence, _WHY,
        f"Replace {part.name!r} by rlnb.Shaping({part.name!r}, {_potential_text(part)!r}, gamma={gamma:g}), or leave "
        "it if this progress is the aim itself.",
        value=extra, names=(part.name,),
    )  # fmt: skip


def _examine(
    part: Term, batch: Transitions, shared: tuple[str, ...] | None, gamma: float
) -> tuple[_Difference | None, float]:
    """Returns the difference that the term is, if it is one, and what going there and back pays."""
    order = np.random.default_rng(1).permutation(len(batch))
    state = batch.obs.matrix
    middle = state[len(state) // 2]

    def paid(before: Array, after: Array) -> Array:
        obs = with_components(batch.obs, before, shared)
        next_obs = with_components(batch.next_obs, after, shared)
        return value_of(part, with_states(batch, obs, next_obs))

    stay, go, come = paid(middle, middle), paid(middle, state), paid(state, middle)
    after, before = go - stay, come - stay
    there_and_back = value_of(part, batch) + paid(batch.next_obs.matrix, batch.obs.matrix)
    back = float(there_and_back.mean())
    size = float(np.abs(before).max())
    if not np.isfinite(size) or size == 0.0 or not np.abs(after).max() > 0.0:
        return None, back
    # additive: F(s, s') = F(s, m) + F(m, s') - F(m, m) for a state m in the middle
    mixed = paid(state, state[order]) - stay
    inside = float(-(after @ before) / (before @ before))
    splits = np.abs(mixed - before - after[order]).max() <= _EXACT * size
    if not splits or np.abs(after + inside * before).max() > _EXACT * size or inside < 0.5:
        return None, back
    inside = 1.0 if abs(inside - 1.0) <= _EXACT else gamma if abs(inside - gamma) <= _EXACT else inside
    constant = float(stay.mean() / (inside - 1.0)) if inside != 1.0 else np.nan
    return _Difference(inside, -before, constant), back


def _asked_rows(batch: Transitions) -> Array:
    """Returns some rows that do not end an episode, spread over the batch."""
    rows = np.flatnonzero(~batch.terminated & ~batch.truncated)
    if len(rows) <= _ASKED:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, _ASKED, replace=False))


def _potential_text(part: Term) -> str:
    """Returns the potential where it can be read off, as in `next_x - x`."""
    text = str(part.expression or "").replace(" ", "")
    after, _, before = text.partition("-")
    return before if after == f"next_{before}" else "…"
