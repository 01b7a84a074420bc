"""Checkpoints on disk: valid only when whole, retained by plan, chunks shared and collected."""

from __future__ import annotations

import json

import pytest

from rlnb.errors import CheckpointError, RunFormatError
from rlnb.run.checkpoints import (
    MANIFEST,
    best,
    checkpoints,
    newest_valid,
    read_checkpoint,
    write_checkpoint,
)
from rlnb.run.chunks import collect_chunks, write_chunk
from rlnb.run.layout import RunLayout
from rlnb.run.plans import CheckpointPlan
from rlnb.run.retention import retain


@pytest.fixture
def layout(tmp_path):
    return RunLayout(tmp_path / "run")


def write(layout, step, attempt=1, *, mean=None, number=1, shared=()):
    meta = {
        "weights_sha256": f"w{step}",
        "exact": True,
        "return_mean": mean,
        "versions": {"torch": "2"},
        "number": number,
    }
    return write_checkpoint(
        layout, step, attempt, {"a.bin": b"a" * step, "b.bin": b"b"}, meta=meta, shared=shared
    )


def steps(layout):
    return [(one.step, one.attempt) for one in checkpoints(layout)]


def test_what_is_written_is_read(layout):
    write(layout, 10, mean=1.5)
    (one,) = checkpoints(layout)
    assert (one.step, one.attempt, one.return_mean, one.exact, one.weights_sha256) == (
        10,
        1,
        1.5,
        True,
        "w10",
    )
    assert one.path("a.bin").read_bytes() == b"a" * 10
    assert one.bytes == 11
    assert one.meta == {"number": 1}
    manifest = json.loads((layout.checkpoint(10, 1) / MANIFEST).read_text())
    assert [entry["name"] for entry in manifest["files"]] == ["10-a1/a.bin", "10-a1/b.bin"]


def test_a_checkpoint_is_written_once(layout):
    first = write(layout, 10)
    assert write(layout, 10, mean=9.0).time == first.time


def test_without_a_manifest_there_is_no_checkpoint(layout):
    write(layout, 10)
    write(layout, 20)
    (layout.checkpoint(20, 1) / MANIFEST).unlink()
    reported = []
    assert newest_valid(layout, report=lambda folder, why: reported.append((folder.name, why))).step == 10
    assert reported[0][0] == "20-a1"
    assert "was not finished or is damaged" in reported[0][1]


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda path: path.write_bytes(b"x" * 20), "a.bin has changed since it was written"),
        (lambda path: path.write_bytes(b"x"), "a.bin has 1 bytes instead of 20"),
        (lambda path: path.unlink(), "a.bin cannot be read"),
    ],
)
def test_a_damaged_checkpoint_is_reported_and_skipped(layout, damage, why):
    write(layout, 10)
    write(layout, 20)
    damage(layout.checkpoint(20, 1) / "a.bin")
    reported = []
    assert newest_valid(layout, report=lambda _, text: reported.append(text)).step == 10
    assert len(reported) == 1
    assert why in reported[0]


def test_the_newest_attempt_wins_over_undone_steps(layout):
    write(layout, 30, 1)
    write(layout, 20, 2)
    assert (newest_valid(layout).step, newest_valid(layout).attempt) == (20, 2)


def test_a_manifest_that_leaves_the_folder_is_refused(layout):
    write(layout, 10)
    path = layout.checkpoint(10, 1) / MANIFEST
    path.write_text(path.read_text().replace("10-a1/b.bin", "../run.yaml"))
    reported = []
    assert newest_valid(layout, report=lambda _, text: reported.append(text)) is None
    assert "not a plain relative name" in reported[0]


def test_a_newer_format_is_refused(layout):
    write(layout, 10)
    path = layout.checkpoint(10, 1) / MANIFEST
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(RunFormatError, match="has format 2, this rlnb reads up to 1; upgrade rlnb"):
        read_checkpoint(layout, layout.checkpoint(10, 1), 10, 1)


def test_an_unknown_file_is_named(layout):
    with pytest.raises(CheckpointError, match=r"10-a1 has no c\.bin; choose another checkpoint"):
        write(layout, 10).path("c.bin")


def test_retention_keeps_the_last_the_best_and_each_nth(layout):
    means = {10: 1.0, 20: 9.0, 30: 2.0, 40: 3.0, 50: 4.0, 60: 5.0}
    for number, (step, mean) in enumerate(means.items(), 1):
        write(layout, step, mean=mean, number=number)
    retain(layout, CheckpointPlan(keep_last=2, keep_best=True, keep_every=3))
    assert steps(layout) == [(20, 1), (30, 1), (50, 1), (60, 1)]
    assert best(checkpoints(layout)).step == 20


def test_what_a_fork_began_with_stays(layout):
    write(layout, 5, 0)
    for step in (10, 20, 30):
        write(layout, step)
    retain(layout, CheckpointPlan(keep_last=1, keep_best=False))
    assert steps(layout) == [(5, 0), (30, 1)]


def test_the_only_valid_one_is_never_removed(layout):
    write(layout, 10)
    write(layout, 20)
    (layout.checkpoint(20, 1) / "b.bin").unlink()
    retain(layout, CheckpointPlan(keep_last=1, keep_best=False))
    assert steps(layout) == [(10, 1)]


def test_half_written_folders_go_once_a_newer_checkpoint_stands(layout):
    (layout.checkpoint(10, 1)).mkdir(parents=True)
    (layout.checkpoint(10, 1) / "a.bin").write_bytes(b"half")
    write(layout, 20)
    retain(layout, CheckpointPlan())
    assert not layout.checkpoint(10, 1).exists()


def test_chunks_are_shared_and_collected_when_no_manifest_needs_them(layout):
    old, new = write_chunk(layout, b"old", extension="npz"), write_chunk(layout, b"new", extension="npz")
    assert write_chunk(layout, b"old", extension="npz") == old
    write(layout, 10, shared=(old,))
    write(layout, 20, shared=(old, new))
    retain(layout, CheckpointPlan(keep_last=2))
    assert len(list(layout.chunks.iterdir())) == 2
    third = write_chunk(layout, b"third", extension="npz")
    write(layout, 30, shared=(new, third))
    retain(layout, CheckpointPlan(keep_last=1, keep_best=False))
    assert sorted(f"chunks/{path.name}" for path in layout.chunks.iterdir()) == sorted([new, third])
    assert collect_chunks(layout, needed=[new]) == [third]


def test_a_damaged_chunk_damages_its_checkpoints(layout):
    name = write_chunk(layout, b"rows", extension="npz")
    write(layout, 10)
    write(layout, 20, shared=(name,))
    (layout.checkpoints / name).write_bytes(b"rowz")
    assert newest_valid(layout).step == 10


def test_retention_keeps_the_one_that_is_right_byte_for_byte(layout):
    for step in (10, 20, 30):
        write(layout, step)
    for step in (20, 30):  # the same size, other bytes: only their sha256 tells
        path = layout.checkpoint(step, 1) / "a.bin"
        path.write_bytes(bytes(len(path.read_bytes())))
    retain(layout, CheckpointPlan(keep_last=1, keep_best=False))
    assert newest_valid(layout).step == 10


def test_a_mean_that_is_not_a_number_is_not_the_best(layout):
    write(layout, 10, mean=float("nan"))
    write(layout, 20, mean=-5.0)
    assert best(checkpoints(layout)).step == 20
