"""The names an expression may use over a batch.

    vy, next_vy                   components of s and s'
    action, a0, prev_action, …    the action; components of a vector action
    t, terminated, truncated      the step in its episode, the two ends (1 or 0)
    reward                        the environment's own reward
    foot_force                    a recorded signal
    obs["vy"], next_obs["vy"], action["a0"], prev_action["a0"], signals["foot_force"], info["x"]

Where two things share a plain name the first in this order wins; the subscripted form always works.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from rlnb.design.columns import Array, UnknownName
from rlnb.errors import did_you_mean

if TYPE_CHECKING:
    from rlnb.design.transitions import Transitions

#: what may be subscripted with a component's name, as in `obs["vy"]`
GROUPS = ("obs", "next_obs", "action", "prev_action", "signals", "info")

_PLAIN = ("t", "terminated", "truncated", "reward")


def subscript(group: str, name: str) -> str:
    """Returns the one spelling of a subscripted name, `obs["vy"]`."""
    return f'{group}["{name}"]'


@lru_cache(maxsize=64)
def _table(
    obs: tuple[str, ...], action: tuple[str, ...], signals: tuple[str, ...]
) -> dict[str, tuple[str, str | None]]:
    """Returns name → (group, component), first come first named."""
    table: dict[str, tuple[str, str | None]] = {name: (name, None) for name in _PLAIN}
    if len(action) < 2:
        only = action[0] if action else None
        table |= {"action": ("action", only), "prev_action": ("prev_action", only)}
    plain: list[tuple[str, str, str]] = [
        *((name, "obs", name) for name in obs),
        *((f"next_{name}", "next_obs", name) for name in obs),
        *((name, "action", name) for name in action),
        *((f"prev_{name}", "prev_action", name) for name in action),
        *((name, "signals", name) for name in signals),
    ]
    for name, group, component in plain:
        if name.isidentifier():
            table.setdefault(name, (group, component))
        table[subscript(group, component)] = (group, component)
    table |= {subscript("next_obs", name): ("next_obs", name) for name in obs}
    table |= {subscript("prev_action", name): ("prev_action", name) for name in action}
    return table


class Namespace(Mapping[str, Array]):
    """Names → contiguous float64 (n,) arrays, made when first asked for.

    Everything is float64, booleans and integers too, so that an expression means the same whatever
    dtype an environment stores.
    """

    def __init__(self, batch: Transitions) -> None:
        self._batch = batch
        self._table = _table(batch.obs.names, batch.action_names, batch.signals.names)
        self._cache: dict[str, Array] = {}

    @property
    def rows(self) -> int:
        """Number of rows of every array."""
        return len(self._batch)

    def __getitem__(self, name: str) -> Array:
        values = self._cache.get(name)
        if values is None:
            values = self._fetch(name)
            if values.dtype.char != "d" or values.strides != (8,):
                values = np.ascontiguousarray(values, dtype=np.float64)
            self._cache[name] = values
        return values

    def __contains__(self, name: object) -> bool:
        if name in self._table:
            return True
        group = _info_key(name) if isinstance(name, str) else None
        return group is not None and group in self._batch.info

    def __iter__(self) -> Iterator[str]:
        yield from self._table
        yield from (subscript("info", key) for key in self._batch.info)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def place(self, name: str) -> tuple[str, str | None] | None:
        """Returns what a name stands for, as ("next_obs", "vy") or ("t", None); None if it is unknown or in info."""
        return self._table.get(name)

    def _fetch(self, name: str) -> Array:
        place = self._table.get(name)
        if place is None:
            key = _info_key(name)
            if key is not None:
                return self._batch.info[key]
            raise UnknownName(
                f"{name!r} is not a name of this batch.{hint(name, self)} "
                f"It has: {', '.join(plain_names(self))}."
            )
        group, component = place
        value: Any = getattr(self._batch, group)
        column: Array = value if component is None else value[component]
        return column


def plain_names(names: Iterable[str]) -> list[str]:
    """Returns one spelling of each name, for lists shown to a person: what is in `info` has no plain one."""
    return [name for name in names if "[" not in name or name.startswith("info[")]


def hint(name: str, names: Collection[str]) -> str:
    """Returns how a name has to be written if it stands in `info`, else the nearest one; "" if none is near."""
    spelt = subscript("info", name)
    if name in GROUPS:
        example = next((one for one in names if one.startswith(f"{name}[")), subscript(name, "…"))
        return f" Write a part of it, as in {example}."
    # Iterated, because at step time every key of info counts as known (`InfoColumns`).
    return f" It stands in info; write {spelt}." if spelt in list(names) else did_you_mean(name, names)


def _info_key(name: str) -> str | None:
    return name[6:-2] if name.startswith('info["') and name.endswith('"]') else None
