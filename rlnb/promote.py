"""`promote()`: freezes the notebook it is called in and has it run as a detached training job."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.check import (
    check_disk,
    check_kernel,
    check_notebook,
    check_store,
    make_report,
)
from rlnb.errors import UsageError
from rlnb.jobs.capture import recorder as capture
from rlnb.jobs.capture.notebook import Notebook, read_notebook
from rlnb.jobs.capture.parameters import expand_grid
from rlnb.jobs.capture.promote_calls import choose_target, find_promotes
from rlnb.jobs.capture.recorder import CellRun
from rlnb.jobs.capture.search import find_notebook, knows
from rlnb.launch import (
    Asked,
    check_asked,
    names_of,
    paths_of,
)
from rlnb.prepare import Prepared, prepare, refuse_secret_settings, resolve_store
from rlnb.run.findings import Finding, Level
from rlnb.run.identity import current
from rlnb.run.record import Target, read_record
from rlnb.starting import attach, check_all, say, say_aside, start

if TYPE_CHECKING:
    from rlnb.experiment import Experiment
    from rlnb.group import Group
    from rlnb.inside import NotThisRun
    from rlnb.job import Job


def promote(
    exp: Experiment,
    *,
    store: str | Path = "./runs",
    notebook: str | Path | None = None,
    new: bool = False,
    check: bool = True,
    include: Iterable[str | Path] = (),
    env_vars: Iterable[str] = (),
    retries: int = 3,
    hold: float | None = None,
    grid: Mapping[str, Iterable[Any]] | None = None,
    tags: Iterable[str] = (),
    wait: bool = False,
) -> Job | Group | NotThisRun:
    """Starts the notebook as a detached job whose `promote()` trains, or re-attaches to the same run.

    Args:
        exp: the experiment; its lab, if it has one, is flushed and frozen.
        store: folder (relative to the notebook's) or URL (`s3://…`, `obs://…`) the run is mirrored to.
        notebook: path of the notebook, where it cannot be found from the kernel, and in plain scripts.
        new: start another run even though the same one lives or is completed.
        check: rehearse first; False leaves out what takes time, not what protects secrets.
        include: further files and folders of the notebook's folder for the bundle.
        env_vars: names of environment variables the job may see.
        retries: failed attempts that may be followed by another.
        hold: seconds the job stays paused in place before it is suspended.
        grid: values for names of the parameters cell; one run for every combination.
        tags: words to find the run by, besides the experiment's.
        wait: return when the run rests.

    Returns:
        The job; a group for a grid; inside a job a handle that does nothing when it is another run's.

    Raises:
        UsageError: (or a subclass) something about the notebook, the experiment or the store is wrong;
            nothing has started.
    """
    from rlnb.experiment import Experiment

    if not isinstance(exp, Experiment):
        raise UsageError(f"promote() takes an Experiment, not {exp!r:.80}; write rlnb.promote(rlnb.Experiment('name', env=…, total_timesteps=…)).")  # fmt: skip
    identity = current()
    if identity is not None:
        from rlnb.inside import promote_inside

        return promote_inside(exp, identity, grid=grid is not None)
    begin = time.monotonic()
    source, runs, call = _notebook_here(notebook)
    spec = exp.spec  # flushes the lab, so that the design file is there to be bundled
    url = resolve_store(store, base=source.path.parent)
    target = None if runs else _target(source, exp.name)
    prepared = prepare(
        source,
        runs,
        call=call,
        target=target,
        include=paths_of(include, "include"),
        lab=exp.lab_files(),
        store=url,
    )
    refuse_secret_settings(spec.to_dict(), prepared.redactor)
    asked = Asked(
        name=spec.name,
        store=url,
        experiment=spec.to_dict(),
        fingerprint=spec.fingerprint(),
        experiment_name=spec.name if prepared.target.cell is None else None,
        tags=names_of(tags, "tags"),
        env_vars=names_of(env_vars, "env_vars"),
        retries=retries,
        hold=hold,
    )
    check_asked(asked)
    if grid is not None:
        return _promote_grid(exp, prepared, asked, grid, new=new, check=check, wait=wait, begin=begin)
    job = None if new else attach(prepared, asked, say)
    if job is None:
        report = check_all(exp, prepared, url, begin) if check else make_report(prepared.findings, begin)
        job = start(prepared, replace(asked, exclusive=report.exclusive), report, say, new=new)
    return job.wait() if wait else job


def promote_notebook(
    path: str | Path,
    *,
    parameters: Mapping[str, Any] | None = None,
    store: str | Path = "./runs",
    experiment: str | None = None,
    name: str | None = None,
    new: bool = False,
    check: bool = True,
    include: Iterable[str | Path] = (),
    env_vars: Iterable[str] = (),
    retries: int = 3,
    hold: float | None = None,
    tags: Iterable[str] = (),
) -> Job:
    """Promotes a notebook without a kernel, as `rlnb promote` does.

    The notebook is checked statically; what only its cells can tell (which experiment it makes) is
    filled into run.yaml by the first attempt, which also rehearses before it trains.

    Args:
        path: the notebook.
        parameters: values for names of its parameters cell.
        store: folder (relative to the working directory) or URL.
        experiment: which experiment trains, when the notebook promotes several.
        name: of the run; by default the experiment's, or the file's.
        new, check, include, env_vars, retries, hold, tags: as in `promote`.

    Raises:
        UsageError: as `promote`.
    """
    begin = time.monotonic()
    source = read_notebook(Path(path).expanduser().absolute())
    url = resolve_store(store, base=Path.cwd())
    call = choose_target(source, experiment)
    target = Target() if call is None else Target(call.cell, call.call)
    prepared = prepare(
        source, target=target, include=paths_of(include, "include"), store=url
    ).with_parameters(parameters or {})
    if call is None and experiment is None:
        unclear = Finding(Level.WARNING, "first_call", f"promote() of {source.path.name} stands in a loop, a function or a branch: the job trains the first experiment that it is called with; --experiment NAME chooses another.")  # fmt: skip
        prepared = replace(prepared, findings=(*prepared.findings, unclear))
    asked = Asked(
        name=name or (call.label if call else None) or experiment or source.path.stem,
        store=url,
        experiment_name=experiment if call is None else None,
        checked=not check,
        tags=names_of(tags, "tags"),
        env_vars=names_of(env_vars, "env_vars"),
        retries=retries,
        hold=hold,
    )
    check_asked(asked)
    job = None if new else attach(prepared, asked, say_aside)
    if job is not None:
        return job
    report = make_report(prepared.findings, begin)
    if check:
        exclusive, stored = check_store(url)
        found = [*prepared.findings, *check_notebook(prepared), *check_kernel(source), *check_disk(), *stored]
        report = make_report(found, begin, exclusive=exclusive).require()
    return start(prepared, replace(asked, exclusive=report.exclusive), report, say_aside, new=new)


def _notebook_here(explicit: str | Path | None) -> tuple[Notebook, list[CellRun], int]:
    """The notebook this call stands in, what ran of it, and the n-th call in its cell this is.

    A notebook that is named but is not the one running here (a plain script, another notebook) has
    no runs: then its saved state counts, as on the command line.
    """
    recorder = capture.install()
    call = recorder.count_call() if recorder else 1
    runs = recorder.runs if recorder and recorder.running else []
    path = find_notebook(explicit, namespace=recorder.namespace if recorder else {}, runs=runs)
    if explicit is not None and not knows(path, runs):
        runs = []
    return read_notebook(path), runs, call


def _target(source: Notebook, name: str) -> Target:
    """The call in a notebook's source that a script promotes: the only one, or that of this experiment."""
    call = choose_target(source, name if len(find_promotes(source)) > 1 else None)
    return Target() if call is None else Target(call.cell, call.call)


def _promote_grid(
    exp: Experiment,
    prepared: Prepared,
    asked: Asked,
    grid: Mapping[str, Iterable[Any]],
    *,
    new: bool,
    check: bool,
    wait: bool,
    begin: float,
) -> Group:
    """Starts a run for every combination; each member's job finds out its own experiment."""
    from rlnb.group import Group

    rows = expand_grid(grid)
    members = [prepared.with_parameters(row) for row in rows]
    report = check_all(exp, prepared, asked.store, begin) if check else make_report(prepared.findings, begin)
    group = f"{asked.name}-{secrets.token_hex(2)}"
    open_ended = replace(
        asked,
        exclusive=report.exclusive,
        experiment=None,
        fingerprint=None,
        checked=True,
        group=group,
        tags=tuple(dict.fromkeys([*asked.tags, *exp.spec.tags])),
    )
    jobs = []
    for member in members:
        job = None if new else attach(member, open_ended, say)
        jobs.append(
            job if job is not None else start(member, open_ended, make_report((), begin), say, new=new)
        )
    known = {read_record(job.layout).group for job in jobs}
    made = Group(known.pop() or group if len(known) == 1 else group, jobs)
    return made.wait() if wait else made
