"""Which kind of reader is in front of this process: a live notebook, a document, or a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from typing import Any


class FrontEnd(StrEnum):
    """What can be shown here."""

    LIVE = "live"  # a notebook front end with a person before it: widgets work
    DOCUMENT = "document"  # a notebook that is executed for its file: images stay, widgets do not
    TERMINAL = "terminal"  # text only


def front_end() -> FrontEnd:
    """Finds out where output goes.

    A notebook front end names the notebook to its kernel (JupyterLab and Notebook by `JPY_SESSION_NAME`,
    VS Code by a variable); papermill and nbconvert do not, nor does a job of rlnb's own.
    """
    shell = interactive_shell()
    if shell is None or getattr(shell, "kernel", None) is None:
        return FrontEnd.TERMINAL
    from rlnb.run.identity import current

    if current() is not None:
        return FrontEnd.DOCUMENT
    named = os.environ.get("JPY_SESSION_NAME") or "__vsc_ipynb_file__" in shell.user_ns
    return FrontEnd.LIVE if named else FrontEnd.DOCUMENT


def interactive_shell() -> Any | None:
    """Returns IPython's shell when this process runs one; IPython is not imported for the question."""
    import sys

    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def after_each_cell(action: Callable[[], None]) -> Callable[[], None]:
    """Calls `action` after each cell that runs in this process; returns what ends that. Elsewhere nothing happens."""
    shell = interactive_shell()
    if shell is None:
        return lambda: None

    def run(*_: Any) -> None:
        action()

    shell.events.register("post_run_cell", run)
    return lambda: shell.events.unregister("post_run_cell", run)
