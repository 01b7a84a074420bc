"""Commands that change a run: `pause`, `suspend`, `resume`, `stop`, `fork`, `wait`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from rlnb.cli.following import follow
from rlnb.cli.output import OK, add_json, add_run, count, named_run, print_json, seconds
from rlnb.cli.promotion import parse_parameter
from rlnb.errors import UsageError

if TYPE_CHECKING:
    from rlnb.job import Job

_VERBS = {
    "pause": "hold training at its next safe point; the kernel stays and keeps the machine",
    "suspend": "checkpoint and exit; frees the machine",
    "stop": "checkpoint and end the run",
}


def register(commands: argparse._SubParsersAction[Any]) -> None:
    """Adds the commands."""
    for verb, text in _VERBS.items():
        parser = commands.add_parser(verb, help=text)
        add_run(parser)
        parser.add_argument("--timeout", type=seconds, help="seconds to wait for the acknowledgement")
        add_json(parser)
        parser.set_defaults(run=change, verb=verb)

    resume = commands.add_parser(
        "resume", help="let a paused run go on, or start a new attempt of one that ended early"
    )
    add_run(resume)
    resume.add_argument(
        "--takeover", action="store_true",
        help="resume here although another machine ran it and the store cannot fence it off",
    )  # fmt: skip
    resume.add_argument(
        "--trust", action="store_true", help="run a bundle that is not in this machine's index"
    )
    resume.add_argument("--timeout", type=seconds, help="seconds to wait for the acknowledgement")
    resume.add_argument("--wait", action="store_true", help="follow the run to its end")
    add_json(resume)
    resume.set_defaults(run=resume_run)

    fork = commands.add_parser("fork", help="start a new run from a checkpoint of this one")
    add_run(fork)
    fork.add_argument(
        "--step", type=count, help="the checkpoint at or before this step (default: the newest)"
    )
    fork.add_argument(
        "-c", "--change", action="append", default=[], metavar="NAME=VALUE",
        help="an experiment setting that differs, e.g. learning_rate=1e-4; repeatable",
    )  # fmt: skip
    fork.add_argument("--store", help="where the new run is mirrored (default: the store of RUN)")
    fork.add_argument("--trust", action="store_true", help="run a bundle that is not in this machine's index")
    fork.add_argument("--wait", action="store_true", help="follow the new run to its end")
    add_json(fork)
    fork.set_defaults(run=fork_run)

    wait = commands.add_parser("wait", help="wait until the run rests; exit with 1 if it failed")
    add_run(wait)
    wait.add_argument(
        "--timeout", type=seconds, help="give up (exit code 2) after this many seconds; the job goes on"
    )
    add_json(wait)
    wait.set_defaults(run=wait_run)


def change(arguments: argparse.Namespace) -> int:
    """`rlnb pause|suspend|stop RUN`."""
    job = named_run(arguments)
    message = getattr(job, arguments.verb)(timeout=arguments.timeout)
    return _report(job, message, as_json=arguments.json)


def resume_run(arguments: argparse.Namespace) -> int:
    """`rlnb resume RUN`."""
    job = named_run(arguments)
    message = job.resume(takeover=arguments.takeover, trust=arguments.trust, timeout=arguments.timeout)
    if not arguments.wait:
        return _report(job, message, as_json=arguments.json)
    return _wait(job, as_json=arguments.json)


def fork_run(arguments: argparse.Namespace) -> int:
    """`rlnb fork RUN`."""
    changes = dict(parse_parameter(text, example="-c learning_rate=1e-4") for text in arguments.change)
    if "step" in changes:
        raise UsageError("step is not an experiment setting; write --step.")
    job = named_run(arguments).fork(
        step=arguments.step, store=arguments.store, trust=arguments.trust, **changes
    )
    if arguments.wait:
        return _wait(job, as_json=arguments.json)
    if arguments.json:
        print_json({"run": job.url, "id": job.id})
    else:
        print(f"{job.id} starts from {arguments.run_name}; `rlnb show {job.id}` tells how it goes.")
    return OK


def wait_run(arguments: argparse.Namespace) -> int:
    """`rlnb wait RUN`."""
    return _wait(named_run(arguments), as_json=arguments.json, timeout=arguments.timeout)


def _wait(job: Job, *, as_json: bool, timeout: float | None = None) -> int:
    code = follow(job, quiet=as_json, timeout=timeout)
    if as_json:
        print_json(job.summary())
    return code


def _report(job: Job, message: str, *, as_json: bool) -> int:
    if as_json:
        print_json({"id": job.id, "run": job.url, "state": job.state.value, "message": message})
    else:
        print(f"{job.id}: {message}")
    return OK
