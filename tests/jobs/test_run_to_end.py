"""Whole runs: a real supervisor, worker and kernel, and a notebook that plays the trainer."""

from __future__ import annotations

import json
import os

import nbformat
import pytest

from rlnb.jobs.capture.notebook import Cell
from rlnb.jobs.executors.local import LocalExecutor
from rlnb.jobs.processes import marked
from rlnb.jobs.survivors import survivors
from rlnb.jobs.worker.client import SHUTDOWN
from rlnb.run.events import read_events
from rlnb.run.index import Index
from rlnb.run.record import Limits
from rlnb.run.status import EndKind, State

TRAIN = "from fake_trainer import *\ntrain(8)"


def kinds(layout) -> list[str]:
    return [event.kind for event in read_events(layout)]


def output(layout, attempt: int = 1):
    return nbformat.read(layout.output(attempt), as_version=4)


def test_a_run_completes_and_leaves_nothing_running(runs):
    layout = runs.make(TRAIN, "print('later', end='')")
    assert LocalExecutor().submit(layout) == 1
    status = runs.ended(layout)
    assert (status.state, status.evidence.kind, status.attempt, status.step) == (
        State.COMPLETED,
        EndKind.OK,
        1,
        8,
    )
    book = output(layout)
    assert [cell.metadata.papermill.status for cell in book.cells] == ["completed", "completed"]
    assert book.cells[1].outputs[0].text == "later"
    assert layout.stdout_log.read_text() == "later"
    assert Index().get(layout.id).state == "completed"
    kernel = json.loads(layout.kernel_json.read_text())
    assert kernel["pid"] not in survivors(layout)
    assert not os.path.exists(kernel["connection_file"])


def test_the_end_waits_for_no_child_that_has_ended_or_is_deaf(runs):
    # ipykernel would go on sending SIGTERM for 14 seconds to a zombie and to one that ignores it.
    leave = """
import subprocess, sys
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
left = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
left.stdout.readline()
zombie = subprocess.Popen(["true"])
"""
    layout = runs.make(f"{leave}{TRAIN}")
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    assert status.state is State.COMPLETED
    assert not marked(layout.root)
    trained = layout.training_json.stat().st_mtime
    assert layout.worker_json.stat().st_mtime - trained < SHUTDOWN / 2


def test_a_completed_run_is_not_run_again(runs):
    layout = runs.make(TRAIN)
    LocalExecutor().submit(layout)
    runs.ended(layout)
    with pytest.raises(Exception, match=f"{layout.id} is completed; fork it, or promote with new=True"):
        LocalExecutor().submit(layout)


def test_a_later_cell_s_error_is_shown_and_loses_nothing(runs):
    layout = runs.make(TRAIN, "1/0", "print('never')")
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    assert (status.state, status.attempt) == (State.COMPLETED, 1)
    assert status.evidence.kind is EndKind.CELL_ERROR
    assert (
        status.evidence.message
        == "training has finished; after it, cell 2 raised ZeroDivisionError: division by zero"
    )
    assert status.evidence.cell["traceback"][-1] == "ZeroDivisionError: division by zero"
    assert [cell.metadata.papermill.status for cell in output(layout).cells] == [
        "completed",
        "failed",
        "pending",
    ]
    assert "ZeroDivisionError" in layout.stdout_log.read_text()


def test_an_end_without_training_is_failed(runs):
    layout = runs.make("print('no promote here')")
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    assert (status.state, status.evidence.kind, status.attempt) == (State.FAILED, EndKind.NEVER_REACHED, 1)
    assert "promote() was never reached" in status.reason


def test_leaving_with_zero_is_no_success(runs):
    layout = runs.make("import sys; sys.exit(0)", TRAIN)
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    assert (status.state, status.evidence.kind) == (State.FAILED, EndKind.NEVER_REACHED)
    assert status.evidence.message == "promote() was never reached: cell 1 called sys.exit()"


def test_an_error_before_training_fails_at_once(runs):
    layout = runs.make("x = undefined_name", TRAIN)
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    assert (status.state, status.attempt, status.retries_used) == (State.FAILED, 1, 0)
    assert status.evidence.cell["id"] == "c1"
    assert status.evidence.cell["number"] == 1
    assert status.evidence.cell["ename"] == "NameError"


