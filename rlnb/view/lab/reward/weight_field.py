"""A weight: a slider to find it with the hand, and a field for the exact number or a schedule."""

from __future__ import annotations

import math
from collections.abc import Callable

import ipywidgets as w

Weight = float | str


class WeightField:
    """A slider and a field that show one weight.

    Args:
        change: takes a new weight; returns whether it worked.

    Attributes:
        slider: reaches equally far on both sides of zero.
        exact: also takes a schedule such as "lin_1", for which the slider rests.
    """

    def __init__(self, change: Callable[[Weight], bool]) -> None:
        self._change = change
        self._quiet = False
        self._reach = 0.0  # grows with the weight, and does not shrink under the hand
        self.slider = w.FloatSlider(readout=False, layout=w.Layout(width="150px"))
        self.exact = w.Text(continuous_update=False, layout=w.Layout(width="76px"))
        self.exact.tooltip = "a number, or a schedule over training such as lin_1"
        self.slider.observe(lambda event: self._drag(event["new"]), "value")
        self.exact.observe(lambda event: self._write(event["new"]), "value")

    def show(self, weight: Weight) -> None:
        """Shows a weight as it stands in the design."""
        self._quiet = True
        try:
            self.slider.disabled = isinstance(weight, str)
            self.exact.value = weight if isinstance(weight, str) else f"{weight:.10g}"
            if isinstance(weight, str):
                return
            if abs(weight) > self._reach or not self._reach:
                self._reach = reach = slider_range(weight)
                with self.slider.hold_trait_notifications():
                    self.slider.min, self.slider.max, self.slider.step = -reach, reach, reach / 200
            self.slider.value = weight
        finally:
            self._quiet = False

    def _drag(self, weight: float) -> None:
        if self._quiet:
            return
        weight = round(weight, 10)  # steps of a slider are not exact
        if self._change(weight):
            self._quiet = True
            self.exact.value = f"{weight:.10g}"
            self._quiet = False

    def _write(self, text: str) -> None:
        if self._quiet:
            return
        try:
            weight: Weight = float(text.replace("−", "-"))
        except ValueError:
            weight = text.strip()  # a schedule, or else the term says what is wrong with it
        if self._change(weight):
            self.show(weight)


def slider_range(weight: float) -> float:
    """Returns how far a weight's slider reaches on both sides of zero: 1, 2 or 5 times a power of ten.

    A weight that is larger than numbers with a double can be stands at the slider's end.
    """
    need = min(max(2.0 * abs(weight), 1e-300), 5e307) if weight else 2.0  # a slider's numbers are finite
    power: float = 10.0 ** math.floor(math.log10(need))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= need * (1 - 1e-9))
