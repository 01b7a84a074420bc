"""The static table of algorithms says what the installed SB3 says."""

from __future__ import annotations

import inspect
import subprocess
import sys
import typing
from types import UnionType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rlnb.errors import ExperimentError, MissingExtra
from rlnb.run import algorithms
from rlnb.run.algorithms import ALGORITHMS, GOVERNED, Algorithm, algorithm
from rlnb.run.arguments import Argument, Kind
from rlnb.run.experiment import ExperimentSpec
from rlnb.run.policies import POLICIES, resolve_policy
from rlnb.run.references import References


@pytest.mark.parametrize("row", ALGORITHMS.values(), ids=ALGORITHMS)
def test_names_and_defaults_are_those_of_the_installed_signature(row: Algorithm) -> None:
    signature = inspect.signature(row.load().__init__).parameters
    theirs = {name: one.default for name, one in signature.items() if name not in {"self", *GOVERNED}}
    assert {one.name: one.default for one in row.arguments} == theirs
    assert signature.keys() - {"self"} >= GOVERNED.keys()


@pytest.mark.parametrize("row", ALGORITHMS.values(), ids=ALGORITHMS)
def test_kinds_fit_the_installed_annotations(row: Algorithm) -> None:
    hints = {name: one.annotation for name, one in inspect.signature(row.load().__init__).parameters.items()}
    for one in row.arguments:
        assert _kind(hints[one.name], one) is one.kind, one.name
        optional = type(None) in typing.get_args(hints[one.name])
        assert one.optional is optional, one.name


def _kind(hint: Any, one: Argument) -> Kind:
    members = [
        member
        for member in (typing.get_args(hint) if _is_union(hint) else (hint,))
        if member is not type(None)
    ]
    if any(getattr(member, "__name__", "") == "ActionNoise" for member in members):
        return Kind.NOISE
    if any(typing.get_origin(member) is type for member in members):
        return Kind.CLASS
    if any(typing.get_origin(member) is dict for member in members):
        return Kind.MAPPING
    if any(typing.get_origin(member) is tuple for member in members):
        return Kind.FREQUENCY
    if str in members:
        return Kind.AUTO
    if len(members) > 1:
        return Kind.SCHEDULE
    return {int: Kind.INT, float: Kind.FLOAT, bool: Kind.BOOL}[members[0]]


def _is_union(hint: Any) -> bool:
    return isinstance(hint, UnionType) or typing.get_origin(hint) is typing.Union


@pytest.mark.parametrize("row", ALGORITHMS.values(), ids=ALGORITHMS)
def test_policies_are_those_of_the_algorithm(row: Algorithm) -> None:
    assert set(row.load().policy_aliases) == set(POLICIES)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("row", ALGORITHMS.values(), ids=ALGORITHMS)
def test_policy_arguments_are_those_of_the_policy_class(row: Algorithm, policy: str) -> None:
    settings = {one.name: one.default for one in row.arguments}
    resolved = resolve_policy(row.name, policy, None, References(), settings=settings)
    signature = inspect.signature(row.load().policy_aliases[policy].__init__).parameters
    own = signature.keys() - {"self", "observation_space", "action_space", "lr_schedule", "use_sde"}
    assert resolved.keys() == own
    live = References().thaw(resolved, "policy_kwargs")
    for name in own - {
        "net_arch",
        "optimizer_class",
        "optimizer_kwargs",
        "features_extractor_kwargs",
        "n_critics",
    }:
        assert live[name] == signature[name].default, name


def test_images_get_the_layers_that_sb3_gives_them() -> None:
    row = algorithm("TD3")
    settings = {one.name: one.default for one in row.arguments}
    assert resolve_policy("TD3", "CnnPolicy", None, References(), settings=settings)["net_arch"] == [256, 256]
    settings = {one.name: one.default for one in algorithm("PPO").arguments}
    assert resolve_policy("PPO", "CnnPolicy", None, References(), settings=settings)["net_arch"] == []


