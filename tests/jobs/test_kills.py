"""Real SIGKILLs and SIGSTOPs: nothing is lost, nothing is left running, nothing is said twice."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from rlnb import __version__
from rlnb.jobs.executors.local import LocalExecutor
from rlnb.jobs.processes import descendants, marked, resident_bytes
from rlnb.jobs.survivors import recorded_processes, survivors
from rlnb.run.claims import attempt_owner, claim, latest_attempt
from rlnb.run.events import read_events
from rlnb.run.host import process_start
from rlnb.run.layout import read_json
from rlnb.run.record import Limits
from rlnb.run.status import EndKind, State, observe, read_status

#: Training with two children: one forked below the kernel, one that has left the tree by a double fork.
TRAIN = """
import subprocess, sys
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
child = subprocess.Popen(sleep)
subprocess.run(["sh", "-c", '"$@" >/dev/null 2>&1 &', "sh", *sleep])
from fake_trainer import *
train(120, every=5)
"""
PATIENCE = 20.0


def wait_until(condition, what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.02)


def start(runs, code: str = TRAIN, step: int = 12, **record):
    layout = runs.make(code, **record)
    LocalExecutor().submit(layout)
    runs.until_step(layout, step)
    runs.until(layout, lambda status: status.heartbeat >= 3)
    return layout


def supervisor(layout) -> int:
    return attempt_owner(layout, latest_attempt(layout))["pid"]


def role(layout, name: str) -> int:
    return next(r.identity.pid for r in recorded_processes(layout) if r.role == name)


def kernel(layout) -> int:
    return read_json(layout.kernel_json)["pid"]


def starts(layout) -> list[int]:
    return [event.step for event in read_events(layout) if event.kind == "trained_from"]


def assert_resumed_once(layout, status) -> None:
    assert (status.state, status.step) == (State.COMPLETED, 120)
    begun = starts(layout)
    assert begun[0] == 0
    assert begun == sorted(begun)
    assert all(step % 5 == 0 and step >= 10 for step in begun[1:])


def test_a_killed_kernel_is_followed_by_another_attempt(runs):
    layout = start(runs)
    os.kill(kernel(layout), signal.SIGKILL)
    status = runs.ended(layout)
    assert_resumed_once(layout, status)
    assert (status.attempt, status.retries_used) == (2, 1)
    retry = next(event for event in read_events(layout) if event.kind == "retry")
    assert "the kernel was killed by SIGKILL in cell 1, which rlnb did not send" in retry.message
    assert not marked(layout.root)


def test_a_killed_worker_takes_its_kernel_along(runs):
    layout = start(runs)
    first = marked(layout.root)
    assert len(first) >= 4  # worker, kernel and the kernel's two children
    os.kill(role(layout, "worker"), signal.SIGKILL)
    runs.until(layout, lambda status: status.attempt == 2)
    assert not first & marked(layout.root)
    status = runs.ended(layout)
    assert_resumed_once(layout, status)
    retry = next(event for event in read_events(layout) if event.kind == "retry")
    assert retry.data["evidence"] == "worker_died"


def test_without_its_supervisor_a_run_ends_and_is_lost(runs):
    layout = start(runs)
    os.kill(supervisor(layout), signal.SIGKILL)
    wait_until(lambda: not marked(layout.root), "the end of worker, kernel and children")
    seen = observe(layout)
    assert seen.state is State.LOST
    assert "its supervisor is gone" in seen.why
    assert LocalExecutor().submit(layout) == 2
    status = runs.ended(layout)
    assert_resumed_once(layout, status)
    assert (status.attempt, status.retries_used) == (2, 0)


def test_a_stuck_kernel_ends_with_its_supervisor_too(runs):
    # The kernel is stopped, so that only the worker is left to see that the supervisor is gone.
    layout = start(runs)
    os.kill(kernel(layout), signal.SIGSTOP)
    os.kill(supervisor(layout), signal.SIGKILL)
    wait_until(lambda: not marked(layout.root), "the end of a stopped kernel")


def test_what_escaped_without_a_mark_is_ended_by_a_resume_too(runs):
    # A double fork with an empty environment: neither the tree nor the mark leads to it, only the record.
    escape = "import subprocess\nsubprocess.run(['env', '-i', 'setsid', '/bin/sh', '-c', 'sleep 600 >/dev/null 2>&1 &'])\n"
    layout = start(runs, escape + "from fake_trainer import *\ntrain(100_000)")
    strays = descendants(supervisor(layout)) - marked(layout.root)
    strays = {pid for pid in strays if "sleep" in Path(f"/proc/{pid}/comm").read_text()}
    assert len(strays) == 1
    wait_until(
        lambda: strays <= {r.identity.pid for r in recorded_processes(layout)}, "the record of the stray"
    )
    os.kill(supervisor(layout), signal.SIGKILL)
    wait_until(lambda: observe(layout).state is State.LOST, "the loss")
    LocalExecutor().submit(layout)
    wait_until(lambda: not any(process_start(pid) for pid in strays), "the end of the stray")


def test_the_whole_tree_killed_leaves_survivors_that_a_resume_ends(runs):
    layout = start(runs)
    children = marked(layout.root) - {role(layout, "worker"), kernel(layout)}
    tree = [supervisor(layout), role(layout, "worker"), kernel(layout)]
    for pid in tree:
        os.kill(pid, signal.SIGSTOP)  # nobody sees another die and acts on it
    for pid in tree:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: all(process_start(pid) is None for pid in tree), "the death of the tree")
    assert children
    assert children <= survivors(layout)
    assert observe(layout).state is State.LOST
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    assert_resumed_once(layout, status)
    event = next(event for event in read_events(layout) if event.kind == "survivors_ended")
    assert all(str(pid) in event.message for pid in children)
    assert not any(process_start(pid) for pid in children)


def test_a_stopped_supervisor_does_no_harm(runs):
    layout = start(runs, limits=Limits(hang=0.4, hold=0.4, grace=0.4, backoff=0.05))
    pid = supervisor(layout)
    os.kill(pid, signal.SIGSTOP)
    before = read_status(layout).heartbeat
    wait_until(lambda: layout.training_json.exists(), "the end of training without its supervisor")
    assert read_status(layout).heartbeat == before
    os.kill(pid, signal.SIGCONT)
    status = runs.ended(layout)
    assert (status.state, status.attempt, status.retries_used) == (State.COMPLETED, 1, 0)
    assert starts(layout) == [0]


def test_time_asleep_counts_for_no_clock(runs):
    # Asleep for longer than the hang limit while training makes no step that it could see.
    hook = "def hook(step):\n    if step == 14:\n        time.sleep(1.5)"
    layout = start(runs, f"from fake_trainer import *\n{hook}\ntrain(40, hook=hook)", limits=Limits(hang=1.4))
    os.kill(supervisor(layout), signal.SIGSTOP)
    time.sleep(1.6)
    os.kill(supervisor(layout), signal.SIGCONT)
    status = runs.ended(layout)
    assert (status.state, status.attempt) == (State.COMPLETED, 1)


def test_a_superseded_supervisor_ends_its_worker_and_says_nothing(runs):
    layout = start(runs, "from fake_trainer import *\ntrain(100_000)")
    pid = supervisor(layout)
    os.kill(pid, signal.SIGSTOP)
    said, events = layout.status.read_bytes(), len(read_events(layout))
    claim(layout, 2, rlnb_version=__version__)
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: process_start(pid) is None, "the end of the superseded supervisor")
    assert not marked(layout.root)
    assert layout.status.read_bytes() == said
    assert len(read_events(layout)) == events


def test_a_takeover_ends_the_old_supervisor(runs):
    layout = start(runs)
    old = supervisor(layout)
    os.kill(old, signal.SIGSTOP)
    assert LocalExecutor().submit(layout, takeover=True) == 2
    wait_until(lambda: process_start(old) is None, "the end of the old supervisor")
    status = runs.ended(layout)
    assert_resumed_once(layout, status)
    assert status.attempt == 2


@pytest.mark.parametrize("who", ["kernel", "worker"])
def test_a_kill_in_a_later_cell_loses_nothing(runs, who):
    layout = start(runs, "from fake_trainer import *\ntrain(12)\ntime.sleep(600)")
    wait_until(layout.training_json.exists, "the end of training")
    os.kill({"kernel": kernel, "worker": lambda run: role(run, "worker")}[who](layout), signal.SIGKILL)
    status = runs.ended(layout)
    assert (status.state, status.attempt) == (State.COMPLETED, 1)
    assert status.evidence.kind is {"kernel": EndKind.KERNEL_DIED, "worker": EndKind.WORKER_DIED}[who]
    assert status.reason.startswith(f"training has finished; after it, the {who} was killed by SIGKILL")


def test_lost_in_a_later_cell_is_completed_by_a_resume(runs):
    layout = start(runs, "from fake_trainer import *\ntrain(12)\ntime.sleep(600)")
    wait_until(layout.training_json.exists, "the end of training")
    os.kill(supervisor(layout), signal.SIGKILL)
    wait_until(lambda: not marked(layout.root), "the end of worker and kernel")
    LocalExecutor().submit(layout)
    status = runs.ended(layout)
    assert status.state is State.COMPLETED
    assert status.reason == "training had finished before; the later cells are not run again"


def test_a_supervisor_is_small(runs):
    layout = start(runs)
    assert 0 < resident_bytes(supervisor(layout)) < 60e6


def test_everything_is_below_the_supervisor(runs):
    layout = start(runs)
    assert marked(layout.root) <= descendants(supervisor(layout))
