"""The handle of a run: cheap to make, rebuilt from a folder and an id, the same in every process.

A `Job` holds no state of its own beyond its names. What it says is read from the run folder, what it does
is a request in that folder or a new attempt; so a handle made tomorrow in another notebook is as good as
the one that `promote()` returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.errors import JobFailed, RlnbError, RunError
from rlnb.loglines import Line, Logs, follow_lines, named_log, read_lines
from rlnb.run.claims import latest_attempt
from rlnb.run.control import Verb
from rlnb.run.events import Event, read_events
from rlnb.run.layout import RunLayout, read_json
from rlnb.run.record import RunRecord, read_record
from rlnb.run.status import Observation, State, Status
from rlnb.source import RunSource
from rlnb.view.text import job_text
from rlnb.words import failure_text, gather

if TYPE_CHECKING:
    import pandas as pd

    from rlnb.run.checkpoints import Checkpoint
    from rlnb.view.display import Shown

_BAD_ENDS = (State.FAILED, State.LOST)


class Job:
    """One run, wherever it runs.

    Args:
        id: the run's id.
        layout: the local folder to read: the working copy on this machine, or a pulled copy.
        url: the run's address in its store; None takes it from run.yaml.
    """

    def __init__(self, id: str, layout: RunLayout, *, url: str | None = None) -> None:
        self.id = id
        self._source = RunSource(layout, url)

    # -- what it is ---------------------------------------------------------------------------
    @property
    def url(self) -> str:
        """The run's address in its store."""
        return self._source.url

    @property
    def remote(self) -> bool:
        """Whether what is read here is a pulled copy of a run of another machine."""
        return self._source.remote

    @property
    def layout(self) -> RunLayout:
        """The names of the run's files on this machine."""
        return self._source.layout

    @property
    def folder(self) -> Path:
        """The run folder on this machine."""
        return self.layout.root

    @property
    def asked(self) -> RunRecord:
        """What was asked: the content of run.yaml."""
        return read_record(self.layout)

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.asked.name

    # -- how it goes --------------------------------------------------------------------------
    def refresh(self) -> None:
        """Looks at the store, if the run is of another machine."""
        self._source.refresh()

    def fetch_all(self) -> None:
        """Brings checkpoints and data here too, if the run is of another machine."""
        self._source.refresh(what="all")

    def observe(self, *, refresh: bool = True) -> Observation:
        """Returns the state together with why it is what it is; `refresh=False` looks at this machine only."""
        if refresh:
            self.refresh()
        return self._source.observe()

    @property
    def state(self) -> State:
        """The state now."""
        return self.observe().state

    @property
    def attempt(self) -> int:
        """The number of the newest attempt; 0 before the first."""
        return latest_attempt(self.layout)

    @property
    def at_rest(self) -> bool:
        """Whether nothing more happens unless somebody resumes it."""
        return not self.state.living

    @property
    def failed(self) -> bool:
        """Whether it ended without what was asked for."""
        return self.state in _BAD_ENDS

    @property
    def status(self) -> Status | None:
        """The supervisor's last word, None before it has spoken; `state` also sees that it is gone."""
        return self.observe().status

    @property
    def exception(self) -> str | None:
        """The traceback, cell number, log path and next command of a failed job; None otherwise."""
        return self.failure_text() if self.failed else None

    @property
    def record(self) -> dict[str, Any] | None:
        """The record that training has finished: step, return_mean, weights_sha256, …; None before."""
        self.refresh()
        return read_json(self.layout.training_json)

    def summary(self, *, events: bool = False) -> dict[str, Any]:
        """Returns what `rlnb show --json` prints."""
        from rlnb.summary import summarize

        return summarize(self.layout, self.observe(), url=self.url, events=events)

    # -- what it wrote -------------------------------------------------------------------------
    @property
    def metrics(self) -> pd.DataFrame:
        """One history of all metric rows, a column per key."""
        from rlnb.run.metrics import frame

        self.refresh()
        return frame(self.layout)

    @property
    def events(self) -> list[Event]:
        """What happened, in order."""
        self.refresh()
        return read_events(self.layout)

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """The checkpoints that can be restored, oldest first."""
        from rlnb.summary import known_checkpoints

        self.refresh()
        return known_checkpoints(self.layout)

    @property
    def executed_notebook(self) -> Path | None:
        """The newest executed notebook, None before the first attempt has written one."""
        written = (self.layout.output(number) for number in range(self.attempt, 0, -1))
        return next((path for path in written if path.exists()), None)

    def logs(
        self, last: int | None = None, *, log: str = "all", follow: bool = False
    ) -> Logs | Iterator[str]:
        """Returns the log's lines as a text that prints itself, or follows them.

        Args:
            last: only the last lines of each log.
            log: "all", "train", "stdout", "events" or "supervisor".
            follow: return an iterator that ends when the run rests.
        """
        lines = (line for _, line in self.log_lines(log, last=last, follow=follow))
        return lines if follow else Logs("\n".join(lines))

    def log_lines(self, log: str = "all", *, last: int | None = None, follow: bool = False) -> Iterator[Line]:
        """Yields (log's name, line) pairs; see `logs`."""
        which = named_log(log)
        if not follow:
            self.refresh()
            yield from read_lines(self.layout, which, last=last)
            return
        yield from follow_lines(
            self.layout, which, refresh=self.refresh, ended=lambda: self.at_rest, last=last
        )

    def model(self, which: str | int = "best") -> Any:
        """Returns a plain SB3 model that needs rlnb no more.

        Args:
            which: "best", "latest", "final", or a checkpoint's step.
        """
        from rlnb.train.load import load_model

        self.fetch_all()
        return load_model(self.layout, which)

    # -- what can be asked of it ---------------------------------------------------------------
    def wait(self, timeout: float | None = None) -> Job:
        """Waits until the run rests.

        Raises:
            JobFailed: it failed or was lost; the message holds the traceback and the log's path.
            TimeoutError: it was still going after `timeout` seconds; it goes on.
        """
        from rlnb.waiting import wait_until_rest

        wait_until_rest(self, timeout=timeout)
        if self.failed:
            raise JobFailed(self.failure_text(), self)
        return self

    def pause(self, *, timeout: float | None = None) -> str:
        """Holds training at its next safe point; the kernel stays alive and keeps the machine."""
        return self._ask(Verb.PAUSE, timeout)

    def suspend(self, *, timeout: float | None = None) -> str:
        """Checkpoints and exits at the next safe point; frees the machine."""
        return self._ask(Verb.SUSPEND, timeout)

    def stop(self, *, timeout: float | None = None) -> str:
        """Checkpoints and ends the run at the next safe point."""
        return self._ask(Verb.STOP, timeout)

    def resume(self, *, takeover: bool = False, trust: bool = False, timeout: float | None = None) -> str:
        """Lets a paused run go on, or starts a new attempt of one that was suspended or ended early.

        Args:
            takeover: resume here although another machine owns the run and its store cannot fence it off.
            trust: execute a bundle that is not in this machine's index.
            timeout: seconds to wait for the acknowledgement.
        """
        from rlnb.resumption import resume

        layout, message = resume(self._source, takeover=takeover, trust=trust, timeout=timeout)
        if layout != self.layout:
            self._source = RunSource(layout, self.url)
        return message

    def fork(
        self, step: int | None = None, *, store: str | None = None, trust: bool = False, **changes: Any
    ) -> Job:
        """Starts a new run from a checkpoint of this one; see `rlnb.fork.fork`."""
        from rlnb.fork import fork

        return fork(self, step=step, store=store, trust=trust, **changes)

    def inspect(self, expression: str | None = None) -> Any:
        """Evaluates an expression inside the running job; without one, tells what can be seen there.

        The run is marked "inspected": looking can change what a program does.
        """
        from rlnb.jobs.inspect import inspect, visible

        if self.remote:
            raise RunError(f"{self.id} runs on another machine; inspect() reaches this one's kernels only.")
        return visible(self.layout) if expression is None else inspect(self.layout, expression)

    def plot(self) -> Any:
        """Returns a plotly figure of the run."""
        from rlnb.run.metrics import MetricReader
        from rlnb.view.figures import job_figure

        self.refresh()
        rows, _ = MetricReader(self.layout).read()
        return job_figure(rows, title=self.name)

    def _ask(self, verb: Verb, timeout: float | None) -> str:
        seen = self.observe()
        if not seen.state.living:
            raise RunError(f"{self.id} is {seen.state.value}; there is nothing to {verb.value}.")
        return self._source.ask(verb, timeout=timeout).message

    # -- how it looks --------------------------------------------------------------------------
    def failure_text(self) -> str:
        """Returns why the run failed, with the traceback, the log's path and the command that shows more."""
        return failure_text(self.layout, self._source.observe())

    def __repr__(self) -> str:
        # Never raises and never reaches over the network: a repr is shown where nobody asked for it.
        try:
            seen = self._source.observe()
            bad = seen.state in _BAD_ENDS
            text = job_text(gather(self.layout, seen), closing=not bad)
            return f"{text}\n{failure_text(self.layout, seen)}" if bad else text
        except (RlnbError, OSError, ValueError, KeyError, TypeError) as error:
            return f"Job({self.id!r}, unreadable: {error})"

    def _ipython_display_(self) -> None:
        self.show()._ipython_display_()

    def show(self) -> Shown:
        """Returns the live view (buttons and charts that move), an image or text, as the reader can take it."""
        from rlnb.buttons import JobActions
        from rlnb.view.display import show

        refresh = self.refresh if self.remote else None
        return show(self.layout, actions=JobActions(self), refresh=refresh, failure=self.failure_text)
