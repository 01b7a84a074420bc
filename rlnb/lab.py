"""`rlnb.Lab`: the workbench where reward and state are shaped by hand, on recorded rollouts.

In a notebook it is one widget. In a job, and in a notebook that is executed for its file, it writes
nothing and shows pictures and tables of the design that counts there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb import open_labs
from rlnb.design.code import to_code
from rlnb.design.columns import Array
from rlnb.design.describe import describe, design_diff
from rlnb.design.design import Design
from rlnb.design.names import component_names
from rlnb.design.transitions import Transitions
from rlnb.envs.frames import FrameBudget
from rlnb.envs.make import resolve_env
from rlnb.envs.signals import Signal, check_signals
from rlnb.errors import DesignError, UsageError
from rlnb.experiment_design import design_of
from rlnb.lab_inputs import (
    chosen_policy,
    demonstration,
    design_path,
    first_episodes,
    functions_of,
    new_bench,
    offered_policies,
    own_policies,
)
from rlnb.run.design_file import DesignFile, default_design_path
from rlnb.run.identity import current
from rlnb.run.recordings import EpisodeStore
from rlnb.view.frontend import after_each_cell
from rlnb.view.lab.bench import Subject
from rlnb.view.lab.episodes.episodes import Episodes
from rlnb.view.lab.keeper import Keeper

if TYPE_CHECKING:
    from rlnb.experiment import Experiment
    from rlnb.view.lab.checks.findings import Findings
    from rlnb.view.lab.display import Showing
    from rlnb.view.lab.still.static_view import StaticLab


class Lab:
    """A reward and a state design on recorded episodes.

    Args:
        env: gymnasium id, class or function (also from a cell).
        demo: episodes to look at: `rlnb.record(…)`, or the path of a recording.
        design: the design file, beside the notebook; a file that exists beats `reward` and `state`. By
            default it is called like the environment, e.g. `lunarlander-v3.yaml`.
        reward: the reward to begin with: a `RewardSpec`, an expression, a term or function, or a list of these two.
        state: the state to begin with: a `StateSpec` or a list of operations.
        names: names of the observation's components, where the environment's are not known.
        signals: functions of the environment, by name, for reward terms to use.
        env_kwargs: keyword arguments of the environment.
        policies: further policies to record with: label → function of an observation, or SB3 model.
        episodes: how many random episodes are recorded when there are none at all.
        frames: megabytes of images kept of each recording; 0 for none.

    Raises:
        UsageError: (its kinds) in one sentence, when something does not fit.
    """

    def __init__(
        self,
        env: Any,
        demo: Transitions | str | Path | None = None,
        design: str | Path | None = None,
        *,
        reward: Any = None,
        state: Any = None,
        names: Sequence[str] | None = None,
        signals: Mapping[str, Signal] | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        policies: Mapping[str, Any] | None = None,
        episodes: int = 5,
        frames: float = 8.0,
    ) -> None:
        self.env = resolve_env(env, env_kwargs)
        self.signals, own = check_signals(signals or {}), own_policies(policies or {})
        spaces = self.env.spaces()
        self.names = component_names(spaces.observation, spaces.id, names)
        self.defaults = design_of(None, reward, state)
        self._in_job = current() is not None
        path = design_path(design, self.env.label)
        open_labs.save_former(path)
        self._file = DesignFile(path)
        self._is_fixed = self._in_job and path.exists()
        functions = functions_of(self.defaults)
        subject = Subject(self.env, self.names, functions)
        chosen = design_of(self._file.read() or self.defaults, functions=functions.values())
        self.episodes = Episodes(
            subject,
            EpisodeStore(
                self._file.folder / "episodes", env=self.env.reference, names=self.names, signals=self.signals
            ),
            demo=demonstration(demo, self.names),
            signals=self.signals,
            writes=not self._in_job,
            offered=lambda: offered_policies(own, self.env.reference),
        )
        self._budget = FrameBudget(megabytes=frames) if frames and not self._in_job else None
        recorded = self.episodes.load() or first_episodes(self.episodes, episodes, self._budget)
        self.bench = new_bench(subject, open_labs.same_episodes(path, recorded), chosen, self._file)
        self._keeper: Keeper | None = None
        self._showing: Showing | None = None
        self._forget_cells: Callable[[], None] = lambda: None
        if not self._in_job:
            open_labs.enter(path, self)
            self._keeper = Keeper(self.bench, self._file)
            self._forget_cells = after_each_cell(self._take_cell)

    # --- what an Experiment asks for

    def flush(self, *, yields: bool = False) -> None:
        """Writes what has been changed to the design file; `yields` as in `Keeper.flush`."""
        if self.episodes.ended:  # else an experiment would train what the file no longer says
            words = "has been opened again since; use the new one, and make experiments with it"
            raise UsageError(f"The lab of {self.path.name} {words}.")
        if self._keeper is not None:
            self._keeper.flush(yields=yields)

    def design(self) -> Design:
        """Returns the design as it stands, with its Python terms bound."""
        return self.bench.design

    def files(self) -> list[Path]:
        """Returns what a job needs of this lab: the design file, notes and recordings, without images."""
        notes = self._file.folder / "lab.json"
        found = [path for path in (self._file.path, notes) if path.exists()]
        return [*found, *(entry.path for entry in self.episodes.entries())]

    # --- what a user asks for

    @property
    def spec(self) -> Design:
        """The design as it stands: `lab.spec.reward`, `lab.spec.state`."""
        return self.design()

    @property
    def path(self) -> Path:
        """The design file."""
        return self._file.path

    @property
    def batch(self) -> Transitions:
        """The recorded transitions of all episodes."""
        return self.bench.batch

    @property
    def rewards(self) -> Array:
        """What the design pays for each recorded transition, float32 (n,): the bytes that training pays."""
        return self.bench.preview.result.total

    @property
    def observations(self) -> Array:
        """What the agent would see at each recorded transition, as in training."""
        return self.bench.plan.preview(self.bench.batch)[0]

    def experiment(self, algo: Any = "PPO", name: str | None = None, **settings: Any) -> Experiment:
        """Returns an experiment that trains this lab's design.

        Args:
            algo: as in `rlnb.Experiment`.
            name: by default the environment's name.
            **settings: whatever `rlnb.Experiment` takes. `total_timesteps` is 100,000 by default, `policy`
                follows from what the agent sees, and `gamma` from a potential-based shaping.
        """
        from rlnb.experiment import Experiment
        from rlnb.lab_defaults import experiment_defaults

        settings = {**experiment_defaults(self.design(), self.env, self.names), **settings}
        return Experiment(name or default_design_path(self.env.label).stem, self, algo=algo, **settings)

    def to_code(self) -> str:
        """Returns the design as the source of a cell."""
        return to_code(self.design())

    def check(self) -> Findings:
        """Returns what the checks find in the design as it stands, the worst first."""
        from rlnb.view.lab.checks.findings import Findings

        return Findings(self.bench.settle())

    def change(self, *, reward: Any = None, state: Any = None) -> None:
        """Changes the design from code, as an edit in the widget does.

        In a job that has a design file nothing changes: the file holds what came of all edits.

        Args:
            reward: as in `Lab(reward=…)`; left out, it stays.
            state: likewise.
        """
        given = design_of(None, reward, state)
        if self._is_fixed:
            return
        self.bench.edit(
            reward=None if reward is None else given.reward,
            state=None if state is None else given.state,
            what="changed by a cell",
        )

    def undo(self) -> None:
        """Takes the last edit back; in a job as `change`."""
        if not self._is_fixed:
            self.bench.undo()

    def redo(self) -> None:
        """Does again what was taken back; in a job as `change`."""
        if not self._is_fixed:
            self.bench.redo()

    def record(
        self, policy: Any = "random", *, episodes: int = 5, seed: int = 0, label: str | None = None
    ) -> None:
        """Records more episodes; the same ones are not recorded twice, so that a cell may be run again.

        Args:
            policy: "random", "sticky", "idle", a function of an observation, an SB3 model, or a run's
                checkpoint such as "exp-2026-11-30-lander-7f3a@best".
            episodes: how many.
            seed: of the first episode.
            label: what to call the policy. A policy that was changed needs another label or seed.
        """
        choice = chosen_policy(policy, label)
        if self.episodes.has(choice.label, episodes=episodes, seed=seed):
            return
        self.episodes.record(choice, episodes=episodes, seed=seed, frames=self._budget)
        self.bench.set_episodes(self.episodes.loaded())

    def versions(self) -> list[Any]:
        """Returns the design's earlier versions, oldest first."""
        return list(self._file.versions())

    def diff(self) -> list[str]:
        """Returns in words how the design differs from the code's defaults; [] when it does not."""
        return list(design_diff(self.defaults, self.design()))

    def close(self) -> None:
        """Saves, and lets the design file go; the widget stays to look at."""
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None
            self._forget_cells()

    def end(self) -> None:
        """Closes the lab and its widget: another one has taken its place."""
        self.episodes.end()
        self.close()
        if self._showing is not None:
            self._showing.end(f"The lab of {self.path.name} was opened again; this one is closed.")
        self.bench.rest()

    # --- showing

    def __repr__(self) -> str:
        design = "; ".join(describe(self.design()))
        return f"Lab({self.env.label}, {self._file.path.name}: {len(self.bench.keys)} episodes; {design})"

    def _ipython_display_(self) -> None:
        self._shown().show()

    def _shown(self) -> Showing:
        if self._showing is None:
            from rlnb.view.lab.display import Showing

            self._showing = Showing(self._static, self.bench, None if self._keeper is None else self._view)
        return self._showing

    def _static(self) -> StaticLab:
        from rlnb.view.lab.still.static_view import StaticLab

        title, file_name = self.env.label, self._file.path.name
        return StaticLab(self.bench, self.design(), self.defaults, title=title, file_name=file_name)

    def _view(self) -> Any:
        from rlnb.view.lab.lab_view import LabView

        assert self._keeper is not None
        with self.bench.lock:  # what the first checks say while it is made would be heard by nobody
            return LabView(
                self.env.label, self._file.path.name, self.bench, self._keeper, self.episodes
            ).widget

    def _take_cell(self) -> None:
        """Takes in Python terms that the cell which has just run has defined anew."""
        try:
            self.bench.rebind()
        except DesignError as error:
            self.bench.say(str(error))