def test_a_usage_error_in_training_is_not_retried(runs):
    code = "from rlnb.errors import FingerprintMismatch\ndef hook(step):\n    raise FingerprintMismatch('gamma was 0.9 and is now 0.8')"
    layout = runs.make(code, "from fake_trainer import *\ntrain(8, hook=hook)")
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    assert (status.state, status.evidence.kind, status.attempt) == (State.FAILED, EndKind.MISMATCH, 1)
    assert "gamma was 0.9 and is now 0.8" in status.reason


def test_an_error_in_training_is_retried_from_the_newest_checkpoint(runs):
    hook = (
        "def hook(step):\n    if step == 7 and job.attempt == 1:\n        raise OSError('the sensor is gone')"
    )
    layout = runs.make(f"from fake_trainer import *\n{hook}\ntrain(12, every=5, hook=hook)")
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    assert (status.state, status.attempt, status.retries_used) == (State.COMPLETED, 2, 1)
    started = [event.step for event in read_events(layout) if event.kind == "trained_from"]
    assert started == [0, 5]
    retry = next(event for event in read_events(layout) if event.kind == "retry")
    assert retry.message.startswith(
        "retry 1 of 3 in 0.05 s, from the checkpoint at step 5: cell 1 raised OSError"
    )
    assert output(layout, 1).cells[0].metadata.papermill.status == "failed"
    assert output(layout, 2).cells[0].metadata.papermill.status == "completed"


def test_a_crash_loop_without_progress_fails_early(runs):
    hook = "def hook(step):\n    if step == 7:\n        raise OSError('always')"
    layout = runs.make(
        f"from fake_trainer import *\n{hook}\ntrain(12, every=5, hook=hook)",
        limits=Limits(retries=9, backoff=0.05),
    )
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    # The first attempt made the checkpoint at 5, the second began from it and made none.
    assert (status.state, status.attempt, status.retries_used) == (State.FAILED, 2, 1)
    assert status.reason.endswith("the same happened twice without a new checkpoint in between")


def test_retries_run_out(runs):
    hook = "def hook(step):\n    if step == 6 * job.attempt:\n        raise OSError('again')"
    layout = runs.make(
        f"from fake_trainer import *\n{hook}\ntrain(99, every=1, hook=hook)",
        limits=Limits(retries=1, backoff=0.05),
    )
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    assert (status.state, status.attempt) == (State.FAILED, 2)
    assert status.reason.endswith("all 1 retries are used")


def test_a_crash_of_the_interpreter_is_retried_and_leaves_its_trace(runs):
    crash = (
        "import ctypes\ndef hook(step):\n    if step == 7 and job.attempt == 1:\n        ctypes.string_at(0)"
    )
    layout = runs.make(f"from fake_trainer import *\n{crash}\ntrain(9, hook=hook)")
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    assert (status.state, status.attempt) == (State.COMPLETED, 2)
    retry = next(event for event in read_events(layout) if event.kind == "retry")
    assert "the kernel was killed by SIGSEGV in cell 1" in retry.message
    assert "Fatal Python error: Segmentation fault" in layout.stdout_log.read_text()
    cell = output(layout, 1).cells[0]
    assert cell.metadata.papermill.status == "failed"
    assert cell.outputs[-1].ename == "KernelDied"


def test_cells_that_are_not_for_jobs_are_left_out_and_reported(runs):
    layout = runs.make(
        Cell("a", "code", "raise RuntimeError('widgets')", ("notebook-only",)),
        "%pip install nothing-at-all\nx = 1",
        Cell("m", "markdown", "# Title"),
        "from fake_trainer import *\ntrain(3)\nprint(x, end='')",
    )
    LocalExecutor().submit(layout)
    assert runs.ended(layout).state is State.COMPLETED
    event = next(event for event in read_events(layout) if event.kind == "cells_skipped")
    assert (
        event.message
        == "Not run in jobs: cell 1 (tagged 'notebook-only'), `%pip install nothing-at-all` in cell 2."
    )
    book = output(layout)
    assert book.cells[0].metadata.papermill.status == "skipped"
    assert book.cells[3].outputs[0].text == "1"


