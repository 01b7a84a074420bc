"""exp.check(): each finding one sentence, shown in notebook and terminal."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

from rlnb import check as checking
from rlnb.check import CheckReport, check_disk, check_kernel, check_store
from rlnb.errors import EnvError, ExperimentError, UsageError
from rlnb.experiment import Experiment
from rlnb.run.findings import Finding, Level
from rlnb.run.storage import ProbeResult
from tests.promote.notebooks import notebook

FINDINGS = (
    Finding(Level.ERROR, "e", "It <breaks>; mend it."),
    Finding(Level.WARNING, "w", "It is slow."),
    Finding(Level.INFO, "i", "3 s."),
)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """What the rehearsal finds."""
    findings: list[Finding] = []
    module = ModuleType("rlnb.train.rehearse")
    module.rehearse = lambda *_, **__: list(findings)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rlnb.train.rehearse", module)
    return findings


def _experiment() -> Experiment:
    return Experiment("cart", env="CartPole-v1", total_timesteps=1000)


def test_report_as_text_and_html() -> None:
    report = CheckReport(FINDINGS, 2.04)
    assert (
        repr(report)
        == "check: 1 problem to solve, 1 warning (2.0 s)\n✗ It <breaks>; mend it.\n! It is slow.\n· 3 s."
    )
    assert "It &lt;breaks&gt;; mend it.</div>" in report._repr_html_()
    with pytest.raises(ExperimentError, match=r"Not promoted: It <breaks>; mend it\."):
        report.require()
    assert repr(CheckReport((), 0.5)) == "check: ready to promote (0.5 s)"
    assert CheckReport(FINDINGS[1:]).require().ok


def test_outside_a_notebook_the_cells_are_left_out(found: list[Finding]) -> None:
    found += FINDINGS[1:]
    report = _experiment().check()
    assert report.ok
    assert [f.code for f in report.findings] == ["w", "no_notebook", "i"]
    assert 0 <= report.seconds < 30


def test_parts_can_be_skipped(found: list[Finding]) -> None:
    found += FINDINGS
    assert _experiment().check(skip=["rehearsal", "notebook"]).findings == ()
    with pytest.raises(
        UsageError,
        match="skip names 'rehersal'; the parts of a check are notebook, store, rehearsal. Did you mean 'rehearsal'",
    ):
        _experiment().check(skip=["rehersal"])


def test_the_store_is_really_tried(found: list[Finding], tmp_path: Path) -> None:
    report = _experiment().check(store=str(tmp_path / "store"))
    assert report.ok
    assert report.exclusive is True
    assert list((tmp_path / "store").iterdir()) == []


def test_an_rlnb_error_of_the_rehearsal_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def rehearse(*_: Any, **__: Any) -> list[Finding]:
        raise EnvError("The env cannot be made.")

    module = ModuleType("rlnb.train.rehearse")
    module.rehearse = rehearse  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rlnb.train.rehearse", module)
    assert [str(f) for f in _experiment().check(skip="notebook").errors] == ["error: The env cannot be made."]


@pytest.mark.parametrize(
    ("result", "level", "message"),
    [
        (
            ProbeResult(error="It said 403."),
            Level.ERROR,
            "failed a real write and read: It said 403. Correct the address",
        ),
        (
            ProbeResult(True, True, False, True, "No."),
            Level.WARNING,
            "refuses to delete (No.), so superseded checkpoints pile up",
        ),
    ],
)
def test_what_a_store_refuses(
    monkeypatch: pytest.MonkeyPatch, result: ProbeResult, level: Level, message: str
) -> None:
    monkeypatch.setattr("rlnb.run.storage.probe", lambda _: result)
    _, [finding] = check_store("/tmp/anywhere")
    assert finding.level is level
    assert message in finding.message


@pytest.mark.parametrize(("free", "levels"), [(5e9, []), (5e8, [Level.WARNING]), (5e7, [Level.ERROR])])
def test_disk(monkeypatch: pytest.MonkeyPatch, free: float, levels: list[Level]) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    findings = check_disk()
    assert [f.level for f in findings] == levels
    assert all("make room, or set RLNB_HOME to another disk" in f.message for f in findings)


def test_the_interpreter_is_the_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spec(self: KernelSpecManager, name: str) -> SimpleNamespace:
        if name == "gone":
            raise NoSuchKernel(name)
        return SimpleNamespace(
            argv=[sys.executable if name == "here" else "/other/env/bin/python", "-m", "ipykernel_launcher"]
        )

    monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", spec)

    def findings(name: str) -> list[Finding]:
        return check_kernel(notebook(tmp_path, "1", kernelspec={"name": name, "language": "python"}))

    assert findings("python3") == findings("here") == []
    assert [f.level for f in findings("gone")] == [Level.WARNING]
    [finding] = findings("elsewhere")
    assert finding.level is Level.ERROR
    assert "kernel 'elsewhere' runs /other/env/bin/python, but this is" in finding.message


def test_the_reports_class_is_public() -> None:
    import rlnb

    assert rlnb.CheckReport is CheckReport
    assert checking.CheckReport is CheckReport
