"""Looking into a running job: an expression, evaluated beside the running cell in a subshell.

A second client on the kernel's local sockets opens an ipykernel subshell, so that the answer comes
while a cell trains, and closes it again. The expression is evaluated silently: no output reaches
the executed notebook and no history is kept. Looking can still change what a program does, so the
run is marked as inspected.
"""

from __future__ import annotations

import ast
import contextlib
import json
import time
from collections.abc import Iterator
from queue import Empty
from typing import Any

from rlnb.errors import RunError, UsageError
from rlnb.run import control
from rlnb.run.control import Verb
from rlnb.run.host import ProcessIdentity
from rlnb.run.layout import RunLayout, read_json
from rlnb.run.status import observe

#: Evaluated in the job: the names a cell has made, with their types.
_VISIBLE = (
    "{__n: type(__v).__module__ + '.' + type(__v).__qualname__ for __n, __v in list(get_ipython().user_ns.items())"
    " if not __n.startswith('_') and __n not in get_ipython().user_ns_hidden}"
)
_TIMEOUT = 30.0


def inspect(layout: RunLayout, expression: str, *, timeout: float = _TIMEOUT) -> str:
    """Evaluates an expression in the running job and returns its repr.

    Args:
        layout: a run whose kernel runs on this machine.
        expression: one Python expression over the job's variables.
        timeout: seconds to wait for the answer.

    Raises:
        UsageError: it is not one expression.
        RunError: no kernel of this run runs here, it does not answer, or the expression raised.
    """
    try:
        ast.parse(expression, mode="eval")
    except SyntaxError as error:
        raise UsageError(
            f"{expression!r} is not one Python expression ({error.msg}); inspect() evaluates, it does not execute."
        ) from None
    with _subshell(layout, timeout) as subshell:
        control.request(layout, Verb.INSPECTED, expression=expression)
        return subshell.evaluate(expression)


def visible(layout: RunLayout, *, timeout: float = _TIMEOUT) -> dict[str, str]:
    """Returns what can be looked at in the running job: name → type.

    Raises:
        RunError: no kernel of this run runs here, or it does not answer.
    """
    with _subshell(layout, timeout) as subshell:
        control.request(layout, Verb.INSPECTED, expression="(names and types)")
        names: dict[str, str] = ast.literal_eval(subshell.evaluate(f"__import__('json').dumps({_VISIBLE})"))
    return dict(sorted(json.loads(str(names)).items()))


class _Subshell:
    """A subshell of a kernel, open for one client."""

    def __init__(self, client: Any, subshell_id: str, deadline: float) -> None:
        self._client, self._id, self._deadline = client, subshell_id, deadline

    def evaluate(self, expression: str) -> str:
        content = {
            "code": "", "silent": True, "store_history": False, "user_expressions": {"value": expression},
            "allow_stdin": False, "stop_on_error": False,
        }  # fmt: skip
        message = self._client.session.msg("execute_request", content)
        message["header"]["subshell_id"] = self._id
        self._client.shell_channel.send(message)
        reply = _reply_to(self._client.shell_channel, message, self._deadline)
        answer = reply["content"].get("user_expressions", {}).get("value", {})
        if answer.get("status") == "ok":
            return str(answer["data"]["text/plain"])
        name, value = answer.get("ename", "an error"), answer.get("evalue", "")
        raise RunError(f"{expression!r} raised {name} in the job: {value}")


@contextlib.contextmanager
def _subshell(layout: RunLayout, timeout: float) -> Iterator[_Subshell]:
    about = read_json(layout.kernel_json) or {}
    if not about or not ProcessIdentity.from_dict(about).alive:
        where = about.get("host")
        seen = observe(layout)
        elsewhere = where and not ProcessIdentity.from_dict(about).here
        raise RunError(
            f"No kernel of {layout.id} runs on this machine"
            + (f"; it runs on {where}, inspect it there." if elsewhere else f": the run is {seen.state}.")
        )
    from jupyter_client.blocking.client import BlockingKernelClient

    deadline = time.monotonic() + timeout
    client = BlockingKernelClient(connection_file=str(about["connection_file"]))
    client.load_connection_file()
    client.start_channels(iopub=False, stdin=False, hb=False)
    try:
        subshell_id = _control(client, "create_subshell_request", {}, deadline)["subshell_id"]
        try:
            yield _Subshell(client, subshell_id, deadline)
        finally:
            _control(client, "delete_subshell_request", {"subshell_id": subshell_id}, time.monotonic() + 5.0)
    finally:
        client.stop_channels()
        client.context.destroy(linger=0)


def _control(client: Any, kind: str, content: dict[str, Any], deadline: float) -> dict[str, Any]:
    message = client.session.msg(kind, content)
    client.control_channel.send(message)
    reply: dict[str, Any] = _reply_to(client.control_channel, message, deadline)["content"]
    if reply.get("status") != "ok":
        raise RunError(f"The job's kernel refused {kind}: {reply.get('evalue', reply)}.")
    return reply


def _reply_to(channel: Any, message: dict[str, Any], deadline: float) -> dict[str, Any]:
    while (left := deadline - time.monotonic()) > 0:
        try:
            reply: dict[str, Any] = channel.get_msg(timeout=left)
        except Empty:
            break
        if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
            return reply
    raise RunError(
        "The job's kernel did not answer in time: it is starting, or it holds Python's interpreter lock; try again."
    )
