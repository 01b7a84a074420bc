"""How figures are registered, measured and printed."""

from __future__ import annotations

import gc
import importlib.metadata
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path(__file__).with_name("results.json")


@dataclass(frozen=True)
class Figure:
    """One measured figure.

    Attributes:
        name: stable; scripts read it.
        value: the median.
        unit: "ratio", "ms", "us", "s", "MB".
        target: the bound, e.g. ">= 0.97".
        spread: lowest and highest of the single measurements, or None; in results.json only.
    """

    name: str
    value: float
    unit: str
    target: str
    spread: tuple[float, float] | None = None

    @property
    def ok(self) -> bool:
        relation, bound = self.target.split()
        limit = float(bound)
        return {
            ">=": self.value >= limit,
            "<=": self.value <= limit,
            "<": self.value < limit,
        }[relation]

    def line(self) -> str:
        """Returns `name value unit target ok`: five words, so that a script can split at spaces."""
        bound = self.target.replace(" ", "")
        return f"{self.name} {self.value:.4g} {self.unit} {bound} {'ok' if self.ok else 'MISSED'}"


Measure = Callable[[], Figure]
_REGISTERED: dict[str, Measure] = {}


def figure(name: str, unit: str, target: str) -> Callable[[Callable[[], Iterable[float]]], Measure]:
    """Registers a function that returns single measurements; the figure is their median."""

    def register(function: Callable[[], Iterable[float]]) -> Measure:
        def measure() -> Figure:
            values = list(function())
            spread = (min(values), max(values)) if len(values) > 1 else None
            return Figure(name, statistics.median(values), unit, target, spread)

        _REGISTERED[name] = measure
        return measure

    return register


def interleaved(plain: Callable[[], float], ours: Callable[[], float], pairs: int) -> list[float]:
    """Returns ours/plain pair by pair, the order changing within pairs: a shared machine drifts."""
    plain(), ours()  # warm caches and allocators for both
    ratios = []
    for index in range(pairs):
        gc.collect()
        if index % 2:
            b, a = ours(), plain()
        else:
            a, b = plain(), ours()
        ratios.append(b / a)
    return ratios


def timed(function: Callable[[], object], repeats: int) -> list[float]:
    """Returns the seconds of each of `repeats` calls, after one that is not counted."""
    function()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return seconds


def machine() -> dict[str, str | int | None]:
    """Returns what the figures depend on: processor, cores, and the versions of what is measured against."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")
    packages = ("numpy", "torch", "stable_baselines3", "papermill")
    return {
        "cpu": model or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{package: importlib.metadata.version(package) for package in packages},
    }


def run(names: list[str]) -> int:
    """Measures and prints the named figures, all by default; writes results.json."""
    wanted = names or list(_REGISTERED)
    unknown = [name for name in wanted if name not in _REGISTERED]
    if unknown:
        print(f"No figure is called {unknown[0]!r}; there are: {', '.join(_REGISTERED)}")
        return 2
    for name in wanted:
        load = os.getloadavg()[0]  # what else the machine was doing when the measurement began
        measured = _REGISTERED[name]()
        print(measured.line(), flush=True)
        results = json.loads(RESULTS.read_text())["figures"] if RESULTS.exists() else {}
        results[name] = {**asdict(measured), "ok": measured.ok, "load": round(load, 2)}
        RESULTS.write_text(json.dumps({"machine": machine(), "figures": results}, indent=1) + "\n")
    return 0
