from __future__ import annotations

import time

from rlnb.jobs.supervisor.clock import AwakeClock, Timer


def test_a_long_sleep_counts_as_the_longest_step():
    clock = AwakeClock(longest=0.05)
    time.sleep(0.2)
    assert 0 < clock.tick() <= 0.05
    before = clock.now
    assert clock.tick() - before < 0.05


def test_a_timer_starts_anew_with_every_break_and_every_key():
    clock = AwakeClock()
    timer = Timer(clock)
    assert timer.held(True, key=1) == 0.0
    clock.now += 3
    assert timer.held(True, key=1) == 3.0
    assert timer.held(True, key=2) == 0.0
    clock.now += 1
    assert timer.held(True, key=2) == 1.0
    assert timer.held(False, key=2) == 0.0
    assert timer.held(True, key=2) == 0.0
