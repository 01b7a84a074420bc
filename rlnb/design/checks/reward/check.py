"""Checks of a reward on recorded rollouts: separation, exploits, terms, signal, shaping, truncation."""

from __future__ import annotations

from collections.abc import Collection, MutableMapping
from typing import Any

import numpy as np

from rlnb.design.checks.finding import Finding, Severity, worst_first
from rlnb.design.checks.reward.exploits import check_idle, check_loop
from rlnb.design.checks.reward.payments import Payments
from rlnb.design.checks.reward.scale import check_nonfinite, check_scale, check_sparse
from rlnb.design.checks.reward.separation import check_separation, missing_demo
from rlnb.design.checks.reward.shaping import check_shaping
from rlnb.design.checks.reward.terms import check_correlated, check_dominated, check_never_fires
from rlnb.design.checks.reward.truncation import check_truncation
from rlnb.design.reward import RewardResult, RewardSpec
from rlnb.design.transitions import Transitions


def check_reward(
    batch: Transitions,
    reward: RewardSpec,
    *,
    result: RewardResult | None = None,
    good: Collection[str] | None = None,
    gamma: float = 0.99,
    cache: MutableMapping[Any, Any] | None = None,
) -> list[Finding]:
    """Looks for what would go wrong if an agent were trained on a reward.

    Codes: reward.nonfinite, reward.separation, reward.idle, reward.loop, reward.shaping,
    reward.dominated, reward.never_fires, reward.correlated, reward.scale, reward.sparse,
    reward.truncation; reward.demo in place of the three that need a demonstration where there is none.

    Args:
        batch: whole episodes, with labels.
        reward: bound; its names are known to the batch.
        result: what the batch is paid, if that is known already.
        good: labels of the policies that show what is wanted; None: all but "random", "idle", "sticky".
        gamma: the discount the agent will be trained with.
        cache: keeps between calls what does not depend on weights; give the same one for a batch.

    Returns:
        At least one finding for every check, the worst first; a check that passed says so with its number.

    Raises:
        DesignError: a name is unknown or a Python term fails.
    """
    if not len(batch):
        return [
            Finding(
                "reward.demo", Severity.HINT, "There are no recorded steps to check the reward on.",
                "Every check compares what recorded episodes are paid.",
                'Record some: rlnb.record(env, "random", episodes=20).',
            )
        ]  # fmt: skip
    if result is None:
        result = reward.evaluate(batch)
    # infinities and overflows of a term are what check_nonfinite tells of; elsewhere they count as 0
    with np.errstate(all="ignore"):
        return worst_first(_all_checks(Payments(batch, reward, result, good=good, gamma=gamma, cache=cache)))


def _all_checks(payments: Payments) -> list[Finding]:
    found = [check_nonfinite(payments)]
    missing = missing_demo(payments)
    if missing is None:
        found += [check_separation(payments), check_idle(payments), check_loop(payments)]
    else:
        found.append(missing)
    found += check_shaping(payments)
    return [
        *found,
        check_dominated(payments),
        check_never_fires(payments),
        check_correlated(payments),
        check_scale(payments),
        check_sparse(payments),
        check_truncation(payments),
    ]
