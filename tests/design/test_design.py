"""Design files: nothing is lost, nothing unknown is let through, and a person can read them."""

from __future__ import annotations

import math

import pytest
import yaml
from hypothesis import given, settings

from rlnb.design.design import Design
from rlnb.design.reward import RewardSpec, Shaping, Term, reward_term
from rlnb.design.state import Clip, Delta, Derive, Scale, Select, StateSpec, ZScore
from rlnb.errors import DesignError, ExpressionError
from tests.design.strategies import designs


@settings(max_examples=200, deadline=None)
@given(designs())
def test_yaml_round_trip_is_lossless(design):
    text = design.to_yaml()
    again = Design.from_yaml(text)
    assert again == design
    assert again.to_yaml() == text
    assert again.fingerprint() == design.fingerprint()
    assert repr(again.to_dict()) == repr(design.to_dict())  # also -0.0
    assert Design.from_dict(design.to_dict()) == design
    assert yaml.load(text, yaml.CSafeLoader).keys() == design.to_dict().keys()  # any other reader's, too


def test_a_file_reads_like_one_written_by_hand():
    design = Design(
        RewardSpec(
            [
                Term("env", "reward"),
                Term("slow", "-abs(vy) * (y < 0.2)", weight="lin_1", clip=(-math.inf, 1e-5)),
                Term("legs", python="both_legs"),
                Shaping("near", "-hypot(x, y)", gamma=0.999),
                Term("idle", "1", enabled=False),
            ],
            combine="env + slow * legs",
        ),
        StateSpec(
            [Select(["x", "y"]), Derive("r", "hypot(x, y)", high=2), ZScore(["x"], [0.1], [1e-7]), Delta()]
        ),
    )
    assert (
        design.to_yaml()
        == """\
format: 1
reward:
  terms:
    - name: env
      expression: reward
      weight: 1.0
    - name: slow
      expression: -abs(vy) * (y < 0.2)
      weight: lin_1
      clip: [-.inf, 1.0e-05]
    - name: legs
      python: both_legs
      weight: 1.0
    - name: near
      potential: -hypot(x, y)
      gamma: 0.999
      weight: 1.0
    - name: idle
      expression: '1'
      weight: 1.0
      enabled: false
  combine: env + slow * legs
state:
  - select: [x, y]
  - derive:
      name: r
      expression: hypot(x, y)
      high: 2.0
  - zscore:
      names: [x]
      mean: [0.1]
      std: [1.0e-07]
  - delta: {}
"""
    )


def test_a_part_left_out_is_the_environments_own():
    assert Design.from_yaml("") == Design.from_dict({}) == Design()
    assert Design().is_identity
    assert Design.from_yaml("state: [select: [x]]").reward.is_identity
    assert Design.from_yaml("reward: {terms: [{name: a, expression: x}]}").state.is_identity


def test_hand_written_numbers_and_words():
    design = Design.from_yaml(
        """
        state:
          - select: [y, on, no]
          - scale: {factor: 1e-3, offset: +2}
          - clip: {low: -.inf}
          - delta:
        """
    )
    assert design.state.ops == (
        Select(("y", "on", "no")), Scale(None, 0.001, 2.0), Clip(None, -math.inf, math.inf), Delta(None),
    )  # fmt: skip


def test_files(tmp_path):
    path = tmp_path / "lander.yaml"
    design = Design(RewardSpec([Term("a", "x")]))
    path.write_text(design.to_yaml())
    assert Design.from_yaml(path) == Design.from_yaml(str(path)) == design
    with pytest.raises(DesignError, match=r"There is no design file '.*gone\.yaml'; look at the path"):
        Design.from_yaml(tmp_path / "gone.yaml")
    path.write_text("reward: [")
    with pytest.raises(DesignError, match=r"lander\.yaml cannot be read \(line 1, column 10\)"):
        Design.from_yaml(path)


def test_python_terms_are_found_by_name():
    @reward_term
    def found_by_name(batch):
        return batch.t * 2.0

    text = "reward: {terms: [{name: a, python: found_by_name}, {name: b, python: never_defined}]}"
    design = Design.from_yaml(text)
    assert design.reward.unbound == ("never_defined",)
    assert design.bind({"never_defined": found_by_name}).reward.unbound == ()
    assert design.fingerprint() == design.bind({"never_defined": found_by_name}).fingerprint()


