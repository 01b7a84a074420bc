"""Commands around runs: `verify`, `reconcile`, `index rebuild`, `doctor`, `new`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rlnb.cli.output import JOB_FAILED, OK, USAGE, add_json, add_run, named_run, print_json, seconds


def register(commands: argparse._SubParsersAction[Any]) -> None:
    """Adds the commands."""
    verify = commands.add_parser(
        "verify", help="run a run again from its bundle and compare the final weights"
    )
    add_run(verify)
    verify.add_argument(
        "--trust", action="store_true", help="run a bundle that is not in this machine's index"
    )
    verify.add_argument("--keep", action="store_true", help="keep the scratch run for looking at")
    verify.add_argument("--timeout", type=seconds, help="seconds the second run may take")
    add_json(verify)
    verify.set_defaults(run=verify_run)

    reconcile = commands.add_parser(
        "reconcile", help="find runs whose supervisor is gone, say so, and clean up after them"
    )
    reconcile.add_argument("--resume", action="store_true", help="also start a new attempt of each")
    add_json(reconcile)
    reconcile.set_defaults(run=reconcile_runs)

    index = commands.add_parser("index", help="the local list of runs")
    actions = index.add_subparsers(dest="action", metavar="ACTION", required=True)
    rebuild = actions.add_parser("rebuild", help="make the list anew from run folders")
    rebuild.add_argument(
        "folders", nargs="*", type=Path, help="stores to look in besides this machine's working copies"
    )
    add_json(rebuild)
    rebuild.set_defaults(run=rebuild_index)

    doctor = commands.add_parser(
        "doctor", help="check interpreter, packages, kernel, JupyterLab, store, disk and Node"
    )
    doctor.add_argument("--store", help="the store to try (default ./runs)")
    add_json(doctor)
    doctor.set_defaults(run=examine_machine)

    new = commands.add_parser("new", help="write a notebook from the template")
    new.add_argument("name", help="name of the notebook, with or without .ipynb")
    add_json(new)
    new.set_defaults(run=new_notebook)


def verify_run(arguments: argparse.Namespace) -> int:
    """`rlnb verify RUN`: 0 equal, 1 not equal."""
    from rlnb.verify import verify

    result = verify(
        named_run(arguments), trust=arguments.trust, keep=arguments.keep, timeout=arguments.timeout
    )
    if arguments.json:
        print_json(result.to_dict())
    else:
        print(result)
    return OK if result.equal else JOB_FAILED


def reconcile_runs(arguments: argparse.Namespace) -> int:
    """`rlnb reconcile`."""
    from rlnb.listing import reconcile

    found = reconcile(resume=arguments.resume)
    if arguments.json:
        print_json(found)
        return OK
    for row in found:
        print(row["message"])
    if not found:
        print("Every run has its supervisor or has ended; nothing to do.")
    return OK


def rebuild_index(arguments: argparse.Namespace) -> int:
    """`rlnb index rebuild [FOLDER…]`."""
    from rlnb.listing import rebuild

    count = rebuild(arguments.folders)
    if arguments.json:
        print_json({"runs": count})
    else:
        print(f"The index lists {count} run{'' if count == 1 else 's'}.")
    return OK


def examine_machine(arguments: argparse.Namespace) -> int:
    """`rlnb doctor`: 2 when something that jobs need is missing."""
    from rlnb.doctor import Verdict, examine

    checks = []
    for check in examine(arguments.store):
        checks.append(check)
        if not arguments.json:
            print(f"{check.verdict.value:<5}{check.name}: {check.message}", flush=True)
            if check.remedy:
                print(f"     → {check.remedy}", flush=True)
    if arguments.json:
        print_json([check.to_dict() for check in checks])
    return USAGE if any(check.verdict is Verdict.FAIL for check in checks) else OK


def new_notebook(arguments: argparse.Namespace) -> int:
    """`rlnb new NAME`."""
    from rlnb.cli.template import write_notebook

    path = write_notebook(arguments.name)
    if arguments.json:
        print_json({"notebook": str(path)})
    else:
        print(f"{path} is written; open it with: jupyter lab {path.name}")
        print(f"or train it without opening: rlnb promote {path.name} --wait")
    return OK
