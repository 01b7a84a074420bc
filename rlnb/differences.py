"""Why two runs of the same bundle ended differently, as far as what they recorded tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlnb.jobs.capture.environment import describe_environment
from rlnb.run.checkpoints import checkpoints
from rlnb.run.layout import RunLayout, read_json
from rlnb.run.secrets import Redactor

# Exactness is promised for the same versions of these (DESIGN.md); others rarely touch a weight.
DECISIVE = ("torch", "numpy", "gymnasium", "stable_baselines3", "sb3_contrib", "mujoco", "box2d")


def environment_differences(original: RunLayout) -> list[str]:
    """Compares what the run was promoted with and what runs here now.

    Returns:
        One sentence per difference that can change a weight.
    """
    before = read_json(original.environment_json)
    if before is None:
        return ["the run's environment.json is missing, so its versions are unknown"]
    now = describe_environment(Path(original.root), Redactor())
    found = []
    if before.get("python", {}).get("version") != now["python"]["version"]:
        found.append(
            f"Python was {before.get('python', {}).get('version')}, here it is {now['python']['version']}"
        )
    then, here = _normal(before.get("packages") or {}), _normal(now["packages"])
    for name in DECISIVE:
        if then.get(name) != here.get(name):
            found.append(f"{name} was {then.get(name, 'absent')}, here it is {here.get(name, 'absent')}")
    if (before.get("cpu") or {}).get("vector") != now["cpu"]["vector"]:
        found.append(f"the CPU had {_words(before.get('cpu'))}, this one has {_words(now['cpu'])}")
    if _devices(before) != _devices(now):
        found.append(f"the GPUs were {_devices(before) or 'none'}, here they are {_devices(now) or 'none'}")
    return found


def first_difference(original: RunLayout, again: RunLayout) -> list[str]:
    """Says between which checkpoints the two runs parted, where both have some at the same steps."""
    mine = {item.step: item.weights_sha256 for item in checkpoints(original)}
    theirs = {item.step: item.weights_sha256 for item in checkpoints(again)}
    last_equal = None
    for step in sorted(mine.keys() & theirs.keys()):
        if mine[step] != theirs[step]:
            after = "from the first steps on" if last_equal is None else f"after step {last_equal:,}"
            return [f"the weights part {after}; at step {step:,} they differ"]
        last_equal = step
    return []


def _normal(packages: dict[str, Any]) -> dict[str, str]:
    return {name.lower().replace("-", "_"): str(version) for name, version in packages.items()}


def _words(cpu: Any) -> str:
    return " ".join((cpu or {}).get("vector") or []) or "no vector units known"


def _devices(environment: dict[str, Any]) -> list[str]:
    return [str(device.get("name")) for device in environment.get("gpu") or []]
