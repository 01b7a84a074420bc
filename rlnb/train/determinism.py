"""What has to be the same for two trainings to be the same bit for bit, and setting it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from rlnb.run.experiment import ExperimentSpec

PACKAGES = ("torch", "numpy", "gymnasium", "stable_baselines3", "sb3_contrib", "mujoco", "box2d", "rlnb")
"""What is recorded; rlnb's own version is recorded but does not make a resume inexact."""


def conditions(spec: ExperimentSpec) -> dict[str, Any]:
    """Returns versions, CPU capability, threads, hash seed and start method, as JSON values."""
    found: dict[str, Any] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found | {
        "machine": platform.machine(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "device": device_name(spec.device),
        "torch_threads": spec.torch_threads,
        "interop_threads": torch.get_num_interop_threads(),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED"),
        "workers": spec.workers.value,
        "start_method": spec.start_method,
        "deterministic": spec.deterministic,
    }


def device_name(device: str) -> str:
    """Returns the device that SB3 will take, with the GPU's name."""
    if device == "cpu" or (device.partition(":")[0] in ("auto", "cuda") and not torch.cuda.is_available()):
        return "cpu"  # SB3 takes it without a word
    return f"{device} ({torch.cuda.get_device_name()})" if torch.cuda.is_available() else device


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Says in words what differs, for "not exact: …"."""
    ignored = {"rlnb", "OMP_NUM_THREADS", "interop_threads"}
    return [
        f"{name} was {then.get(name)} and is {now.get(name)}"
        for name in now
        if name in then and name not in ignored and then.get(name) != now.get(name)
    ]


def hash_seed_reason() -> list[str]:
    """Says when the order of sets varies between processes."""
    if os.environ.get("PYTHONHASHSEED", "random") == "random" and sys.flags.hash_randomization:
        return ["PYTHONHASHSEED is not set, so the order of sets may differ between attempts"]
    return []


@contextmanager
def determined(spec: ExperimentSpec) -> Iterator[None]:
    """Sets threads and deterministic algorithms for training, and puts back what was there before."""
    threads = torch.get_num_threads()
    enabled = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    filling = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    benchmark = torch.backends.cudnn.benchmark
    try:
        torch.set_num_threads(spec.torch_threads)
        if spec.deterministic:
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(True)
            # Filling fresh memory would only matter to code that reads what it never wrote, and costs time.
            torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
            torch.backends.cudnn.benchmark = False
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(enabled, warn_only=warn_only)
        torch.utils.deterministic.fill_uninitialized_memory = filling  # type: ignore[attr-defined]
        torch.backends.cudnn.benchmark = benchmark
