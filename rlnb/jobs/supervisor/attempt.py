"""The processes of one attempt: a worker, its kernel, and whatever they start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping

from rlnb.jobs.processes import descendants, end_all
from rlnb.jobs.survivors import remove_sockets
from rlnb.run.layout import RunLayout, read_json


class AttemptProcesses:
    """Starts and ends the worker of one attempt.

    Two pipes tie the attempt to this process. The worker reads commands from its standard input;
    the kernel holds the reading end of another that is never written to. When this process dies,
    however it does, both see the end of file and end themselves.
    """

    def __init__(self, layout: RunLayout, attempt: int) -> None:
        self.layout, self.attempt = layout, attempt
        self.exit_code: int | None = None
        self.killed = False
        self._asked = False
        self._popen: subprocess.Popen[bytes] | None = None
        self._lifeline: int | None = None

    def start(self, environ: Mapping[str, str]) -> None:
        """Starts the worker."""
        remove_sockets(self.layout)
        for stale in (self.layout.worker_json, self.layout.kernel_json, self.layout.progress):
            stale.unlink(missing_ok=True)
        reading, self._lifeline = os.pipe()
        try:
            # -P: a module of the user's that is named like one of the standard library must not
            # be found first.
            self._popen = subprocess.Popen(
                [sys.executable, "-P", "-m", "rlnb.jobs.worker", os.fspath(self.layout.root),
                 "--attempt", str(self.attempt), "--lifeline", str(reading)],
                stdin=subprocess.PIPE, env=dict(environ), pass_fds=(reading,), cwd=self.layout.root,
            )  # fmt: skip
        finally:
            os.close(reading)

    @property
    def pid(self) -> int:
        """The worker's pid."""
        assert self._popen is not None
        return self._popen.pid

    def roles(self, *, spare: Iterable[int]) -> dict[int, str]:
        """Returns pid → role of all below this process except `spare`: what left its parents is there, too."""
        roles = dict.fromkeys(descendants(os.getpid(), spare=spare), "descendant")
        kernel = (read_json(self.layout.kernel_json) or {}).get("pid")
        if kernel in roles:
            roles[kernel] = "kernel"
        return {**roles, self.pid: "worker"}

    def note_exit(self, exits: Mapping[int, int]) -> None:
        """Takes the worker's exit code from what the supervisor reaped."""
        if self.exit_code is None and self.pid in exits:
            self.exit_code = exits[self.pid]
            assert self._popen is not None
            self._popen.returncode = self.exit_code  # or Popen would look for a child it no longer has

    def ask_to_end(self) -> None:
        """Asks the worker to save the notebook, end the kernel and exit."""
        assert self._popen is not None
        assert self._popen.stdin is not None
        if self._asked:
            return
        self._asked = True
        try:
            self._popen.stdin.write(b"end\n")
            self._popen.stdin.flush()
        except BrokenPipeError:
            return  # it is ending already

    def kill_worker(self) -> None:
        """Kills a worker that does not end when asked."""
        if self.exit_code is None:
            self.killed = True
            os.kill(self.pid, signal.SIGKILL)  # not reaped yet, so the pid is still its own

    def kill(self, *, spare: Iterable[int]) -> None:
        """Kills the worker and everything below this process except `spare` and its descendants.

        This process is a subreaper: what lost its parents in between is below it, too.
        """
        if self.exit_code is None:
            self.killed = True
        me, spared = os.getpid(), set(spare)
        end_all(lambda: descendants(me, spare=spared))

    def close(self) -> None:
        """Closes the pipes; call it when everything has ended."""
        if self._popen is not None and self._popen.stdin is not None:
            try:
                self._popen.stdin.close()
            except BrokenPipeError:
                pass  # an unread command of a worker that died
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        remove_sockets(self.layout)


def reap() -> dict[int, int]:
    """Collects all ended children, adopted orphans included: pid → exit code (negative: signal)."""
    exits: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return exits
        if pid == 0:
            return exits
        exits[pid] = os.waitstatus_to_exitcode(status)
