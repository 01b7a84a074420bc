"""`exp.check()`: everything that can be found out before a job starts, each as one sentence."""

from __future__ import annotations

import html
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.errors import ExperimentError, RlnbError, StoreError, UsageError, did_you_mean
from rlnb.jobs import capture
from rlnb.jobs.notebook import Notebook, find_notebook, read_notebook
from rlnb.jobs.parameters import find_parameters
from rlnb.jobs.static_checks import check_names, check_syntax
from rlnb.prepare import Prepared, prepare, resolve_store
from rlnb.run.findings import Finding, Level
from rlnb.run.identity import current

if TYPE_CHECKING:
    from rlnb.experiment import Experiment

_MARKS = {Level.ERROR: "✗", Level.WARNING: "!", Level.INFO: "·"}
_COLOURS = {Level.ERROR: "#c62828", Level.WARNING: "#b26a00", Level.INFO: "inherit"}


class Part(StrEnum):
    """The parts of a check, which `skip=` names."""

    NOTEBOOK = "notebook"
    STORE = "store"
    REHEARSAL = "rehearsal"


@dataclass(frozen=True)
class CheckReport:
    """What a check found.

    Attributes:
        findings: errors first.
        seconds: how long it took.
        exclusive: whether the store honours exclusive create; None when it was not tried.
    """

    findings: tuple[Finding, ...]
    seconds: float = 0.0
    exclusive: bool | None = None

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.level is Level.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.level is Level.WARNING)

    @property
    def ok(self) -> bool:
        """Whether nothing stands in the way of promotion."""
        return not self.errors

    def require(self) -> CheckReport:
        """Returns itself, or raises ExperimentError with every error's sentence."""
        if not self.ok:
            raise ExperimentError(
                "Not promoted: "
                + " ".join(finding.message for finding in self.errors)
                + " (check=False promotes without these checks.)"
            )
        return self

    def __repr__(self) -> str:
        lines = [f"{_MARKS[finding.level]} {finding.message}" for finding in self.findings]
        return "\n".join([self._headline(), *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<li style="list-style:none;color:{_COLOURS[f.level]}">{_MARKS[f.level]} {html.escape(f.message)}</li>'
            for f in self.findings
        )
        return f'<b>{html.escape(self._headline())}</b><ul style="margin:0;padding-left:0.5em">{rows}</ul>'

    def _headline(self) -> str:
        verdict = "ready to promote" if self.ok else f"{len(self.errors)} problem(s) to solve"
        hints = f", {len(self.warnings)} warning(s)" if self.warnings else ""
        return f"check: {verdict}{hints} ({self.seconds:.1f} s)"


def check(
    exp: Experiment,
    *,
    store: str | Path | None = None,
    notebook: str | Path | None = None,
    skip: Iterable[str] = (),
) -> CheckReport:
    """Checks an experiment without promoting it; nothing of it is kept.

    Args:
        exp: the experiment.
        store: also try writing, reading and deleting there; None leaves the store out.
        notebook: path of the notebook, when it cannot be found from the kernel.
        skip: parts to leave out: "notebook", "store", "rehearsal".

    Raises:
        UsageError: `skip` names an unknown part.
    """
    parts = _parts(skip)
    if current() is not None:
        # Every attempt of a job runs the cells before promote() again; it was checked before it began.
        return CheckReport((Finding(Level.INFO, "in_job", "Not repeated inside a job."),))
    begin = time.monotonic()
    findings: list[Finding] = []
    exclusive = None
    base = Path.cwd()
    if Part.NOTEBOOK in parts:
        prepared, found = _prepare_here(notebook)
        findings += found
        if prepared is not None:
            base = prepared.folder
            findings += [*prepared.findings, *check_notebook(prepared)]
    if Part.STORE in parts and store is not None:
        exclusive, found = check_store(resolve_store(store, base=base))
        findings += found
    if Part.REHEARSAL in parts:
        findings += rehearse_here(exp)
    return make_report(findings, begin, exclusive=exclusive)


def make_report(findings: Sequence[Finding], begin: float, *, exclusive: bool | None = None) -> CheckReport:
    """Returns a report with the findings sorted, errors first, and the time since `begin`."""
    ordered = sorted(dict.fromkeys(findings), key=lambda finding: list(Level).index(finding.level))
    return CheckReport(tuple(ordered), time.monotonic() - begin, exclusive)


def check_notebook(prepared: Prepared) -> list[Finding]:
    """Static checks of a frozen notebook: syntax, undefined names, the interpreter of its kernel."""
    return [
        *check_syntax(prepared.notebook),
        *check_names(prepared.notebook, target=prepared.target.cell),
        *_check_parameters_cell(prepared.notebook),
    ]


def check_kernel(notebook: Notebook) -> list[Finding]:
    """Compares the interpreter of the notebook's kernel with this one, in which the job will run."""
    name = notebook.metadata.get("kernelspec", {}).get("name")
    if not name or name in ("python3", "python"):
        return []  # the default name means "the Python at hand", which is this one
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        argv = KernelSpecManager().get_kernel_spec(name).argv
    except NoSuchKernel:
        return [Finding(Level.WARNING, "kernel_unknown", f"The notebook's kernel {name!r} is not installed here; the job uses {sys.executable}.")]  # fmt: skip
    executable = Path(argv[0]) if argv else Path(sys.executable)
    if executable.is_absolute() and _prefix(executable) != _prefix(Path(sys.executable)):
        return [Finding(Level.ERROR, "interpreter", f"The notebook's kernel {name!r} runs {executable}, but this is {sys.executable}; run rlnb with that interpreter, or change the notebook's kernel.")]  # fmt: skip
    return []


def _prefix(executable: Path) -> Path:
    """The environment an interpreter belongs to; links to the system's Python are not followed."""
    return executable.parent.resolve()


def _check_parameters_cell(notebook: Notebook) -> list[Finding]:
    try:
        cell = find_parameters(notebook)
    except UsageError as error:
        return [Finding(Level.ERROR, "parameters_cell", str(error))]
    if cell is None:
        return [Finding(Level.INFO, "no_parameters", "No cell is tagged 'parameters', so neither -p nor grid= can change a value.")]  # fmt: skip
    return []


def check_store(url: str) -> tuple[bool | None, list[Finding]]:
    """Writes, reads and deletes in the store, as the job will.

    Returns:
        Whether it honours exclusive create (None when it cannot be reached), and what was found.
    """
    from rlnb.run.storage import open_storage, probe

    try:
        result = probe(open_storage(url))
    except (StoreError, UsageError) as error:
        return None, [Finding(Level.ERROR, "store", f"The store {url} cannot be used: {error}")]
    if result.error or not (result.writes and result.reads):
        return None, [Finding(Level.ERROR, "store", f"The store {url} failed a real write and read ({result.error}); correct the address, the credentials or the rights.")]  # fmt: skip
    if not result.deletes:
        return result.exclusive, [Finding(Level.WARNING, "store_delete", f"The store {url} refuses to delete, so superseded checkpoints pile up there; grant the right to delete.")]  # fmt: skip
    return result.exclusive, []


def rehearse_here(exp: Experiment) -> list[Finding]:
    """Runs the experiment for a moment in a throwaway folder, in this process."""
    from rlnb.train.rehearse import rehearse

    with tempfile.TemporaryDirectory(prefix="rlnb-check-") as folder:
        try:
            return list(rehearse(exp.spec, make_env=exp.make_env, design=exp.design, folder=Path(folder)))
        except RlnbError as error:
            return [Finding(Level.ERROR, "rehearsal", str(error))]


def _prepare_here(explicit: str | Path | None) -> tuple[Prepared | None, list[Finding]]:
    """The notebook that runs here, frozen; or why it cannot be."""
    recorder = capture.install()
    runs = recorder.runs if recorder else []
    try:
        path = find_notebook(explicit, namespace=recorder.namespace if recorder else {}, runs=runs)
        return prepare(read_notebook(path), runs, store=str(path.parent / "runs")), []
    except UsageError as error:
        if not runs and explicit is None:
            return None, [Finding(Level.INFO, "no_notebook", "This is no notebook, so its cells were not checked; pass notebook='…'.")]  # fmt: skip
        return None, [Finding(Level.ERROR, "notebook", str(error))]


def _parts(skip: Iterable[str]) -> set[Part]:
    skipped = [skip] if isinstance(skip, str) else list(skip)
    names = [part.value for part in Part]
    for name in skipped:
        if name not in names:
            raise UsageError(f"skip names {name!r}; the parts of a check are {', '.join(names)}.{did_you_mean(name, names)}")  # fmt: skip
    return set(Part) - {Part(name) for name in skipped}
