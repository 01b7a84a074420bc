"""Frame stacking: the last few observations as one, so that what moves can be seen in a still."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.memory import Memory
from rlnb.design.operations.components import Components
from rlnb.design.operations.image_layout import ImageLayout
from rlnb.design.operations.operation import Apply, Names, Operation, read_count, read_names
from rlnb.errors import DesignError

#: an agent that needs to remember more needs a recurrent policy
MAX_FRAMES = 64


@dataclass(frozen=True)
class Stack(Operation):
    """Shows the last `frames` observations at once; an episode's first one stands for those before it.

    Of named numbers, `<name>_1` (one step ago), `<name>_2`, … are appended; `names` None means all. A
    picture's channels are put behind each other, the oldest first. Source of the padding: gymnasium's
    `FrameStackObservation`.

    Attributes:
        frames: how many, the present one included; 2 to 64.
    """

    kind = "stack"
    frames: int
    names: Names = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "frames", read_count(self.frames, f"frames of {self.kind}", 2, MAX_FRAMES))
        object.__setattr__(self, "names", read_names(self.names, self.kind))

    def fit(self, before: Components, key: int) -> tuple[Components, Apply]:
        places = before.indices(self.names, self.kind)
        older = range(1, self.frames)
        names = [f"{before.names[place]}_{ago}" for ago in older for place in places]
        low, high = (np.tile(end[places], len(older)) for end in (before.low, before.high))

        def apply(x: Array, memory: Memory) -> Array:
            past = memory.history(key, x[:, places], self.frames)
            return np.concatenate([x, *reversed(past[:-1])], axis=1)

        return before.append(names, low, high, self.kind), apply

    def fit_image(self, before: ImageLayout, key: int) -> tuple[ImageLayout, Apply]:
        if self.names is not None:
            raise DesignError(
                f"The state operation {self.kind} names {', '.join(self.names)}, and there is a {before}; "
                "leave names out to stack pictures."
            )
        after = replace(before, channels=self.frames * (before.channels or 1))
        axis = before.channel_axis

        def apply(x: Array, memory: Memory) -> Array:
            past = memory.history(key, x, self.frames)
            return np.stack(past, axis=3) if before.channels is None else np.concatenate(past, axis=axis)

        return after, apply
