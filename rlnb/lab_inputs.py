"""What a Lab is given, made out: the design file, a demonstration, Python terms and policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlnb.design.design import Design
from rlnb.design.reward import Term
from rlnb.design.term import TermFunction, name_of
from rlnb.design.transitions import Transitions
from rlnb.envs.frames import FrameBudget
from rlnb.errors import DesignError, UsageError
from rlnb.run.design_file import DesignFile, default_design_path
from rlnb.run.recordings import Recorded
from rlnb.run.trajectories import read_transitions
from rlnb.view.lab.bench import Subject, Workbench
from rlnb.view.lab.episodes.episodes import BUILT_IN, Episodes, PolicyChoice


def design_path(design: object, label: str) -> Path:
    """Returns the absolute path of a design file; without one it is called like the environment.

    Raises:
        DesignError: it is no YAML file's path.
    """
    if design is None:
        return default_design_path(label).absolute()
    if not isinstance(design, str | Path) or Path(design).suffix not in (".yaml", ".yml"):
        raise DesignError(f"design={design!r:.80} names no design file; give one such as 'lander.yaml'.")
    return Path(design).expanduser().absolute()


def demonstration(demo: object, names: Sequence[str]) -> Transitions | None:
    """Returns the episodes that a notebook brings.

    Args:
        demo: transitions, or the path of a recording.
        names: of the environment's observation components.

    Raises:
        UsageError: they are neither transitions nor a recording's path, or of another environment.
    """
    if demo is None:
        return None
    if isinstance(demo, str | Path):
        if not Path(demo).is_file():
            raise UsageError(
                f"demo={str(demo)!r} is no file; record one with rlnb.record(env, to={str(demo)!r})"
            )
        demo = read_transitions(demo)
    if not isinstance(demo, Transitions):
        raise UsageError(f"demo={demo!r:.80} is no recording; give what rlnb.record(…) returns, or its file")
    if demo.obs.names != tuple(names):
        raise UsageError(
            f"the demo's observations are {', '.join(demo.obs.names) or 'unnamed'}, and the environment's are "
            f"{', '.join(names) or 'unnamed'}; record the demo in the lab's environment, with the same names"
        )
    return demo


def functions_of(design: Design) -> dict[str, TermFunction]:
    """Returns the Python terms of a design's reward by name."""
    terms = [part for part in design.reward.terms if isinstance(part, Term)]
    return {str(part.python): part.function for part in terms if part.function is not None}


def chosen_policy(policy: Any, label: str | None) -> PolicyChoice:
    """Returns who acts: a word, a run's checkpoint, a function or a model."""
    if isinstance(policy, str):
        return PolicyChoice(label or policy, policy, _loader(policy) if "@" in policy else lambda: policy)
    if label is None:
        try:
            label = name_of(policy)
        except DesignError:
            raise UsageError(
                f"policy={policy!r:.80} has no name to label its episodes with; give label='expert'"
            ) from None
    return PolicyChoice(label, "yours", lambda: policy)


def own_policies(policies: object) -> Mapping[str, Any]:
    """Checks the policies that a notebook offers.

    Raises:
        UsageError: they are no mapping of labels to somebody who can act.
    """
    if not isinstance(policies, Mapping) or not all(isinstance(label, str) for label in policies):
        raise UsageError(
            f"policies={policies!r:.80} is no mapping of labels; write e.g. policies={{'expert': function}}"
        )
    for label, policy in policies.items():
        if not (callable(policy) or isinstance(policy, str) or hasattr(policy, "predict")):
            raise UsageError(
                f"policies[{label!r:.80}]={policy!r:.80} cannot act; give a function of an observation, an SB3 "
                "model or a run's checkpoint such as 'RUN@best'"
            )
    return policies


def offered_policies(policies: Mapping[str, Any], env: object) -> list[PolicyChoice]:
    """Returns the user's own policies, then the checkpoints of runs that were trained in the environment."""
    from rlnb.trained_policies import trained_policies

    own = [_own(label, policy) for label, policy in policies.items()]
    trained = [
        PolicyChoice(found.label, f"{found.name} ({found.which}, step {found.step:,})", _loader(found.label))
        for found in trained_policies(env)
    ]
    return [*own, *trained]


def _own(label: str, policy: Any) -> PolicyChoice:
    checkpoint = isinstance(policy, str) and "@" in policy
    return PolicyChoice(label, f"{label}: yours", _loader(policy) if checkpoint else lambda: policy)


def _loader(name: str) -> Callable[[], Any]:
    def load() -> Any:
        from rlnb.trained_policies import load_policy

        return load_policy(name)

    return load


def first_episodes(episodes: Episodes, count: int, frames: FrameBudget | None) -> Recorded:
    """Records random episodes for a lab that has none, and says how far it is.

    Args:
        episodes: of the lab.
        count: how many.
        frames: room for pictures; None for none.

    Raises:
        UsageError: (its kinds) the environment does not work.
    """
    from rlnb.view.lab.progress import recording

    with recording(f"{count} random episodes of {episodes.subject.env.label}", count) as progress:
        episodes.record(BUILT_IN[0], episodes=count, seed=0, frames=frames, progress=progress)
    return episodes.loaded()


def new_bench(subject: Subject, recorded: Recorded, design: Design, file: DesignFile) -> Workbench:
    """Returns a workbench for what a lab begins with.

    Raises:
        DesignError: the design does not work on the episodes.
    """
    notes = file.read_notes()
    try:
        return Workbench(subject, recorded, design, notes)
    except DesignError as error:
        if not file.path.exists():
            raise
        raise DesignError(
            f"{file.path.name} does not work on this lab's episodes: {error} Correct it there, or give the lab "
            "another file with design=."
        ) from error
