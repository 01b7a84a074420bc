"""Groups of terms: arithmetic, names, files, and bytes however a batch is cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb.design.design import Design
from rlnb.design.reward import RewardSpec, Shaping, Term, TermGroup
from rlnb.errors import DesignError, ExpressionError
from tests.design.batches import expressions, make_batch, pieces


def test_a_group_is_the_weighted_sum_of_its_terms_times_its_weight():
    batch = make_batch()
    spec = RewardSpec(
        [Term("a", "x", weight=2, group="g"), Term("env", "reward"), Term("b", "y", clip=(-1, 1), group="g")],
        groups=[TermGroup("g", weight=0.5)],
    )
    result = spec.evaluate(batch)
    value = (2.0 * batch.obs["x"] + np.clip(batch.obs["y"], -1, 1)) * 0.5
    assert result.groups["g"].tolist() == value.tolist()
    env = batch.reward.astype(np.float32).astype(np.float64)
    assert result.total.tolist() == (value + env).astype(np.float32).tolist()  # where its first term stands
    assert result.contribution("a").tolist() == batch.obs["x"].tolist()  # 2 * 0.5
    assert result.contribution("env").tolist() == env.tolist()
    assert (result.weights["a"], result.weight("a"), result.group_weights) == (2.0, 1.0, {"g": 0.5})


def test_expressions_of_groups_and_of_the_reward():
    batch = make_batch()
    x, y, vx = (batch.obs[name] for name in ("x", "y", "vx"))
    spec = RewardSpec(
        [Term("a", "x", 2, group="g"), Term("b", "y", group="g"), Term("off", "y", enabled=False, group="g"), Term("c", "vx")],
        combine="where(c > 0, g, c) + gone",
        groups=[TermGroup("g", "lin_4", combine="min(a, b) + off"), TermGroup("gone", combine="7", enabled=False)],
    )  # fmt: skip
    result = spec.evaluate(batch, progress=0.75)
    value = np.minimum(2 * x, y) * 1.0
    assert result.groups["g"].tolist() == value.tolist()
    assert result.total.tolist() == np.where(vx > 0, value, vx).astype(np.float32).tolist()


def test_weight_zero_and_disabled_groups():
    batch = make_batch()
    watched = RewardSpec(
        [Term("bad", "x / 0 - x / 0", group="g"), Term("c", "x")], groups=[TermGroup("g", weight=0)]
    )
    result = watched.evaluate(batch)
    assert result.nonfinite() == {"bad": 12, "g": 12}
    assert result.total.tolist() == batch.obs["x"].astype(np.float32).tolist()
    off = RewardSpec([Term("a", "x", group="g"), Term("c", "y")], groups=[TermGroup("g", enabled=False)])
    assert [part.name for part in off.enabled] == ["c"]
    assert list(off.evaluate(batch).terms) == ["c"]
    assert off.evaluate(batch).groups == {}
    alone = RewardSpec([Term("env", "reward", group="g")], groups=[TermGroup("g")])
    assert not alone.is_identity  # it is measured, and pays the same
    assert alone.evaluate(batch).total.tobytes() == RewardSpec.env().evaluate(batch).total.tobytes()
    empty = RewardSpec([Term("c", "x", weight=0)], groups=[TermGroup("g"), TermGroup("k", 2.0, combine="3")])
    assert empty.evaluate(batch).total.tolist() == [6.0] * 12


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(expressions, st.sampled_from([1.0, -0.3, 0.0]), st.sampled_from([None, "g", "h"])),
             min_size=2, max_size=5),
    st.sampled_from([None, "tanh(g) - h", "min(g, h, 2)"]), st.integers(1, 30), st.lists(st.integers(0, 30), max_size=6),
)  # fmt: skip
def test_any_split_of_the_batch_gives_equal_bytes(parts, combine, n, cuts):
    try:
        terms = [Term(f"t{i}", text, weight, group=group) for i, (text, weight, group) in enumerate(parts)]
    except ExpressionError:
        return
    members = " * ".join([part.name for part in terms if part.group == "h"] or ["1"])
    spec = RewardSpec(
        [*terms, Shaping("s", "hypot(x, y)", 0.97, group="g")],
        combine=combine,
        groups=[TermGroup("g", 0.3), TermGroup("h", "lin_2", combine=members)],
    )
    batch = make_batch(n, seed=n)
    whole = spec.evaluate(batch, progress=0.5)
    for cut in (cuts, list(range(n))):
        results = [spec.evaluate(part, progress=0.5) for part in pieces(batch, cut)]
        assert np.concatenate([r.total for r in results]).tobytes() == whole.total.tobytes()
        for name, values in whole.groups.items():
            assert np.concatenate([r.groups[name] for r in results]).tobytes() == values.tobytes()


def test_a_long_batch_equals_its_halves():
    batch = make_batch(20_001)
    spec = RewardSpec(
        [Term("a", "exp(x) / y", 0.3, group="g"), Term("b", "sin(vx) ** 3"), Term("c", "vy", group="g")],
        groups=[TermGroup("g", -2.0, combine="a * c")],
    )
    whole = spec.evaluate(batch)
    halves = [spec.evaluate(part) for part in pieces(batch, [10_007])]
    assert np.concatenate([one.total for one in halves]).tobytes() == whole.total.tobytes()
    assert np.concatenate([one.groups["g"] for one in halves]).tobytes() == whole.groups["g"].tobytes()


def test_files_hold_groups_and_designs_without_them_are_written_as_before():
    design = Design(
        RewardSpec(
            [Term("env", "reward"), Term("a", "x", group="g"), Shaping("s", "x", group="h")],
            combine="env + g * h",
            groups=[TermGroup("g", "lin_1", combine="a**2"), TermGroup("h", 0.5, enabled=False)],
        )
    )
    assert design.to_dict()["reward"]["groups"] == [
        {"name": "g", "weight": "lin_1", "combine": "a**2"},
        {"name": "h", "weight": 0.5, "enabled": False},
    ]
    assert design.to_dict()["reward"]["terms"][1] == {"name": "a", "expression": "x", "weight": 1.0, "group": "g"}  # fmt: skip
    again = Design.from_yaml(design.to_yaml())
    assert again == design
    assert again.fingerprint() == design.fingerprint()
    plain = Design(RewardSpec([Term("env", "reward"), Shaping("s", "x")]))
    assert list(plain.to_dict()["reward"]) == ["terms"]
    assert plain.fingerprint() == "f4e432bfd4b6cd20cd964e7a18ad24e13149d225f6e938552034f9a3a0583f1b"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RewardSpec([Term("a", "x", group="safty")], groups=[TermGroup("safety")]),
         r"'a' is in the group 'safty', which is not there\. Did you mean 'safety'\?.* Add rlnb\.TermGroup\('safty'\)"),
        (lambda: RewardSpec([Term("g", "x")], groups=[TermGroup("g")]), "A term and a group are both called 'g'"),
        (lambda: RewardSpec([Term("a", "x")], groups=[TermGroup("g"), TermGroup("g")]), "Two groups are called 'g'"),
        (lambda: RewardSpec([Term("a", "x")], groups="g"), "groups of a reward are rlnb.TermGroup, not 'g'"),
        (lambda: RewardSpec([Term("a", "x", group="g")], "a + 1", [TermGroup("g")]),
         "'a' in 'a \\+ 1' is in the group 'g'; write the group's name instead"),
        (lambda: RewardSpec([Term("a", "x", group="g"), Term("b", "y")], groups=[TermGroup("g", combine="a + b")]),
         "'b' in 'a \\+ b' is not a known name"),
        (lambda: RewardSpec([Shaping("s", "x", group="g")], groups=[TermGroup("g", "lin_1")]),
         "shaping 's' is in the group 'g' of weight 'lin_1'; a potential whose scale changes"),
        (lambda: TermGroup("a b"), "'a b' cannot be a name"),
        (lambda: TermGroup("g", weight="heavy"), "weight of group 'g' is 'heavy'"),
        (lambda: TermGroup("g", combine=5), "combine of group 'g' is 5; write an expression"),
        (lambda: TermGroup("g", combine="a +"), "In 'g': 'a \\+' is not an expression"),
        (lambda: TermGroup("g", enabled=1), "enabled of group 'g' is 1; it must be true or false"),
        (lambda: Term("a", "x", group=3), "group of term 'a' is 3; it must be a group's name"),
        (lambda: RewardSpec([Term("a", "x")], combine=3), "combine of the reward is 3"),
        (lambda: Design.from_dict({"reward": {"terms": [{"name": "a", "expression": "x"}], "groups": [{"name": "g", "wieght": 2}]}}),
         r"reward\.groups\[0\] has the unknown key 'wieght'\. Did you mean 'weight'"),
        (lambda: Design.from_dict({"reward": {"terms": [], "groups": {"g": 1}}}), r"reward\.groups is .*must be a list of groups"),
    ],
)  # fmt: skip
def test_bad_groups_are_refused(make, message):
    with pytest.raises(DesignError, match=message):
        make()
