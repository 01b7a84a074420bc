"""What a rehearsal looks at without running it: the device, the way to subprocess workers, what has no state_dict."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cloudpickle
import torch

import rlnb
from rlnb.design.design import Design
from rlnb.envs.signals import Signal
from rlnb.run.experiment import ExperimentSpec
from rlnb.run.fields import Workers
from rlnb.run.findings import Finding, Level
from rlnb.train.callback_state import as_callbacks, stateless_reasons
from rlnb.train.sb3 import stateful_terms
from rlnb.train.vecenv import MakeEnv, MonitoredFactory

#: Characters of a foreign error that are shown; torch prints whole tensors.
_LONGEST = 240
_FOREIGN = tuple(
    str(Path(str(folder)).resolve())
    for folder in {*map(sysconfig.get_path, ("stdlib", "purelib", "platlib")), Path(rlnb.__file__).parent}
)


def check_device(spec: ExperimentSpec) -> list[Finding]:
    """Finds a device that is not there, where SB3 would train on the CPU without a word."""
    kind, _, index = spec.device.partition(":")
    if kind in ("auto", "cpu"):
        return []
    backend: Any = {"cuda": torch.cuda, "mps": torch.mps, "xpu": torch.xpu}[kind]
    count = int(backend.device_count())
    if int(index or 0) < count:
        return []
    have = "none" if count == 0 else f"{count} ({kind}:0{'' if count == 1 else f' to {kind}:{count - 1}'})"
    return [Finding(
        Level.ERROR, "device",
        f"device={spec.device!r} is not there: torch sees {have} of this kind here; write device='auto', or install a "
        "torch and a driver that know it.",
    )]  # fmt: skip


def check_workers(
    spec: ExperimentSpec, make_env: MakeEnv, signals: Mapping[str, Signal] | None
) -> list[Finding]:
    """Finds an environment that cannot travel to a subprocess worker."""
    if spec.workers is not Workers.SUBPROCESS:
        return []
    try:
        cloudpickle.dumps(MonitoredFactory(make_env, signals))
    except Exception as error:  # whatever the user's classes and closures raise
        return [Finding(
            Level.ERROR, "workers",
            f"The environment cannot travel to subprocess workers ({describe_error(error)}); make what it holds inside "
            "__init__() or reset() instead of taking it from the notebook, or say workers='dummy'.",
        )]  # fmt: skip
    return []


def check_memory_of(callbacks: Sequence[Any], design: Design) -> list[Finding]:
    """Finds callbacks and reward terms whose state a resumed run would lose."""
    reasons = stateless_reasons(as_callbacks(callbacks)) + stateful_terms(design)
    return [
        Finding(
            Level.WARNING, "no_state_dict",
            f"{reason[0].upper()}{reason[1:]}, so a resumed run begins it anew and says 'not exact'; "
            "give it state_dict() and load_state_dict(state).",
        )
        for reason in reasons
    ]  # fmt: skip


def describe_error(error: BaseException) -> str:
    """Returns a foreign error's kind, the first line of its text, and the line of the user's code it comes from."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not str(Path(frame.filename).resolve()).startswith(_FOREIGN)
    ]
    place = ""
    if own:
        where = "its cell" if "ipykernel_" in own[-1].filename else Path(own[-1].filename).name
        place = f", in {own[-1].name}, line {own[-1].lineno} of {where}"
    return f"{type(error).__name__}{f': {text}' if text else ''}{place}"
