"""Operations of a state design in plain words: which are offered where, and what each begins as."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rlnb.design.columns import Array
from rlnb.design.operations.image_layout import ImageLayout, is_image
from rlnb.design.operations.images import Grayscale, Resize, ToUnit
from rlnb.design.operations.operation import Operation
from rlnb.design.operations.stack import Stack
from rlnb.design.operations.standardize import RunningZScore, ZScore
from rlnb.design.plan import Stage
from rlnb.design.state import Clip, Delta, Derive, Scale, Select

#: kind → what it is called
NUMBER_KINDS = {
    "select": "Select: keep components",
    "derive": "Derive a component",
    "zscore": "z-score, stored statistics",
    "running_zscore": "z-score, running statistics",
    "clip": "Clip",
    "delta": "Delta: change since last step",
    "scale": "Scale and shift",
    "stack": "Stack the last steps",
}
PICTURE_KINDS = {
    "grayscale": "Grayscale",
    "resize": "Resize",
    "stack": "Stack the last frames",
    "to_unit": "To [0, 1]",
}

#: side of a picture that an agent usually sees; source: Mnih et al., 2015
_SIDE = 84

Measure = Callable[[Sequence[str]], ZScore]
"""Returns the z-score with the recorded statistics of some components."""


def offered_kinds(stage: Stage) -> dict[str, str]:
    """Returns the operations that make sense on what there is at a point of the design: kind → its name."""
    kinds = dict(NUMBER_KINDS) if stage.names else {}
    if is_picture(stage):
        kinds |= {kind: words for kind, words in PICTURE_KINDS.items() if kind not in kinds}
    return kinds


def without_pixels(stage: Stage) -> Stage:
    """Returns the stage without the names of a small picture's pixels, which nobody chooses from."""
    return replace(stage, names=()) if stage.op is None and is_image(stage.space) else stage


def is_picture(stage: Stage) -> bool:
    """Whether operations on pictures apply there."""
    numbers_by_now = stage.op is not None and bool(stage.names)
    return type(stage.space).__name__ == "Box" and len(stage.space.shape) in (2, 3) and not numbers_by_now


def first_operation(kind: str, stage: Stage, measure: Measure) -> Operation:
    """Returns what an operation of a kind begins as.

    Args:
        stage: what there is in front of it.
        measure: takes the statistics of components there.
    """
    names = stage.names
    if kind == "select":
        return Select(names)
    if kind == "derive":
        number = next(n for n in range(1, len(names) + 2) if f"derived_{n}" not in names)
        return Derive(f"derived_{number}", "0.0")
    if kind == "zscore":
        return measure(names)
    if kind == "running_zscore":
        return RunningZScore()
    if kind == "clip":
        return Clip(low=-10.0, high=10.0)
    if kind == "delta":
        return Delta(_free(names, lambda name: f"d_{name}"))
    if kind == "scale":
        return Scale()
    if kind == "stack":
        return Stack(2, _free(names, lambda name: f"{name}_1")) if names else Stack(4)
    if kind == "resize":
        layout = ImageLayout.of(stage.space)
        return Resize(min(_SIDE, layout.height), min(_SIDE, layout.width))
    return Grayscale() if kind == "grayscale" else ToUnit()


def statistics_words(operation: ZScore, names: Sequence[str], most: int = 4) -> str:
    """Returns "x 0.02 ± 0.5, y …", the stored statistics of the first few components."""
    shown = [
        f"{name} {mean:.3g} ± {std:.3g}".replace("-", "−")
        for name, mean, std in zip(operation.names or names, operation.mean, operation.std, strict=False)
    ]
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")


def measured(values: Array, every: Sequence[str], names: Sequence[str]) -> ZScore:
    """Returns the z-score of some components with the statistics of recorded values (n, d)."""
    places = [list(every).index(name) for name in names]
    return ZScore.of(values[:, places], names)


def _free(names: Sequence[str], made: Callable[[str], str]) -> tuple[str, ...] | None:
    """Returns the components whose new name is not taken yet; None where that is all of them."""
    free = tuple(name for name in names if made(name) not in names)
    return None if len(free) in (0, len(names)) else free
