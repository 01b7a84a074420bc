"""From a notebook to what a run needs of it: frozen cells, bundle, target, and what makes it the same.

Both `promote()` in a kernel and `rlnb promote` go through `prepare`; they differ in what they know.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from rlnb.design.design import Design
from rlnb.errors import CaptureError, DesignError, SecretError, UsageError
from rlnb.jobs.capture.bundle import Bundle, BundleFile, readable_bytes
from rlnb.jobs.capture.carrying import to_source
from rlnb.jobs.capture.collect import CAP_BYTES, collect, refuse_secrets
from rlnb.jobs.capture.freeze import freeze
from rlnb.jobs.capture.localmodules import live_modules
from rlnb.jobs.capture.notebook import INJECTED, Notebook
from rlnb.jobs.capture.parameters import check_parameters, inject, injected_values
from rlnb.jobs.capture.recorder import CellRun
from rlnb.jobs.capture.static_checks import check_input
from rlnb.jobs.capture.written_secrets import find_in_cell, find_in_file
from rlnb.run.experiment_yaml import overrides
from rlnb.run.findings import Finding, Level
from rlnb.run.record import Target
from rlnb.run.secrets import Redactor, describe_secret, find_userinfo, is_secret_name
from rlnb.run.storage import StoreAddress

#: How an example or a format string begins where a real URL has its password.
_PLACEHOLDERS = "{<$*%["


@dataclass(frozen=True)
class Prepared:
    """What a run takes from its notebook.

    Attributes:
        notebook: frozen, with the parameters of this run injected.
        bundle: the files that go along.
        target: the call that trains; its cell is None when only the job can tell.
        parameters: values for the parameters cell.
        findings: what freezing and bundling have to say.
        redactor: of this process's secrets.
    """

    notebook: Notebook
    bundle: Bundle
    target: Target
    parameters: Mapping[str, Any]
    findings: tuple[Finding, ...]
    redactor: Redactor

    @property
    def folder(self) -> Path:
        """The notebook's folder."""
        return self.notebook.path.parent

    def with_parameters(self, values: Mapping[str, Any]) -> Prepared:
        """Returns the same with further parameters, which are checked.

        Raises:
            ParameterError: a name is unknown to the parameters cell, or a value cannot be carried.
            SecretError: a name or value looks like a secret.
        """
        check_parameters(self.notebook, values, self.redactor)
        parameters = {**self.parameters, **values}
        return replace(self, notebook=inject(self.notebook, parameters), parameters=parameters)

    @property
    def key(self) -> str:
        """What two promotions of the same thing have in common.

        Cells after the target do not count: looking at the job in a new cell below is no new run.
        Neither do recordings, whose bytes may differ although their content is the same, nor what else lies
        in a lab's folder. Of a design file the design counts, not how it is written.
        """
        codes = []
        for cell in self.notebook.code:
            if cell.in_job and INJECTED not in cell.tags:
                codes.append(cell.source)
            if cell.id == self.target.cell:
                break
        files = {
            file.name: _content(file.path)
            for file in self.bundle.files
            if file.why not in ("literal", "lab") or _is_setting(file)
        }
        identity = {
            "notebook": str(self.notebook.path.resolve()),
            "code": codes,
            "call": self.target.call,
            "parameters": {name: to_source(value, name) for name, value in sorted(self.parameters.items())},
            "files": files,
        } | ({"overrides": changed} if (changed := overrides()) else {})
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def prepare(
    notebook: Notebook,
    runs: Sequence[CellRun] = (),
    *,
    call: int = 1,
    target: Target | None = None,
    include: Iterable[str | Path] = (),
    lab: Iterable[Path] = (),
    store: str,
) -> Prepared:
    """Freezes a notebook and finds what its job needs.

    Args:
        notebook: the saved file.
        runs: what ran in this kernel; empty without one.
        call: the n-th `promote()` of the running cell.
        target: the call that trains, when no cell is running.
        include: further files of the notebook's folder.
        lab: files of the experiment's lab (`Experiment.lab_files`).
        store: resolved; a folder store inside the notebook's folder is not bundled.

    Raises:
        CaptureError: a cell asks for input, a file is missing, or the bundle is over its cap.
        SecretError: a secret's value would be written down.
    """
    frozen = freeze(notebook, runs)
    kept = injected_values(frozen.notebook)
    code = inject(frozen.notebook, kept)
    if questions := check_input(code):
        raise CaptureError(questions[0].message)
    redactor = Redactor.from_environ()
    folder = notebook.path.parent
    sources = [cell.source for cell in code.code if cell.in_job]
    exclude = [notebook.path, *([Path(store)] if "://" not in store else [])]
    bundle = collect(
        folder,
        sources,
        include=include,
        lab=lab,
        live_modules=(lambda: live_modules(folder)) if runs else None,
        exclude=exclude,
    )
    texts = [
        (f"Cell {number} of the notebook", cell.source) for number, cell in enumerate(code.cells, start=1)
    ]
    refuse_secrets(bundle, texts, redactor)
    _refuse_written(bundle, code)
    findings = list(frozen.findings)
    for number, cell in enumerate(code.cells, start=1):
        password = find_userinfo(cell.source)
        if cell.kind == "code" and password and password[0] not in _PLACEHOLDERS:
            raise SecretError(f"Cell {number} of the notebook holds a URL with a password in it, which would be written down; read it from an environment variable named in env_vars=[…].")  # fmt: skip
        if what := describe_secret(cell.source):
            findings.append(Finding(Level.WARNING, "secret_like", f"Cell {number} holds what looks like {what}, and the notebook is written to the store; read it from an environment variable instead."))  # fmt: skip
    for name in bundle.folders:
        findings.append(Finding(Level.INFO, "folder_left_out", f"The folder {name!r} stays here; include=[{name!r}] takes it along."))  # fmt: skip
    for name in bundle.withheld:
        findings.append(Finding(Level.WARNING, "secret_file", f"The file {name!r} stays here, since such files hold secrets; pass what the job needs with env_vars=[…]."))  # fmt: skip
    if left := bundle.recordings_left_out:
        size = readable_bytes(sum(file.bytes for file in left))
        findings.append(Finding(Level.WARNING, "recordings_left_out", f"The lab's {len(left)} recordings ({size}) stay here, since the bundle has a cap of {readable_bytes(CAP_BYTES)}: the job trains the same design, but its report shows no previews; delete episodes in the lab to have them."))  # fmt: skip
    chosen = target or Target(frozen.target, call if frozen.target is not None else 1)
    return Prepared(code, bundle, chosen, kept, tuple(findings), redactor)


