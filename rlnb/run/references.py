"""Classes and functions among an experiment's values: plain references outside, live objects inside.

A class given as `policy_kwargs={"activation_fn": torch.nn.ReLU}` stands in run.yaml as
`{"$ref": "torch.nn.modules.activation:ReLU"}`. The live object stays beside the plain data (never in it):
a class defined in a notebook cell exists only where that cell ran, and nothing of the user's is pickled.
From plain data alone, only classes of the training libraries are imported: reading a run runs no foreign code.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final

from rlnb.errors import ExperimentError

KEY: Final = "$ref"
CELL: Final = "__main__"

_LIBRARIES: Final = ("torch.nn", "torch.optim", "stable_baselines3", "sb3_contrib", "rlnb")
_PLAIN: Final = (bool, int, float, str)


class References:
    """The live objects of one experiment, by the dotted path of the argument that holds them.

    Args:
        objects: objects known already, by path.
    """

    def __init__(self, objects: Mapping[str, object] | None = None) -> None:
        self.objects: dict[str, object] = dict(objects or {})

    def freeze(self, value: object, path: str) -> Any:
        """Returns `value` as plain data, remembering the classes and functions in it.

        Args:
            value: nested lists, tuples (become lists), mappings, numbers, text, classes, functions.
            path: the argument's dotted name, e.g. "policy_kwargs.activation_fn".

        Raises:
            ExperimentError: for anything else, naming its path and type.
        """
        item = getattr(value, "item", None)
        if callable(item) and getattr(value, "ndim", None) == 0:
            value = item()
        if value is None or isinstance(value, _PLAIN):
            return value
        if isinstance(value, Mapping):
            if set(value) == {KEY}:
                return {KEY: _checked(value[KEY], path)}
            if wrong := [key for key in value if not isinstance(key, str)]:
                raise ExperimentError(f"{path} has the key {wrong[0]!r}; its keys have to be text")
            return {str(key): self.freeze(inner, f"{path}.{key}") for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.freeze(inner, f"{path}[{index}]") for index, inner in enumerate(value)]
        if callable(value) and hasattr(value, "__qualname__"):
            self.objects[path] = value
            return {KEY: f"{getattr(value, '__module__', None) or CELL}:{value.__qualname__}"}
        raise ExperimentError(
            f"{path} holds a {type(value).__name__} ({value!r:.60}), which run.yaml cannot carry; "
            "use numbers, text, lists, mappings, or a class or function that is defined in a cell or importable"
        )

    def thaw(self, value: Any, path: str) -> Any:
        """Returns plain data with its references replaced by the live objects.

        Raises:
            ExperimentError: if an object is not at hand and may not be imported.
        """
        if isinstance(value, Mapping):
            if set(value) == {KEY}:
                return self.objects[path] if path in self.objects else _import(value[KEY], path)
            return {key: self.thaw(inner, f"{path}.{key}") for key, inner in value.items()}
        if isinstance(value, list):
            return [self.thaw(inner, f"{path}[{index}]") for index, inner in enumerate(value)]
        return value


def _checked(text: object, path: str) -> str:
    if not isinstance(text, str) or text.count(":") != 1:
        raise ExperimentError(f"{path}={text!r} is no reference; write it as 'module:name'")
    return text


def _import(reference: str, path: str) -> object:
    """Imports a class of a training library; refuses everything else."""
    module, _, name = _checked(reference, path).partition(":")
    if module == CELL or "<" in name:
        raise ExperimentError(
            f"{path} is {name!r}, which is defined in the notebook; run the notebook's cells, "
            "or move it into a module, to use it here"
        )
    if not any(module == library or module.startswith(library + ".") for library in _LIBRARIES):
        raise ExperimentError(
            f"{path} is {reference!r} of a module that is not imported on the word of a file; "
            "pass the object itself in Python"
        )
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        raise ExperimentError(f"{path} is {reference!r}, which is no class of {module}")
    return found
