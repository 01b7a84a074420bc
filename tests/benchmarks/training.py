"""What it costs to train in a run folder instead of with SB3's `learn()` alone."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.save_util import save_to_pkl

from rlnb.experiment import Experiment
from rlnb.run.chunks import write_chunk
from rlnb.run.layout import RunLayout
from rlnb.train import session as session_module
from rlnb.train.replay import ReplayLog, ring_columns
from rlnb.train.sb3 import SB3Trainer
from rlnb.train.trainer import train
from tests.benchmarks.harness import figure, interleaved

PAIRS = 15
_PPO = {
    "n_steps": 32,
    "batch_size": 256,
    "gamma": 0.98,
    "gae_lambda": 0.8,
    "n_epochs": 20,
    "learning_rate": 1e-3,
}
_SAC = {"learning_rate": 1e-3}


def _plain(algo: Any, env: str, n_envs: int, steps: int, settings: dict[str, Any]) -> float:
    model = algo("MlpPolicy", make_vec_env(env, n_envs=n_envs, seed=0), seed=0, device="cpu", **settings)
    begun = time.perf_counter()
    model.learn(steps)
    return steps / (time.perf_counter() - begun)


def _instrumented(algo: str, env: str, n_envs: int, steps: int, settings: dict[str, Any]) -> float:
    """Steps per second of the training itself: the plain side does not count its set-up either."""
    exp = Experiment(
        "bench", env=env, algo=algo, n_envs=n_envs, total_timesteps=steps, device="cpu", **settings
    )
    seconds = []
    real = SB3Trainer.step_until_safe

    def timed(self: SB3Trainer, *args: Any) -> bool:
        begun = time.perf_counter()
        done = real(self, *args)
        seconds.append(time.perf_counter() - begun)
        return done

    SB3Trainer.step_until_safe = timed  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as folder:
            train(
                exp.spec,
                make_env=exp.make_env,
                design=exp.design,
                layout=RunLayout(Path(folder) / "run"),
                attempt=1,
            )
    finally:
        SB3Trainer.step_until_safe = real  # type: ignore[method-assign]
    return steps / seconds[0]


@figure("overhead_ppo", "ratio", ">= 0.97")
def overhead_ppo() -> list[float]:
    return interleaved(
        lambda: _plain(PPO, "CartPole-v1", 8, 10_240, _PPO),
        lambda: _instrumented("PPO", "CartPole-v1", 8, 10_240, _PPO),
        PAIRS,
    )


@figure("overhead_sac", "ratio", ">= 0.97")
def overhead_sac() -> list[float]:
    return interleaved(
        lambda: _plain(SAC, "Pendulum-v1", 1, 600, _SAC),
        lambda: _instrumented("SAC", "Pendulum-v1", 1, 600, _SAC),
        PAIRS,
    )


@figure("checkpoint_stall", "ms", "<= 25")
def checkpoint_stall() -> list[float]:
    stalls = []
    real = session_module.Session._start_checkpoint

    def timed(self: Any, now: float) -> None:
        begun = time.perf_counter()
        real(self, now)
        stalls.append((time.perf_counter() - begun) * 1e3)

    session_module.Session._start_checkpoint = timed  # type: ignore[method-assign]
    try:
        exp = Experiment(
            "bench", env="CartPole-v1", algo="PPO", n_envs=8, total_timesteps=10_240, device="cpu",
            checkpoint={"every_steps": 256}, **_PPO,
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            train(
                exp.spec,
                make_env=exp.make_env,
                design=exp.design,
                layout=RunLayout(Path(folder) / "run"),
                attempt=1,
            )
    finally:
        session_module.Session._start_checkpoint = real  # type: ignore[method-assign]
    return stalls


@figure("replay_increment", "ratio", "<= 0.02")
def replay_increment() -> list[float]:
    """Bytes for 10,000 rows added to a full buffer of a million, over SB3's pickle; HalfCheetah's shapes."""
    import gymnasium as gym

    size, rows = 1_000_000, 10_000
    buffer = ReplayBuffer(size, gym.spaces.Box(-1, 1, (17,)), gym.spaces.Box(-1, 1, (6,)), device="cpu")
    rng = np.random.default_rng(0)
    for array in ring_columns(buffer).values():
        array[:] = rng.random(array.shape, dtype=np.float32)
    buffer.full = True
    with tempfile.TemporaryDirectory() as folder:
        layout = RunLayout(Path(folder) / "run")
        written = 0

        def write(data: bytes) -> str:
            nonlocal written
            written += len(data)
            return write_chunk(layout, data, extension="npz")

        log = ReplayLog()
        log.commit(log.capture(buffer, steps=size), write)
        written = 0
        buffer.pos = rows
        log.commit(log.capture(buffer, steps=size + rows), write)
        save_to_pkl(Path(folder) / "buffer.pkl", buffer)
        return [written / (Path(folder) / "buffer.pkl").stat().st_size]
