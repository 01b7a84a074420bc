"""Hand-made runs: a notebook in a bundle, executed by real supervisors, workers and kernels."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlnb import settings
from rlnb.jobs.capture.notebook import Cell, Notebook
from rlnb.jobs.survivors import end_survivors
from rlnb.run.events import read_events
from rlnb.run.host import utc_now
from rlnb.run.layout import RunLayout, write_json
from rlnb.run.record import Limits, RunRecord, Target, write_record
from rlnb.run.status import State, Status, observe, read_status

FAKE_TRAINER = Path(__file__).with_name("fake_trainer.py")
PATIENCE = 60.0


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLNB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RLNB_HEARTBEAT", "0.2")


class Runs:
    """Makes runs and waits for what becomes of them."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.made: list[RunLayout] = []

    def make(self, *cells: str | Cell, parameters: dict[str, Any] | None = None, **record: Any) -> RunLayout:
        """Makes a run folder; a plain string is a code cell with the id c1, c2, …"""
        layout = RunLayout(settings.runs_dir() / f"exp-test-{len(self.made)}")
        self.made.append(layout)
        book = Notebook(
            Path("nb.ipynb"),
            # The comment keeps the kernel from importing torch early, which these runs have no use for.
            tuple(
                c if isinstance(c, Cell) else Cell(f"c{n}", "code", f"{c}\n# environ")
                for n, c in enumerate(cells, start=1)
            ),
        )
        files = layout.bundle / "files"
        files.mkdir(parents=True)
        (files / "fake_trainer.py").write_bytes(FAKE_TRAINER.read_bytes())
        layout.bundle_notebook.write_text(book.to_json())
        names = ["files/fake_trainer.py", "notebook.ipynb"]
        entries = [
            {"name": n, "sha256": hashlib.sha256((layout.bundle / n).read_bytes()).hexdigest()} for n in names
        ]
        write_json(layout.bundle_files, {"format": 1, "notebook": "nb.ipynb", "files": entries})
        made = RunRecord(
            id=layout.id, name="test", created=utc_now(), rlnb="0", owner={"user": "me", "host": "here"},
            store={"url": str(self.store), "exclusive": None}, notebook={"path": "nb.ipynb", "folder": "."},
            target=Target("c1"), parameters=parameters or {}, experiment={},
            limits=Limits(backoff=0.05, grace=10.0), fingerprint="f",
        )  # fmt: skip
        write_record(layout, replace(made, **record))
        return layout

    def until(self, layout: RunLayout, condition: Callable[[Status], object], *, what: str = "") -> Status:
        """Waits until status.json fulfils a condition; fails with the run's story otherwise."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            status = read_status(layout)
            if status is not None and condition(status):
                return status
            time.sleep(0.02)
        pytest.fail(f"{what or 'it'} did not happen: {self.story(layout)}")

    def until_state(self, layout: RunLayout, *states: State) -> Status:
        return self.until(layout, lambda status: status.state in states, what=f"one of {states}")

    def until_step(self, layout: RunLayout, step: int) -> Status:
        return self.until(layout, lambda status: status.step >= step, what=f"step {step}")

    def ended(self, layout: RunLayout) -> Status:
        return self.until(layout, lambda status: not status.state.living, what="the end")

    def story(self, layout: RunLayout) -> str:
        parts = [f"{observe(layout)}", *(f"{e.kind}: {e.message}" for e in read_events(layout))]
        for log in (layout.supervisor_log, layout.stdout_log, layout.local / "mirror.log"):
            if log.exists():
                parts.append(f"--- {log.name}\n{log.read_text()[-3000:]}")
        return "\n".join(parts)


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    made = Runs(tmp_path / "store")
    yield made
    # Ended here rather than waited for: what becomes of the upload is not these tests' matter.
    for layout in made.made:
        end_survivors(layout)
