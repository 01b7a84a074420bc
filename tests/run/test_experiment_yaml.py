"""Experiment files: sections, environment variables over them, nearest names for typing errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.design.design import Design
from rlnb.design.reward import RewardSpec, Term
from rlnb.errors import ExperimentError
from rlnb.run.experiment import ExperimentSpec
from rlnb.run.experiment_yaml import SECTIONS, load_yaml, overrides, read_experiment

FILE = """\
name: lander
env: {id: LunarLander-v3, kwargs: {gravity: -9.0}}
design: lander.yaml
algorithm:
  name: PPO
  learning_rate: lin_1e-3
  n_steps: 1024
  ent_coef: 1e-2
  policy_kwargs: {net_arch: [128, 128], activation_fn: ReLU}
training: {total_timesteps: 1e6, n_envs: 16, seed: 3, stop_when: return_mean > 240 for 20 episodes}
runtime: {device: cpu}
checkpoint: {every_minutes: 5}
tags: [baseline]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lander-run.yaml"
    path.write_text(FILE)
    design = Design(reward=RewardSpec(terms=[Term("env", "reward", weight=0.5)]))
    (tmp_path / "lander.yaml").write_text(design.to_yaml())
    return path


def test_sections_are_read(file: Path) -> None:
    spec = ExperimentSpec.from_yaml(file, environ={})
    assert spec.name == "lander"
    assert spec.env.to_dict() == {"kind": "id", "value": "LunarLander-v3", "kwargs": {"gravity": -9.0}}
    assert spec.design["reward"]["terms"][0]["weight"] == 0.5
    assert spec.hyperparameters["learning_rate"] == "lin_0.001"
    assert spec.hyperparameters["ent_coef"] == 0.01
    assert spec.hyperparameters["policy_kwargs"]["net_arch"] == [128, 128]
    assert spec.hyperparameters["policy_kwargs"]["activation_fn"] == {
        "$ref": "torch.nn.modules.activation:ReLU"
    }
    assert (spec.total_timesteps, spec.n_envs, spec.seed) == (1_000_000, 16, 3)
    assert (spec.device, spec.checkpoint.every_minutes, spec.tags) == ("cpu", 5.0, ("baseline",))
    assert spec.stop_when == "return_mean > 240 for 20 episodes"


def test_variables_override_the_file(file: Path) -> None:
    environ = {
        "RLNB_TRAINING__TOTAL_TIMESTEPS": "2_000",
        "RLNB_ALGORITHM__LEARNING_RATE": "1e-4",
        "RLNB_ALGORITHM__POLICY_KWARGS__NET_ARCH": "[32]",
        "RLNB_CHECKPOINT__EVERY_STEPS": "500",
        "RLNB_ENV__KWARGS__GRAVITY": "-5.0",
        "RLNB_HOME": "/elsewhere",
        "OTHER__THING": "1",
    }
    spec = ExperimentSpec.from_yaml(file, environ=environ)
    assert spec.total_timesteps == 2000
    assert spec.hyperparameters["learning_rate"] == 1e-4
    assert spec.hyperparameters["policy_kwargs"]["net_arch"] == [32]
    assert spec.hyperparameters["policy_kwargs"]["activation_fn"] == {
        "$ref": "torch.nn.modules.activation:ReLU"
    }
    assert (spec.checkpoint.every_steps, spec.checkpoint.every_minutes) == (500, 5.0)
    assert spec.env.kwargs["gravity"] == -5.0
    assert list(overrides(environ)) == sorted(
        name for name in environ if "__" in name and name.startswith("RLNB")
    )


