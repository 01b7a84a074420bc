"""A bonus that is paid where time runs out, which a value function cannot foresee."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from rlnb.design.checks.finding import Finding, Severity
from rlnb.design.checks.reward.payments import Payments, finite
from rlnb.design.checks.reward.probe import may_be_asked, value_of
from rlnb.design.checks.wording import counted, number
from rlnb.design.columns import Array
from rlnb.design.measure import as_paid
from rlnb.design.shaping import Shaping
from rlnb.design.term import Term

#: spreads of usual changes from step to step by which a last step's change is out of line
_OUT_OF_LINE = 6.0

#: truncated rows looked at
_MOST = 2_000

_WHY = (
    "The agent does not see the clock, so its value function cannot foresee what is paid when time runs out."
)


def check_truncation(payments: Payments) -> Finding:
    """Compares the last step of truncated episodes with the steps before, and asks terms about the end."""
    ends = payments.ends[payments.is_truncated]
    if not len(ends):
        return Finding(
            "reward.truncation", Severity.FINE, "No recorded episode was truncated.", _WHY
        )  # fmt: skip
    ends = ends[:_MOST]
    for part in payments.reward.enabled:
        weight = payments.result.weight(part.name)
        if weight == 0.0 or isinstance(part, Shaping) or part.is_environment or not may_be_asked(part):
            continue
        key = ("truncated", payments.term_keys[part.name])
        bonus = weight * payments.keep(key, partial(_bonus, payments, part, ends))
        if bonus != 0.0:
            return _found(
                payments, f"{part.name!r} pays {number(bonus)} more on average where an episode is truncated",
                part.name, bonus, ends,
            )  # fmt: skip
    episodes = counted(len(ends), "truncated episode")
    jump, usual = _jump(payments.total, payments, ends)
    enough = 0.05 * _size(payments)
    columns = [("", payments.total, 1.0)]
    columns += [
        (name, values, payments.result.weight(name)) for name, values in payments.result.terms.items()
    ]
    for name, values, weight in columns:
        # a term's jump is judged against that term: another one that varies much could hide it
        leap, common = (weight * one for one in _jump(values, payments, ends))
        if abs(leap) > _OUT_OF_LINE * abs(common) and abs(leap) > enough:
            name = name or _responsible(payments, ends, leap)
            what = f"{name!r}" if name else "The reward"
            return _found(
                payments,
                f"{what} pays {number(leap)} more in the last step of {episodes} than in the step before (median), "
                f"where steps usually change by up to {number(abs(common))}",
                name, leap, ends,
            )  # fmt: skip
    return Finding(
        "reward.truncation",
        Severity.FINE,
        f"The last step of {episodes} pays {number(jump)} more in the median than the step before, where steps "
        f"usually change by up to {number(usual)}.",
        _WHY,
        value=jump,
    )


def _found(payments: Payments, what: str, name: str, value: float, ends: Array) -> Finding:
    rows = tuple(int(row) for row in ends[:5])
    who = repr(name) if name else "the bonus"
    return Finding(
        "reward.truncation", Severity.WARNING, f"{what}.", _WHY,
        f"Pay {who} for the state that is wanted, at every step, or let the environment terminate there; or add "
        "the time left to the observation.",
        value=value, names=(name,) if name else (), rows=rows,
    )  # fmt: skip


def _bonus(payments: Payments, part: Term, ends: Array) -> float:
    """Returns what a term pays more because these rows are truncated, before its weight."""
    last = as_paid(payments.batch.slice(ends))
    running = replace(last, truncated=np.zeros(len(ends), dtype=bool))
    apart = value_of(part, last) - value_of(part, running)
    return float(apart.mean()) if np.isfinite(apart).all() else 0.0


def _jump(values: Array, payments: Payments, ends: Array) -> tuple[float, float]:
    """Returns the median change of the last step, and the largest of 19 in 20 changes before it."""
    lengths = payments.lengths[payments.is_truncated][: len(ends)]
    long = ends[lengths >= 3]
    if not len(long):
        return 0.0, 0.0
    last = finite(values[long].astype(np.float64) - values[long - 1])
    # changes within the same episodes, at places drawn by a private generator
    back = 1 + (np.random.default_rng(0).random((20, len(long))) * (lengths[lengths >= 3] - 2)).astype(int)
    before = np.abs(finite(values[long - back].astype(np.float64) - values[long - back - 1]))
    return float(np.median(last)), float(np.quantile(before, 0.95))


def _responsible(payments: Payments, ends: Array, jump: float) -> str:
    """Returns the term whose last step jumps most in the same direction; "" where none does."""
    jumps = {}
    for name, values in payments.result.terms.items():
        weight = payments.result.weight(name)
        if weight != 0.0:
            jumps[name] = weight * np.sign(jump) * _jump(values, payments, ends)[0]
    name = max(jumps, key=lambda one: jumps[one], default="")
    return name if name and jumps[name] > 0.0 else ""


def _size(payments: Payments) -> float:
    return float(np.abs(payments.sampled_total).max(initial=0.0))
