"""Expressions: what they compute, what they refuse, and that a batch may be cut anywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb.design.expressions.expression import BLOCK, Expression, compile_expression
from rlnb.errors import ExpressionError
from tests.design.batches import expressions, make_batch, pieces

X = np.array([-2.0, -0.5, 0.0, 0.25, 3.0])
Y = np.array([1.0, -1.0, 2.0, 0.0, -3.0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x + 2 * y", X + 2 * Y),
        ("-abs(x) * (y < 0.2)", -np.abs(X) * (Y < 0.2)),
        ("x ** 2 - y ** 3", X * X - np.power(Y, 3.0)),
        ("x if y > 0 else -y", np.where(Y > 0, X, -Y)),
        ("where(x > 0 and y < 0, 1, 0)", [0, 0, 0, 0, 1]),
        ("-1 < x < 1", [0, 1, 1, 1, 0]),
        ("not x", [0, 0, 1, 0, 0]),
        ("(x > 0) + (y > 0)", [1, 0, 1, 1, 1]),
        ("(x > 0) - (y > 0)", [-1, 0, -1, 1, 1]),
        ("-(x > 0)", [0, 0, 0, -1, -1]),
        ("(x > 0) | ~(y > 0)", [0, 1, 0, 1, 1]),
        ("(x > 0) ^ (y > 0)", [1, 0, 1, 1, 1]),
        ("min(x, y, 0)", np.minimum(np.minimum(X, Y), 0)),
        ("clip(x, -1, 1)", np.clip(X, -1, 1)),
        ("x // 1 + x % 1", X),
        ("pow(x, 2)", X * X),
        ("True + x", 1 + X),
        ("pi", [np.pi] * 5),
        ("2 ** 0.5", [2**0.5] * 5),
        ('obs["odd name"] + 1', Y + 1),
        ("\n x\n + y ", X + Y),
    ],
)
def test_computes_like_numpy(text, expected):
    names = {"x": X, "y": Y, 'obs["odd name"]': Y}
    result = compile_expression(text, names).evaluate(names, rows=5)
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, np.asarray(expected, dtype=np.float64))


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 0, "empty"),
        ("  ", 0, "empty"),
        ("1 + x.__class__", 4, "no attribute access"),
        ("1 + np.exp(x)", 4, "Write exp without the 'np.'"),
        ("x + foo(y)", 4, "Did you mean 'floor'"),
        ("x + tanhh(y)", 4, "Did you mean 'tanh'"),
        ("x + vyy", 4, "'vyy' in .* is not a known name. Did you mean 'vy'"),
        ("y ** 1000", 0, "exponent '1000' is too large; at most 64"),
        ("pow(y, -65)", 0, "exponent"),
        ("2 ** (10 ** 10)", 0, "exponent|too large"),
        ("y ** nan", 0, "exponent"),
        ("(x > 0 & y)", 5, "parentheses"),
        ("'a' + x", 0, "not a number"),
        ("x + [1, 2]", 4, "not allowed"),
        ("lambda: 1", 0, "not allowed"),
        ("[x for x in y]", 0, "not allowed"),
        ("f'{x}'", 0, "not allowed"),
        ("x if y", 0, "not an expression"),
        ("x y", 2, "not an expression"),
        ("x; y", 1, "';' cannot stand here"),
        ("x # note", 2, "'#' cannot stand here"),
        ("1if x else 2", 0, "cannot stand here"),
        ("x[0]", 0, "Only names may stand in brackets"),
        ('ob["x"]', 0, "Did you mean 'obs'"),
        ("exp", 0, r"exp is a function; write exp\(…\)"),
        ("exp()", 0, "takes 1 argument"),
        ("min(x)", 0, "at least 2 argument"),
        ("clip(x, low=1)", 0, "plain arguments"),
        ("min(*x)", 0, "plain arguments"),
        ("x in y", 0, "'in' is not allowed"),
        ("x is y", 0, "'is' is not allowed"),
        ("(x := 1)", 1, "not allowed"),
        ("9" * 400, 0, "too large"),
        ("1j", 0, "not a number"),
        ("x @ y", 0, "not allowed"),
        ("x << 9", 0, "not allowed"),
        ("__import__('os').system('true')", 0, "no attribute access"),
        ("eval('1')", 0, "not a function"),
        ("exp.__self__", 0, "no attribute access"),
        ("-" * 1500 + "x", 51, "nested more than 50"),
        ("(" * 500 + "x" + ")" * 500, 200, "nested"),
        ("x" + "+x" * 300, None, "nested more than 50|more than 400"),
        ("min(" + ",".join(["x"] * 65) + ")", 0, "argument"),
        ("x" * 2001, 2000, "2001 characters; at most 2000"),
        ("äöü + x.y", 6, "no attribute access"),
        ("\x00", 0, "cannot stand here"),
    ],
)
def test_refuses_and_says_where(text, position, message):
    with pytest.raises(ExpressionError, match=message) as caught:
        compile_expression(text, ["x", "y", "vy", "äöü"])
    if position is not None:
        assert caught.value.position == position


def test_refuses_what_is_no_text():
    with pytest.raises(ExpressionError, match="An expression is a text"):
        compile_expression(3)  # type: ignore[arg-type]


def test_constants_are_float64_and_cannot_grow():
    expression = compile_expression("((10 ** 60) ** 60) ** 60")
    assert expression.evaluate({}, rows=2).tolist() == [np.inf, np.inf]


def test_names_are_listed_with_their_position():
    assert Expression('x + obs["vy"] * x').names == {"x": 0, 'obs["vy"]': 4}


def test_invalid_operations_are_silent_and_every_nan_has_the_same_bytes():
    x = np.array([np.nan, -np.nan, np.inf, -1.0])
    result = compile_expression("x - x + log(x)").evaluate({"x": x})
    assert np.isnan(result).all()
    assert set(result.view(np.int64)) == {np.array(np.nan).view(np.int64).item()}


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="xy()[]+-*/.<>=&|~!'\"_ 019eif,:@%^{}λ\n\t", max_size=60))
def test_hostile_text_is_refused_or_harmless(text):
    expression = _compiled(text)
    if expression is not None:
        assert expression.evaluate(dict.fromkeys(expression.names, X), rows=5).shape == (5,)


def _compiled(text: str) -> Expression | None:
    """Returns the expression, or None where it is refused with a position inside the text."""
    try:
        return compile_expression(text)
    except ExpressionError as caught:
        error = caught
    assert error.position is not None
    assert 0 <= error.position <= len(text) + 1
    return None


@settings(max_examples=150, deadline=None)
@given(expressions, st.integers(1, 40), st.lists(st.integers(0, 40), max_size=8), st.booleans())
def test_any_split_of_the_batch_gives_equal_bytes(text, n, cuts, spoil):
    batch = make_batch(n, seed=n)
    if spoil:
        rewards = batch.reward.copy()
        rewards[::3] = [np.nan, np.inf, -np.nan, -np.inf, 0.0, -0.0][n % 6]
        batch = batch.with_reward(rewards)
    expression = _compiled(text)
    if expression is None:
        return
    whole = expression.evaluate(batch.namespace, rows=n)
    for cut in ([*cuts], list(range(n))):
        parts = [expression.evaluate(part.namespace, rows=len(part)) for part in pieces(batch, cut)]
        assert np.concatenate(parts).tobytes() == whole.tobytes()


def test_blocks_of_a_long_batch_equal_its_parts():
    n = 2 * BLOCK + 17
    batch = make_batch(n)
    expression = compile_expression(
        "exp(-x**2) * sin(vy) + tanh(y) / (1 + abs(next_x)) ** 1.5", batch.namespace
    )
    whole = expression.evaluate(batch.namespace)
    for size in (1000, BLOCK + 1):
        parts = [expression.evaluate(batch.slice(slice(at, at + size)).namespace) for at in range(0, n, size)]
        assert np.concatenate(parts).tobytes() == whole.tobytes()


@settings(max_examples=200, deadline=None)
@given(expressions, st.integers(0, 1000))
def test_values_stay_within_derived_bounds(text, seed):
    batch = make_batch(50, seed=seed)
    expression = _compiled(text)
    if expression is None:
        return
    known = {
        name: (float(batch.namespace[name].min()), float(batch.namespace[name].max()))
        for name in expression.names
    }
    low, high = expression.bounds(known)
    values = expression.evaluate(batch.namespace, rows=50)
    values = values[~np.isnan(values)]
    assert low <= high
    assert (values >= low).all()
    assert (values <= high).all()
