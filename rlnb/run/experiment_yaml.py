"""Experiments as files with sections, overridden by environment variables.

    name: lander
    env: {id: LunarLander-v3, kwargs: {gravity: -9.0}}      # or: env: LunarLander-v3
    design: lander.yaml                                     # relative to this file; or the design itself
    algorithm: {name: PPO, policy: MlpPolicy, learning_rate: lin_1e-3, n_steps: 1024}
    training: {total_timesteps: 1e6, n_envs: 16, seed: 0, stop_when: return_mean > 240 for 20 episodes}
    runtime: {device: auto, torch_threads: 1}
    checkpoint: {every_minutes: 5, keep_last: 3}
    tags: [baseline]

`RLNB_TRAINING__TOTAL_TIMESTEPS=1000` sets `training.total_timesteps`; further double underscores go
deeper (`RLNB_ALGORITHM__POLICY_KWARGS__NET_ARCH='[32]'`). Values are read as YAML.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from rlnb.design.design import Design
from rlnb.errors import ExperimentError, did_you_mean
from rlnb.run.algorithms import algorithm
from rlnb.settings import OVERRIDE

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "env": ("id", "kwargs", "names", "signals"),
    "algorithm": ("name", "policy"),  # and every argument of that algorithm
    "training": (
        "total_timesteps", "n_envs", "workers", "start_method", "normalize", "seed", "stop_when", "max_hours",
        "init_from",
    ),
    "runtime": ("device", "torch_threads", "deterministic"),
    "checkpoint": ("every_steps", "every_minutes", "keep_last", "keep_best", "keep_every"),
}  # fmt: skip
"""The sections of a file and the keys of each."""

_TOP: Final = ("name", "design", "tags", *SECTIONS)
_ONE_UNDERSCORE: Final = re.compile(rf"RLNB_({'|'.join(map(str.upper, SECTIONS))})_([A-Z0-9][A-Z0-9_]*)")


class _Loader(yaml.SafeLoader):
    """YAML 1.1 as PyYAML reads it, but with `1e-3` a number and every key allowed once only."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9][0-9_]*)(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)|[-+]?\.[0-9]+[eE][-+]?[0-9]+"),
    list("-+0123456789."),
)


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
    for index, key in enumerate(keys):
        if key in keys[:index]:
            raise ExperimentError(
                f"line {node.start_mark.line + 1}: {key!r} is given twice; keep one of them"
            )
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def load_yaml(text: str, *, where: str = "the experiment") -> Any:
    """Reads YAML text.

    Raises:
        ExperimentError: with line and column if it cannot be read.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        raise ExperimentError(f"{where} is no YAML{place}: {problem}") from error


def overrides(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns the environment variables that override experiments: `RLNB_<SECTION>__<KEY>`.

    `promote()` passes these on, so that the job resolves the same experiment.

    Raises:
        ExperimentError: one is spelt with a single underscore, which would override nothing.
    """
    variables = os.environ if environ is None else environ
    for name in variables:
        if matched := _ONE_UNDERSCORE.fullmatch(name):
            raise ExperimentError(f"{name} overrides nothing; write RLNB_{matched[1]}__{matched[2]}")
    return {name: value for name, value in sorted(variables.items()) if OVERRIDE.fullmatch(name)}


