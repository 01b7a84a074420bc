"""What an image observation looks like between two operations of a state design.

Supported: a Box of two dimensions (height, width), or of three with the channels last or first. Which of
the two is told by the smallest dimension, as SB3 does (`is_image_space_channels_first`), so that the two
never read one picture differently; a Box whose smallest dimension is the middle one is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.spaces import MAX_NAMED
from rlnb.errors import DesignError


@dataclass(frozen=True)
class ImageLayout:
    """Height, width and channels of a picture, and the numbers in it.

    Attributes:
        height: pixels; `width` likewise.
        channels: None for a picture of two dimensions.
        first: the channels are the first dimension.
        dtype: uint8 or float32.
        low: bound that no number leaves; `high` likewise.
    """

    height: int
    width: int
    channels: int | None
    first: bool
    dtype: np.dtype[Any]
    low: float
    high: float

    @classmethod
    def of(cls, space: Any) -> ImageLayout:
        """Reads a picture's layout from its space.

        Raises:
            DesignError: the space is no picture; it says what it is instead, and what to do.
        """
        from gymnasium import spaces

        if not isinstance(space, spaces.Box) or len(space.shape) not in (2, 3):
            raise DesignError(
                "Image operations take one picture, a Box of 2 or 3 dimensions (channels last or first), and "
                f"the observation is {space!s:.80}; let a wrapper such as "
                "gymnasium.wrappers.AddRenderObservation or FilterObservation give the picture alone."
            )
        shape = tuple(int(size) for size in space.shape)
        if min(shape) < 1:
            raise DesignError(f"The observation is a picture of {shape}, which holds no pixel.")
        if len(shape) == 3 and shape[1] < min(shape[0], shape[2]):
            raise DesignError(
                f"The observation is a picture of {shape}, whose smallest dimension, the channels, is neither "
                "the last nor the first; transpose it with gymnasium.wrappers.TransformObservation."
            )
        first = len(shape) == 3 and shape[0] <= min(shape)
        height, width = shape[1:] if first else shape[:2]
        channels = None if len(shape) == 2 else shape[0] if first else shape[2]
        dtype = np.dtype(np.uint8 if space.dtype == np.uint8 else np.float32)
        return cls(height, width, channels, first, dtype, float(space.low.min()), float(space.high.max()))

    def __str__(self) -> str:
        depth = "" if self.channels is None else f" of {self.channels} channel{'s' * (self.channels != 1)}"
        return f"{self.height}x{self.width} {self.dtype} picture{depth}"

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one picture."""
        if self.channels is None:
            return self.height, self.width
        return (
            (self.channels, self.height, self.width)
            if self.first
            else (self.height, self.width, self.channels)
        )

    @property
    def channel_axis(self) -> int:
        """Of a batch (n, ...)."""
        return 1 if self.first else 3

    @property
    def space(self) -> Any:
        """The gymnasium space of such pictures."""
        from gymnasium import spaces

        return spaces.Box(self.low, self.high, self.shape, self.dtype.type)

    def batch(self, observations: Any) -> Array:
        """Returns observations as (n, *shape) in this dtype."""
        values = np.asarray(observations)
        return values.astype(self.dtype, copy=False).reshape(len(values), *self.shape)


def is_image(space: Any) -> bool:
    """Whether a space is taken for a picture where an operation would do for numbers, too: a Box of two or
    three dimensions that holds bytes, or more numbers than can be named."""
    from gymnasium import spaces

    if not isinstance(space, spaces.Box) or len(space.shape) not in (2, 3):
        return False
    return bool(space.dtype == np.uint8 or int(np.prod(space.shape)) > MAX_NAMED)
