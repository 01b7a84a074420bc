"""Groups of terms: several objectives, each with a weight or an expression of its own.

    reward:
      terms:
        - {name: env, expression: reward}
        - {name: landing, expression: -abs(vy), weight: 2.0, group: safety}
        - {name: upright, expression: -abs(angle), group: safety}
      groups:
        - {name: safety, weight: 0.5, combine: "min(landing, upright)"}   # left out: the weighted sum
      combine: env + safety                                              # left out: the sum

A group counts where its first term stands. Its terms' names belong to it: the reward's own expression
sees the group's name instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlnb.design.expressions.expression import Expression
from rlnb.design.schedule import Weight, read_weight
from rlnb.design.term import check_name, compile_for
from rlnb.errors import DesignError, did_you_mean

if TYPE_CHECKING:
    from rlnb.design.shaping import Shaping
    from rlnb.design.term import Term


@dataclass(frozen=True)
class TermGroup:
    """One objective of a reward: the terms whose `group` is its name.

    Attributes:
        name: an identifier that no term and no other group has.
        weight: a number, or a schedule such as "lin_1" (`schedule`), that the group's value is multiplied by.
        combine: None for the weighted sum of its terms, or an expression in which each of its terms' names
            stands for its weighted value (0 if it is not enabled).
        enabled: the terms of a group that is not enabled are neither computed nor logged.
    """

    name: str
    weight: Weight = 1.0
    combine: str | None = None
    enabled: bool = True
    _combined: Expression | None = field(default=None, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        if not isinstance(self.enabled, bool):
            raise DesignError(
                f"The enabled of group {self.name!r} is {self.enabled!r:.60}; it must be true or false."
            )
        object.__setattr__(self, "weight", read_weight(self.weight, f"group {self.name!r}"))
        if self.combine is not None:
            check_combine(self.combine, f"group {self.name!r}")
            object.__setattr__(self, "_combined", compile_for(self.name, self.combine))

    @property
    def combined(self) -> Expression | None:
        """The compiled `combine`."""
        return self._combined


def check_combine(combine: object, owner: str) -> None:
    """Checks that a combination is a text.

    Raises:
        DesignError: it is something else.
    """
    if not isinstance(combine, str):
        raise DesignError(
            f"The combine of {owner} is {combine!r:.60}; write an expression such as 'a + 2 * b', or leave it out."
        )


def check_groups(terms: Sequence[Term | Shaping], groups: Sequence[TermGroup]) -> None:
    """Checks that names are different and every term's group is there.

    Raises:
        DesignError: naming the term or the group.
    """
    known = {}
    for group in groups:
        if not isinstance(group, TermGroup):
            raise DesignError(
                f"The groups of a reward are rlnb.TermGroup, not {group!r:.60}; write rlnb.TermGroup('safety')."
            )
        if group.name in known:
            raise DesignError(f"Two groups are called {group.name!r}; give each its own name.")
        known[group.name] = group
    for part in terms:
        if part.name in known:
            raise DesignError(f"A term and a group are both called {part.name!r}; give each its own name.")
        if part.group is not None and part.group not in known:
            raise DesignError(
                f"Term {part.name!r} is in the group {part.group!r}, which is not there."
                f"{did_you_mean(str(part.group), known)} Add rlnb.TermGroup({part.group!r}) to groups=, or "
                "leave group out."
            )
        # shaping with a scheduled weight is refused for itself, and so it is through its group
        if (
            part.group is not None
            and hasattr(part, "potential")
            and isinstance(known[part.group].weight, str)
        ):
            raise DesignError(
                f"The shaping {part.name!r} is in the group {part.group!r} of weight "
                f"{known[part.group].weight!r}; a potential whose scale changes over training changes the "
                "optimal policy, so give the group a number."
            )
    for group in groups:
        if group.combined is not None:
            group.combined.check([part.name for part in terms if part.group == group.name])
