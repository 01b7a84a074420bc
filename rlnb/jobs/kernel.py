"""The kernel of a job: ipykernel, tied to its supervisor. `python -m rlnb.jobs.kernel -f FILE`.

Started by the worker only. It takes the run's identity out of its environment before user code
can see it, ends together with its supervisor, and never leaves a process behind.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

from rlnb.jobs.processes import descendants, end_all, ends_by_sigterm, marked
from rlnb.run import identity
from rlnb.run.appending import redact_with
from rlnb.run.secrets import Redactor

#: Set by the worker: the descriptor whose end of file says that the supervisor is gone.
LIFELINE = "RLNB_LIFELINE"
#: Set by the worker: modules to import before the first cell, separated by commas.
PREIMPORT = "RLNB_PREIMPORT"

#: Makes the kernel the operating system's first choice when memory runs out, instead of the
#: supervisor or the user's Jupyter server.
_OOM_SCORE = 300


def main(argv: list[str] | None = None) -> None:
    """Runs a kernel until it is told to shut down or its supervisor is gone."""
    run = identity.bind_from_environment()
    redact_with(Redactor.from_environ().redact)
    lifeline = os.environ.pop(LIFELINE, None)
    if lifeline is not None:
        os.set_inheritable(int(lifeline), False)
        threading.Thread(target=_end_with_supervisor, args=(int(lifeline), run), daemon=True).start()
    _volunteer_for_oom()
    # The original stderr is kept, because ipykernel puts a pipe of its own in its place, which
    # nobody reads after a crash.
    faulthandler.enable(os.fdopen(os.dup(2), "w"))
    _preimport(os.environ.pop(PREIMPORT, ""))
    app = _make_app()
    app.initialize(sys.argv[1:] if argv is None else argv)
    faulthandler.enable(os.fdopen(os.dup(_original_stderr()), "w"))
    if app.shell is not None:
        app.shell.events.register("pre_run_cell", lambda info: identity.enter_cell(info.cell_id))
    signal.signal(signal.SIGTERM, _pass_on)
    app.start()


def _make_app() -> Any:
    """Makes the kernel application, without its watch over a parent's pid.

    ipykernel's own poller would leave at once when the worker dies, without ending what the cells
    have started; here the supervisor does that, and the lifeline when it is gone itself.
    """
    from ipykernel.ipkernel import IPythonKernel
    from ipykernel.kernelapp import IPKernelApp

    class CellKernel(IPythonKernel):
        def _process_children(self) -> list[Any]:
            """Leaves out at shutdown whose end by SIGTERM is waited for in vain, ten seconds and more.

            The supervisor ends what is left; multiprocessing's resource tracker, which ignores
            signals, sees the kernel's end and removes what was leaked.
            """
            children: list[Any] = super()._process_children()  # type: ignore[no-untyped-call]
            return [child for child in children if ends_by_sigterm(child.pid)]

    class JobKernelApp(IPKernelApp):
        def init_poller(self) -> None:
            self.poller = None

        def init_path(self) -> None:
            """Adds the working directory where IPython does, which it leaves out under `-P`."""
            if "" not in sys.path:
                at = next(
                    (n for n, p in enumerate(sys.path) if p.endswith(("site-packages", "dist-packages"))), 0
                )
                sys.path.insert(at, "")

        def log_connection_info(self) -> None:
            """Only remembers the sockets; how to connect is told by `rlnb inspect`."""
            self._ports = {
                name: getattr(self, f"{name}_port") for name in ("shell", "iopub", "stdin", "hb", "control")
            }

    return JobKernelApp.instance(kernel_class=CellKernel)


def _preimport(names: str) -> None:
    """Imports what training needs while the worker is still importing papermill.

    On the main thread and before any cell: nothing a cell does can meet a half-imported module.
    """
    for name in filter(None, names.split(",")):
        try:
            __import__(name)
        except ImportError:
            return  # training will say what is missing, in the cell that needs it


def _end_with_supervisor(lifeline: int, run: identity.JobIdentity | None) -> None:
    """Waits for the supervisor's end, then ends all that this kernel has started, then itself."""
    while os.read(lifeline, 1):
        pass
    me = os.getpid()
    try:
        end_all(lambda: descendants(me))
        if run is not None:
            # What left the tree before (a double fork) still carries the mark. The worker does, too:
            # it ends itself for the same reason, and killing it now would lose the notebook.
            end_all(lambda: marked(run.root) - {me, os.getppid()})
    finally:
        os.kill(me, signal.SIGKILL)


def _pass_on(number: int, frame: FrameType | None) -> None:
    """Lets a SIGTERM that a scheduler sends to every process reach those who can act on it.

    The supervisor gets the same signal and suspends the run. A forked child, which has inherited
    this handler, dies of the signal as it would have without it.
    """
    bound = identity.current()
    if bound is None:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return
    os.kill(os.getppid(), number)  # the worker passes it on to the supervisor


def _original_stderr() -> int:
    return int(getattr(sys.stderr, "_original_stdstream_copy", 2))


def _volunteer_for_oom() -> None:
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(str(_OOM_SCORE))
    except OSError:
        return  # not permitted here; the evidence is the same either way


if __name__ == "__main__":
    main()
