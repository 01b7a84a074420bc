"""`rlnb.Experiment`: live objects outside, plain data inside; wrong values are shown in the cell that wrote them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import rlnb
from rlnb.design import term as design_term
from rlnb.design.design import Design
from rlnb.design.reward import RewardSpec, Shaping, Term
from rlnb.design.state import Select, StateSpec
from rlnb.errors import DesignError, EnvError, ExperimentError, MissingExtra, UsageError
from rlnb.experiment import Experiment
from rlnb.run.experiment import ExperimentSpec
from rlnb.run.identity import JobIdentity


@pytest.fixture(autouse=True)
def _own_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions marked in one test are unknown to the next."""
    monkeypatch.setattr(design_term, "_MARKED", {})


def _experiment(**given: Any) -> Experiment:
    return Experiment("cart", **{"env": "CartPole-v1", "total_timesteps": 1000, **given})


class Lab:
    """What a lab is to an Experiment."""

    def __init__(self, env: Any = "CartPole-v1") -> None:
        self.env = env
        self.weight = 1.0
        self.flushed = 0

    def flush(self) -> None:
        self.flushed += 1

    def design(self) -> Design:
        return Design(reward=RewardSpec(terms=[Term("env", "reward", weight=self.weight)]))


def _tall(batch: Any) -> Any:
    return np.cos(batch.obs["theta"])


class Walk(gym.Env[Any, Any]):
    """An environment with keyword arguments."""

    def __init__(self, goal: float = 1.0, tool: Any = None) -> None:
        self.goal, self.tool = goal, tool
        self.observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
        self.action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(1, np.float32), 0.0, True, False, {}


def test_the_public_name_is_this_class() -> None:
    assert rlnb.Experiment is Experiment


def test_values_become_a_spec() -> None:
    exp = _experiment(learning_rate="lin_1e-3", n_envs=8, policy_kwargs={"net_arch": [32]}, tags=["a"])
    spec = exp.spec
    assert spec.name == "cart"
    assert spec.names == ("x", "x_dot", "theta", "theta_dot")
    assert spec.hyperparameters["learning_rate"] == "lin_0.001"
    assert ExperimentSpec.from_dict(spec.to_dict()) == spec
    assert exp.design.is_identity
    assert exp.make_env().spec.id == "CartPole-v1"  # type: ignore[union-attr]
    assert repr(exp) == "Experiment('cart': PPO on CartPole-v1, 1,000 steps, 8 envs, seed 0)"


def test_live_classes_of_torch_are_carried() -> None:
    import torch

    exp = _experiment(policy_kwargs={"activation_fn": torch.nn.ReLU}, learning_rate=lambda left: 1e-3 * left)
    assert exp.spec.hyperparameters["policy_kwargs"]["activation_fn"] == {
        "$ref": "torch.nn.modules.activation:ReLU"
    }
    live = exp.spec.live_hyperparameters()
    assert live["policy_kwargs"]["activation_fn"] is torch.nn.ReLU
    assert live["learning_rate"](0.5) == 5e-4


def test_a_design_is_made_of_its_parts() -> None:
    exp = _experiment(reward=[Term("env", "reward"), _tall], state=[Select(["theta"])])
    assert [one.name for one in exp.design.reward.terms] == ["env", "_tall"]
    assert exp.design.reward.unbound == ()
    assert exp.spec.design == exp.design.to_dict()
    assert _experiment(reward="-abs(x)").design.reward.terms[0].name == "reward"
    named = _experiment(reward={"calm": "-abs(x)", "tall": _tall}).design
    assert [one.name for one in named.reward.terms] == ["calm", "tall"]


def test_a_design_file_beats_the_code(tmp_path: Path) -> None:
    path = tmp_path / "cart.yaml"
    coded = RewardSpec(terms=[Term("env", "reward", weight=2.0)])
    exp = _experiment(design=path, reward=coded)
    assert exp.design.reward.terms[0].weight == 2.0
    path.write_text(Design(reward=RewardSpec(terms=[Term("env", "reward", weight=3.0)])).to_yaml())
    assert exp.design.reward.terms[0].weight == 3.0  # the file is read when it is asked for
    assert exp.spec.design["reward"]["terms"][0]["weight"] == 3.0


