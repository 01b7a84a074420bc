"""Small trainings, whole and interrupted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rlnb.experiment import Experiment
from rlnb.run.layout import RunLayout
from rlnb.run.progress import Flag, write_flag
from rlnb.train.trainer import train


class Ended(Exception):
    """Stands in for the supervisor's SIGKILL after a suspend or stop."""


class Crash(Exception):
    """An attempt that dies."""


@dataclass
class Trial:
    """One run folder and the experiment that is trained in it."""

    layout: RunLayout
    given: dict[str, Any]
    attempts: int = 0
    callbacks: list[Any] = field(default_factory=list)

    def attempt(
        self, *, suspend_at: int | None = None, crash_at: int | None = None, **changes: Any
    ) -> dict[str, Any]:
        """Trains one attempt; it may be suspended or die once so many steps are done."""
        self.attempts += 1
        write_flag(self.layout, Flag.RUN)

        def disturb(variables: dict[str, Any], _: dict[str, Any]) -> bool:
            step = variables["self"].num_timesteps
            if crash_at is not None and step >= crash_at:
                raise Crash
            if suspend_at is not None and step >= suspend_at:
                write_flag(self.layout, Flag.SUSPEND)
            return True

        def block(_: object) -> None:
            raise Ended

        exp = Experiment("trial", **{**self.given, **changes})
        return train(
            exp.spec, make_env=exp.make_env, design=exp.design, layout=self.layout, attempt=self.attempts,
            callbacks=[disturb, *self.callbacks], signals=exp.signals, block=block,
        )  # fmt: skip

    def suspended(self, step: int) -> None:
        with pytest.raises(Ended):
            self.attempt(suspend_at=step)

    def crashed(self, step: int) -> None:
        with pytest.raises(Crash):
            self.attempt(crash_at=step)


@pytest.fixture
def trial(tmp_path: Path):
    """Makes trials, each in a folder of its own."""
    count = 0

    def make(**given: Any) -> Trial:
        nonlocal count
        count += 1
        return Trial(RunLayout(tmp_path / f"run{count}"), given)

    return make
