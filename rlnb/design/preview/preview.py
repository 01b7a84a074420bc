"""RewardPreview: what a reward would have paid for recorded steps, again and again as it is edited.

Measuring a term is slow, weighting it is fast: the columns of terms are kept (`TermColumns`), and
everything shown is made from them when it is first asked for after an update. Nothing here approximates:
the total has the very bytes that training is paid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.preview.ranking import Ranking, rank
from rlnb.design.preview.step_histogram import StepHistogram, StepHistograms
from rlnb.design.preview.term_columns import Column, TermColumns, episode_sums
from rlnb.design.reward import RewardResult, RewardSpec
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError

_MADE_ANEW = ("result", "returns", "term_returns", "_ranking", "_histograms")


@dataclass(frozen=True, eq=False)
class Contributions:
    """What one episode of n steps is paid, step by step.

    Attributes:
        t: step in the episode, int64 (n,).
        terms: enabled term → weighted value, float64 (n,).
        total: float32 (n,), the designed reward.
        env: float64 (n,), the environment's own.
        additive: the terms add up to the total; not where an expression combines them.
    """

    t: Array
    terms: dict[str, Array]
    total: Array
    env: Array
    additive: bool


class RewardPreview:
    """A reward over a batch of recorded transitions, kept up to date while the reward is edited.

    Args:
        progress: fraction of training that is done, 0 to 1, for weights with a schedule.

    Raises:
        DesignError: the reward does not fit the batch, as `update`.
    """

    def __init__(self, batch: Transitions, reward: RewardSpec, *, progress: float = 0.0) -> None:
        self.batch = batch
        self.progress = progress
        self._terms = TermColumns(batch)
        self._columns: dict[str, Column] = self._terms.of(reward.enabled)
        self.reward = reward

    def update(self, reward: RewardSpec, *, progress: float | None = None) -> None:
        """Takes another reward; measures only the terms whose expression, function or potential is new.

        Raises:
            ExpressionError: a term uses an unknown name; the preview stays as it was.
            DesignError: a Python term is missing or fails; likewise.
        """
        columns = self._terms.of(reward.enabled)
        self.reward, self._columns = reward, columns
        self.progress = self.progress if progress is None else progress
        for name in _MADE_ANEW:
            self.__dict__.pop(name, None)

    @cached_property
    def result(self) -> RewardResult:
        """What every step is paid: the bytes of `reward.evaluate(batch)`."""
        terms = {name: column.values for name, column in self._columns.items()}
        return self.reward.pay(terms, progress=self.progress, rows=len(self.batch))

    @cached_property
    def returns(self) -> Array:
        """Sum of the designed reward over each episode, float64 (episodes,)."""
        return episode_sums(self.result.total, self.batch.starts)

    @cached_property
    def term_returns(self) -> dict[str, Array]:
        """Enabled term → sum of its weighted values over each episode, float64 (episodes,)."""
        with np.errstate(all="ignore"):
            return {name: self.result.weight(name) * column.sums for name, column in self._columns.items()}

    @cached_property
    def env_returns(self) -> Array:
        """Sum of the environment's own reward over each episode, float64 (episodes,)."""
        return episode_sums(self._terms.paid.reward, self.batch.starts)

    @property
    def lengths(self) -> Array:
        """Steps of each episode, int64 (episodes,)."""
        return self.batch.lengths

    @property
    def labels(self) -> tuple[str, ...]:
        """Policy label of each episode; "" where none was given."""
        return self.batch.episode_labels

    @property
    def additive(self) -> bool:
        """The total is a weighted sum: no expression combines the terms or those of a group."""
        combined = [group.combine for group in self.reward.groups if group.enabled]
        return self.reward.combine is None and not any(combined)

    def step_histogram(self, bins: int = 48) -> StepHistogram:
        """Returns the distribution of the designed reward per step, over all and by policy label.

        The edges stand still until the rewards outgrow them or shrink to less than half of them.

        Raises:
            DesignError: fewer than 1 or more than 10,000 bins.
        """
        if bins not in self._histograms:
            self._histograms[bins] = self._counter.count(self.result.total, bins)
        return self._histograms[bins]

    def contributions(self, episode: int) -> Contributions:
        """Returns each term's part in each step of an episode.

        Args:
            episode: counted from 0 in the order of the batch.

        Raises:
            DesignError: there is no such episode.
        """
        if not 0 <= episode < len(self.lengths):
            raise DesignError(
                f"There is no episode {episode}; the batch has {len(self.lengths)}, counted from 0."
            )
        start = int(self.batch.starts[episode])
        rows = slice(start, start + int(self.lengths[episode]))
        terms = {name: column.values[rows] for name, column in self._columns.items()}
        paid = self.reward.pay(terms, progress=self.progress, rows=rows.stop - rows.start)
        return Contributions(
            t=self.batch.t[rows],
            terms={name: paid.contribution(name) for name in terms},
            total=paid.total,
            env=self._terms.paid.reward[rows],
            additive=self.additive,
        )

    def ranking(self) -> Ranking:
        """Returns the episodes' order under the designed and under the environment's reward."""
        return self._ranking

    def features(self) -> Array:
        """Returns how much each enabled term's weight adds to each episode's return, float64 (episodes, terms).

        These are what preferences are fitted on (`fit_preferences`); the columns follow `reward.enabled`.

        Raises:
            DesignError: an expression combines terms, so that the return is no weighted sum.
        """
        if not self.additive:
            raise DesignError(
                "Weights can be fitted to preferences only where the reward is the weighted sum of its terms; "
                "here 'combine' is an expression. Remove it, or set the weights by hand."
            )
        columns = []
        for name, column in self._columns.items():
            group = self.result.group_of.get(name)
            factor = 1.0 if group is None else self.result.group_weights[group]
            columns.append(factor * column.sums)
        return np.stack(columns, axis=1) if columns else np.zeros((len(self.lengths), 0))

    @cached_property
    def _ranking(self) -> Ranking:
        return rank(self.returns, self.env_returns)

    @cached_property
    def _histograms(self) -> dict[int, StepHistogram]:
        return {}

    @cached_property
    def _counter(self) -> StepHistograms:
        return StepHistograms(self.labels, self.lengths)
