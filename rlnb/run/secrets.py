"""Secrets: how they are recognised, and how they are kept out of everything a run writes.

A secret is the value of an environment variable whose name says so (`*_KEY`, `*_SECRET`, `*_TOKEN`,
`*PASSWORD*`, …) or the password in a URL's userinfo. Values under eight characters are not looked
for: replacing them would mangle ordinary text far more often than it would hide anything.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

#: Shorter values are not redacted (see the module's text).
SHORTEST = 8
PLACEHOLDER = "[redacted]"

_NAME = re.compile(
    r"(?:^|_)(?:KEY|SECRET|TOKEN|SK|PASSWD|PASSPHRASE)$|PASSWORD|SECRET_ACCESS|APIKEY|(?:^|_)PRIVATE_KEY",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/\s:@'\"]*):([^/\s@'\"]+)@")
#: The same without its scheme, which may have been shown before the rest arrived.
_PASSWORD = re.compile(r"://[^/\s:@'\"]*:([^/\s@'\"]+)@")
#: What may still become such a URL when more text arrives.
_OPEN_URL = re.compile(r"(?::|:/|://[^/\s@'\"]{0,300})$")
_SHAPES = {
    "an AWS or OBS access key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a GitHub token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})"),
    "a GitLab token": re.compile(r"\bglpat-[A-Za-z0-9_-]{16,}"),
    "a Hugging Face token": re.compile(r"\bhf_[A-Za-z0-9]{30,}"),
    "an API key": re.compile(r"\bsk-[A-Za-z0-9_-]{20,}"),
    "a Slack token": re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
    "a JSON web token": re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "a secret access key": re.compile(
        r"(?<![A-Za-z0-9/+])(?=[A-Za-z0-9/+]*[a-z])(?=[A-Za-z0-9/+]*[A-Z])(?=[A-Za-z0-9/+]*[0-9])"
        r"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])"
    ),
}


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name holds a secret by convention (`OPENAI_API_KEY`, `db_password`)."""
    return _NAME.search(name) is not None


def find_userinfo(text: str) -> str | None:
    """Return the password in the first `scheme://user:password@` of a text, or None."""
    found = _USERINFO.search(text)
    return found.group(2) if found else None


def describe_secret(value: str) -> str | None:
    """Say what secret a value looks like ("a GitHub token"), or None when it looks like none.

    Only shapes that hardly anything else has are recognised; a commit hash, for one, is no secret.
    """
    if find_userinfo(value):
        return "a URL with a password in it"
    for what, shape in _SHAPES.items():
        if shape.search(value):
            return what
    return None


def secret_values(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Collect the secrets of an environment.

    Args:
        environ: The variables; this process's by default.

    Returns:
        Secret value → name of the variable that holds it; only values of `SHORTEST` characters and more.
    """
    found: dict[str, str] = {}
    for name, value in (os.environ if environ is None else environ).items():
        if is_secret_name(name) and len(value.strip()) >= SHORTEST:
            found[value.strip()] = name
        password = find_userinfo(value)
        if password and len(password) >= SHORTEST:
            found[password] = name
    return found


class Redactor:
    """Replaces secret values in text by `[redacted]`.

    A value is also found in the spellings it takes inside JSON, a Python repr and a URL; the password
    in a URL's userinfo is one wherever it comes from. Overlapping occurrences are replaced as one, so
    that no end of either stays behind.

    Args:
        secrets: Secret value → a name to report; a plain iterable of values is accepted too.
    """

    def __init__(self, secrets: Mapping[str, str] | Iterable[str] = ()) -> None:
        named = secrets if isinstance(secrets, Mapping) else dict.fromkeys(secrets, "a secret")
        self._names: dict[str, str] = {}
        for value, name in named.items():
            if len(value) < SHORTEST:
                continue
            for spelling in (value, json.dumps(value)[1:-1], repr(value)[1:-1], quote(value, safe="")):
                self._names.setdefault(spelling, name)
        self._values = sorted(self._names, key=len, reverse=True)
        self._encoded = [value.encode() for value in self._values]
        self._longest = len(self._values[0]) if self._values else 0

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] | None = None, *, extra: Iterable[str] = ()) -> Redactor:
        """A redactor for the secrets of an environment (this process's by default) and `extra` values."""
        return cls({**dict.fromkeys(extra, "a secret"), **secret_values(environ)})

    def __repr__(self) -> str:
        return f"Redactor({len(set(self._names.values()))} secrets)"

    def find(self, text: str | bytes) -> str | None:
        """Name the variable whose value occurs in the text, or None."""
        for value, encoded in zip(self._values, self._encoded, strict=True):
            if (encoded in text) if isinstance(text, bytes) else (value in text):
                return self._names[value]
        return None

    def redact(self, text: str) -> str:
        """Return the text with every secret replaced."""
        spans = self._spans(text)
        return _replace(text, spans) if spans else text

    def redact_json(self, value: Any) -> Any:
        """Return a JSON-like value with every string in it (keys too) redacted; the rest unchanged."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            return {self.redact_json(key): self.redact_json(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.redact_json(item) for item in value]
        return value

    def stream(self) -> RedactedStream:
        """A filter for text that arrives in pieces, which finds secrets across their boundaries."""
        return RedactedStream(self)

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Merged (start, end) of all occurrences, overlapping ones included, in order."""
        spans: list[tuple[int, int]] = []
        for value in self._values:
            at = text.find(value)
            while at >= 0:
                spans.append((at, at + len(value)))
                at = text.find(value, at + 1)
        if "://" in text:
            spans += [found.span(1) for found in _PASSWORD.finditer(text)]
        merged: list[tuple[int, int]] = []
        for start, end in sorted(spans):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def _held_from(self, text: str, spans: list[tuple[int, int]]) -> int:
        """Where the part begins that could still become (part of) a secret when more text arrives."""
        cut = len(text)
        for at in range(max(0, len(text) - self._longest + 1), len(text)):
            tail = text[at:]
            if any(len(value) > len(tail) and value.startswith(tail) for value in self._values):
                cut = at
                break
        if url := _OPEN_URL.search(text):
            cut = min(cut, url.start())
        # A finished secret that reaches into the open end is kept whole, or the two would be
        # replaced separately and the overlap's far end would leak.
        return next((start for start, end in spans if start < cut < end), cut)


class RedactedStream:
    """Redacts a stream: `write` returns what may be shown already, `flush` the rest."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def write(self, text: str) -> str:
        """Take a piece; return the redacted text that can no longer be part of a secret."""
        whole = self._held + text
        spans = self._redactor._spans(whole)
        cut = self._redactor._held_from(whole, spans)
        self._held = whole[cut:]
        return _replace(whole[:cut], [span for span in spans if span[1] <= cut])

    def flush(self) -> str:
        """Return what was held back, redacted; call it at the end of the stream."""
        rest, self._held = self._held, ""
        return self._redactor.redact(rest)


def _replace(text: str, spans: list[tuple[int, int]]) -> str:
    parts, at = [], 0
    for start, end in spans:
        parts += [text[at:start], PLACEHOLDER]
        at = end
    return "".join([*parts, text[at:]])