def test_a_design_file_finds_its_functions(tmp_path: Path) -> None:
    path = tmp_path / "cart.yaml"
    path.write_text(Design(reward=RewardSpec(terms=[Term("tall", _tall)])).to_yaml())
    with pytest.raises(
        DesignError, match=r"the design needs the function '_tall', which is not defined here; run"
    ):
        _experiment(design=str(path))
    assert _experiment(design=str(path), reward=[_tall]).design.reward.unbound == ()
    rlnb.reward_term(_tall)
    assert _experiment(design=str(path)).design.reward.unbound == ()


def test_a_lab_writes_nothing_in_a_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("rlnb.experiment.current", lambda: JobIdentity(tmp_path, 1))
    lab = Lab()
    spec = Experiment("cart", lab, total_timesteps=10).spec
    assert spec.design["reward"]["terms"][0]["name"] == "env"
    assert lab.flushed == 0


def test_a_lab_is_asked_when_the_experiment_is_frozen() -> None:
    lab = Lab()
    exp = Experiment("cart", lab, total_timesteps=1000)
    lab.weight = 0.25
    flushed = lab.flushed
    assert exp.spec.design["reward"]["terms"][0]["weight"] == 0.25
    assert lab.flushed == flushed + 1


def test_changes_give_another_experiment() -> None:
    exp = Experiment("walk", env=Walk, env_kwargs={"goal": 2.0, "tool": Walk}, total_timesteps=10, algo="SAC")
    changed = exp.with_changes(**{"env.kwargs.goal": 3.0, "gamma": 0.9, "seed": 4})
    made = changed.make_env()
    assert (made.unwrapped.goal, made.unwrapped.tool) == (3.0, Walk)  # type: ignore[attr-defined]
    assert exp.make_env().unwrapped.goal == 2.0  # type: ignore[attr-defined]
    assert (changed.spec.seed, changed.spec.hyperparameters["gamma"]) == (4, 0.9)
    assert exp.spec.seed == 0
    assert changed.with_changes(seed=5).spec.hyperparameters["gamma"] == 0.9
    assert repr(changed).endswith("seed 0, env.kwargs.goal=3.0, gamma=0.9, seed=4)")


def test_a_changed_design_keeps_its_functions() -> None:
    exp = _experiment(reward=[Term("tall", _tall)])
    data = exp.spec.design
    terms = [{**data["reward"]["terms"][0], "weight": 0.5}]
    changed = exp.with_changes(design={"reward": {"terms": terms}})
    assert changed.design.reward.terms[0].weight == 0.5
    assert changed.design.reward.unbound == ()


