"""promote() inside a job: which call trains, what is compared, what is filled in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rlnb import inside
from rlnb.errors import ExperimentError, FingerprintMismatch
from rlnb.experiment import Experiment
from rlnb.group import Group
from rlnb.inside import NotThisRun
from rlnb.job import Job
from rlnb.promote import promote
from rlnb.run import identity
from rlnb.run.events import read_events
from rlnb.run.findings import Finding, Level
from rlnb.run.identity import JobIdentity
from rlnb.run.layout import RunLayout, write_json
from rlnb.run.record import RunRecord, Target, read_record, write_record


class Training:
    """Takes the place of the trainer and its rehearsal, which have tests of their own."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.findings: list[Finding] = []
        self.rehearsed = 0

    def train(self, spec: Any, **more: Any) -> dict[str, Any]:
        self.calls.append({"spec": spec, **more})
        return {}

    def rehearse(self, spec: Any, **more: Any) -> list[Finding]:
        self.rehearsed += 1
        return self.findings


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Training:
    made = Training()
    for name, attribute in {"rlnb.train.trainer": "train", "rlnb.train.rehearse": "rehearse"}.items():
        module = ModuleType(name)
        setattr(module, attribute, getattr(made, attribute))
        monkeypatch.setitem(sys.modules, name, module)
    return made


def _experiment(name: str = "cart", **more: Any) -> Experiment:
    return Experiment(name, env="CartPole-v1", algo="PPO", **{"total_timesteps": 1000, **more})


class Inside:
    """A run folder and a process that believes to be its kernel."""

    def __init__(self, root: Path) -> None:
        self.layout = RunLayout(root / "exp-1")

    def begin(self, exp: Experiment | None, **more: Any) -> None:
        experiment = (
            {} if exp is None else {"experiment": exp.spec.to_dict(), "fingerprint": exp.spec.fingerprint()}
        )
        fields: dict[str, Any] = {"target": Target("c3", 1), **experiment, **more}
        record = RunRecord(id="exp-1", name="cart", created="t", rlnb="0", owner={}, store={"url": "/s"}, notebook={}, **{
            key: value for key, value in fields.items() if key != "notebook"})  # fmt: skip
        record = replace(record, notebook=fields.get("notebook", {}))
        write_record(self.layout, record)
        identity.bind(JobIdentity(self.layout.root, 1, "train", record.target.cell, record.target.call))
        inside._calls.trained.clear()

    def cell(self, cell_id: str) -> None:
        identity.enter_cell(cell_id)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Inside]:
    yield Inside(tmp_path)
    identity.bind(None)


def test_the_nth_call_of_the_target_cell_trains_and_no_other(run: Inside, training: Training) -> None:
    exp = _experiment()
    run.begin(exp, target=Target("c3", 2))
    run.cell("c2")
    assert isinstance(promote(exp), NotThisRun)
    run.cell("c3")
    assert isinstance(promote(exp), NotThisRun)
    job = promote(exp, store="memory://ignored")
    assert isinstance(job, Job)
    assert job.folder == run.layout.root
    assert isinstance(promote(exp), NotThisRun)
    [call] = training.calls
    assert (call["spec"], call["layout"], call["attempt"]) == (exp.spec, run.layout, 1)
    assert call["make_env"]().spec.id == "CartPole-v1"
    assert (call["callbacks"], call["signals"], training.rehearsed) == ((), {}, 0)


def test_a_member_of_a_grid_gets_a_group_of_itself(run: Inside, training: Training) -> None:
    exp = _experiment()
    run.begin(exp, group="cart-1a2b")
    run.cell("c3")
    group = promote(exp, grid={"seed": range(3)})
    assert isinstance(group, Group)
    assert ([job.id for job in group], group.name) == (["exp-1"], "cart-1a2b")
    assert len(training.calls) == 1


def test_a_cell_that_runs_again_counts_anew(run: Inside, training: Training) -> None:
    exp = _experiment()
    run.begin(exp, target=Target("c3", 2))
    for _ in range(2):
        run.cell("c3")
        assert isinstance(promote(exp), NotThisRun)
    assert training.calls == []


