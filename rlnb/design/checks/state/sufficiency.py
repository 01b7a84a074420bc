"""Is the state enough? Whether the step before helps to predict the step after.

In a Markov state, the next observation and the reward depend on the observation and the action alone. The
probe fits a ridge regression to them from one frame, and another from two, and compares their R2 on episodes
that neither has seen (cross-validated). What is predicted of the observation is its change (as in Nagabandi et al., "Neural
Network Dynamics for Model-Based Deep RL with Model-Free Fine-Tuning", 2018), because from one step to the
next almost everything stays as it is and a model that says so would already have an R2 near 1.

It is a hint: a linear model of squares and products cannot see everything, and noise looks like missing state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from rlnb.design.checks.episode_sampling import SEED
from rlnb.design.checks.state.sample import StateSample
from rlnb.design.checks.wording import counted
from rlnb.design.columns import Array, Columns

#: what the frame before has to add to call a state insufficient: so much R2, and so large a share of the
#: variance that one frame leaves unexplained. A second frame also helps a little where a small model merely
#: fits badly (measured on complete states: 0.72 of the rest in Hopper, below 0.6 elsewhere), but a velocity
#: that was left out it replaces almost wholly (0.89 to 1.00 in six environments).
GAIN, CLOSED = 0.1, 0.85
#: rows beyond this many add nothing to a small linear model
ROWS = 10_000
#: features beyond which products are left out
MAX_FEATURES = 200
#: steps that each feature takes
STEPS_PER_FEATURE = 15
#: components beyond which nothing is fitted
MAX_COMPONENTS = 128
#: categories beyond which a number of an integer space stays a number
MAX_CATEGORIES = 64
#: ridge penalty for each row, on standardized features
PENALTY = 1e-4
#: share of the largest variance below which components are the same: recorded states are float32
EQUAL = 1e-10
#: share of the largest and of the smallest changes that is left out: falls, hits, goals
RARE = 0.005
#: fewest episodes from which something is said, and into how many parts they are divided
MIN_EPISODES, FOLDS = 4, 3

#: how the reward is called among the targets, which no component is
REWARD = "the reward"


@dataclass(frozen=True, eq=False)
class Sufficiency:
    """How well the next step is predicted from one frame and from two.

    Attributes:
        targets: names of what is predicted: components (their change) and `REWARD`.
        one_frame: held-out R2 of each target, float64 (k,), from observation and action.
        with_action: the same from these and the previous action.
        two_frames: the same from these and the previous observation.
        episodes: number of episodes, each predicted from others; `steps` of their steps.
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


def sufficiency(sample: StateSample, action_space: Any = None) -> Sufficiency | str:
    """Fits the models on two thirds of the episodes of each policy and scores them on the others, in turn.

    Args:
        action_space: tells categories from quantities; without it, few integers are categories.

    Returns:
        The scores, or a sentence's end that says why there are none.
    """
    width = sample.obs.shape[1]
    if width > MAX_COMPONENTS:
        return f"{width} components are more than the {MAX_COMPONENTS} that this probe handles"
    rows, fold, episodes = _split(sample)
    changes, names, usual = _targets(sample, rows)
    rows, fold, changes = rows[usual], fold[usual], changes[usual]
    state = _encode_state(sample, rows)
    action = encode_actions(sample.batch.action, action_space)
    needed = STEPS_PER_FEATURE * (1 + 2 * (state.shape[1] + action.shape[1]))
    if episodes < MIN_EPISODES or len(rows) < needed:
        return (
            f"it takes {needed:,} steps in {MIN_EPISODES} episodes to fit and score a prediction, and there are "
            f"{counted(len(rows), 'step')} in {counted(episodes, 'episode')}"
        )
    if not len(names):
        return "neither the observation nor the reward ever changes"
    # The frame before enters as its difference, which says the same and which ridge does not shrink away.
    step = state - _encode_state(sample, rows - 1)
    spread = step.std(axis=0)
    step = step[:, spread > 0] / spread[spread > 0]
    linear, products = _one_frame(state, action[rows])
    blocks = (linear, products, action[rows - 1], step)
    scores = _scores(blocks, [(0,), (0, 2), (0, 2, 3), (0, 1), (0, 1, 2), (0, 1, 2, 3)], changes, fold)
    # Products help or harm; the better of both models says what one frame can tell.
    one_frame, with_action, two_frames = np.maximum(scores[:3], scores[3:])
    return Sufficiency(names, one_frame, with_action, two_frames, episodes, len(rows))


