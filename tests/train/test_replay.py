"""Replay buffers in pieces: what comes back, and how little is written."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.save_util import save_to_pkl

from rlnb.errors import CheckpointError
from rlnb.run.chunks import write_chunk
from rlnb.run.layout import RunLayout
from rlnb.train.replay import ReplayLog, restore_replay, ring_columns

OBS, ACTION = gym.spaces.Box(-1, 1, (3,)), gym.spaces.Box(-1, 1, (2,))


class Store:
    """Chunks in a run folder, with the bytes written counted."""

    def __init__(self, root):
        self.layout, self.written = RunLayout(root), 0

    def write(self, data):
        self.written += len(data)
        return write_chunk(self.layout, data, extension="npz")

    def read(self, name):
        return (self.layout.checkpoints / name).read_bytes()


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "run")


def make(size, n_envs=1, **kwargs):
    return ReplayBuffer(size * n_envs, OBS, ACTION, device="cpu", n_envs=n_envs, **kwargs)


def add(buffer, count, rng):
    for _ in range(count):
        n = buffer.n_envs
        buffer.add(rng.normal(size=(n, 3)), rng.normal(size=(n, 3)), rng.normal(size=(n, 2)), rng.normal(size=n),
                   rng.random(n) < 0.1, [{"TimeLimit.truncated": bool(rng.random() < 0.5)} for _ in range(n)])  # fmt: skip


def same(mine, theirs):
    assert (mine.pos, mine.full) == (theirs.pos, theirs.full)
    a, b = ring_columns(mine), ring_columns(theirs)
    rows = slice(None) if mine.full else slice(0, mine.pos)
    return all(np.array_equal(a[name][rows], b[name][rows]) for name in a)


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("memory", [False, True])
def test_every_turn_of_the_ring_comes_back(store, n_envs, memory):
    kwargs = {"optimize_memory_usage": True, "handle_timeout_termination": False} if memory else {}
    rng, log, steps = np.random.default_rng(0), ReplayLog(), 0
    buffer = make(50, n_envs, **kwargs)
    for count in (0, 7, 13, 25, 20, 49, 50, 51, 120, 1):
        add(buffer, count, rng)
        steps += count
        header = log.commit(log.capture(buffer, steps=steps), store.write)
        again = make(50, n_envs, **kwargs)
        assert restore_replay(again, header, store.read)
        assert same(buffer, again)
        if memory:
            assert np.array_equal(buffer.observations[buffer.pos], again.observations[again.pos])


def test_only_what_was_added_is_written(store):
    rng, log = np.random.default_rng(0), ReplayLog()
    buffer = make(1000)
    add(buffer, 900, rng)
    log.commit(log.capture(buffer, steps=900), store.write)
    before = store.written
    add(buffer, 30, rng)
    header = log.commit(log.capture(buffer, steps=930), store.write)
    row = sum(array[0].nbytes for array in ring_columns(buffer).values())
    assert 30 * row <= store.written - before < 30 * row + 3000
    assert [rows for _, rows in header["chunks"]] == [900, 30]
    add(buffer, 1000 - 930 + 900, rng)  # the first chunk's rows are all overwritten
    header = log.commit(log.capture(buffer, steps=1900), store.write)
    assert [rows for _, rows in header["chunks"]] == [30, 970]
    assert header["skip"] == 0


def test_the_increment_of_a_full_buffer_is_small(store, tmp_path):
    """The figure `replay_increment`, at a tenth of its size: bytes for 1 % more rows / SB3's pickle."""
    rng, log, size = np.random.default_rng(0), ReplayLog(), 100_000
    buffer = make(size)
    for array in ring_columns(buffer).values():
        array[:] = rng.normal(size=array.shape)
    buffer.full = True
    log.commit(log.capture(buffer, steps=size), store.write)
    before = store.written
    add(buffer, size // 100, rng)
    log.commit(log.capture(buffer, steps=size + size // 100), store.write)
    save_to_pkl(tmp_path / "buffer.pkl", buffer)
    assert (store.written - before) / (tmp_path / "buffer.pkl").stat().st_size <= 0.02


def test_a_resumed_log_goes_on_with_the_same_chunks(store):
    rng, log = np.random.default_rng(0), ReplayLog()
    buffer = make(100)
    add(buffer, 60, rng)
    header = log.commit(log.capture(buffer, steps=60), store.write)
    again, resumed = make(100), ReplayLog()
    restore_replay(again, header, store.read)
    resumed.resume(header)
    add(again, 10, rng)
    assert [rows for _, rows in resumed.commit(resumed.capture(again, steps=70), store.write)["chunks"]] == [
        60,
        10,
    ]


def test_rows_that_do_not_fit_the_count_are_written_whole(store):
    rng, log = np.random.default_rng(0), ReplayLog()
    buffer = make(100)
    add(buffer, 10, rng)
    log.commit(log.capture(buffer, steps=10), store.write)
    add(buffer, 5, rng)  # five rows, but one step: a callback added rows of its own
    header = log.commit(log.capture(buffer, steps=11), store.write)
    again = make(100)
    restore_replay(again, header, store.read)
    assert same(buffer, again)


@pytest.mark.parametrize("size", [30, 300])
def test_a_fork_may_change_the_size(store, size):
    rng, log = np.random.default_rng(0), ReplayLog()
    buffer = make(100)
    add(buffer, 130, rng)
    header = log.commit(log.capture(buffer, steps=130), store.write)
    other = make(size)
    assert not restore_replay(other, header, store.read)
    kept = min(size, 100)
    newest = np.roll(buffer.observations, -buffer.pos, axis=0)[-kept:]
    assert np.array_equal(other.observations[:kept], newest)
    assert (other.pos, other.full) == (kept % size, kept == size)


def test_another_number_of_environments_is_refused(store):
    rng, log = np.random.default_rng(0), ReplayLog()
    buffer = make(100, 2)
    add(buffer, 10, rng)
    header = log.commit(log.capture(buffer, steps=10), store.write)
    with pytest.raises(
        CheckpointError, match=r"of shape \(2, 3\), this experiment's has \(1, 3\); keep n_envs"
    ):
        restore_replay(make(100, 1), header, store.read)
