from __future__ import annotations

from rlnb.run.status import EndKind, Evidence, State
from rlnb.view.facts import Facts
from rlnb.view.text import job_text, progress_bar


def test_a_running_job():
    facts = Facts(
        "exp-1", name="lander", what="PPO on LunarLander-v3", state=State.RUNNING, attempt=1, step=250, total=1000,
        steps_per_second=10.0, return_mean=-12.5, folder="/runs/exp-1",
    )  # fmt: skip
    lines = job_text(facts, width=70).splitlines()
    assert lines[0] == "lander: running (PPO on LunarLander-v3)"
    assert lines[1].endswith("250 of 1,000 steps (25.0 %) 1 min 15 s left")
    assert len(lines[1]) <= 70
    assert lines[2] == "return -12.50 (last 100 episodes) · 10.00 steps/s"
    assert lines[3] == "run exp-1 in /runs/exp-1"


def test_a_failed_job_names_its_log():
    evidence = Evidence(EndKind.CELL_ERROR, "Cell 3 raised ValueError: no.", log="logs/stdout.log")
    facts = Facts("exp-1", state=State.FAILED, evidence=evidence, folder="/runs/exp-1")
    assert job_text(facts, width=60).splitlines() == [
        "exp-1: failed",
        "Cell 3 raised ValueError: no.",
        "log: /runs/exp-1/logs/stdout.log",
        "run exp-1 in /runs/exp-1",
    ]


def test_ascii_for_plain_terminals():
    facts = Facts("r", state=State.RUNNING, step=50, total=100, attempt=2, checkpoint=40)
    text = job_text(facts, width=60, unicode=False)
    assert text.isascii()
    assert "[" in text
    assert "attempt 2, checkpoint at 40" in text


def test_progress_bars_have_the_asked_width_and_never_show_too_much():
    for fraction in (0.0, 0.001, 0.333, 0.5, 0.999, 1.0):
        for unicode in (True, False):
            assert len(progress_bar(fraction, 30, unicode=unicode)) == 30
    assert progress_bar(0.999, 12, unicode=False) == "[" + "#" * 9 + "." + "]"
    assert progress_bar(1.0, 12, unicode=False) == "[" + "#" * 10 + "]"
    assert progress_bar(0.5, 12) == "▕" + "█" * 5 + " " * 5 + "▏"
