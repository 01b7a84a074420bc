"""How commands print: JSON that is only JSON, tables that fit, errors of one sentence."""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlnb.job import Job

OK, JOB_FAILED, USAGE = 0, 1, 2


def add_json(parser: argparse.ArgumentParser) -> None:
    """Adds `--json` to a command."""
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else on stdout")


def add_run(parser: argparse.ArgumentParser) -> None:
    """Adds the argument that names a run."""
    parser.add_argument(
        "run_name", metavar="RUN", help="id, unique start of an id, name, folder or URL of a run"
    )


def named_run(arguments: argparse.Namespace) -> Job:
    """Returns the run that the command names."""
    from rlnb.listing import job

    return job(arguments.run_name)


def count(text: str) -> int:
    """Reads a number of things, 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return int(text)


def seconds(text: str) -> float:
    """Reads a time in seconds, 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, 0 or more")
    return value


def plain(value: Any) -> Any:
    """Returns `value` with NaN and infinities as None: bare NaN is not JSON (FACTS.md)."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def print_json(value: Any) -> None:
    """Prints one JSON document."""
    print(json.dumps(plain(value), indent=2, ensure_ascii=False, default=str))


def print_line(value: Any) -> None:
    """Prints one JSON document on a line of its own, for streams."""
    print(json.dumps(plain(value), ensure_ascii=False, default=str), flush=True)


def failure(error: BaseException, *, code: int, as_json: bool) -> int:
    """Prints the error's sentence and returns `code`."""
    message = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        message = error.strerror + (f": {error.filename}" if error.filename else "")
    print(f"rlnb: {message}", file=sys.stderr)
    if as_json:
        # A script that promoted and waited still needs to know which run it was that failed.
        job = getattr(error, "job", None)
        print_json({"error": message} if job is None else {"error": message, "run": job.url, "id": job.id})
    return code


def table(rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> str:
    """Returns left-aligned columns under their headings, cut to the terminal's width."""
    widths = [max(len(column), *(len(row.get(column, "")) for row in rows)) for column in columns]
    # A pipe gets whole rows: whoever reads it can cut them.
    limit = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = ["  ".join(column.upper().ljust(width) for column, width in zip(columns, widths, strict=True))]
    for row in rows:
        cells = (row.get(column, "").ljust(width) for column, width in zip(columns, widths, strict=True))
        lines.append("  ".join(cells))
    return "\n".join(line.rstrip()[:limit] for line in lines)