def test_a_fingerprint_changes_with_every_value():
    designs = [
        Design(),
        Design(RewardSpec([Term("env", "reward", 2.0)])),
        Design(RewardSpec([Term("env", "reward", clip=(0, 1))])),
        Design(RewardSpec([Term("env", "reward", enabled=False)])),
        Design(RewardSpec([Term("env", "reward"), Term("x", "x")])),
        Design(RewardSpec([Term("x", "x"), Term("env", "reward")])),
        Design(state=StateSpec([Scale(None, 2.0)])),
        Design(state=StateSpec([Scale(None, 2.0 + 2**-51)])),
    ]
    assert len({design.fingerprint() for design in designs}) == len(designs)
    assert Design().fingerprint() == Design.from_yaml("").fingerprint()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rewrd: 1", "the design has the unknown key 'rewrd'. Did you mean 'reward'"),
        ("reward: {trems: []}", "reward has the unknown key 'trems'. Did you mean 'terms'"),
        (
            "reward: {terms: [{name: a, expression: x, wieght: 2}]}",
            r"reward\.terms\[0\] has the unknown key 'wieght'. Did you mean 'weight'",
        ),
        ("reward: {terms: [{name: a, potential: x, clip: [0, 1]}]}", "unknown key 'clip'"),
        ("reward: {terms: [{name: a, expression: x, gamma: 1}]}", r"terms\[0\] has a gamma but no potential"),
        ("reward: {terms: [{expression: x}]}", r"terms\[0\] has no name"),
        ("reward: {terms: [{name: a, expression: 1}]}", r"terms\[0\].expression is 1; it must be a text"),
        ("reward: {terms: [{name: a, expression: x, enabled: 1}]}", "enabled is 1; it must be true or false"),
        (
            "reward: {terms: [{name: a, expression: x, weight: yes}]}",
            r"terms\[0\]: The weight of term 'a' is 'yes'",
        ),
        ("reward: {terms: {a: 1}}", r"reward.terms is {'a': 1}; it must be a list"),
        ("reward: 3", "reward is 3; it must have keys such as terms"),
        ("reward: {terms: []}", "reward: A reward needs at least one term"),
        ("state: 3", "state is 3; it must be a list of operations"),
        ("state: [{selct: [x]}]", r"state\[0\] has the unknown key 'selct'. Did you mean 'select'"),
        ("state: [{clip: {lo: 1}}]", r"state\[0\]\.clip has the unknown key 'lo'. Did you mean 'low'"),
        ("state: [{clip: {}, delta: {}}]", r"state\[0\] has 2 operations \(clip, delta\); write one a row"),
        ("state: [{derive: {name: a}}]", r"state\[0\]\.derive lacks expression"),
        ("state: [{scale: {factor: 0}}]", r"state\[0\]\.scale: A scale needs a finite factor"),
        ("state: [{clip: 3}]", r"state\[0\]\.clip is 3; it must have keys"),
        ("format: 2", "the design has format 2; this version of rlnb reads up to 1: update rlnb"),
        ("- 1", r"the design is \[1\]; it must have keys such as format, reward, state"),
        ("reward: &a {terms: []}", r"line 1, column 9\): anchors and aliases"),
        ("state: *a", "anchors and aliases"),
        ("reward:\nreward:", r"line 2, column 1\): the key 'reward' stands here twice"),
        ("? [a]\n: 1", "a key must be a word"),
        ("reward: !!python/object:os.system {}", "cannot be read .*could not determine a constructor"),
        ("a: b: c", "cannot be read"),
        ("x: \x00", "cannot be read as YAML"),
        ("#" * 1_000_001, "1000001 characters; a design has at most 1000000"),
    ],
)
def test_bad_files_are_refused_with_place_and_remedy(text, message):
    with pytest.raises(DesignError, match=message):
        Design.from_yaml(text)


def test_a_wrong_expression_keeps_its_position():
    with pytest.raises(ExpressionError, match=r"reward\.terms\[0\]: In 'a': .*attribute access") as caught:
        Design.from_yaml("reward: {terms: [{name: a, expression: 1 + x.y}]}")
    assert caught.value.position == 4


def test_other_values_are_refused():
    with pytest.raises(DesignError, match="reward= must be a RewardSpec"):
        Design(reward="x")  # type: ignore[arg-type]
    with pytest.raises(DesignError, match="state= must be a StateSpec"):
        Design(state=[])  # type: ignore[arg-type]
