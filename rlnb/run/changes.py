"""Changing some values of an experiment: what `fork`, the command line and grids do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlnb.errors import ExperimentError, did_you_mean
from rlnb.run.env_reference import EnvReference
from rlnb.run.policies import resolve_policy
from rlnb.run.references import References

if TYPE_CHECKING:
    from rlnb.run.experiment import ExperimentSpec


def apply_changes(
    spec: ExperimentSpec, changes: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, object]]:
    """Returns the fields with the changes applied, not yet checked, and the live objects that still hold.

    Values that follow from others (the optimizer's epsilon of A2C, VecNormalize's gamma) follow again,
    unless they had been set by hand.

    Args:
        spec: the experiment to start from.
        changes: values by field, hyperparameter or dotted path.

    Raises:
        ExperimentError: if a name is neither, or the change is not possible.
    """
    data = spec.to_dict()
    objects = dict(spec.objects)
    if changes.get("algo", spec.algo) != spec.algo:
        raise ExperimentError(
            f"algo cannot change from {spec.algo} to {changes['algo']!r}; write a new Experiment for another algorithm"
        )
    _forget_consequences(spec, data)
    for path, value in changes.items():
        keys = _locate(spec, path)
        target: Any = data
        for key in keys[:-1]:
            if target.get(key) is None:
                target[key] = {}
            target = target[key]
            if not isinstance(target, dict):
                raise ExperimentError(
                    f"{path!r} cannot be changed: {key!r} is {target!r}, which has no parts"
                )
        target[keys[-1]] = value
        argument = ".".join(keys[1:] if keys[0] == "hyperparameters" else keys)
        for known in [
            known
            for known in objects
            if known == argument or known.startswith((argument + ".", argument + "["))
        ]:
            del objects[known]
    changed = EnvReference.parse(data["env"])
    if (changed.kind, changed.value) != (spec.env.kind, spec.env.value):
        raise ExperimentError(
            f"env cannot change from {spec.env.value} to {changed.value!r}; write a new Experiment for another "
            "environment (its arguments change with env.kwargs)"
        )
    return data, objects


def _locate(spec: ExperimentSpec, path: str) -> list[str]:
    head, *rest = path.split(".")
    if head in spec.hyperparameters:
        return ["hyperparameters", head, *rest]
    known = spec.field_names()
    if head in known:
        return [head, *rest]
    choices = [*known, *spec.hyperparameters]
    raise ExperimentError(
        f"{path!r} is nothing that {spec.algo} or its experiment has.{did_you_mean(head, choices)}"
    )


def _forget_consequences(spec: ExperimentSpec, data: dict[str, Any]) -> None:
    """Drops resolved values that equal what would follow from the others anyway."""
    settings = dict(spec.hyperparameters)
    kwargs = data["hyperparameters"]["policy_kwargs"]
    default = resolve_policy(spec.algo, spec.policy, {}, References(), settings=settings)
    optimizer = ("optimizer_class", "optimizer_kwargs")
    if all(kwargs.get(key) == default.get(key) for key in optimizer):
        for key in optimizer:
            kwargs.pop(key, None)
    normalize = data["normalize"]
    if normalize is not None and normalize["gamma"] == settings["gamma"]:
        del normalize["gamma"]
