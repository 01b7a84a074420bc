"""Is the state enough? Whether the step before helps to predict the step after.

In a Markov state, the next observation and the reward depend on the observation and the action alone. The
probe fits a ridge regression to them from one frame, and another from two, and compares their R2 on episodes
that neither has seen. What is predicted of the observation is its change (as in Nagabandi et al., "Neural
Network Dynamics for Model-Based Deep RL with Model-Free Fine-Tuning", 2018), because from one step to the
next almost everything stays as it is and a model that says so would already have an R2 near 1.

It is a hint: a linear model of squares and products cannot see everything, and noise looks like missing state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlnb.design.checks.finding import Finding, Severity
from rlnb.design.checks.state_sample import SEED, StateSample
from rlnb.design.checks.wording import counted
from rlnb.design.columns import Array, Columns

#: what the frame before has to add to call a state insufficient: so much R2, and so large a share of the
#: variance that one frame leaves unexplained. What a small model merely fits badly, a second frame helps a
#: little (HalfCheetah, BipedalWalker: a third at most); a velocity left out, it replaces almost wholly.
GAIN, CLOSED = 0.1, 0.75
#: rows beyond this many add nothing to a small linear model
ROWS = 12_000
#: features beyond which products are left out
MAX_FEATURES = 200
#: rows that each feature takes
ROWS_PER_FEATURE = 10
#: components beyond which nothing is fitted
MAX_COMPONENTS = 128
#: categories beyond which a number of an integer space stays a number
MAX_CATEGORIES = 64
#: ridge penalty for each row, on standardized features
PENALTY = 1e-4
#: share of the largest and of the smallest changes that is left out: falls, hits, goals
RARE = 0.005
#: fewest held-out steps and episodes from which something is said
MIN_STEPS, MIN_EPISODES = 50, 2

#: how the reward is called among the targets, which no component is
REWARD = "the reward"

_WHY = "A policy without memory can only act on what the observation shows; what is missing it cannot learn to use."


@dataclass(frozen=True, eq=False)
class Sufficiency:
    """How well the next step is predicted from one frame and from two.

    Attributes:
        targets: names of what is predicted: components (their change) and `REWARD`.
        one_frame: held-out R2 of each target, float64 (k,), from observation and action.
        with_action: the same from these and the previous action.
        two_frames: the same from these and the previous observation.
        episodes: number of held-out episodes; `steps` of held-out steps.
    """

    targets: tuple[str, ...]
    one_frame: Array
    with_action: Array
    two_frames: Array
    episodes: int
    steps: int

    @property
    def gains(self) -> Array:
        """R2 gained by the second frame, float64 (k,); an R2 below 0 counts as 0."""
        return _gains(self.one_frame, self.two_frames)

    @property
    def delayed(self) -> Array:
        """bool (k,), targets for which the step before, its action at least, replaces what the state lacks."""
        return _replaces(self.one_frame, self.two_frames)

    @property
    def insufficient(self) -> Array:
        """bool (k,), those of `delayed` for which its action alone does not do."""
        return self.delayed & _replaces(self.with_action, self.two_frames)


def _gains(less: Array, more: Array) -> Array:
    return np.asarray(np.maximum(more, 0) - np.maximum(less, 0))


def _replaces(less: Array, more: Array) -> Array:
    gains, open_ = _gains(less, more), np.maximum(1 - np.maximum(less, 0), 1e-12)
    return np.asarray((gains >= GAIN) & (gains / open_ >= CLOSED))


def check_markov(sample: StateSample, action_space: Any = None) -> Finding:
    """Says whether the previous frame adds to what the present one tells ("state.markov")."""
    found = sufficiency(sample, action_space)
    if isinstance(found, str):
        return Finding(
            "state.markov", Severity.HINT, f"Whether the state is sufficient cannot be told: {found}.", _WHY,
            "Record more episodes." if "episode" in found else "",
        )  # fmt: skip
    insufficient = bool(found.insufficient.any())
    lacking = found.insufficient if insufficient else found.delayed
    order = np.argsort(-np.where(lacking, found.gains, found.gains - 2), kind="stable")
    most = int(order[0])
    gain, name = float(found.gains[most]), found.targets[most]
    what = "the reward" if name == REWARD else f"the next change of {name}"
    numbers = (
        f"R2 {max(found.one_frame[most], 0):.2f} from one frame, {max(found.two_frames[most], 0):.2f} from two, "
        f"on {counted(found.steps, 'step')} of {counted(found.episodes, 'held-out episode')}"
    )
    if not lacking.any():
        sentence = f"The frame before adds little to what the state tells, most about {what} ({numbers})."
        return Finding("state.markov", Severity.FINE, sentence, _WHY, value=gain)
    if insufficient:
        severity, told = Severity.WARNING, "The state does not seem to be sufficient: the frame before tells"
        advice = "Add what is missing (a velocity, a rate), a Delta of these components, or Stack frames."
    else:
        severity, told = Severity.HINT, "Only the action before is missing in the state: it tells"
        advice = "Add the previous action to the observation if learning stalls."
    return Finding(
        "state.markov", severity, f"{told} what is needed to predict {what} ({numbers}).", _WHY, advice, gain,
        tuple(found.targets[place] for place in order if lacking[place]),
    )  # fmt: skip


def sufficiency(sample: StateSample, action_space: Any = None) -> Sufficiency | str:
    """Fits both models on two thirds of the episodes of each policy, and scores them on the others.

    Args:
        action_space: tells categories from quantities; without it, few integers are categories.

    Returns:
        The scores, or a sentence's end that says why there are none.
    """
    width = sample.obs.shape[1]
    if width > MAX_COMPONENTS:
        return f"{width} components are more than the {MAX_COMPONENTS} that this probe handles"
    rows, held_out, episodes = _split(sample)
    changes, names, usual = _targets(sample, rows)
    rows, held_out, changes = rows[usual], held_out[usual], changes[usual]
    steps = int(held_out.sum())
    if episodes < MIN_EPISODES or steps < MIN_STEPS:
        return (
            f"it takes {MIN_STEPS} steps in {MIN_EPISODES} episodes to score a prediction, and of the recorded "
            f"ones {counted(steps, 'step')} in {counted(episodes, 'episode')} can be held out"
        )
    if not len(names):
        return "neither the observation nor the reward ever changes"
    state = _encode_state(sample, rows)
    action = encode_actions(sample.batch.action, action_space)
    # The frame before enters as its difference, which says the same and which ridge does not shrink away.
    step = state - _encode_state(sample, rows - 1)
    spread = step.std(axis=0)
    step = step[:, spread > 0] / spread[spread > 0]
    scores = np.full((3, len(names)), -np.inf)
    for present in _one_frame(state, action[rows], int((~held_out).sum())):
        features = (present, action[rows - 1], step)
        scores = np.fmax(scores, _scores(features, changes, held_out))
    known = np.isfinite(scores).all(axis=0)
    if not known.any():
        return "nothing changes in the held-out episodes"
    kept = tuple(name for name, fine in zip(names, known, strict=True) if fine)
    return Sufficiency(kept, *scores[:, known], episodes, int(held_out.sum()))


def _split(sample: StateSample) -> tuple[Array, Array, int]:
    """Returns rows that have a row before them, which of them are held out, and in how many episodes."""
    batch = sample.batch
    follows = np.zeros(len(batch), dtype=bool)
    follows[1:] = (batch.episode[1:] == batch.episode[:-1]) & (batch.t[1:] == batch.t[:-1] + 1)
    finite = np.isfinite(sample.obs).all(axis=1)
    follows[1:] &= finite[:-1]
    follows &= finite & np.isfinite(sample.next_obs).all(axis=1) & np.isfinite(sample.reward)
    places = np.repeat(np.arange(len(batch.starts)), np.diff(np.append(batch.starts, len(batch))))
    steps = np.bincount(places[follows], minlength=len(batch.starts))
    order = np.random.default_rng(SEED).permutation(np.flatnonzero(steps))
    order = order[: np.searchsorted(np.cumsum(steps[order]), ROWS) + 1]
    order = order[np.argsort(sample.policies[0][batch.starts[order]], kind="stable")]
    role = np.zeros(len(batch.starts), dtype=np.int8)  # 0: left out, 1: fitted on, 2: held out
    role[order] = 1
    role[order[1::3]] = 2
    rows = np.flatnonzero(follows & (role[places] > 0))[: 2 * ROWS]
    held_out = role[places[rows]] == 2
    return rows, held_out, len(np.unique(places[rows][held_out]))


def _targets(sample: StateSample, rows: Array) -> tuple[Array, tuple[str, ...], Array]:
    """Returns what is to be predicted, float64 (n, k), without what never changes, and its names."""
    now = sample.obs[rows].astype(np.float64)
    if not len(rows):
        return np.zeros((0, 0)), (), np.zeros(0, dtype=bool)
    changes = np.column_stack([sample.next_obs[rows] - now, sample.reward[rows]])
    # A change below the rounding of float32 is none.
    floor = np.append(1e-5 * (now.std(axis=0) + np.abs(now.mean(axis=0))), 1e-9)
    moving = changes.std(axis=0) > floor
    low, high = np.quantile(changes, (RARE, 1 - RARE), axis=0)
    usual = ((changes >= low) & (changes <= high)).all(axis=1)
    names = (*sample.names, REWARD)
    return changes[:, moving], tuple(names[i] for i in np.flatnonzero(moving)), usual


def _encode_state(sample: StateSample, rows: Array) -> Array:
    """Returns a frame as features (n, k): categories as indicators, quantities standardized."""
    values = sample.obs[rows].astype(np.float64)
    counts = sample.high - sample.low + 1
    if sample.obs.dtype.kind in "biu" and np.isfinite(counts).all() and counts.sum() <= MAX_CATEGORIES:
        return np.concatenate(
            [values[:, [i]] == np.arange(sample.low[i], sample.high[i] + 1) for i in range(values.shape[1])],
            axis=1,
        ).astype(np.float64)
    spread = sample.spreads > 0
    return np.asarray((values[:, spread] - sample.means[spread]) / sample.spreads[spread])


def encode_actions(action: Array | Columns, space: Any = None) -> Array:
    """Returns actions as features, float64 (n, k): categories as indicators, quantities standardized.

    Args:
        space: the action space; without it, up to 32 different integers are categories.
    """
    matrix = action.matrix if isinstance(action, Columns) else action
    matrix = matrix.reshape(len(matrix), -1)
    quantities = matrix.dtype.kind == "f" if space is None else type(space).__name__ == "Box"
    found: list[Array] = []
    for column in matrix.T:
        kinds = np.zeros(0) if quantities else np.unique(column)
        if 0 < len(kinds) <= 32:
            found.append((column[:, None] == kinds).astype(np.float64))
            continue
        spread = float(column.std()) or 1.0
        found.append(((column - column.mean()) / spread)[:, None].astype(np.float64))
    return np.concatenate(found, axis=1) if found else np.zeros((len(matrix), 0))


def _one_frame(state: Array, action: Array, fitted: int) -> list[Array]:
    """Returns the features of one frame: 1, state, action; and these with as many products as stay small.

    Args:
        fitted: number of rows that a model is fitted on.
    """
    d, k = state.shape[1], action.shape[1]
    linear = np.concatenate([np.ones((len(state), 1)), state, action], axis=1)
    left = min(MAX_FEATURES, fitted // ROWS_PER_FEATURE) - 1 - 2 * (d + k)  # the second frame comes to it
    mild = np.clip(state, -3, 3)  # a rare square of an outlier would rule the fit
    parts = [linear]
    if d * k <= left:
        parts.append((mild[:, :, None] * action[:, None, :]).reshape(len(state), d * k))
        left -= d * k
    if not ((state == 0) | (state == 1)).all():
        first, second = np.triu_indices(d)
        if len(first) > left:
            first, second = np.arange(d), np.arange(d)
        if len(first) <= left:
            parts.append(mild[:, first] * mild[:, second])
    return [linear] if len(parts) == 1 else [linear, np.concatenate(parts, axis=1)]


def _scores(blocks: Sequence[Array], targets: Array, held_out: Array) -> Array:
    """Returns the held-out R2 of ridge regressions on the first block, the first two, and so on.

    Returns:
        (blocks, k); NaN for a target that is constant in the held-out rows.
    """
    features = np.concatenate(blocks, axis=1)
    x, y, unseen = features[~held_out], targets[~held_out], features[held_out]
    scale = y.std(axis=0)
    scale[scale == 0] = 1.0
    gram, moments = x.T @ x, x.T @ (y / scale)
    gram[np.diag_indices_from(gram)] += PENALTY * len(x)
    truth = targets[held_out] / scale
    total = ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    found = np.full((len(blocks), targets.shape[1]), np.nan)
    varies = total > 1e-12 * len(truth)
    for place, width in enumerate(np.cumsum([block.shape[1] for block in blocks])):
        weights = np.linalg.solve(gram[:width, :width], moments[:width])
        errors = ((truth - unseen[:, :width] @ weights) ** 2).sum(axis=0)
        found[place, varies] = 1 - errors[varies] / total[varies]
    return found
