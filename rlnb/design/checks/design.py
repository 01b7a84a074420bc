"""All checks of a design on recorded transitions."""

from __future__ import annotations

from collections.abc import Collection, MutableMapping
from typing import Any

import numpy as np

from rlnb.design.checks.finding import Finding, worst_first
from rlnb.design.checks.reward.check import check_reward
from rlnb.design.checks.state.check import check_state
from rlnb.design.reward import RewardResult, RewardSpec
from rlnb.design.state import StatePlan
from rlnb.design.transitions import Transitions

#: discount where no shaping names one: the default of every algorithm of stable-baselines3
GAMMA = 0.99


def check_design(
    batch: Transitions,
    reward: RewardSpec,
    plan: StatePlan,
    *,
    result: RewardResult,
    action_space: Any,
    good: Collection[str] | None = None,
    cache: MutableMapping[Any, Any] | None = None,
) -> list[Finding]:
    """Checks reward and state, the worst finding first.

    Args:
        batch: n recorded transitions.
        reward: the reward design; its shaping's discount is the agent's, as `Lab.experiment` trains.
        plan: the state design, fitted to the environment.
        result: what the reward pays for the batch.
        action_space: the environment's.
        good: policy labels whose episodes show what is wanted; see `check_reward`.
        cache: keeps between calls what does not depend on weights; one for each batch.
    """
    gamma = GAMMA if reward.discount is None else reward.discount
    paid = np.asarray(result.total, dtype=np.float64)
    return worst_first(
        [
            *check_reward(batch, reward, result=result, good=good, gamma=gamma, cache=cache),
            *check_state(batch, plan, reward=paid, action_space=action_space, cache=cache),
        ]
    )
