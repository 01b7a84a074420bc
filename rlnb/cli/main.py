"""Entry point of `rlnb`: one parser, one way to fail.

Exit codes: 0 ok, 1 the job failed, 2 everything that kept the command from doing what it was asked
(bad usage, an unknown run, an unreachable store). So a script may take 1 as "the job failed" and nothing
else. Errors are one sentence on stderr; with `--json` stdout stays JSON: `{"error": "…"}`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from rlnb.cli import control, inspection, promotion, tools
from rlnb.cli.output import OK, USAGE, failure, print_json
from rlnb.errors import JobFailed, RlnbError, UsageError, did_you_mean

INTERRUPTED = 130


class Parser(argparse.ArgumentParser):
    """argparse with a nearest-match hint for a misspelt command."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Raises UsageError with one sentence, which `main` prints."""
        if "invalid choice: " in message:
            argument = message.split(": ", 1)[0].removeprefix("argument ")
            word = message.split("invalid choice: ", 1)[1].split("(")[0].strip().strip("'\"")
            choices = [
                name.strip().strip("'\"")
                for name in message.split("choose from ", 1)[-1].rstrip(")").split(",")
            ]
            what = (
                f"a command of {self.prog}"
                if argument in ("COMMAND", "ACTION")
                else f"possible for {argument}"
            )
            message = (
                f"{word!r} is not {what}.{did_you_mean(word, choices)} `{self.prog} --help` lists what is."
            )
        raise UsageError(message if self.prog == "rlnb" else f"{self.prog.removeprefix('rlnb ')}: {message}")


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser of every command; each subparser carries its function as `run`."""
    parser = Parser(
        prog="rlnb", description="Promote notebooks to detached training jobs, and look after them."
    )
    parser.add_argument("--version", action="store_true", help="print rlnb's version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for module in (promotion, inspection, control, tools):
        module.register(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: the words after `rlnb`; None takes the process's own.

    Returns:
        The exit code.
    """
    parser = build_parser()
    words = list(sys.argv[1:] if argv is None else argv)
    # argparse takes an optional argument for left out when an option stands before it (`inspect RUN --json EXPRESSION`).
    words.sort(key="--json".__eq__)
    try:
        arguments = parser.parse_args(words)
    except UsageError as error:
        return failure(error, code=USAGE, as_json="--json" in words)
    except SystemExit as stop:
        return int(stop.code or 0)  # --help
    if arguments.version:
        import rlnb

        print(rlnb.__version__)
        return OK
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return USAGE
    as_json = bool(getattr(arguments, "json", False))
    try:
        return int(arguments.run(arguments))
    except JobFailed as error:
        return failure(error, code=1, as_json=as_json)
    except (RlnbError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            # `rlnb logs | head`: the reader has seen enough. Python would complain again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK
        return failure(error, code=USAGE, as_json=as_json)
    except Exception as error:
        # A fault of rlnb's own. A person gets a sentence; who looks for the fault asks for the rest.
        if os.environ.get("RLNB_DEBUG"):
            raise
        fault = RlnbError(f"internal error, {type(error).__name__}: {error}; RLNB_DEBUG=1 shows where.")
        return failure(fault, code=USAGE, as_json=as_json)
    except KeyboardInterrupt:
        print("\nrlnb: interrupted; jobs go on, `rlnb jobs` lists them.", file=sys.stderr)
        return INTERRUPTED


__all__ = ["build_parser", "main", "print_json"]
