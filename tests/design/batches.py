"""Batches of transitions with every kind of column, and random expressions over them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from rlnb.design.transitions import Transitions

NAMES = ("x", "y", "vx", "vy")


def make_batch(n: int = 12, *, seed: int = 0, length: int = 5, vector_action: bool = False) -> Transitions:
    """Returns whole episodes of `length` steps (the last may be cut), ending in turn by both ends."""
    rng = np.random.default_rng(seed)
    obs = rng.standard_normal((n, 4)).astype(np.float32)
    next_obs = rng.standard_normal((n, 4)).astype(np.float32)
    t = np.arange(n, dtype=np.int64) % length
    next_obs[:-1][t[1:] > 0] = obs[1:][t[1:] > 0]
    last = t == length - 1
    episode = np.arange(n, dtype=np.int64) // length
    action = rng.standard_normal((n, 2)).astype(np.float32) if vector_action else rng.integers(0, 4, n)
    return Transitions.from_arrays(
        obs,
        next_obs,
        action,
        reward=rng.standard_normal(n),
        terminated=last & (episode % 2 == 0),
        truncated=last & (episode % 2 == 1),
        t=t,
        names=NAMES,
        infos={"speed": rng.random(n), "success": rng.random(n) < 0.5},
        signals={"force": rng.random(n)},
        labels={number: label for number, label in enumerate(("random", "trained")) if number in episode},
    )


_LEAVES = st.sampled_from(
    [*NAMES, "next_x", "action", "prev_action", "t", "reward", "force", "terminated", 'info["speed"]',
     "0.5", "2", "-1e-3", "pi", "1e300"]
)  # fmt: skip


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    one = ["abs", "exp", "log", "sin", "cos", "tan", "tanh", "sqrt", "cbrt", "square", "floor", "arctan", "sign",
           "arcsinh", "log1p", "expm1", "-", "not "]  # fmt: skip
    two = ["+", "-", "*", "/", "%", "//", "**", "<", "<=", "==", " and ", " or "]
    return st.one_of(
        st.builds(lambda f, a: f"{f}({a})", st.sampled_from(one), inner),
        st.builds(lambda f, a, b: f"(({a}){f}({b}))", st.sampled_from(two), inner, inner),
        st.builds(
            lambda f, a, b: f"{f}({a}, {b})",
            st.sampled_from(["min", "max", "hypot", "arctan2", "mod"]), inner, inner,
        ),
        st.builds(lambda a, b, c: f"where({a} > 0, {b}, {c})", inner, inner, inner),
        st.builds(lambda a: f"clip({a}, -1, 1)", inner),
        st.builds(lambda a, e: f"({a})**{e}", inner, st.sampled_from([2, 3, 0.5, -1])),
    )  # fmt: skip


#: texts of random expressions over `make_batch`'s names
expressions = st.recursive(_LEAVES, _grow, max_leaves=8)


def pieces(batch: Transitions, cuts: list[int]) -> list[Transitions]:
    """Cuts a batch at the given rows."""
    ends = [0, *sorted({cut % (len(batch) + 1) for cut in cuts}), len(batch)]
    return [batch.slice(slice(a, b)) for a, b in pairwise(ends) if b > a]
