"""Follows one run folder: reads what is new and keeps the picture of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rlnb.errors import RlnbError, RunError
from rlnb.run.claims import latest_attempt
from rlnb.run.layout import RunLayout
from rlnb.run.metrics import Cursor, MetricReader
from rlnb.run.progress import read_progress
from rlnb.run.record import read_record
from rlnb.run.status import Observer, State
from rlnb.view.facts import Facts
from rlnb.view.history import History

REFRESH_EVERY = 2.0
"""Seconds between two pulls of a run that lives elsewhere."""


class RunWatch:
    """The picture of one run, brought up to date by `poll()`.

    Args:
        layout: the folder to read.
        refresh: brings the folder up to date from elsewhere first (`rlnb.run.pull` for a remote run);
            called at most every `REFRESH_EVERY` seconds, and allowed to fail with an `RlnbError` or
            `OSError`: the last picture then stays, and says so.
    """

    def __init__(self, layout: RunLayout, *, refresh: Callable[[], object] | None = None) -> None:
        self.layout = layout
        self.history = History()
        self.facts = Facts(layout.id, folder=str(layout.root))
        self._refresh = refresh
        self._refreshed = -REFRESH_EVERY
        self._trouble = ""
        self._observer = Observer(layout)
        self._reader = MetricReader(layout)
        self._cursor: Cursor | None = None
        self._asked = False

    def poll(self) -> bool:
        """Reads what is new.

        Returns:
            Whether the facts or the history changed.
        """
        self._pull()
        # State first: rows that were written before an end are then certainly in the picture of the end.
        facts = self._observe()
        rows, self._cursor = self._reader.read(self._cursor)
        grew = self.history.extend(rows)
        facts = self._complete(facts)
        changed = grew or facts != self.facts
        self.facts = facts
        return changed

    def _pull(self) -> None:
        if self._refresh is None or time.monotonic() - self._refreshed < REFRESH_EVERY:
            return
        try:
            self._refresh()
            self._trouble = ""
        except (RlnbError, OSError) as error:
            self._trouble = f"cannot be reached now: {error}"
        self._refreshed = time.monotonic()

    def _observe(self) -> Facts:
        facts = self.facts
        if not self._asked:
            facts = self._what_was_asked(facts)
        seen = self._observer.observe()
        status = seen.status
        facts = replace(
            facts,
            state=seen.state,
            silent=seen.silent,
            why=self._trouble or seen.why,
            attempt=latest_attempt(self.layout),
            evidence=None,
        )
        if status is None:
            return facts
        return replace(
            facts,
            attempt=max(facts.attempt, status.attempt),
            step=status.step,
            total=status.total or facts.total,
            return_mean=status.return_mean,
            upload_pending=status.upload_pending,
            store=status.store,
            # While an attempt runs, how the one before it ended is no longer the news.
            evidence=None if status.state in (State.RUNNING, State.STARTING) else status.evidence,
        )

    def _complete(self, facts: Facts) -> Facts:
        """Adds what training itself and the rows say, which is newer than the supervisor's word."""
        progress = read_progress(self.layout)
        if progress is not None and progress.attempt == facts.attempt:
            facts = replace(
                facts,
                phase=progress.phase,
                step=progress.step,
                total=progress.total or facts.total,
                return_mean=facts.return_mean if progress.return_mean is None else progress.return_mean,
                steps_per_second=progress.steps_per_second,
            )
        history = self.history
        if facts.steps_per_second is None:
            facts = replace(facts, steps_per_second=_newest_speed(history))
        return replace(
            facts,
            step=max(facts.step, history.last_step),
            checkpoint=history.checkpoints[-1] if history.checkpoints else None,
        )

    def _what_was_asked(self, facts: Facts) -> Facts:
        try:
            record = read_record(self.layout)
        except RunError:
            return facts  # not complete yet, or pulled later
        experiment: dict[str, Any] = record.experiment or {}
        self._asked = record.complete
        env = experiment.get("env")
        env_name = env.get("value") if isinstance(env, dict) else env
        what = " on ".join(str(part) for part in (experiment.get("algo"), env_name) if part)
        return replace(
            facts,
            name=record.name,
            what=what,
            total=int(experiment.get("total_timesteps") or 0),
            url=str(record.store.get("url", "")),
        )


def _newest_speed(history: History) -> float | None:
    table = history.table("train")
    for key in ("speed/steps_per_second", "time/fps"):
        values = table.column(key)
        known = values[-50:][values[-50:] > 0]
        if known.size:
            return float(known[-1])
    return None
