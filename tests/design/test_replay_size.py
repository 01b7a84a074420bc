"""Replay memory: the sizes of SB3's own buffers, and the warning."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from rlnb.design.checks.finding import Severity
from rlnb.design.replay_size import replay_bytes, replay_finding
from rlnb.errors import DesignError

VECTOR = spaces.Box(-1, 1, (17,), np.float32)
IMAGE = spaces.Box(0, 255, (4, 84, 84), np.uint8)


@pytest.mark.parametrize(
    ("observation", "action", "each"),
    [
        (VECTOR, spaces.Box(-1, 1, (6,), np.float32), 2 * 68 + 24 + 12),
        (VECTOR, spaces.Box(-1, 1, (6,), np.float64), 2 * 68 + 24 + 12),  # kept as float32
        (spaces.Box(-1, 1, (17,), np.float64), spaces.Discrete(4), 2 * 136 + 8 + 12),
        (IMAGE, spaces.Discrete(4), 2 * 28_224 + 8 + 12),
        (spaces.Discrete(16), spaces.MultiDiscrete([3, 3]), 2 * 8 + 16 + 12),
        (spaces.Dict({"image": IMAGE, "speed": spaces.Box(0, 1, (), np.float32)}), spaces.MultiBinary(3), 2 * 28_228 + 3 + 12),
    ],
)  # fmt: skip
def test_bytes_of_a_step_are_those_of_sb3(observation, action, each):
    from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer

    assert replay_bytes(observation, action, 1_000_000) == each * 1_000_000
    kind = DictReplayBuffer if isinstance(observation, spaces.Dict) else ReplayBuffer
    buffer = kind(11, observation, action, device="cpu", n_envs=2)
    parts = [buffer.observations, buffer.next_observations]
    arrays = [array for part in parts for array in (part.values() if isinstance(part, dict) else [part])]
    arrays += [buffer.actions, buffer.rewards, buffer.dones, buffer.timeouts]
    assert (
        replay_bytes(observation, action, 11, n_envs=2) == sum(array.nbytes for array in arrays) == each * 10
    )


def test_spaces_and_numbers_that_no_buffer_takes():
    with pytest.raises(DesignError, match="space Tuple"):
        replay_bytes(spaces.Tuple([VECTOR]), spaces.Discrete(2), 10)
    with pytest.raises(DesignError, match="space Dict"):
        replay_bytes(VECTOR, spaces.Dict({"a": spaces.Discrete(2)}), 10)
    with pytest.raises(DesignError, match="buffer_size=0"):
        replay_bytes(VECTOR, spaces.Discrete(2), 0)


def test_the_warning_begins_at_60_percent():
    assert replay_finding(599, 1000).severity is Severity.FINE
    found = replay_finding(60 * 10**9, 100 * 10**9)
    assert (found.code, found.severity, found.value) == ("state.replay", Severity.WARNING, 0.6)
    assert found.sentence == "The replay buffer takes 60 GB, 60 % of 100 GB of memory."
    assert replay_finding(2000, 1000).severity is Severity.PROBLEM
