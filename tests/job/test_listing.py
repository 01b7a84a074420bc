from __future__ import annotations

import shutil
import sqlite3
from unittest.mock import Mock

import pytest

from rlnb import settings
from rlnb.errors import RunError, RunFormatError, RunNotFound, UsageError
from rlnb.job import Job
from rlnb.listing import job, jobs, rebuild, reconcile
from rlnb.run.index import Index, IndexUnusable
from rlnb.run.layout import write_json
from rlnb.run.status import State
from tests.job.runs import lose_supervisor


def test_no_runs_is_an_empty_list():
    assert jobs() == []
    assert repr(jobs()) == "no runs"


def test_runs_are_listed_newest_first_and_filtered(make_run):
    first, second = make_run(total=500), make_run(total=500, name="walker")
    for run in (first, second):
        run.begin()
    second.end()
    make_run.list(second)
    assert [item.id for item in jobs()] == [second.layout.id, first.layout.id]
    assert [item.id for item in jobs(state="completed")] == [second.layout.id]
    assert [item.id for item in jobs(name="lander")] == [first.layout.id]
    assert [item.id for item in jobs(limit=1)] == [second.layout.id]
    row = jobs(name="walker").rows()[0]
    assert (row["state"], row["total_timesteps"], row["algo"]) == ("completed", 500, "PPO")
    shown = jobs()._repr_html_()
    assert "<td>walker</td>" in shown
    assert f"<td>{row['created'][:10]} {row['created'][11:16]} UTC</td>" in shown
    assert jobs(name="nobody")._repr_html_() == "no runs"


def test_a_run_that_was_lost_is_listed_as_lost_although_the_index_says_running(make_run):
    run = make_run()
    run.begin()
    make_run.list(run)
    lose_supervisor(run)
    assert Index().get(run.layout.id).state == "running"
    assert jobs().rows()[0]["state"] == "lost"
    assert [item.id for item in jobs(state=State.LOST)] == [run.layout.id]
    assert jobs(state="running") == []


def test_an_unknown_state_names_the_nearest():
    with pytest.raises(UsageError, match=r"no state 'runing'. Did you mean 'running'\?"):
        jobs(state="runing")


def test_a_run_is_found_by_id_beginning_end_name_and_folder(make_run):
    run = make_run("exp-2026-11-30-lander-7f3a")
    make_run("exp-2026-11-29-other-1111", name="other")
    for text in (run.layout.id, "exp-2026-11-30", "7f3a", "lander", str(run.layout.root)):
        assert job(text).id == run.layout.id
    with pytest.raises(UsageError, match="fits 2 runs"):
        job("exp-2026-11")
    with pytest.raises(RunNotFound, match=r"no run 'landr' here.* Did you mean 'lander'\?"):
        job("landr")


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunNotFound, match="is not a run folder"):
        job(tmp_path / "nothing")


def test_a_run_folder_under_another_name_is_refused(make_run, tmp_path):
    run = make_run("exp-a", folder=tmp_path)
    run.layout.root.rename(tmp_path / "renamed")
    with pytest.raises(RunError, match="holds the run exp-a; give the folder that name"):
        job(tmp_path / "renamed")


def test_the_index_is_made_anew_when_it_is_gone(make_run):
    run = make_run()
    run.begin()
    run.end()
    settings.index_path().unlink()
    assert jobs().rows()[0]["state"] == "completed"
    settings.index_path().unlink()
    assert job("lander").id == run.layout.id


def test_rebuilding_looks_into_further_folders(make_run, tmp_path):
    make_run()
    make_run("exp-elsewhere", folder=tmp_path / "store")
    assert rebuild([tmp_path / "store"]) == 2
    assert {item.id for item in jobs()} == {"exp-2026-11-30-lander-0001", "exp-elsewhere"}
    with pytest.raises(UsageError, match="is not a folder"):
        rebuild([tmp_path / "missing"])


def test_a_run_that_the_index_does_not_know_is_found_in_its_folder(make_run):
    run = make_run()
    Index().remove(run.layout.id)
    assert job(run.layout.id).folder == run.layout.root


def test_a_run_of_a_newer_format_does_not_spoil_the_list(make_run):
    old, new = make_run("exp-2026-11-30-lander-aaaa"), make_run("exp-2026-11-30-lander-bbbb")
    write_json(new.layout.status, {"format": 99})
    assert {job.id for job in jobs()} == {old.layout.id, new.layout.id}
    settings.index_path().unlink()
    assert [job.id for job in jobs()] == [old.layout.id]
    with pytest.raises(RunFormatError, match="has format 99"):
        job(new.layout.id).observe()


def test_an_index_that_cannot_be_used_is_done_without(make_run, monkeypatch):
    first, second = make_run("exp-2026-11-30-lander-aaaa"), make_run("exp-2026-11-30-lander-bbbb")
    monkeypatch.setattr(Index, "_open", Mock(side_effect=sqlite3.OperationalError("disk I/O error")))
    assert {one.id for one in jobs()} == {first.layout.id, second.layout.id}
    assert [one.id for one in jobs(limit=1)] == [second.layout.id]
    assert jobs(name="other") == []
    assert job("aaaa").folder == first.layout.root
    with pytest.raises(IndexUnusable, match="cannot be used \\(disk I/O error\\); make room on its disk"):
        Index().trust("0")


def test_a_lost_run_is_resumed_when_asked(make_run, monkeypatch):
    run = make_run()
    run.begin()
    lose_supervisor(run)
    monkeypatch.setattr(Job, "resume", lambda self: f"Attempt 2 of {self.id} has started.")
    (found,) = reconcile(resume=True)
    assert found["id"] == run.layout.id
    assert found["message"].endswith(f"it can be resumed. Attempt 2 of {run.layout.id} has started.")


def test_a_run_whose_folder_was_removed_is_said_to_be_gone(make_run):
    run = make_run("exp-2026-11-30-lander-aaaa")
    run.begin()
    handle = job("aaaa")
    shutil.rmtree(run.layout.root)
    with pytest.raises(
        RunNotFound, match="The run folder .*aaaa was removed; its store may still have the run"
    ):
        handle.wait(timeout=5)
    with pytest.raises(
        RunNotFound, match="was removed, and its store does not help .*`rlnb index rebuild` takes"
    ):
        job("aaaa")
    assert jobs().rows()[0]["state"] == "lost"
    assert "unreadable" in repr(handle)


def test_a_run_whose_folder_was_removed_is_read_from_its_store(make_run):
    run = make_run("exp-2026-11-30-lander-aaaa")
    run.begin()
    store = settings.home() / "store"
    shutil.move(run.layout.root, store / run.layout.id)
    Index().upsert(run.layout.id, url=str(store / run.layout.id))
    found = job("aaaa")
    assert found.remote
    assert found.name == "lander"
