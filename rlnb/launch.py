"""Starting a run: find the one that is the same, or write a working copy and submit it."""

from __future__ import annotations

import fcntl
import getpass
import math
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import rlnb
from rlnb import settings
from rlnb.errors import RlnbError, UsageError, did_you_mean
from rlnb.jobs.capture.bundle import Bundle, write_bundle
from rlnb.jobs.capture.carrying import to_record
from rlnb.jobs.capture.collect import refuse_secrets
from rlnb.jobs.capture.environment import describe_environment, lock_text
from rlnb.naming import new_run
from rlnb.prepare import Prepared
from rlnb.run.claims import latest_attempt
from rlnb.run.experiment_yaml import overrides
from rlnb.run.host import hostname, utc_now
from rlnb.run.index import Index
from rlnb.run.index_rows import describe_state
from rlnb.run.layout import RunLayout
from rlnb.run.plans import InitFrom
from rlnb.run.record import Limits, RunRecord, read_record, write_record
from rlnb.run.status import State, observe
from rlnb.source import join_run_url
from rlnb.warmstart import stage


@dataclass(frozen=True)
class Asked:
    """What is asked of a run besides its notebook.

    Attributes:
        name: of the experiment, as far as it is known.
        store: resolved.
        exclusive: whether the store honours exclusive create, None when it was not tried.
        experiment: `ExperimentSpec.to_dict()`, None when only the job can tell.
        fingerprint: of the experiment, None when only the job can tell.
        experiment_name: which experiment to train, when the source does not tell the call.
        checked: whether the rehearsal is done or waived; else the job does it before it trains.
        tags, group: to find it by.
        env_vars: names of variables that reach the job.
        retries: failed attempts that may be followed by another.
        hold: seconds it stays paused in place; None takes the setting.
    """

    name: str
    store: str
    exclusive: bool | None = None
    experiment: dict[str, Any] | None = None
    fingerprint: str | None = None
    experiment_name: str | None = None
    checked: bool = True
    tags: tuple[str, ...] = ()
    group: str | None = None
    env_vars: tuple[str, ...] = ()
    retries: int = 3
    hold: float | None = None


def find_same(prepared: Prepared, asked: Asked) -> tuple[RunLayout, State] | None:
    """Returns a living, suspended or completed run of the same notebook, design and parameters.

    Args:
        prepared: what would be promoted.
        asked: its fingerprint is None when only a job can tell; then key and experiment's name decide.
    """
    index = Index()
    if not index.path.exists():
        index.rebuild()
    for row in index.rows(key=prepared.key):
        layout = RunLayout(Path(row.folder))
        try:
            record = read_record(layout)
            state = observe(layout).state
        except RlnbError:
            continue  # its folder was removed or is of a newer format: not a run to attach to
        if state is State.QUEUED and latest_attempt(layout) == 0:
            continue  # whoever promoted it was interrupted before a supervisor had begun: it would wait for ever
        known = record.fingerprint is not None and asked.fingerprint is not None
        same = record.fingerprint == asked.fingerprint if known else _same_name(record, asked)
        original = record.task == "train" and (record.parent is None or record.parent.kind == "init_from")
        if same and original and (state.living or state in (State.SUSPENDED, State.COMPLETED)):
            return layout, state
    return None


def _same_name(record: RunRecord, asked: Asked) -> bool:
    """Whether a run may be of the experiment that is asked for, when the source does not tell its call."""
    if record.experiment_name == asked.experiment_name:
        return True
    theirs = record.experiment_name or (record.experiment or {}).get("name")
    return theirs is not None and theirs == (asked.experiment_name or (asked.experiment or {}).get("name"))


