"""The cycle of largest mean pay in a graph of observed transitions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlnb.design.columns import Array

#: rounds of policy iteration; it ends after about ten, and an early end still gives a real cycle
_ROUNDS = 60


@dataclass(frozen=True)
class Cycle:
    """A closed walk.

    Attributes:
        mean: pay per step.
        edges: places in the graph's edge arrays, in walking order.
    """

    mean: float
    edges: tuple[int, ...]


def best_cycle(source: Array, target: Array, pay: Array) -> Cycle | None:
    """Returns the cycle of largest mean pay, or None if the graph has no cycle.

    Howard's policy iteration: every node holds one outgoing edge, so that the held edges lead into
    cycles; an edge that leads to a better cycle, or to the same one at a better value, is held instead.
    Source: Cochet-Terrasson, Cohen, Gaubert, McGettrick, Quadrat, "Numerical computation of spectral
    elements in max-plus algebra", IFAC 1998. (Karp 1978 gives the same mean in nodes x edges steps.)

    Args:
        source: int64 (edges,), the node each edge leaves; `target` likewise.
        pay: float64 (edges,).
    """
    kept = _with_successors(source, target)
    if not len(kept):
        return None
    kept = kept[np.argsort(source[kept], kind="stable")]
    nodes, leave = np.unique(source[kept], return_inverse=True)
    arrive = np.searchsorted(nodes, target[kept])
    value_of = pay[kept].astype(np.float64)
    first = np.searchsorted(leave, np.arange(len(nodes)))
    scale = max(float(np.abs(value_of).max()), 1e-300)
    held = _best_of_each(value_of, leave, first)
    for _ in range(_ROUNDS):
        mean, value, _ = _evaluate(arrive[held], value_of[held])
        # first a better cycle, then, along the same cycle, a better way
        better = _best_of_each(mean[arrive], leave, first)
        gain = mean[arrive[better]] > mean + 1e-12 * scale
        if not gain.any():
            worth = np.where(mean[arrive] >= mean[leave] - 1e-12 * scale, value_of + value[arrive], -np.inf)
            better = _best_of_each(worth, leave, first)
            gain = worth[better] - mean > value + 1e-9 * scale
            if not gain.any():
                break
        held = np.where(gain, better, held)
    mean, _, root = _evaluate(arrive[held], value_of[held])
    node = start = int(root[int(np.argmax(mean))])
    walk = []
    while True:
        walk.append(int(kept[held[node]]))
        node = int(arrive[held[node]])
        if node == start:
            return Cycle(float(pay[walk].mean()), tuple(walk))


def _with_successors(source: Array, target: Array) -> Array:
    """Returns the edges that do not lead, sooner or later, only to dead ends."""
    kept = np.arange(len(source))
    while len(kept):
        goes_on = np.isin(target[kept], source[kept])
        if goes_on.all():
            break
        kept = kept[goes_on]
    return kept


def _best_of_each(values: Array, leave: Array, first: Array) -> Array:
    """Returns, for each node, the place of its first outgoing edge of largest value."""
    largest = np.maximum.reduceat(values, first)
    places = np.flatnonzero(values == largest[leave])
    _, earliest = np.unique(leave[places], return_index=True)
    return np.asarray(places[earliest])


def _evaluate(successor: Array, pay: Array) -> tuple[Array, Array, Array]:
    """Returns each node's cycle mean, its value relative to the cycle's root, and that root.

    By pointer doubling: after 2^k >= n steps every walk is on its cycle.
    """
    count = len(successor)
    doublings = max(int(np.ceil(np.log2(count + 1))), 1)
    reach, root = successor, np.minimum(np.arange(count), successor)
    for _ in range(doublings):
        root = np.minimum(root, root[reach])
        reach = reach[reach]
    # on the cycle now: the smallest node of a walk that starts there is the cycle's own
    root = root[reach]
    on_cycle = np.zeros(count, dtype=bool)
    on_cycle[reach] = True
    members = np.flatnonzero(on_cycle)
    total = np.bincount(root[members], weights=pay[members], minlength=count)
    size = np.bincount(root[members], minlength=count)
    mean = total[root] / size[root]
    is_root = np.zeros(count, dtype=bool)
    is_root[root] = True
    value = np.where(is_root, 0.0, pay - mean)
    reach = np.where(is_root, np.arange(count), successor)
    for _ in range(doublings):
        value = value + value[reach]
        reach = reach[reach]
    return mean, value, root
