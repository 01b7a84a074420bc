from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rlnb.jobs.processes import MARK
from rlnb.jobs.worker.env import THREADS, is_allowed, job_environment
from rlnb.jobs.worker.kernel import TRAINING_MODULES, modules_to_preimport
from rlnb.run.identity import VARIABLE, JobIdentity
from rlnb.run.record import RunRecord, Target

RECORD = RunRecord(
    id="exp-1",
    name="n",
    created="",
    rlnb="0",
    owner={},
    store={"url": "x"},
    notebook={},
    target=Target("c9", 2),
)


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "LC_ALL", "CUDA_VISIBLE_DEVICES", "RLNB_HOME", "MUJOCO_GL", "LD_LIBRARY_PATH"]
)
def test_what_a_program_needs_is_allowed(name):
    assert is_allowed(name, "value")


@pytest.mark.parametrize(
    ("name", "value"),
    [("FORCE_COLOR", "1"), ("MPLBACKEND", "inline"), ("JPY_PARENT_PID", "1"), ("PAGER", "cat"), ("AWS_ACCESS_KEY_ID", "A"),
     ("AWS_SECRET_ACCESS_KEY", "x"), ("RLNB_STORE_TOKEN", "x"), ("HTTPS_PROXY", "http://me:password@proxy"), (VARIABLE, "{}"), (MARK, "/x")],
)  # fmt: skip
def test_what_a_notebook_server_hands_down_and_secrets_are_not(name, value):
    assert not is_allowed(name, value)


def test_the_environment_is_fixed_where_exactness_needs_it():
    record = replace(RECORD, experiment={"torch_threads": 2}, pass_env=["WANDB_API_KEY", "ABSENT"])
    environ = {
        "PATH": "/bin",
        "WANDB_API_KEY": "k",
        "PAGER": "cat",
        "PYTHONHASHSEED": "random",
        "OMP_NUM_THREADS": "8",
    }
    made = job_environment(record, environ, root=Path("/runs/exp-1"), attempt=3)
    identity = made.pop(VARIABLE)
    assert JobIdentity.from_json(identity) == JobIdentity(Path("/runs/exp-1"), 3, "train", "c9", 2)
    assert made == {
        "PATH": "/bin", "WANDB_API_KEY": "k", "PYTHONHASHSEED": "0", MARK: "/runs/exp-1", **dict.fromkeys(THREADS, "2"),
    }  # fmt: skip


def test_threads_are_left_alone_when_nobody_chose_them():
    made = job_environment(RECORD, {"OMP_NUM_THREADS": "8"}, root=Path("/r"), attempt=1)
    assert made["OMP_NUM_THREADS"] == "8"
    assert "MKL_NUM_THREADS" not in made


def test_nothing_is_imported_early_where_a_cell_sets_variables():
    assert modules_to_preimport(["x = 1", "import rlnb"]) == TRAINING_MODULES
    assert modules_to_preimport(["import os\nos.environ['OMP_NUM_THREADS'] = '4'"]) == ()
    assert modules_to_preimport(["%env CUDA_VISIBLE_DEVICES=1"]) == ()


def test_what_overrides_experiments_is_what_it_was_at_the_promotion():
    record = replace(RECORD, overrides={"RLNB_TRAINING__SEED": "7"})
    environ = {"RLNB_TRAINING__SEED": "8", "RLNB_ENV__KWARGS": "{}", "RLNB_HEARTBEAT": "1"}
    made = job_environment(record, environ, root=Path("/r"), attempt=2)
    assert {name: made.get(name) for name in environ} == {
        "RLNB_TRAINING__SEED": "7",
        "RLNB_ENV__KWARGS": None,
        "RLNB_HEARTBEAT": "1",
    }
