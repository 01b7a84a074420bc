"""The client that runs cells in a job's kernel: nbclient's, with what a job needs besides."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Iterator
from queue import Empty
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient.util import ensure_async

from rlnb.jobs.worker.book import ExecutedNotebook
from rlnb.jobs.worker.kernel import JobKernel
from rlnb.jobs.worker.outputs import OutputFilter, append_text
from rlnb.jobs.worker.papermill import DeadKernelError, PapermillNotebookClient, new_output

#: Seconds a kernel has to shut down by itself after the last cell.
SHUTDOWN = 15.0


class AdoptedKernel(AsyncKernelManager):
    """A kernel manager for a kernel that runs already; starts and kills nothing."""

    def __init__(self, kernel: JobKernel) -> None:
        super().__init__(connection_file=os.fspath(kernel.connection_file))
        self.load_connection_file()
        self._process = kernel.process

    @property
    def has_kernel(self) -> bool:
        return True

    async def _async_is_alive(self) -> bool:
        """Asked by clients of this manager, under this name."""
        return self._process.poll() is None

    is_alive = _async_is_alive


class JobClient(PapermillNotebookClient):  # type: ignore[misc]
    """Runs cells: sends their ids along, redacts and merges what they print, saves in time."""

    def __init__(self, book: ExecutedNotebook, kernel: JobKernel, outputs: OutputFilter) -> None:
        super().__init__(
            book, kernel_name="python3", timeout=None, iopub_timeout=60, raise_on_iopub_timeout=False,
            on_cell_execute=self._before_cell, on_cell_error=self._note_error,
        )  # fmt: skip
        self._book, self._kernel, self._outputs = book, kernel, outputs
        self._loop: asyncio.AbstractEventLoop | None = None
        #: The kernel's own words about the last error, without what nbclient adds around them.
        self.last_traceback: list[str] = []

    @contextlib.contextmanager
    def setup_kernel(self, **_: Any) -> Iterator[None]:
        """Connects to the kernel; at the end lets it shut down by itself.

        Raises:
            DeadKernelError: the kernel ended before it answered.
        """
        self.km = AdoptedKernel(self._kernel)
        self.kc = self.km.client()
        try:
            run_sync(self._connect)()
            yield
            if self._kernel.process.poll() is None:
                self.kc.shutdown()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._kernel.process.wait(SHUTDOWN)
        finally:
            self.kc.stop_channels()

    async def _connect(self) -> None:
        """Waits until requests are answered and outputs arrive.

        nbclient's own way listens for a further 0.2 s to be sure that nothing comes.
        """
        while not self._bound():
            self._check_process()
            await asyncio.sleep(0.005)
        self.kc.start_channels(stdin=False, hb=False)
        self.kc.allow_stdin = False
        while True:
            request = self.kc.kernel_info()
            while (reply := await self._next(self.kc.shell_channel, 1.0)) is not None:
                if reply["msg_type"] == "kernel_info_reply":
                    self.nb.metadata["language_info"] = reply["content"]["language_info"]
                    self.kc._handle_kernel_info_reply(reply)
                    break
            else:
                continue
            # A subscription takes a moment to arrive: only an output that came proves it.
            while (output := await self._next(self.kc.iopub_channel, 0.1)) is not None:
                idle = output["content"].get("execution_state") == "idle"
                if idle and output["parent_header"].get("msg_id") == request:
                    return

    def _bound(self) -> bool:
        """Whether the kernel has bound its sockets; connecting earlier costs a retry's delay."""
        about = self.km.get_connection_info()
        ports = (about["shell_port"], about["iopub_port"], about["control_port"])
        return all(os.path.exists(f"{about['ip']}-{port}") for port in ports)

    async def _next(self, channel: Any, timeout: float) -> Any:
        try:
            return await ensure_async(channel.get_msg(timeout=timeout))
        except Empty:
            self._check_process()
            return None

    def _check_process(self) -> None:
        if self._kernel.process.poll() is not None:
            raise DeadKernelError("Kernel died before it was ready")

    async def _before_cell(self, cell: Any, cell_index: int) -> None:
        self._loop = asyncio.get_running_loop()
        # Makes the cell's id known to `pre_run_cell` in the kernel, as JupyterLab does.
        self.kc.session.metadata = {"cellId": cell.get("id")}

    async def _note_error(self, cell: Any, cell_index: int, execute_reply: dict[str, Any]) -> None:
        self.last_traceback = list(execute_reply["content"].get("traceback") or [])

    def wake(self) -> None:
        """Ends the wait for the running cell, from another thread: the kernel was ended on purpose."""
        loop, task = self._loop, self.task_poll_for_reply
        if loop is not None and task is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile, and the wait with it
                loop.call_soon_threadsafe(task.cancel)

    def run_cell(self, cell: Any, index: int) -> None:
        """Runs one cell; saves now and then even when no message arrives.

        Raises:
            CellExecutionError: the cell raised.
            DeadKernelError: the kernel ended.
        """
        run_sync(self._run_cell)(cell, index)

    async def _run_cell(self, cell: Any, index: int) -> None:
        attendant = asyncio.ensure_future(self._attend())
        try:
            await self.async_execute_cell(cell, index)
        finally:
            attendant.cancel()
            for content in self._outputs.rest():
                self._add_stream(cell.outputs, dict(content))

    async def _attend(self) -> None:
        """Saves in time, and ends the wait soon after the kernel has died."""
        while self._kernel.process.poll() is None:
            await asyncio.sleep(0.2)
            self._book.save_if_due()
        await asyncio.sleep(0.3)  # its last outputs may still be on their way
        if self.task_poll_for_reply is not None:
            self.task_poll_for_reply.cancel()

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        """Redacts a message before anything keeps it."""
        redacted = self._outputs.redact(msg)
        if redacted is None:
            return None
        if redacted["msg_type"].startswith("comm") or redacted["msg_type"] == "update_display_data":
            self._book.dirty = True
        return super().process_message(redacted, cell, cell_index)

    def output(self, outs: list[Any], msg: dict[str, Any], display_id: str | None, cell_index: int) -> Any:
        """Adds an output; text goes to the stream before it, as JupyterLab shows it."""
        hooked = self.output_hook_stack[msg["parent_header"].get("msg_id")]
        if msg["msg_type"] == "stream" and not hooked and not self.clear_before_next_output:
            return self._add_stream(outs, msg["content"])
        return super().output(outs, msg, display_id, cell_index)

    def _add_stream(self, outs: list[Any], content: dict[str, Any]) -> Any:
        last = outs[-1] if outs else None
        if last is not None and last.output_type == "stream" and last.name == content["name"]:
            last.text = append_text(last.text, content["text"])
            return last
        output = new_output("stream", name=content["name"], text=append_text("", content["text"]))
        outs.append(output)
        return output
