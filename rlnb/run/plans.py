"""Two small parts of an experiment: when checkpoints are kept, and what a run starts from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from rlnb.errors import ExperimentError, did_you_mean
from rlnb.run.arguments import Argument, Kind
from rlnb.run.references import References

_STEP = re.compile(r"\d[\d_]*")


@dataclass(frozen=True)
class CheckpointPlan:
    """When a checkpoint is written, and which are kept.

    A checkpoint is written at the first safe point after either cadence is due, and always at the end.

    Attributes:
        every_steps: environment steps between checkpoints, or None.
        every_minutes: minutes of training between checkpoints, or None.
        keep_last: how many of the newest are kept, >= 1.
        keep_best: whether the one with the best mean return is kept.
        keep_every: keep every n-th checkpoint for good, or None.
    """

    every_steps: int | None = None
    every_minutes: float | None = 1.0
    keep_last: int = 3
    keep_best: bool = True
    keep_every: int | None = None

    @classmethod
    def parse(cls, value: object) -> CheckpointPlan:
        """Reads a plan from a mapping, a plan, or None (the defaults).

        Raises:
            ExperimentError: for an unknown key or a value out of range.
        """
        if value is None:
            return cls()
        if isinstance(value, cls):
            value = asdict(value)
        if not isinstance(value, Mapping):
            raise ExperimentError(
                f"checkpoint={value!r} is no mapping; write e.g. checkpoint={{'every_minutes': 5, 'keep_last': 3}}"
            )
        plain: dict[str, Any] = {}
        for key, given in value.items():
            if key not in _PLAN:
                raise ExperimentError(
                    f"checkpoint.{key} is unknown.{did_you_mean(str(key), _PLAN)} It may hold {', '.join(_PLAN)}"
                )
            plain[key] = _PLAN[key].plain(given, References(), where=f"checkpoint.{key}")
        plan = cls(**plain)
        if plan.every_steps is None and plan.every_minutes is None:
            raise ExperimentError(
                "checkpoint has neither every_steps nor every_minutes, so a crash would lose everything; set one"
            )
        if plan.every_minutes == 0:
            raise ExperimentError("checkpoint.every_minutes=0 would never let training go on; set e.g. 1")
        return plan

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data."""
        return asdict(self)


_PLAN = {
    "every_steps": Argument("every_steps", Kind.INT, None, low=1, optional=True),
    "every_minutes": Argument("every_minutes", Kind.FLOAT, 1.0, low=0.0, optional=True),
    "keep_last": Argument("keep_last", Kind.INT, 3, low=1),
    "keep_best": Argument("keep_best", Kind.BOOL, True),
    "keep_every": Argument("keep_every", Kind.INT, None, low=1, optional=True),
}


class Part(StrEnum):
    """What can be taken over from another run."""

    POLICY = "policy"
    CRITIC = "critic"
    OPTIMIZER = "optimizer"
    REPLAY = "replay"


@dataclass(frozen=True)
class InitFrom:
    """Where training starts from: another run's checkpoint instead of fresh networks.

    Attributes:
        run: id, name or URL of the run.
        step: "final", "best", "latest", or the checkpoint's step.
        parts: what is taken over.
    """

    run: str
    step: str | int = "final"
    parts: tuple[Part, ...] = (Part.POLICY, Part.CRITIC)

    @classmethod
    def parse(cls, value: object) -> InitFrom | None:
        """Reads `"RUN"`, `"RUN@20000"`, `"RUN@best"`, a mapping with run, step and parts, or None.

        Raises:
            ExperimentError: if it has another form.
        """
        if value is None or isinstance(value, cls):
            return value
        if isinstance(value, str):
            run, at, step = value.rpartition("@")
            value = {"run": run, "step": step} if at else {"run": value}
        names = [field.name for field in fields(cls)]
        if not isinstance(value, Mapping) or not value.get("run"):
            raise ExperimentError(
                f"init_from={value!r} cannot be read; write 'RUN' or 'RUN@20000' or 'RUN@best'"
            )
        for key in value.keys() - set(names):
            raise ExperimentError(
                f"init_from.{key} is unknown.{did_you_mean(str(key), names)} It may hold {', '.join(names)}"
            )
        return cls(
            str(value["run"]), _step(value.get("step", "final")), _parts(value.get("parts", cls.parts))
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"run": self.run, "step": self.step, "parts": [part.value for part in self.parts]}


def _step(value: object) -> str | int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and _STEP.fullmatch(value):
        return int(value)
    if value in ("final", "best", "latest"):
        return str(value)
    raise ExperimentError(f"init_from has the step {value!r}; write a step, 'best', 'latest' or 'final'")


def _parts(value: object) -> tuple[Part, ...]:
    choices = [part.value for part in Part]
    named = [value] if isinstance(value, str) else value
    if not isinstance(named, (list, tuple)) or not named:
        raise ExperimentError(f"init_from.parts={value!r} is no list; name some of {', '.join(choices)}")
    for part in named:
        if part not in choices:
            raise ExperimentError(
                f"init_from.parts has {part!r}.{did_you_mean(str(part), choices)} Name some of {', '.join(choices)}"
            )
    return tuple(part for part in Part if part.value in named)