def _is_setting(file: BundleFile) -> bool:
    """Whether a file that nobody included decides what is trained; nothing in a lab's folder does."""
    in_lab = any(part.endswith(".lab") for part in PurePosixPath(file.name).parts[:-1])
    return not in_lab and file.path.suffix in (".yaml", ".yml", ".json", ".toml")


def _content(path: Path) -> str:
    """What a file says: the design's fingerprint, else the sha256 of its bytes.

    A lab writes a design anew without its comments; the run would still be the same.
    """
    if path.suffix in (".yaml", ".yml"):
        with contextlib.suppress(DesignError):
            return Design.from_yaml(path).fingerprint()
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _refuse_written(bundle: Bundle, notebook: Notebook) -> None:
    """Refuses secrets that only the source holds.

    Raises:
        SecretError: a cell or a file gives a value to a name that says it is a secret.
    """
    places = [
        (f"Cell {number} of the notebook", find_in_cell(cell.source))
        for number, cell in enumerate(notebook.cells, start=1)
        if cell.kind == "code"
    ]
    places += [(f"The file {file.name}", find_in_file(file.path)) for file in bundle.files]
    for place, name in places:
        if name is not None:
            variable = name.upper().replace("-", "_")
            raise SecretError(
                f"{place} writes out a value for {name}, which would be written to the store; set the environment "
                f"variable {variable} before Jupyter starts, read os.environ[{variable!r}], and pass env_vars=[{variable!r}]."
            )


def refuse_secret_settings(experiment: Mapping[str, Any], redactor: Redactor) -> None:
    """Refuses an experiment that holds a secret, because run.yaml would.

    Raises:
        SecretError: a setting holds the value of a secret environment variable.
    """
    if name := redactor.find(json.dumps(experiment, default=str, ensure_ascii=False)):
        raise SecretError(
            f"A setting of the experiment holds the value of {name}, which run.yaml would keep; let the environment "
            f"read os.environ[{name!r}] itself, and pass env_vars=[{name!r}]."
        )


def resolve_store(store: str | Path, *, base: Path) -> str:
    """Returns the store's address, absolute.

    Args:
        store: a folder (relative to `base`), or a URL.
        base: the notebook's folder for `promote()`, the shell's for the command line.

    Raises:
        UsageError: the URL is malformed, or `memory://`, which ends with the process.
        SecretError: the URL carries a password.
    """
    given: object = store
    if not isinstance(given, str | Path) or not str(given).strip():
        raise UsageError(
            f"store={given!r:.80} is no place; give a folder such as './runs', or s3:// or obs://."
        )
    text = os.fspath(store)
    authority, _, query = text.partition("://")[2].partition("?")
    secret_options = [name for name in query.split("&") if is_secret_name(name.partition("=")[0])]
    if find_userinfo(text) or "@" in authority.partition("/")[0] or secret_options:
        raise SecretError(
            "The store's URL carries credentials, and run.yaml would keep them; take them out of the URL and put "
            "them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or your credentials file."
        )
    if "://" not in text:
        return str((base / Path(text).expanduser()).resolve())
    if text.startswith("memory:"):
        raise UsageError(
            "store='memory://…' ends with the process that holds it; use a folder, s3:// or obs://."
        )
    return StoreAddress.parse(text).url
