"""From the promotion to the first training step, against papermill on a twin notebook; the supervisor's memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import psutil
from nbformat.v4 import new_code_cell, new_notebook

from rlnb.job import Job
from rlnb.promote import promote_notebook
from rlnb.run.progress import Phase, read_progress
from tests.benchmarks.harness import figure

PARAMETERS = "seed = 0\ntotal_timesteps = 2_000_000"

# The twin calls SB3 directly and says when its first training step begins.
TWIN = """
import time
from pathlib import Path
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

class Mark(BaseCallback):
    def _on_step(self):
        Path({mark!r}).write_text(str(time.time()))
        return False

env = make_vec_env("CartPole-v1", n_envs=8, seed=seed)
PPO("MlpPolicy", env, n_steps=32, batch_size=256, seed=seed, device="cpu").learn(total_timesteps, callback=Mark())
"""

OURS = """
import rlnb
exp = rlnb.Experiment("latency", env="CartPole-v1", algo="PPO", n_envs=8, n_steps=32, batch_size=256, seed=seed,
                      total_timesteps=total_timesteps, torch_threads=1, device="cpu")
job = rlnb.promote(exp)
"""


def write(folder: Path, code: str) -> Path:
    cells = [
        new_code_cell(PARAMETERS, id="parameters", metadata={"tags": ["parameters"]}),
        new_code_cell(code, id="train"),
    ]
    notebook = new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = folder / "notebook.ipynb"
    nbformat.write(notebook, path)
    return path


def papermill_seconds() -> float:
    with tempfile.TemporaryDirectory() as folder:
        mark = Path(folder) / "mark"
        notebook = write(Path(folder), TWIN.format(mark=str(mark)))
        begun = time.time()
        command = [
            sys.executable,
            "-m",
            "papermill",
            str(notebook),
            str(Path(folder) / "out.ipynb"),
            "--no-progress-bar",
        ]
        subprocess.run(command, check=True, capture_output=True)
        return float(mark.read_text()) - begun


def started(folder: Path) -> tuple[Job, float]:
    """Promotes; returns the job once its first training step has begun, and the seconds it took."""
    notebook = write(folder, OURS)
    begun = time.time()
    job = promote_notebook(notebook, store=str(folder / "runs"), new=True, check=False)
    while True:
        said = read_progress(job.layout)
        if said is not None and said.phase is Phase.TRAINING:
            return job, said.time - begun
        if job.state.final:
            raise AssertionError(job.exception)
        time.sleep(0.005)


def in_fresh_home(measure: object) -> object:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        before = os.environ.get("RLNB_HOME")
        os.environ["RLNB_HOME"] = home
        try:
            return measure(Path(home))  # type: ignore[operator]
        finally:
            os.environ.pop("RLNB_HOME")
            if before is not None:
                os.environ["RLNB_HOME"] = before


def rlnb_seconds(folder: Path) -> float:
    job, seconds = started(folder)
    job.stop()
    while not job.at_rest:
        time.sleep(0.05)
    return seconds


@figure("promote_latency", "ratio", "<= 1.0")
def promote_latency() -> list[float]:
    papermill_seconds(), in_fresh_home(rlnb_seconds)  # warm the disk cache
    return [in_fresh_home(rlnb_seconds) / papermill_seconds() for _ in range(5)]  # type: ignore[operator]


@figure("supervisor_memory", "MB", "< 60")
def supervisor_memory() -> list[float]:
    def measure(folder: Path) -> list[float]:
        job, _ = started(folder)
        status = job.status
        assert status is not None
        supervisor = psutil.Process(status.supervisor.pid)
        readings = []
        for _ in range(5):
            readings.append(supervisor.memory_info().rss / 2**20)
            time.sleep(0.5)
        job.stop()
        while not job.at_rest:
            time.sleep(0.05)
        return readings

    return in_fresh_home(measure)  # type: ignore[return-value]
