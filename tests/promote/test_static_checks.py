"""What is found without running anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.jobs.capture.static_checks import check_input, check_names, check_syntax
from rlnb.run.findings import Level
from tests.promote.notebooks import code, notebook


def _messages(folder: Path, *cells: object, target: str | None = None) -> list[str]:
    return [str(finding) for finding in check_names(notebook(folder, *cells), target=target)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "cells",
    [
        ["a = 1", "print(a)"],
        ["import os, numpy as np\nfrom math import pi as p", "os, np, p"],
        [
            "def f(x, *args, k=1, **kw):\n    y = x + later\n    return [y for y in args] + [kw, k]",
            "later = 1\nf(2)",
        ],
        ["class A:\n    x = 1\n    y = x + 1\n    def m(self):\n        return __class__, self.x", "A()"],
        ["with open('f') as f, open('g') as (g, h):\n    pass", "f, g, h"],
        ["for i, (j, k) in []:\n    pass\nelse:\n    z = 1", "i, j, k, z"],
        [
            "try:\n    import google.colab\n    here = True\nexcept ImportError as error:\n    here = False",
            "here",
        ],
        ["try:\n    undefined\nexcept NameError:\n    undefined = 1", "undefined"],
        ["%matplotlib inline\nx = !ls", "x"],
        ["%%time\nslow = 1", "slow"],
        ["%%bash\necho $undefined", "1"],
        ["from numpy import *", "zeros(3)"],
        ["%run other.py", "whatever"],
        ["exec('q = 1')", "q"],
        ["_ , __, _3, In[0], Out, get_ipython(), display(1), exit", "_i1"],
        ["if (n := 10) > 5:\n    pass", "n"],
        [
            "match 3:\n    case {'a': b, **rest}:\n        pass\n    case [c, *d]:\n        pass",
            "b, c, d, rest",
        ],
        ["def f():\n    global made\n    made = 1\nf()", "made"],
        ["x = [i * j for i in range(3) for j in range(i)]\nl = lambda v: v + x[0]", "l(1)"],
        ["import asyncio\nawait asyncio.sleep(0)", "1"],
        ["def decorate(f): return f", "@decorate\ndef g(): ..."],
        ["x: int = 3\ny: 'Undefined' = x", "y += x"],
        ["type(1).mro, (lambda: None)(), f'{1!r:>{5}}'", "1"],
    ],
)
def test_correct_notebooks_give_no_finding(tmp_path: Path, cells: list[str]) -> None:
    assert _messages(tmp_path, *cells) == []


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["learning_rate = 1", "print(learning_rte)"], "Cell 2 uses `learning_rte`, but no cell defines it; it may live in this kernel only. Define it in a cell. Did you mean 'learning_rate'?"),
        (["print(b)", "b = 1"], "Cell 1 uses `b`, but a later cell defines it; move that cell up."),
        (["x = x + 1"], "Cell 1 uses `x`, but a later cell"),
        (["x += 1"], "Cell 1 uses `x`"),
        (["def f():\n    return gone\nf()"], "Cell 1 uses `gone`, but no cell defines it"),
        (["class A(Gone):\n    pass"], "Cell 1 uses `Gone`"),
        (["def f(x=gone): ..."], "Cell 1 uses `gone`"),
        (["@gone\ndef f(): ..."], "Cell 1 uses `gone`"),
        (["[v for v in gone]"], "Cell 1 uses `gone`"),
        ([code("a = 1", "n", "notebook-only"), "print(a)"], "Cell 2 uses `a`"),
        (["%%time\nprint(gone)"], "Cell 1 uses `gone`"),
        (["gone.x = 1"], "Cell 1 uses `gone`"),
    ],
)  # fmt: skip
def test_undefined_names_are_found(tmp_path: Path, cells: list[object], message: str) -> None:
    found = _messages(tmp_path, *cells)
    assert len(found) == 1
    assert found[0].startswith("error: " + message)


def test_after_the_target_it_is_a_warning(tmp_path: Path) -> None:
    book = notebook(
        tmp_path, "import rlnb\nexp = 1", "job = rlnb.promote(exp)", "print(gone)\ndef f(): return away"
    )
    findings = check_names(book, target="c2")
    assert [(f.level, f.code) for f in findings] == [(Level.WARNING, "undefined_name")] * 2


def test_what_a_function_needs_must_be_there_when_training_begins(tmp_path: Path) -> None:
    book = notebook(
        tmp_path, "def term(batch):\n    return scale", "promote = print\npromote(term)", "scale = 1"
    )
    [finding] = check_names(book, target="c2")
    assert (finding.level, finding.message) == (
        Level.ERROR,
        "Cell 1 uses `scale`, but a later cell defines it; move that cell up.",
    )


@pytest.mark.parametrize(
    "source",
    [
        "x = input('? ')", "import getpass\np = getpass.getpass()", "if True:\n    y = int(input())",
        "from getpass import getpass as ask\np = ask()", "import builtins\np = builtins.input()",
        "from builtins import input as ask\np = ask()",
    ],
)  # fmt: skip
def test_input_is_refused(tmp_path: Path, source: str) -> None:
    [finding] = check_input(notebook(tmp_path, "a = 1", source))
    assert finding.level is Level.ERROR
    assert finding.message.startswith("Cell 2 calls `")
    assert finding.message.endswith(
        "which nobody can answer in a job; make it a parameter, or tag the cell 'notebook-only'."
    )
    assert check_input(notebook(tmp_path, code(source, "n", "notebook-only"))) == []


@pytest.mark.parametrize(
    "cells",
    [
        ["def input(x):\n    return x", "y = input(3)"], ["input = next", "y = input(it)"], ["y = keyboard.input()"],
        ["from helper import getpass_count as n\nn()"],
    ],
)  # fmt: skip
def test_an_input_of_ones_own_is_none(tmp_path: Path, cells: list[str]) -> None:
    assert check_input(notebook(tmp_path, *cells)) == []


def test_syntax(tmp_path: Path) -> None:
    [finding] = check_syntax(notebook(tmp_path, "a = = 1", "%%bash\nfor x in", "!ls"))
    assert finding.message == "Cell 1 is not valid Python; correct it, or tag it 'notebook-only'."