@contextmanager
def one_promotion_at_a_time() -> Iterator[None]:
    """Keeps two promotions of the same thing, made at the same moment, from starting two runs."""
    settings.home().mkdir(parents=True, exist_ok=True)
    with open(settings.home() / "promote.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def start_run(prepared: Prepared, asked: Asked) -> RunLayout:
    """Writes the working copy of a new run (run.yaml last), lists it and submits it.

    Raises:
        UsageError: an allow-listed variable is not set, or retries are negative.
        SecretError: run.yaml or the notebook would hold the value of a secret variable.
        RunError: the supervisor did not start; the run folder stays, so that its log can be read.
    """
    from rlnb.jobs.executors.local import LocalExecutor

    check_asked(asked)
    layout = new_run(asked.name)
    try:
        record = _record(layout, prepared, asked)
        notebook = prepared.notebook.to_json()
        refuse_secrets(
            Bundle(()), [("run.yaml", record.to_yaml()), ("The notebook", notebook)], prepared.redactor
        )
        environment = describe_environment(prepared.folder, prepared.redactor)
        sha = write_bundle(
            layout,
            prepared.bundle,
            notebook=notebook,
            notebook_name=prepared.notebook.path.name,
            environment=environment,
            lock=lock_text(environment["packages"]),
        )
        begun = stage(layout, InitFrom.parse((asked.experiment or {}).get("init_from")))
        record = replace(record, parent=begun)
        index = Index()
        index.trust(sha)
        write_record(layout, record)
        index.add(layout, record, url=join_run_url(asked.store, record.id), state=State.QUEUED)
    except BaseException:
        shutil.rmtree(layout.root, ignore_errors=True)
        Index().remove(layout.id)
        raise
    LocalExecutor().submit(layout)
    index.upsert(layout.id, state=describe_state(layout)["state"])
    return layout


def check_asked(asked: Asked) -> None:
    """Raises UsageError when an allow-listed variable is not set, or a number or setting is out of range."""
    settings.check()
    for name in asked.env_vars:
        if "=" in name:
            raise UsageError(f"env_vars holds {name.partition('=')[0]!r} with more than a name; give the variable's name only, its value is taken from this environment.")  # fmt: skip
        if name not in os.environ:
            raise UsageError(f"env_vars names {name!r}, which is not set here; set it or take it out.{did_you_mean(name, os.environ)}")  # fmt: skip
    retries: object = asked.retries
    if isinstance(retries, bool) or not isinstance(retries, int):
        raise UsageError(f"retries={retries!r:.80} is no whole number; give 0 or more.")
    if retries < 0:
        raise UsageError(f"retries={retries} is negative; give 0 or more.")
    hold: object = asked.hold
    if hold is not None and (
        isinstance(hold, bool) or not isinstance(hold, int | float) or not math.isfinite(hold)
    ):
        raise UsageError(f"hold={hold!r:.80} is no number of seconds; give 0 or more.")
    if asked.hold is not None and asked.hold < 0:
        raise UsageError(f"hold={asked.hold} is negative; give seconds, 0 or more.")


def _record(layout: RunLayout, prepared: Prepared, asked: Asked) -> RunRecord:
    limits = Limits(
        retries=asked.retries,
        hold=settings.hold() if asked.hold is None else asked.hold,
        grace=settings.grace(),
        backoff=settings.backoff(),
        hang=settings.hang(),
    )
    return RunRecord(
        id=layout.id,
        name=asked.name,
        created=utc_now(),
        rlnb=rlnb.__version__,
        owner={"user": getpass.getuser(), "host": hostname()},
        store={"url": asked.store, "exclusive": asked.exclusive},
        notebook={
            "path": str(prepared.notebook.path),
            "folder": str(prepared.folder),
            "checked": asked.checked,
        },
        target=prepared.target,
        parameters={name: to_record(value, name) for name, value in prepared.parameters.items()},
        experiment=asked.experiment,
        experiment_name=asked.experiment_name,
        fingerprint=asked.fingerprint,
        key=prepared.key,
        tags=list(dict.fromkeys([*asked.tags, *(asked.experiment or {}).get("tags", ())])),
        group=asked.group,
        limits=limits,
        kernel={"python": sys.executable},
        pass_env=list(asked.env_vars),
        overrides=overrides(),
    )


def describe_same(layout: RunLayout, state: State) -> str:
    """One sentence that says to which run a promotion has re-attached."""
    do = {State.SUSPENDED: "; job.resume() lets it go on", State.PAUSED: "; job.resume() lets it go on"}.get(
        state, ""
    )
    return (
        f"{layout.id} is {state.value} with this notebook, design and parameters: attached to it{do} "
        "(new=True starts another)."
    )


def names_of(given: Iterable[str], what: str) -> tuple[str, ...]:
    """Returns words as a tuple; a single string is one word, not its letters.

    Args:
        given: what the user gave.
        what: the argument's name, for the message.

    Raises:
        UsageError: it is no list of words.
    """
    words = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (given,)
    for word in words:
        if not isinstance(word, str) or not word:
            raise UsageError(f"{what} holds {word!r:.80}, which is no word; write e.g. {what}=['a', 'b'].")
    return words


def paths_of(given: Iterable[str | Path], what: str) -> tuple[str | Path, ...]:
    """Returns paths as a tuple; a single one needs no list.

    Raises:
        UsageError: it holds something that is no path.
    """
    paths = (
        (given,)
        if isinstance(given, str | Path)
        else tuple(given)
        if isinstance(given, Iterable)
        else (given,)
    )
    for path in paths:
        if not isinstance(path, str | Path) or not str(path):
            raise UsageError(
                f"{what} holds {path!r:.80}, which is no path; write e.g. {what}=['data/a.csv']."
            )
    return paths
