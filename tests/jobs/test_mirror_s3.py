"""The mirror over a real S3 server: outages, an OBS-strict way there, and how much memory it takes."""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from rlnb.run.events import EventLog, read_events
from rlnb.run.pull import pull
from rlnb.run.status import State
from rlnb.run.storage import StoreAddress, open_storage
from rlnb.testing.obs_proxy import ObsProxy
from rlnb.testing.seaweed import SeaweedServer
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

pytestmark = pytest.mark.s3


@pytest.fixture(scope="module")
def weed():
    with SeaweedServer() as server:
        yield server


def run_url(store: str) -> str:
    return StoreAddress.parse(store).below(ID).url


def use(monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmHWM")


def collect_chunks(layout) -> None:
    needed = set()
    for _, _, folder in layout.checkpoint_folders():
        needed |= {item["name"] for item in json.loads((folder / "manifest.json").read_text())["files"]}
    for path in layout.chunks.iterdir():
        if f"chunks/{path.name}" not in needed:
            path.unlink()


def train(layout, steps: int, *, every: float = 0.05, seed: int = 0, size: int = 100_000) -> None:
    """Writes what a trainer would, with a retention of two checkpoints."""
    dice, log = random.Random(seed), EventLog(layout, attempt=1)
    for step in range(1, steps + 1):
        log.append("step", "x" * dice.randrange(500), step=step)
        append(layout, "metrics/1-0.jsonl", json.dumps({"step": step}) + "\n")
        if step % 10 == 0:
            add_checkpoint(layout, step, size=size, chunks=(str(step // 20),))
            if step > 20:
                folder = layout.checkpoint(step - 20, 1)
                (folder / "manifest.json").unlink()
                (folder / "policy.pt").unlink()
                folder.rmdir()
                collect_chunks(layout)
        set_state(layout, State.RUNNING, beat=step)
        time.sleep(every)


def test_the_server_stops_in_the_middle_and_everything_arrives(weed, tmp_path, monkeypatch):
    use(monkeypatch, weed.environment)
    store = weed.url("outage")
    layout = make_run(tmp_path / "home", store)
    trainer = threading.Thread(target=train, args=(layout, 120))
    with mirroring(layout) as process:
        trainer.start()
        until(lambda: report(layout).get("state") == "ok")
        weed.stop(kill=True)
        until(
            lambda: report(layout)["state"] == "unreachable" and report(layout)["pending_bytes"] > 0,
            seconds=60,
        )
        until(lambda: not trainer.is_alive(), seconds=60)  # training went on
        set_state(layout, State.COMPLETED, beat=121)
        assert process.poll() is None
        weed.start()
        assert process.wait(90) == 0
    pulled = pull(run_url(store), tmp_path / "elsewhere" / ID)
    assert contents(pulled) == contents(layout)
    kinds = [event.kind for event in read_events(layout) if event.kind.startswith("store_")]
    assert (kinds[0], kinds[-1]) == ("store_unreachable", "store_ok")
    assert report(layout)["pending_bytes"] == 0


def test_a_run_passes_through_the_obs_proxy_and_kills(weed, tmp_path, monkeypatch):
    with ObsProxy(weed, slow_down=0.03, cut=0.02) as proxy:
        use(monkeypatch, proxy.environment)
        store = proxy.url("strict")
        layout = make_run(tmp_path / "home", store, exclusive=False)
        trainer = threading.Thread(target=train, args=(layout, 100))
        trainer.start()
        dice = random.Random(3)
        while trainer.is_alive():
            with mirroring(layout) as process:
                trainer.join(1.5 + 2 * dice.random())
                process.send_signal(signal.SIGKILL)
                process.wait()
        set_state(layout, State.COMPLETED, beat=101)
        assert start_mirror(layout).wait(120) == 0
        pulled = pull(run_url(store), tmp_path / "elsewhere" / ID)
        assert not proxy.refused
        assert proxy.slowed + proxy.cuts > 0
    assert contents(pulled) == contents(layout)


def test_memory_stays_under_120_mb_with_large_checkpoints(weed, tmp_path, monkeypatch):
    use(monkeypatch, weed.environment)
    layout = make_run(tmp_path / "home", weed.url("memory"))
    add_checkpoint(layout, 1, size=60_000_000)
    append(layout, "stdout.log", "x" * 20_000_000)
    with mirroring(layout) as process:
        until(lambda: report(layout).get("pending_bytes") == 0, seconds=90)
        assert resident_mb(process.pid) < 120
    loaded = Path(f"/proc/{process.pid}")
    assert not loaded.exists()


def test_denied_is_said_and_mends_when_the_credentials_do(weed, tmp_path, monkeypatch):
    credentials = tmp_path / "credentials"
    credentials.write_text("[default]\naws_access_key_id = nobody\naws_secret_access_key = wrong\n")
    use(monkeypatch, weed.environment)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    layout = make_run(tmp_path / "home", weed.url("denied"))
    with mirroring(layout):
        until(lambda: report(layout).get("state") == "denied")
        assert "correct credentials, rights or address" in report(layout)["last_error"]
        good = weed.environment
        credentials.write_text(
            f"[default]\naws_access_key_id = {good['AWS_ACCESS_KEY_ID']}\n"
            f"aws_secret_access_key = {good['AWS_SECRET_ACCESS_KEY']}\n"
        )
        until(lambda: report(layout)["state"] == "ok", seconds=60)
    storage = open_storage(weed.url("denied"))
    assert f"{ID}/run.yaml" in {entry.name for entry in storage.list()}
    storage.close()


def test_somebody_empties_the_store_and_it_is_filled_anew(weed, tmp_path, monkeypatch):
    use(monkeypatch, weed.environment)
    store = weed.url("emptied")
    layout = make_run(tmp_path / "home", store)
    add_checkpoint(layout, 1)
    storage = open_storage(store)
    with mirroring(layout):
        until(lambda: report(layout).get("state") == "ok")
        before = {entry.name for entry in storage.list()}
        storage.remove(sorted(before))
        set_state(layout, State.RUNNING, beat=2)
        until(lambda: {entry.name for entry in storage.list()} >= before, seconds=60)
    storage.close()
