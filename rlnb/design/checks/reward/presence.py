"""A term that pays, step by step, for being somewhere: a guess at shaping, not a certainty."""

from __future__ import annotations

import numpy as np

from rlnb.design.checks.finding import Finding, Severity
from rlnb.design.checks.reward.payments import Payments, finite
from rlnb.design.checks.wording import number, percent
from rlnb.design.term import Term

#: share of steps in which a term must not be negative, and be positive, to count as pay for being there
_NEVER_TAKES, _MOSTLY_GIVES = 0.99, 0.5

_WHY = "Where the aim is to get somewhere, pay for being near it is a reason to stay near it."


def paid_for_presence(payments: Payments, part: Term) -> Finding | None:
    """Returns a hint where a positive term of the state alone pays more for staying than the demonstration got.

    Only where good episodes end by reaching something: in a task that goes on, such pay is the aim.
    """
    places = [payments.batch.namespace.place(name) for name in part.names]
    if not places or any(place is None or place[0] not in ("obs", "next_obs") for place in places):
        return None
    if not payments.is_good.any() or not payments.ends_well:
        return None
    weight = payments.result.weight(part.name)
    values = weight * finite(payments.sampled_terms[part.name])
    gives = float(np.mean(values > 0.0))
    if np.mean(values >= 0.0) < _NEVER_TAKES or gives < _MOSTLY_GIVES or values.std() == 0.0:
        return None
    stay = float(np.quantile(values, 0.95)) * payments.limit
    got = float(weight * payments.term_sums(part.name)[payments.is_good].mean())
    if stay <= got:
        return None
    return Finding(
        "reward.shaping",
        Severity.HINT,
        f"{part.name!r} pays in {percent(gives)} of the steps for being somewhere: the demonstration gets "
        f"{number(got)} from it, staying where it pays best would get about {number(stay)} in "
        f"{payments.limit:,} steps (a guess: nobody was seen to stay there).",
        _WHY,
        f"Turn it into rlnb.Shaping({part.name!r}, {part.expression!r}, gamma={payments.gamma:g}), or subtract "
        "its largest value, so that it is a cost of being away.",
        value=stay,
        names=(part.name,),
    )
