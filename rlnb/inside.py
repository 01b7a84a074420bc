"""`promote()` inside a job: the target call trains, every other call is told that it is not meant."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.errors import ExperimentError, FingerprintMismatch
from rlnb.prepare import refuse_secret_settings
from rlnb.run.events import EventLog
from rlnb.run.experiment import ExperimentSpec
from rlnb.run.findings import Level
from rlnb.run.identity import JobIdentity, current_cell
from rlnb.run.index import Index
from rlnb.run.index_rows import describe_record
from rlnb.run.layout import RunLayout, read_json
from rlnb.run.record import RunRecord, Target, complete_record, read_record
from rlnb.run.secrets import Redactor
from rlnb.warmstart import stage

if TYPE_CHECKING:
    from rlnb.experiment import Experiment
    from rlnb.group import Group
    from rlnb.job import Job


class NotThisRun:
    """What a `promote()` returns inside a job that is not the run it would start.

    It takes the place of a `Job`, so that the cells after it run: whatever is asked of it does
    nothing, says so, and returns the handle itself. Its attributes are handles, too.
    """

    def __init__(self, name: str, run_id: str, *, asked: str = "") -> None:
        self._name, self._run_id, self._asked = name, run_id, asked

    def __repr__(self) -> str:
        return f"<{self._text}>"

    @property
    def _text(self) -> str:
        return f"promote({self._name!r}) is not part of this run ({self._run_id})"

    def __getattr__(self, name: str) -> NotThisRun:
        if name.startswith("_"):
            # IPython and copy look for optional methods of this form and must not find them.
            raise AttributeError(name)
        return NotThisRun(self._name, self._run_id, asked=f"{self._asked}.{name}".lstrip("."))

    def __call__(self, *_: Any, **__: Any) -> NotThisRun:
        print(f"{self._asked}() does nothing: {self._text}.")
        return NotThisRun(self._name, self._run_id)

    def __getitem__(self, key: Any) -> NotThisRun:
        return self

    def __iter__(self) -> Iterator[NotThisRun]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True


@dataclass
class _Calls:
    """How many `promote()` calls this execution of a cell has made, and whether one has trained."""

    execution: tuple[str | None, int] | None = None
    count: int = 0
    trained: set[Path] = field(default_factory=set)

    def next(self) -> Target:
        """Counts one call; returns where it stands."""
        execution = current_cell()
        if execution != self.execution:
            self.execution, self.count = execution, 0
        self.count += 1
        return Target(execution[0], self.count)


_calls = _Calls()


def promote_inside(exp: Experiment, identity: JobIdentity, *, grid: bool = False) -> Job | Group | NotThisRun:
    """Trains when this call is the run's target; the job ignores its own store and options.

    Args:
        exp: the experiment.
        identity: the run this process was started for.
        grid: whether the call starts a group; then the cells below expect one, and get this member.

    Raises:
        FingerprintMismatch: the experiment is not the one that was promoted; both values are named.
        ExperimentError: the rehearsal of a run that was promoted without a kernel found errors.
    """
    here = _calls.next()
    layout = RunLayout(identity.root)
    record = read_record(layout)
    if not _is_target(identity, record, exp, here) or identity.root in _calls.trained:
        handle = NotThisRun(exp.name, layout.id)
        print(f"{handle!r}".strip("<>") + "; it does nothing here.")
        return handle
    _calls.trained.add(identity.root)
    if read_json(layout.training_json) is not None:
        print(f"{layout.id} has finished its training in an earlier attempt.")
        return _handle(layout, record, grid=grid)
    changed = exp.with_changes(**record.changes) if record.changes else exp
    _settle(changed, layout, record, here)
    stage(layout, changed.spec.init_from)
    _train(changed, layout, identity.attempt)
    return _handle(layout, record, grid=grid)


def _handle(layout: RunLayout, record: RunRecord, *, grid: bool) -> Job | Group:
    from rlnb.group import Group
    from rlnb.job import Job

    job = Job(layout.id, layout)
    return Group(record.group or record.name, [job]) if grid else job


def _is_target(identity: JobIdentity, record: RunRecord, exp: Experiment, here: Target) -> bool:
    """Whether a call is the one that trains; a run promoted without a kernel may know a name only."""
    cell = record.target.cell if identity.cell is None else identity.cell
    if cell is not None:
        return here.cell == cell and here.call == (identity.call if identity.cell else record.target.call)
    return record.experiment_name in (None, exp.name)


def _settle(exp: Experiment, layout: RunLayout, record: RunRecord, here: Target) -> None:
    """Makes sure that what is about to train is what run.yaml says, or fills that in the first time."""
    spec = exp.spec
    if record.experiment is not None:
        promoted = ExperimentSpec.from_dict(record.experiment)
        if promoted.fingerprint() != spec.fingerprint():
            raise FingerprintMismatch(describe_differences(layout.id, promoted, spec))
        return
    refuse_secret_settings(spec.to_dict(), Redactor.from_environ())
    if not record.notebook.get("checked", True):
        _rehearse(exp, layout)
    completed = complete_record(
        layout, experiment=spec.to_dict(), fingerprint=spec.fingerprint(), name=spec.name, target=here
    )
    Index().upsert(layout.id, **describe_record(completed))


def describe_differences(run_id: str, promoted: ExperimentSpec, now: ExperimentSpec) -> str:
    """One sentence that names each differing field with both values."""
    differences = promoted.differences(now)
    named = "; ".join(
        f"{field} was {mine!r} and is now {theirs!r}" for field, mine, theirs in differences[:8]
    )
    more = f"; and {len(differences) - 8} more" if len(differences) > 8 else ""
    return (
        f"The notebook of {run_id} now makes another experiment than the one that was promoted: {named}{more}. "
        "A cell before promote() depends on something outside the notebook (time, random numbers, a changed file, "
        "an environment variable); make it constant and promote again."
    )


def _rehearse(exp: Experiment, layout: RunLayout) -> None:
    from rlnb.train.rehearse import rehearse

    with tempfile.TemporaryDirectory(prefix="rlnb-check-") as folder:
        findings = rehearse(
            exp.spec,
            make_env=exp.make_env,
            design=exp.design,
            folder=Path(folder),
            signals=exp.signals,
            callbacks=exp.callbacks,
        )
    events = EventLog(layout)
    for finding in findings:
        if finding.level is not Level.INFO:
            events.append("check", str(finding), code=finding.code)
    errors = [finding.message for finding in findings if finding.level is Level.ERROR]
    if errors:
        raise ExperimentError("The rehearsal before training found: " + " ".join(errors))


def _train(exp: Experiment, layout: RunLayout, attempt: int) -> None:
    from rlnb.train.trainer import train

    train(
        exp.spec,
        make_env=exp.make_env,
        design=exp.design,
        layout=layout,
        attempt=attempt,
        callbacks=exp.callbacks,
        signals=exp.signals,
    )
