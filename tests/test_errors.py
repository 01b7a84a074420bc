"""How an error looks below a cell: the sentence and the user's own lines, not rlnb's insides."""

from __future__ import annotations

import contextlib
import io

import pytest

import rlnb
from rlnb.errors import ExperimentError, RlnbError, UsageError


def shown(source: str, namespace: dict | None = None) -> str:
    """Runs a cell in IPython and returns the error it prints."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.user_ns.update(namespace or {})
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        shell.run_cell(source)
    return out.getvalue().replace("\x1b[31m", "").replace("\x1b[0m", "").strip()


def test_a_cell_shows_the_sentence_and_its_own_line():
    text = shown(
        "x = 1\nrlnb.Experiment('cart', env='CartPole-v1', total_timesteps=100, gama=0.9)", {"rlnb": rlnb}
    )
    first, *rest = text.splitlines()
    assert first.startswith("ExperimentError: PPO has no argument 'gama'. Did you mean 'gamma'?")
    assert rest == ["  line 2: rlnb.Experiment('cart', env='CartPole-v1', total_timesteps=100, gama=0.9)"]


def test_the_lines_of_a_cause_are_shown_too():
    source = "def reward():\n    return 1 / 0\ntry:\n    reward()\nexcept ZeroDivisionError as e:\n    raise Bad('no') from e"
    lines = shown(source, {"Bad": UsageError}).splitlines()
    assert lines == [
        "UsageError: no",
        "  line 6: raise Bad('no') from e",
        "  line 4: reward()",
        "  line 2: return 1 / 0",
    ]


def test_an_error_that_was_never_raised_is_its_sentence():
    assert RlnbError("gone")._render_traceback_() == ["\x1b[31mRlnbError\x1b[0m: gone"]


def test_outside_ipython_nothing_is_hidden():
    with pytest.raises(ExperimentError) as caught:
        rlnb.Experiment("cart", env="CartPole-v1", total_timesteps=-1)
    assert len(caught.traceback) > 1