@pytest.mark.parametrize("given", [None, {"net_arch": [16]}, {"optimizer_kwargs": {"eps": 1e-3}}], ids=str)
@pytest.mark.parametrize("row", ALGORITHMS.values(), ids=ALGORITHMS)
def test_a_resolved_policy_is_the_policy_that_sb3_builds(
    row: Algorithm, given: dict[str, Any] | None
) -> None:
    env = gym.make("CartPole-v1" if row.discrete else "Pendulum-v1")
    settings = {one.name: one.default for one in row.arguments}
    resolved = References().thaw(
        resolve_policy(row.name, "MlpPolicy", given, References(), settings=settings), "policy_kwargs"
    )
    small = {"buffer_size": 10} if row.off_policy else {}
    plain, ours = (
        row.load()("MlpPolicy", env, seed=1, device="cpu", policy_kwargs=kwargs, **small)
        for kwargs in (None if given is None else dict(given), resolved)
    )
    assert plain.policy.state_dict().keys() == ours.policy.state_dict().keys()
    for key, weights in plain.policy.state_dict().items():
        np.testing.assert_array_equal(weights.numpy(), ours.policy.state_dict()[key].numpy())
    assert _optimizers(plain) == _optimizers(ours)


def _optimizers(model: Any) -> list[tuple[str, dict[str, Any]]]:
    holders = [model.policy, *(getattr(model.policy, name, None) for name in ("actor", "critic"))]
    found = [holder.optimizer for holder in holders if getattr(holder, "optimizer", None) is not None]
    assert found
    return [(type(one).__name__, one.defaults) for one in found]


@pytest.mark.parametrize("spelling", ["QR-DQN", "qrdqn", "QRDQN", "qr_dqn"])
def test_spelling_of_a_name_does_not_matter(spelling: str) -> None:
    assert algorithm(spelling).name == "QRDQN"


def test_an_sb3_class_names_its_algorithm() -> None:
    assert algorithm(algorithm("PPO").load()).name == "PPO"


def test_an_unknown_algorithm_names_the_nearest() -> None:
    with pytest.raises(
        ExperimentError, match=r"^algo='PP0' is unknown\. Did you mean 'PPO'\? rlnb trains with PPO, "
    ):
        algorithm("PP0")


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(algorithms.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"TQC needs packages .* pip install 'rlnb\[contrib\]'"):
        algorithm("TQC").require()


def test_the_table_needs_no_torch() -> None:
    code = "import sys, rlnb.run.algorithms, rlnb.run.policies; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("algo", "layers", "message"),
    [
        ("PPO", "big", r"net_arch='big' has 'big' where the size of a layer belongs; write e\.g\. \[64, 64\] or \{'pi': .*'vf'"),
        ("PPO", [64, -5], r"net_arch=\[64, -5\] has -5 where the size of a layer belongs"),
        ("PPO", [64.0], r"net_arch=\[64\.0\] has 64\.0 where"),
        ("PPO", {"pi": [4], "v": [4]}, r"net_arch has the parts pi, v; it needs pi and vf, as in"),
        ("SAC", {"pi": [4], "vf": [4]}, r"net_arch has the parts pi, vf; it needs pi and qf, as in"),
        ("DQN", {"pi": [4]}, r"net_arch=\{'pi': \[4\]\} has \{'pi': \[4\]\} where the size of a layer belongs; write e\.g\. \[64, 64\]$"),
    ],
)  # fmt: skip
def test_layers_that_are_none_are_refused(algo: str, layers: object, message: str) -> None:
    env = {"kind": "id", "value": "CartPole-v1"}
    hyperparameters = {"policy_kwargs": {"net_arch": layers}}
    with pytest.raises(ExperimentError, match=message):
        ExperimentSpec.resolve(env=env, total_timesteps=5, algo=algo, hyperparameters=hyperparameters)
