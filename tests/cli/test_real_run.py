"""The commands on a real run: promoted, looked at, forked, verified, each by a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

EXPERIMENT = """\
import rlnb
exp = rlnb.Experiment("tiny", env="CartPole-v1", algo="PPO", n_envs=2, n_steps=32, batch_size=32, n_epochs=2,
                      seed=seed, total_timesteps=total_timesteps, torch_threads=1,
                      checkpoint={"every_steps": 256})"""


@dataclass(frozen=True)
class Shell:
    """A person's terminal in one folder, with one home.

    Attributes:
        folder: the working directory; it holds tiny.ipynb.
        home: $RLNB_HOME.
    """

    folder: Path
    home: Path

    def __call__(self, *words: str, code: int = 0) -> str:
        """Runs `rlnb WORDS`, expects an exit code, and returns stdout."""
        environ = {**os.environ, "RLNB_HOME": str(self.home), "RLNB_HEARTBEAT": "0.2", "RLNB_BACKOFF": "0.1"}
        done = subprocess.run(
            [sys.executable, "-m", "rlnb", *words],
            cwd=self.folder, env=environ, capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert done.returncode == code, (done.stdout, done.stderr)
        assert "Traceback" not in done.stderr or code == 1
        return done.stdout

    def json(self, *words: str, code: int = 0):
        """The same with `--json`, parsed."""
        return json.loads(self(*words, "--json", code=code))


def write(folder: Path, name: str, *cells: str) -> None:
    notebook = new_notebook()
    notebook.cells = [
        new_code_cell("seed = 0\ntotal_timesteps = 1024", id="parameters", metadata={"tags": ["parameters"]}),
        *(new_code_cell(source, id=f"cell-{number}") for number, source in enumerate(cells)),
    ]
    nbformat.write(notebook, folder / name)


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    write(folder, "tiny.ipynb", EXPERIMENT, 'job = rlnb.promote(exp, store="./runs")\njob')
    return Shell(folder, tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def promoted(shell):
    """A completed run: what `rlnb promote --wait --json` printed."""
    return shell.json("promote", "tiny.ipynb", "--wait")


def test_promote_waits_and_prints_one_json_document(shell, promoted):
    assert promoted["state"] == "completed"
    assert promoted["step"] == promoted["total_timesteps"] == 1024
    assert promoted["exact_resume"] is True
    assert promoted["run"] == str(shell.folder / "runs" / promoted["id"])
    assert (shell.folder / "runs" / promoted["id"] / "training.json").is_file()


def test_promoting_again_attaches_to_the_same_run(shell, promoted):
    assert shell.json("promote", "tiny.ipynb") == {"run": promoted["run"], "id": promoted["id"]}
    assert [row["id"] for row in shell.json("jobs")] == [promoted["id"]]


def test_waiting_in_a_pipe_ends_with_return_folder_and_how_to_open_it(shell, promoted):
    lines = shell("promote", "tiny.ipynb", "--wait").splitlines()
    assert any(line.startswith("learned return ") and line.endswith("after 1,024 steps") for line in lines)
    assert f"run folder  {shell.home}/runs/{promoted['id']}" in lines
    assert any(line.startswith("open it") and line.endswith(".ipynb") for line in lines)


def test_the_run_is_read_from_its_store_on_another_machine(shell, promoted, tmp_path):
    other = Shell(tmp_path, tmp_path / "home")
    shown = other.json("show", promoted["run"])
    assert shown["weights_sha256"] == promoted["weights_sha256"]
    assert [item["step"] for item in shown["checkpoints"]] == [
        item["step"] for item in promoted["checkpoints"]
    ]
    assert [row["id"] for row in other.json("jobs", "--store", str(shell.folder / "runs"))] == [
        promoted["id"]
    ]
    rows = other.json("metrics", promoted["id"], "-n", "0")
    assert rows[-1]["step"] == 1024


def test_the_handle_gives_a_plain_model_metrics_and_a_figure(shell, promoted):
    code = f"""if True:
        import rlnb
        job = rlnb.job({promoted["id"]!r})
        assert job.record["weights_sha256"] == {promoted["weights_sha256"]!r}
        action, _ = job.model("best").predict([0.0, 0.0, 0.0, 0.0])
        assert int(action) in (0, 1)
        assert type(job.model("final")).__module__ == "stable_baselines3.ppo.ppo"
        assert job.metrics["step"].iloc[-1] == 1024
        assert len(job.plot().data) > 3
        assert "completed" in repr(job)
    """
    environ = {**os.environ, "RLNB_HOME": str(shell.home)}
    subprocess.run([sys.executable, "-c", code], env=environ, check=True, timeout=100)


@pytest.mark.slow
def test_a_warm_start_takes_its_checkpoint_along_and_is_verifiable(shell, promoted):
    warm = EXPERIMENT.replace('"tiny"', '"warm"').replace(
        "seed=seed", f'seed=1, init_from="{promoted["id"]}@best"'
    )
    write(shell.folder, "warm.ipynb", warm, "rlnb.promote(exp)")
    run = shell.json("promote", "warm.ipynb", "--wait")
    assert run["state"] == "completed"
    begun = [event for event in shell.json("show", run["id"])["events"] if event["kind"] == "init_from"]
    assert "Training starts with policy, critic of" in begun[0]["message"]
    assert (shell.folder / "runs" / run["id"] / "data" / "init" / "checkpoints").is_dir()
    assert shell.json("verify", run["id"])["equal"] is True


def test_verify_finds_equal_weights(shell, promoted):
    result = shell.json("verify", promoted["id"])
    assert (result["equal"], result["found"], result["reasons"]) == (True, promoted["weights_sha256"], [])
    assert [row["id"] for row in shell.json("jobs")][-1] == promoted["id"]
    assert not any("verify" in row["id"] for row in shell.json("jobs"))


@pytest.mark.slow
def test_a_fork_without_changes_but_the_end_goes_on_exactly(shell, promoted):
    step = promoted["checkpoints"][0]["step"]
    forked = shell.json("fork", promoted["id"], "--step", str(step), "--wait")
    assert forked["parent"] == {"run": promoted["run"], "step": step, "kind": "fork"}
    assert forked["weights_sha256"] == promoted["weights_sha256"]


def test_a_fork_with_changes_is_another_run_and_verifiable(shell, promoted):
    forked = shell.json(
        "fork", promoted["id"], "-c", "total_timesteps=1536", "-c", "learning_rate=1e-4", "--wait"
    )
    assert (forked["state"], forked["step"]) == ("completed", 1536)
    assert forked["weights_sha256"] != promoted["weights_sha256"]
    assert shell.json("verify", forked["id"])["equal"] is True


def test_a_fork_with_nothing_left_to_train_is_refused(shell, promoted):
    error = shell.json("fork", promoted["id"], code=2)["error"]
    assert "has all of total_timesteps=1,024; fork with a larger total_timesteps or an earlier step" in error
    error = shell.json("fork", promoted["id"], "-c", "learnin_rate=1", code=2)["error"]
    assert "Did you mean 'learning_rate'?" in error


def test_a_cell_error_is_1_with_traceback_and_cell_number(shell):
    write(shell.folder, "broken.ipynb", "1 / 0", EXPERIMENT, "rlnb.promote(exp)")
    error = shell.json("promote", "broken.ipynb", "--wait", "--no-check", code=1)["error"]
    assert "ZeroDivisionError: division by zero" in error
    assert "cell 2 raised ZeroDivisionError" in error
    assert "rlnb logs" in error


def test_a_misspelt_parameter_is_2_and_names_the_nearest(shell):
    error = shell.json("promote", "tiny.ipynb", "-p", "sed=1", code=2)["error"]
    assert "Did you mean 'seed'?" in error


def test_a_stopped_run_is_resumed_from_its_mirror_on_an_empty_home(shell, promoted, tmp_path):
    started = shell.json("promote", "tiny.ipynb", "-p", "total_timesteps=1000000")
    waited = (
        f"import rlnb,time\njob = rlnb.job({started['id']!r})\nwhile not job.checkpoints: time.sleep(0.05)"
    )
    environ = {**os.environ, "RLNB_HOME": str(shell.home)}
    subprocess.run([sys.executable, "-c", waited], env=environ, check=True, timeout=100)
    assert shell.json("inspect", started["id"], "total_timesteps")["value"] == "1000000"
    shell("suspend", started["id"])
    shell("wait", started["id"])
    assert shell.json("show", started["id"])["state"] == "suspended"
    other = Shell(tmp_path, tmp_path / "home")
    error = other.json("resume", started["run"], code=2)["error"]
    assert "was not promoted on this machine" in error
    other("resume", started["run"], "--trust")
    assert other.json("show", started["id"])["attempt"] == 2
    other("stop", started["id"])
    other("wait", started["id"])
    assert other.json("show", started["id"])["state"] == "stopped"
