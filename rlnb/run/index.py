"""The index: a small local database of this user's runs, so that a listing opens no run folder.

It holds nothing that the folders do not say better, apart from which bundles were promoted here:
`rebuild` makes it again. Several processes write it at once (each run's supervisor, notebooks, the
command line); SQLite's write-ahead log and a busy timeout keep them out of one another's way.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from rlnb import settings
from rlnb.errors import RlnbError, RunNotFound, UsageError, did_you_mean
from rlnb.run.host import utc_now
from rlnb.run.index_rows import IndexRow, describe_record, read_folders
from rlnb.run.layout import RunLayout
from rlnb.run.record import RunRecord
from rlnb.run.status import State

BUSY_SECONDS = 10.0


class IndexUnusable(RlnbError):
    """The index cannot be read or written now: its disk is full or read-only, or another process holds it."""


_COLUMNS = tuple(field.name for field in fields(IndexRow))
_SELECT = "SELECT " + ", ".join(f'"{name}"' for name in _COLUMNS) + " FROM runs"
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS runs ({", ".join(f'"{name}"' + (" TEXT PRIMARY KEY" if name == "id" else "") for name in _COLUMNS)});
CREATE INDEX IF NOT EXISTS runs_created ON runs (created);
CREATE INDEX IF NOT EXISTS runs_key ON runs ("key");
CREATE TABLE IF NOT EXISTS trusted (bundle TEXT PRIMARY KEY, added TEXT);
"""