def test_the_handle_of_another_run_does_nothing_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    handle = NotThisRun("other", "exp-1")
    assert repr(handle) == "<promote('other') is not part of this run (exp-1)>"
    assert repr(handle.evaluate(episodes=3)) == repr(handle)
    assert repr(handle.metrics["rollout/ep_rew_mean"].plot(x="step").report()) == repr(handle)
    assert (list(handle), len(handle), bool(handle)) == ([], 0, True)
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "evaluate() does nothing: promote('other') is not part of this run (exp-1)."
    assert out[1].startswith("metrics.plot() does nothing")
    assert not hasattr(handle, "_repr_html_")


def test_a_different_experiment_is_refused_naming_field_and_both_values(
    run: Inside, training: Training
) -> None:
    run.begin(_experiment(learning_rate=1e-3))
    run.cell("c3")
    with pytest.raises(
        FingerprintMismatch,
        match=r"exp-1 now makes another experiment .*: hyperparameters.gamma was 0.99 and is now 0.9; hyperparameters.learning_rate was 0.001 and is now 0.002",
    ):
        promote(_experiment(learning_rate=2e-3, gamma=0.9))
    assert training.calls == []


def test_changes_of_a_fork_are_applied_before_comparing(run: Inside, training: Training) -> None:
    exp = _experiment()
    run.begin(exp.with_changes(learning_rate=0.5), changes={"learning_rate": 0.5})
    run.cell("c3")
    promote(exp)
    assert training.calls[0]["spec"].hyperparameters["learning_rate"] == 0.5


def test_a_run_promoted_without_a_kernel_is_completed_once(run: Inside, training: Training) -> None:
    exp = _experiment("lander", tags=("a",))
    run.begin(None, target=Target(), experiment_name="lander", notebook={"checked": False})
    run.cell("c1")
    assert isinstance(promote(_experiment("other")), NotThisRun)
    run.cell("c2")
    assert isinstance(promote(exp), Job)
    assert isinstance(promote(exp), NotThisRun)
    record = read_record(run.layout)
    assert record.experiment == exp.spec.to_dict()
    assert (record.fingerprint, record.name, record.tags) == (exp.spec.fingerprint(), "lander", ["a"])
    assert record.target == Target("c2", 1)
    assert (len(training.calls), training.rehearsed) == (1, 1)


def test_its_rehearsal_fails_before_training(run: Inside, training: Training) -> None:
    training.findings = [
        Finding(Level.ERROR, "env", "The env is broken."),
        Finding(Level.WARNING, "w", "Slow."),
    ]
    run.begin(None, target=Target(), notebook={"checked": False})
    run.cell("c1")
    with pytest.raises(ExperimentError, match=r"The rehearsal before training found: The env is broken."):
        promote(_experiment())
    assert [event.message for event in read_events(run.layout)] == [
        "error: The env is broken.",
        "warning: Slow.",
    ]
    assert read_record(run.layout).experiment is None
    assert training.calls == []


def test_finished_training_is_not_repeated(
    run: Inside, training: Training, capsys: pytest.CaptureFixture[str]
) -> None:
    exp = _experiment()
    run.begin(exp)
    write_json(run.layout.training_json, {"step": 1000})
    run.cell("c3")
    assert isinstance(promote(exp), Job)
    assert training.calls == []
    assert "exp-1 has finished its training in an earlier attempt." in capsys.readouterr().out


def test_a_job_ignores_its_own_store_and_options(run: Inside, training: Training) -> None:
    exp = _experiment()
    run.begin(exp)
    run.cell("c3")
    job = promote(
        exp, store="memory://gone", notebook="gone.ipynb", retries=-1, env_vars=["NOT_SET"], include=["gone"]
    )
    assert isinstance(job, Job)
    assert job.layout.root == run.layout.root
    assert len(training.calls) == 1


def test_check_is_not_repeated_in_a_job(run: Inside, training: Training) -> None:
    exp = _experiment()
    run.begin(exp)
    report = exp.check()
    assert report.ok
    assert training.rehearsed == 0
    assert "Not repeated inside a job." in repr(report)
