from __future__ import annotations

import pytest

from rlnb.errors import CheckpointError, RunNotFound
from rlnb.run.checkpoints import checkpoints
from rlnb.run.findings import Level
from rlnb.run.layout import RunLayout, write_json
from rlnb.run.plans import InitFrom
from rlnb.warmstart import check_source, stage
from tests.job.test_fork import put


@pytest.fixture
def parent(make_run):
    run = make_run("exp-2026-11-29-lander-aaaa")
    run.begin()
    for step in (1_000, 2_000, 3_000):
        put(run.layout, step, content=str(step).encode())
    return run


@pytest.fixture
def child(make_run):
    return make_run("exp-2026-11-30-lander-bbbb")


def staged(run) -> list[tuple[int, bytes]]:
    return [
        (one.step, one.path("policy.bin").read_bytes()) for one in checkpoints(RunLayout(run.layout.init))
    ]


@pytest.mark.parametrize(("which", "step"), [("@latest", 3_000), ("@best", 3_000), ("@2000", 2_000)])
def test_the_checkpoint_is_copied_into_the_run(parent, child, which, step):
    begun = stage(child.layout, InitFrom.parse(parent.layout.id + which))
    assert (begun.run, begun.step, begun.kind) == (
        f"file://{parent.layout.root.parent}/{parent.layout.id}",
        step,
        "init_from",
    )
    assert staged(child) == [(step, str(step).encode())]


def test_it_is_done_once(parent, child):
    stage(child.layout, InitFrom.parse(f"{parent.layout.id}@1000"))
    assert stage(child.layout, InitFrom.parse(f"{parent.layout.id}@2000")) is None
    assert [step for step, _ in staged(child)] == [1_000]
    assert stage(parent.layout, InitFrom.parse(child.layout.id)) is None
    assert stage(child.layout, None) is None


def test_a_name_never_means_the_run_that_starts(parent, child):
    assert stage(child.layout, InitFrom.parse("lander@1000")).run.endswith(parent.layout.id)


def test_a_name_that_only_the_starting_run_has_is_refused(make_run):
    run = make_run(name="walker")
    with pytest.raises(RunNotFound, match="names only the run that is to start from it"):
        stage(run.layout, InitFrom.parse("walker@latest"))


def test_final_needs_a_run_that_has_finished(parent, child):
    with pytest.raises(
        CheckpointError, match=r"has not finished training; use 'latest' \(step 3,000\) or 'best'"
    ):
        stage(child.layout, InitFrom.parse(parent.layout.id))
    write_json(parent.layout.training_json, {"step": 3_000})
    assert stage(child.layout, InitFrom.parse(parent.layout.id)).step == 3_000


def test_a_missing_or_damaged_checkpoint_is_named(parent, child):
    with pytest.raises(CheckpointError, match=r"has no checkpoint 1500; it has: 1,000, 2,000, 3,000"):
        stage(child.layout, InitFrom.parse(f"{parent.layout.id}@1500"))
    (parent.layout.checkpoint(3_000, 1) / "policy.bin").write_bytes(b"3OOO")
    with pytest.raises(
        CheckpointError, match=r"3000-a1 of .* is damaged: .* has changed since it was written"
    ):
        stage(child.layout, InitFrom.parse(f"{parent.layout.id}@3000"))


def test_a_check_finds_out_before_anything_is_started(parent):
    assert check_source(None) == check_source(InitFrom.parse(f"{parent.layout.id}@1000")) == []
    for text, message in (
        ("nobody", "init_from='nobody' names no run. There is no run 'nobody' here; `rlnb jobs` lists them."),
        (
            f"{parent.layout.id}@1500",
            f"init_from: {parent.layout.id} has no checkpoint 1500; it has: 1,000, 2,000, 3,000. 'best', 'latest' and 'final' are understood, too.",
        ),
    ):
        [one] = check_source(InitFrom.parse(text))
        assert (one.level, one.message) == (Level.ERROR, message)
