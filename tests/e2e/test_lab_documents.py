"""A lab in a notebook that is executed for its file, and in the job that the notebook becomes."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

import rlnb
from rlnb.job import Job
from rlnb.jobs.processes import end_all, marked
from rlnb.promote import promote_notebook
from rlnb.run import identity
from rlnb.run.identity import JobIdentity
from rlnb.run.metrics import MetricReader
from rlnb.run.record import read_record
from rlnb.run.status import State
from rlnb.settings import runs_dir

WIDGET = "application/vnd.jupyter.widget-view+json"
LAB = """
import rlnb
lab = rlnb.Lab("CartPole-v1", design="cart.yaml", reward=[rlnb.Term("env", "reward"), rlnb.Term("tilt", "-abs(theta)")], episodes=4)
""".strip()
TRAIN = """
exp = lab.experiment("PPO", "cart", total_timesteps=512, n_steps=64, batch_size=32, n_epochs=1)
job = rlnb.promote(exp)
""".strip()


def _write(folder: Path, *sources: str) -> Path:
    cells = [new_code_cell(source, id=f"c{place}") for place, source in enumerate(sources)]
    book = new_notebook(cells=cells)
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, folder / "lab.ipynb")
    return folder / "lab.ipynb"


def _shown(notebook: Path, cell: int) -> dict[str, str]:
    """What a cell shows: MIME type → content, of all its outputs."""
    found: dict[str, str] = {}
    for output in nbformat.read(notebook, 4).cells[cell].outputs:
        assert output.output_type != "error", output
        found.update(output.get("data", {}))
    return found


def _files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_an_executed_notebook_keeps_tables_and_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    path = _write(tmp_path, LAB, "lab.change(reward=[rlnb.Term('tilt', '-theta**2', weight=3)])", "lab")
    book = nbformat.read(path, 4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(book, timeout=120, kernel_name="python3", resources=resources).execute()
    nbformat.write(book, path)
    shown = _shown(path, 2)
    assert set(shown) == {"text/html", "image/png", "text/plain"}
    assert "4 episodes (4 random)" in shown["text/html"]
    assert "tilt: -abs(theta) -&gt; -theta**2" in shown["text/html"]
    assert "env removed" in shown["text/html"]
    assert WIDGET not in path.read_text()
    assert path.stat().st_size < 300_000


def test_the_experiment_in_a_job_is_that_of_the_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    monkeypatch.chdir(here)
    lab = rlnb.Lab("CartPole-v1", design="cart.yaml", reward=_defaults(), episodes=2)
    lab.change(reward=[rlnb.Shaping("near", "-abs(x)", gamma=0.9)], state=[rlnb.Select(["x", "theta"])])
    spec = lab.experiment("PPO", total_timesteps=64).spec
    for name in [path.relative_to(here) for path in lab.files()]:
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(here / name, there / name)
    lab.close()
    before = _files(there)
    monkeypatch.chdir(there)
    for attempt in (1, 2):  # a resumed job begins with the same files
        identity.bind(JobIdentity(tmp_path / "exp-1", attempt, "train", "c1", 1))
        try:
            inside = rlnb.Lab("CartPole-v1", design="cart.yaml", reward=_defaults(), episodes=2)
            inside.change(reward=[rlnb.Term("a_cell_of_the_notebook", "x")])
            again = inside.experiment("PPO", total_timesteps=64).spec
        finally:
            identity.bind(None)
        assert again.fingerprint() == spec.fingerprint()
        assert again.design["reward"]["terms"][0]["name"] == "near"
        assert _files(there) == before


@pytest.fixture
def _no_survivors(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RLNB_HEARTBEAT", "0.2")
    monkeypatch.setenv("RLNB_BACKOFF", "0.1")
    yield
    for root in runs_dir().glob("*"):
        end_all(lambda root=root: marked(root))


@pytest.mark.slow
@pytest.mark.usefixtures("_no_survivors")
def test_a_job_trains_and_shows_the_design_of_the_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lab = rlnb.Lab("CartPole-v1", design="cart.yaml", reward=_defaults(), episodes=4)
    lab.change(reward=[rlnb.Term("env", "reward"), rlnb.Term("tilt", "-abs(theta)", weight=0.0), rlnb.Term("bonus", "2.0 + 0 * x")])  # fmt: skip
    lab.close()
    path = _write(tmp_path, LAB, "lab", "lab.record('idle', episodes=2)\nprint(len(lab.bench.keys), lab.diff())", TRAIN)  # fmt: skip
    before = _files(tmp_path / "cart.lab") | _files_of(tmp_path / "cart.yaml")
    job: Job = promote_notebook(path, store=tmp_path / "store", check=False)
    job.wait(timeout=240)
    assert job.state is State.COMPLETED, job.layout.output(1).read_text()
    assert _files(tmp_path / "cart.lab") | _files_of(tmp_path / "cart.yaml") == before, "a job writes nothing"

    executed = job.layout.output(1)
    shown = _shown(executed, _cell_of(executed, "lab"))
    assert set(shown) == {"text/html", "image/png", "text/plain"}
    assert "tilt: weight 1 -&gt; 0" in shown["text/html"]
    assert "bonus added: 2.0 + 0 * x, weight 1" in shown["text/html"]
    assert "4 episodes (4 random)" in shown["text/html"]
    assert WIDGET not in executed.read_text()
    assert "6 ['tilt: weight 1 -> 0', 'bonus added: 2.0 + 0 * x, weight 1']" in executed.read_text()

    # Each step of CartPole is paid 1 by the environment, and 2 more by the lab's design.
    rows = [row for row in MetricReader(job.layout).read()[0] if "episode/return" in row]
    assert rows
    assert {row["episode/return"] / row["episode/return_env"] for row in rows} == {3.0}
    design = (read_record(job.layout).experiment or {})["design"]
    assert rlnb.Design.from_dict(design) == rlnb.Design.from_yaml(tmp_path / "cart.yaml")


def _defaults() -> list[rlnb.Term]:
    return [rlnb.Term("env", "reward"), rlnb.Term("tilt", "-abs(theta)")]


def _files_of(path: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()}


def _cell_of(notebook: Path, source: str) -> int:
    return [cell.source for cell in nbformat.read(notebook, 4).cells].index(source)
