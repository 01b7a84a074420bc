"""Designs in words."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from rlnb.design.describe import describe, design_diff
from rlnb.design.design import Design
from rlnb.design.reward import RewardSpec, Shaping, Term
from rlnb.design.state import Clip, Delta, Derive, Select, StateSpec, ZScore
from tests.design.strategies import designs

_LANDING = Term("landing", "exp(-abs(vy))", weight=2.0, clip=(0.0, 1.0))
_ENV = Term("env", "reward")


def _state(*ops: object) -> Design:
    return Design(state=StateSpec(ops))  # type: ignore[arg-type]


def _reward(*terms: object, combine: str | None = None) -> Design:
    return Design(RewardSpec(terms, combine))  # type: ignore[arg-type]


def test_a_design_in_sentences() -> None:
    design = Design(
        RewardSpec(
            [_ENV, _LANDING, Term("legs", python="both_legs", weight="lin_1", enabled=False), Shaping("near", "-hypot(x, y)")],
            combine="env + landing",
        ),
        StateSpec([Select(["x", "y"]), Clip(low=-1), ZScore(list("abcde"), [0.5] * 5, [1] * 5), Delta()]),
    )  # fmt: skip
    assert describe(design) == [
        "env: reward, weight 1",
        "landing: exp(-abs(vy)), weight 2, clipped to [0, 1]",
        "legs: both_legs(batch), weight lin_1, off",
        "near: shaping by the potential -hypot(x, y), gamma 0.99, weight 1",
        "combine: env + landing",
        "state 1: select x, y",
        "state 2: clip of all: low -1, high inf",
        "state 3: zscore of a, b, c, d, e: mean [0.5, 0.5, 0.5, 0.5, … (5)], std [1, 1, 1, 1, … (5)]",
        "state 4: delta of all",
    ]
    assert describe(Design()) == ["env: reward, weight 1", "state: the environment's own observation"]


def test_terms_in_the_diff() -> None:
    before = _reward(_ENV, _LANDING, Term("spin", "-abs(vangle)"))
    after = _reward(
        replace(_LANDING, weight=1.0, clip=None, enabled=False),
        Term("env", python="paid"),
        Term("fuel", "-thrust", weight=0.1),
        combine="env + fuel",
    )
    assert design_diff(before, after) == [
        "spin removed",
        "landing: weight 2 -> 1",
        "landing: clip [0, 1] -> none",
        "landing: switched off",
        "env: reward -> paid(batch)",
        "fuel added: -thrust, weight 0.1",
        "order: env, landing -> landing, env",
        "combine: none -> env + fuel",
    ]
    assert design_diff(_reward(_LANDING), _reward(Shaping("landing", "vy"))) == [
        "landing: exp(-abs(vy)), weight 2, clipped to [0, 1] -> shaping by the potential vy, gamma 0.99, weight 1"
    ]


def test_operations_in_the_diff() -> None:
    select, clip, delta = Select(["x", "y"]), Clip(["x"], -1, 1), Delta(["x"])
    assert design_diff(_state(select, clip), _state(select, Clip(["x"], -2, 1), delta)) == [
        "state 2: clip: low -1 -> -2",
        "state 3 added: delta of x",
    ]
    assert design_diff(_state(select, clip), _state(clip, select)) == [
        "state order: select, clip -> clip, select"
    ]
    assert design_diff(_state(select, clip, delta), _state(Derive("r", "x"), delta)) == [
        "state 1 removed: select x, y",
        "state 2 removed: clip of x: low -1, high 1",
        "state 1 added: derive: name r, expression x",
    ]
    zscores = [ZScore(list("abcdef"), [0.0] * 5 + [last], [1.0] * 6) for last in (0.0, 3.0)]
    assert design_diff(_state(zscores[0]), _state(zscores[1])) == ["state 1: zscore: mean [5] 0 -> 3"]


@settings(max_examples=60, deadline=None)
@given(designs(), designs())
def test_a_diff_is_empty_exactly_for_equal_designs(one: Design, other: Design) -> None:
    assert design_diff(one, Design.from_yaml(one.to_yaml())) == []
    mixed = Design(one.reward, other.state)
    for before, after in ((one, other), (one, mixed), (mixed, other)):
        assert (design_diff(before, after) == []) == (before.fingerprint() == after.fingerprint())
    assert all(len(line.splitlines()) == 1 for line in [*describe(one), *design_diff(one, other)])
