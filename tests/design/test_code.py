"""A design as a cell: it reads like one written by hand and makes the same design."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings

import rlnb
from rlnb.design import term as design_term
from rlnb.design.code import WIDTH, to_code
from rlnb.design.design import Design
from rlnb.design.reward import RewardSpec, Shaping, Term
from rlnb.design.state import Clip, Derive, Select, StateSpec, ZScore
from rlnb.experiment_design import design_of
from tests.design.strategies import designs


@pytest.fixture(autouse=True)
def _own_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(design_term, "_MARKED", {})


def _run(code: str, **names: Any) -> Design:
    """The design that a cell makes, as an Experiment reads it."""
    exec(compile(code, "cell", "exec"), names)  # noqa: S102
    reward, state = names["reward"], names["state"]
    return Design(reward if isinstance(reward, RewardSpec) else RewardSpec(reward), StateSpec(state))


def _function(name: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(f"def {name}(batch): return batch.reward", namespace)  # noqa: S102
    return namespace[name]


@settings(max_examples=60, deadline=None)
@given(designs())
def test_the_cell_makes_the_same_design(design: Design) -> None:
    code = to_code(design)
    functions = {
        part.python: _function(part.python)
        for part in design.reward.terms
        if isinstance(part, Term) and part.python
    }
    again = _run(code, **functions)
    assert again == design
    assert repr(again.to_dict()) == repr(design.to_dict())  # also -0.0
    assert again.fingerprint() == design.fingerprint()


def test_it_reads_like_one_written_by_hand() -> None:
    design = Design(
        RewardSpec(
            [
                Term("env", "reward"),
                Term("slow", "-abs(vy) * (y < 0.2)", weight="lin_1", clip=(-math.inf, 1e-5)),
                Term("legs", python="both_legs", weight=0.5),
                Shaping("near", "-hypot(x, y)", gamma=0.999),
                Term("idle", "1", enabled=False),
            ],
            combine="env + slow * legs",
        ),
        StateSpec([Select(["x", "it's"]), Derive("r", "hypot(x, y)", high=2), Clip(low=-1), ZScore([f"c{i}" for i in range(16)], [0.25] * 16, [1.0] * 16)]),
    )  # fmt: skip
    source = "    @rlnb.reward_term\n    def both_legs(batch):\n        return batch.obs['left']\n"
    code = to_code(design, function_sources={"both_legs": source, "other": "x = 1"})
    assert code == (
        "import rlnb\n\n"
        "@rlnb.reward_term\ndef both_legs(batch):\n    return batch.obs['left']\n\n"
        'reward = rlnb.RewardSpec(\n    [\n        rlnb.Term("env", "reward"),\n'
        '        rlnb.Term("slow", "-abs(vy) * (y < 0.2)", weight="lin_1", clip=(float("-inf"), 1e-05)),\n'
        '        rlnb.Term("legs", both_legs, weight=0.5),\n'
        '        rlnb.Shaping("near", "-hypot(x, y)", gamma=0.999),\n'
        '        rlnb.Term("idle", "1", enabled=False),\n    ],\n    combine="env + slow * legs",\n)\n'
        'state = [\n    rlnb.Select(["x", "it\'s"]),\n    rlnb.Derive("r", "hypot(x, y)", high=2.0),\n'
        "    rlnb.Clip(low=-1.0),\n    rlnb.ZScore(\n        [\n"
        '            "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11", "c12", "c13",\n'
        '            "c14", "c15",\n        ],\n'
        "        mean=[\n"
        "            0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25,\n"
        "            0.25, 0.25,\n        ],\n"
        "        std=[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],\n"
        "    ),\n]\n"
    )
    assert max(map(len, code.splitlines())) <= WIDTH
    assert _run(code) == design
    assert design_term.marked_terms().keys() == {"both_legs"}


def test_nothing_designed_is_the_environments_own() -> None:
    code = to_code(Design())
    assert code == 'import rlnb\n\nreward = [\n    rlnb.Term("env", "reward"),\n]\nstate = []\n'
    assert _run(code).is_identity


def test_a_term_with_memory_is_named_by_a_text() -> None:
    class Spin:
        def __call__(self, batch: Any) -> Any:
            return batch.reward

    design = Design(RewardSpec([Term("spin", Spin(), weight=2.0)]))
    code = to_code(design)
    assert 'rlnb.Term("spin", python="Spin", weight=2.0)' in code
    spin = Spin()
    rlnb.reward_term(spin)
    assert design_of(_run(code)).reward.terms[0].function is spin
