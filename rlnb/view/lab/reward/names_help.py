"""What an expression field offers while somebody types: names of the batch and functions, with their meaning."""

from __future__ import annotations

from collections.abc import Iterable

from rlnb.design.expressions.functions import FUNCTIONS
from rlnb.design.transitions import Transitions
from rlnb.view.lab.charts.expression_field import Suggestion

_MEANINGS = {
    "t": "step within the episode, from 0",
    "terminated": "1 where the next state is terminal",
    "truncated": "1 where a time limit cut the episode off",
    "reward": "the environment's own reward",
    "action": "the action",
    "prev_action": "the action one step earlier",
}


def name_suggestions(names: Iterable[str], batch: Transitions) -> list[Suggestion]:
    """Returns every name a term may use over a batch, then the functions.

    Args:
        names: plain names of the batch's namespace.
        batch: says what each name is.
    """
    return [*(Suggestion(name, _meaning(name, batch)) for name in names), *_functions()]


def state_suggestions(names: Iterable[str]) -> list[Suggestion]:
    """Returns the observation's components, for a potential or a derived component, then the functions."""
    return [*(Suggestion(name, "observation") for name in names), *_functions()]


def _meaning(name: str, batch: Transitions) -> str:
    if name in _MEANINGS:
        return _MEANINGS[name]
    if name in batch.obs.names:
        return "observation before the step"
    if name.startswith("next_"):
        return "observation after the step"
    if name in batch.signals.names:
        return "signal"
    if name.startswith("info["):
        return "the environment's info"
    return "action, one step earlier" if name.startswith("prev_") else "action"


def _functions() -> list[Suggestion]:
    return [Suggestion(f"{name}(", "function") for name in sorted(FUNCTIONS)]
