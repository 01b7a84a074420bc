"""Pictures of episodes while they are recorded, compressed and thinned out until a budget holds.

Frames are taken at every step to begin with. When their sum exceeds the budget, every second frame of all
episodes is dropped and from then on only every second is taken, and so on: they stay evenly spread, and
which ones remain depends on nothing but their bytes. The first and last frame of an episode always stay.
"""

from __future__ import annotations

import io
import math
import os
import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import gymnasium as gym
import numpy as np

from rlnb.envs.make import EnvFactory
from rlnb.errors import EnvError, MissingExtra, UsageError
from rlnb.run.frame_files import Frames

MODE: Final = "rgb_array"
_NEVER: Final = 1 << 62


@dataclass(frozen=True)
class FrameBudget:
    """How much room the frames of one recording may take.

    Attributes:
        megabytes: of 10^6 bytes, for all frames together.
        width: wider pictures are made smaller, in pixels.
        quality: of the compression, 1 to 100.
    """

    megabytes: float = 8.0
    width: int = 320
    quality: int = 70

    def __post_init__(self) -> None:
        for name, low, high in (("megabytes", 0.0, 1000.0), ("width", 16, 4096), ("quality", 1, 100)):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            if not number or not low <= value <= high or (name != "megabytes" and value != int(value)):
                raise UsageError(f"{name}={value!r:.40} does not fit; give a number from {low:g} to {high:g}")


def make_drawn(factory: EnvFactory) -> tuple[gym.Env[Any, Any], str]:
    """Makes an environment that draws itself, or one that does not and the reason."""
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        # pygame's SDL looks for a desktop although it draws into memory, and writes an error where there is none.
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    try:
        env, reason = factory(render_mode=MODE), ""
    except (EnvError, MissingExtra, TypeError, ValueError) as error:
        env, reason = factory(), str(error)
    mode = getattr(env.unwrapped, "render_mode", None)
    if mode == MODE:
        return env, ""
    return env, reason or f"it was made with render_mode={mode!r}"


class Camera:
    """Takes the frames of a recording.

    Args:
        budget: their room.
        label: the environment's name, for messages.
        reason: why the environment cannot be drawn; "" where it perhaps can.
    """

    def __init__(self, budget: FrameBudget, label: str, reason: str = "") -> None:
        self._budget = budget
        self._label = label
        self._limit = budget.megabytes * 1e6
        self._kept: list[tuple[int, int, bool, bytes]] = []  # episode, t, whether it is the last, image
        self._size = 0
        self._stride = 1
        self._episode = 0
        self._full_at: int | None = None  # the episode in which nothing was left to thin out
        self._works: bool | None = None
        self.said = self._without(reason) if reason else ""

    def begin(self, env: gym.Env[Any, Any], episode: int) -> None:
        """Takes the first frame of an episode, right after its reset."""
        self._episode = episode
        self._take(env, 0, last=False)

    def after_step(self, env: gym.Env[Any, Any], t: int, *, last: bool) -> None:
        """Takes the frame after step t - 1, if its turn has come or the episode has ended."""
        if last or t % self._stride == 0:
            self._take(env, t, last=last)

    def drop(self, episode: int) -> None:
        """Forgets an episode that was not finished."""
        self._kept = [one for one in self._kept if one[0] != episode]
        self._size = sum(len(one[3]) for one in self._kept)

    def frames(self) -> Frames:
        """Returns what was taken."""
        said = self.said
        if self._full_at is not None and self._full_at < self._episode:
            said = (
                f"Only the first {self._full_at + 1} episodes have frames: the budget of "
                f"{self._budget.megabytes:g} MB is used up; give more megabytes, or record fewer episodes."
            )
        columns = list(zip(*self._kept, strict=True)) or [(), (), (), ()]
        return Frames(columns[0], columns[1], columns[3], said)

    def _take(self, env: gym.Env[Any, Any], t: int, *, last: bool) -> None:
        if self.said or (self._full_at is not None and self._full_at < self._episode):
            return
        try:
            image = self._compressed(env)
        except Exception as error:  # whatever a renderer or its driver raises: the episode goes on without
            self.said = self._without(f"{type(error).__name__}: {error}")
            return
        self._kept.append((self._episode, t, last, image))
        self._size += len(image)
        while self._size > self._limit and self._full_at is None:
            self._thin()

    def _thin(self) -> None:
        if all(t == 0 or last for _, t, last, _ in self._kept):
            self._full_at, self._stride = self._episode, _NEVER
            return
        self._stride *= 2
        self._kept = [one for one in self._kept if one[1] % self._stride == 0 or one[2]]
        self._size = sum(len(one[3]) for one in self._kept)

    def _compressed(self, env: gym.Env[Any, Any]) -> bytes:
        from PIL import Image, features

        with _generators_kept(env), warnings.catch_warnings():
            if self._works is None:  # a missing display is told once, in our words
                warnings.simplefilter("ignore")
            picture: Any = env.render()
        shown = isinstance(picture, np.ndarray) and picture.dtype == np.uint8 and picture.ndim in (2, 3)
        if not shown:
            raise EnvError(f"render() gave a {type(picture).__name__} instead of a picture (uint8)")
        self._works = True
        image = Image.fromarray(picture).convert("RGB")
        if image.width > self._budget.width:
            height = max(1, round(image.height * self._budget.width / image.width))
            image = image.resize((self._budget.width, height), Image.Resampling.BILINEAR)
        data = io.BytesIO()
        if features.check("webp"):
            # the quickest method: a third more bytes than the default, in a third of the time
            image.save(data, "WEBP", quality=self._budget.quality, method=0)
        else:
            image.save(data, "JPEG", quality=self._budget.quality)
        return data.getvalue()

    def _without(self, reason: str) -> str:
        first = (reason.strip().splitlines() or ["no reason given"])[0].rstrip(".")
        screen = any(word in reason for word in ("OpenGL", "GLFW", "glfw", "EGL", "DISPLAY", "mjr_"))
        advice = (
            "; without a screen, set MUJOCO_GL=egl or MUJOCO_GL=osmesa before the kernel starts"
            if screen
            else ""
        )
        return f"There are no frames, because {self._label} cannot draw itself ({first:.300}){advice}."


@contextmanager
def _generators_kept(env: gym.Env[Any, Any]) -> Iterator[None]:
    """Puts random generators back after drawing: a picture with random stars must not change an episode."""
    own = vars(env.unwrapped).get("_np_random") if hasattr(env.unwrapped, "__dict__") else None
    before = own.bit_generator.state if isinstance(own, np.random.Generator) else None
    python, legacy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)
        if before is not None and own is not None:
            own.bit_generator.state = before
