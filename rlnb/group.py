"""Runs that belong together: the members of a grid, shown and steered as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rlnb.errors import JobFailed, RlnbError
from rlnb.job import Job
from rlnb.run.status import State
from rlnb.waiting import wait_until_rest

if TYPE_CHECKING:
    import pandas as pd


class Group(Sequence[Job]):
    """The runs of one `promote(exp, grid=…)`.

    Args:
        name: the group's name, which stands in each member's run.yaml.
        jobs: the members, in the grid's order.
    """

    def __init__(self, name: str, jobs: Sequence[Job]) -> None:
        self.name = name
        self.jobs = list(jobs)

    def __len__(self) -> int:
        return len(self.jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs)

    def __getitem__(self, index: Any) -> Any:
        return self.jobs[index]

    @property
    def states(self) -> dict[str, State]:
        """The state of each member, by id."""
        return {job.id: job.state for job in self.jobs}

    @property
    def at_rest(self) -> bool:
        """Whether no member goes on by itself."""
        return all(job.at_rest for job in self.jobs)

    @property
    def metrics(self) -> pd.DataFrame:
        """The rows of all members, with the columns "run" and "parameter.<name>" in front."""
        import pandas as pd

        frames = []
        for job in self.jobs:
            frame = job.metrics
            labels: dict[str, Any] = {"run": job.id}
            labels.update({f"parameter.{name}": value for name, value in job.asked.parameters.items()})
            for position, (label, value) in enumerate(labels.items()):
                frame.insert(position, label, [value] * len(frame))
            frames.append(frame)
        filled = [frame for frame in frames if len(frame)]
        return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame()

    def summary(self) -> list[dict[str, Any]]:
        """Returns each member's summary."""
        return [job.summary() for job in self.jobs]

    def wait(self, timeout: float | None = None) -> Group:
        """Waits until all members rest.

        Raises:
            JobFailed: one or more failed; the message names each with its reason.
            TimeoutError: some were still going after `timeout` seconds; they go on.
        """
        wait_until_rest(*self.jobs, timeout=timeout)
        failed = [job for job in self.jobs if job.failed]
        if failed:
            texts = "\n\n".join(job.failure_text() for job in failed)
            raise JobFailed(
                f"{len(failed)} of {len(self.jobs)} runs of {self.name} failed.\n{texts}", failed[0]
            )
        return self

    def pause(self) -> dict[str, str]:
        """Pauses every living member; returns each one's answer."""
        return self._each(lambda job: job.pause(), living=True)

    def suspend(self) -> dict[str, str]:
        """Suspends every living member; returns each one's answer."""
        return self._each(lambda job: job.suspend(), living=True)

    def stop(self) -> dict[str, str]:
        """Stops every living member; returns each one's answer."""
        return self._each(lambda job: job.stop(), living=True)

    def resume(self) -> dict[str, str]:
        """Resumes every member that is paused, suspended or ended early; returns each one's answer."""
        resting = (State.PAUSED, State.SUSPENDED, State.STOPPED, State.FAILED, State.LOST)
        return self._each(lambda job: job.resume(), states=resting)

    def plot(self) -> Any:
        """Returns a plotly figure: the mean over the members of each setting, with its band."""
        from rlnb.run.metrics import MetricReader
        from rlnb.view.group_figures import Member, group_figure
        from rlnb.view.history import History

        members = []
        for job in self.jobs:
            job.refresh()
            rows, _ = MetricReader(job.layout).read()
            members.append(Member(*_labels(job), History(rows)))
        return group_figure(members, title=self.name)

    def _each(
        self, act: Callable[[Job], str], *, living: bool = False, states: Sequence[State] = ()
    ) -> dict[str, str]:
        answers = {}
        for job in self.jobs:
            state = job.state
            if (living and state.living) or state in states:
                try:
                    answers[job.id] = act(job)
                except RlnbError as error:
                    # One member that cannot be reached must not keep the others from being asked.
                    answers[job.id] = f"failed: {error}"
        return answers

    def __repr__(self) -> str:
        try:
            counts = Counter(job.observe(refresh=False).state.value for job in self.jobs)
            states = ", ".join(f"{count} {state}" for state, count in counts.items())
        except (RlnbError, OSError, ValueError, KeyError, TypeError) as error:
            states = f"unreadable: {error}"
        lines = [f"Group({self.name!r}, {len(self.jobs)} runs: {states})"]
        lines += [f"  {job.id}" for job in self.jobs]
        return "\n".join(lines)

    def _ipython_display_(self) -> None:
        from rlnb.view.group import GroupMember, show_group

        members = [
            GroupMember(job.layout, name, label, job.refresh if job.remote else None)
            for job in self.jobs
            for label, name in [_labels(job)]
        ]
        show_group(members, title=self.name)._ipython_display_()


def _labels(job: Job) -> tuple[str, str]:
    """Returns (the member's setting apart from the seed, its seed): members of one setting are averaged."""
    parameters = dict(job.asked.parameters)
    seed = parameters.pop("seed", None)
    setting = ", ".join(f"{name}={value}" for name, value in parameters.items())
    return setting, job.id if seed is None else f"seed={seed}"
