"""Design: what the agent is paid and what it sees, as one value with one file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlnb.design.document import check_keys, reward_from_dict, reward_to_dict, state_from_list, state_to_list
from rlnb.design.reward import RewardSpec
from rlnb.design.state import StateSpec
from rlnb.design.term import TermFunction
from rlnb.design.yamltext import read_yaml, write_yaml
from rlnb.errors import DesignError

#: version of design files; newer ones are refused
FORMAT = 1


@dataclass(frozen=True)
class Design:
    """A reward and a state design.

    Attributes:
        reward: what the agent is paid; the environment's own reward by default.
        state: what it sees; the environment's own observation by default.
    """

    reward: RewardSpec = field(default_factory=RewardSpec.env)
    state: StateSpec = field(default_factory=StateSpec)

    def __post_init__(self) -> None:
        if not isinstance(self.reward, RewardSpec):
            raise DesignError(f"reward= must be a RewardSpec, not {self.reward!r:.60}.")
        if not isinstance(self.state, StateSpec):
            raise DesignError(f"state= must be a StateSpec, not {self.state!r:.60}.")

    @property
    def is_identity(self) -> bool:
        """Neither rewards nor observations are changed."""
        return self.reward.is_identity and self.state.is_identity

    def bind(self, functions: Mapping[str, TermFunction] | None = None) -> Design:
        """Returns the design with its Python terms bound; see `RewardSpec.bind`."""
        return replace(self, reward=self.reward.bind(functions))

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values (dict, list, str, float, bool) that `from_dict` reads without loss."""
        return {"format": FORMAT, "reward": reward_to_dict(self.reward), "state": state_to_list(self.state)}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], *, where: str = "the design") -> Design:
        """Reads `to_dict`'s values; a part that is left out is the environment's own.

        Python terms are bound to the functions marked with `@rlnb.reward_term` so far.

        Raises:
            DesignError: an unknown key (the nearest right one is named) or a bad value, with its place.
        """
        values = check_keys(given, ("format", "reward", "state"), where)
        version = values.get("format", FORMAT)
        if not isinstance(version, int) or version > FORMAT:
            raise DesignError(
                f"{where} has format {version!r}; this version of rlnb reads up to {FORMAT}: update rlnb."
            )
        reward, state = values.get("reward"), values.get("state")
        return cls(
            reward=RewardSpec.env() if reward is None else reward_from_dict(reward),
            state=StateSpec() if state is None else state_from_list(state),
        )

    def to_yaml(self) -> str:
        """Returns the text of a design file; floats are exact, incl. inf and -0.0."""
        return write_yaml(self.to_dict())

    @classmethod
    def from_yaml(cls, source: str | Path) -> Design:
        """Reads a design file.

        Args:
            source: a path (a `Path`, or a text of one line that ends in .yaml or .yml), or YAML text.

        Raises:
            DesignError: the file is missing, or its content is wrong, with its place.
        """
        where, text = "the design", source
        one_line = (
            isinstance(source, str) and "\n" not in source and source.strip().endswith((".yaml", ".yml"))
        )
        if isinstance(source, Path) or one_line:
            where = str(source)
            try:
                text = Path(source).read_text(encoding="utf-8")
            except FileNotFoundError:
                raise DesignError(f"There is no design file {where!r}; look at the path.") from None
            except (OSError, UnicodeDecodeError) as error:
                raise DesignError(f"The design file {where} cannot be read: {error}.") from None
        values = read_yaml(str(text), where)
        return cls.from_dict({} if values is None else values, where=where)

    def fingerprint(self) -> str:
        """Returns a sha256 that two designs share exactly when they are written alike.

        Python terms count by name only: their source is part of the frozen notebook, not of the design.
        """
        plain = {key: value for key, value in self.to_dict().items() if key != "format"}
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
