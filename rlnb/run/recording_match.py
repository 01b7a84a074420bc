"""Which recordings may stand together: of one environment, with the same components in the same types."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from rlnb.design.columns import MappingColumns
from rlnb.design.transitions import Transitions
from rlnb.errors import EnvError, RlnbError, UsageError
from rlnb.run.env_reference import EnvReference
from rlnb.run.trajectories import Footer

_SHOWN: Final = 6
"""So many components' names are listed in a message."""


class Match:
    """What recordings have to be like.

    Args:
        env: their environment; None: any.
        names: names of the observation's components; None: any.
        signals: names of the signals that are loaded, which each of them has to have; None: any.
    """

    def __init__(
        self,
        env: EnvReference | Mapping[str, Any] | None,
        names: Sequence[str] | None,
        signals: Iterable[str] | None,
    ) -> None:
        self._env = None if env is None else EnvReference.parse(env)
        self._names = None if names is None else tuple(names)
        self._signals = None if signals is None else tuple(signals)

    def require(self, batch: Transitions, about: Mapping[str, Any], what: str) -> None:
        """Raises EnvError if a batch does not fit; `what` names it."""
        if wrong := self._wrong(batch.obs.names, batch.signals.names, about):
            raise EnvError(f"{what} does not fit: {wrong}; record it again, or open a lab of its own for it")

    def require_footer(self, footer: Footer, about: Mapping[str, Any]) -> None:
        """Raises EnvError if what a file's footer says does not fit."""
        names = tuple((footer.columns.get("obs") or {}).get("names") or ())
        signals = [name.partition(".")[2] for name in footer.types if name.startswith("signal.")]
        if wrong := self._wrong(names, signals, about):
            raise EnvError(wrong)

    def require_alike(self, footer: Footer, first: Footer) -> None:
        """Raises EnvError if two files hold other columns, or the same ones in other types or shapes."""
        mine, theirs = _columns(footer, self._signals is None), _columns(first, self._signals is None)
        for name in dict.fromkeys((*theirs, *mine)):
            if mine.get(name) != theirs.get(name):
                raise EnvError(
                    f"its {name} is {mine.get(name, 'absent')}, and {theirs.get(name, 'absent')} in the first "
                    "recording; record it again, or remove one of them"
                )

    def trimmed(self, batch: Transitions) -> Transitions:
        """Returns the batch with the wanted signals only."""
        if self._signals is None or tuple(batch.signals.names) == self._signals:
            return batch
        kept = {name: batch.signals[name] for name in self._signals}
        return replace(batch, signals=MappingColumns("signals", kept))

    def _wrong(self, names: Sequence[str], signals: Iterable[str], about: Mapping[str, Any]) -> str:
        told = about.get("env")
        if self._env is not None and told is not None:
            try:
                theirs = EnvReference.parse(told)
            except RlnbError as error:
                return f"its environment is not known ({error})"
            if not theirs.matches(self._env):
                return f"it was recorded in {theirs}, not in {self._env}"
        if self._names is not None and tuple(names) != self._names:
            return f"it has {_listed(names)}, and {self._env or 'the lab'} has {_listed(self._names)}"
        missing = sorted(set(self._signals or ()) - set(signals))
        return f"it lacks the signal {missing[0]!r}, which is wanted here" if missing else ""


def relabelled(batch: Transitions, label: str | None, *, fallback: str = "demo") -> tuple[Transitions, str]:
    """Returns the batch with a policy label on every episode, and one name for all of it.

    Args:
        batch: the episodes.
        label: for all of them; None keeps their own.
        fallback: where an episode has none.

    Raises:
        UsageError: if the label is no text, or too long to be read.
    """
    if label is not None and (not isinstance(label, str) or not 0 < len(label.strip()) <= 80):
        raise UsageError(
            f"label={label!r:.90} does not fit; give a name of 1 to 80 characters, such as 'expert'"
        )
    numbers = [int(number) for number in batch.episode[batch.starts]]
    labels = {number: label or batch.labels.get(number) or fallback for number in numbers}
    distinct = list(dict.fromkeys(labels.values()))
    return replace(batch, labels=labels), distinct[0] if len(distinct) == 1 else "mixed"


def content_digest(batch: Transitions) -> str:
    """Returns a sha256 of what was recorded; labels and the episodes' numbers do not count."""
    digest = hashlib.sha256()
    for name, values in sorted(batch.to_columns().items()):
        if name not in ("policy", "episode"):
            digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
            digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def _columns(footer: Footer, signals: bool) -> dict[str, str]:
    """What has to be alike, as text."""
    skipped = ("info.", "policy") if signals else ("info.", "policy", "signal.")
    types = {name: kind for name, kind in footer.types.items() if not name.startswith(skipped)}
    shapes = {f"{name} (shape)": str(told.get("shape")) for name, told in footer.columns.items()}
    return types | shapes


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "components without names"
    more = "" if len(names) <= _SHOWN else f", … ({len(names)})"
    return f"the components {', '.join(names[:_SHOWN])}{more}"
