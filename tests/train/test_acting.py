"""Policies of earlier runs act on raw observations as they did in training."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlnb import settings
from rlnb.envs.rollouts import record_rollouts
from rlnb.errors import CheckpointError, EnvError, ExperimentError, RunNotFound, UsageError
from rlnb.experiment import Experiment
from rlnb.run.checkpoints import find_checkpoint
from rlnb.run.index import Index
from rlnb.run.layout import RunLayout
from rlnb.run.record import RunRecord, write_record
from rlnb.train.envstate import StateKind
from rlnb.train.load import load_model
from rlnb.train.snapshot import read_snapshot
from rlnb.train.trainer import train
from rlnb.train.vecenv import make_training_env
from rlnb.trained_policies import load_policy, trained_policies

STATE = [{"select": ["x", "theta", "x_dot"]}, {"delta": {"names": ["theta"]}}, {"running_zscore": {}}]
GIVEN: dict[str, Any] = {
    "env": "CartPole-v1", "algo": "PPO", "n_steps": 32, "batch_size": 32, "n_epochs": 1, "total_timesteps": 192,
    "n_envs": 2, "normalize": True, "checkpoint": {"every_steps": 64, "keep_last": 9},
    "design": {"reward": {"terms": [{"name": "pay", "python": "only_in_the_notebook_of_the_run"}]}, "state": STATE},
}  # fmt: skip


def trained(run_id: str, **changes: Any) -> RunLayout:
    layout = RunLayout(settings.runs_dir() / run_id)
    given = {**GIVEN, **changes}
    exp = Experiment("pole", **{**given, "design": {"state": STATE}})
    train(exp.spec, make_env=exp.make_env, design=exp.design, layout=layout, attempt=1, signals=exp.signals)
    experiment = {**exp.spec.to_dict(), "design": given["design"]}
    record = RunRecord(
        run_id, "pole", "2026-11-30", "", {}, {"url": "file:///nowhere"}, {}, experiment=experiment
    )
    write_record(layout, record)
    Index().add(layout, record, url="")
    return layout


def test_actions_are_those_of_training(rlnb_home: Path) -> None:
    layout = trained("exp-2026-11-30-pole-0001")
    label = "exp-2026-11-30-pole-0001@latest"
    policy = load_policy(label, env="CartPole-v1")
    model = load_model(layout, "latest")

    exp = Experiment("pole", **{**GIVEN, "design": {"state": STATE}, "n_envs": 1})
    env = make_training_env(
        exp.spec, make_env=exp.make_env, design=exp.design, signals={}, kind=StateKind.NONE
    )
    vector = read_snapshot(find_checkpoint(layout, "latest")).state["vector"]
    assert env.design is not None
    assert env.normalize is not None
    env.restore({"normalize": vector["normalize"]}, None)
    env.normalize.training = False
    context = vector["design"]["applier"]["context"]
    kept = {k: v for k, v in context.items() if k.endswith(("mean", "variance", "count"))}
    env.design.applier._context.load_state_dict({"known": np.zeros(1, bool), **kept})
    env.design.applier.learning = False

    batch = record_rollouts("CartPole-v1", policy, episodes=3, seed=5).batch
    assert batch is not None
    assert set(batch.labels.values()) == {label}
    for number, episode in enumerate(batch.episodes()):
        env.outer.seed(5 + number)
        obs: Any = env.outer.reset()
        policy.begin_episode()
        for raw, action in zip(episode.obs.matrix, np.asarray(episode.action), strict=True):
            np.testing.assert_array_equal(policy.seen(raw), obs)
            expected = model.predict(obs, deterministic=True)[0]
            assert expected[0] == action
            obs, *_ = env.outer.step(expected)
    env.close()

    assert len(set(np.asarray(batch.action).tolist())) == 2
    assert policy.seen(batch.obs.matrix[0]).shape == (1, 4)


def test_runs_of_this_environment_are_listed(rlnb_home: Path) -> None:
    assert trained_policies("CartPole-v1") == []
    layout = trained("exp-2026-11-30-pole-0002")
    found = trained_policies({"kind": "id", "value": "CartPole-v1", "kwargs": {}})
    assert {one.which for one in found} <= {"best", "latest"}
    assert found[0].label == "exp-2026-11-30-pole-0002@best"
    assert found[-1].step == 192
    assert (found[0].run_id, found[0].name, found[0].created) == (layout.id, "pole", "2026-11-30")
    assert trained_policies("Acrobot-v1") == []
    with pytest.raises(EnvError, match=f"{layout.id} was trained in CartPole-v1, not in Acrobot-v1; choose"):
        load_policy(f"{layout.id}@best", env="Acrobot-v1")
    with pytest.raises(CheckpointError, match="has no checkpoint 5; it has: 64, 128, 192"):
        load_policy("pole@5")
    with pytest.raises(RunNotFound, match=r"There is no run 'pola' here.* Did you mean 'pole'\?"):
        load_policy("pola")
    with pytest.raises(UsageError, match="policy='pole@newest' cannot be read; write 'RUN@best'"):
        load_policy("pole@newest")
    assert load_policy("pole").label == f"{layout.id}@best"
    write = (
        "from rlnb.trained_policies import trained_policies as t; import sys; assert len(t('CartPole-v1'))"
    )
    subprocess.run([sys.executable, "-c", f"{write}; assert 'torch' not in sys.modules"], check=True)

    # a policy class of the notebook of the run, which does not exist here
    from rlnb.run.record import read_record

    record = read_record(layout)
    assert record.experiment is not None
    record.experiment["policy"] = {"$ref": "__main__:Mine"}
    write_record(layout, record)
    with pytest.raises(ExperimentError, match="policy is 'Mine', which is defined in the notebook"):
        load_policy("pole")
