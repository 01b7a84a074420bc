"""What cells print: redacted, merged, and kept within bounds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rlnb.run.layout import RunLayout
from rlnb.run.secrets import RedactedStream, Redactor
from rlnb.run.writing import try_to_write

#: Characters kept of the beginning and of the end of one long stream in the notebook. Everything
#: is in logs/stdout.log; a notebook with all output of a day's training could not be opened.
HEAD, TAIL = 50_000, 150_000
LEFT_OUT = "\n… left out here; all of it is in logs/stdout.log …\n"

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def without_colours(text: str) -> str:
    """Removes terminal control sequences."""
    return _ANSI.sub("", text)


def append_text(old: str, new: str) -> str:
    """Appends to a stream's text as a terminal would show it.

    A carriage return starts its line anew, so that a progress bar stays one line. Too long a text
    loses its middle.
    """
    if "\r" in new or old.endswith("\r"):
        start = old.rfind("\n") + 1
        *whole, last = (old[start:] + new).split("\n")
        text = (
            old[:start]
            + "".join(f"{_overwrite(line).rstrip(chr(13))}\n" for line in whole)
            + _overwrite(last)
        )
    else:
        text = old + new
    if len(text) > 2 * (HEAD + TAIL):
        text = text[:HEAD] + LEFT_OUT + text[-TAIL:]
    return text


def _overwrite(line: str) -> str:
    """One line after its carriage returns; a last one is kept until something follows it."""
    body = line.rstrip("\r")
    return body[body.rfind("\r") + 1 :] + ("\r" if len(body) < len(line) else "")


class OutputFilter:
    """Redacts a kernel's messages and writes what they print to the log.

    Args:
        layout: the run, for its stdout.log.
        redactor: knows the secrets.
    """

    def __init__(self, layout: RunLayout, redactor: Redactor) -> None:
        self._layout, self._redactor = layout, redactor
        self._streams: dict[str, RedactedStream] = {}

    def redact(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the message as it may be kept, or None when nothing of it is left.

        A stream's end may be held back, because it could be the beginning of a secret.
        """
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            name = content["name"]
            text = self._streams.setdefault(name, self._redactor.stream()).write(content["text"])
            if not text:
                return None
            self.log(text)
            return {**message, "content": {**content, "text": text}}
        if kind in ("error", "display_data", "execute_result", "update_display_data") or kind.startswith(
            "comm"
        ):
            content = self._redactor.redact_json(content)
            if kind == "error":
                self.log("\n".join(without_colours(line) for line in content["traceback"]) + "\n")
            return {**message, "content": content}
        return message

    def rest(self) -> Iterator[Mapping[str, str]]:
        """Yields the stream contents that were held back; call it at the end of a cell."""
        for name, stream in self._streams.items():
            if text := stream.flush():
                self.log(text)
                yield {"name": name, "text": text}

    def log(self, text: str) -> None:
        """Appends redacted text to logs/stdout.log."""
        try_to_write(lambda: self._append(text.encode(errors="backslashreplace")))

    def _append(self, data: bytes) -> None:
        path = self._layout.stdout_log
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(handle, data)
        finally:
            os.close(handle)


def copy_raw_output(descriptor: int, outputs: OutputFilter, redactor: Redactor) -> None:
    """Copies what the kernel process itself prints to the log, until it ends.

    ipykernel takes over what cells and their children print; this is what is left, such as the
    trace of a crash.
    """
    stream = redactor.stream()
    while data := os.read(descriptor, 65536):
        if text := stream.write(data.decode(errors="backslashreplace")):
            outputs.log(text)
    if text := stream.flush():
        outputs.log(text)