def _split(sample: StateSample) -> tuple[Array, Array, int]:
    """Returns rows that have a row before them, the fold of their episode, and the number of episodes."""
    batch = sample.batch
    follows: Array = np.zeros(len(batch), dtype=bool)
    follows[1:] = (batch.episode[1:] == batch.episode[:-1]) & (batch.t[1:] == batch.t[:-1] + 1)
    finite: Array = np.asarray(np.isfinite(sample.obs).all(axis=1))
    follows[1:] &= finite[:-1]
    follows &= finite & np.isfinite(sample.next_obs).all(axis=1) & np.isfinite(sample.reward)
    places = np.repeat(np.arange(len(batch.starts)), batch.lengths)
    steps = np.bincount(places[follows], minlength=len(batch.starts))
    order = np.random.default_rng(SEED).permutation(np.flatnonzero(steps))
    order = order[: np.searchsorted(np.cumsum(steps[order]), ROWS) + 1]
    order = order[np.argsort(sample.policies[0][batch.starts[order]], kind="stable")]
    folds = np.full(len(batch.starts), -1)
    folds[order] = np.arange(len(order)) % FOLDS
    rows = np.flatnonzero(follows & (folds[places] >= 0))[: 2 * ROWS]
    return rows, folds[places[rows]], len(np.unique(places[rows]))


def _targets(sample: StateSample, rows: Array) -> tuple[Array, tuple[str, ...], Array]:
    """Returns what is to be predicted, float64 (n, k) without what never changes, its names, and usual rows."""
    now = sample.obs[rows].astype(np.float64)
    if not len(rows):
        return np.zeros((0, 0)), (), np.zeros(0, dtype=bool)
    changes = np.column_stack([sample.next_obs[rows] - now, sample.reward[rows]])
    # A change below the rounding of float32 is none.
    floor = np.append(1e-5 * (now.std(axis=0) + np.abs(now.mean(axis=0))), 1e-9)
    low, high = np.quantile(changes, (RARE, 1 - RARE), axis=0)
    usual = ((changes >= low) & (changes <= high)).all(axis=1)
    moving = np.zeros(len(floor), dtype=bool)
    if usual.any():
        moving = changes[usual].std(axis=0) > floor
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


def _one_frame(state: Array, action: Array) -> tuple[Array, Array]:
    """Returns the features of one frame: 1, state, action; and as many products of these as stay few."""
    d, k = state.shape[1], action.shape[1]
    linear = np.concatenate([np.ones((len(state), 1)), _whitened(state), action], axis=1)
    left = (
        min(MAX_FEATURES, len(state) // STEPS_PER_FEATURE) - 1 - 2 * (d + k)
    )  # the second frame comes to it
    mild = np.clip(state, -3, 3)  # a rare square of an outlier would rule the fit
    parts = [np.zeros((len(state), 0))]
    if d * k <= left:
        parts.append((mild[:, :, None] * action[:, None, :]).reshape(len(state), d * k))
        left -= d * k
    if not ((state == 0) | (state == 1)).all():
        first, second = np.triu_indices(d)
        if len(first) > left:
            first, second = np.arange(d), np.arange(d)
        if len(first) <= left:
            parts.append(mild[:, first] * mild[:, second])
    return linear, np.concatenate(parts, axis=1)


def _whitened(state: Array) -> Array:
    """Returns uncorrelated features that span the same.

    Of two frames in one state, ridge would shrink the difference away, and that is the velocity.
    """
    if not state.shape[1]:
        return state
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(state, rowvar=False)))
    kept = values > EQUAL * values.max(initial=0.0)
    return np.asarray((state - state.mean(axis=0)) @ (vectors[:, kept] / np.sqrt(values[kept])))


def _scores(blocks: Sequence[Array], models: Sequence[tuple[int, ...]], targets: Array, fold: Array) -> Array:
    """Returns the held-out R2 of ridge regressions on some blocks of features each.

    Args:
        models: which blocks each model uses.
        fold: (n,), rows of one fold are predicted from those of the others.

    Returns:
        (models, k).
    """
    # Rows of one fold together, so that its part is a view; one Gram matrix holds those of all models.
    order = np.argsort(fold, kind="stable")
    # Targets around 0: the penalty is on the intercept, too.
    x = np.concatenate(blocks, axis=1)[order]
    y = ((targets - targets.mean(axis=0)) / targets.std(axis=0))[order]
    ends = np.cumsum([0, *np.bincount(fold, minlength=FOLDS)])
    parts = [slice(start, stop) for start, stop in pairwise(ends)]
    grams = np.array([x[part].T @ x[part] for part in parts])
    moments = np.array([x[part].T @ y[part] for part in parts])
    block_of = np.repeat(np.arange(len(blocks)), [block.shape[1] for block in blocks])
    columns = [np.flatnonzero(np.isin(block_of, model)) for model in models]
    errors = np.zeros((len(models), y.shape[1]))
    for place, part in enumerate(parts):
        gram, moment = grams.sum(axis=0) - grams[place], moments.sum(axis=0) - moments[place]
        gram[np.diag_indices_from(gram)] += PENALTY * (len(y) - (part.stop - part.start))
        weights = np.zeros((x.shape[1], len(models), y.shape[1]))
        for model, used in enumerate(columns):
            weights[used, model] = np.linalg.solve(gram[np.ix_(used, used)], moment[used])
        guessed = (x[part] @ weights.reshape(x.shape[1], -1)).reshape(-1, len(models), y.shape[1])
        errors += ((y[part, None] - guessed) ** 2).sum(axis=0)
    return np.asarray(1 - errors / len(y))
