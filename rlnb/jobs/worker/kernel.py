"""Starting a job's kernel before papermill is there, and handing it to nbclient afterwards.

Importing papermill takes longer than starting a kernel, so the kernel is started first, with a
connection file written by hand. Sockets are IPC: parallel launches on TCP can collide on ports,
and nobody else on the network can connect.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rlnb import settings
from rlnb.jobs.kernel import LIFELINE, PREIMPORT
from rlnb.run.atomic import write_atomic
from rlnb.run.host import ProcessIdentity
from rlnb.run.layout import RunLayout, write_json

#: What training imports anyway.
TRAINING_MODULES = ("torch", "stable_baselines3")
#: A notebook that sets variables or threads expects to do so before these modules are imported.
_SETS_VARIABLES = ("environ", "putenv", "%env", "set_env")


class JobKernel:
    """A kernel process and the folder of its sockets.

    Args:
        layout: the run.
        environ: the kernel's environment.
        lifeline: descriptor that ends when the supervisor does.
        cwd: where cells run.
        preimport: modules to import while the worker is still busy.
    """

    def __init__(
        self, layout: RunLayout, environ: Mapping[str, str], *, lifeline: int | None, cwd: Path,
        preimport: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.layout = layout
        self.folder = Path(tempfile.mkdtemp(prefix="k-", dir=settings.sockets_dir()))
        self.connection_file = self.folder / "connection.json"
        write_atomic(self.connection_file, json.dumps(_connection(self.folder / "s")), durable=False)
        self.connection_file.chmod(0o600)
        more = {PREIMPORT: ",".join(preimport)}
        if lifeline is not None:
            more[LIFELINE] = str(lifeline)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "rlnb.jobs.kernel", "-f", os.fspath(self.connection_file)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**environ, **more}, cwd=cwd, pass_fds=() if lifeline is None else (lifeline,),
            start_new_session=True,  # what cells send to their process group must not reach the worker
        )  # fmt: skip
        write_json(
            layout.kernel_json,
            {"pid": self.process.pid, "pid_start": ProcessIdentity.of(self.process.pid).pid_start,
             "boot_id": ProcessIdentity.of().boot_id, "host": ProcessIdentity.of().host,
             "connection_file": os.fspath(self.connection_file)},
            durable=False,
        )  # fmt: skip

    def close(self) -> None:
        """Removes the sockets; call it when the kernel has ended."""
        shutil.rmtree(self.folder, ignore_errors=True)


def modules_to_preimport(sources: list[str]) -> tuple[str, ...]:
    """Returns what the kernel may import before the first cell.

    Args:
        sources: of the cells the job runs. When one of them touches environment variables, nothing
            is imported early: some libraries read their variables at import, and the cell must come
            first as it does in the prototype.
    """
    if any(word in source for source in sources for word in _SETS_VARIABLES):
        return ()
    return TRAINING_MODULES


def _connection(prefix: Path) -> dict[str, object]:
    """A connection file's content: an IPC "port" is a suffix of the sockets' path."""
    ports = {
        f"{name}_port": n for n, name in enumerate(("shell", "iopub", "stdin", "control", "hb"), start=1)
    }
    return {
        **ports, "ip": os.fspath(prefix), "transport": "ipc", "key": secrets.token_hex(32),
        "signature_scheme": "hmac-sha256", "kernel_name": "python3",
    }  # fmt: skip
