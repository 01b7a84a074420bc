from __future__ import annotations

import numpy as np
import pytest
from gymnasium import make, spaces
from gymnasium.error import DependencyNotInstalled

from rlnb.design.names import KNOWN, component_names
from rlnb.design.spaces import flatten_batch, space_bounds, space_names
from rlnb.errors import DesignError

_IDS = [
    "CartPole-v1", "Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1", "LunarLander-v3",
    "BipedalWalker-v3", "HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Swimmer-v5", "InvertedPendulum-v5",
    "InvertedDoublePendulum-v5", "Reacher-v5", "Ant-v5",
]  # fmt: skip


@pytest.mark.parametrize("env_id", _IDS)
def test_known_names_fit_the_environment(env_id):
    try:
        env = make(env_id)
    except DependencyNotInstalled as error:
        pytest.skip(str(error))
    names = component_names(env.observation_space, env_id)
    env.close()
    assert names == KNOWN[env_id.rsplit("-", 1)[0]]
    assert len(set(names)) == len(names) == env.observation_space.shape[0]
    assert all(name.isidentifier() for name in names)


def test_other_environments_get_numbered_names():
    assert component_names(spaces.Box(-1, 1, (3,)), "Own-v0") == ("obs0", "obs1", "obs2")
    assert component_names(spaces.Box(-1, 1, (3,)), "CartPole-v1") == ("obs0", "obs1", "obs2")
    assert component_names(spaces.Discrete(5)) == ("obs0",)
    assert component_names(spaces.Box(0, 255, (84, 84, 3), np.uint8)) == ()
    assert component_names(spaces.Box(0, 1, (2, 2))) == ("obs0", "obs1", "obs2", "obs3")
    assert component_names(spaces.Box(-1, 1, (4,)), "some_module:ns/CartPole-v7")[0] == "x"


def test_names_of_the_user_win():
    space = spaces.Box(-1, 1, (2,))
    assert component_names(space, names=["a", "b"]) == ("a", "b")
    with pytest.raises(DesignError, match=r"names= has 1 names .*2 components"):
        component_names(space, names=["a"])
    with pytest.raises(DesignError, match="1 different"):
        component_names(space, names=["a", "a"])
    with pytest.raises(DesignError, match="'a-b' cannot be a name"):
        component_names(space, names=["a-b", "c"])


def test_a_dict_is_flattened_in_its_own_order():
    space = spaces.Dict(
        {"pos": spaces.Box(-1, 2, (2,)), "grip": spaces.MultiBinary(1), "k 1": spaces.Discrete(3, start=1)}
    )
    names = space_names(space)
    assert sorted(names) == ["grip", "k_1", "pos_0", "pos_1"]
    low, high = space_bounds(space)
    assert dict(zip(names, zip(low, high, strict=True), strict=True)) == {
        "pos_0": (-1, 2), "pos_1": (-1, 2), "grip": (0, 1), "k_1": (1, 3),
    }  # fmt: skip
    raw = {"pos": np.array([[0.5, 1.5]]), "grip": np.array([[1]]), "k 1": np.array([2])}
    assert dict(zip(names, flatten_batch(space, raw)[0], strict=True)) == {
        "pos_0": 0.5, "pos_1": 1.5, "grip": 1, "k_1": 2,
    }  # fmt: skip


def test_spaces_without_components_are_named():
    with pytest.raises(DesignError, match="The observation space Tuple has no components"):
        space_names(spaces.Tuple([spaces.Discrete(2)]))
    with pytest.raises(DesignError, match=r"Text \(its entry 'note'\) has no components"):
        space_names(spaces.Dict({"note": spaces.Text(4)}))
