"""State operations on pictures: smaller, grey, and as numbers from 0 to 1.

Each treats one picture at a time, so that a batch may be cut anywhere. Bytes (uint8) stay bytes in
`resize` and `grayscale`: SB3's CnnPolicy takes bytes and scales them itself, and a replay buffer of bytes
is a quarter of one of floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.operations.components import Components
from rlnb.design.operations.image_layout import ImageLayout
from rlnb.design.operations.operation import Apply, Operation, read_count
from rlnb.errors import DesignError

#: pixels; larger pictures slow down learning and fill the replay buffer
MAX_SIDE = 256

#: weights of red, green and blue in the luma Y'. Source: Recommendation ITU-R BT.601-7, 2.5.1
LUMA = (0.299, 0.587, 0.114)
# The same in 1/65536, with which bytes are exact and sum to one; Pillow's convert("L") has these, too.
_LUMA_INTEGERS = (19595, 38470, 7471)


class ImageOperation(Operation):
    """An operation that takes a picture; it says so where there are named numbers."""

    def fit(self, before: Components, key: int) -> tuple[Components, Apply]:
        raise DesignError(
            f"The state operation {self.kind} works on images, and at that point there are "
            f"{len(before.names)} named numbers ({', '.join(before.names[:4])}{', …' * (len(before.names) > 4)}); "
            "put it before operations on numbers, or leave it out."
        )


@dataclass(frozen=True)
class ToUnit(ImageOperation):
    """Turns a picture's numbers into float32 from 0 to 1: (x - low) / (high - low) of its bounds.

    SB3's CnnPolicy does that with bytes by itself.
    """

    kind = "to_unit"

    def fit_image(self, before: ImageLayout, key: int) -> tuple[ImageLayout, Apply]:
        low, span = before.low, before.high - before.low
        if not math.isfinite(span) or span <= 0.0:
            raise DesignError(
                f"The state operation {self.kind} needs a picture with finite bounds, and there is one of "
                f"[{before.low}, {before.high}]; give the environment's Box low=0, high=255."
            )
        after = replace(before, dtype=np.dtype(np.float32), low=0.0, high=1.0)

        def apply(x: Array, _: Any) -> Array:
            if low == 0.0:
                return np.divide(x, np.float32(span), dtype=np.float32)
            return np.asarray((x.astype(np.float64) - low) / span, dtype=np.float32)

        return after, apply


@dataclass(frozen=True)
class Resize(ImageOperation):
    """Makes a picture `height` x `width` pixels, at most 256 x 256; each is the mean of the area it covers.

    Source: Pillow's `Resampling.BOX`, which is OpenCV's INTER_AREA when shrinking, as used for Atari in
    Mnih et al., "Human-level control through deep reinforcement learning", 2015.
    """

    kind = "resize"
    height: int
    width: int

    def __post_init__(self) -> None:
        for side in ("height", "width"):
            value = read_count(getattr(self, side), f"{side} of {self.kind}", 1, MAX_SIDE)
            object.__setattr__(self, side, value)

    def fit_image(self, before: ImageLayout, key: int) -> tuple[ImageLayout, Apply]:
        from PIL import Image

        size, box = (self.width, self.height), Image.Resampling.BOX
        after = replace(before, height=self.height, width=self.width)

        def plane(values: Array) -> Array:
            return np.asarray(Image.fromarray(np.ascontiguousarray(values)).resize(size, box))

        def picture(values: Array) -> Array:
            if before.channels is None:
                return plane(values)
            if before.first:
                return np.stack([plane(channel) for channel in values])
            return np.stack([plane(values[..., i]) for i in range(before.channels)], axis=2)

        def apply(x: Array, _: Any) -> Array:
            shrunk = np.empty((len(x), *after.shape), after.dtype)
            for row, values in enumerate(x):
                shrunk[row] = picture(values)
            # a mean of floats may leave the bounds by a rounding error
            return shrunk if after.dtype == np.uint8 else np.clip(shrunk, after.low, after.high)

        return after, (lambda x, _: x) if after == before else apply


@dataclass(frozen=True)
class Grayscale(ImageOperation):
    """Makes a colour picture (red, green, blue) grey, of one channel: Y' = 0.299 R + 0.587 G + 0.114 B.

    A picture without channels gets its one, which is what CnnPolicy asks for; a grey one stays.
    Source: Recommendation ITU-R BT.601-7.
    """

    kind = "grayscale"

    def fit_image(self, before: ImageLayout, key: int) -> tuple[ImageLayout, Apply]:
        after = replace(before, channels=1)
        if before.channels is None:
            return after, lambda x, _: x[..., None]
        if before.channels == 1:
            return after, lambda x, _: x
        if before.channels != 3:
            raise DesignError(
                f"The state operation {self.kind} mixes 3 channels (red, green, blue), and there is a {before}; "
                "put it before stack, or leave it out."
            )
        axis = before.channel_axis

        def apply(x: Array, _: Any) -> Array:
            red, green, blue = (np.take(x, [i], axis=axis) for i in range(3))
            if before.dtype == np.uint8:
                parts = zip(_LUMA_INTEGERS, (red, green, blue), strict=True)
                mixed = sum((np.uint32(weight) * part for weight, part in parts), np.uint32(1 << 15))
                return np.right_shift(mixed, np.uint32(16)).astype(np.uint8)
            r, g, b = (np.float64(weight) for weight in LUMA)
            return np.clip(r * red + g * green + b * blue, before.low, before.high).astype(np.float32)

        return after, apply
