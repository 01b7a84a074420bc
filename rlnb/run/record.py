"""run.yaml: what was asked, with every resolved value; it never changes once it is complete."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import yaml

from rlnb.errors import RunFormatError, RunNotFound, did_you_mean
from rlnb.run.atomic import write_atomic
from rlnb.run.layout import RunLayout

FORMAT = 1


@dataclass(frozen=True)
class Target:
    """The `promote()` call that trains: the n-th in one cell of the frozen notebook.

    Attributes:
        cell: the cell's id.
        call: 1 for the first `promote()` executed in that cell.
    """

    cell: str | None = None
    call: int = 1


@dataclass(frozen=True)
class Parent:
    """Where a fork or a warm start comes from.

    Attributes:
        run: id or address of the parent run.
        step: the parent's checkpoint.
        kind: "fork", "verify" or "init_from".
    """

    run: str
    step: int | None = None
    kind: str = "fork"


@dataclass(frozen=True)
class Limits:
    """How long and how often.

    Attributes:
        retries: failed attempts that may be followed by another.
        hold: seconds a job stays paused in place before it is suspended.
        grace: seconds a stop or suspend waits for the next safe point.
        backoff: seconds before the first retry.
        hang: seconds without a training step after which it counts as hung.
    """

    retries: int = 3
    hold: float = 1800.0
    grace: float = 120.0
    backoff: float = 2.0
    hang: float = 1800.0


@dataclass(frozen=True)
class RunRecord:
    """The content of run.yaml.

    Attributes:
        id: also the folder's name.
        name: the experiment's name.
        created: ISO 8601, UTC.
        rlnb: version that wrote it.
        owner: {"user", "host"}.
        store: {"url": absolute, without secrets; "exclusive": whether it honours exclusive create}.
        notebook: {"path": where it was promoted from, "folder": its folder}.
        target: the `promote()` call that trains; its cell is None until the first attempt of a
            run that was promoted without a kernel has reached it.
        parameters: values for the parameters cell, as `rlnb.jobs.capture.parameters` encodes them.
        experiment: `ExperimentSpec.to_dict()`; None until the first attempt has resolved it, for a
            run that was promoted without a kernel.
        experiment_name: which Experiment to train when the notebook has several (command line).
        changes: settings of this run that override the notebook's Experiment (forks, interventions).
        fingerprint: of the experiment.
        key: what makes two promotions the same.
        task: "train" or "verify".
        tags, group, notes: for people.
        parent: where it was forked from, or None.
        limits: see `Limits`.
        kernel: {"python": the interpreter}.
        pass_env: names of the environment variables that reach the job.
        overrides: `RLNB_<SECTION>__<KEY>` variables that were set, and override experiments that the
            notebook reads from a file: every attempt must see the same, whoever resumes it from where.
    """

    id: str
    name: str
    created: str
    rlnb: str
    owner: dict[str, str]
    store: dict[str, Any]
    notebook: dict[str, Any]
    target: Target = field(default_factory=Target)
    parameters: dict[str, Any] = field(default_factory=dict)
    experiment: dict[str, Any] | None = None
    experiment_name: str | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    fingerprint: str | None = None
    key: str = ""
    task: str = "train"
    tags: list[str] = field(default_factory=list)
    group: str | None = None
    parent: Parent | None = None
    limits: Limits = field(default_factory=Limits)
    kernel: dict[str, Any] = field(default_factory=dict)
    pass_env: list[str] = field(default_factory=list)
    overrides: dict[str, str] = field(default_factory=dict)
    notes: str = ""
    format: int = FORMAT

    @property
    def complete(self) -> bool:
        """Whether the experiment is resolved, so that run.yaml is final."""
        return self.experiment is not None

    def to_yaml(self) -> str:
        data = asdict(self)
        ordered = {"format": data.pop("format"), **data}
        return yaml.safe_dump(ordered, sort_keys=False, allow_unicode=True, width=100)

    @classmethod
    def from_yaml(cls, text: str, *, source: str = "run.yaml") -> RunRecord:
        """Parses a run.yaml.

        Raises:
            RunFormatError: it is no run.yaml, or of a newer format.
        """
        try:
            data = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise RunFormatError(f"{source} is not valid YAML ({error}).") from None
        if not isinstance(data, dict) or "format" not in data:
            raise RunFormatError(f"{source} is not a run.yaml: it has no 'format'.")
        if data["format"] > FORMAT:
            raise RunFormatError(
                f"{source} has format {data['format']}, this rlnb reads up to {FORMAT}; upgrade rlnb to read it."
            )
        for key in data:
            if key not in cls.__dataclass_fields__:
                known = cls.__dataclass_fields__
                raise RunFormatError(f"{source} has the unknown key {key!r}.{did_you_mean(key, known)}")
        data["target"] = Target(**(data.get("target") or {}))
        data["limits"] = Limits(**(data.get("limits") or {}))
        data["parent"] = Parent(**data["parent"]) if data.get("parent") else None
        return cls(**data)


def write_record(layout: RunLayout, record: RunRecord) -> None:
    """Writes run.yaml; call it last, when everything it speaks of is there."""
    write_atomic(layout.run_yaml, record.to_yaml())


def read_record(layout: RunLayout) -> RunRecord:
    """Returns what was asked.

    Raises:
        RunNotFound: the folder holds no run.yaml.
        RunFormatError: run.yaml cannot be read by this version.
    """
    try:
        text = layout.run_yaml.read_text()
    except (FileNotFoundError, NotADirectoryError):
        raise RunNotFound(f"{layout.root} is not a run folder: it has no run.yaml.") from None
    return RunRecord.from_yaml(text, source=str(layout.run_yaml))


def complete_record(
    layout: RunLayout, *, experiment: dict[str, Any], fingerprint: str, name: str, target: Target
) -> RunRecord:
    """Fills in what only the running notebook could tell; done once, by the first attempt.

    A record that is complete already is returned unchanged.
    """
    record = read_record(layout)
    if record.complete:
        return record
    tags = [*record.tags, *(t for t in experiment.get("tags", []) if t not in record.tags)]
    record = replace(
        record, experiment=experiment, fingerprint=fingerprint, name=name, target=target, tags=tags
    )
    write_record(layout, record)
    return record
