"""`rlnb promote`: the notebook becomes a detached job, without a kernel of its own."""

from __future__ import annotations

import argparse
import ast
import math
import os
import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.cli.following import follow
from rlnb.cli.output import OK, add_json, count, print_json
from rlnb.errors import ParameterError
from rlnb.run.status import State

if TYPE_CHECKING:
    from rlnb.job import Job

_WORDS: dict[str, Any] = {
    "true": True, "false": False, "null": None, "none": None,
    "nan": math.nan, "inf": math.inf, "-inf": -math.inf,
}  # fmt: skip


def register(commands: argparse._SubParsersAction[Any]) -> None:
    """Adds `promote`."""
    parser = commands.add_parser("promote", help="run a notebook as a detached training job")
    parser.add_argument("notebook", help="path of the .ipynb file")
    parser.add_argument(
        "-p", "--parameter", action="append", default=[], metavar="NAME=VALUE",
        help="set a name of the cell tagged 'parameters'; VALUE is a Python literal, else text; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--store", default="./runs", help="folder or URL the run is mirrored to (default ./runs)"
    )
    parser.add_argument(
        "--experiment", metavar="NAME", help="which promote() call trains, when there are several"
    )
    parser.add_argument("--name", help="name of the run (default: the experiment's)")
    parser.add_argument("--tag", action="append", default=[], help="a tag of the run; repeatable")
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME", help="an environment variable the job may see"
    )
    parser.add_argument(
        "--include", action="append", default=[], metavar="PATH", help="a further file of the bundle"
    )
    parser.add_argument(
        "--retries", type=count, help="attempts after the first that a failing job gets (default 3)"
    )
    parser.add_argument(
        "--new", action="store_true", help="start another run even if the same one lives or completed"
    )
    parser.add_argument("--no-check", action="store_true", help="skip the checks before the job starts")
    parser.add_argument(
        "--wait", action="store_true", help="show progress until the job ends; exit with 1 if it failed"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Promotes and, with `--wait`, follows the job to its end."""
    from rlnb.promote import promote_notebook

    options: dict[str, Any] = {}
    if arguments.retries is not None:
        options["retries"] = arguments.retries
    # What checks have to say is for people; with --json stdout belongs to the program that reads it.
    with redirect_stdout(sys.stderr) if arguments.json else nullcontext():
        job: Job = promote_notebook(
            Path(arguments.notebook),
            parameters=dict(parse_parameter(text) for text in arguments.parameter),
            store=arguments.store,
            experiment=arguments.experiment,
            name=arguments.name,
            new=arguments.new,
            check=not arguments.no_check,
            tags=tuple(arguments.tag),
            env_vars=tuple(arguments.env),
            include=tuple(arguments.include),
            **options,
        )
    if not arguments.wait:
        if arguments.json:
            print_json({"run": job.url, "id": job.id})
        else:
            state = job.state
            print(
                f"{job.id} is {state.value}" + ("; it does not need this terminal." if state.living else ".")
            )
            print(f"  rlnb show {job.id}\n  rlnb logs -f {job.id}\n  rlnb wait {job.id}")
        return OK
    code = follow(job, quiet=arguments.json)
    if arguments.json:
        print_json({"run": job.url, "id": job.id, **job.summary()})
    elif code == OK:
        print(closing_words(job))
    return code


def closing_words(job: Job) -> str:
    """Returns what a finished `promote --wait` tells: the return, the folder, and how to look at it."""
    summary = job.summary()
    value = summary.get("return_mean")
    learned = "no episode has ended" if value is None else f"learned return {value:.1f}"
    if job.state is not State.COMPLETED:
        learned = f"{job.state.value}, so far {learned}"
    jupyter = Path(sys.executable).with_name("jupyter")
    command = _short(jupyter) if jupyter.exists() else "jupyter"
    return (
        f"{learned} after {summary.get('step') or 0:,} steps\n"
        f"run folder  {job.folder}\n"
        f"store       {job.url}\n"
        f"open it     {command} lab {_short(_shown(job))}\n"
        f"in Python   import rlnb; job = rlnb.job({job.id!r}); job.plot(); job.model('best')"
    )


def _shown(job: Job) -> Path:
    """Returns the executed notebook: in a folder store, where the user looks, else in the working copy."""
    executed = job.executed_notebook
    if executed is None:
        return job.folder
    stored = Path(job.url.removeprefix("file://")) / executed.name
    return stored if stored.is_file() else executed


def _short(path: Path) -> str:
    """Returns the path as it is typed from here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def parse_parameter(text: str, *, example: str = "-p seed=3") -> tuple[str, Any]:
    """Splits `NAME=VALUE` and reads the value.

    Args:
        text: the value is a Python literal (`1e-3`, `[1, 2]`, `'text'`), one of true, false, null, nan,
            inf, or else plain text.
        example: what the error shows as right.

    Raises:
        ParameterError: there is no "=", or the name is no Python name.
    """
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not name.isidentifier():
        raise ParameterError(f"{text!r} is not NAME=VALUE; write for example {example}.")
    if value.strip().lower() in _WORDS:
        return name, _WORDS[value.strip().lower()]
    try:
        return name, ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return name, value
