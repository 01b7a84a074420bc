"""In a real IPython kernel: an environment of a cell, in subprocess workers, with a signal of a cell."""

from __future__ import annotations

import pytest
from cells import CELL

USE = """
from stable_baselines3.common.vec_env import SubprocVecEnv
from rlnb.envs.make import resolve_env
from rlnb.envs.signals import with_signals

factory = resolve_env(Walk, {"goal": 0.5})
signals = {"twice": lambda env: 2 * env.unwrapped.x}
vec = SubprocVecEnv([lambda: with_signals(factory(), signals)] * 2)
vec.seed(0)
vec.reset()
_, _, dones, infos = vec.step([0, 1])
vec.close()
print(factory.spec["kind"], [round(info["rlnb.signals"]["twice"] / info["x"], 6) for info in infos])
"""


@pytest.mark.timeout(120)
def test_an_environment_of_a_cell_runs_in_workers_of_a_kernel() -> None:
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    printed: list[str] = []

    def listen(message: dict) -> None:  # type: ignore[type-arg]
        content = message["content"]
        if message["msg_type"] == "stream" and content["name"] == "stdout":
            printed.append(content["text"])

    try:
        for source in (CELL, USE):
            reply = client.execute_interactive(source, output_hook=listen, timeout=90)
            assert reply["content"]["status"] == "ok", reply["content"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert "".join(printed).strip() == "cell [2.0, 2.0]"
