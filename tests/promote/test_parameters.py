"""Values are carried exactly or refused by name; names are those of the parameters cell."""

from __future__ import annotations

import datetime
import math
import zoneinfo
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
import yaml

from rlnb.errors import ParameterError, SecretError, UsageError
from rlnb.jobs.capture.carrying import to_record, to_source
from rlnb.jobs.capture.notebook import Notebook
from rlnb.jobs.capture.parameters import (
    check_parameters,
    expand_grid,
    find_parameters,
    inject,
    inject_recorded,
    injected_values,
)
from rlnb.run.secrets import Redactor
from tests.promote.notebooks import code, notebook

NOBODY = Redactor()


@pytest.fixture
def book(tmp_path: Path) -> Notebook:
    source = "seed, total_timesteps, learning_rate = 0, 500_000, 3e-4\nn_envs: int = 8\na = b = 2"
    return notebook(tmp_path, code(source, "p", "parameters"), "print(seed)")


@pytest.mark.parametrize(
    "value",
    [
        0, -3, 10**30, 1.5, 0.1, -0.0, 1e-320, True, None, "it's \"x\"\n", b"\x00\xff", 1 + 2j,
        [1, [2.5, None]], (1,), (), {"a": 1, 2: (3, 4), None: True, (1, 2): "x"}, {1, 2}, frozenset(["b", "a"]), range(3, 9, 2),
        Path("/a/b"), PurePosixPath("x"), Decimal("1.10"), Fraction(1, 3),
        datetime.datetime(2026, 11, 30, 12, 1, 2, 3, tzinfo=datetime.UTC), datetime.date(2026, 1, 2), datetime.time(3, 4),
        datetime.timedelta(days=1, microseconds=5),
        datetime.datetime(2026, 1, 1, fold=1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
        np.int64(3), np.float32(0.1), np.float64(0.1), np.bool_(True), np.uint8(255), np.complex64(1 + 2j), np.str_("s"),
        np.datetime64("2026-01-01T00:00:01", "ms"), np.timedelta64(5, "s"), np.float16(0.1),
    ],
)  # fmt: skip
def test_values_arrive_exactly(value: Any) -> None:
    arrived = eval(to_source(value, "x"))  # noqa: S307 — the point of the source is to be executed
    assert type(arrived) is type(value)
    assert arrived == value
    if not isinstance(value, set | frozenset):  # whose order is no part of the value
        assert repr(arrived) == repr(value)


@pytest.mark.parametrize(
    "value", [math.inf, -math.inf, math.nan, np.float32("nan"), np.float64("inf"), [math.nan]]
)
def test_infinities_and_nan_arrive(value: Any) -> None:
    arrived = eval(to_source(value, "x"))  # noqa: S307
    assert type(arrived) is type(value)
    assert repr(arrived) == repr(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(3), r"'x' holds a numpy.ndarray, which cannot be carried exactly; pass .tolist\(\) of it"),
        (object(), "'x' holds a builtins.object, which cannot be carried exactly; build it in a cell"),
        ([1, lambda: 0], "'x' holds a builtins.function"),
    ],
)
def test_anything_else_is_refused_by_name(value: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        to_source(value, "x")


def test_names_and_defaults(book: Notebook) -> None:
    cell = find_parameters(book)
    assert cell is not None
    assert cell.defaults == {
        "seed": "0",
        "total_timesteps": "500000",
        "learning_rate": "0.0003",
        "n_envs": "8",
        "a": "2",
        "b": "2",
    }


def test_a_typo_names_the_nearest(book: Notebook) -> None:
    with pytest.raises(
        ParameterError,
        match=r"'learning_rte' is not in the parameters cell of nb.ipynb \(it has seed, .*Did you mean 'learning_rate'",
    ):
        check_parameters(book, {"learning_rte": 1}, NOBODY)


def test_no_parameters_cell(tmp_path: Path) -> None:
    with pytest.raises(
        ParameterError, match=r"nb.ipynb has no cell tagged 'parameters', so seed=1 cannot be set"
    ):
        check_parameters(notebook(tmp_path, "seed = 0"), {"seed": 1}, NOBODY)


def test_a_broken_parameters_cell(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"parameters cell is not plain Python \(line 1"):
        find_parameters(notebook(tmp_path, code("seed = = 1", "p", "parameters")))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"api_key": "x"}, r"'api_key' is named like a secret, .*env_vars=\['API_KEY'\]"),
        ({"seed": "ghp_" + "aB3d" * 9}, "'seed' looks like a GitHub token"),
        ({"seed": "s3://u:hunter22@host/b"}, "'seed' looks like a URL with a password in it"),
        ({"seed": ["x", "topsecret99"]}, "'seed' holds the value of MY_TOKEN"),
    ],
)
def test_secrets_are_refused(book: Notebook, values: dict[str, Any], message: str) -> None:
    with pytest.raises(SecretError, match=message):
        check_parameters(book, values, Redactor({"topsecret99": "MY_TOKEN"}))


