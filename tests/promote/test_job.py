"""From a real kernel to a real job: promote, kernel restart and Run All, and what the job did."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlnb
from rlnb.jobs.capture.notebook import Notebook
from rlnb.jobs.processes import end_all, marked
from rlnb.promote import promote_notebook
from rlnb.run.layout import read_json
from rlnb.run.record import read_record
from rlnb.run.status import State
from rlnb.settings import runs_dir
from tests.promote.live import LiveNotebook
from tests.promote.notebooks import code, notebook

TARGET = """
job = rlnb.promote(exp, store="store")
print(job.id)
""".strip()

#: In the job only, another run's promotion comes first.
OTHER = "other = rlnb.promote(rlnb.Experiment('other', env='CartPole-v1', total_timesteps=64)) if rlnb.attempt() else None"


@pytest.fixture
def book(tmp_path: Path) -> Notebook:
    made = notebook(
        tmp_path,
        code("seed, steps = 0, 256", "p", "parameters"),
        code("%pip install nothing-at-all", "pip"),
        code("raise RuntimeError('only here')", "only", "notebook-only"),
        code("import rlnb\nfrom helper import STEPS\nprint(open('note.txt').read())", "i"),
        code("class Env:\n    pass\nexp = rlnb.Experiment('cart', env='CartPole-v1', total_timesteps=steps, n_steps=STEPS, batch_size=16, seed=seed)", "e"),
        code(OTHER, "o"),
        code(TARGET, "t"),
        code("print('after', other)", "a"),
    )  # fmt: skip
    (tmp_path / "helper.py").write_text("STEPS = 32\n")
    (tmp_path / "note.txt").write_text("a note")
    os.utime(made.path, (1e9, 1e9))
    return made


@pytest.fixture(autouse=True)
def _no_survivors(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("RLNB_HEARTBEAT", "0.2")
    monkeypatch.setenv("RLNB_BACKOFF", "0.1")
    yield
    for root in runs_dir().glob("*"):
        end_all(lambda root=root: marked(root))


def _id(text: str) -> str:
    return re.findall(r"exp-\d{4}-\d\d-\d\d-[a-z0-9-]+", text)[-1]


def _run(live: LiveNotebook) -> str:
    """Runs what a person runs: all but the cells that are meant to fail here."""
    for cell in live.book.code:
        if cell.id in ("p", "i", "e", "o"):
            text = live.run(cell.source, cell.id)
            assert "Error" not in text, text
    return live.run(TARGET, "t")


def test_a_notebook_trains_and_restart_and_run_all_attaches(book: Notebook) -> None:
    with LiveNotebook(book) as live:
        text = _run(live)
    run_id = _id(text)
    with LiveNotebook(book) as live:
        again = _run(live)
    assert _id(again) == run_id
    assert "attached to it (new=True starts another)" in again
    assert len(list(runs_dir().iterdir())) == 1
    job = rlnb.job(run_id)
    job.wait(timeout=120)
    assert job.state is State.COMPLETED
    assert (read_json(job.layout.training_json) or {})["step"] == 256
    printed = job.layout.output(1).read_text()
    assert "a note" in printed
    assert "promote('other') is not part of this run" in printed
    assert "only here" not in str(job.events)
    assert (book.path.parent / "store" / run_id / "run.yaml").is_file()


def test_a_grid_trains_each_member(book: Notebook) -> None:
    with LiveNotebook(book) as live:
        _ = [live.run(cell.source, cell.id) for cell in book.code if cell.id in ("p", "i", "e", "o")]
        other_target = TARGET.replace('store="store")', 'store="store", grid={"seed": [1, 2]})').replace(
            "job.id", "[member.id for member in job]"
        )
        text = live.run(other_target, "t")
    ids = re.findall(r"exp-\d{4}-\d\d-\d\d-[a-z0-9-]+", text.splitlines()[-1])
    assert len(ids) == 2
    for seed, run_id in enumerate(ids, start=1):
        job = rlnb.job(run_id).wait(timeout=180)
        assert job.state is State.COMPLETED
        assert (read_record(job.layout).experiment or {})["seed"] == seed
        assert read_record(job.layout).parameters == {"seed": seed}


def test_an_allowed_secret_reaches_the_job_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "s3cr3t-Value/42"
    monkeypatch.setenv("MY_API_KEY", secret)
    monkeypatch.setenv("OTHER_TOKEN", "never-passed-on")
    book = notebook(
        tmp_path,
        "import os, sys, logging, rlnb\nkey = os.environ['MY_API_KEY']\nassert 'OTHER_TOKEN' not in os.environ\nprint(len(key), 'characters')",
        "print(key[:5], end='', flush=True)\nprint(key[5:], flush=True)\nprint('end')",
        "os.write(1, key.encode())\nlogging.getLogger('x').warning('key %s', key)\nkey",
        "exp = rlnb.Experiment('cart', env='CartPole-v1', total_timesteps=64, n_steps=32, batch_size=16)",
        "rlnb.promote(exp)",
        "raise ValueError(f'could not log in with {key}')",
    )
    job = promote_notebook(book.path, store=tmp_path / "store", env_vars=["MY_API_KEY"], check=False)
    job.wait(timeout=180)
    assert "15 characters" in job.layout.output(1).read_text()
    assert "could not log in with [redacted]" in job.layout.output(1).read_text()
    written = [
        path for root in (job.folder, tmp_path / "store") for path in root.rglob("*") if path.is_file()
    ]
    assert len(written) > 20
    assert [path for path in written if secret.encode() in path.read_bytes()] == []
    assert [path for path in written if b"never-passed-on" in path.read_bytes()] == []
