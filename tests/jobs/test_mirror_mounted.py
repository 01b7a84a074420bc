"""The mirror on a mounted bucket, where a kill tears the object that is being written."""

from __future__ import annotations

import json
import random
import signal
import threading
import time

import pytest

from rlnb.run.layout import RunLayout
from rlnb.run.pull import pull
from rlnb.run.status import State
from rlnb.run.storage import open_storage
from rlnb.testing.strict_mount import StrictMount
from tests.jobs.mirrored_run import (
    ID,
    add_checkpoint,
    append,
    contents,
    make_run,
    mirroring,
    report,
    set_state,
    start_mirror,
    until,
)

pytestmark = pytest.mark.skipif(not StrictMount.available(), reason="mounting needs root and /dev/fuse")


@pytest.fixture
def mount(tmp_path):
    for name in ("mnt", "data"):
        (tmp_path / name).mkdir()
    with StrictMount(tmp_path / "mnt", tmp_path / "data") as mount:
        yield mount


def test_killed_at_random_moments_a_mounted_bucket_is_whole(mount, tmp_path):
    dice = random.Random(11)
    store = str(mount.mountpoint / "runs")
    layout = make_run(tmp_path / "home", store, exclusive=False)

    def train():
        for step in range(1, 33):
            append(
                layout,
                "metrics/1-0.jsonl",
                json.dumps({"step": step, "x": "y" * dice.randrange(50_000)}) + "\n",
            )
            if step % 5 == 0:
                add_checkpoint(layout, step, size=3_000_000)
            set_state(layout, State.RUNNING, beat=step)
            time.sleep(0.1)

    trainer = threading.Thread(target=train)
    trainer.start()
    while trainer.is_alive():
        with mirroring(layout) as process:
            trainer.join(0.3 + dice.random())
            process.send_signal(signal.SIGKILL)
            process.wait()
        for manifest in RunLayout(f"{store}/{ID}").checkpoints.glob("*/manifest.json"):
            if (
                manifest.stat().st_size
                == (layout.checkpoints / manifest.parent.name / "manifest.json").stat().st_size
            ):
                assert (manifest.parent / "policy.pt").stat().st_size == 3_000_000  # payload first
    set_state(layout, State.COMPLETED)
    assert start_mirror(layout).wait(60) == 0
    pulled = pull(f"{store}/{ID}", tmp_path / "elsewhere" / ID)
    assert contents(pulled) == contents(layout)


def test_a_mount_that_dies_and_returns(mount, tmp_path):
    store = str(mount.mountpoint / "runs")
    layout = make_run(tmp_path / "home", store, exclusive=False)
    with mirroring(layout) as process:
        until(lambda: report(layout).get("state") == "ok")
        mount._process.kill()
        mount._process.wait()
        add_checkpoint(layout, 100)
        until(lambda: report(layout)["state"] == "unreachable" and report(layout)["pending_bytes"] > 0)
        mount.__exit__(None, None, None)
        with mount:
            set_state(layout, State.COMPLETED)
            assert process.wait(60) == 0
            assert f"{ID}/checkpoints/100-a1/manifest.json" in {e.name for e in open_storage(store).list()}
