"""Whether observations keep the bounds that their space declares, and are numbers at all.

Looked at are all rows where the transformed ones are at hand or the design leaves observations as they are,
and the sampled ones otherwise; episodes in which the environment's own observation is not finite are always
among these.
"""

from __future__ import annotations

import numpy as np

from rlnb.design.checks.episode_sampling import extremes
from rlnb.design.checks.finding import Finding, Severity
from rlnb.design.checks.state.sample import StateSample
from rlnb.design.checks.wording import listed, number
from rlnb.design.columns import Array

#: rounding that a bound forgives, relative to it
_SLACK = 1e-5


def check_bounds(sample: StateSample) -> Finding:
    """Looks for numbers outside the declared bounds, and for what is no number ("state.bounds")."""
    sides = sample.whole or (sample.obs, sample.next_obs)
    reached = np.array([extremes(side) for side in sides])
    if not np.isfinite(reached).all():
        return _not_finite(sample, sides)
    low, high = reached[:, 0].min(axis=0), reached[:, 1].max(axis=0)
    slack = [
        _SLACK * np.maximum(1.0, np.abs(np.nan_to_num(end, posinf=0, neginf=0)))
        for end in (sample.low, sample.high)
    ]
    least, most = sample.low - slack[0], sample.high + slack[1]
    beyond = np.flatnonzero((low < least) | (high > most))
    why = (
        "Whatever scales by the declared bounds (images, Scale, some algorithms) leaves its own range there."
    )
    if not len(beyond):
        sentence = f"All values of {_phrase(sample)} lie within the declared bounds."
        return Finding("state.bounds", Severity.FINE, sentence, why, value=0.0)
    wrong = np.zeros((len(beyond), len(sides[0])), dtype=bool)
    for side in sides:
        wrong |= ((side[:, beyond] < least[beyond]) | (side[:, beyond] > most[beyond])).T
    order = np.argsort(-wrong.sum(axis=1), kind="stable")
    names = tuple(sample.names[place] for place in beyond[order])
    place, rows = int(beyond[order[0]]), int(wrong[order[0]].sum())
    value = low[place] if sample.low[place] - low[place] > high[place] - sample.high[place] else high[place]
    return Finding(
        "state.bounds",
        Severity.WARNING,
        f"{listed(names)} {'leaves' if len(names) == 1 else 'leave'} the declared bounds: {names[0]} reaches "
        f"{number(value)} where {number(sample.low[place])} to {number(sample.high[place])} is declared, in "
        f"{rows:,} of {_phrase(sample)}.",
        why,
        "Correct the environment's space, or clip the component.",
        value=float(wrong.any(axis=0).sum()),
        names=names,
        rows=_rows(sample, wrong[order[0]]),
    )


def _not_finite(sample: StateSample, sides: tuple[Array, Array]) -> Finding:
    wrong = (~np.isfinite(sides[0]) | ~np.isfinite(sides[1])).T
    counts = wrong.sum(axis=1)
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    names = tuple(sample.names[place] for place in order)
    place = int(order[0])
    row = int(np.argmax(wrong[place]))
    value = next(float(side[row, place]) for side in sides if not np.isfinite(side[row, place]))
    return Finding(
        "state.bounds",
        Severity.PROBLEM,
        f"{listed(names)} {'is' if len(names) == 1 else 'are'} not always a finite number: {names[0]} is {value} or "
        f"the like in {counts[place]:,} of {_phrase(sample)}.",
        "A network that is fed a NaN or an infinity has nothing but NaN weights after its next update.",
        "Guard the expression (a division by 0, a logarithm of 0), or clip the component.",
        value=float(wrong.any(axis=0).sum()),
        names=names,
        rows=_rows(sample, wrong[place]),
    )


def _phrase(sample: StateSample) -> str:
    return f"{sample.total:,} steps" if sample.whole else sample.phrase


def _rows(sample: StateSample, where: Array) -> tuple[int, ...]:
    return tuple(int(row) for row in np.flatnonzero(where)[:5]) if sample.whole else sample.first_rows(where)
