"""What a reward does to the recorded episodes, as figures: four views of the same preview."""

from __future__ import annotations

import numpy as np

from rlnb.view.history import Floats
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.charts.figures import Bars, Color, Figure, Layer, Points, Stacked, Strips
from rlnb.view.lab.palette import label_colors, term_color

#: steps of an episode that are stacked one by one; longer ones are summed over equal stretches
MAX_STEPS = 600

INK = "ink"


def reward_figures(bench: Workbench) -> list[Figure]:
    """Returns what moves while a slider moves: contributions, returns and the distribution per step."""
    return [contribution_figure(bench), return_figure(bench), step_figure(bench)]


def contribution_figure(bench: Workbench, episode: int | None = None) -> Stacked:
    """Returns each term's part in the reward along an episode: by default the one that is looked at."""
    episode = bench.episode if episode is None else episode
    parts = bench.preview.contributions(episode)
    width = max(1, -(-len(parts.t) // MAX_STEPS))
    places = {part.name: place for place, part in enumerate(bench.reward.terms)}
    layers = [
        Layer(name, term_color(bench.notes, name, places[name]), _summed(values, width))
        for name, values in parts.terms.items()
    ]
    lines = [Layer("total", INK, _summed(parts.total.astype(np.float64), width))]
    if not bench.reward.is_identity:
        lines.append(Layer("environment", "#7a7a7a", _summed(parts.env, width)))
    notes = [f"sums of {width} steps"] if width > 1 else []
    if not parts.additive:
        notes.append("terms before they are combined")
    return Stacked(
        "contributions",
        f"Reward along {episode_name(bench, episode)}",
        "reward per step" if width == 1 else f"reward per {width} steps",
        "step in the episode",
        parts.t[::width].astype(np.float64),
        layers,
        lines,
        note="; ".join(notes),
        wide=True,
    )


def return_figure(bench: Workbench) -> Strips:
    """Returns the designed return of every episode by policy."""
    return Strips(
        "returns",
        "Return by policy",
        "designed reward per episode",
        bench.preview.returns,
        bench.preview.labels,
        episode_names(bench),
        colours_of(bench),
    )


def step_figure(bench: Workbench) -> Bars:
    """Returns the distribution of the designed reward per step by policy."""
    found = bench.preview.step_histogram()
    colours = colours_of(bench)
    counts = found.by_label or {"": found.counts}
    outside = found.below + found.above
    notes = [
        f"{outside:,} {'step' if outside == 1 else 'steps'} beyond the ends" if outside else "",
        f"{found.missing:,} NaN" if found.missing else "",
    ]
    return Bars(
        "steps",
        "Reward per step",
        "steps",
        "designed reward of one step",
        found.edges,
        [Layer(label or "all", colours.get(label, 0), values.astype(np.float64)) for label, values in counts.items()],
        note="; ".join(note for note in notes if note),
        log=True,
    )  # fmt: skip


def ranking_figure(bench: Workbench) -> Points:
    """Returns each episode's designed return against the environment's own."""
    ranking = bench.preview.ranking()
    agreement = (
        f"same order: Kendall τ = {ranking.kendall:.2f}, Spearman ρ = {ranking.spearman:.2f}"
        if np.isfinite(ranking.kendall)
        else "all returns of one of the two are equal"
    )
    return Points(
        "ranking",
        "Which episodes are better",
        "environment's return",
        "designed return",
        bench.preview.env_returns,
        bench.preview.returns,
        bench.preview.labels,
        episode_names(bench),
        colours_of(bench),
        note=agreement,
    )


def episode_names(bench: Workbench) -> list[str]:
    """Returns what each episode is called: its policy and its number among that policy's."""
    seen: dict[str, int] = {}
    names = []
    for label in bench.preview.labels:
        seen[label] = seen.get(label, 0) + 1
        names.append(f"{label or 'episode'} {seen[label]}")
    return names


def episode_name(bench: Workbench, episode: int) -> str:
    """Returns what one episode is called."""
    return episode_names(bench)[episode]


def colours_of(bench: Workbench) -> dict[str, Color]:
    """Returns the colour of each policy's label."""
    return label_colors(dict.fromkeys(bench.preview.labels))


def _summed(values: Floats, width: int) -> Floats:
    return values if width == 1 else np.add.reduceat(values, np.arange(0, len(values), width))