class Index:
    """The runs of this user on this machine.

    Args:
        path: the database; `settings.index_path()` by default. It is made when missing, and put
            aside and made anew when it is damaged.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = settings.index_path() if path is None else path
        self._ready = False

    def __repr__(self) -> str:
        return f"Index({str(self.path)!r})"

    def upsert(self, run_id: str, **columns: Any) -> None:
        """Adds a run, or changes the named columns of a known one; `updated` is set by itself.

        Args:
            run_id: the run.
            columns: of `IndexRow`; the others keep their values.

        Raises:
            UsageError: a column is unknown.
        """
        for name in columns:
            if name not in _COLUMNS:
                raise UsageError(f"The index has no column {name!r}.{did_you_mean(name, _COLUMNS)}")
        values = {name: _encode(name, value) for name, value in columns.items()}
        row = {**{f.name: _encode(f.name, f.default) for f in fields(IndexRow) if f.name != "id"}, **values}
        row |= {"id": run_id, "updated": columns.get("updated") or utc_now()}
        changed = [*values, "updated"] if "updated" not in values else list(values)
        assignments = ", ".join(f'"{name}" = excluded."{name}"' for name in changed)
        names = ", ".join(f'"{name}"' for name in row)
        marks = ", ".join("?" * len(row))
        sql = f"INSERT INTO runs ({names}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET {assignments}"
        with self._connect() as connection:
            connection.execute(sql, tuple(row.values()))

    def add(self, layout: RunLayout, record: RunRecord, *, url: str, **columns: Any) -> None:
        """Adds a run from what was asked, or brings what the index says of that up to date."""
        self.upsert(record.id, url=url, folder=str(layout.root), **describe_record(record), **columns)

    def remove(self, run_id: str) -> None:
        """Forgets a run; its folders stay."""
        with self._connect() as connection:
            connection.execute("DELETE FROM runs WHERE id = ?", (run_id,))

    def rows(
        self,
        *,
        state: str | State | None = None,
        name: str | None = None,
        tag: str | None = None,
        group: str | None = None,
        key: str | None = None,
        algo: str | None = None,
        env: str | None = None,
        limit: int | None = None,
    ) -> list[IndexRow]:
        """Lists runs, newest first; every argument narrows the list to equal values.

        An index that cannot be used (a full disk) is not needed for looking: then the folders are read.
        """
        wanted = {"state": state, "name": name, "group": group, "key": key, "algo": algo, "env": env}
        given = {column: str(value) for column, value in wanted.items() if value is not None}
        conditions = [f'"{column}" = ?' for column in given]
        arguments: list[Any] = list(given.values())
        if tag is not None:
            conditions.append("EXISTS (SELECT 1 FROM json_each(runs.tags) WHERE json_each.value = ?)")
            arguments.append(tag)
        where = " WHERE " + " AND ".join(conditions) if conditions else ""
        sql = f"{_SELECT}{where} ORDER BY created DESC, id DESC" + (" LIMIT ?" if limit is not None else "")
        try:
            with self._connect() as connection:
                found = connection.execute(
                    sql, (*arguments, *([limit] if limit is not None else ()))
                ).fetchall()
        except IndexUnusable:
            places = (settings.runs_dir(), settings.cache_dir())
            read = [row for row in read_folders(places) if tag is None or tag in row.tags]
            return [row for row in read if all(getattr(row, name) == value for name, value in given.items())][
                :limit
            ]
        return [_decode(row) for row in found]

    def get(self, text: str) -> IndexRow:
        """Returns the run with this id, the only one whose id starts or ends so, or the newest of this name.

        Raises:
            RunNotFound: there is none.
            UsageError: the beginning or end fits several runs.
        """
        rows = self.rows()
        exact = [row for row in rows if row.id == text or row.url == text]
        partial = [row for row in rows if text and (row.id.startswith(text) or row.id.endswith("-" + text))]
        named = [row for row in rows if row.name == text]
        if exact or named:
            return (exact or named)[0]
        if len(partial) == 1:
            return partial[0]
        if partial:
            some = ", ".join(row.id for row in partial[:4])
            raise UsageError(f"{text!r} fits {len(partial)} runs ({some}, …); give more of the id.")
        guess = did_you_mean(text, [*(row.id for row in rows), *(row.name for row in rows)])
        raise RunNotFound(f"There is no run {text!r} here; `rlnb jobs` lists them.{guess}")

    def rebuild(self, folders: Iterable[Path] | None = None) -> int:
        """Fills the index from run folders; what they do not hold is forgotten, trust excepted.

        Args:
            folders: run folders, or folders of run folders; by default this machine's working copies
                and the pulled copies of other machines' runs.

        Returns:
            How many runs were found.
        """
        parents = [settings.runs_dir(), settings.cache_dir()] if folders is None else list(folders)
        found = read_folders(parents)
        with self._connect() as connection:
            connection.execute("DELETE FROM runs")
        for row in found:
            self.upsert(
                row.id, **{name: value for name, value in vars(row).items() if name not in ("id", "updated")}
            )
        return len(found)

    def trust(self, bundle_sha: str) -> None:
        """Notes that a bundle was promoted here, so that it may be executed again."""
        with self._connect() as connection:
            connection.execute("INSERT OR IGNORE INTO trusted VALUES (?, ?)", (bundle_sha, utc_now()))

    def trusted(self, bundle_sha: str) -> bool:
        """Says whether a bundle was promoted here."""
        with self._connect() as connection:
            query = connection.execute("SELECT 1 FROM trusted WHERE bundle = ?", (bundle_sha,))
            return query.fetchone() is not None

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own for each call: none is held open, so a fork never shares one."""
        try:
            connection = self._open()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise self._unusable(error) from None
            self._put_aside()
            connection = self._open()
        try:
            with closing(connection), connection:
                yield connection
        except sqlite3.OperationalError as error:
            raise self._unusable(error) from None

    def _unusable(self, error: sqlite3.Error) -> IndexUnusable:
        return IndexUnusable(
            f"The index {self.path} cannot be used ({error}); make room on its disk, end what holds it, or set RLNB_HOME."
        )

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS)
        try:
            # Losing the last transactions in a power cut is harmless: the folders know better.
            connection.execute("PRAGMA synchronous = NORMAL")
            if not self._ready or not self.path.exists():
                mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
                if mode != "wal":
                    connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(_SCHEMA)
                self._ready = True
        except sqlite3.DatabaseError:
            connection.close()
            raise
        return connection

    def _put_aside(self) -> None:
        """Moves a damaged database away; nothing is lost that `rebuild` does not find again."""
        for suffix in ("", "-wal", "-shm"):
            path = self.path.with_name(self.path.name + suffix)
            if path.exists():
                path.rename(path.with_name(f"{path.name}.damaged"))
        self._ready = False


def _encode(name: str, value: Any) -> Any:
    if name == "tags":
        return json.dumps(list(value))
    return value.value if isinstance(value, State) else value


def _decode(row: tuple[Any, ...]) -> IndexRow:
    values = dict(zip(_COLUMNS, row, strict=True))
    values["tags"] = tuple(json.loads(values["tags"])) if values["tags"] != "[]" else ()
    return IndexRow(**values)
