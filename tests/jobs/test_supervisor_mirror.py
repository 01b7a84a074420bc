from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from rlnb.jobs.supervisor import mirror as supervisor_mirror
from rlnb.jobs.supervisor.attempt import reap
from rlnb.jobs.supervisor.mirror import MirrorKeeper
from rlnb.run.events import read_events
from rlnb.run.layout import RunLayout, write_json


@pytest.fixture
def keeper_of(tmp_path):
    """Makes a keeper of a mirror that is the given Python program."""
    layout = RunLayout(tmp_path / "run")
    layout.local.mkdir(parents=True)
    made = []

    def make(program: str) -> MirrorKeeper:
        made.append(MirrorKeeper(layout, command=[sys.executable, "-c", program]))
        return made[-1]

    yield make
    for keeper in made:
        keeper.end()
        attend_until(keeper, lambda keeper=keeper: keeper.pid is None, ended=True)


def attend_until(keeper: MirrorKeeper, condition, *, ended: bool = False) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        keeper.attend(reap(), ended=ended)
        time.sleep(0.01)


def test_a_mirror_that_dies_is_started_again_and_that_is_said(keeper_of):
    keeper = keeper_of("import time; time.sleep(600)")
    keeper.serve(1)
    first = keeper.pid
    os.kill(first, signal.SIGKILL)
    attend_until(keeper, lambda: keeper.pid not in (None, first))
    (event,) = read_events(keeper.layout)
    assert (event.kind, event.attempt) == ("mirror_died", 1)
    assert "ended with code -9; it is started again in 1 s (see local/mirror.log)" in event.message


def test_a_newer_claim_in_the_store_is_passed_on(keeper_of):
    keeper = keeper_of("raise SystemExit(3)")
    keeper.serve(1)
    attend_until(keeper, lambda: keeper.superseded)
    assert keeper.pid is None


def test_an_exit_after_the_end_is_the_end(keeper_of):
    keeper = keeper_of("")
    keeper.serve(1)
    attend_until(keeper, lambda: keeper.done, ended=True)


def test_a_new_attempt_gets_a_new_mirror(keeper_of, tmp_path):
    seen = tmp_path / "attempts"
    keeper = keeper_of(f"import sys, time; open({str(seen)!r}, 'a').write(sys.argv[-1]); time.sleep(600)")
    keeper.serve(1)
    attend_until(keeper, lambda: seen.exists() and seen.read_text() == "1")
    keeper.serve(2)
    attend_until(keeper, lambda: seen.read_text() == "12")
    assert read_events(keeper.layout) == []


def test_a_mirror_that_cannot_run_is_given_up_after_the_end(keeper_of, monkeypatch):
    monkeypatch.setattr(supervisor_mirror, "_LONGEST_DELAY", 0.01)
    keeper = keeper_of("raise SystemExit(1)")
    keeper.serve(1)
    attend_until(keeper, lambda: keeper.gave_up, ended=True)


def test_the_store_s_condition_is_told(keeper_of):
    keeper = keeper_of("")
    assert (keeper.pending_bytes, keeper.store) == (0, "ok")
    write_json(keeper.layout.mirror_json, {"pending_bytes": 7, "state": "unreachable", "since": "10:00"})
    assert (keeper.pending_bytes, keeper.store) == (7, "unreachable since 10:00")
