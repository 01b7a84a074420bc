"""Checks of a state design on recorded rollouts.

All of them look at what the agent would see: the transformed observations. Every check always gives a
finding, and its number also where all is well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.design.checks.finding import Finding, Severity
from rlnb.design.checks.state.bounds import check_bounds
from rlnb.design.checks.state.coverage import check_coverage
from rlnb.design.checks.state.images import check_images
from rlnb.design.checks.state.information import check_uninformative
from rlnb.design.checks.state.markov import check_markov
from rlnb.design.checks.state.sample import Cache, StateSample, take_sample
from rlnb.design.checks.state.values import (
    check_constant,
    check_dimensions,
    check_duplicates,
    check_saturated,
    check_scale,
    check_unbounded,
)
from rlnb.design.columns import Array
from rlnb.design.plan import StatePlan
from rlnb.design.profile import is_image
from rlnb.design.transitions import Transitions

#: the codes of all findings, in the order in which they are given
CODES = (
    "state.bounds", "state.unbounded", "state.dimensions", "state.duplicates", "state.constant",
    "state.uninformative", "state.saturated", "state.scale", "state.coverage", "state.markov",
)  # fmt: skip


def check_state(
    batch: Transitions,
    plan: StatePlan,
    *,
    reward: Array | None = None,
    action_space: Any = None,
    values: tuple[Array, Array] | None = None,
    cache: Cache | None = None,
) -> list[Finding]:
    """Checks what the agent would see of recorded rollouts.

    Args:
        batch: whole episodes, labelled by policy.
        plan: the state design, fitted to the environment.
        reward: float64 (n,), what is to be learned; None means the environment's own.
        action_space: tells categories from quantities among the actions.
        values: `plan.preview(batch)` where it is at hand; otherwise, of more than 50,000 steps, whole
            episodes of every policy are sampled, and the findings say so.
        cache: a dict that lives as long as the batch is looked at; spares sampling it again.

    Returns:
        One finding for each of `CODES`, in that order.

    Raises:
        DesignError: the batch is empty, `reward` does not fit, or the space has no components.
    """
    if is_image(plan.space, plan.names):
        found = check_images(batch, plan, values)
        return [
            found.get(code, Finding(code, Severity.FINE, "Not measured on images.", "")) for code in CODES
        ]
    with np.errstate(all="ignore"):  # squares of huge numbers are infinite, and count so
        return _all_checks(take_sample(batch, plan, reward=reward, values=values, cache=cache), action_space)


def _all_checks(sample: StateSample, action_space: Any) -> list[Finding]:
    return [
        check_bounds(sample),
        check_unbounded(sample),
        check_dimensions(sample),
        check_duplicates(sample),
        check_constant(sample),
        check_uninformative(sample),
        check_saturated(sample),
        check_scale(sample),
        check_coverage(sample),
        check_markov(sample, action_space),
    ]
