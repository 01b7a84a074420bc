"""Made-up figures of every kind, for tests of the Lab's widgets; also run inside their notebook."""

from __future__ import annotations

import numpy as np

from rlnb.view.lab.figures import Bars, Figure, HeatMap, Layer, LinesFigure, Points, Stacked, Strips

COLORS = {"random": "#7a7a7a", "demo": 2, "lander-2026-11-30-7f3a@best": 0}


def figures(scale: float = 1.0, steps: int = 200) -> list[Figure]:
    """Returns one figure of each kind; `scale` changes the stack only."""
    rng = np.random.default_rng(7)
    t = np.arange(steps, dtype=float)
    terms = [
        Layer("distance", 0, -scale * np.abs(np.sin(t / 30)) - 0.2),
        Layer("upright", 1, 0.6 * np.cos(t / 50) ** 2),
        Layer("fuel", 2, -0.3 * (rng.random(steps) < 0.4)),
        Layer("contact", "#c2308c", 1.0 * (t > 0.9 * steps)),
    ]
    total = Layer("total", "ink", np.sum([layer.y for layer in terms], axis=0))
    env = Layer("environment", "ink", 0.8 * total.y + 0.1 * rng.standard_normal(steps), dashed=True)
    labels = ["random"] * 40 + ["demo"] * 5 + ["lander-2026-11-30-7f3a@best"] * 20
    means = {"random": -180.0, "demo": 210.0, "lander-2026-11-30-7f3a@best": 140.0}
    returns = np.array([means[label] for label in labels]) + 60 * rng.standard_normal(len(labels))
    names = [f"{label}, episode {i}" for i, label in enumerate(labels)]
    edges = np.linspace(-3, 3, 41)
    counts = {
        "random": np.histogram(rng.normal(-0.5, 0.8, 40_000), edges)[0].astype(float),
        "demo": np.histogram(rng.normal(0.8, 0.4, 5_000), edges)[0].astype(float),
        "lander-2026-11-30-7f3a@best": np.histogram(rng.normal(0.4, 0.3, 9_000), edges)[0].astype(float),
    }
    maps = {
        label: np.histogram2d(
            rng.normal(x, s, n), rng.normal(y, s, n), bins=30, range=[[-1.5, 1.5], [-0.5, 1.5]]
        )[0]
        for label, x, y, s, n in (("random", 0, 0.6, 0.45, 30_000), ("demo", 0.1, 0.2, 0.12, 4_000))
    }
    bars = [Layer(label, COLORS[label], y) for label, y in counts.items()]
    return [
        Stacked("terms", "Contribution of each term", "reward per step", "step of the episode", t, terms, [total, env], wide=True),
        Strips("returns", "Return per episode", "reward per episode", returns, labels, names, COLORS),
        Points("ranks", "Designed against environment's return", "environment's return", "designed return", returns, returns * 0.8 + 30 * rng.standard_normal(65), labels, names, COLORS),
        Bars("steps", "Reward per step", "steps", "reward per step", edges, bars, log=True),
        Bars("piled", "Reward per step, stacked", "steps", "reward per step", edges, bars, stacked=True),
        LinesFigure("obs", "Observation", "m, m/s", "step of the episode", t, [Layer("y", 0, 1.4 - t / steps), Layer("vy", 1, -0.5 + 0.3 * np.sin(t / 20))]),
        HeatMap("coverage", "Coverage", "x (m)", "y (m)", np.linspace(-1.5, 1.5, 31), np.linspace(-0.5, 1.5, 31), maps, COLORS, wide=True),
        Strips("nothing", "Return per episode", "reward per episode", np.empty(0), [], [], {}, empty="no episodes yet"),
    ]  # fmt: skip
