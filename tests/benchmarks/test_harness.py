from __future__ import annotations

import subprocess
import sys

import pytest

from tests.benchmarks.harness import Figure, interleaved

NAMES = {
    "overhead_ppo",
    "overhead_sac",
    "overhead_design",
    "promote_latency",
    "checkpoint_stall",
    "replay_increment",
    "supervisor_memory",
    "metric_row",
    "list_3500",
    "import_time",
    "slider_python",
    "combine_python",
    "slider_release",
    "expression_edit",
    "expression_speedup",
    "slider_screen",
    "lab_open",
    "lab_notebook_size",
}


@pytest.mark.parametrize(
    ("value", "target", "line"),
    [
        (0.98765, ">= 0.97", "speed 0.9877 ratio >=0.97 ok"),
        (0.9, ">= 0.97", "speed 0.9 ratio >=0.97 MISSED"),
        (60.0, "< 60", "speed 60 ratio <60 MISSED"),
        (60.0, "<= 60", "speed 60 ratio <=60 ok"),
    ],
)
def test_a_line_is_five_words(value: float, target: str, line: str) -> None:
    assert Figure("speed", value, "ratio", target, (0.1, 2.0)).line() == line
    assert len(line.split(" ")) == 5


def test_pairs_change_their_order_and_never_their_ratio() -> None:
    order: list[str] = []

    def side(name: str, value: float) -> float:
        order.append(name)
        return value

    ratios = interleaved(lambda: side("plain", 4.0), lambda: side("ours", 2.0), 3)
    assert ratios == [0.5, 0.5, 0.5]
    assert order[2:] == ["plain", "ours", "ours", "plain", "plain", "ours"]


def test_every_figure_is_registered_and_an_unknown_one_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "overhead"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    problem, names = done.stdout.strip().split("; there are: ")
    assert problem == "No figure is called 'overhead'"
    assert set(names.split(", ")) == NAMES
