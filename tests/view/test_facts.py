from __future__ import annotations

import pytest

from rlnb.run.progress import Phase
from rlnb.run.status import EndKind, Evidence, State
from rlnb.view.facts import Facts, Tone, duration, number, size


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (200, "3 min 20 s"),
        (3600, "1 h 00 min"),
        (7500, "2 h 05 min"),
        (356_400, "4 d 3 h"),
    ],
)
def test_durations(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"),
        (12345.6, "12,346"),
        (-182.34, "-182.3"),
        (1.5, "1.50"),
        (0.0123, "0.0123"),
        (float("nan"), "nan"),
    ],
)
def test_numbers(value, words):
    assert number(value) == words


def test_sizes():
    assert [size(n) for n in (820, 1_400_000, 2.5e12)] == ["820 B", "1.4 MB", "2500.0 GB"]


def test_time_left_needs_a_running_job():
    facts = Facts("r", state=State.RUNNING, step=250, total=1000, steps_per_second=10.0, phase=Phase.TRAINING)
    assert facts.seconds_left == 75.0
    assert facts.left_words == "1 min 15 s left"
    assert facts.fraction == 0.25
    assert facts.progress_words == "250 of 1,000 steps (25.0 %)"
    paused = Facts("r", state=State.PAUSED, step=250, total=1000, steps_per_second=10.0)
    assert paused.seconds_left is None
    assert paused.left_words == ""
    assert Facts("r", step=7).progress_words == "7 steps"


@pytest.mark.parametrize("state", list(State))
def test_every_state_has_words_and_a_tone(state):
    facts = Facts("r", state=state)
    assert str(state) in facts.state_words
    assert facts.tone in list(Tone)


def test_words_for_what_the_kernel_does():
    assert (
        Facts("r", state=State.RUNNING, phase=Phase.SETUP).state_words == "running the cells before promote()"
    )
    finished = Facts("r", state=State.RUNNING, phase=Phase.FINISHED, steps_per_second=9.0)
    assert (finished.state_words, finished.tone, finished.details) == ("training finished", Tone.GOOD, [])
    assert Facts("r", state=State.RUNNING, silent=True).state_words == "silent (running)"


def test_the_end_is_explained_by_its_evidence():
    evidence = Evidence(EndKind.CELL_ERROR, "Cell 4 raised ZeroDivisionError.")
    assert Facts("r", state=State.FAILED, why="w", evidence=evidence).explanation == evidence.message
    assert Facts("r", state=State.QUEUED, why="two jobs run already").explanation == "two jobs run already"


def test_details_say_what_is_out_of_the_ordinary():
    facts = Facts(
        "r", state=State.RUNNING, attempt=3, return_mean=12.0, checkpoint=1500, steps_per_second=900.0
    )
    assert facts.details == [
        "return 12.00 (last 100 episodes)",
        "900.0 steps/s",
        "attempt 3",
        "checkpoint at 1,500",
    ]
    troubled = Facts("r", attempt=1, store="unreachable since 12:00", upload_pending=5_000_000)
    assert troubled.details == ["store unreachable since 12:00", "5.0 MB to upload"]