def test_injection_comes_after_the_parameters_cell(book: Notebook) -> None:
    made = inject(inject(book, {"seed": 1}), {"seed": 2, "learning_rate": math.nan})
    assert [cell.id for cell in made.cells] == ["p", "injected-parameters", "c2"]
    assert made.cells[1].source == "# Parameters\nseed = 2\nlearning_rate = float('nan')"
    assert made.cells[1].tags == ("injected-parameters",)
    assert inject(made, {}).cells == book.cells


def test_papermills_values_are_read(tmp_path: Path) -> None:
    source = "# Parameters\na = 3\nb = float('nan')\nc = [1, float('inf')]\nd = {\"x\": None}"
    values = injected_values(notebook(tmp_path, code(source, "i", "injected-parameters")))
    assert values["a"] == 3
    assert math.isnan(values["b"])
    assert (values["c"], values["d"]) == ([1, math.inf], {"x": None})
    with pytest.raises(ParameterError, match="holds more than plain values"):
        injected_values(notebook(tmp_path, code("a = f(1)", "i", "injected-parameters")))


def test_records_keep_plain_values_and_write_the_rest_as_source() -> None:
    assert to_record([1, "a", None], "x") == [1, "a", None]
    assert to_record((1, 2), "x") == {"python": "(1, 2, )"}
    assert to_record(math.inf, "x") == {"python": "float('inf')"}


def test_what_was_recorded_is_injected_as_it_was_given(book: Notebook) -> None:
    values = {
        "seed": (1, [2.5, {"python": "x"}]),
        "learning_rate": [1, (2,), math.inf],
        "a": {"python": "y"},
        "b": "text",
    }
    recorded = {name: to_record(value, name) for name, value in values.items()}
    assert yaml.safe_load(yaml.safe_dump(recorded)) == recorded
    made = inject_recorded(inject(book, values), recorded)
    namespace: dict[str, Any] = {}
    exec(made.cells[1].source, namespace)  # noqa: S102 — what the kernel does
    assert {name: namespace[name] for name in values} == values


def test_grid_is_a_product() -> None:
    assert expand_grid({"seed": range(2), "lr": [1e-3, 1e-4]}) == [
        {"seed": 0, "lr": 1e-3}, {"seed": 0, "lr": 1e-4}, {"seed": 1, "lr": 1e-3}, {"seed": 1, "lr": 1e-4},
    ]  # fmt: skip
    assert [type(row["n"]) for row in expand_grid({"n": np.arange(2)})] == [int, int]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({}, "grid={} has no names"),
        ({"seed": 3}, r"grid\['seed'\] is 3; give a list or range"),
        ({"seed": "123"}, r"grid\['seed'\] is '123'; give a list"),
        ({"seed": []}, r"grid\['seed'\] is empty"),
        ({"seed": [1, 1]}, "names the same combination twice"),
    ],
)
def test_bad_grids(grid: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        expand_grid(grid)
