"""Checks of the state's components: how many, how large, and which of them never change or say the same."""

from __future__ import annotations

import numpy as np

from rlnb.design.checks.finding import Finding, Severity
from rlnb.design.checks.state.sample import StateSample
from rlnb.design.checks.wording import counted, listed, number, percent
from rlnb.design.columns import Array
from rlnb.design.plan import MAX_DIMENSIONS

#: share of steps at a declared bound from which a component counts as saturated
SATURATED = 0.05
#: factor between the spreads of two components from which scaling is advised
SCALE = 100.0
#: correlation from which two components say the same
DUPLICATE = 0.99


def check_unbounded(sample: StateSample) -> Finding:
    """Looks for components without bounds that are not standardized either ("state.unbounded")."""
    endless = ~np.isfinite(sample.low) | ~np.isfinite(sample.high)
    scaled = (np.abs(sample.means) < 0.25) & (sample.spreads > 0.75) & (sample.spreads < 4 / 3)
    names = _named(sample, endless & ~scaled)
    why = "Without bounds nothing says how large an input of the network can become."
    if names:
        return Finding(
            "state.unbounded",
            Severity.HINT,
            f"{counted(len(names), 'component')} of {len(sample.names)} without bounds and not on a standard "
            f"scale: {listed(names)}.",
            why,
            "Standardize with ZScore or RunningZScore, or clip.",
            value=float(len(names)),
            names=names,
        )
    count = int(endless.sum())
    sentence = (
        f"{counted(count, 'component')} without bounds, but on a standard scale (mean near 0, spread near 1)."
        if count
        else "All components are declared with finite bounds."
    )
    return Finding("state.unbounded", Severity.FINE, sentence, why, value=0.0)


def check_dimensions(sample: StateSample) -> Finding:
    """Counts the components ("state.dimensions")."""
    d = len(sample.names)
    why = "Each further dimension takes more experience to learn from."
    if d <= MAX_DIMENSIONS:
        return Finding(
            "state.dimensions", Severity.FINE, f"The state has {counted(d, 'dimension')}.", why, value=float(d)
        )  # fmt: skip
    return Finding(
        "state.dimensions", Severity.WARNING, f"The state has {d:,} dimensions, more than {MAX_DIMENSIONS}.", why,
        "Select the components that the task needs.", value=float(d),
    )  # fmt: skip


def check_duplicates(sample: StateSample) -> Finding:
    """Looks for pairs of components that say the same ("state.duplicates")."""
    moving = np.flatnonzero(sample.spreads > 0)
    why = "A second copy teaches nothing and doubles the weight of what it says."
    scaled = (sample.columns[moving] - sample.means[moving, None]) / sample.spreads[moving, None]
    correlation = np.abs(scaled @ scaled.T) / len(sample)
    first, second = np.triu_indices(len(moving), 1)
    size = correlation[first, second]
    most = float(size.max()) if len(size) else 0.0
    pairs = np.flatnonzero(size > DUPLICATE)
    if not len(pairs):
        sentence = f"No two components are alike: the largest |r| is {most:.2f} over {sample.phrase}."
        return Finding("state.duplicates", Severity.FINE, sentence, why, value=most)
    pairs = pairs[np.argsort(-size[pairs], kind="stable")]
    named = [(sample.names[moving[first[i]]], sample.names[moving[second[i]]]) for i in pairs]
    shown = listed([f"{a} and {b} (|r| {size[i]:.3f})" for i, (a, b) in zip(pairs, named, strict=True)], 3)
    return Finding(
        "state.duplicates",
        Severity.HINT,
        f"{counted(len(pairs), 'pair')} of components are nearly the same over {sample.phrase}: {shown}.",
        why,
        "Keep one of each pair; frames of a stack, or of something slow, are expected to be alike.",
        value=most,
        names=tuple(dict.fromkeys(name for pair in named for name in pair)),
    )


def check_constant(sample: StateSample) -> Finding:
    """Looks for components that never change ("state.constant")."""
    names = _named(sample, sample.spreads == 0)
    why = "What never changes tells the agent nothing, and surprises it if it changes after all."
    if not names:
        return Finding("state.constant", Severity.FINE, "Every component changes.", why, value=0.0)
    values = [
        f"{name} = {number(sample.means[place])}" for place, name in enumerate(sample.names) if name in names
    ]
    return Finding(
        "state.constant",
        Severity.HINT,
        f"{counted(len(names), 'component')} never changed in {sample.phrase}: {listed(values)}.",
        why,
        "Leave it out, unless other policies than the recorded ones make it change.",
        value=float(len(names)),
        names=names,
    )


def check_saturated(sample: StateSample) -> Finding:
    """Looks for components that often stand at a declared bound ("state.saturated")."""
    at_bound = np.zeros((len(sample.names), len(sample)), dtype=bool)
    for bound in (sample.low, sample.high):
        at_bound |= sample.columns == np.where(np.isfinite(bound), bound, np.nan)[:, None]
    shares = at_bound.mean(axis=1)
    # Flags and categories live at their bounds, and are not cut off there.
    shares[sample.two_valued | (sample.obs.dtype.kind != "f")] = 0.0
    names = _named(sample, shares > SATURATED)
    most = float(shares.max(initial=0.0))
    why = "At a bound, different situations look the same to the agent."
    if not names:
        return Finding(
            "state.saturated", Severity.FINE, f"Components stand at a declared bound in {percent(most)} of {sample.phrase} at most.",
            why, value=most,
        )  # fmt: skip
    shown = [f"{name} {percent(shares[sample.names.index(name)])}" for name in names]
    place = int(np.argmax(shares))
    return Finding(
        "state.saturated",
        Severity.HINT,
        f"{counted(len(names), 'component')} often stand{'s' if len(names) == 1 else ''} at a declared bound: "
        f"{listed(shown)} of {sample.phrase}.",
        why,
        "Widen the clip or the scale, unless the bound is part of the task.",
        value=most,
        names=names,
        rows=sample.first_rows(at_bound[place]),
    )


def check_scale(sample: StateSample) -> Finding:
    """Compares the spreads of the components ("state.scale")."""
    judged = np.flatnonzero((sample.spreads > 0) & ~sample.two_valued)
    why = "A network starts with weights of one size, so that it hardly sees components that vary little."
    if len(judged) < 2:
        return Finding("state.scale", Severity.FINE, "There are no two components to compare.", why)
    spreads = sample.spreads[judged]
    large, small = int(judged[np.argmax(spreads)]), int(judged[np.argmin(spreads)])
    factor = float(spreads.max() / spreads.min())
    shown = (
        f"{sample.names[large]} varies by {number(sample.spreads[large])} (standard deviation), "
        f"{sample.names[small]} by {number(sample.spreads[small])}"
    )
    if factor <= SCALE:
        sentence = f"The components' spreads differ by a factor of {factor:.3g} at most: {shown}."
        return Finding("state.scale", Severity.FINE, sentence, why, value=factor)
    return Finding(
        "state.scale", Severity.WARNING, f"The components' spreads differ by a factor of {factor:,.0f}: {shown}.", why,
        "Standardize with ZScore or RunningZScore.", value=factor, names=(sample.names[large], sample.names[small]),
    )  # fmt: skip


def _named(sample: StateSample, which: Array) -> tuple[str, ...]:
    return tuple(name for name, picked in zip(sample.names, which, strict=True) if picked)
