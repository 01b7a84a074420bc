from __future__ import annotations

import multiprocessing
import os
import signal

from rlnb.jobs.supervisor.queue import Queue


def test_without_a_limit_everybody_runs(tmp_path):
    queue = Queue("a", limit=0, folder=tmp_path)
    assert queue.enter() is None
    assert list(tmp_path.iterdir()) == []


def test_a_full_machine_makes_wait_and_says_for_whom(tmp_path):
    first, second = (Queue(name, limit=1, folder=tmp_path) for name in ("exp-a", "exp-b"))
    assert first.enter() is None
    assert first.enter() is None
    assert second.enter() == "waiting for one of 1 places (RLNB_MAX_RUNNING), taken by exp-a"
    first.leave()
    assert second.enter() is None
    second.leave()


def test_who_came_first_goes_first(tmp_path):
    running, early, late = (Queue(name, limit=1, folder=tmp_path) for name in ("exp-a", "exp-b", "exp-c"))
    assert running.enter() is None
    assert early.enter() is not None
    assert late.enter() == "waiting for one of 1 places (RLNB_MAX_RUNNING), taken by exp-a; 1 before it"
    running.leave()
    assert late.enter() is not None
    assert early.enter() is None
    early.leave()
    assert late.enter() is None
    late.leave()


def _hold(folder, held, limit):
    queue = Queue("exp-dead", limit=limit, folder=folder)
    queue.enter()
    held.put(True)
    signal.pause()


def test_a_killed_owner_gives_its_place_and_its_ticket_back(tmp_path):
    context = multiprocessing.get_context("spawn")
    blocker = Queue("exp-a", limit=1, folder=tmp_path)
    for holds_slot in (True, False):
        if not holds_slot:
            assert blocker.enter() is None
        held = context.SimpleQueue()
        owner = context.Process(target=_hold, args=(tmp_path, held, 1))
        owner.start()
        held.get()
        assert owner.pid is not None
        os.kill(owner.pid, signal.SIGKILL)
        owner.join()
        blocker.leave()
        heir = Queue("exp-b", limit=1, folder=tmp_path)
        assert heir.enter() is None
        heir.leave()
    assert not list(tmp_path.glob("*.ticket"))
