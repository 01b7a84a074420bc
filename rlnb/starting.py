"""The steps that every promotion takes once it knows what it is about: check, attach or start, and say so."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from rlnb.check import CheckReport, check_disk, check_notebook, check_store, make_report, rehearse_here
from rlnb.launch import Asked, describe_same, find_same, one_promotion_at_a_time, start_run
from rlnb.prepare import Prepared
from rlnb.run.findings import Level
from rlnb.warmstart import check_source

if TYPE_CHECKING:
    from rlnb.experiment import Experiment
    from rlnb.job import Job

Say = Callable[[str], None]


def check_all(exp: Experiment, prepared: Prepared, url: str, begin: float) -> CheckReport:
    exclusive, stored = check_store(url)
    begins = check_source(exp.spec.init_from)
    findings = [*prepared.findings, *check_notebook(prepared), *check_disk(), *stored, *begins]
    if not any(finding.level is Level.ERROR for finding in findings):
        # The rehearsal takes the longest; what is wrong already is said at once.
        findings += rehearse_here(exp)
    return make_report(findings, begin, exclusive=exclusive).require()


def say(text: str) -> None:
    """Tells a person in the notebook's output."""
    print(text)


def say_aside(text: str) -> None:
    """Tells a person at a terminal; standard output belongs to the command's own answer (`--json`)."""
    print(text, file=sys.stderr)


def attach(prepared: Prepared, asked: Asked, say: Say) -> Job | None:
    """The job of the same run, which is said, or None."""
    from rlnb.job import Job

    same = find_same(prepared, asked)
    if same is None:
        return None
    layout, state = same
    say(describe_same(layout, state))
    return Job(layout.id, layout)


def start(prepared: Prepared, asked: Asked, report: CheckReport, say: Say, *, new: bool) -> Job:
    from rlnb.job import Job

    with one_promotion_at_a_time():
        job = None if new else attach(prepared, asked, say)
        if job is not None:
            return job
        layout = start_run(prepared, asked)
    for finding in report.warnings:
        say(str(finding))
    say(
        f"{layout.id} has started and runs on its own now, with {prepared.bundle.describe()}; it is stored in {asked.store}"
    )
    return Job(layout.id, layout)
