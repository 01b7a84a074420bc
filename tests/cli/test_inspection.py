from __future__ import annotations

import json

import pytest

from rlnb.run.events import EventLog
from rlnb.run.layout import write_json


@pytest.fixture
def run(make_run):
    made = make_run("exp-2026-11-30-lander-7f3a", total=2_000)
    made.begin()
    made.advance(1_000)
    return made


def test_jobs_lists_a_table_and_json(rlnb, run, make_run):
    make_run.list(run)
    code, out, _ = rlnb("jobs")
    assert code == 0
    assert out.splitlines()[0].split() == ["ID", "NAME", "STATE", "STEP", "RETURN", "CREATED"]
    assert f"{run.step:,}/2,000" in out
    code, out, _ = rlnb("jobs", "--json")
    row = json.loads(out)[0]
    assert (row["id"], row["state"], row["step"]) == (run.layout.id, "running", run.step)


def test_jobs_without_runs_says_what_to_do(rlnb):
    assert "`rlnb promote NOTEBOOK` starts one" in rlnb("jobs")[1]
    assert rlnb("jobs", "--state", "done")[0] == 2


def test_a_filter_that_fits_nothing_is_no_empty_machine(rlnb, run):
    assert rlnb("jobs", "--state", "lost")[:2] == (0, "No runs like that; `rlnb jobs` lists all.\n")
    assert json.loads(rlnb("jobs", "--tag", "none", "--json")[1]) == []


def test_show_has_the_promised_keys(rlnb, run):
    EventLog(run.layout).append("note", "hello", step=3)
    write_json(
        run.layout.training_json,
        {
            "step": 2000,
            "return_mean": 12.5,
            "weights_sha256": "ab" * 32,
            "exact_resume": True,
            "ended_by": "total_timesteps",
        },
    )
    code, out, _ = rlnb("show", "7f3a", "--json")
    shown = json.loads(out)
    assert code == 0
    assert {key: shown[key] for key in ("id", "state", "attempt", "step", "total_timesteps", "return_mean")} == {
        "id": run.layout.id, "state": "running", "attempt": 1, "step": 2000, "total_timesteps": 2000, "return_mean": 12.5,
    }  # fmt: skip
    assert (shown["weights_sha256"], shown["exact_resume"]) == ("ab" * 32, True)
    assert shown["checkpoints"] == []
    assert [event["kind"] for event in shown["events"]] == ["started", "note"]


def test_json_has_no_bare_nan(rlnb, run):
    write_json(run.layout.training_json, {"step": 1, "return_mean": float("nan")})
    out = rlnb("show", "7f3a", "--json")[1]
    assert json.loads(out, parse_constant=pytest.fail)["return_mean"] is None


def test_show_is_readable(rlnb, run):
    code, out, _ = rlnb("show", "7f3a")
    assert code == 0
    assert out.startswith("exp-2026-11-30-lander-7f3a  (lander)\nstate        running")
    assert f"folder       {run.layout.root}" in out


def test_logs_print_lines_and_follow_to_the_end(rlnb, run):
    run.layout.stdout_log.write_text("one\ntwo\n")
    assert rlnb("logs", "7f3a", "--log", "stdout", "-n", "1")[1] == "two\n"
    line = json.loads(rlnb("logs", "7f3a", "--log", "stdout", "-n", "1", "--json")[1])
    assert line == {"log": "stdout", "line": "two"}
    run.end()
    assert rlnb("logs", "7f3a", "--log", "stdout", "-f")[1] == "one\ntwo\n"


def test_metrics_are_a_table_csv_or_json(rlnb, run):
    code, out, _ = rlnb("metrics", "7f3a")
    assert code == 0
    assert "train/loss" in out.splitlines()[0]
    rows = json.loads(rlnb("metrics", "7f3a", "--json", "-k", "episode", "-n", "2")[1])
    assert len(rows) == 2
    assert rows[-1]["step"] == run.step
    assert set(rows[0]) >= {"episode/return", "episode/length"}
    header = rlnb("metrics", "7f3a", "--csv", "-k", "all", "-n", "0")[1].splitlines()[0]
    assert header.split(",")[0] in ("time", "kind", "step")


def test_metrics_before_the_first_row_say_so(rlnb, make_run):
    run = make_run("exp-empty")
    assert rlnb("metrics", run.layout.id)[1] == "exp-empty has no rows of kind 'train' yet.\n"


def test_inspecting_a_run_without_a_kernel_says_its_state(rlnb, run):
    code, _, err = rlnb("inspect", "7f3a", "1 + 1")
    assert code == 2
    assert "No kernel of exp-2026-11-30-lander-7f3a runs on this machine: the run is running." in err
