"""What the index says of a run, read from its folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlnb.errors import RlnbError
from rlnb.run.layout import RunLayout, read_json
from rlnb.run.record import RunRecord, read_record
from rlnb.run.status import State, observe


@dataclass(frozen=True)
class IndexRow:
    """What the index knows of one run; times are ISO 8601, UTC."""

    id: str
    url: str = ""
    folder: str = ""
    name: str = ""
    state: str = State.QUEUED.value
    attempt: int = 0
    step: int = 0
    total_timesteps: int | None = None
    return_mean: float | None = None
    created: str = ""
    updated: str = ""
    tags: tuple[str, ...] = ()
    group: str | None = None
    key: str = ""
    algo: str | None = None
    env: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "tags": list(self.tags)}


def read_folders(parents: Iterable[Path]) -> list[IndexRow]:
    """What is to be said of the runs in these folders (run folders themselves, or what lies in them), newest first."""
    found: dict[str, IndexRow] = {}
    for parent in parents:
        for root in [parent, *(sorted(parent.iterdir()) if parent.is_dir() else [])]:
            layout = RunLayout(root)
            try:
                record = read_record(layout)
                known = {**describe_record(record), **describe_state(layout)}
            except RlnbError:
                continue  # no run, or one that a newer rlnb wrote: not for this index
            found.setdefault(record.id, IndexRow(record.id, _url_of(record), str(root), **known))
    return sorted(found.values(), key=lambda row: (row.created, row.id), reverse=True)


def _url_of(record: RunRecord) -> str:
    url = str(record.store.get("url", "")).rstrip("/")
    base, mark, query = url.partition("?")
    return f"{base}/{record.id}{mark}{query}"


def describe_record(record: RunRecord) -> dict[str, Any]:
    """Returns the columns that follow from what was asked."""
    experiment = record.experiment or {}
    env = experiment.get("env")
    return {
        "name": record.name,
        "created": record.created,
        "tags": record.tags,
        "group": record.group,
        "key": record.key,
        "algo": experiment.get("algo"),
        "env": env.get("value") if isinstance(env, Mapping) else env,
        "total_timesteps": experiment.get("total_timesteps"),
    }


def describe_state(layout: RunLayout) -> dict[str, Any]:
    """Returns the columns that follow from how the run goes."""
    observation = observe(layout)
    status = observation.status
    training = read_json(layout.training_json) or {}
    mean = training.get("return_mean", status.return_mean if status else None)
    return {
        "state": observation.state.value,
        "attempt": status.attempt if status else 0,
        "step": training.get("step", status.step if status else 0),
        "return_mean": mean,
    }
