from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from rlnb.jobs.processes import (
    MARK,
    descendants,
    end_all,
    ends_by_sigterm,
    kill_exactly,
    marked,
    parents,
    resident_bytes,
)  # fmt: skip
from rlnb.run.host import ProcessIdentity, process_start

SLEEP = "import time; time.sleep(60)"


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-c", SLEEP])
    yield process
    process.kill()
    process.wait()


def test_children_are_found_with_their_children(tmp_path):
    script = f"import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', {SLEEP!r}]); print(p.pid, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        grandchild = int(process.stdout.readline())
        mine = descendants(os.getpid())
        assert {process.pid, grandchild} <= mine
        assert parents()[grandchild] == process.pid
        assert not {process.pid, grandchild} & descendants(os.getpid(), spare=[process.pid])
        killed = end_all(lambda: {process.pid, grandchild} & descendants(os.getpid()) | _living(grandchild))
        assert {process.pid, grandchild} <= killed


def _living(pid: int) -> set[int]:
    return {pid} if process_start(pid) is not None else set()


def test_only_the_very_process_is_killed(sleeper):
    who = ProcessIdentity.of(sleeper.pid)
    stranger = ProcessIdentity(who.host, who.boot_id, who.pid, who.pid_start + 1)
    assert not kill_exactly(stranger)
    assert sleeper.poll() is None
    assert kill_exactly(who)
    assert sleeper.wait(10) == -signal.SIGKILL
    assert not kill_exactly(who)


def test_another_boot_s_process_is_nobody(sleeper):
    who = ProcessIdentity.of(sleeper.pid)
    assert not kill_exactly(ProcessIdentity(who.host, "another boot", who.pid, who.pid_start))
    assert sleeper.poll() is None


def test_marked_processes_are_found_whoever_started_them(tmp_path):
    environ = {**os.environ, MARK: str(tmp_path)}
    # Started by a shell that is gone: nothing leads from this process to it any more.
    command = f'"{sys.executable}" -c "{SLEEP}" >/dev/null & echo $!'
    done = subprocess.run(
        ["sh", "-c", command],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    pid = int(done.stdout)
    assert pid in marked(tmp_path)
    assert pid not in marked(tmp_path / "other")
    assert pid in end_all(lambda: marked(tmp_path))
    assert marked(tmp_path) == set()


def test_what_cannot_die_is_reported():
    # A set that never empties stands for a process stuck in the operating system.
    with pytest.raises(TimeoutError, match=r"\[999999999\] do not die"):
        end_all(lambda: {999999999}, timeout=0.05)


def test_resident_memory_is_that_of_the_process(sleeper):
    deadline = time.monotonic() + 10
    while resident_bytes(sleeper.pid) < 4e6 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert 4e6 < resident_bytes(sleeper.pid) < 60e6
    assert resident_bytes(999999999) == 0


def test_what_sigterm_cannot_end_is_known(sleeper):
    assert ends_by_sigterm(sleeper.pid)
    ignoring = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", ignoring], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as deaf:
        assert deaf.stdout is not None
        deaf.stdout.readline()
        assert not ends_by_sigterm(deaf.pid)
        deaf.kill()
    assert not ends_by_sigterm(deaf.pid)  # it is gone
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert not ends_by_sigterm(sleeper.pid)  # a zombie until it is waited for
