"""Schedules of a hyperparameter over training, as a short text that YAML and run.yaml can carry.

`"lin_1e-3"` falls linearly from 1e-3 at the start of training to 0 at its end; `"lin_1e-3_1e-4"` ends
at 1e-4. The form is that of rl-baselines3-zoo (`utils/utils.py: linear_schedule`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from rlnb.errors import ExperimentError

_LINEAR = re.compile(r"lin_([^_]+)(?:_([^_]+))?")


@dataclass(frozen=True)
class LinearSchedule:
    """A straight line over the progress that remains; callable as SB3 calls its schedules.

    Attributes:
        initial: value at the start of training.
        final: value at its end.
    """

    initial: float
    final: float = 0.0

    def __call__(self, progress_remaining: float) -> float:
        """Returns the value; `progress_remaining` falls from 1 to 0 over training.

        The last rollout overshoots `total_timesteps` a little; the line ends at its final value,
        since a learning rate or clip range below zero would undo what was learned.
        """
        progress_remaining = max(progress_remaining, 0.0)
        if self.final == 0.0:
            return progress_remaining * self.initial  # the zoo's very arithmetic, so that runs compare
        return self.final + progress_remaining * (self.initial - self.final)

    def __str__(self) -> str:
        return f"lin_{self.initial!r}" if self.final == 0.0 else f"lin_{self.initial!r}_{self.final!r}"


def parse_schedule(text: str, *, where: str = "learning_rate") -> LinearSchedule | float:
    """Reads a schedule's text; a bare number is that constant.

    Args:
        text: `"lin_1e-3"`, `"lin_1e-3_1e-4"` or a number such as `"3e-4"`.
        where: the argument's name, for the message.

    Raises:
        ExperimentError: if the text is neither.
    """
    matched = _LINEAR.fullmatch(text.strip())
    try:
        numbers = [float(part) for part in (matched.groups() if matched else (text,)) if part is not None]
    except ValueError:
        numbers = []
    if not numbers or not all(math.isfinite(number) for number in numbers):
        raise ExperimentError(
            f"{where}={text!r} is no schedule; write a number, or 'lin_1e-3' to fall linearly from 1e-3 to 0"
        )
    return LinearSchedule(*numbers) if matched else numbers[0]
