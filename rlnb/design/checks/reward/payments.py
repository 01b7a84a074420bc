"""What a batch was paid under a reward, as the reward checks look at it.

Whatever does not depend on weights is kept in a cache between calls, found by the term's values on the
sampled steps, so that dragging a weight costs sums over episodes and little else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, MutableMapping
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np

from rlnb.design.checks.wording import counted
from rlnb.design.columns import Array
from rlnb.design.reward import RewardResult, RewardSpec
from rlnb.design.shaping import Shaping
from rlnb.design.transitions import Transitions

#: labels of policies that do not try: what good behaviour is compared with
WEAK_POLICIES = ("random", "idle", "sticky")

#: steps that statistics over single steps look at; their error is below one per cent of a spread
SAMPLED = 50_000

#: kept results; each is a few numbers or one row per episode, so that editing all day stays small
KEPT = 512

_STORE = "rlnb.design.checks.reward"
T = TypeVar("T")


class Payments:
    """One batch, one reward, and what every check needs of the two.

    Attributes:
        limit: steps an episode can last: the longest truncated one, else the longest one seen.
        is_limit_seen: an episode was truncated, so that `limit` is more than a guess.
        is_good: bool (episodes,), the episodes that show good behaviour.
        is_weak: bool (episodes,), the others that have a label.
    """

    def __init__(
        self,
        batch: Transitions,
        reward: RewardSpec,
        result: RewardResult,
        *,
        good: Collection[str] | None,
        gamma: float,
        cache: MutableMapping[Any, Any] | None,
    ) -> None:
        self.batch, self.reward, self.result, self.gamma = batch, reward, result, gamma
        self._kept: dict[Hashable, Any] = {} if cache is None else cache.setdefault(_STORE, {})
        # the batch itself is kept: an id could be another batch's after the first is gone
        if self._kept.get("batch") is not batch:
            self._kept.clear()
            self._kept["batch"] = batch
        self.starts, self.lengths, self.ends = batch.starts, batch.lengths, batch.ends
        self.labels = np.array(batch.episode_labels, object)
        chosen = {label for label in self.labels if label not in WEAK_POLICIES} if good is None else set(good)
        self.is_good = np.array([label in chosen and label != "" for label in self.labels], bool)
        self.is_weak = np.array([label not in chosen and label != "" for label in self.labels], bool)
        self.is_terminated = batch.terminated[self.ends].astype(bool)
        self.is_truncated = batch.truncated[self.ends].astype(bool) & ~self.is_terminated
        self.is_limit_seen = bool(self.is_truncated.any())
        self.limit = int(self.lengths[self.is_truncated].max() if self.is_limit_seen else self.lengths.max())

    def keep(self, key: Hashable, make: Callable[[], T]) -> T:
        """Returns what was kept under `key` for this batch, or makes and keeps it."""
        if key not in self._kept:
            if len(self._kept) >= KEPT:
                for old in [one for one in self._kept if isinstance(one, tuple)][: KEPT // 2]:
                    del self._kept[old]
            self._kept[key] = make()
        return cast(T, self._kept[key])

    def keep_latest(self, slot: str, key: object, make: Callable[[], T]) -> T:
        """Returns what was kept in `slot` if it was made for an equal `key`, else makes and keeps it instead."""
        found = self._kept.get(slot)
        if found is None or found[0] != key:
            found = self._kept[slot] = (key, make())
        return cast(T, found[1])

    @cached_property
    def sample(self) -> Array | slice:
        """Rows that statistics over steps look at: all, or `SAMPLED` spread evenly with a private jitter."""
        if len(self.batch) <= SAMPLED:
            return slice(None)
        return self.keep("sample", lambda: _spread(len(self.batch), SAMPLED))

    @property
    def among(self) -> str:
        """The steps of the sample in words."""
        steps = counted(len(self.batch), "step")
        return f"all {steps}" if isinstance(self.sample, slice) else f"{SAMPLED:,} sampled of {steps}"

    @cached_property
    def sampled_terms(self) -> dict[str, Array]:
        """Each enabled term on the sampled rows, clipped, before its weight; NaN and infinities as they are."""
        return {name: np.asarray(values[self.sample]) for name, values in self.result.terms.items()}

    @cached_property
    def term_keys(self) -> dict[str, Hashable]:
        """What each term's kept results are found by: its values on the sampled rows."""
        return {name: hash(values.tobytes()) for name, values in self.sampled_terms.items()}

    @cached_property
    def total(self) -> Array:
        """The reward of each row, float32 or float64 (n,); NaN and infinities count as 0."""
        return finite(self.result.total)

    @cached_property
    def sampled_total(self) -> Array:
        return np.asarray(self.total[self.sample], dtype=np.float64)

    @cached_property
    def shapings(self) -> tuple[str, ...]:
        """Potential-based terms of the right discount, which do not change which policy is best.

        They can be told from the rest only where terms are summed.
        """
        if self.reward.combine is not None:
            return ()
        combined = {group.name for group in self.reward.groups if group.combine is not None}
        parts = (
            part for part in self.reward.enabled if isinstance(part, Shaping) and part.group not in combined
        )
        return tuple(part.name for part in parts if np.isclose(part.gamma, self.gamma, atol=1e-9))

    @cached_property
    def objective(self) -> Array:
        """The reward of each row without `shapings`: what the best policy depends on. (n,)"""
        if not self.shapings:
            return self.total
        left = self.total.astype(np.float64)
        for name in self.shapings:
            left -= finite(self.result.contribution(name))
        return left

    @cached_property
    def running(self) -> Array:
        """Sum of `objective` over all rows before each, float64 (n + 1,): differences are sums of stretches."""
        found = np.empty(len(self.batch) + 1)
        found[0] = 0.0
        np.cumsum(self.objective, dtype=np.float64, out=found[1:])
        return found

    @cached_property
    def is_good_row(self) -> Array:
        """Rows of good episodes, bool (n,)."""
        return np.repeat(self.is_good, self.lengths)

    @cached_property
    def returns(self) -> Array:
        """Sum of `objective` over each episode, float64 (episodes,)."""
        return self.summed(self.objective)

    @cached_property
    def discounted(self) -> Array:
        """Sum of gamma^k times `objective` at an episode's k-th row, float64 (episodes,)."""
        return self.summed(self.objective * self.discounts)

    @property
    def discounts(self) -> Array:
        """gamma^k for the k-th row of each episode, float64 (n,)."""

        def powers() -> Array:
            table = self.gamma ** np.arange(int(self.lengths.max()), dtype=np.float64)
            place = np.arange(len(self.batch)) - np.repeat(self.starts, self.lengths)
            return np.asarray(table[place])

        # one array as long as the batch: the latest gamma's is kept, not one for each
        return self.keep_latest("discounts", self.gamma, powers)

    @property
    def env_returns(self) -> Array:
        """The environment's own return of each episode, float64 (episodes,)."""
        return self.keep("env returns", lambda: self.summed(finite(self.batch.reward)))

    def term_sums(self, name: str) -> Array:
        """Sum of a term before its weight over each episode, float64 (episodes,)."""
        key = ("sums", self.term_keys[name])
        return self.keep(key, lambda: self.summed(finite(self.result.terms[name])))

    def summed(self, values: Array) -> Array:
        """Returns sums over episodes, float64 (episodes,)."""
        return np.asarray(np.add.reduceat(values, self.starts, dtype=np.float64))

    @cached_property
    def ends_well(self) -> bool:
        """The good episodes end by reaching something, so that ending is no failure.

        Told by what the environment pays for the end; where it pays as ever, by whether good episodes
        are shorter than weak ones, or short ones better than long ones.
        """
        ended = self.is_good & self.is_terminated
        if ended.sum() < 0.5 * self.is_good.sum() or not ended.any():
            return False
        last = self.batch.reward[self.ends[ended]]
        usual = self.batch.reward[self.sample][~self.batch.terminated[self.sample]]
        if len(usual):
            low, middle, high = np.quantile(usual, (0.01, 0.5, 0.99))
            if np.median(last) > max(high, middle + 1e-9) or np.median(last) < min(low, middle - 1e-9):
                return bool(np.median(last) > middle)
        if self.is_weak.any():
            return bool(self.lengths[ended].mean() < self.lengths[self.is_weak].mean())
        if self.lengths.std() == 0.0:
            return False
        return bool(np.cov(self.lengths, self.env_returns)[0, 1] < 0.0)

    @property
    def without_shaping(self) -> str:
        """What is said where shaping was left out of a return; "" where there is none."""
        return ", without shaping, which does not change the best policy" if self.shapings else ""


def finite(values: Array) -> Array:
    """Returns values with NaN and infinities as 0; the same array if there are none."""
    if np.isfinite(np.add.reduce(values, axis=None, dtype=np.float64)):
        return values
    return np.where(np.isfinite(values), values, 0.0)


def _spread(rows: int, count: int) -> Array:
    edges = np.linspace(0, rows, count + 1)
    jitter = np.random.default_rng(0).random(count)
    return np.asarray((edges[:-1] + jitter * np.diff(edges)).astype(np.int64))
