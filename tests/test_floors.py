"""The house has floors: a lower one never imports a higher one, rooms on a floor ignore each other.

Imports inside functions count too: a lazy import upwards is still a dependency.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "rlnb"

FLOORS = {
    "errors": 0,
    "settings": 0,
    "design": 1,
    "run": 2,
    "envs": 3,
    "train": 4,
    "jobs": 4,
    "watch": 4,
    "view": 5,
    "server": 7,
    "cli": 7,
}
TOP_LEVEL_MODULES = 6  # job, promote, experiment, …: the user's handle and the verbs
FREE = {"testing", "__init__", "__main__"}  # may import anything; nothing below may import them


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def floor(name: str) -> int:
    return FLOORS.get(name, TOP_LEVEL_MODULES)


def imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "rlnb":
                yield from ((node.lineno, f"rlnb.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, node.module


def own_files() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if "templates" not in p.parts)


def test_no_floor_imports_a_higher_one():
    wrong = []
    for path in own_files():
        mine = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if mine in FREE:
            continue
        for line, module in imports(path):
            theirs = room(module)
            if not module.startswith("rlnb.") or theirs == mine or theirs == "__version__":
                continue
            same_floor_room = floor(theirs) == floor(mine) and floor(mine) in (1, 2, 3, 4, 5, 7)
            if theirs in FREE or floor(theirs) > floor(mine) or same_floor_room:
                wrong.append(f"{path.relative_to(PACKAGE.parent)}:{line} imports {module}")
    assert wrong == []


def test_only_the_train_room_knows_torch_and_sb3():
    wrong = []
    for path in own_files():
        if path.relative_to(PACKAGE).parts[0] == "train":
            continue
        for line, module in imports(path):
            if module.split(".")[0] in ("torch", "stable_baselines3", "sb3_contrib"):
                wrong.append(f"{path.relative_to(PACKAGE.parent)}:{line} imports {module}")
    assert wrong == []


def test_relative_imports_are_not_used():
    for path in own_files():
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.ImportFrom) and node.level), path


def test_files_are_of_readable_length():
    too_long = {
        str(p.relative_to(PACKAGE)): n for p in own_files() if (n := len(p.read_text().splitlines())) > 300
    }
    assert too_long == {}


def test_import_is_quick_and_without_heavy_libraries():
    code = "import sys, rlnb; print([m for m in ('torch', 'numpy', 'pandas', 'papermill', 's3fs') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"

    def seconds(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    bare = min(seconds("pass") for _ in range(3))
    assert min(seconds("import rlnb") for _ in range(3)) - bare < 0.2


def test_every_public_name_is_there_and_listed():
    import rlnb

    for name in rlnb.__all__:
        assert getattr(rlnb, name) is not None
    assert set(rlnb.__all__) <= set(dir(rlnb))
    with pytest.raises(AttributeError, match="no attribute 'promot'"):
        _ = rlnb.promot