def read_experiment(source: str | Path, *, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Reads a file (or its text) into the arguments of `ExperimentSpec.resolve`.

    Args:
        source: path of the file, or its text if it has a line break.
        environ: where overriding variables are looked up; by default this process's environment.

    Raises:
        ExperimentError: if the file is missing or no YAML, or a section or key is unknown (naming the nearest).
    """
    text, folder, where = _text(source)
    data = load_yaml(text, where=where)
    if not isinstance(data, Mapping):
        raise ExperimentError(
            f"{where} holds {'nothing' if data is None else type(data).__name__}, not sections such as 'env:' and 'training:'"
        )
    sections = _checked(data, where)
    for variable, value in overrides(environ).items():
        _override(sections, variable, load_yaml(value, where=variable))
    return _arguments(sections, folder)


def _text(source: str | Path) -> tuple[str, Path, str]:
    if isinstance(source, str) and "\n" in source:
        return source, Path.cwd(), "the experiment"
    given: object = source
    if not isinstance(given, str | Path) or not str(given).strip():
        raise ExperimentError(f"{given!r:.80} names no experiment file; give its path, or its text")
    path = Path(source)
    if not path.is_file():
        raise ExperimentError(f"there is no experiment file {str(path)!r}; look at the path")
    try:
        return path.read_text("utf-8"), path.parent, str(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(f"the experiment file {str(path)!r} cannot be read: {error}") from None


def _checked(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Returns the sections as dicts, `env: ID` spelt out, unknown names refused."""
    sections: dict[str, Any] = {}
    for key, value in data.items():
        if key not in _TOP:
            home = [f"{section}.{key}" for section, keys in SECTIONS.items() if key in keys]
            hint = f" It belongs to {home[0]}." if home else did_you_mean(str(key), _TOP)
            raise ExperimentError(
                f"{where} has the unknown section {key!r}.{hint} Sections are {', '.join(_TOP)}"
            )
        if key not in SECTIONS:
            sections[key] = value
            continue
        if key == "env" and isinstance(value, str):
            value = {"id": value}
        if not isinstance(value, Mapping):
            raise ExperimentError(
                f"{where}: {key} holds {value!r}, not keys such as {', '.join(SECTIONS[key][:2])}"
            )
        sections[key] = dict(value)
    for key, value in sections.items():
        for inner in value if key in SECTIONS else ():
            _require_key(key, str(inner), _keys(key, sections), where)
    return sections


def _keys(section: str, sections: Mapping[str, Any]) -> tuple[str, ...]:
    keys = SECTIONS[section]
    if section != "algorithm":
        return keys
    return (*keys, *algorithm(sections.get("algorithm", {}).get("name", "PPO")).by_name)


def _require_key(section: str, key: str, keys: tuple[str, ...], where: str) -> None:
    if key not in keys:
        others = [f"{other}.{key}" for other, known in SECTIONS.items() if key in known]
        hint = f" It belongs to {others[0]}." if others else did_you_mean(key, keys)
        raise ExperimentError(f"{where}: {section}.{key} is unknown.{hint} {section} takes {', '.join(keys)}")


def _override(sections: dict[str, Any], variable: str, value: Any) -> None:
    matched = OVERRIDE.fullmatch(variable)
    assert matched is not None  # `overrides` has matched it
    section, path = matched[1].lower(), matched[2].lower().split("__")
    if section not in SECTIONS:
        raise ExperimentError(
            f"{variable} names the unknown section {section!r}.{did_you_mean(section, SECTIONS)} "
            f"Sections are {', '.join(SECTIONS)}"
        )
    _require_key(section, path[0], _keys(section, sections), variable)
    target: Any = sections.setdefault(section, {})
    for key in path[:-1]:
        target[key] = dict(target.get(key) or {})
        target = target[key]
    target[path[-1]] = value


def _arguments(sections: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    env = dict(sections.get("env", {}))
    chosen = dict(sections.get("algorithm", {}))
    arguments: dict[str, Any] = {
        key: sections[key] for key in ("name", "tags", "checkpoint") if key in sections
    }
    arguments |= sections.get("training", {}) | sections.get("runtime", {})
    if env:
        arguments["env"] = {"kwargs": env.get("kwargs") or {}}
    if env.get("id") is not None:
        arguments["env"] |= {"kind": "import" if _is_import(env["id"]) else "id", "value": env["id"]}
    arguments |= {key: env[key] for key in ("names", "signals") if key in env}
    arguments |= {
        field: chosen.pop(key) for field, key in (("algo", "name"), ("policy", "policy")) if key in chosen
    }
    design = sections.get("design")
    if isinstance(design, str):
        design = Design.from_yaml(folder / design).to_dict()
    return arguments | {"design": design, "hyperparameters": chosen}


def _is_import(env: object) -> bool:
    """Whether an environment's text is "module:Class" rather than gymnasium's "module:Name-v0"."""
    return isinstance(env, str) and ":" in env and env.partition(":")[2].isidentifier()
