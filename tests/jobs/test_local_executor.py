from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rlnb import __version__
from rlnb.errors import RlnbError, RunError, UsageError
from rlnb.jobs.executors.local import LocalExecutor
from rlnb.jobs.executors.seam import Executor
from rlnb.run.claims import attempt_owner, claim
from rlnb.run.host import process_start
from rlnb.run.layout import RunLayout, read_json, write_json
from rlnb.run.record import read_record, write_record
from rlnb.run.status import EndKind, State, read_status


def test_submit_returns_at_once_and_leaves_no_child(runs):
    executor: Executor = LocalExecutor()
    layout = runs.make("import time; time.sleep(600)")
    begun = time.monotonic()
    assert executor.submit(layout) == 1
    assert time.monotonic() - begun < 10
    owner = attempt_owner(layout, 1)
    assert owner is not None
    assert owner["rlnb"] == __version__
    # A session of its own, and nobody's child: this process may end and be waited for.
    assert os.getsid(owner["pid"]) not in (os.getsid(0), 0)
    assert owner["pid"] not in {
        int(p) for p in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    }
    runs.until_state(layout, State.STARTING)
    assert executor.poll(layout).state is State.STARTING
    executor.stop(layout)
    runs.until_state(layout, State.STOPPED)


def test_the_starter_may_die_at_once(runs):
    layout = runs.make("from fake_trainer import *\ntrain(20)")
    code = f"import os\nfrom rlnb.jobs.executors.local import LocalExecutor\nfrom rlnb.run.layout import RunLayout\nLocalExecutor().submit(RunLayout({str(layout.root)!r}))\nos.kill(os.getpid(), 9)"
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -9
    assert runs.ended(layout).state is State.COMPLETED


def test_only_one_of_two_submits_wins(runs):
    layout = runs.make("import time; time.sleep(600)")
    results: list[object] = []

    def submit() -> None:
        try:
            results.append(LocalExecutor().submit(layout))
        except RlnbError as error:
            results.append(error)

    threads = [threading.Thread(target=submit) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r for r in results if isinstance(r, int)] == [1]
    losers = [str(r) for r in results if not isinstance(r, int)]
    assert all(
        "was just started by somebody else" in text or "is running: attempt 1" in text for text in losers
    )


def test_a_setting_that_is_no_number_is_told_before_anything_starts(runs, monkeypatch):
    layout = runs.make("pass")
    monkeypatch.setenv("RLNB_HEARTBEAT", "often")
    with pytest.raises(
        UsageError, match="RLNB_HEARTBEAT='often' is not a number of 0 or more; correct or unset"
    ):
        LocalExecutor().submit(layout)
    assert not layout.attempts.exists()


def test_what_is_no_run_folder_is_refused_with_the_reason(tmp_path):
    layout = RunLayout(tmp_path / "nothing")
    with pytest.raises(
        RunError, match=r"The supervisor of nothing did not start \(RunNotFound: .* has no run.yaml"
    ):
        LocalExecutor().submit(layout)


def test_another_machine_s_run_is_not_taken_without_a_word(runs):
    layout = runs.make("pass")
    claim(layout, 1, rlnb_version=__version__)
    owner = read_json(layout.attempt(1))
    assert owner is not None
    write_json(layout.attempt(1), {**owner, "host": "elsewhere"})
    with pytest.raises(
        RunError, match="belongs to elsewhere, which cannot be asked from here whether attempt 1 still runs"
    ):
        LocalExecutor().submit(layout)
    assert LocalExecutor().submit(layout, takeover=True) == 2


def test_a_newer_attempt_in_the_store_fences_this_machine_off(runs):
    layout = runs.make("from fake_trainer import *\ntrain(100_000)")
    record = read_record(layout)
    write_record(
        layout, record.__class__(**{**record.__dict__, "store": {**record.store, "exclusive": True}})
    )
    LocalExecutor().submit(layout)
    runs.until_step(layout, 3)
    stored = runs.store / layout.id / "attempts"
    deadline = time.monotonic() + 20
    while not (stored / "1").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    supervisor = attempt_owner(layout, 1)["pid"]
    write_json(stored / "2", {**read_json(layout.attempt(1)), "attempt": 2, "host": "elsewhere"})
    deadline = time.monotonic() + 40
    while process_start(supervisor) is not None:
        assert time.monotonic() < deadline, runs.story(layout)
        time.sleep(0.05)
    status = read_status(layout)
    assert (status.state, status.evidence.kind) == (State.LOST, EndKind.SUPERSEDED)
    assert status.reason.startswith(
        f"the store holds a newer attempt of {layout.id} than 1; it goes on there."
    )