def test_parameters_arrive_exactly(runs):
    layout = runs.make(
        Cell("p", "code", "seed, name, rate = 0, 'x', 0.1", ("parameters",)),
        "from fake_trainer import *\ntrain(2)\nprint([seed, name, rate], end='')",
        parameters={"seed": 7, "rate": float("nan")},
    )
    LocalExecutor().submit(layout)
    assert runs.ended(layout).state is State.COMPLETED
    book = output(layout)
    assert book.cells[1].metadata.tags == ["injected-parameters"]
    assert book.cells[2].outputs[0].text == "[7, 'x', nan]"


def test_the_job_knows_who_it_is_and_its_children_do_not(runs):
    code = (
        "import subprocess, sys\nfrom rlnb.run.identity import current, current_cell\n"
        "print(current().attempt, current().task, current_cell())\n"
        "print(subprocess.run([sys.executable, '-c', 'from rlnb.run import identity as i; print(i.bind_from_environment())'],"
        " capture_output=True, text=True).stdout.strip(), end='')"
    )
    layout = runs.make(code, TRAIN)
    LocalExecutor().submit(layout)
    runs.ended(layout)
    assert output(layout).cells[0].outputs[0].text == "1 train ('c1', 1)\nNone"


def test_the_environment_is_the_allow_list_and_secrets_are_hidden(runs, monkeypatch):
    for name in ("SOME_SETTING", "JPY_SESSION_NAME", "JPY_PARENT_PID"):
        monkeypatch.setenv(name, "of the notebook")
    monkeypatch.setenv("OTHER_TOKEN", "must-not-arrive-at-all")
    monkeypatch.setenv("MY_TOKEN", "arrives-but-is-hidden")
    code = (
        "import os, sys\nnames = ['SOME_SETTING', 'JPY_SESSION_NAME', 'JPY_PARENT_PID', 'OTHER_TOKEN', 'MY_TOKEN', 'PYTHONHASHSEED', 'RLNB_JOB']\n"
        "print({n: os.environ.get(n) for n in names})\n"
        "sys.stdout.write(os.environ['MY_TOKEN'][:9]); sys.stdout.flush(); sys.stdout.write(os.environ['MY_TOKEN'][9:])"
    )
    layout = runs.make(code, "raise ValueError(os.environ['MY_TOKEN'])", pass_env=["MY_TOKEN"])
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    text = output(layout).cells[0].outputs[0].text
    assert text == (
        "{'SOME_SETTING': None, 'JPY_SESSION_NAME': None, 'JPY_PARENT_PID': None, 'OTHER_TOKEN': None, 'MY_TOKEN': '[redacted]', "
        "'PYTHONHASHSEED': '0', 'RLNB_JOB': None}\n[redacted]"
    )
    assert status.evidence.cell["evalue"] == "[redacted]"
    for path in layout.root.rglob("*"):
        if path.is_file() and "work" not in path.parts:
            assert b"arrives-but-is-hidden" not in path.read_bytes(), path


def test_a_braced_folder_is_no_format_string(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("RLNB_HOME", str(tmp_path / "{home}"))
    layout = runs.make(TRAIN)
    LocalExecutor().submit(layout)
    assert runs.ended(layout).state is State.COMPLETED


def test_a_damaged_bundle_fails_with_the_reason(runs):
    layout = runs.make(TRAIN)
    (layout.bundle / "files/fake_trainer.py").write_text("changed")
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    assert (status.state, status.attempt) == (State.FAILED, 1)
    assert "is not the file that was promoted" in status.reason


def test_a_task_ends_with_the_target_cell(runs):
    layout = runs.make(TRAIN, "print('evaluation of the first run')", task="verify")
    LocalExecutor().submit(layout)
    assert runs.ended(layout).state is State.COMPLETED
    assert [cell.metadata.papermill.status for cell in output(layout).cells] == ["completed", "skipped"]


def test_the_queue_is_a_state_with_a_reason(runs, monkeypatch):
    monkeypatch.setenv("RLNB_MAX_RUNNING", "1")
    first, second = (runs.make(f"from fake_trainer import *\ntrain({steps})") for steps in (200, 8))
    LocalExecutor().submit(first)
    runs.until_step(first, 1)
    LocalExecutor().submit(second)
    status = runs.until_state(second, State.QUEUED)
    assert status.reason == f"waiting for one of 1 places (RLNB_MAX_RUNNING), taken by {first.id}"
    assert runs.ended(first).state is State.COMPLETED
    assert runs.ended(second).state is State.COMPLETED
