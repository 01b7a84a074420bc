"""Stop rules: when training may end before `total_timesteps`.

A rule is one comparison that has to hold for a while: `return_mean > 240 for 20 episodes`. It is looked
at once for each finished episode, in the order in which they finish, so that a resumed run stops at the
very same place; a watch carries its count in the checkpoint.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rlnb.errors import ExperimentError, did_you_mean

METRICS: Final[Mapping[str, str]] = {
    "return_mean": "mean designed return of the last stats_window_size episodes (SB3's ep_rew_mean)",
    "return_env_mean": "the same for the environment's own reward",
    "return": "designed return of the episode that has just ended",
    "return_env": "the environment's own return of that episode",
    "length_mean": "mean length of the last stats_window_size episodes, in steps",
    "length": "length of the episode that has just ended, in steps",
    "success_rate": "mean of info['is_success'] over the last stats_window_size episodes",
}
"""What a rule may compare, with its meaning."""


class Comparison(StrEnum):
    """How the metric is compared with the value."""

    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="

    @property
    def holds(self) -> Callable[[float, float], bool]:
        """The comparison as a function."""
        return {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}[self.value]


_RULE = re.compile(
    r"\s*(?P<metric>[A-Za-z_][\w/]*)\s*(?P<comparison>>=|<=|>|<)\s*(?P<value>\S+?)"
    r"(?:\s+for\s+(?P<episodes>\d[\d_]*)\s+episodes?)?\s*"
)


@dataclass(frozen=True)
class StopRule:
    """One parsed rule.

    Attributes:
        metric: a key of `METRICS`.
        comparison: how it is compared.
        value: with what.
        episodes: for how many finished episodes in a row it has to hold, >= 1.
    """

    metric: str
    comparison: Comparison
    value: float
    episodes: int = 1

    @classmethod
    def parse(cls, text: str) -> StopRule:
        """Reads `"return_mean > 240 for 20 episodes"`; the `for` part may be left out.

        Raises:
            ExperimentError: if the text has another form, the metric is unknown, or the value is no number.
        """
        matched = _RULE.fullmatch(text)
        if matched is None:
            raise ExperimentError(
                f"stop_when={text!r} cannot be read; write it like 'return_mean > 240 for 20 episodes'"
            )
        metric = matched["metric"]
        if metric not in METRICS:
            raise ExperimentError(
                f"stop_when={text!r} compares {metric!r}, which is not measured."
                f"{did_you_mean(metric, METRICS)} It may be one of {', '.join(METRICS)}"
            )
        try:
            value = float(matched["value"])
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise ExperimentError(
                f"stop_when={text!r} compares with {matched['value']!r}, which is no number"
            )
        episodes = int(matched["episodes"] or 1)
        if episodes < 1:
            raise ExperimentError(f"stop_when={text!r} has to hold for at least 1 episode")
        return cls(metric, Comparison(matched["comparison"]), value, episodes)

    def __str__(self) -> str:
        value = int(self.value) if self.value.is_integer() else self.value
        plural = "episode" if self.episodes == 1 else "episodes"
        return f"{self.metric} {self.comparison.value} {value} for {self.episodes} {plural}"


class StopWatch:
    """Counts for how many episodes in a row a rule has held.

    Args:
        rule: the rule to watch.
    """

    def __init__(self, rule: StopRule) -> None:
        self.rule = rule
        self._streak = 0
        self._fired = False

    def episode(self, metrics: Mapping[str, float]) -> bool:
        """Takes one finished episode's metrics and returns whether training is to stop.

        Args:
            metrics: values by name of `METRICS`; a missing one or NaN breaks the streak.
        """
        value = metrics.get(self.rule.metric, math.nan)
        self._streak = self._streak + 1 if self.rule.comparison.holds(value, self.rule.value) else 0
        self._fired = self._fired or self._streak >= self.rule.episodes
        return self._fired

    @property
    def fired(self) -> bool:
        """Whether the rule has once held for long enough."""
        return self._fired

    def state_dict(self) -> dict[str, int]:
        """The count, for a checkpoint."""
        return {"streak": self._streak, "fired": int(self._fired)}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Continues a count."""
        self._streak, self._fired = state["streak"], bool(state["fired"])
