"""Which components tell something about the reward or about the end of an episode.

The mutual information of a component with each, estimated over cells of equal population (plug-in, with the
bias correction of Miller, "Note on the bias of information estimates", 1955, as in Paninski, "Estimation of
entropy and mutual information", Neural Computation 15, 2003), and held against what the same estimate gives
when the component is shifted in time against the target: such surrogates keep both series as slow as they
are (Lancaster et al., "Surrogate data for hypothesis testing of physical systems", Physics Reports 748, 2018).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlnb.design.checks.episode_sampling import SEED
from rlnb.design.checks.finding import Finding, Severity
from rlnb.design.checks.state.sample import StateSample
from rlnb.design.checks.wording import counted, listed
from rlnb.design.columns import Array

#: cells of equal population that a component is cut into
CELLS = 10
#: shifted surrogates, and standard deviations above their mean that information has to reach
SHIFTS, SIGMAS = 10, 4.0
#: rows times components that are looked at
BUDGET = 160_000

_WHY = (
    "What tells nothing about the next reward or the end of the episode is often noise to the agent - but it may "
    "matter together with another component, or later."
)


@dataclass(frozen=True, eq=False)
class Information:
    """Mutual information of each component with one target.

    Attributes:
        bits: float64 (d,), >= 0, per step.
        threshold: float64 (d,), what chance alone would give.
    """

    bits: Array
    threshold: Array

    @property
    def informative(self) -> Array:
        """bool (d,), components that tell more than chance would."""
        return np.asarray(self.bits > self.threshold)


def check_uninformative(sample: StateSample) -> Finding:
    """Looks for components that tell nothing about reward or termination ("state.uninformative")."""
    found = {
        name: measured
        for name, target in (("reward", sample.reward), ("termination", sample.batch.terminated))
        if (measured := information(sample, target)) is not None
    }
    if not found:
        return Finding(
            "state.uninformative", Severity.HINT,
            "Which components matter cannot be told: neither the reward nor the end of an episode ever differs.",
            _WHY, "Record episodes that end differently, or shape the reward.",
        )  # fmt: skip
    useful = np.any([measured.informative for measured in found.values()], axis=0)
    best = np.max([measured.bits for measured in found.values()], axis=0)
    about = " or ".join(found)
    # Constants have a finding of their own.
    names = tuple(
        name for name, known, spread in zip(sample.names, useful, sample.spreads, strict=True) if not known and spread
    )  # fmt: skip
    if not names:
        place = int(np.argmin(np.where(sample.spreads > 0, best, np.inf)))
        return Finding(
            "state.uninformative",
            Severity.FINE,
            f"Every component tells something about {about}; least does {sample.names[place]}, {_bits(best[place])} "
            "a step.",
            _WHY,
            value=float(best[place]),
        )
    most = float(max(best[sample.names.index(name)] for name in names))
    return Finding(
        "state.uninformative",
        Severity.HINT,
        f"{counted(len(names), 'component')} alone {'tells' if len(names) == 1 else 'tell'} nothing about {about} "
        f"of the same step: {listed(names)} (at most {_bits(most)}, no more than chance).",
        _WHY,
        "Try without; keep what the task is known to need.",
        value=most,
        names=names,
    )


def information(sample: StateSample, target: Array) -> Information | None:
    """Measures what each component of s tells about a target of the same step.

    Args:
        target: (m,) numbers or truth values.

    Returns:
        The measure, or None where the target never differs.
    """
    d, m = sample.columns.shape
    step = max(1, -(-m * d // BUDGET))
    # Every step-th row: neighbours in time say nearly the same.
    wanted = np.nan_to_num(np.asarray(target[::step], dtype=np.float64), posinf=0.0, neginf=0.0)
    seen, kinds = _cells(wanted)
    if kinds < 2:
        return None
    cells = np.empty((d, len(wanted)), dtype=np.int64)
    width = 2 * CELLS + 1
    for place in range(d):
        cells[place] = (_cells(sample.columns[place, ::step])[0] + width * place) * kinds
    shifts = np.random.default_rng(SEED).integers(len(wanted) // 10 + 1, 9 * len(wanted) // 10 + 2, SHIFTS)
    chance = np.array([_bits_of(cells, np.roll(seen, shift), width, kinds) for shift in shifts])
    bits = _bits_of(cells, seen, width, kinds)
    threshold = np.maximum(chance.mean(axis=0) + SIGMAS * chance.std(axis=0), 0.0)
    return Information(np.maximum(bits, 0.0), threshold)


def _cells(values: Array) -> tuple[Array, int]:
    """Returns the cell of each value, int64 from 0, and how many there are.

    Cells hold equally many values; a value so common that several limits fall on it has one of its own.
    """
    some = np.sort(values)
    limits, often = np.unique(some[np.arange(1, CELLS) * len(some) // CELLS], return_counts=True)
    alone = limits[(often > 1) | (limits == some[0]) | (limits == some[-1])]
    cuts = np.unique(np.concatenate([limits, np.nextafter(alone, np.inf)]))
    cells = np.searchsorted(cuts, values, side="right")
    occupied = np.bincount(cells) > 0
    return (np.cumsum(occupied) - 1)[cells], int(occupied.sum())


def _bits_of(cells: Array, seen: Array, width: int, kinds: int) -> Array:
    """Returns the corrected mutual information of each component with the target, in bits."""
    d, n = cells.shape
    joint = np.bincount((cells + seen).ravel(), minlength=d * width * kinds).reshape(d, width, kinds)
    x, y = joint.sum(axis=2), joint.sum(axis=1)
    nats = _entropy(x, n) + _entropy(y, n) - _entropy(joint.reshape(d, -1), n)
    occupied = [(counts > 0).sum(axis=1) for counts in (joint.reshape(d, -1), x, y)]
    bias = (occupied[0] - occupied[1] - occupied[2] + 1) / (2 * n)
    return np.asarray((nats - bias) / np.log(2))


def _entropy(counts: Array, n: int) -> Array:
    share = counts / n
    with np.errstate(all="ignore"):
        return np.asarray(-np.where(counts > 0, share * np.log(share), 0.0).sum(axis=1))


def _bits(value: float) -> str:
    return f"{value:.2g} bits"
