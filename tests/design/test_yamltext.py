from __future__ import annotations

import math

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb.design.yamltext import read_yaml, write_yaml
from rlnb.errors import DesignError

_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False),
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]) | st.sampled_from("\n"), max_size=12),
        st.sampled_from(["1e3", "yes", "~", "0x1", "1_000", "2026-11-30", "12:30", ".5", "*a", "&a", "- x", "a: b",
                         "null", "=", "<<", "", " ", "0o7", "-.inf", "1.", "!x", "%", "@", "`"]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abyn1.", min_size=1, max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(["a", "on", "y", "no"]), _VALUES))
def test_what_is_written_is_read_back(value):
    assert repr(read_yaml(write_yaml(value), "it")) == repr(value)


@given(st.floats())
def test_floats_are_exact(number):
    again = read_yaml(write_yaml({"a": number}), "it")["a"]
    assert type(again) is float
    assert math.isnan(again) if math.isnan(number) else repr(again) == repr(number)
    other = yaml.safe_load(write_yaml({"a": number}))["a"]
    assert math.isnan(other) if math.isnan(number) else other == number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001), ("1E5", 1e5), (".5", 0.5), ("-.Inf", -math.inf), ("+.inf", math.inf), ("007", 7), ("-3", -3),
        ("on", "on"), ("12:30", "12:30"), ("2026-11-30", "2026-11-30"), ("0x10", "0x10"), ("True", True), ("~", None),
        ("1_000", "1_000"),
    ],
)  # fmt: skip
def test_hand_written_scalars(text, value):
    assert repr(read_yaml(f"a: {text}", "it")["a"]) == repr(value)


@pytest.mark.parametrize("text", ["a: " + "[" * 3000, "a: !!python/name:os.system", "9" * 5000, "a: \ud800"])
def test_hostile_text_is_refused(text):
    with pytest.raises(DesignError, match="it cannot be read"):
        read_yaml(text, "it")
