"""What really ran: the kernel's cells in order, with their source and whether they succeeded.

`install()` is called by `import rlnb` inside IPython. Cells that ran earlier are taken from
IPython's own history, which knows their source and errors but neither their ids nor their times.
Only the standard library is imported here, because every `import rlnb` in a notebook pays for it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class CellRun:
    """One execution of one cell.

    Attributes:
        source: what the user typed, magics included.
        cell_id: the frontend's id of the cell (JupyterLab: the file's; VS Code: its own), or None.
        started: seconds since the epoch, or None when it ran before rlnb was imported.
        ok: whether it ended without an error; None while it runs.
    """

    source: str
    cell_id: str | None = None
    started: float | None = None
    ok: bool | None = None


class Recorder:
    """Collects the runs of one IPython shell.

    Args:
        shell: the `InteractiveShell` to listen to.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._runs: list[CellRun] = _history(shell)
        self._calls = 0
        source = _current_source(shell)
        if source is not None and self._runs and self._runs[-1].source == source:
            # The cell that imports rlnb is running now; its start is not known, so the present
            # stands for it: the file can hardly have been saved in between.
            self._runs[-1] = CellRun(source, _current_cell_id(shell), time.time())
        shell.events.register("pre_run_cell", self._before)
        shell.events.register("post_run_cell", self._after)

    @property
    def runs(self) -> list[CellRun]:
        """All runs so far, oldest first; the last may still be running (`ok` is None)."""
        return list(self._runs)

    @property
    def running(self) -> CellRun | None:
        """The run in progress, or None between cells."""
        return self._runs[-1] if self._runs and self._runs[-1].ok is None else None

    @property
    def namespace(self) -> dict[str, Any]:
        """The user's variables."""
        namespace: dict[str, Any] = self._shell.user_ns
        return namespace

    def count_call(self) -> int:
        """Count one `promote()` in the running cell; returns 1 for the first."""
        self._calls += 1
        return self._calls

    def _before(self, info: Any) -> None:
        if info.store_history and info.raw_cell.strip():
            self._calls = 0
            self._runs.append(CellRun(info.raw_cell, getattr(info, "cell_id", None), time.time()))

    def _after(self, result: Any) -> None:
        info = result.info
        if info is None or not info.store_history or not self._runs or self._runs[-1].ok is not None:
            return
        last = self._runs[-1]
        if last.source == info.raw_cell:
            self._runs[-1] = replace(last, ok=bool(result.success), cell_id=info.cell_id or last.cell_id)


def install() -> Recorder | None:
    """Start recording in the IPython shell of this process; does nothing elsewhere.

    Returns:
        The shell's recorder, the same one at every call, or None outside IPython.
    """
    get_ipython: Callable[[], Any] | None = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get_ipython() if get_ipython is not None else None
    if shell is None:
        return None
    # Kept on the shell and not in this module: a reloaded module must not listen twice.
    recorder = getattr(shell, "_rlnb_recorder", None)
    if recorder is None:
        recorder = shell._rlnb_recorder = Recorder(shell)
    result: Recorder = recorder
    return result


def _history(shell: Any) -> list[CellRun]:
    """The runs before rlnb was imported; the newest is the cell that imports it."""
    manager = getattr(shell, "history_manager", None)
    if manager is None:
        return []
    failed = getattr(manager, "exceptions", {})
    return [
        CellRun(source, ok=number not in failed)
        for number, source in enumerate(manager.input_hist_raw)
        if number > 0 and source.strip()
    ]


def _current_source(shell: Any) -> str | None:
    """The source of the running cell, or None when none runs.

    IPython versions differ in when they move the execution counter on, so the call stack decides.
    """
    manager = getattr(shell, "history_manager", None)
    frame = sys._getframe()
    while manager is not None and frame is not None:
        if frame.f_code.co_name == "run_code" and frame.f_locals.get("self") is shell:
            source: str = manager.input_hist_raw[-1]
            return source
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _current_cell_id(shell: Any) -> str | None:
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return None
    metadata = kernel.get_parent("shell").get("metadata", {})
    cell_id = metadata.get("cellId")
    return str(cell_id) if cell_id is not None else None
