from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.differences import environment_differences, first_difference
from rlnb.errors import RunError, UsageError
from rlnb.job import Job
from rlnb.jobs.capture.environment import describe_environment
from rlnb.run.events import EventLog, read_events
from rlnb.run.index import Index
from rlnb.run.layout import read_json, write_json
from rlnb.run.record import Parent, read_record, write_record
from rlnb.run.secrets import Redactor
from rlnb.trust import require_trust
from rlnb.verify import Verification, _beginning, _other_beginning, _weaknesses, verify
from tests.job.runs import finish, write_small_bundle
from tests.job.test_fork import put


@pytest.fixture
def run(make_run):
    made = make_run(total=1_000)
    made.begin()
    return made


def test_an_unfinished_run_has_nothing_to_compare(run):
    with pytest.raises(
        UsageError, match="is running and has not finished training, so there are no final weights"
    ):
        verify(Job(run.layout.id, run.layout))


def test_a_foreign_bundle_is_not_executed_without_a_word(run):
    finish(run)
    write_json(run.layout.training_json, {"weights_sha256": "ab" * 32, "step": 1_000})
    before = Index().rows()
    with pytest.raises(UsageError, match=r"was not promoted on this machine, .* say --trust"):
        verify(Job(run.layout.id, run.layout))
    assert Index().rows() == before


def test_trust_is_remembered_for_this_very_bundle(run):
    require_trust(run.layout, trust=True)
    require_trust(run.layout)
    write_small_bundle(run.layout, "print('changed')")
    with pytest.raises(UsageError, match="was not promoted on this machine"):
        require_trust(run.layout)


def test_checkpoints_from_a_store_need_trust_of_their_own(run):
    require_trust(run.layout, trust=True)
    require_trust(run.layout, restored=True)  # nothing to restore
    put(run.layout, 1_000)
    require_trust(run.layout)
    with pytest.raises(
        UsageError, match=r"checkpoints of .* come from its store, .* unpickles .* say --trust"
    ):
        require_trust(run.layout, restored=True)
    require_trust(run.layout, trust=True, restored=True)
    require_trust(run.layout, restored=True)
    put(run.layout, 2_000)  # what somebody may have put there since
    with pytest.raises(UsageError, match="come from its store"):
        require_trust(run.layout, restored=True)


def test_a_file_that_differs_from_its_manifest_is_refused_even_when_trusted(run):
    run.layout.bundle_notebook.write_text("{}")
    with pytest.raises(RunError, match="is not the file that was promoted"):
        require_trust(run.layout, trust=True)


def test_the_same_environment_has_no_differences(run):
    assert environment_differences(run.layout) == [
        "the run's environment.json is missing, so its versions are unknown"
    ]
    write_json(run.layout.environment_json, describe_environment(Path("."), Redactor()))
    assert environment_differences(run.layout) == []


def test_differences_that_can_change_a_weight_are_named_with_both_values(run):
    described = describe_environment(Path("."), Redactor())
    torch = described["packages"]["torch"]
    described["packages"] |= {"torch": "2.0.0", "papermill": "0.0"}
    described["python"]["version"] = "3.11.0"
    described["cpu"]["vector"] = ["avx"]
    write_json(run.layout.environment_json, described)
    found = environment_differences(run.layout)
    assert f"torch was 2.0.0, here it is {torch}" in found
    assert found[0].startswith("Python was 3.11.0, here it is ")
    assert any(sentence.startswith("the CPU had avx, this one has ") for sentence in found)
    assert not any("papermill" in sentence for sentence in found)


def test_the_first_checkpoint_that_differs_is_named(run, make_run):
    again = make_run()
    for step in (1_000, 2_000):
        put(run.layout, step)
        put(again.layout, step)
    assert first_difference(run.layout, again.layout) == []
    put(run.layout, 3_000)
    folder = put(again.layout, 3_000).folder
    write_json(folder / "manifest.json", {**read_json(folder / "manifest.json"), "weights_sha256": "f" * 64})
    assert first_difference(run.layout, again.layout) == [
        "the weights part after step 2,000; at step 3,000 they differ"
    ]


def test_what_the_run_recorded_against_itself_is_said(run):
    EventLog(run.layout).append("inspected", "somebody evaluated 'x'")
    record = {"exact_resume": "not exact: Foo has no state_dict", "ended_by": "max_hours"}
    found = _weaknesses(Job(run.layout.id, run.layout), record)
    assert found[0] == "the run calls itself not exact: Foo has no state_dict"
    assert found[1].startswith("the run ended by max_hours")
    assert found[2] == "inspected: somebody evaluated 'x'"
    assert _weaknesses(Job(run.layout.id, run.layout), {"exact_resume": True})[0].startswith("inspected")


def test_a_fork_is_verified_from_the_checkpoint_it_began_with(run):
    job = Job(run.layout.id, run.layout)
    assert _beginning(job) is None
    record = read_record(run.layout)
    write_record(
        run.layout, record.__class__(**{**record.__dict__, "parent": Parent("exp-old", 500, "fork")})
    )
    with pytest.raises(
        RunError, match=r"was forked from exp-old at step 500, and that checkpoint is no longer kept"
    ):
        _beginning(job)
    put(run.layout, 900, attempt=1)
    put(run.layout, 500, attempt=0)
    assert _beginning(job).step == 500


def test_the_result_reads_as_a_sentence():
    equal = Verification("exp-a", True, "ab" * 32, "ab" * 32, 5_000)
    assert str(equal) == "exp-a: equal. 5,000 steps again end with the same weights (abababababababab…)."
    differs = Verification(
        "exp-a", False, "ab" * 32, "cd" * 32, 5_000, ["torch was 1, here it is 2"], "/scratch"
    )
    assert str(differs).splitlines() == [
        "exp-a: NOT equal. Expected abababababababab…, found cdcdcdcdcdcdcdcd….",
        "  - torch was 1, here it is 2",
        "  the second run is in /scratch",
    ]
    assert differs.to_dict()["equal"] is False
    unfinished = Verification("exp-a", False, "ab" * 32, None, 0, ["it failed"])
    assert str(unfinished).startswith("exp-a: not verified, the second run did not finish.")


def test_other_first_states_are_said_and_an_event_of_the_second_run(make_run):
    again = make_run()
    then = {"initial": {"observations": [1, 2], "states": [3]}}
    assert _other_beginning(then, then, again.layout) == []
    assert _other_beginning({}, then, again.layout) == []
    found = _other_beginning(then, {"initial": {"observations": [1, 7], "states": [3]}}, again.layout)
    assert found == [
        "the environments' first observations differ from the run's: their making depends on something outside the run"
    ]
    assert read_events(again.layout)[-1].kind == "initial_differs"
