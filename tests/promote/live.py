"""A notebook that runs in a real kernel, the way JupyterLab drives it."""

from __future__ import annotations

import os
import re
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager

from rlnb.jobs.capture.notebook import Notebook
from rlnb.settings import sockets_dir


class LiveNotebook:
    """One notebook with a kernel of its own.

    Args:
        book: the saved notebook.
        named: tell the kernel the notebook's path, as a Jupyter server does.
        ids: send each cell's id along, as JupyterLab does and papermill does not.
    """

    def __init__(self, book: Notebook, *, named: bool = True, ids: bool = True, **environ: str) -> None:
        self.book, self.ids = book, ids
        environment = {**os.environ, **environ}
        environment.pop("JPY_SESSION_NAME", None)
        if named:
            environment["JPY_SESSION_NAME"] = str(book.path)
        repository = str(Path(__file__).parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [repository, os.environ.get("PYTHONPATH")]))
        # Sockets with a short path of their own: ports can be taken by a kernel of a parallel test.
        prefix = sockets_dir() / f"test-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.manager = KernelManager(kernel_name="python3", transport="ipc", ip=str(prefix))
        self.manager.kernel_spec.argv[0] = sys.executable
        self.manager.start_kernel(env=environment, cwd=str(book.path.parent))
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def __enter__(self) -> LiveNotebook:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()

    def run(self, source: str, cell_id: str | None = None, *, timeout: float = 120) -> str:
        """Executes a cell; returns its printed text, its result's text and its error, in order."""
        self.client.session.metadata = {"cellId": cell_id} if self.ids and cell_id else {}
        message_id = self.client.execute(source)
        texts: list[str] = []
        deadline = time.monotonic() + timeout
        while True:
            message: dict[str, Any] = self.client.get_iopub_msg(timeout=max(0.1, deadline - time.monotonic()))
            if message["parent_header"].get("msg_id") != message_id:
                continue
            content = message["content"]
            if message["msg_type"] == "stream":
                texts.append(content["text"])
            elif message["msg_type"] in ("execute_result", "display_data"):
                texts.append(content["data"].get("text/plain", ""))
            elif message["msg_type"] == "error":
                texts.append(re.sub(r"\x1b\[[0-9;]*m", "", f"{content['ename']}: {content['evalue']}"))
            elif message["msg_type"] == "status" and content["execution_state"] == "idle":
                self.client.get_shell_msg(timeout=30)
                return "\n".join(text.rstrip("\n") for text in texts)

    def run_all(self) -> str:
        """Executes the saved code cells in order; returns the last one's text."""
        text = ""
        for cell in self.book.code:
            text = self.run(cell.source, cell.id)
        return text
