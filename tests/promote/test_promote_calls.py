"""Which promote() call the command line means."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.errors import CaptureError, UsageError
from rlnb.jobs.capture.promote_calls import choose_target, find_promotes
from tests.promote.notebooks import code, notebook

TWO = (
    'a = rlnb.Experiment("cart", env=1)\nb = Experiment("lander")',
    "job = rlnb.promote(a); other = promote(b)",
)


def test_calls_are_listed_in_order_with_their_names(tmp_path: Path) -> None:
    calls = find_promotes(
        notebook(
            tmp_path,
            *TWO,
            "rlnb.promote(exp=Experiment(name='third'))",
            code("promote(x)", "n", "notebook-only"),
        )
    )
    assert [(c.cell, c.call, c.names, c.label) for c in calls] == [
        ("c2", 1, ("a", "cart"), "cart"),
        ("c2", 2, ("b", "lander"), "lander"),
        ("c3", 1, ("third",), "third"),
    ]


def test_the_only_call_needs_no_name(tmp_path: Path) -> None:
    call = choose_target(notebook(tmp_path, "promote(lab.experiment('PPO'))"), None)
    assert call is not None
    assert (call.cell, call.call) == ("c1", 1)


@pytest.mark.parametrize(("name", "number"), [("cart", 1), ("lander", 2), ("b", 2)])
def test_a_call_is_chosen_by_name_or_variable(tmp_path: Path, name: str, number: int) -> None:
    call = choose_target(notebook(tmp_path, *TWO), name)
    assert call is not None
    assert call.call == number


def test_calls_in_loops_and_functions_are_left_to_the_job(tmp_path: Path) -> None:
    assert choose_target(notebook(tmp_path, "for s in range(3):\n    promote(exp)"), None) is None
    assert choose_target(notebook(tmp_path, "jobs = [promote(e) for e in exps]"), None) is None
    assert choose_target(notebook(tmp_path, "promote(f(1))", "promote(g(2))"), "some") is None


def test_bad_choices(tmp_path: Path) -> None:
    with pytest.raises(
        CaptureError, match=r"nb.ipynb has no promote\(\) call; add a cell: job = rlnb.promote\(exp\)"
    ):
        choose_target(notebook(tmp_path, "a = 1"), None)
    with pytest.raises(
        UsageError, match=r"has 2 promote\(\) calls; say which with --experiment NAME \(a, cart, b, lander\)"
    ):
        choose_target(notebook(tmp_path, *TWO), None)
    with pytest.raises(
        UsageError,
        match=r"No promote\(\) call of nb.ipynb is for an experiment 'landr' .* Did you mean 'lander'",
    ):
        choose_target(notebook(tmp_path, *TWO), "landr")
    with pytest.raises(UsageError, match=r"2 promote\(\) calls of nb.ipynb are for 'exp'"):
        choose_target(notebook(tmp_path, "promote(exp)\npromote(exp)"), "exp")
