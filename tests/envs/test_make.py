"""Environments by id, class or function, also from a cell, also in subprocesses; old ones are refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from cells import Counter, DuckTyped, OldReset, OldReturns, OldStep, make_counter, old_gym_class, run_cell
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from rlnb.envs.make import EnvFactory, resolve_env
from rlnb.errors import EnvError, MissingExtra
from rlnb.run.env_reference import EnvKind, EnvReference


def test_an_id_is_made_with_its_arguments() -> None:
    factory = resolve_env("MountainCar-v0", {"goal_velocity": 0.5})
    assert factory.spec == {"kind": "id", "value": "MountainCar-v0", "kwargs": {"goal_velocity": 0.5}}
    env = factory()
    assert env.unwrapped.goal_velocity == 0.5
    assert factory().unwrapped is not env.unwrapped
    assert resolve_env(factory.spec) == factory
    assert resolve_env(factory) is factory


def test_spaces_are_looked_up_once() -> None:
    factory = resolve_env("CartPole-v1")
    spaces = factory.spaces()
    assert (spaces.id, spaces.max_episode_steps) == ("CartPole-v1", 500)
    assert spaces.action == gym.spaces.Discrete(2)
    assert factory.spaces() is spaces


@pytest.mark.parametrize("target", [Counter, make_counter], ids=["class", "function"])
def test_an_importable_class_or_function_is_found_again(target: Any) -> None:
    factory = resolve_env(target, {"length": 7})
    assert factory.spec == {"kind": "import", "value": f"cells:{target.__name__}", "kwargs": {"length": 7}}
    assert factory().unwrapped.length == 7
    assert resolve_env(EnvReference.parse(factory.spec)) == factory
    assert resolve_env(f"cells:{target.__name__}")().unwrapped.length in (3, 5)


@pytest.mark.parametrize("name", ["Walk", "make_walk"])
def test_a_cell_defined_environment_works_here(name: str) -> None:
    factory = resolve_env(run_cell()[name], {"goal": 3.0})
    assert factory.spec == {"kind": "cell", "value": name, "kwargs": {"goal": 3.0}}
    assert factory.spaces().observation.shape == (2,)


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
@pytest.mark.parametrize("name", ["Walk", "make_walk"])
def test_a_cell_defined_environment_works_in_subprocess_workers(name: str, method: str) -> None:
    factory = resolve_env(run_cell()[name], {"goal": 0.5})
    here, there = DummyVecEnv([factory] * 2), SubprocVecEnv([factory] * 2, start_method=method)
    try:
        for vec in (here, there):
            vec.seed(3)
        np.testing.assert_array_equal(here.reset(), there.reset().astype(np.float32))
        for action in (0, 1, 1, 1):
            ours, theirs = (vec.step(np.array([action, 1 - action])) for vec in (here, there))
            np.testing.assert_array_equal(ours[0], theirs[0].astype(np.float32))
            np.testing.assert_array_equal(ours[2], theirs[2])
    finally:
        there.close()


def test_an_id_that_a_cell_has_registered_works_in_subprocess_workers() -> None:
    gym.register("CellWalk-v0", entry_point=run_cell()["Walk"], kwargs={"goal": 0.5}, max_episode_steps=7)
    try:
        factory = resolve_env("CellWalk-v0")
    finally:
        del gym.registry["CellWalk-v0"]  # as in a worker, which has not run the cell
    vec = SubprocVecEnv([factory])
    try:
        assert vec.reset().shape == (1, 2)
        assert vec.env_method("get_wrapper_attr", "goal") == [0.5]
    finally:
        vec.close()


def test_a_cell_defined_environment_is_found_by_name_where_its_cell_has_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walk = run_cell()["Walk"]
    reference = resolve_env(walk).reference
    with pytest.raises(
        EnvError, match=r"the environment Walk is defined in the notebook and exists only where"
    ):
        resolve_env(reference)
    monkeypatch.setattr(sys.modules["__main__"], "Walk", walk, raising=False)
    assert resolve_env(reference).kind is EnvKind.CELL


def test_an_unknown_id_names_the_nearest() -> None:
    with pytest.raises(
        EnvError,
        match=r"env='CartPol-v1' is no registered gymnasium environment\. Did you mean 'CartPole-v1'\?$",
    ):
        resolve_env("CartPol-v1")
    with pytest.raises(EnvError, match=r"environment \(Namespace Atari not found.*\); import the package"):
        resolve_env("Atari/Ping-v77")


@pytest.mark.parametrize("text", ["", " ", ":CartPole-v1"])
def test_no_name_at_all_is_said(text: str) -> None:
    with pytest.raises(EnvError, match=rf"env='{text}' names no environment; give a gymnasium id such as"):
        resolve_env(text)


def test_a_module_may_register_the_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "registering.py").write_text(
        "import gymnasium as gym\nimport cells\ngym.register('Registered-v0', entry_point=cells.Counter)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        factory = resolve_env("registering:Registered-v0")
        assert factory.reference == EnvReference(EnvKind.ID, "registering:Registered-v0")
        assert (factory.spaces().id, type(factory().unwrapped)) == ("Registered-v0", Counter)
        with pytest.raises(
            EnvError, match=r"env='registering:Registerd-v0' .*Did you mean 'Registered-v0'\?"
        ):
            resolve_env("registering:Registerd-v0")
    finally:
        gym.registry.pop("Registered-v0", None)
    with pytest.raises(EnvError, match=r"env='no_such_module:A-v0' cannot be imported: No module named"):
        resolve_env("no_such_module:A-v0")


def test_an_unknown_version_is_explained() -> None:
    with pytest.raises(EnvError, match=r"env='CartPole-v7' is no registered .*Did you mean 'CartPole-v1'"):
        resolve_env("CartPole-v7")


def test_a_missing_module_or_name_is_explained() -> None:
    with pytest.raises(
        EnvError, match=r"'no_such_module:Env' cannot be imported: No module named 'no_such_module'"
    ):
        resolve_env("no_such_module:Env")
    with pytest.raises(EnvError, match=r"cells has no 'Countr'\. Did you mean 'Counter'\?"):
        resolve_env("cells:Countr")


@pytest.mark.parametrize("env", [None, 3, object()])
def test_what_is_no_environment_is_refused(env: Any) -> None:
    with pytest.raises(EnvError, match=r"is no environment; give a gymnasium id, a class or a function"):
        resolve_env(env)


def test_an_instance_is_refused() -> None:
    with pytest.raises(EnvError, match=r"env is one Counter that exists already, and training needs several"):
        resolve_env(Counter())
    with pytest.raises(EnvError, match=r"env is one CartPoleEnv that exists already"):
        resolve_env(gym.make("CartPole-v1"))


@pytest.mark.parametrize("kind", ["OldReset", "DuckTyped", "OldCartPole"])
def test_old_classes_are_refused_before_they_are_made(kind: str) -> None:
    target = {"OldReset": OldReset, "DuckTyped": DuckTyped, "OldCartPole": old_gym_class()}[kind]
    message = rf"{kind} follows the old reset/step protocol: .*; wrap it with shimmy\.GymV21CompatibilityV0"
    with pytest.raises(EnvError, match=message):
        resolve_env(target)


@pytest.mark.parametrize(
    ("target", "found"),
    [(OldReturns, "reset\\(\\) returns only an observation"), (OldStep, "step\\(\\) returns 4 values")],
)
def test_old_returns_are_recognised_when_it_is_tried(target: type, found: str) -> None:
    message = (
        rf"{target.__name__} follows the old reset/step protocol: {found}.*shimmy\.GymV21CompatibilityV0"
    )
    with pytest.raises(EnvError, match=message):
        resolve_env(target).spaces()


def test_a_registered_old_environment_is_recognised() -> None:
    gym.register("OldReset-v0", entry_point=OldReset)
    try:
        with pytest.raises(
            EnvError, match=r"OldReset-v0 follows the old reset/step protocol: reset\(\) returns only"
        ):
            resolve_env("OldReset-v0").spaces()
    finally:
        del gym.registry["OldReset-v0"]


def test_a_function_that_makes_something_old_is_recognised() -> None:
    with pytest.raises(EnvError, match=r"<lambda> follows the old reset/step protocol"):
        resolve_env(lambda: DuckTyped())()


def test_a_function_that_makes_nothing_is_recognised() -> None:
    with pytest.raises(
        EnvError, match=r"<lambda> gave NoneType, not a gymnasium\.Env; return an environment"
    ):
        resolve_env(lambda: None)()


def test_several_agents_and_vector_environments_are_refused() -> None:
    class Many:
        possible_agents = ("a", "b")

    with pytest.raises(EnvError, match="has several agents \\(PettingZoo\\)"):
        resolve_env(lambda: Many())()
    with pytest.raises(EnvError, match="is a vector environment; give the single environment and n_envs"):
        resolve_env(gym.vector.SyncVectorEnv)


def test_a_dm_env_names_its_adapter() -> None:
    class Control:
        def observation_spec(self) -> None: ...
        def action_spec(self) -> None: ...
        def reset(self) -> None: ...
        def step(self, action: Any) -> None: ...

    with pytest.raises(
        EnvError, match=r"follows dm_env, not gymnasium; wrap it with shimmy\.DmControlCompatibilityV0"
    ):
        resolve_env(Control)


@pytest.mark.parametrize(
    ("words", "extra"), [("MuJoCo is not installed", "mujoco"), ("Box2D is not installed", "box2d")]
)
def test_a_missing_engine_names_the_extra(words: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise gym.error.DependencyNotInstalled(words)

    monkeypatch.setattr("rlnb.envs.make.gym.make", fail)
    with pytest.raises(MissingExtra, match=rf"CartPole-v1 needs packages .*pip install 'rlnb\[{extra}\]'"):
        EnvFactory(EnvKind.ID, "CartPole-v1")()


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(EnvError, match=r"Counter cannot be made with \{'lenght': 3\}: .*lenght"):
        resolve_env(Counter, {"lenght": 3})()
    with pytest.raises(
        EnvError, match=r"CartPole-v1 cannot be made with \{'gravty': 3\}: .*'gravty'; correct env_kwargs$"
    ):
        resolve_env("CartPole-v1", {"gravty": 3})()
    with pytest.raises(
        EnvError, match=r"LunarLander-v3 cannot be made with \{'gravity': -20\}: gravity .*between"
    ):
        resolve_env("LunarLander-v3", {"gravity": -20})()
    with pytest.raises(
        EnvError, match=r"env_kwargs=5 is no mapping; write e\.g\. env_kwargs=\{'gravity': -9\.8\}"
    ):
        resolve_env("CartPole-v1", 5)  # type: ignore[arg-type]


def test_missing_arguments_are_named_and_own_faults_keep_their_traceback() -> None:
    class Needs(Counter):
        def __init__(self, size: int) -> None:
            super().__init__()

    class Faulty(Counter):
        def __init__(self) -> None:
            len(5)  # type: ignore[arg-type]

    with pytest.raises(
        EnvError, match=r"Needs cannot be made without arguments: .*'size'; give them with env_kwargs"
    ):
        resolve_env(Needs)()
    with pytest.raises(TypeError, match=r"object of type 'int' has no len"):
        resolve_env(Faulty)()


def test_missing_spaces_are_named() -> None:
    class Bare(gym.Env[Any, Any]):
        pass

    with pytest.raises(
        EnvError, match=r"Bare has no observation_space; set self\.observation_space in __init__"
    ):
        resolve_env(Bare).spaces()