def test_this_process_is_where_variables_are_looked_up(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLNB_TRAINING__SEED", "11")
    assert ExperimentSpec.from_yaml(file).seed == 11


def test_changes_come_last(file: Path) -> None:
    spec = ExperimentSpec.from_yaml(file, environ={"RLNB_TRAINING__SEED": "11"}, seed=12)
    assert spec.seed == 12


def test_a_short_file_in_text() -> None:
    spec = ExperimentSpec.from_yaml("env: CartPole-v1\ntraining: {total_timesteps: 10}\n", environ={})
    assert (spec.env.value, spec.algo, spec.total_timesteps) == ("CartPole-v1", "PPO", 10)
    text = "env: my.module:Walk\ntraining: {total_timesteps: 10}\n"
    assert ExperimentSpec.from_yaml(text, environ={}).env.kind == "import"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("env: CartPole-v1\ntrainig: {}\n", r"unknown section 'trainig'\. Did you mean 'training'\?"),
        ("total_timesteps: 5\nenv: X\n", r"unknown section 'total_timesteps'\. It belongs to training\.total_timesteps"),
        ("training: {total_timestep: 5}\nenv: X\n", r"training\.total_timestep is unknown\. Did you mean 'total_timesteps'"),
        ("training: {device: cpu}\nenv: X\n", r"training\.device is unknown\. It belongs to runtime\.device"),
        ("algorithm: {name: SAC, clip_range: 1}\nenv: X\n", r"algorithm\.clip_range is unknown\."),
        ("algorithm: {name: PPO, learning_rte: 1}\nenv: X\n", r"algorithm\.learning_rte .* Did you mean 'learning_rate'"),
        ("env: [1]\ntags: []\n", r"env holds \[1\], not keys such as id, kwargs"),
        ("- 1\n- 2\n", r"the experiment holds list, not sections such as 'env:' and 'training:'"),
        ("env: {id: X\ntags: [\n", r"the experiment is no YAML \(line 2, column 5\): expected"),
        ("\n", r"the experiment holds nothing, not sections such as 'env:' and 'training:'"),
        ("x: !!python/object:os.system {}\n", r"is no YAML \(line 1, column 4\): could not determine a constructor"),
        ("env: {id: X, kwargs: 5}\ntraining: {total_timesteps: 5}\n", r"env\.kwargs=5 is no mapping"),
        ("training: {seed: 1, seed: 2}\nenv: X\n", r"line 1: 'seed' is given twice; keep one of them"),
        ("env: CartPole-v1\n\n", r"the experiment lacks total_timesteps"),
    ],
)  # fmt: skip
def test_a_bad_file_says_why(text: str, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        ExperimentSpec.from_yaml(text, environ={})


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        (
            "RLNB_TRANING__SEED",
            r"RLNB_TRANING__SEED names the unknown section 'traning'\. Did you mean 'training'\?",
        ),
        ("RLNB_TRAINING__SED", r"RLNB_TRAINING__SED: training\.sed is unknown\. Did you mean 'seed'\?"),
        (
            "RLNB_ALGORITHM__GAMA",
            r"RLNB_ALGORITHM__GAMA: algorithm\.gama is unknown\. Did you mean 'gamma'\?",
        ),
    ],
)
def test_a_misspelt_variable_is_named(file: Path, variable: str, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        ExperimentSpec.from_yaml(file, environ={variable: "1"})


def test_a_single_underscore_is_not_passed_over(file: Path) -> None:
    with pytest.raises(
        ExperimentError, match=r"RLNB_TRAINING_SEED overrides nothing; write RLNB_TRAINING__SEED$"
    ):
        ExperimentSpec.from_yaml(file, environ={"RLNB_TRAINING_SEED": "1"})
    settings = {"RLNB_HOME": "x", "RLNB_SPOOL_LIMIT": "5", "RLNB_HEARTBEAT": "1"}
    assert ExperimentSpec.from_yaml(file, environ=settings) == ExperimentSpec.from_yaml(file, environ={})


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xd0\x00")
    for source, message in (
        (tmp_path, r"there is no experiment file"),
        ("", r"'' names no experiment file; give its path, or its text"),
        (5, r"5 names no experiment file"),
        (tmp_path / "binary.yaml", r"binary\.yaml' cannot be read: 'utf-8' codec"),
    ):
        with pytest.raises(ExperimentError, match=message):
            read_experiment(source)  # type: ignore[arg-type]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ExperimentError, match=r"there is no experiment file '.*none\.yaml'; look at the path"
    ):
        read_experiment(tmp_path / "none.yaml")


def test_numbers_are_numbers() -> None:
    assert load_yaml("[1e-3, 1E5, -2e+3, .5e1, 1.5, 7, 1e, e1]") == [1e-3, 1e5, -2e3, 5.0, 1.5, 7, "1e", "e1"]


def test_every_field_has_a_place_in_a_file() -> None:
    keys = {key for section in SECTIONS.values() for key in section}
    missing = (
        set(ExperimentSpec.field_names())
        - keys
        - {"env", "design", "algo", "hyperparameters", "checkpoint", "tags"}
    )
    assert missing == set()
