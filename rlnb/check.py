"""`exp.check()`: everything that can be found out before a job starts, each as one sentence."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from rlnb import settings
from rlnb.check_report import CheckReport as CheckReport
from rlnb.errors import RlnbError, StoreError, UsageError, did_you_mean
from rlnb.jobs.capture import recorder as capture
from rlnb.jobs.capture.bundle import readable_bytes
from rlnb.jobs.capture.notebook import Notebook, read_notebook
from rlnb.jobs.capture.parameters import find_parameters
from rlnb.jobs.capture.search import find_notebook
from rlnb.jobs.capture.static_checks import check_names, check_syntax
from rlnb.launch import names_of
from rlnb.prepare import Prepared, prepare, resolve_store
from rlnb.run.findings import Finding, Level
from rlnb.run.identity import current
from rlnb.warmstart import check_source

if TYPE_CHECKING:
    from rlnb.experiment import Experiment

#: Bytes that should be free for a run's checkpoints and logs.
LEAST_DISK = 1_000_000_000
_rehearsed: WeakKeyDictionary[Experiment, tuple[str, list[Finding]]] = WeakKeyDictionary()


class Part(StrEnum):
    """The parts of a check, which `skip=` names."""

    NOTEBOOK = "notebook"
    STORE = "store"
    REHEARSAL = "rehearsal"


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
        prepared, found = _prepare_here(notebook, exp.lab_files())
        findings += found
        if prepared is not None:
            base = prepared.folder
            findings += [*prepared.findings, *check_notebook(prepared)]
    if Part.STORE in parts and store is not None:
        exclusive, found = check_store(resolve_store(store, base=base))
        findings += found
    if Part.REHEARSAL in parts:
        findings += [*check_disk(), *check_source(exp.spec.init_from), *rehearse_here(exp)]
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
    if not (result.writes and result.reads):
        return None, [Finding(Level.ERROR, "store", f"The store {url} failed a real write and read: {result.error} Correct the address, the credentials or the rights.")]  # fmt: skip
    if not result.deletes:
        return result.exclusive, [Finding(Level.WARNING, "store_delete", f"The store {url} refuses to delete ({result.error}), so superseded checkpoints pile up there; grant the right to delete.")]  # fmt: skip
    return result.exclusive, []


def check_disk() -> list[Finding]:
    """Looks at the space where the runs' working copies are written."""
    folder = settings.home()
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free >= LEAST_DISK:
        return []
    level = Level.ERROR if free < LEAST_DISK / 10 else Level.WARNING
    return [Finding(level, "disk", f"Only {readable_bytes(free)} are free where runs are written ({folder}); make room, or set RLNB_HOME to another disk.")]  # fmt: skip


def rehearse_here(exp: Experiment) -> list[Finding]:
    """Runs the experiment for a moment in a throwaway folder, in this process.

    What passed is not repeated: `exp.check()` in one cell and `promote(exp)` in the next cost one
    rehearsal, as long as the experiment still says the same.
    """
    from rlnb.train.rehearse import rehearse

    fingerprint = exp.spec.fingerprint()
    known, found = _rehearsed.get(exp, ("", []))
    if known == fingerprint:
        return found
    with tempfile.TemporaryDirectory(prefix="rlnb-check-") as folder:
        try:
            found = list(
                rehearse(
                    exp.spec,
                    make_env=exp.make_env,
                    design=exp.design,
                    folder=Path(folder),
                    signals=exp.signals,
                    callbacks=exp.callbacks,
                )
            )
        except RlnbError as error:
            return [Finding(Level.ERROR, "rehearsal", str(error))]
    if not any(finding.level is Level.ERROR for finding in found):
        _rehearsed[exp] = (fingerprint, found)
    return found


def _prepare_here(explicit: str | Path | None, lab: Iterable[Path]) -> tuple[Prepared | None, list[Finding]]:
    """The notebook that runs here, frozen; or why it cannot be."""
    recorder = capture.install()
    runs = recorder.runs if recorder else []
    try:
        path = find_notebook(explicit, namespace=recorder.namespace if recorder else {}, runs=runs)
        return prepare(read_notebook(path), runs, lab=lab, store=str(path.parent / "runs")), []
    except UsageError as error:
        if not runs and explicit is None:
            return None, [Finding(Level.INFO, "no_notebook", "This is no notebook, so its cells were not checked; pass notebook='…'.")]  # fmt: skip
        return None, [Finding(Level.ERROR, "notebook", str(error))]


def _parts(skip: Iterable[str]) -> set[Part]:
    skipped = list(names_of(skip, "skip"))
    names = [part.value for part in Part]
    for name in skipped:
        if name not in names:
            raise UsageError(f"skip names {name!r}; the parts of a check are {', '.join(names)}.{did_you_mean(name, names)}")  # fmt: skip
    return set(Part) - {Part(name) for name in skipped}
