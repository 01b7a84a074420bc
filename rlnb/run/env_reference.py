"""Which environment an experiment trains in, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rlnb.errors import ExperimentError
from rlnb.run.references import References


class EnvKind(StrEnum):
    """How an environment is found again."""

    ID = "id"  # a gymnasium id
    IMPORT = "import"  # "module:name" of a class or function
    CELL = "cell"  # defined in the notebook; exists only where its cell has run


@dataclass(frozen=True)
class EnvReference:
    """Which environment, as data.

    Attributes:
        kind: how it is found.
        value: the id, "module:name", or the name in the notebook.
        kwargs: keyword arguments it is made with, plain data.
    """

    kind: EnvKind
    value: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, value: object) -> EnvReference:
        """Reads an id, a mapping with kind, value and kwargs, or a reference.

        Raises:
            ExperimentError: if it is none of these.
        """
        if isinstance(value, cls):
            value = value.to_dict()
        if isinstance(value, str):
            value = {"kind": EnvKind.ID, "value": value}
        if not isinstance(value, Mapping) or not isinstance(value.get("value"), str):
            raise ExperimentError(
                f"env={value!r} names no environment; give a gymnasium id, a class or a function"
            )
        kind = value.get("kind", EnvKind.ID)
        if kind not in list(EnvKind):
            raise ExperimentError(f"env.kind={kind!r} is unknown; it is one of {', '.join(EnvKind)}")
        kwargs = value.get("kwargs") or {}
        if not isinstance(kwargs, Mapping):
            raise ExperimentError(f"env.kwargs={kwargs!r:.80} is no mapping; write e.g. {{'gravity': -9.8}}")
        return cls(EnvKind(kind), value["value"], References().freeze(kwargs, "env.kwargs"))

    def matches(self, other: EnvReference) -> bool:
        """Whether both give the same transitions: how an environment is drawn does not matter."""

        def identity(one: EnvReference) -> tuple[EnvKind, str, dict[str, Any]]:
            return one.kind, one.value, {k: v for k, v in one.kwargs.items() if k != "render_mode"}

        return identity(self) == identity(other)

    def __str__(self) -> str:
        """The name a person knows it by, with its keyword arguments."""
        name = self.value if self.kind is EnvKind.ID else self.value.rpartition(":")[2]
        arguments = ", ".join(f"{key}={value!r}" for key, value in self.kwargs.items())
        return f"{name}({arguments})" if arguments else name

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"kind": self.kind.value, "value": self.value, "kwargs": dict(self.kwargs)}
