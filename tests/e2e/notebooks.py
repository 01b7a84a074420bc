"""The notebooks that the end-to-end tests promote, and the experiments in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook


@dataclass(frozen=True)
class Recipe:
    """One small experiment.

    Attributes:
        env: gymnasium id.
        settings: the rest of the Experiment's arguments, as source.
        steps: total_timesteps; so many that a quick machine trains for seconds, because a kill must
            find training under way.
    """

    env: str
    settings: str
    steps: int

    def cell(self) -> str:
        return (
            "import rlnb\n"
            f"exp = rlnb.Experiment('e2e', env={self.env!r}, total_timesteps=total_timesteps, seed=seed,\n"
            f"                      torch_threads=1, {self.settings})"
        )


PPO = "algo='PPO', n_steps=32, batch_size=64, n_epochs=4, checkpoint={'every_steps': 500}"
RECIPES = {
    "ppo-cartpole": Recipe("CartPole-v1", f"{PPO}, n_envs=4", 10_000),
    "ppo-cartpole-subprocess": Recipe("CartPole-v1", f"{PPO}, n_envs=2, workers='subprocess'", 5000),
    "dqn-cartpole": Recipe(
        "CartPole-v1",
        "algo='DQN', learning_starts=200, buffer_size=2000, train_freq=16, gradient_steps=8, "
        "target_update_interval=100, checkpoint={'every_steps': 500}",
        4000,
    ),
    "sac-pendulum": Recipe(
        "Pendulum-v1",
        "algo='SAC', normalize=True, learning_starts=100, batch_size=64, policy_kwargs={'net_arch': [32, 32]}, "
        "checkpoint={'every_steps': 200}",
        900,
    ),
    "ppo-lander": Recipe("LunarLander-v3", f"{PPO}, n_envs=2", 6000),
    "sac-cheetah": Recipe(
        "HalfCheetah-v5",
        "algo='SAC', normalize=True, learning_starts=100, batch_size=64, policy_kwargs={'net_arch': [32, 32]}, "
        "checkpoint={'every_steps': 200}",
        800,
    ),
}


def write_notebook(folder: Path, recipe: Recipe, *, name: str = "prototype.ipynb", after: str = "") -> Path:
    """Writes a notebook that trains the recipe; returns its path."""
    parameters = new_code_cell(
        f"seed = 0\ntotal_timesteps = {recipe.steps}", id="parameters", metadata={"tags": ["parameters"]}
    )
    cells = [
        new_markdown_cell("# A prototype", id="title"),
        parameters,
        new_code_cell(recipe.cell(), id="experiment"),
        new_code_cell("job = rlnb.promote(exp)\njob", id="promote"),
    ]
    if after:
        cells.append(new_code_cell(after, id="after"))
    notebook = new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = folder / name
    nbformat.write(notebook, path)
    return path
