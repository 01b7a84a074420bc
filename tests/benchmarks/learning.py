"""Do promoted runs learn what plain SB3 learns? Two problems with known answers, three seeds each.

`python -m tests.benchmarks.learning [cartpole] [pendulum]` promotes a notebook for every seed, two jobs at
a time, evaluates each final policy deterministically, prints a Markdown table, and exits with 1 when a
target is missed. The published numbers are the RL zoo's benchmark (rl-baselines3-zoo, benchmark.md); the
hyperparameters are the zoo's too, and stable-baselines3's defaults where it names none.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

# Before torch is loaded; the jobs inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import nbformat
from nbformat.v4 import new_code_cell, new_notebook
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from rlnb.job import Job
from rlnb.jobs.capture.parameters import expand_grid
from rlnb.promote import promote_notebook
from rlnb.waiting import wait_until_rest

SEEDS = (0, 1, 2)
EPISODES = 100
AT_ONCE = "2"

CARTPOLE = """
import rlnb
exp = rlnb.Experiment("learning-cartpole", env="CartPole-v1", algo="PPO", total_timesteps=100_000, seed=seed,
                      n_envs=8, n_steps=32, batch_size=256, gamma=0.98, gae_lambda=0.8, n_epochs=20,
                      learning_rate="lin_1e-3", clip_range="lin_0.2", ent_coef=0.0, torch_threads=1, device="cpu")
job = rlnb.promote(exp)
"""

PENDULUM = """
import rlnb
exp = rlnb.Experiment("learning-pendulum", env="Pendulum-v1", algo="SAC", total_timesteps=20_000, seed=seed,
                      learning_rate=1e-3, torch_threads=1, device="cpu")
job = rlnb.promote(exp)
"""


@dataclass(frozen=True)
class Problem:
    """A problem whose result is known.

    Attributes:
        title: environment, algorithm and number of steps.
        env: gymnasium id, for the evaluation.
        code: the notebook's cell that promotes.
        published: the RL zoo's mean return and its standard deviation over episodes.
        low, high: bounds of the mean return that count as the published result.
        plain: what plain stable-baselines3 reached with the same settings on a machine of this size.
    """

    title: str
    env: str
    code: str
    published: str
    low: float
    high: float
    plain: str


PROBLEMS = {
    "cartpole": Problem("CartPole-v1, PPO, 100,000 steps", "CartPole-v1", CARTPOLE, "500", 500, 500, "500, 500, 500"),
    "pendulum": Problem(
        "Pendulum-v1, SAC, 20,000 steps", "Pendulum-v1", PENDULUM, "-157 ± 89", -157 - 89, -157 + 89, "-146"
    ),
}  # fmt: skip


def start(problem: Problem, folder: Path) -> list[Job]:
    """Promotes the problem's notebook once for every seed."""
    cells = [
        new_code_cell("seed = 0", id="parameters", metadata={"tags": ["parameters"]}),
        new_code_cell(problem.code, id="train"),
    ]
    notebook = new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = folder / f"{problem.env}.ipynb"
    nbformat.write(notebook, path)
    return [
        promote_notebook(path, parameters=row, store=str(folder / "runs"))
        for row in expand_grid({"seed": SEEDS})
    ]


def evaluate(job: Job, problem: Problem) -> tuple[float, float]:
    """Returns mean and standard deviation of the final policy's returns, acting deterministically."""
    # Seeded far away from the training environments: these starts were not trained on.
    envs = make_vec_env(problem.env, n_envs=8, seed=10_000)
    mean, deviation = evaluate_policy(job.model("final"), envs, n_eval_episodes=EPISODES, deterministic=True)
    envs.close()
    return float(mean), float(deviation)  # type: ignore[arg-type]


def measure(chosen: list[Problem], folder: Path) -> bool:
    """Trains, evaluates and prints a table row by row; returns whether every target was met."""
    begun = [(problem, start(problem, folder)) for problem in chosen]
    print("| problem | seed | rlnb: return of the final policy | published | plain SB3 | training | |")
    print("|---|---|---|---|---|---|---|", flush=True)
    met = True
    for problem, jobs in begun:
        for seed, job in zip(SEEDS, jobs, strict=True):
            wait_until_rest(job)
            record = job.record
            if job.failed or record is None:
                met = False
                print(
                    f"| {problem.title} | {seed} | {job.state.value} | {problem.published} | {problem.plain} | | FAILED |"
                )
                print(job.failure_text(), file=sys.stderr, flush=True)
                continue
            mean, deviation = evaluate(job, problem)
            good = problem.low <= mean <= problem.high
            met = met and good
            print(
                f"| {problem.title} | {seed} | {mean:.1f} ± {deviation:.1f} | {problem.published} | {problem.plain} "
                f"| {record['seconds']:.0f} s | {'ok' if good else 'MISSED'} |",
                flush=True,
            )
    return met


def main(names: list[str]) -> int:
    """Runs the named problems, all by default."""
    unknown = [name for name in names if name not in PROBLEMS]
    if unknown:
        print(f"No problem is called {unknown[0]!r}; there are: {', '.join(PROBLEMS)}")
        return 2
    chosen = [PROBLEMS[name] for name in names or PROBLEMS]
    # A job's mirror may still be sending what the last rest left when the folder is removed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["RLNB_HOME"] = str(Path(folder) / "home")
        os.environ["RLNB_MAX_RUNNING"] = AT_ONCE
        met = measure(chosen, Path(folder))
    print(f"Means and standard deviations over {EPISODES} episodes; two jobs at a time.")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
