"""What a state design does to the recorded observations: a profile before it and one after it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlnb.design.checks.episode_sampling import sampled_rows
from rlnb.design.columns import Array
from rlnb.design.operations.stack import Stack
from rlnb.design.plan import StatePlan
from rlnb.design.profile import (
    ComponentProfile,
    ImageProfile,
    component_dtypes,
    is_image,
    profile_images,
    profile_values,
)
from rlnb.design.spaces import space_bounds
from rlnb.design.state import Clip, StateSpec
from rlnb.design.transitions import Transitions
from rlnb.view.lab.bench import Workbench

#: steps that are looked at; whole episodes of every policy, so that an edit shows at once
ROWS = 20_000
#: numbers that are looked at before the design; of wide observations fewer steps
NUMBERS = 1_000_000
_FEWEST = 1000
#: consecutive steps of one episode from which example pictures are taken
PICTURE_STEPS = 120

Profile = list[ComponentProfile] | ImageProfile


@dataclass(frozen=True, eq=False)
class StateLook:
    """Observations of the recorded episodes at one point of a state design.

    Attributes:
        space: of one observation.
        names: of its components; () for a picture.
        profile: of each component, or of the pictures.
        phrase: how many steps were looked at, e.g. "20,000 sampled steps of 100,000".
        frames: how many pictures one observation stacks.
        values: (n, d) components of the state; None for pictures.
        batch: the steps that `values` are of; None for pictures.
    """

    space: Any
    names: tuple[str, ...]
    profile: Profile
    phrase: str
    frames: int = 1
    values: Array | None = None
    batch: Transitions | None = None


class StateLooks:
    """Looks at a workbench's observations, each only once.

    Args:
        bench: the model; its lock is held by whoever asks.
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._sample: tuple[Transitions, Transitions] | None = None
        self._kept: dict[str, tuple[Transitions, StatePlan | None, StateLook]] = {}

    def before(self) -> StateLook:
        """Returns what the environment gives.

        Raises:
            DesignError: the observation has no components that could be named; the sentence says why.
        """
        return self._keep("before", None)

    def after(self) -> StateLook:
        """Returns what the agent sees.

        Raises:
            DesignError: as `before`.
        """
        plan = self._bench.plan
        return self.before() if plan.spec.is_identity else self._keep("after", plan)

    def _keep(self, which: str, plan: StatePlan | None) -> StateLook:
        batch = self._bench.batch
        kept = self._kept.get(which)
        if kept is None or kept[0] is not batch or kept[1] is not plan:
            raw = StateSpec().plan(self._bench.space, self._bench.subject.names)
            kept = (batch, plan, self._look(batch, raw if plan is None else plan))
            self._kept[which] = kept
        return kept[2]

    def _look(self, batch: Transitions, plan: StatePlan) -> StateLook:
        if is_image(plan.space, plan.names):
            return _pictures(batch, plan)
        if not plan.names:
            StateSpec([Clip()]).plan(plan.space, plan.names)  # says what is unsupported
        part = self._part(batch)
        obs, next_obs = (side.reshape(len(part), -1) for side in plan.preview(part))
        # an episode's last observation is seen, too
        low, high = space_bounds(plan.space)
        values = np.concatenate([obs, next_obs[part.ends]])
        found = profile_values(values, low, high, plan.names, component_dtypes(plan.space))
        phrase = f"{len(batch):,} steps"
        if part is not batch:
            phrase = f"{len(part):,} sampled steps of {len(batch):,}"
        return StateLook(plan.space, plan.names, found, phrase, values=obs, batch=part)

    def _part(self, batch: Transitions) -> Transitions:
        """Returns the sampled steps of a batch: the same ones before and after the design."""
        if self._sample is None or self._sample[0] is not batch:
            limit = min(ROWS, max(_FEWEST, NUMBERS // max(1, len(self._bench.subject.names))))
            rows = sampled_rows(batch, limit)
            self._sample = (batch, batch if len(rows) == len(batch) else batch.slice(rows))
        return self._sample[1]


def stage_values(bench: Workbench, place: int, *, good: bool) -> Array:
    """Returns the components in front of an operation, float64 (n, d), for statistics.

    Args:
        place: of the operation, from 0.
        good: only episodes of good policies; all where there is none.
    """
    with bench.lock:
        batch, plan, labels = bench.batch, bench.plan, bench.good
    if good:
        rows = np.isin(batch.policy.astype(str), sorted(labels))
        batch = batch.slice(rows) if rows.any() else batch
    values = plan.preview(batch, upto=place)[0]
    return values.reshape(len(values), -1).astype(np.float64)


def _pictures(batch: Transitions, plan: StatePlan) -> StateLook:
    start = int(batch.starts[len(batch.starts) // 2])
    same = np.flatnonzero(batch.episode[start : start + PICTURE_STEPS] == batch.episode[start])
    part = batch.slice(slice(start, start + len(same)))
    frames = math.prod(op.frames for op in plan.spec.ops if isinstance(op, Stack))
    profile = profile_images(plan.preview(part)[0], plan.space)
    return StateLook(plan.space, (), profile, f"from {len(part):,} steps of one episode", frames)
