"""Finding runs: `rlnb.jobs()` and `rlnb.job()`, from any notebook, terminal or later day.

The local index answers at once, without opening run folders; only runs that should be alive are looked at,
because a supervisor that was killed cannot have told the index. Runs of other machines are found by their
address or in their store, and are pulled into `settings.cache_dir()` for reading.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlnb import settings
from rlnb.errors import RlnbError, RunError, RunNotFound, UsageError, did_you_mean
from rlnb.job import Job
from rlnb.run.index import Index, IndexUnusable
from rlnb.run.index_rows import IndexRow, describe_state
from rlnb.run.layout import RunLayout
from rlnb.run.record import read_record
from rlnb.run.status import State, observe
from rlnb.source import join_run_url, split_run_url, superseded
from rlnb.view.facts import number

SHOWN = ("id", "name", "state", "step", "total_timesteps", "return_mean", "created")


class JobList(list[Job]):
    """Runs, newest first; shows itself as a table."""

    def __init__(self, jobs: Iterable[Job] = (), rows: Iterable[IndexRow] = ()) -> None:
        super().__init__(jobs)
        self._rows = list(rows)

    def rows(self) -> list[dict[str, Any]]:
        """Returns one dictionary per run, as `rlnb jobs --json` prints them."""
        return [row.to_dict() for row in self._rows]

    def __repr__(self) -> str:
        lines = [
            f"{row.id}  {row.state:<9}  {row.step:>12,}  {'' if row.return_mean is None else f'{row.return_mean:.1f}':>8}"
            for row in self._rows
        ]
        return "\n".join(lines) or "no runs"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in SHOWN)
        body = []
        for row in self.rows():
            cells = (html.escape(_cell(name, row[name])) for name in SHOWN)
            body.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        if not body:
            return "no runs"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name == "created":
        return f"{str(value)[:16].replace('T', ' ')} UTC"
    return (
        f"{value:,}" if isinstance(value, int) else number(value) if isinstance(value, float) else str(value)
    )


def jobs(
    *,
    store: str | Path | None = None,
    state: str | State | None = None,
    name: str | None = None,
    tag: str | None = None,
    group: str | None = None,
    limit: int | None = None,
) -> JobList:
    """Lists runs, newest first.

    Args:
        store: look into this store (folder or URL) first, so that runs of other machines are listed too;
            only the runs in it are returned.
        state, name, tag, group: only runs with this value.
        limit: at most this many.

    Raises:
        UsageError: the state is unknown.
        StoreError: the store cannot be read.
    """
    wanted = _state(state)
    members = None if store is None else {run.id for run in _visit(_store_url(store))}
    _make_index()
    rows = Index().rows(name=name, tag=tag, group=group)
    if members is not None:
        rows = [row for row in rows if row.id in members]
    rows = list(_current(rows, wanted))
    rows = rows[:limit] if limit is not None else rows
    return JobList([_from_row(row) for row in rows], rows)


def job(id_or_url: str | Path) -> Job:
    """Returns the handle of one run.

    Args:
        id_or_url: a run's id, the unique beginning or end of one, the name of an experiment (its newest
            run), a run folder, or a run's address in a store (`s3://bucket/prefix/ID`).

    Raises:
        RunNotFound: there is no such run.
        UsageError: the text fits several runs.
        StoreError: the store cannot be read.
    """
    text = str(id_or_url)
    if "://" in text:
        return _by_address(text)
    if "/" in text or Path(text, "run.yaml").is_file():
        return _by_folder(Path(text))
    _make_index()
    try:
        row = Index().get(text)
    except RunNotFound:
        for parent in (settings.runs_dir(), settings.cache_dir()):
            # A folder that the index does not know: copied here, or promoted while the index was locked.
            if RunLayout(parent / text).run_yaml.is_file():
                return Job(text, RunLayout(parent / text))
        raise
    return _known(row.id, row.url) or _from_elsewhere(row)


def rebuild(folders: Iterable[Path] = ()) -> int:
    """Makes the index anew from this machine's run folders and those in `folders`; returns their number.

    Which bundles may be executed is not taken from folders: that is the user's word (`--trust`).

    Raises:
        UsageError: a folder does not exist.
    """
    places = [settings.runs_dir(), settings.cache_dir()]
    for folder in folders:
        if not Path(folder).is_dir():
            raise UsageError(f"{folder} is not a folder; name a store's folder or a run folder.")
        places.append(Path(folder).absolute())
    return Index().rebuild(places)


def reconcile(*, resume: bool = False) -> list[dict[str, Any]]:
    """Looks after runs of this machine whose supervisor is gone: ends what it left, and says so.

    Args:
        resume: start a new attempt of each lost run.

    Returns:
        One dictionary per run that needed it: id, state, message.
    """
    from rlnb.jobs.reconcile import reconcile as put_right

    found = []
    for item in put_right():
        layout, message = item.layout, item.message
        if not item.readable:
            found.append({"id": layout.id, "state": None, "message": message})
            continue
        if resume and observe(layout).state is State.LOST:
            try:
                message += f" {Job(layout.id, layout).resume()}"
            except RlnbError as error:
                message += f" It could not be resumed: {error}"
        columns = describe_state(layout)
        Index().upsert(layout.id, **columns)
        found.append({"id": layout.id, "state": columns["state"], "message": message})
    return found


def _make_index() -> None:
    """Makes an index that is missing; where that cannot be done, the folders are read each time."""
    if not settings.index_path().exists():
        with suppress(IndexUnusable):
            rebuild()


def _state(state: str | State | None) -> State | None:
    if state is None:
        return None
    if state not in list(State):
        raise UsageError(
            f"There is no state {str(state)!r}.{did_you_mean(str(state), map(str, State))} There are {', '.join(State)}."
        )
    return State(state)


def _store_url(store: str | Path) -> str:
    text = str(store)
    return text if "://" in text else str(Path(text).expanduser().absolute())


def _current(rows: Iterable[IndexRow], wanted: State | None) -> Iterator[IndexRow]:
    """Brings the rows of runs that should be alive up to date, and keeps those in the wanted state."""
    for row in rows:
        fresh = row
        if State(row.state).living and row.folder:
            layout = RunLayout(row.folder)
            if layout.run_yaml.is_file():
                with suppress(RlnbError):  # of a newer format: the index says what it last knew
                    fresh = replace(row, **describe_state(layout))
            else:
                fresh = replace(row, state=State.LOST.value)
        if wanted is None or fresh.state == wanted:
            yield fresh


def _from_row(row: IndexRow) -> Job:
    folder = Path(row.folder) if row.folder else settings.cache_dir() / row.id
    return Job(row.id, RunLayout(folder), url=row.url or None)


def _from_elsewhere(row: IndexRow) -> Job:
    """The handle on a run without a working copy here: what was pulled of it, else what its store has."""
    if RunLayout(row.folder or settings.cache_dir() / row.id).run_yaml.is_file():
        return _from_row(row)
    try:
        return _pulled(row.url, row.id)
    except RlnbError as error:
        raise RunNotFound(
            f"The run folder {row.folder} was removed, and its store does not help ({error}); "
            "`rlnb index rebuild` takes the run off the list."
        ) from None


def _known(run_id: str, url: str) -> Job | None:
    """Returns the handle on what this machine has of a run, unless a newer attempt lives elsewhere."""
    layout = RunLayout(settings.runs_dir() / run_id)
    if not layout.run_yaml.is_file():
        return None
    if url and superseded(layout):
        try:
            return _pulled(url, run_id)
        except RlnbError:
            pass  # the store cannot be reached: what is known here is better than nothing
    return Job(run_id, layout, url=url or None)


def _by_address(url: str) -> Job:
    store, run_id = split_run_url(url)
    return _known(run_id, join_run_url(store, run_id)) or _pulled(url, run_id)


def _by_folder(folder: Path) -> Job:
    folder = folder.expanduser().absolute()
    layout = RunLayout(folder)
    run_id = read_record(layout).id
    if folder.parent in (settings.runs_dir(), settings.cache_dir()):
        return Job(run_id, layout)
    if run_id != folder.name:
        raise RunError(
            f"{folder} holds the run {run_id}; give the folder that name, which is how its files refer to it."
        )
    return _known(run_id, "") or _pulled(str(folder), run_id)


def _pulled(url: str, run_id: str) -> Job:
    from rlnb.run.pull import pull

    layout = pull(url, settings.cache_dir() / run_id, what="light")
    Index().add(layout, read_record(layout), url=url, **describe_state(layout))
    return Job(run_id, layout, url=url)


def _visit(store: str) -> Iterator[Job]:
    from rlnb.run.storage import open_storage

    names = (entry.name for entry in open_storage(store).list(""))
    ids = sorted(
        {name.split("/")[0] for name in names if name.count("/") == 1 and name.endswith("/run.yaml")}
    )
    for run_id in ids:
        url = join_run_url(store, run_id)
        yield _known(run_id, url) or _pulled(url, run_id)


__all__ = ["JobList", "job", "jobs", "rebuild", "reconcile"]
