"""Pictures: within their budget, evenly spread, and without a trace in what is recorded."""

from __future__ import annotations

import io
import re
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from cells import Counter
from PIL import Image

from rlnb.envs.frames import FrameBudget
from rlnb.envs.rollouts import record_rollouts
from rlnb.errors import UsageError


class Drawn(Counter):
    """Draws noise, with the very generators that its steps use."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - gymnasium's own way

    def __init__(self, length: int = 3, render_mode: str | None = None) -> None:
        super().__init__(length)
        self.render_mode = render_mode

    def step(self, action: Any) -> Any:
        obs, _, *rest = super().step(action)
        return (obs, self.np_random.normal() + np.random.random(), *rest)

    def render(self) -> Any:
        return self.np_random.integers(0, 255, (20, 30, 3)).astype(np.uint8) + np.uint8(np.random.random())


def columns(rollouts: Any) -> dict[str, Any]:
    return {
        name: values.tobytes() for name, values in rollouts.batch.to_columns().items() if name != "policy"
    }


@pytest.mark.parametrize("env", ["CartPole-v1", "LunarLander-v3"])
def test_drawing_changes_no_byte_of_the_recording(env: str) -> None:
    plain = record_rollouts(env, episodes=2, seed=3)
    drawn = record_rollouts(env, episodes=2, seed=3, frames=FrameBudget(megabytes=0.05, width=120))
    assert columns(plain) == columns(drawn)
    frames = drawn.frames
    assert plain.frames is None
    assert frames is not None
    assert frames.said == ""
    assert frames.bytes <= 50_000
    image = Image.open(io.BytesIO(frames.images[0]))
    assert (image.format, image.size) == ("WEBP", (120, 80))
    ends = np.diff([*drawn.batch.starts, len(drawn.batch)])  # type: ignore[union-attr,arg-type]
    for episode, length in enumerate(ends):
        times = [t for e, t in zip(frames.episode, frames.t, strict=True) if e == episode]
        assert times[0] == 0
        assert times[-1] == length
        assert len(set(np.diff(times[:-1]).tolist())) <= 1  # evenly spread but for the last


def test_a_picture_that_draws_from_the_environments_generators_changes_nothing() -> None:
    np.random.seed(1)
    plain = record_rollouts(Drawn, episodes=2, env_kwargs={"length": 9})
    np.random.seed(1)
    drawn = record_rollouts(Drawn, episodes=2, env_kwargs={"length": 9}, frames=FrameBudget())
    assert columns(plain) == columns(drawn)
    assert len(drawn.frames or ()) == 20


def test_frames_are_thinned_out_until_only_first_and_last_are_left() -> None:
    def taken(megabytes: float) -> dict[int, list[int]]:
        budget = FrameBudget(megabytes=megabytes, quality=1)
        frames = record_rollouts(Drawn, episodes=4, env_kwargs={"length": 21}, frames=budget).frames
        assert frames is not None
        said.append(frames.said)
        return {
            e: [t for k, t in zip(frames.episode, frames.t, strict=True) if k == e] for e in frames.episode
        }

    said: list[str] = []
    assert taken(1.0) == {e: list(range(22)) for e in range(4)}
    assert taken(0.009) == taken(0.009)
    thin = taken(0.009)
    strides = {b - a for times in thin.values() for a, b in pairwise(times[:-1])}
    assert strides <= {2, 4, 8, 16}
    assert len(strides) == 1
    assert all(times[0] == 0 and times[-1] == 21 for times in thin.values())
    assert said == [""] * 4
    assert taken(0.0)[0] == [0, 21]
    assert said[-1].startswith(
        "Only the first 1 episodes have frames: the budget of 0 MB is used up; give more"
    )


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        (Counter, r"There are no frames, because Counter cannot draw itself \(Counter cannot be made with"),
        (lambda render_mode=None: Counter(), r"\(it was made with render_mode=None\)\.$"),
    ],
)
def test_an_environment_that_cannot_be_drawn_is_recorded_and_says_why(env: Any, reason: str) -> None:
    rollouts = record_rollouts(env, episodes=1, frames=FrameBudget())
    assert rollouts.batch is not None
    assert len(rollouts.batch) == 3
    assert rollouts.frames is not None
    assert len(rollouts.frames) == 0
    assert re.search(reason, rollouts.frames.said)


def test_a_renderer_that_fails_does_not_stop_the_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Drawn):
        def render(self) -> Any:
            raise RuntimeError("an OpenGL context is missing\nand more")

    rollouts = record_rollouts(Broken, episodes=1, frames=FrameBudget())
    assert rollouts.frames is not None
    assert rollouts.frames.said == (
        "There are no frames, because Broken cannot draw itself (RuntimeError: an OpenGL context is missing); "
        "without a screen, set MUJOCO_GL=egl or MUJOCO_GL=osmesa before the kernel starts."
    ).replace("Broken cannot", f"{Broken.__qualname__.rpartition(':')[2]} cannot")
    monkeypatch.setattr(Drawn, "render", lambda self: np.zeros((2, 2)))
    said = record_rollouts(Drawn, episodes=1, frames=FrameBudget()).frames.said  # type: ignore[union-attr]
    assert "render() gave a ndarray instead of a picture (uint8)" in said


@pytest.mark.parametrize(
    "wrong", [{"megabytes": -1}, {"width": 3}, {"quality": 0}, {"quality": 50.5}, {"width": "x"}]
)
def test_a_budget_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(UsageError, match=f"{name}=.* does not fit; give a number from"):
        FrameBudget(**wrong)


def test_a_wrapper_without_a_generator_is_drawn() -> None:
    env = gym.make("CartPole-v1", render_mode="rgb_array")
    env.close()
    frames = record_rollouts("CartPole-v1", lambda obs: 0, episodes=1, frames=FrameBudget(width=600)).frames
    assert frames is not None
    assert Image.open(io.BytesIO(frames.images[-1])).size == (600, 400)
