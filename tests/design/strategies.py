"""Random designs: every kind of term and operation, with odd numbers and texts."""

from __future__ import annotations

import keyword
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from rlnb.design.design import Design
from rlnb.design.groups import TermGroup
from rlnb.design.operations.images import Grayscale, Resize, ToUnit
from rlnb.design.operations.stack import Stack
from rlnb.design.reward import RewardSpec, Shaping, Term
from rlnb.design.state import Clip, Delta, Derive, RunningZScore, Scale, Select, StateSpec, ZScore

_WORDS = st.sampled_from(["x", "vy", "soft_landing", "größe", "reward", "state", "rlnb", "a1"])
NAMES = _WORDS | st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: not keyword.iskeyword(name)
)
#: components may be called anything
_COMPONENTS = NAMES | st.sampled_from(
    ["it's", 'a "b"', "both ' and \"", "tab\t", "line\nbreak", "Höhe über", "\\"]
)
_FLOATS = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0])
_FINITE = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 1.0])
_POSITIVE = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
_PAIRS = st.tuples(_FLOATS, _FLOATS).map(lambda pair: tuple(sorted(pair)))
_TEXTS = st.sampled_from(
    ["reward", "1", "-abs(x) * (y < 0.2)", 'obs["a: b"] + 1', "x if y else 1", "é", "x\n + y", "~x", "1e5",
     "true + 1", "- x", "  x "]
)  # fmt: skip
_SOME = st.none() | st.lists(_COMPONENTS, min_size=1, max_size=3, unique=True)


def _between(kind: Any, *given: Any) -> Any:
    return _PAIRS.flatmap(lambda pair: st.builds(kind, *given, low=st.just(pair[0]), high=st.just(pair[1])))


_TERMS = st.builds(
    Term, NAMES, _TEXTS, weight=st.one_of(_FINITE, st.sampled_from(["lin_1", "lin_1e-3_2"])),
    clip=st.none() | _PAIRS, enabled=st.booleans(),
)  # fmt: skip
_PARTS = st.one_of(
    _TERMS,
    st.builds(Term, NAMES, python=NAMES, weight=_FINITE),
    st.builds(Shaping, NAMES, _TEXTS, gamma=st.floats(0, 1), weight=_FINITE, enabled=st.booleans()),
)
_GROUPS = st.builds(
    TermGroup,
    st.sampled_from(["safety", "speed"]),
    weight=_FINITE,
    combine=st.none() | st.just("1 + 2"),
    enabled=st.booleans(),
)
_OPERATIONS = st.one_of(
    st.builds(Stack, st.integers(2, 8), _SOME),
    st.builds(ToUnit),
    st.builds(Grayscale),
    st.builds(Resize, st.integers(1, 256), st.integers(1, 256)),
    st.builds(Select, st.lists(_COMPONENTS, min_size=1, max_size=4, unique=True)),
    st.builds(Derive, NAMES, _TEXTS),
    _between(Derive, NAMES, _TEXTS),
    st.builds(lambda name, mean, std: ZScore([name], [mean], [std]), _COMPONENTS, _FINITE, _POSITIVE),
    st.builds(RunningZScore, _SOME, _POSITIVE, _POSITIVE),
    _between(Clip, _SOME),
    st.builds(Delta, _SOME),
    st.builds(Scale, _SOME, _POSITIVE, _FINITE),
)


@st.composite
def designs(draw: Any) -> Design:
    """Designs, with and without combinations and groups."""
    terms = draw(st.lists(_PARTS, min_size=1, max_size=4, unique_by=lambda part: part.name))
    groups = draw(st.lists(_GROUPS, max_size=2, unique_by=lambda group: group.name))
    terms = [replace(part, group=draw(st.sampled_from([None, *(g.name for g in groups)]))) for part in terms]
    left = [part.name for part in terms if part.group is None] + [group.name for group in groups]
    combine = draw(st.none() | st.just(" + ".join(left)))
    return Design(RewardSpec(terms, combine, groups), StateSpec(draw(st.lists(_OPERATIONS, max_size=4))))
