from __future__ import annotations

import numpy as np
import pytest

from rlnb.errors import CheckpointError, UsageError
from rlnb.fork import _carried, choose_checkpoint, copy_checkpoint, derived, fork
from rlnb.job import Job
from rlnb.run.checkpoints import checkpoints, damage, newest_valid, write_checkpoint
from rlnb.run.chunks import write_chunk
from rlnb.run.layout import RunLayout
from rlnb.run.record import read_record


def put(layout: RunLayout, step: int, attempt: int = 1, content: bytes = b"weights", shared=()):
    meta = {"return_mean": float(step), "weights_sha256": f"{step:064x}", "exact": True, "versions": {}}
    return write_checkpoint(layout, step, attempt, {"policy.bin": content}, meta=meta, shared=shared)


@pytest.fixture
def run(make_run):
    made = make_run(total=4_000)
    made.begin()
    return made


def test_the_newest_checkpoint_at_or_before_the_step_is_chosen(run):
    for step in (1_000, 2_000, 3_000):
        put(run.layout, step)
    assert choose_checkpoint(run.layout, None).step == 3_000
    assert choose_checkpoint(run.layout, 2_500).step == 2_000
    assert choose_checkpoint(run.layout, 1_000).step == 1_000
    with pytest.raises(
        CheckpointError, match=r"no valid checkpoint at or before step 999; it has: 1,000, 2,000, 3,000"
    ):
        choose_checkpoint(run.layout, 999)


def test_what_a_newer_attempt_undid_is_not_forked(run):
    put(run.layout, 3_000, attempt=1)
    put(run.layout, 2_500, attempt=2)
    assert choose_checkpoint(run.layout, None).step == 2_500


def test_a_damaged_checkpoint_is_passed_over(run):
    put(run.layout, 1_000)
    (put(run.layout, 2_000).folder / "policy.bin").write_bytes(b"WEIGHTS")
    assert choose_checkpoint(run.layout, None).step == 1_000


def test_a_copy_is_whole_and_counts_as_attempt_0(run, tmp_path):
    chunk = write_chunk(run.layout, b"replay rows", extension="npz")
    source = put(run.layout, 2_000, content=b"abc", shared=(chunk,))
    target = RunLayout(tmp_path / "exp-fork")
    copy_checkpoint(source, target)
    copy = newest_valid(target)
    assert (copy.step, copy.attempt) == (2_000, 0)
    assert damage(copy) is None
    assert copy.path("policy.bin").read_bytes() == b"abc"
    assert (target.checkpoints / chunk).read_bytes() == b"replay rows"
    assert copy.weights_sha256 == source.weights_sha256
    assert checkpoints(run.layout) == [source]


def test_a_derived_record_is_a_new_run_of_the_same_thing(run):
    asked = read_record(run.layout)
    made = derived(asked, "exp-new", kind="fork", parent="file:///x/exp-old", step=7)
    assert (made.id, made.key, made.group) == ("exp-new", "", None)
    assert (made.parent.run, made.parent.step, made.parent.kind) == ("file:///x/exp-old", 7, "fork")
    assert made.experiment == asked.experiment
    assert made.parameters == asked.parameters


def test_changes_are_carried_as_plain_values():
    assert _carried({"a": np.float64(0.5), "b": (1, 2), "c": None}) == {"a": 0.5, "b": [1, 2], "c": None}
    assert type(_carried({"a": np.float64(0.5)})["a"]) is float
    with pytest.raises(UsageError, match=r"The change policy=<object .* cannot be written to run.yaml"):
        _carried({"policy": object()})


def test_a_run_that_has_not_reached_promote_cannot_be_forked(run):
    text = run.layout.run_yaml.read_text()
    start = text.index("experiment:")
    end = text.index("experiment_name:")
    run.layout.run_yaml.write_text(text[:start] + "experiment: null\n" + text[end:])
    with pytest.raises(UsageError, match="has not reached its promote"):
        Job(run.layout.id, run.layout).fork()


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("memory://x", "ends with the process that holds it"),
        ("s4://bucket/x", "unknown scheme 's4'"),
        ("s3://name:password@bucket/x", "carries credentials"),
        ("{file}/below", "The store .*/file/below "),
    ],
)
def test_a_fork_s_store_is_tried_before_anything_starts(run, tmp_path, store, message):
    put(run.layout, 1_000)
    (tmp_path / "file").write_text("no folder")
    runs = set(run.layout.root.parent.iterdir())
    with pytest.raises(UsageError, match=message):
        fork(Job(run.layout.id, run.layout), store=store.format(file=tmp_path / "file"), trust=True)
    assert set(run.layout.root.parent.iterdir()) == runs
