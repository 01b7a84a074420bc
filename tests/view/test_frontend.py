from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from rlnb.run import identity
from rlnb.view.frontend import FrontEnd, front_end


@pytest.fixture
def shell(monkeypatch):
    """Makes IPython's shell of this process what the test says."""
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)

    def become(**attributes):
        made = SimpleNamespace(user_ns={}, **attributes)
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: made))
        return made

    return become


def test_plain_python_and_terminal_ipython_are_terminals(shell, monkeypatch):
    shell()
    assert front_end() is FrontEnd.TERMINAL
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert front_end() is FrontEnd.TERMINAL
    monkeypatch.delitem(sys.modules, "IPython")
    assert front_end() is FrontEnd.TERMINAL


def test_jupyterlab_and_vs_code_are_live(shell, monkeypatch):
    made = shell(kernel=object())
    assert front_end() is FrontEnd.DOCUMENT  # papermill, nbconvert
    made.user_ns["__vsc_ipynb_file__"] = "/a.ipynb"
    assert front_end() is FrontEnd.LIVE
    made.user_ns.clear()
    monkeypatch.setenv("JPY_SESSION_NAME", "/a.ipynb")
    assert front_end() is FrontEnd.LIVE


def test_a_job_writes_a_document_whatever_it_inherited(shell, monkeypatch, tmp_path):
    shell(kernel=object())
    monkeypatch.setenv("JPY_SESSION_NAME", "/a.ipynb")
    identity.bind(identity.JobIdentity(tmp_path, 1))
    try:
        assert front_end() is FrontEnd.DOCUMENT
    finally:
        identity.bind(None)