def test_a_file_makes_an_experiment(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    (tmp_path / "cart.yaml").write_text(Design(reward=RewardSpec(terms=[Term("tall", _tall)])).to_yaml())
    path.write_text(
        "name: cart\nenv: CartPole-v1\ndesign: cart.yaml\ntraining: {total_timesteps: 10}\nalgorithm: {gamma: 0.9}\n"
    )
    exp = Experiment.from_yaml(path, terms=[_tall], environ={"RLNB_TRAINING__SEED": "3"}, n_envs=2)
    assert (exp.name, exp.spec.seed, exp.spec.n_envs, exp.spec.hyperparameters["gamma"]) == (
        "cart",
        3,
        2,
        0.9,
    )
    assert exp.design.reward.terms[0].name == "tall"


def test_terms_are_functions() -> None:
    with pytest.raises(
        ExperimentError, match=r"terms has 5, which is no function; write e\.g\. terms=\[soft_landing\]"
    ):
        Experiment.from_yaml("env: CartPole-v1\ntraining: {total_timesteps: 5}\n", terms=[5], environ={})  # type: ignore[list-item]


def test_another_environment_is_another_experiment() -> None:
    exp = _experiment()
    for changes in ({"env": "Acrobot-v1"}, {"env.value": "Acrobot-v1"}):
        with pytest.raises(
            ExperimentError, match=r"env cannot change from CartPole-v1 to 'Acrobot-v1'; write a new"
        ):
            exp.with_changes(**changes)
    with pytest.raises(ExperimentError, match=r"env\.kwargs=5 is no mapping"):
        exp.with_changes(**{"env.kwargs": 5})
    with pytest.raises(
        EnvError, match=r"CartPole-v1 cannot be made with \{'zz': 1\}: .*'zz'; correct env_kwargs"
    ):
        exp.with_changes(**{"env.kwargs.zz": 1})


def test_a_file_may_leave_the_environment_to_the_notebook() -> None:
    text = "training: {total_timesteps: 10}\nenv: {kwargs: {goal: 4.0}}\n"
    assert Experiment.from_yaml(text, env=Walk, environ={}).make_env().unwrapped.goal == 4.0  # type: ignore[attr-defined]
    with pytest.raises(ExperimentError, match="the file names no environment and none is given"):
        Experiment.from_yaml(text, environ={})


def test_declared_signals_need_functions() -> None:
    text = "training: {total_timesteps: 10}\nenv: {id: CartPole-v1, signals: [force]}\n"
    exp = Experiment.from_yaml(text, signals={"force": lambda env: 0.0}, environ={})
    assert exp.spec.signals == ("force",)
    with pytest.raises(
        UsageError, match=r"the file declares the signals \['force'\], and signals=\[\] are given"
    ):
        Experiment.from_yaml(text, environ={})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"env": None}, r"the experiment lacks env; add e\.g\. env=\"CartPole-v1\", or give a lab"),
        ({"total_timesteps": None}, r"the experiment lacks total_timesteps"),
        ({"learning_rte": 1}, r"PPO has no argument 'learning_rte'\. Did you mean 'learning_rate'\?"),
        ({"total_timestep": 1}, r"PPO has no argument 'total_timestep'\. Did you mean 'total_timesteps'\?$"),
        ({"nenvs": 1}, r"PPO has no argument 'nenvs'\. Did you mean 'n_envs'\?$"),
        ({"env_kwarg": {}}, r"PPO has no argument 'env_kwarg'\. Did you mean 'env_kwargs'\?$"),
        ({"lr": 1e-3}, r"PPO has no argument 'lr'\. Did you mean 'learning_rate'\?$"),
        ({"colour": 1}, r"PPO has no argument 'colour'\. It takes learning_rate, n_steps, "),
        ({"total_timesteps": 10**30}, r"total_timesteps=10+ is out of range; total_timesteps takes an integer between 1 and"),
        ({"n_envs": 10**7}, r"n_envs=10000000 is out of range; n_envs takes an integer between 1 and 65536"),
        ({"seed": None}, r"seed=None is not possible; seed takes an integer between 0 and 4294967295"),
        ({"tags": 5}, r"tags=5 is no list of words; write e\.g\. tags=\['a', 'b'\]"),
        ({"names": "abcd"}, r"names='abcd' is no list; write one name for each component, as names=\['x', 'y'\]"),
        ({"names": 5}, r"names=5 is no list"),
        ({"policy": None}, r"policy=None is no policy; give one of MlpPolicy, CnnPolicy, MultiInputPolicy, or a class"),
        ({"policy": Walk}, r"policy=<class '.*Walk'> is no policy; .* or a class derived from SB3's policies"),
        ({"signals": ["f"]}, r"signals=\['f'\] is no mapping; write e\.g\. signals=\{'force': lambda env"),
        ({"signals": {"f": 5}}, r"signals\['f'\]=5 is no function; give one that takes the environment and returns a number"),
        ({"callbacks": [5]}, r"callbacks has 5, which is no callback; derive its class from SB3's BaseCallback, or give"),
        ({"callbacks": Walk}, r"callbacks has the class Walk; give an object of it: Walk\(…\)"),
        ({"normalize": {"norm_obs_keys": ["a"]}}, r"norm_obs_keys=\['a'\] names parts of a Dict, .*; leave it out"),
        ({"algo": "SAC"}, r"SAC needs a continuous \(Box\) action space, and CartPole-v1 has Discrete\(2\); use PPO, A2C, DQN"),
        ({"algo": "DQN", "env": "Pendulum-v1"}, r"DQN needs a discrete action space, and Pendulum-v1 has Box.* use PPO, A2C"),
        ({"policy": "CnnPolicy"}, r"policy='CnnPolicy' needs images .* use policy='MlpPolicy'"),
        ({"policy": "MultiInputPolicy"}, r"policy='MultiInputPolicy' does not take CartPole-v1's .* use policy='MlpPolicy'"),
        ({"use_sde": True}, r"use_sde=True needs a continuous action space, and CartPole-v1 has Discrete\(2\)"),
        ({"design": "none.yaml"}, r"there is no design file 'none\.yaml'; look at the path, or give reward= or state="),
        ({"design": Design(), "reward": "x"}, r"design= and reward= or state= are both given"),
        ({"design": 5}, r"design=5 is no design; give a Design or the path of a design file"),
        ({"lab": 5}, r"the second argument is 5, which is no lab; give env=… instead"),
        ({"lab": Lab()}, r"the lab already brings env and design; leave out env, reward, state and design"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        _experiment(**given)


class Parts(Walk):
    """Observes a Dict with a part that is no number."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = gym.spaces.Dict(
            near=gym.spaces.Box(-1, 1, (2,)), kind=gym.spaces.Discrete(3)
        )

    def reset(self, **_: Any) -> Any:
        return {"near": np.zeros(2, np.float32), "kind": 0}, {}

    def step(self, action: Any) -> Any:
        return {"near": np.zeros(2, np.float32), "kind": 0}, 0.0, True, False, {}


def test_normalizing_a_dict_names_the_parts_it_can_take() -> None:
    given: dict[str, Any] = {"env": Parts, "policy": "MultiInputPolicy"}
    remedy = r"write normalize=\{'norm_obs_keys': \['near'\]\}$"
    with pytest.raises(
        ExperimentError, match=rf"the observation's part 'kind', which is of Discrete\(3\); {remedy}"
    ):
        _experiment(normalize=True, **given)
    with pytest.raises(
        ExperimentError, match=rf"the observation's part 'naer', which is not there; {remedy}"
    ):
        _experiment(normalize={"norm_obs_keys": ["naer"]}, **given)
    spec = _experiment(normalize={"norm_obs_keys": ["near"]}, **given).spec
    assert spec.normalize is not None
    assert spec.normalize["norm_obs_keys"] == ["near"]
    assert _experiment(normalize={"norm_obs": False}, **given).spec.normalize is not None


def test_one_callback_needs_no_list() -> None:
    from stable_baselines3.common.callbacks import StopTrainingOnMaxEpisodes

    one = StopTrainingOnMaxEpisodes(5)
    assert _experiment(callbacks=one).callbacks == (one,)


def test_an_unknown_environment_is_named() -> None:
    with pytest.raises(EnvError, match=r"Did you mean 'CartPole-v1'\?"):
        _experiment(env="CartPle-v1")


def test_an_unknown_component_is_named() -> None:
    with pytest.raises(DesignError, match="thta"):
        _experiment(state=StateSpec([Select(["thta"])]))


def test_a_shaping_of_another_discount_is_refused() -> None:
    shaped = RewardSpec(terms=[Term("env", "reward"), Shaping("near", "-abs(x)", gamma=0.99)])
    assert not _experiment(reward=shaped).design.is_identity
    with pytest.raises(
        ExperimentError, match=r"the shaping 'near' has gamma=0\.99, and the agent .* gamma=0\.9;"
    ):
        _experiment(reward=shaped, gamma=0.9)


def test_unbounded_actions_are_refused() -> None:
    class Wild(Walk):
        def __init__(self) -> None:
            super().__init__()
            self.action_space = gym.spaces.Box(-np.inf, np.inf, (1,), np.float32)

    with pytest.raises(ExperimentError, match=r"has unbounded actions .* give the Box finite bounds"):
        _experiment(env=Wild)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name, package=None: None)
    with pytest.raises(MissingExtra, match=r"TQC needs packages .* pip install 'rlnb\[contrib\]'"):
        _experiment(algo="TQC", env="Pendulum-v1")


def test_no_torch_is_needed() -> None:
    code = (
        "import sys, rlnb; e = rlnb.Experiment('a', env='CartPole-v1', total_timesteps=5, reward='-abs(x)'); "
        "e.spec.fingerprint(); sys.exit(any(name in sys.modules for name in ('torch', 'stable_baselines3')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
