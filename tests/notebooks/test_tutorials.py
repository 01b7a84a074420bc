"""The tutorials keep their word: what they say of their episodes is so, and their jobs train what was designed."""

from __future__ import annotations

import re

import nbformat
import pytest

import rlnb
from rlnb.run.record import read_record
from rlnb.run.status import State
from tests.e2e.processes import everything
from tests.notebooks.tutorial import FOLDER, Told, copied, executed_cells, html_of, run_all
from tests.promote.live import LiveNotebook


@pytest.fixture
def tutorial(tmp_path):
    """Runs a tutorial and waits for its job; nothing of it stays behind."""
    jobs = []

    def run(name: str, experiment: str, *, ask: str = "''") -> Told:
        with LiveNotebook(copied(name, tmp_path)) as live:
            said = run_all(live)
            answer = live.run(ask)
        jobs.append(rlnb.job(experiment))
        jobs[0].wait(timeout=120)
        return Told(said, answer, jobs[0])

    yield run
    for job in jobs:
        for process in everything(job.layout):
            process.kill()


def numbers(pattern: str, text: str) -> list[float]:
    found = re.search(pattern, text)
    assert found, text
    return [float(number) for number in found.groups()]


def marks(report: str) -> set[str]:
    """The signs of what a report of the checks tells."""
    return {line[0] for line in report.splitlines()[1:]}


def trained_and_shown(told: Told, change: str) -> None:
    """The job has trained the design of the file, and its notebook shows which one that was."""
    assert told.job.state is State.COMPLETED
    assert told.job.record["step"] >= 2_000
    assert "check: ready to promote" in told.said["exp-check"]
    assert "has started" in told.said["promote"]
    cells = executed_cells(told.job)
    shown = html_of(cells["lab"])
    assert change in shown
    assert "changes to what the code says" in shown
    assert any("image/png" in output.get("data", {}) for output in cells["lab"].outputs)
    assert "application/vnd.jupyter.widget-view+json" not in str(cells)
    assert re.search(r"flights returned -?\d+ on average", str(cells["results"].outputs))


def test_the_reward_that_pays_for_hanging_in_the_air(tutorial):
    told = tutorial("10_design_reward.ipynb", "lander-reward")
    assert marks(told.said["idea"]) == {"✖", "●"}
    loop = r"steps and earns ([\d.]+) a step, ([\d.]+) .* the demonstration earns ([\d.]+) "
    a_step, hanging, landing = numbers(loop, told.said["idea"])
    assert a_step == pytest.approx(1.0, abs=0.05)
    assert hanging == pytest.approx(500, rel=0.05)
    assert landing == pytest.approx(370, rel=0.02)
    hovering, landed = numbers(r"earns ([\d.]+), landing ([\d.]+)\.", told.said["hover"])
    assert hovering > 2 * landed
    assert landed == pytest.approx(landing, abs=1)
    assert marks(told.said["repair"]) == marks(told.said["group"]) == {"●"}
    trained_and_shown(told, "min(touch, tilt)")
    spec = read_record(told.job.layout).experiment
    assert spec["hyperparameters"]["gamma"] == 0.999
    assert {"reward/slow", "reward/touch", "reward/tilt"} <= set(told.job.metrics.columns)


def test_the_state_without_a_speedometer(tutorial):
    replay = "print(replay_bytes(lab.bench.plan.space, lab.env.spaces().action, 1_000_000))"
    told = tutorial(
        "20_design_state.ipynb",
        "lander-state",
        ask=f"from rlnb.design.replay_size import replay_bytes\n{replay}",
    )
    (reached,) = numbers(r"Random rollouts reach (\d+) % of what pilot visits", told.said["check"])
    assert reached == pytest.approx(100 / 6, abs=3)
    assert marks(told.said["check"]) == marks(told.said["state"]) == {"●"}
    one, two = numbers(
        r"next change of x \(R2 ([\d.]+) from one frame, ([\d.]+) from two", told.said["missing"]
    )
    assert (one, two) == (pytest.approx(0.2, abs=0.05), pytest.approx(1.0, abs=0.01))
    assert marks(told.said["repair"]) == {"▲", "●"}
    (factor,) = numbers(r"factor of (\d+): y varies by .*, d_x by", told.said["repair"])
    assert factor > 100
    assert "the frame before tells" not in told.said["repair"]
    assert int(told.answer) == 100e6
    trained_and_shown(told, "direction")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_committed_as_it_was_written(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert [cell.id for cell in notebook.cells if cell.metadata.get("tags") == ["parameters"]] == [
        "parameters"
    ]
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert not re.search(r"/(home|root|tmp|work|Users)/", cell.source)
