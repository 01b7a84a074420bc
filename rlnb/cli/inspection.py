"""Commands that only look: `jobs`, `show`, `logs`, `metrics`, `inspect`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from rlnb.cli.output import OK, add_json, add_run, count, named_run, print_json, print_line, table

if TYPE_CHECKING:
    pass

JOB_COLUMNS = ("id", "name", "state", "step", "return", "created")


def register(commands: argparse._SubParsersAction[Any]) -> None:
    """Adds the commands."""
    jobs = commands.add_parser("jobs", help="list the runs this machine knows, newest first")
    jobs.add_argument("--store", help="list the runs in this store instead")
    jobs.add_argument("--state", help="only runs in this state")
    jobs.add_argument("--tag", help="only runs with this tag")
    jobs.add_argument("--group", help="only runs of this group")
    jobs.add_argument("-n", "--limit", type=count, default=0, help="at most this many (default: all)")
    add_json(jobs)
    jobs.set_defaults(run=list_jobs)

    show = commands.add_parser("show", help="everything about one run")
    add_run(show)
    add_json(show)
    show.set_defaults(run=show_run)

    logs = commands.add_parser("logs", help="what the run printed and logged")
    add_run(logs)
    logs.add_argument("-f", "--follow", action="store_true", help="go on until the run rests")
    logs.add_argument("-n", "--lines", type=count, default=0, help="only the last lines (default: all)")
    logs.add_argument(
        "--log",
        default="all",
        choices=("all", "train", "stdout", "events", "supervisor"),
        help="which log (default: all)",
    )
    add_json(logs)
    logs.set_defaults(run=show_logs)

    metrics = commands.add_parser("metrics", help="the run's metric rows, one history")
    add_run(metrics)
    metrics.add_argument(
        "-n", "--lines", type=count, default=20, help="the last rows only; 0 shows all (default 20)"
    )
    metrics.add_argument("-k", "--kind", default="train", help="train, episode, … or all (default train)")
    metrics.add_argument("--csv", action="store_true", help="print CSV of all columns")
    add_json(metrics)
    metrics.set_defaults(run=show_metrics)

    inspect = commands.add_parser("inspect", help="evaluate an expression inside the running job")
    add_run(inspect)
    inspect.add_argument(
        "expression", nargs="?", help="a Python expression; without it, what can be seen is listed"
    )
    add_json(inspect)
    inspect.set_defaults(run=inspect_run)


def list_jobs(arguments: argparse.Namespace) -> int:
    """`rlnb jobs`."""
    from rlnb.listing import jobs

    found = jobs(
        store=arguments.store,
        state=arguments.state,
        tag=arguments.tag,
        group=arguments.group,
        limit=arguments.limit or None,
    )
    rows = found.rows()
    if arguments.json:
        print_json(rows)
    elif rows:
        print(table([_job_cells(row) for row in rows], JOB_COLUMNS))
    elif arguments.state or arguments.tag or arguments.group:
        print("No runs like that; `rlnb jobs` lists all.")
    else:
        print(
            "No runs. `rlnb promote NOTEBOOK` starts one; `rlnb index rebuild FOLDER` finds those of a store."
        )
    return OK


def _job_cells(row: dict[str, Any]) -> dict[str, str]:
    total = row.get("total_timesteps")
    step = f"{row.get('step') or 0:,}" + (f"/{total:,}" if total else "")
    value = row.get("return_mean")
    return {
        "id": str(row["id"]),
        "name": str(row.get("name") or ""),
        "state": str(row.get("state") or ""),
        "step": step,
        "return": "" if value is None else f"{value:.1f}",
        "created": str(row.get("created") or "")[:19].replace("T", " "),
    }


def show_run(arguments: argparse.Namespace) -> int:
    """`rlnb show RUN`."""
    from rlnb.words import handle_text

    job = named_run(arguments)
    if arguments.json:
        print_json(job.summary(events=True))
    else:
        print(handle_text(job.layout, job.observe(), job.url))
    return OK


def show_logs(arguments: argparse.Namespace) -> int:
    """`rlnb logs RUN [-f]`."""
    job = named_run(arguments)
    lines = job.log_lines(arguments.log, last=arguments.lines or None, follow=arguments.follow)
    for source, line in lines:
        if arguments.json:
            print_line({"log": source, "line": line})
        else:
            print(line, flush=arguments.follow)
    return OK


def show_metrics(arguments: argparse.Namespace) -> int:
    """`rlnb metrics RUN`."""
    job = named_run(arguments)
    frame = job.metrics
    if len(frame) and arguments.kind != "all":
        frame = frame[frame["kind"] == arguments.kind].dropna(axis="columns", how="all")
    if arguments.lines:
        frame = frame.tail(arguments.lines)
    if arguments.json:
        rows = [
            {str(key): value for key, value in row.items() if value == value}
            for row in frame.to_dict("records")
        ]
        print_json(rows)
    elif arguments.csv:
        frame.to_csv(sys.stdout, index=False)
    elif len(frame) == 0:
        print(f"{job.id} has no rows of kind {arguments.kind!r} yet.")
    else:
        hidden = [name for name in ("kind", "time", "attempt") if name in frame.columns]
        print(
            frame.drop(columns=hidden).to_string(
                index=False, float_format=lambda value: f"{value:.4g}", na_rep=""
            )
        )
    return OK


def inspect_run(arguments: argparse.Namespace) -> int:
    """`rlnb inspect RUN [EXPRESSION]`."""
    job = named_run(arguments)
    if arguments.expression is None:
        names = job.inspect()
        if arguments.json:
            print_json(names)
        else:
            print(
                "\n".join(f"{name}: {kind}" for name, kind in dict(names).items())
                or "Nothing can be seen yet."
            )
        return OK
    value = job.inspect(arguments.expression)
    if arguments.json:
        print_json({"expression": arguments.expression, "value": value})
    else:
        print(value)
    return OK
