"""Made-up figures of every kind, for tests of the Lab's widgets; also run inside their notebook."""

from __future__ import annotations

import io

import numpy as np

from rlnb.view.lab.charts.figures import Bars, Figure, HeatMap, Layer, LinesFigure, Points, Stacked, Strips
from rlnb.view.lab.charts.viewer import ComponentTrack, Episode, TermTrack

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


def picture(step: int) -> bytes:
    """Returns a PNG of 96 x 64 pixels in which a bar stands at the step."""
    from PIL import Image

    pixels = np.full((64, 96, 3), 40, np.uint8)
    pixels[20:44, step % 90 : step % 90 + 6] = (240, 120, 20)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def episode(steps: int = 200, *, frames: bool = True, scale: float = 1.0) -> Episode:
    """Returns an episode of four terms and eight components with a picture at every second step."""
    stack = figures(scale, steps)[0]
    assert isinstance(stack, Stacked)
    terms = [TermTrack(one.name, one.color, one.y / 0.5, one.y) for one in stack.layers]
    rng = np.random.default_rng(3)
    walks = np.cumsum(0.1 * rng.standard_normal((8, steps)), axis=1)
    names = ("x", "y", "vx", "vy", "angle", "angle_rate", "left_contact", "right_contact")
    components = [ComponentTrack(n, y, "m" if n in "xy" else "") for n, y in zip(names, walks, strict=True)]
    return Episode(
        f"demo:{steps}",
        f"demo, episode {steps}",
        stack.lines[0].y,
        stack.lines[1].y,
        terms,
        components,
        ending="terminated at step 199",
        frame_steps=range(0, steps, 2) if frames else (),
        frame=picture if frames else None,
    )
