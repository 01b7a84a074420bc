"""Checks of states that are images: what is said about components is not said about single pixels."""

from __future__ import annotations

import math

import numpy as np

from rlnb.design.checks.finding import Finding, Severity
from rlnb.design.checks.wording import number, percent
from rlnb.design.columns import Array
from rlnb.design.plan import StatePlan
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError

#: images beyond this many are sampled
MAX_IMAGES = 300


def check_images(
    batch: Transitions, plan: StatePlan, values: tuple[Array, Array] | None = None
) -> dict[str, Finding]:
    """Returns what can be said of images, by code: their bounds, their size, and whether they change."""
    if not len(batch):
        raise DesignError("There is no step to check the state on; record some episodes first.")
    rows = np.unique(np.linspace(0, len(batch) - 1, min(len(batch), MAX_IMAGES)).astype(np.int64))
    images = plan.preview(batch.slice(rows))[0] if values is None else values[0][rows]
    phrase = f"{len(images):,} images" + ("" if len(rows) == len(batch) else f" sampled from {len(batch):,}")
    return {
        finding.code: finding
        for finding in (_bounds(images, plan, phrase, rows), _size(plan), _change(images, phrase))
    }


def _bounds(images: Array, plan: StatePlan, phrase: str, rows: Array) -> Finding:
    low, high = float(np.min(plan.space.low)), float(np.max(plan.space.high))
    flat = images.reshape(len(images), -1)
    least, most = flat.min(axis=1).astype(np.float64), flat.max(axis=1).astype(np.float64)
    why = "What scales by the declared bounds, as SB3 does with images, then leaves its own range."
    odd = ~np.isfinite(least) | ~np.isfinite(most)
    beyond = odd | (least < low - 1e-5) | (most > high + 1e-5)
    shown = tuple(int(row) for row in rows[beyond][:5])
    if odd.any():
        return Finding(
            "state.bounds", Severity.PROBLEM, f"{odd.sum():,} of {phrase} hold pixels that are NaN or infinite.",
            "A network that is fed a NaN has nothing but NaN weights after its next update.",
            "Repair the environment's rendering.", float(odd.sum()), rows=shown,
        )  # fmt: skip
    reached = f"pixels reach from {number(least.min())} to {number(most.max())}"
    if beyond.any():
        return Finding(
            "state.bounds", Severity.WARNING,
            f"{beyond.sum():,} of {phrase} leave the declared bounds of {number(low)} to {number(high)}: {reached}.",
            why, "Correct the environment's space.", float(beyond.sum()), rows=shown,
        )  # fmt: skip
    return Finding("state.bounds", Severity.FINE, f"In {phrase}, {reached}, as declared.", why, value=0.0)


def _size(plan: StatePlan) -> Finding:
    shape = plan.space.shape
    sentence = f"The state is an image of {' x '.join(str(side) for side in shape)} numbers."
    why = "Every number is stored twice for each step in a replay buffer."
    return Finding("state.dimensions", Severity.FINE, sentence, why, value=float(math.prod(shape)))


def _change(images: Array, phrase: str) -> Finding:
    still = (images == images[:1]).reshape(len(images), -1).all(axis=0)
    share = float(still.mean())
    why = "What never changes tells the agent nothing."
    if len(images) > 1 and still.all():
        sentence = f"All of {phrase} are the same."
        advice = "Look at the pictures: the environment may render nothing."
        return Finding("state.constant", Severity.WARNING, sentence, why, advice, value=1.0)
    sentence = f"{percent(share)} of the pixels never change in {phrase}."
    return Finding("state.constant", Severity.FINE, sentence, why, value=share)
