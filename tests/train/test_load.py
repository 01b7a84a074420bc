"""Models out of run folders, and into other runs."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.vec_env import DummyVecEnv

from rlnb.errors import CheckpointError, RunNotFound
from rlnb.experiment import Experiment
from rlnb.run.checkpoints import checkpoints
from rlnb.run.events import read_events
from rlnb.run.record import RunRecord, write_record
from rlnb.train.hashing import weights_sha256
from rlnb.train.load import load_model, load_normalize, load_weights

CARTPOLE = {"env": "CartPole-v1", "algo": "PPO", "n_steps": 32, "batch_size": 32, "n_epochs": 1,
            "total_timesteps": 256, "checkpoint": {"every_steps": 64, "keep_last": 9}}  # fmt: skip
PENDULUM = {"env": "Pendulum-v1", "algo": "SAC", "total_timesteps": 120, "learning_starts": 20, "batch_size": 16,
            "policy_kwargs": {"net_arch": [16, 16]}, "checkpoint": {"every_steps": 40, "keep_last": 9}}  # fmt: skip


def trained(trial, **given):
    run = trial(**given)
    run.record = run.attempt()
    spec = Experiment("trial", **given).spec
    write_record(run.layout, RunRecord("run", "trial", "", "", {}, {}, {}, experiment=spec.to_dict()))
    return run


def test_a_model_predicts_as_it_was_trained(trial):
    run = trained(trial, **CARTPOLE)
    np.random.seed(1)
    torch.manual_seed(1)
    expected = (np.random.random(), torch.rand(1))
    np.random.seed(1)
    torch.manual_seed(1)
    model = load_model(run.layout, "final")
    assert (np.random.random(), torch.rand(1)) == expected
    assert type(model) is PPO
    assert model.num_timesteps == 256
    assert weights_sha256(model.policy.state_dict()) == run.record["weights_sha256"]
    assert weights_sha256(load_weights(run.layout, "final")) == run.record["weights_sha256"]
    assert model.predict(np.zeros(4, dtype=np.float32))[0] in (0, 1)
    model.set_env(gym.make("CartPole-v1"))
    model.learn(32)


def test_a_model_by_step_best_or_latest(trial):
    run = trained(trial, **CARTPOLE)
    by_step = {one.step: one for one in checkpoints(run.layout)}
    model = load_model(run.layout, 128)
    assert weights_sha256(model.policy.state_dict()) == by_step[128].weights_sha256
    assert load_model(run.layout, "latest").num_timesteps == 256
    rated = [one for one in by_step.values() if one.return_mean is not None]
    assert (
        load_model(run.layout, "best").num_timesteps
        == max(rated, key=lambda one: (one.return_mean, one.step)).step
    )
    with pytest.raises(CheckpointError, match=r"has no checkpoint 100; it has: 64, 128, .*256"):
        load_model(run.layout, 100)
    with pytest.raises(
        CheckpointError, match=r"no checkpoint 'newest'; it has: .* 'best', 'latest' and 'final' are"
    ):
        load_model(run.layout, "newest")


def test_an_unfinished_run_has_no_final_model(trial):
    run = trained(trial, **CARTPOLE)
    run.layout.training_json.unlink()
    with pytest.raises(
        CheckpointError, match=r"has not finished training; use 'latest' \(step 256\) or 'best'"
    ):
        load_model(run.layout, "final")


def test_an_off_policy_model_with_its_statistics(trial):
    run = trained(trial, **PENDULUM, normalize=True)
    model = load_model(run.layout, "latest")
    assert type(model) is SAC
    assert model.replay_buffer.size() == 0
    assert model.target_entropy == -1.0
    venv = load_normalize(run.layout, DummyVecEnv([lambda: gym.make("Pendulum-v1")]), "latest")
    assert venv.training is False
    assert venv.obs_rms.count > 100
    assert model.predict(venv.reset())[0].shape == (1, 1)


def test_a_run_may_start_from_another(trial):
    source = trained(trial, **PENDULUM)
    parts = ["policy", "critic", "optimizer", "replay"]
    given = {**PENDULUM, "learning_starts": 10**6}  # it never trains, so that what was taken over stays
    run = trial(**given, init_from={"run": str(source.layout.root), "step": "final", "parts": parts})
    assert run.attempt()["weights_sha256"] == source.record["weights_sha256"]
    said = [event.message for event in read_events(run.layout) if event.kind == "init_from"]
    assert said[0].startswith("Training starts with policy, critic, optimizer, replay of ")
    assert checkpoints(run.layout)[-1].bytes > checkpoints(source.layout)[-1].bytes  # 120 rows more
    only = trial(
        **given, init_from={"run": str(source.layout.root), "step": 80, "parts": ["policy"]}
    ).attempt()
    plain = trial(**given).attempt()
    assert len({only["weights_sha256"], plain["weights_sha256"], source.record["weights_sha256"]}) == 3


def test_a_source_that_does_not_fit_or_exist_is_named(trial):
    source = trained(trial, **PENDULUM)
    where = str(source.layout.root)
    with pytest.raises(
        CheckpointError, match=r"of shape .* this experiment has .*; use the same policy, policy_kwargs"
    ):
        trial(**{**PENDULUM, "policy_kwargs": {"net_arch": [8]}}, init_from=where).attempt()
    with pytest.raises(RunNotFound, match="There is no run 'nowhere' here"):
        trial(**PENDULUM, init_from="nowhere").attempt()
    with pytest.raises(
        CheckpointError, match="is to bring its replay buffer, but one of the two runs has none"
    ):
        trial(
            **CARTPOLE, init_from={"run": str(trained(trial, **CARTPOLE).layout.root), "parts": ["replay"]}
        ).attempt()
