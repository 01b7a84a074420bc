"""A run of another machine: read through a pull, asked through its store."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from rlnb import settings
from rlnb.errors import RunError, RunNotFound, UsageError
from rlnb.listing import job, jobs
from rlnb.resumption import resume
from rlnb.run.host import ProcessIdentity
from rlnb.run.layout import RunLayout, write_json
from rlnb.run.record import read_record, write_record
from rlnb.run.status import State, read_status, write_status
from rlnb.source import RunSource, join_run_url, split_run_url
from rlnb.testing.synthetic_run import SyntheticRun
from tests.job.runs import finish, write_small_bundle

ELSEWHERE = ProcessIdentity("elsewhere", "boot", 7, 7)
ID = "exp-2026-11-30-lander-7f3a"


def move_away(run: SyntheticRun) -> None:
    """Makes the recorded supervisor that of another machine."""
    status = read_status(run.layout)
    write_status(run.layout, replace(status, supervisor=ELSEWHERE))


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def run(store):
    """A run that another machine mirrors to a folder store."""
    made = SyntheticRun(RunLayout(store / ID), total=2_000)
    write_small_bundle(made.layout)
    made.begin()
    move_away(made)
    return made


def exclusive(run: SyntheticRun, value: bool) -> None:
    record = read_record(run.layout)
    write_record(run.layout, replace(record, store={**record.store, "exclusive": value}))


@pytest.mark.parametrize(
    ("store_url", "url"),
    [
        ("/mnt/runs", "/mnt/runs/exp-a"),
        ("s3://bucket/prefix", "s3://bucket/prefix/exp-a"),
        ("obs://bucket/p?region=x&endpoint=y", "obs://bucket/p/exp-a?region=x&endpoint=y"),
        ("/odd?name", "/odd?name/exp-a"),
    ],
)
def test_addresses_are_joined_and_split(store_url, url):
    assert join_run_url(store_url, "exp-a") == url
    assert split_run_url(url) == (store_url, "exp-a")


@pytest.mark.parametrize("url", ["s3://bucket", "exp-a", "s3://"])
def test_an_address_without_a_run_is_refused(url):
    with pytest.raises(RunError, match="is not the address of a run"):
        split_run_url(url)


def test_a_run_is_read_from_its_store(run, store):
    found = job(store / ID)
    assert found.remote
    assert found.folder == settings.cache_dir() / ID
    assert found.url == str(store / ID)
    assert found.state is State.RUNNING
    assert job(ID).folder == found.folder
    assert [item.id for item in jobs(store=store)] == [ID]


def test_what_is_in_no_store_is_not_found(store, run):
    with pytest.raises(RunNotFound, match=r"no run.yaml"):
        job(f"file://{store}/exp-none")
    with pytest.raises(UsageError, match="unknown scheme 's4'"):
        jobs(store="s4://bucket")


def test_a_request_travels_through_the_store_and_its_answer_back(run, store):
    found = job(store / ID)
    done = threading.Event()

    def serve():
        while not done.wait(0.05):
            run.answer_requests()
            status = read_status(run.layout)
            write_status(run.layout, replace(status, supervisor=ELSEWHERE, heartbeat=status.heartbeat + 1))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        assert found.pause(timeout=10) == "pause accepted at step 0"
        found._source.refresh(max_age=0)
        assert found.state is State.PAUSED
        assert found.resume(timeout=10) == "resume accepted at step 0"
    finally:
        done.set()
        thread.join()


def test_inspecting_says_that_it_reaches_this_machine_only(run, store):
    with pytest.raises(RunError, match="runs on another machine"):
        job(store / ID).inspect("x")


def test_a_run_that_lives_elsewhere_is_not_resumed_here(run, store, monkeypatch):
    monkeypatch.setenv("RLNB_HEARTBEAT", "0.1")
    found = job(store / ID)
    beating = threading.Event()

    def beat():
        while not beating.wait(0.1):
            status = read_status(run.layout)
            write_status(run.layout, replace(status, heartbeat=status.heartbeat + 1))

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        with pytest.raises(UsageError, match="is running, so there is nothing to resume"):
            found.resume()
    finally:
        beating.set()
        thread.join()


def test_without_exclusive_create_only_the_owner_resumes(run, store):
    exclusive(run, False)
    finish(run, State.STOPPED)
    move_away(run)
    with pytest.raises(UsageError, match=r"belongs to elsewhere, .* resume\(takeover=True\)"):
        job(store / ID).resume()
    with pytest.raises(UsageError, match="was not promoted on this machine"):
        job(store / ID).resume(takeover=True)


def test_a_foreign_bundle_needs_trust_even_where_it_may_be_resumed(run, store):
    finish(run, State.FAILED, "killed")
    move_away(run)
    with pytest.raises(UsageError, match=r"was not promoted on this machine.*say --trust"):
        job(store / ID).resume()
    assert not (settings.runs_dir() / ID).exists()


def test_a_working_copy_that_was_overtaken_is_not_what_is_shown(run, store, make_run):
    mine = make_run(ID)
    mine.begin()
    finish(mine, State.SUSPENDED)
    record = read_record(mine.layout)
    write_record(mine.layout, replace(record, store={"url": str(store), "exclusive": True}))
    make_run.list(mine)
    assert not job(ID).remote
    write_json(mine.layout.mirror_json, {"superseded": True})
    found = job(ID)
    assert found.remote
    assert found.state is State.RUNNING


def test_a_silent_run_is_recognised_by_a_heartbeat_that_stands_still(run, store, monkeypatch):
    monkeypatch.setenv("RLNB_HEARTBEAT", "0.3")
    monkeypatch.setattr("rlnb.resumption.SILENCE_INTERVALS", 5)
    found = job(store / ID)
    with pytest.raises(UsageError, match="was not promoted on this machine"):  # past the question who runs it
        resume(RunSource(found.layout, found.url))
