"""Killed anywhere and resumed: the same weights, bit for bit, and one history.

Each case runs a real promoted job, kills a real process at a random training step, lets the run go
on (by itself, or by `resume()` where nobody is left to do it), and compares with an undisturbed run
of the same notebook. `make test` takes a sample; `make test-all` takes every combination.
"""

from __future__ import annotations

import os
import random
import signal

import pytest

from rlnb.run.events import read_events
from rlnb.run.status import State
from tests.e2e.history import assert_same_history
from tests.e2e.processes import await_all_gone, find, kill
from tests.e2e.waiting import until

SAMPLED = {
    ("ppo-cartpole", "tree"),
    ("ppo-cartpole-subprocess", "kernel"),
    ("dqn-cartpole", "supervisor"),
    ("sac-cheetah", "worker"),
}
CASES = [
    pytest.param(recipe, victim, marks=() if (recipe, victim) in SAMPLED else pytest.mark.slow)
    for recipe in (
        "ppo-cartpole", "ppo-cartpole-subprocess", "dqn-cartpole", "sac-pendulum", "ppo-lander", "sac-cheetah",
    )
    for victim in ("worker", "kernel", "supervisor", "tree")
]  # fmt: skip


def random_step(recipe: str, victim: str, total: int) -> int:
    """A step that differs per case and per day, printed so that a failure can be repeated."""
    seed = os.environ.get("KILL_SEED") or str(random.randrange(10**6))
    step = random.Random(f"{recipe}{victim}{seed}").randrange(total // 8, total // 2)
    print(f"KILL_SEED={seed}: kills {victim} of {recipe} at step {step}")
    return step


@pytest.mark.parametrize(("recipe", "victim"), CASES)
def test_a_killed_run_ends_with_the_same_weights(runs, recipe, victim):
    job = runs.promote(recipe)
    runs.await_step(job, random_step(recipe, victim, runs.total(recipe)))
    killed = kill(job.layout, victim)
    if victim in ("supervisor", "tree"):
        await_all_gone([p for p in killed if p.is_running()])
        assert job.state is State.LOST
        job.resume()
    job.wait(timeout=240)
    assert job.state is State.COMPLETED
    assert job.status.attempt == 2
    assert_same_history(job, runs.reference(recipe))
    await_all_gone(list(find(job.layout).values()))


@pytest.mark.slow  # tests/jobs/test_kills.py freezes one in every run of the suite
def test_a_supervisor_that_was_frozen_goes_on(runs):
    job = runs.promote("ppo-cartpole")
    runs.await_step(job, 1000)
    supervisor = find(job.layout)["supervisor"]
    beat = job.status.heartbeat
    supervisor.send_signal(signal.SIGSTOP)
    until(lambda: job.status.step != runs.step(job), "training to go on without its supervisor")
    supervisor.send_signal(signal.SIGCONT)
    job.wait(timeout=240)
    assert job.status.heartbeat > beat
    assert (job.state, job.status.attempt) == (State.COMPLETED, 1)
    assert_same_history(job, runs.reference("ppo-cartpole"))


@pytest.mark.slow
def test_a_frozen_supervisor_is_ended_by_whoever_takes_over(runs):
    job = runs.promote("ppo-cartpole")
    runs.await_step(job, 1000)
    frozen = find(job.layout)["supervisor"]
    frozen.send_signal(signal.SIGSTOP)
    job.resume(takeover=True)
    await_all_gone([frozen])  # on its own machine whoever takes over ends it first
    job.wait(timeout=240)
    assert (job.state, job.status.attempt) == (State.COMPLETED, 2)
    assert_same_history(job, runs.reference("ppo-cartpole"))


@pytest.mark.parametrize("role", ["supervisor", pytest.param("worker", marks=pytest.mark.slow)])
def test_sigterm_suspends_and_resume_goes_on(runs, role):
    job = runs.promote("ppo-cartpole")
    runs.await_step(job, 1500)
    alive = find(job.layout)
    alive[role].send_signal(signal.SIGTERM)
    until(lambda: job.state is State.SUSPENDED, "the suspended state")
    await_all_gone([alive["worker"], alive["kernel"]])
    assert job.status.retries_used == 0
    job.resume()
    job.wait(timeout=240)
    assert (job.state, job.status.attempt) == (State.COMPLETED, 2)
    assert_same_history(job, runs.reference("ppo-cartpole"))


def test_pause_suspend_and_resume_change_nothing(runs):
    job = runs.promote("ppo-cartpole")
    runs.await_step(job, 1000)
    kernel = find(job.layout)["kernel"]
    job.pause()
    until(lambda: job.state is State.PAUSED, "the paused state")
    assert kernel.is_running()
    job.resume()
    until(lambda: job.state is State.RUNNING, "the running state")
    runs.await_step(job, 2500)
    job.suspend()
    until(lambda: job.state is State.SUSPENDED, "the suspended state")
    await_all_gone([kernel])
    job.resume()
    job.wait(timeout=240)
    assert (job.state, job.status.attempt) == (State.COMPLETED, 2)
    assert_same_history(job, runs.reference("ppo-cartpole"))


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(6))
def test_killed_twice_at_any_moment_even_before_training(runs, moment):
    job = runs.promote("ppo-cartpole")
    for _ in range(2):
        until(lambda: job.state in (State.STARTING, State.RUNNING), "a living attempt")
        until(lambda: "worker" in find(job.layout), "a worker")
        os.sched_yield()
        started = job.status.attempt
        until(lambda: len(read_events(job.layout)) > moment or job.state.final, "some events")
        kill(job.layout, "tree")
        until(lambda: job.state in (State.LOST, State.COMPLETED), "the lost state")
        if job.state is State.COMPLETED:
            break
        job.resume()
        until(lambda n=started: job.status.attempt > n, "the next attempt")
    job.wait(timeout=240)
    assert job.state is State.COMPLETED
    assert_same_history(job, runs.reference("ppo-cartpole"))
