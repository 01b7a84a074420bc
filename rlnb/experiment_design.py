"""Where an experiment's design comes from: values in code, or a design file that beats them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rlnb.design.design import Design
from rlnb.design.reward import RewardSpec, Term
from rlnb.design.state import StateSpec
from rlnb.design.term import marked_terms, name_of
from rlnb.errors import DesignError, ExperimentError


def design_of(
    design: Design | Mapping[str, Any] | str | Path | None,
    reward: Any = None,
    state: Any = None,
    *,
    functions: Iterable[Callable[..., Any]] = (),
) -> Design:
    """Returns the design, with its Python terms bound to functions by name.

    A function comes from `functions`, from a term of `reward`, or from `@rlnb.reward_term`, in this order.

    Args:
        design: a design, its data, or the path of a design file. A file that exists beats `reward` and
            `state`; one that does not exist yet needs one of them.
        reward: a `RewardSpec`, an expression, a term or function, or a list of these two.
        state: a `StateSpec`, or a list of operations.

    Raises:
        DesignError: if it cannot be read, or a Python term's function is missing.
        ExperimentError: if both a design and its parts are given.
    """
    named = tuple(functions) if isinstance(functions, Iterable) else (functions,)
    for one in named:
        if not callable(one):
            raise ExperimentError(
                f"terms has {one!r:.80}, which is no function; write e.g. terms=[soft_landing]"
            )
    coded = Design(reward=_reward(reward), state=_state(state))
    known = {**marked_terms(), **_functions(coded.reward), **{name_of(one): one for one in named}}
    chosen = _chosen(design, coded, has_parts=reward is not None or state is not None)
    bound = Design(reward=chosen.reward.bind(known), state=chosen.state)
    if bound.reward.unbound:
        missing = bound.reward.unbound[0]
        raise DesignError(
            f"the design needs the function {missing!r}, which is not defined here; run the cell with "
            f"'@rlnb.reward_term' above 'def {missing}(batch)'"
        )
    return bound


def bound_design(design: Design, like: Design) -> Design:
    """Returns `design` with its Python terms bound to the functions of another design."""
    return Design(
        reward=design.reward.bind({**marked_terms(), **_functions(like.reward)}), state=design.state
    )


def _chosen(design: Any, coded: Design, *, has_parts: bool) -> Design:
    if design is None:
        return coded
    if isinstance(design, (str, Path)) and not (isinstance(design, str) and "\n" in design):
        path = Path(design)
        if path.is_file():
            return Design.from_yaml(path)
        if has_parts:
            return coded
        raise ExperimentError(
            f"there is no design file {str(path)!r}; look at the path, or give reward= or state="
        )
    if has_parts:
        raise ExperimentError(
            "design= and reward= or state= are both given; a design already holds both, so drop one"
        )
    if isinstance(design, Design):
        return design
    if isinstance(design, Mapping):
        return Design.from_dict(design)
    if isinstance(design, str):
        return Design.from_yaml(design)
    raise ExperimentError(f"design={design!r:.80} is no design; give a Design or the path of a design file")


def _reward(reward: Any) -> RewardSpec:
    if reward is None:
        return RewardSpec.env()
    if isinstance(reward, RewardSpec):
        return reward
    if isinstance(reward, str):
        return RewardSpec(terms=[Term("reward", reward)])
    if isinstance(reward, Mapping):
        return RewardSpec(terms=[Term(str(name), part) for name, part in reward.items()])
    return RewardSpec(terms=list(reward) if isinstance(reward, (list, tuple)) else [reward])


def _state(state: Any) -> StateSpec:
    if state is None:
        return StateSpec()
    if isinstance(state, StateSpec):
        return state
    return StateSpec(list(state) if isinstance(state, (list, tuple)) else [state])


def _functions(reward: RewardSpec) -> dict[str, Any]:
    return {
        str(term.python): term.function
        for term in reward.terms
        if isinstance(term, Term) and term.function is not None
    }
