"""Snapshots of a model that no experiment offers yet: recurrent policies carry a state from step to step."""

from __future__ import annotations

import pytest
from stable_baselines3.common.callbacks import BaseCallback

from rlnb.experiment import Experiment
from rlnb.train.envstate import StateKind
from rlnb.train.hashing import weights_sha256
from rlnb.train.snapshot import Restorable, capture, restore
from rlnb.train.vecenv import make_training_env


class AtRollout(BaseCallback):
    """Calls a function at the n-th start of a rollout."""

    def __init__(self, number, action):
        super().__init__()
        self.number, self.action, self.seen = number, action, 0

    def _on_rollout_start(self):
        self.seen += 1
        if self.seen == self.number:
            self.action(self.model)

    def _on_step(self):
        return True


def test_recurrent_states_are_captured():
    contrib = pytest.importorskip("sb3_contrib")
    exp = Experiment("lstm", env="CartPole-v1", algo="PPO", n_envs=2, total_timesteps=160)
    taken = []

    def train(number, action):
        env = make_training_env(
            exp.spec, make_env=exp.make_env, design=exp.design, signals=None, kind=StateKind.PICKLE
        )
        model = contrib.RecurrentPPO(
            "MlpLstmPolicy", env.outer, n_steps=16, batch_size=16, n_epochs=1, seed=0, device="cpu",
            policy_kwargs={"lstm_hidden_size": 8, "net_arch": [8]},
        )  # fmt: skip
        model.learn(160, callback=AtRollout(number, lambda model: action(model, env)))
        env.close()
        return weights_sha256(model.policy.state_dict())

    def put_back(model, env):
        (saved,) = taken
        restore(model, env, Restorable(saved.state, saved.tensors, saved.envs, lambda name: b""))

    whole = train(3, lambda model, env: taken.append(capture(model, env)))
    assert "lstm" in taken[0].tensors
    assert train(1, put_back) == whole
