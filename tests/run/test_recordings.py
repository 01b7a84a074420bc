"""Episodes of a lab: whole or absent, known by an id that survives renaming, and never a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlnb.design.transitions import Transitions
from rlnb.errors import EnvError, UsageError
from rlnb.run.frame_files import Frames
from rlnb.run.recordings import EpisodeStore
from rlnb.run.trajectories import write_transitions

ENV = {"kind": "id", "value": "CartPole-v1", "kwargs": {}}


def episodes(*lengths: int, names: tuple[str, ...] = ("x", "v"), **more: Any) -> Transitions:
    n = sum(lengths)
    t = np.concatenate([np.arange(length) for length in lengths])
    width = len(names) or 2
    obs = np.arange(n * width, dtype=np.float32).reshape(n, width) + more.pop("shift", 0)
    return Transitions.from_arrays(
        obs, obs + 1, np.zeros(n, np.int64), reward=np.ones(n), terminated=np.zeros(n, bool),
        truncated=np.zeros(n, bool), t=t, names=names, **more,
    )  # fmt: skip


FRAMES = Frames((0, 0, 1, 1), (0, 3, 0, 2), (b"a0", b"a3", b"b0", b"b2"), "some are missing")


def test_a_recording_comes_back_with_its_frames(tmp_path: Path) -> None:
    store = EpisodeStore(tmp_path / "episodes", env=ENV, names=("x", "v"))
    assert store.load().batch is None
    assert store.entries() == []
    entry = store.add(episodes(3, 2), label="random", about={"env": ENV, "seed": 4}, frames=FRAMES)
    assert (entry.label, entry.episodes, entry.steps, entry.frames_said) == (
        "random", 2, 5, "some are missing",
    )  # fmt: skip
    assert entry.about == {"env": ENV, "seed": 4}
    assert (entry.bytes, entry.frame_bytes) == (entry.path.stat().st_size, entry.frames.stat().st_size)  # type: ignore[union-attr]
    assert sorted(path.name for path in store.folder.iterdir()) == [
        "001-random.frames.parquet", "001-random.parquet",
    ]  # fmt: skip
    other = EpisodeStore(store.folder)
    assert other.entries() == [entry]
    loaded = other.load()
    assert loaded.keys == (f"{entry.id}:0", f"{entry.id}:1")
    assert loaded.batch is not None
    assert loaded.batch.labels == {0: "random", 1: "random"}
    np.testing.assert_array_equal(loaded.batch.obs.matrix, episodes(3, 2).obs.matrix)
    assert other.frame(loaded.keys[0], 2) == b"a0"
    assert other.frame(loaded.keys[0], 3) == other.frame(loaded.keys[0], 99) == b"a3"
    assert other.frame(loaded.keys[1], 2) == b"b2"
    assert other.frame_times(loaded.keys[1]) == [0, 2]
    assert other.frame(f"{entry.id}:7", 0) is None
    assert other.next_seed("random") == 6
    assert other.next_seed("idle") == 0


def test_sets_are_loaded_one_after_the_other(tmp_path: Path) -> None:
    store = EpisodeStore(tmp_path)
    first = store.add(episodes(3, 2), label="random")
    second = store.add(episodes(4, labels={0: "expert"}))
    loaded = store.load()
    assert loaded.keys == (f"{first.id}:0", f"{first.id}:1", f"{second.id}:0")
    assert loaded.batch is not None
    assert loaded.batch.labels == {0: "random", 1: "random", 2: "expert"}
    assert loaded.batch.starts.tolist() == [0, 3, 5]


def test_renaming_keeps_keys_and_frames(tmp_path: Path) -> None:
    store = EpisodeStore(tmp_path)
    entry = store.add(episodes(4, 3), label="random", frames=FRAMES)
    renamed = store.rename(entry.id, "drunk / v1.5")
    assert renamed.id == entry.id
    assert renamed.path.name == "001-drunk-v1-5.parquet"
    loaded = EpisodeStore(tmp_path).load()
    assert loaded.batch is not None
    assert loaded.batch.labels == {0: "drunk / v1.5", 1: "drunk / v1.5"}
    assert EpisodeStore(tmp_path).frame(loaded.keys[0], 3) == b"a3"
    store.remove(entry.id)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match=f"no recording '{entry.id}' in .* It has: none"):
        store.remove(entry.id)


def test_damaged_and_foreign_files_are_named(tmp_path: Path) -> None:
    store = EpisodeStore(tmp_path, env=ENV, names=("x", "v"), signals=["force"])
    EpisodeStore(tmp_path).add(episodes(2), label="silent")
    good = store.add(episodes(2, signals={"force": np.ones(2), "heat": np.ones(2)}), label="good")
    (tmp_path / "notes.parquet").write_text("hello")
    write_transitions(tmp_path / "007-mine.parquet", episodes(2))
    (tmp_path / "008-copy.parquet").write_bytes(good.path.read_bytes())
    EpisodeStore(tmp_path).add(
        episodes(2), label="lunar", about={"env": ENV | {"value": "LunarLander-v3", "kwargs": {"wind": 1}}}
    )
    EpisodeStore(tmp_path).add(episodes(2, names=("x", "w")), label="odd")
    loaded = store.load()
    assert loaded.keys == (f"{good.id}:0",)
    assert loaded.batch is not None
    assert loaded.batch.signals.names == ("force",)
    text = "\n".join(store.problems)
    assert "001-silent.parquet is left out: it lacks the signal 'force', which is wanted here." in text
    assert "notes.parquet is left out: cannot be read as Parquet: " in text
    assert "007-mine.parquet is left out: it was not recorded into this folder; take it in with demo=" in text
    assert "008-copy.parquet is left out: it is a copy of 002-good.parquet." in text
    assert "it was recorded in LunarLander-v3(wind=1), not in CartPole-v1." in text
    assert "it has the components x, w, and CartPole-v1 has the components x, v." in text
    assert len(store.problems) == 6


def test_damage_in_the_middle_of_a_file_is_named(tmp_path: Path) -> None:
    store = EpisodeStore(tmp_path)
    bad = store.add(episodes(50, 50), label="bad", frames=FRAMES)
    good = store.add(episodes(3), label="good")
    data = bytearray(bad.path.read_bytes())
    data[4:400] = bytes(396)
    bad.path.write_bytes(data)
    assert bad.frames is not None
    bad.frames.write_bytes(b"PAR1")
    assert store.load().keys == (f"{good.id}:0",)
    assert store.problems[0].startswith("001-bad.parquet is left out: cannot be read as Parquet: ")
    assert store.frame(f"{bad.id}:0", 0) is None
    assert "the frames in " in store.problems[-1]


def test_recordings_of_other_types_are_not_mixed(tmp_path: Path) -> None:
    store = EpisodeStore(tmp_path)
    store.add(episodes(3), label="a")
    wide = episodes(3)
    store.add(
        Transitions.from_columns(
            {k: v.astype(np.float64) if k == "obs.x" else v for k, v in wide.to_columns().items()},
            wide.meta(),
        ),
        label="b",
    )
    assert len(store.load().keys) == 1
    assert (
        "002-b.parquet is left out: its obs.x is double, and float in the first recording"
        in store.problems[0]
    )


def test_what_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    store = EpisodeStore(tmp_path / "e", env=ENV, names=("x", "v"))
    with pytest.raises(UsageError, match="no whole episode to keep"):
        store.add(episodes(3).slice(slice(0, 0)), label="a")
    with pytest.raises(UsageError, match="label='' does not fit; give a name of 1 to 80 characters"):
        store.add(episodes(3), label="")
    unnamed = episodes(2, names=())
    with pytest.raises(
        EnvError, match="has components without names, and CartPole-v1 has the components x, v"
    ):
        store.add(unnamed)
    with pytest.raises(UsageError, match="frames= needs one episode, t and image each, in order"):
        store.add(episodes(2), label="a", frames=Frames((1, 0), (0, 0), (b"", b"")))
    with pytest.raises(UsageError, match="cannot be written"):
        EpisodeStore("/proc/nowhere").add(episodes(2), label="a")
    with pytest.raises(UsageError, match="'abc' is no episode's key"):
        store.frame("abc", 0)
    assert store.entries() == []


def test_a_demo_is_taken_in_once_and_replaced_when_it_changes(tmp_path: Path) -> None:
    store, demo = EpisodeStore(tmp_path / "episodes", env=ENV), tmp_path / "demo.parquet"
    write_transitions(demo, episodes(3, labels={0: "expert"}), about={"env": ENV, "seed": 3})
    first = store.import_recording(demo)
    assert (first.label, first.about["seed"], first.about["imported"]) == ("expert", 3, "../demo.parquet")
    assert store.import_recording(str(demo), label="other") == first
    assert store.import_recording(episodes(3)) == first  # the same steps, given as a value
    write_transitions(demo, episodes(5), about={"env": ENV})
    second = store.import_recording(demo)
    assert second.label == "demo"
    assert store.entries() == [second]
    write_transitions(demo, episodes(5), about={"env": ENV | {"value": "Acrobot-v1"}})
    with pytest.raises(
        EnvError, match=r"demo.parquet does not fit: it was recorded in Acrobot-v1, not in Cart"
    ):
        store.import_recording(demo)
    with pytest.raises(UsageError, match="demo='.*none.parquet' cannot be taken in: there is no file"):
        store.import_recording(tmp_path / "none.parquet")
    with pytest.raises(UsageError, match="demo=5 is no recording"):
        store.import_recording(5)  # type: ignore[arg-type]


KILLED = """
import os, signal, sys
import tests.run.test_recordings as here
from rlnb.run import recordings
where, at = sys.argv[1:]
def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(recordings, at, die)
recordings.EpisodeStore(where).add(here.episodes(3, 3), label="lost", frames=here.FRAMES)
"""


def test_a_writer_that_is_killed_between_its_files_leaves_nothing_to_see(tmp_path: Path) -> None:
    dead = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), "write_transitions"], check=False)
    assert dead.returncode == -signal.SIGKILL
    assert sorted(os.listdir(tmp_path)) == [".001.claim", "001-lost.frames.parquet"]
    store = EpisodeStore(tmp_path)
    assert store.entries() == []
    assert store.problems == ()
    entry = store.add(episodes(3), label="next")
    assert entry.path.name == "002-next.parquet"
    half = ".001-lost.parquet.0a1b2c3d.tmp"  # a writer that was killed in the middle of a file
    (tmp_path / half).touch()
    for name in (".001.claim", "001-lost.frames.parquet", half):
        os.utime(tmp_path / name, (0, 0))
    store.add(episodes(3), label="later")
    assert sorted(os.listdir(tmp_path)) == ["002-next.parquet", "003-later.parquet"]


def test_two_that_add_at_once_get_numbers_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rlnb.run import recordings

    first, second = EpisodeStore(tmp_path), EpisodeStore(tmp_path)
    real = recordings.write_transitions

    def meanwhile(*args: Any, **kwargs: Any) -> None:
        monkeypatch.setattr(recordings, "write_transitions", real)
        second.add(episodes(2), label="same")
        real(*args, **kwargs)

    monkeypatch.setattr(recordings, "write_transitions", meanwhile)
    first.add(episodes(4), label="same")
    assert [(e.path.name, e.steps) for e in first.entries()] == [
        ("001-same.parquet", 4),
        ("002-same.parquet", 2),
    ]


def test_a_number_that_was_published_since_the_listing_is_not_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EpisodeStore(tmp_path)
    store.add(episodes(2), label="a")
    stale, real = [set[int]()], store._names._taken
    monkeypatch.setattr(store._names, "_taken", lambda: stale.pop() if stale else real())
    assert store.add(episodes(3), label="a").path.name == "002-a.parquet"


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sets=st.lists(
        st.tuples(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.text(min_size=1, max_size=12)),
        min_size=1, max_size=3,
    )
)  # fmt: skip
def test_any_label_and_any_episodes_come_back(
    tmp_path_factory: Any, sets: list[tuple[list[int], str]]
) -> None:
    store = EpisodeStore(tmp_path_factory.mktemp("store"))
    kept = [(lengths, label) for lengths, label in sets if label.strip() and label.isprintable()]
    for shift, (lengths, label) in enumerate(kept):
        store.add(episodes(*lengths, shift=shift), label=label)
    assert [(e.label, e.episodes, e.steps) for e in store.entries()] == [
        (label, len(lengths), sum(lengths)) for lengths, label in kept
    ]
    if kept:
        batch = store.load().batch
        assert batch is not None
        whole = [episodes(*lengths, shift=shift).obs.matrix for shift, (lengths, _) in enumerate(kept)]
        np.testing.assert_array_equal(batch.obs.matrix, np.concatenate(whole))
        assert [batch.labels[i] for i in range(len(batch.starts))] == [
            label for lengths, label in kept for _ in lengths
        ]
