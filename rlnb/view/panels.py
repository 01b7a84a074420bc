"""The catalogue of charts of a training run: what each shows, in which unit, under which title.

One catalogue serves the live view, the still image and `job.plot()`, so that the three always agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from rlnb.view.history import Floats, History, Table
from rlnb.view.series import MAX_POINTS, decimate, running_mean

MEAN_OF = 20
"""Episodes that a running mean covers."""

_TERM = "reward/"
_MAX_TERMS = 8


class LineStyle(StrEnum):
    """How a line is drawn."""

    LINE = "line"
    FAINT = "faint"  # thin and pale, behind the others: single episodes behind their running mean
    UPPER = "upper"  # edge of a band that is filled down to the next line, which must be its LOWER
    LOWER = "lower"


@dataclass(frozen=True)
class Line:
    """One line of a panel.

    Attributes:
        label: what the legend calls it.
        style: see `LineStyle`.
        color: index into the palette.
    """

    label: str
    style: LineStyle = LineStyle.LINE
    color: int = 0


@dataclass(frozen=True)
class Panel:
    """One chart, ready to draw.

    Attributes:
        key: a stable word for this chart.
        title: what it shows.
        unit: unit of the y axis.
        note: how the values were made, e.g. "mean of 20 episodes"; empty when they are as logged.
        lines: one for each row of `ys`.
        x: environment steps, shape (n,).
        ys: shape (lines, n).
    """

    key: str
    title: str
    unit: str
    note: str = ""
    lines: tuple[Line, ...] = ()
    x: Floats = field(default_factory=lambda: np.empty(0))
    ys: Floats = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def last(self) -> list[float]:
        """The newest finite value of each line, NaN when it has none."""
        values = []
        for row in self.ys:
            finite = np.flatnonzero(np.isfinite(row))
            values.append(float(row[finite[-1]]) if finite.size else float("nan"))
        return values


@dataclass(frozen=True)
class _Training:
    """A chart of trainer values: log key to label; `negate` shows minus the logged value."""

    key: str
    title: str
    unit: str
    keys: Mapping[str, str]
    negate: bool = False
    always: bool = False


# SB3 logs the entropy bonus as a loss, which is minus the entropy.
_TRAINING = (
    _Training(
        "value_loss",
        "Value loss",
        "",
        {"train/value_loss": "value", "train/critic_loss": "critic", "train/loss": "total"},
    ),
    _Training(
        "policy_loss",
        "Policy loss",
        "",
        {
            "train/policy_gradient_loss": "policy gradient",
            "train/policy_loss": "policy",
            "train/policy_objective": "objective",
            "train/actor_loss": "actor",
            "train/ent_coef_loss": "entropy coefficient",
        },
    ),
    _Training(
        "kl", "KL divergence", "nats", {"train/approx_kl": "approximate KL", "train/kl_divergence_loss": "KL"}
    ),
    _Training("entropy", "Policy entropy", "nats", {"train/entropy_loss": "entropy"}, negate=True),
    _Training(
        "exploration",
        "Exploration",
        "value",
        {
            "rollout/exploration_rate": "random actions",
            "train/ent_coef": "entropy coefficient",
            "train/std": "action std",
        },
    ),
    _Training(
        "speed",
        "Speed",
        "steps/s",
        {"speed/steps_per_second": "steps per second", "time/fps": "steps per second"},
        always=True,
    ),
)

PANEL_KEYS = ("return", "length", "terms", *(spec.key for spec in _TRAINING))
"""Every key a panel can have, in the order in which panels are shown."""


def panels_of(
    history: History, *, points: int = MAX_POINTS, only: Iterable[str] | None = None
) -> list[Panel]:
    """Makes the charts that a run has values for, in a fixed order.

    Args:
        history: the run's rows.
        points: the most points of a line.
        only: keys of the panels to make; all when None.
    """
    wanted = set(PANEL_KEYS if only is None else only)
    episodes, train = history.table("episode"), history.table("train")
    made = [
        _returns(episodes, points) if "return" in wanted else None,
        _lengths(episodes, points) if "length" in wanted else None,
        _terms(episodes, points) if "terms" in wanted else None,
        *(_training(spec, train, points) for spec in _TRAINING if spec.key in wanted),
    ]
    return [panel for panel in made if panel is not None]


def _returns(table: Table, points: int) -> Panel:
    designed, environment = table.column("episode/return"), table.column("episode/return_env")
    known = np.isfinite(environment)
    # With the environment's own reward both are one line; float32 totals may differ in the last digits.
    if not known.any() or np.allclose(designed[known], environment[known], rtol=1e-5, atol=1e-6):
        lines: tuple[Line, ...] = (Line("episodes", LineStyle.FAINT), Line("return"))
        ys = np.stack([designed, running_mean(designed, MEAN_OF)])
    else:
        lines = (
            Line("designed, episodes", LineStyle.FAINT),
            Line("environment, episodes", LineStyle.FAINT, color=1),
            Line("designed"),
            Line("environment", color=1),
        )
        means = running_mean(designed, MEAN_OF), running_mean(environment, MEAN_OF)
        ys = np.stack([designed, environment, *means])
    return _panel(
        "return", "Return", "reward per episode", f"mean of {MEAN_OF} episodes", lines, table, ys, points
    )


def _lengths(table: Table, points: int) -> Panel:
    length = table.column("episode/length")
    ys = np.stack([length, running_mean(length, MEAN_OF)])
    lines = (Line("episodes", LineStyle.FAINT), Line("length"))
    return _panel(
        "length", "Episode length", "steps", f"mean of {MEAN_OF} episodes", lines, table, ys, points
    )


def _terms(table: Table, points: int) -> Panel | None:
    keys = [key for key in table.keys if key.startswith(_TERM)]
    if len(keys) < 2:  # one term alone is the return again
        return None
    shown = keys[:_MAX_TERMS]
    ys = np.stack([running_mean(table.column(key), MEAN_OF) for key in shown])
    lines = tuple(Line(key.removeprefix(_TERM), color=index) for index, key in enumerate(shown))
    note = f"mean of {MEAN_OF} episodes"
    if len(keys) > len(shown):
        note += f"; first {len(shown)} of {len(keys)} terms"
    return _panel("terms", "Reward by term", "reward per episode", note, lines, table, ys, points)


def _training(spec: _Training, table: Table, points: int) -> Panel | None:
    labels: dict[str, str] = {}
    for key, label in spec.keys.items():
        if key in table.keys and label not in labels.values():
            labels[key] = label
    if not labels:
        return Panel(spec.key, spec.title, spec.unit) if spec.always else None
    if list(labels) == ["train/loss"]:  # DQN's only one is no total of anything
        labels["train/loss"] = "loss"
    ys = np.stack([table.column(key) for key in labels])
    if spec.negate:
        ys = -ys
    # Rows of which none has any of these values (a trainer logs in several rows) make no points.
    known = np.isfinite(ys).any(axis=0)
    lines = tuple(Line(label, color=index) for index, label in enumerate(labels.values()))
    x, ys = decimate(table.step[known], ys[:, known], points)
    return Panel(spec.key, spec.title, spec.unit, "", lines, x, ys)


def _panel(
    key: str, title: str, unit: str, note: str, lines: tuple[Line, ...], table: Table, ys: Floats, points: int
) -> Panel:
    if not len(table):
        return Panel(key, title, unit, note)
    x, ys = decimate(table.step, ys, points)
    return Panel(key, title, unit, note, lines, x, ys)
