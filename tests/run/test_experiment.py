"""ExperimentSpec: everything resolved, readable back, compared field by field."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb.errors import DesignError, ExperimentError
from rlnb.run.algorithms import ALGORITHMS
from rlnb.run.arguments import Kind
from rlnb.run.experiment import ExperimentSpec
from rlnb.run.schedule import LinearSchedule


def _spec(**given: Any) -> ExperimentSpec:
    return ExperimentSpec.resolve(**{"env": "CartPole-v1", "total_timesteps": 1000, **given})


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_hyperparameter_is_written_and_read_back(algo: str) -> None:
    spec = _spec(algo=algo)
    data = spec.to_dict()
    assert data["hyperparameters"].keys() == {one.name for one in ALGORITHMS[algo].arguments}
    assert data["hyperparameters"]["policy_kwargs"]["net_arch"]
    for carried in (json.loads(json.dumps(data)), yaml.safe_load(yaml.safe_dump(data))):
        back = ExperimentSpec.from_dict(carried)
        assert back == spec
        assert back.fingerprint() == spec.fingerprint()
        assert spec.differences(back) == []


@st.composite
def _arguments(draw: st.DrawFn) -> dict[str, Any]:
    """An algorithm with any of its numbers drawn from what it takes."""
    row = ALGORITHMS[draw(st.sampled_from(sorted(ALGORITHMS)))]
    given: dict[str, Any] = {}
    for one in row.arguments:
        if one.name == "n_steps" or not draw(st.booleans()):
            continue
        low, high = one.low, 1e6 if one.high is None else one.high
        if one.kind in (Kind.INT, Kind.FREQUENCY):
            given[one.name] = draw(st.integers(int(low or 0), int(high)))
        elif one.kind in (Kind.FLOAT, Kind.AUTO):
            given[one.name] = draw(st.floats(low or 0.0, high))
        elif one.kind is Kind.SCHEDULE:
            given[one.name] = f"lin_{draw(st.floats(0.0, 1e6))!r}"
        elif one.kind is Kind.BOOL:
            given[one.name] = draw(st.booleans())
    return {"algo": row.name, "hyperparameters": given, "normalize": draw(st.booleans())}


@settings(max_examples=100, deadline=None)
@given(_arguments())
def test_any_experiment_survives_yaml_and_an_empty_change(arguments: dict[str, Any]) -> None:
    spec = _spec(**arguments)
    for name, value in arguments["hyperparameters"].items():
        assert spec.hyperparameters[name] == value or str(value).startswith("lin_")
    back = ExperimentSpec.from_dict(yaml.safe_load(yaml.safe_dump(spec.to_dict())))
    assert back == spec
    assert back.fingerprint() == spec.fingerprint()
    assert spec.with_changes() == spec


def test_every_field_stands_in_the_data() -> None:
    assert list(_spec().to_dict()) == ExperimentSpec.field_names()
    assert _spec().to_dict()["checkpoint"] == {
        "every_steps": None, "every_minutes": 1.0, "keep_last": 3, "keep_best": True, "keep_every": None,
    }  # fmt: skip


def test_a_field_of_a_later_version_gets_its_default() -> None:
    data = _spec().to_dict()
    del data["max_hours"], data["signals"]
    assert ExperimentSpec.from_dict(data) == _spec()


def test_names_and_tags_are_labels() -> None:
    one, two = _spec(name="a", tags=["x"]), _spec(name="b")
    assert one.fingerprint() == two.fingerprint()
    assert one.differences(two) == []
    assert one != two


def test_differences_name_the_field_and_both_values() -> None:
    mine = _spec(hyperparameters={"gamma": 0.99, "policy_kwargs": {"net_arch": [32]}}, seed=1)
    theirs = _spec(
        hyperparameters={"gamma": 0.98}, seed=1,
        design={"reward": {"terms": [{"name": "env", "expression": "reward", "weight": 2.0}]}},
    )  # fmt: skip
    assert mine.differences(theirs) == [
        ("design.reward.terms.env.weight", 1.0, 2.0),
        ("hyperparameters.gamma", 0.99, 0.98),
        ("hyperparameters.policy_kwargs.net_arch", [32], "(absent)"),
        ("hyperparameters.policy_kwargs.net_arch.pi", "(absent)", [64, 64]),
        ("hyperparameters.policy_kwargs.net_arch.vf", "(absent)", [64, 64]),
    ]
    assert mine.fingerprint() != theirs.fingerprint()


def test_live_arguments_are_what_sb3_takes() -> None:
    spec = _spec(
        algo="TD3",
        hyperparameters={
            "learning_rate": "lin_1e-3", "train_freq": (2, "episode"), "action_noise": "normal_0.1",
            "policy_kwargs": {"activation_fn": "nn.Tanh"},
        },
    )  # fmt: skip
    import torch
    from stable_baselines3.common.noise import NormalActionNoise

    live = spec.live_hyperparameters(actions=2)
    assert live["learning_rate"] == LinearSchedule(0.001)
    assert live["train_freq"] == (2, "episode")
    assert isinstance(live["action_noise"], NormalActionNoise)
    assert live["policy_kwargs"]["activation_fn"] is torch.nn.Tanh
    assert live["policy_kwargs"]["optimizer_class"] is torch.optim.Adam
    assert live["gamma"] == 0.99
    assert spec.live_policy() == "MlpPolicy"


def test_classes_and_functions_of_a_cell_stay_live_and_are_named() -> None:
    class Net:
        pass

    spec = _spec(
        hyperparameters={
            "policy_kwargs": {"features_extractor_class": Net},
            "clip_range": lambda left: 0.1 * left,
        }
    )
    reference = spec.to_dict()["hyperparameters"]
    assert reference["policy_kwargs"]["features_extractor_class"]["$ref"].endswith(".Net")
    assert reference["clip_range"]["$ref"].endswith("<lambda>")
    live = spec.live_hyperparameters()
    assert live["policy_kwargs"]["features_extractor_class"] is Net
    assert live["clip_range"](0.5) == 0.05
    back = ExperimentSpec.from_dict(spec.to_dict())
    assert back.fingerprint() == spec.fingerprint()
    with pytest.raises(
        ExperimentError, match=r"clip_range is '.*<lambda>', which is defined in the notebook"
    ):
        back.live_hyperparameters()
    again = ExperimentSpec.from_dict(spec.to_dict(), objects=spec.objects)
    assert again.live_hyperparameters()["policy_kwargs"]["features_extractor_class"] is Net


def test_vecnormalize_follows_the_discount() -> None:
    assert _spec().normalize is None
    assert _spec(normalize=False).normalize is None
    normalized = _spec(normalize=True, hyperparameters={"gamma": 0.9}).normalize
    assert normalized == {
        "training": True, "norm_obs": True, "norm_reward": True, "clip_obs": 10.0, "clip_reward": 10.0, "gamma": 0.9,
        "epsilon": 1e-8, "norm_obs_keys": None,
    }  # fmt: skip
    assert _spec(normalize={"norm_reward": False, "gamma": 0.5}).normalize["gamma"] == 0.5  # type: ignore[index]


def test_vecnormalize_takes_what_the_installed_one_takes() -> None:
    import inspect

    from stable_baselines3.common.vec_env import VecNormalize

    signature = inspect.signature(VecNormalize.__init__).parameters
    theirs = {name: one.default for name, one in signature.items() if name not in ("self", "venv")}
    assert _spec(normalize=True).normalize == theirs


def test_start_method_is_resolved_where_workers_are_started() -> None:
    assert _spec().start_method is None
    assert _spec(start_method="spawn").start_method is None
    assert _spec(workers="subprocess").start_method == "forkserver"
    assert _spec(workers="subprocess", start_method="spawn").start_method == "spawn"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"env": None}, r"the experiment lacks env; add e\.g\. env=\"CartPole-v1\""),
        ({"total_timesteps": None}, r"the experiment lacks total_timesteps; add e\.g\. total_timesteps=100_000"),
        ({"total_timesteps": 0}, r"total_timesteps=0 is out of range; total_timesteps takes an integer between 1 and"),
        ({"total_timesteps": "many"}, r"total_timesteps='many' is no whole number"),
        ({"total_timestep": 5}, r"an experiment has no 'total_timestep'\. Did you mean 'total_timesteps'\?"),
        ({"algo": "PP0"}, r"algo='PP0' is unknown\. Did you mean 'PPO'\?"),
        ({"hyperparameters": {"learning_rat": 1}}, r"PPO has no argument 'learning_rat'\. Did you mean 'learning_rate'\?"),
        ({"hyperparameters": {"tensorboard_log": "x"}}, r"tensorboard_log is no hyperparameter here: rlnb writes"),
        ({"hyperparameters": {"gamma": 1.5}}, r"gamma=1\.5 is out of range; gamma takes a number between 0 and 1"),
        ({"hyperparameters": {"learning_rate": "cos_1"}}, r"learning_rate='cos_1' is no schedule"),
        ({"hyperparameters": {"policy_kwargs": {"net_arc": [1]}}}, r"policy_kwargs\.net_arc is no argument of PPO's Mlp"),
        ({"hyperparameters": {"policy_kwargs": {"activation_fn": "Relu"}}}, r"activation_fn='Relu' is unknown\. .*'ReLU'"),
        ({"hyperparameters": {"policy_kwargs": {"use_sde": True}}}, r"policy_kwargs has use_sde, which SB3 sets from"),
        ({"hyperparameters": {"n_steps": 1}}, r"n_steps=1 with n_envs=1 leaves one advantage"),
        (
            {"algo": "SAC", "n_envs": 2, "hyperparameters": {"train_freq": (1, "episode")}},
            r"train_freq=\[1, 'episode'\] counts episodes, which SB3 does only with n_envs=1, not 2",
        ),
        ({"policy": "MlpPolcy"}, r"policy='MlpPolcy' is unknown\. Did you mean 'MlpPolicy'\?"),
        ({"n_envs": 0}, r"n_envs=0 is out of range"),
        ({"workers": "threads"}, r"workers='threads' is unknown; it is 'dummy' \(one process\) or 'subprocess'"),
        ({"start_method": "magic", "workers": "subprocess"}, r"start_method='magic' is not possible here; it is one of"),
        ({"normalize": {"norm_ob": True}}, r"normalize\.norm_ob is no argument of VecNormalize\. Did you mean 'norm_obs'"),
        ({"normalize": "yes"}, r"normalize='yes' is neither true, false nor VecNormalize's arguments"),
        ({"seed": -1}, r"seed=-1 is out of range; seed takes an integer between 0 and"),
        ({"seed": None}, r"seed=None is not possible; seed takes an integer"),
        ({"device": "gpu"}, r"device='gpu' is unknown; write 'auto', 'cpu', 'cuda' or 'cuda:1'"),
        ({"torch_threads": 0}, r"torch_threads=0 is out of range"),
        ({"deterministic": "yes"}, r"deterministic='yes' is neither true nor false"),
        ({"max_hours": 0}, r"max_hours=0 would never train"),
        ({"stop_when": "reward > 5"}, r"stop_when='reward > 5' compares 'reward', which is not measured"),
        ({"checkpoint": {"every_step": 5}}, r"checkpoint\.every_step is unknown\. Did you mean 'every_steps'\?"),
        ({"tags": ["a", "a"]}, r"tags names 'a' twice"),
        ({"tags": [1]}, r"tags has 1 where a word belongs"),
        ({"name": ""}, r"name='' is no name; give a short printable text"),
        ({"env": 5}, r"env=5 names no environment; give a gymnasium id, a class or a function"),
        ({"env": {"kind": "file", "value": "x"}}, r"env\.kind='file' is unknown; it is one of id, import, cell"),
        ({"env": {"value": "CartPole-v1", "kwargs": {"x": object()}}}, r"env\.kwargs\.x holds a object"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ExperimentError, match=message) as raised:
        _spec(**given)
    assert "\n" not in str(raised.value)


def test_a_bad_design_is_named() -> None:
    with pytest.raises(DesignError, match="rewrd"):
        _spec(design={"rewrd": {}})


def test_changes_reach_fields_hyperparameters_and_their_parts() -> None:
    spec = _spec(
        hyperparameters={"learning_rate": "lin_1e-3"}, env={"value": "CartPole-v1", "kwargs": {"a": 1}}
    )
    changed = spec.with_changes(
        **{
            "learning_rate": 1e-4, "total_timesteps": 5000, "policy_kwargs.net_arch": [32], "checkpoint.keep_last": 5,
            "env.kwargs.a": 2, "hyperparameters.gamma": 0.9, "stop_when": "length>5",
        }
    )  # fmt: skip
    assert changed.hyperparameters["learning_rate"] == 1e-4
    assert changed.hyperparameters["gamma"] == 0.9
    assert changed.hyperparameters["policy_kwargs"]["net_arch"] == [32]
    assert (changed.total_timesteps, changed.checkpoint.keep_last, changed.env.kwargs["a"]) == (5000, 5, 2)
    assert changed.stop_when == "length > 5 for 1 episode"
    assert spec.with_changes() == spec
    assert {field for field, _, _ in changed.differences(changed.with_changes(seed=3))} == {"seed"}


def test_what_follows_from_a_changed_value_follows_again() -> None:
    spec = _spec(algo="A2C", normalize=True)
    changed = spec.with_changes(rms_prop_eps=1e-3, gamma=0.5)
    assert changed.hyperparameters["policy_kwargs"]["optimizer_kwargs"]["eps"] == 1e-3
    assert changed.normalize is not None
    assert changed.normalize["gamma"] == 0.5
    kept = _spec(algo="A2C", normalize={"gamma": 0.7}).with_changes(gamma=0.5)
    assert kept.normalize is not None
    assert kept.normalize["gamma"] == 0.7


def test_a_changed_object_replaces_the_live_one() -> None:
    spec = _spec(hyperparameters={"learning_rate": lambda left: left})
    assert spec.with_changes(learning_rate=0.1).live_hyperparameters()["learning_rate"] == 0.1
    assert "learning_rate" not in spec.with_changes(learning_rate=0.1).objects
    assert spec.with_changes(seed=1).live_hyperparameters()["learning_rate"](0.5) == 0.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"learnig_rate": 1},
            r"'learnig_rate' is nothing that PPO or its experiment has\. Did you mean 'learning_rate'\?",
        ),
        ({"algo": "A2C"}, r"algo cannot change from PPO to 'A2C'; write a new Experiment"),
        ({"gamma": 7}, r"gamma=7\.0 is out of range"),
        ({"seed.x": 7}, r"'seed\.x' cannot be changed: 'seed' is 0, which has no parts"),
    ],
)
def test_a_bad_change_says_why(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        _spec().with_changes(**changes)


def test_a_missing_hyperparameter_names_the_nearest() -> None:
    assert _spec().require_hyperparameter("gamma") == 0.99
    with pytest.raises(ExperimentError, match=r"PPO has no hyperparameter 'gama'\. Did you mean 'gamma'\?"):
        _spec().require_hyperparameter("gama")


def test_no_torch_is_needed() -> None:
    code = (
        "import sys; from rlnb.run.experiment import ExperimentSpec; "
        "ExperimentSpec.resolve(env='CartPole-v1', total_timesteps=5).fingerprint(); "
        "sys.exit(any(name in sys.modules for name in ('torch', 'stable_baselines3', 'gymnasium')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
