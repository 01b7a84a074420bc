"""The mirror process, for real, on a folder store: order, restarts, claims, requests, retention."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rlnb.jobs.mirror.report import MirrorReport
from rlnb.jobs.mirror.scan import scan
from rlnb.jobs.mirror.spool import drop_superseded
from rlnb.run.claims import claim
from rlnb.run.control import Verb, pending, request
from rlnb.run.events import EventLog, read_events
from rlnb.run.layout import RunLayout, write_json
from rlnb.run.parts import chain, whole_parts
from rlnb.run.pull import pull
from rlnb.run.record import read_record, write_record
from rlnb.run.status import State
from rlnb.run.storage import open_storage
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


@pytest.fixture
def store(tmp_path):
    return str(tmp_path / "store")


@pytest.fixture
def layout(tmp_path, store):
    return make_run(tmp_path / "home", store)


def names(store: str) -> set[str]:
    return {entry.name.removeprefix(f"{ID}/") for entry in open_storage(store).list()}


def test_a_finished_run_arrives_whole_and_the_mirror_ends(layout, store, tmp_path):
    add_checkpoint(layout, 100, chunks=("a", "b"))
    add_checkpoint(layout, 200, chunks=("b", "c"))
    append(layout, "metrics/1-0.jsonl", '{"step": 1}\n')
    (layout.data).mkdir()
    (layout.data / "demo.parquet").write_bytes(b"PAR1")
    write_json(layout.training_json, {"step": 200})
    set_state(layout, State.COMPLETED)
    assert start_mirror(layout).wait(30) == 0
    pulled = pull(f"{store}/{ID}", tmp_path / "elsewhere" / ID)
    assert contents(pulled) == contents(layout)
    assert report(layout)["pending_bytes"] == 0
    assert report(layout)["state"] == "ok"


def test_local_and_work_stay_here(layout, store):
    (layout.work).mkdir()
    (layout.work / "secret.txt").write_text("x")
    set_state(layout, State.COMPLETED)
    assert start_mirror(layout).wait(30) == 0
    assert not [name for name in names(store) if name.startswith(("local/", "work/"))]


def test_logs_grow_as_few_parts(layout, store):
    storage = open_storage(f"{store}/{ID}")
    with mirroring(layout):
        for i in range(25):
            append(layout, "events.jsonl", json.dumps({"kind": "x", "n": i}) + "\n")
            size = layout.events.stat().st_size
            until(lambda size=size: sum(p.size for p in chain(_parts(storage))) == size)
        whole = b"".join(storage.read(part.object_name) for part in chain(_parts(storage)))
        assert whole == layout.events.read_bytes()
        assert len(_parts(storage)) < 16


def _parts(storage):
    return whole_parts(storage.list("logs/events.jsonl")).get("logs/events.jsonl", [])


def test_a_checkpoint_without_manifest_stays_here(layout, store):
    folder = add_checkpoint(layout, 100)
    layout.local.mkdir()
    (folder / "manifest.json").rename(layout.local / "manifest.json")
    add_checkpoint(layout, 50)
    with mirroring(layout):
        until(lambda: "checkpoints/50-a1/manifest.json" in names(store))
        assert not [name for name in names(store) if "100-a1" in name]
        (layout.local / "manifest.json").rename(folder / "manifest.json")
        until(lambda: "checkpoints/100-a1/manifest.json" in names(store))


def test_a_damaged_checkpoint_is_said_and_not_published(layout, store):
    (add_checkpoint(layout, 100) / "policy.pt").write_bytes(b"half")
    with mirroring(layout):
        event = until(lambda: [e for e in read_events(layout) if e.kind == "checkpoint_damaged"])[0]
    assert "checkpoints/100-a1/policy.pt is 4 bytes instead of 1000" in event.message
    assert not [name for name in names(store) if "100-a1" in name]


def test_retention_is_followed_manifest_first_but_never_to_nothing(layout, store):
    old = add_checkpoint(layout, 100, chunks=("a",))
    with mirroring(layout):
        until(lambda: "checkpoints/100-a1/manifest.json" in names(store))
        for name in ("manifest.json", "policy.pt"):
            (old / name).unlink()
        set_state(layout, State.RUNNING, beat=2)
        until(lambda: json.loads(open_storage(store).read(f"{ID}/status.json"))["heartbeat"] == 2)
        assert "checkpoints/100-a1/manifest.json" in names(store)  # nothing newer is there yet
        add_checkpoint(layout, 200, chunks=("b",))
        until(lambda: not [name for name in names(store) if "100-a1" in name])
        assert "checkpoints/200-a1/manifest.json" in names(store)


def test_a_light_copy_takes_nothing_away(layout, store, tmp_path):
    add_checkpoint(layout, 100)
    set_state(layout, State.SUSPENDED)
    assert start_mirror(layout).wait(30) == 0
    light = pull(f"{store}/{ID}", tmp_path / "other" / ID, what="light")
    claim(light, 2, rlnb_version="0.1.0")
    add_checkpoint(light, 200)
    set_state(light, State.COMPLETED, attempt=2)
    assert start_mirror(light, 2).wait(30) == 0
    assert {"checkpoints/100-a1/policy.pt", "checkpoints/200-a1/manifest.json"} <= names(store)


def test_run_yaml_is_published_once_when_complete(tmp_path, store):
    layout = make_run(tmp_path / "home", store, complete=False)
    with mirroring(layout):
        until(lambda: "status.json" in names(store))
        assert "run.yaml" not in names(store)
        write_record(layout, replace(read_record(layout), experiment={"a": 1}))
        until(lambda: "run.yaml" in names(store))
        first = open_storage(store).read(f"{ID}/run.yaml")
        layout.run_yaml.write_text(first.decode() + "# edited\n")
        set_state(layout, State.COMPLETED, beat=9)
        until(lambda: b"completed" in open_storage(store).read(f"{ID}/status.json"))
    assert open_storage(store).read(f"{ID}/run.yaml") == first


def test_a_run_that_never_reached_promote_is_published_at_its_end(tmp_path, store):
    layout = make_run(tmp_path / "home", store, complete=False)
    set_state(layout, State.FAILED)
    assert start_mirror(layout).wait(30) == 0
    assert "run.yaml" in names(store)


def test_a_run_that_ended_incomplete_and_was_resumed_is_completed_there_too(tmp_path, store):
    layout = make_run(tmp_path / "home", store, complete=False)
    set_state(layout, State.FAILED)
    assert start_mirror(layout).wait(30) == 0
    claim(layout, 2, rlnb_version="0.1.0")
    set_state(layout, State.RUNNING, attempt=2)
    with mirroring(layout, 2):
        until(lambda: b'"attempt": 2' in open_storage(store).read(f"{ID}/status.json"))
        write_record(layout, replace(read_record(layout), experiment={"a": 1}))
        until(lambda: open_storage(store).read(f"{ID}/run.yaml") == layout.run_yaml.read_bytes())


def test_what_a_library_writes_is_mirrored_when_it_stands_still_and_again_when_changed(layout, store):
    path = layout.root / "plots" / "curve.svg"
    path.parent.mkdir()
    storage = open_storage(f"{store}/{ID}")
    with mirroring(layout):
        path.write_text("one")
        until(lambda: "plots/curve.svg" in names(store))
        path.write_text("two")  # the same size
        until(lambda: storage.read("plots/curve.svg") == b"two")


def test_links_are_named_and_not_followed(layout, store, tmp_path):
    (tmp_path / "id_rsa").write_text("secret")
    (layout.root / "leak").symlink_to(tmp_path / "id_rsa")
    (layout.root / "folder").symlink_to(tmp_path)
    set_state(layout, State.COMPLETED)
    assert start_mirror(layout).wait(30) == 0
    assert not names(store) & {"leak", "folder", "folder/id_rsa"}
    told = {e.message for e in read_events(layout) if e.kind == "not_mirrored"}
    assert told == {f"{name} is not mirrored: links are never followed." for name in ("leak", "folder")}


def test_requests_come_and_answers_go(layout, store, tmp_path):
    away = RunLayout(tmp_path / "away" / ID)
    away.root.mkdir(parents=True)
    asked = request(away, Verb.PAUSE)
    with mirroring(layout):
        until(lambda: "run.yaml" in names(store))
        open_storage(store).write(f"{ID}/control/{asked}.json", away.control / f"{asked}.json")
        open_storage(store).write(f"{ID}/control/../evil.json".replace("../", "x-"), b"{}")
        assert until(lambda: pending(layout))[0].verb is Verb.PAUSE
        write_json(layout.control / f"{asked}.ack.json", {"ok": True})
        until(lambda: f"control/{asked}.ack.json" in names(store))
    assert {p.name for p in layout.control.iterdir()} == {f"{asked}.json", f"{asked}.ack.json"}


def test_a_newer_attempt_elsewhere_supersedes(layout, store, tmp_path):
    with mirroring(layout) as process:
        until(lambda: "run.yaml" in names(store))
        open_storage(store).write(f"{ID}/attempts/2", b'{"host": "other"}')
        assert process.wait(30) == 3
        assert report(layout)["superseded"] is True
        before = contents(RunLayout(f"{store}/{ID}"))
        add_checkpoint(layout, 100)
        set_state(layout, State.RUNNING, beat=99)
    assert start_mirror(layout).wait(30) == 3
    assert contents(RunLayout(f"{store}/{ID}")) == before
    event = next(e for e in read_events(layout) if e.kind == "store_superseded")
    assert "Attempt 2" in event.message


@pytest.mark.parametrize("exclusive", [True, False, None])
def test_the_same_attempt_claimed_by_somebody_else_supersedes(tmp_path, store, exclusive):
    layout = make_run(tmp_path / "home", store, exclusive=exclusive)
    open_storage(store).write(f"{ID}/attempts/1", b'{"host": "other"}')
    assert start_mirror(layout).wait(30) == 3
    assert names(store) == {"attempts/1"}


def test_a_newer_attempt_of_this_machine_replaces_the_mirror(layout, store):
    with mirroring(layout) as first:
        until(lambda: "run.yaml" in names(store))
        with mirroring(layout, 2) as early:
            assert early.wait(30) == 2  # nobody has claimed it yet
        claim(layout, 2, rlnb_version="0.1.0")
        assert first.wait(30) == 0
        with mirroring(layout, 2):
            until(lambda: "attempts/2" in names(store))


def test_the_mirror_ends_when_its_supervisor_is_gone(layout, store):
    content = json.loads(layout.attempt(1).read_text())
    layout.attempt(1).write_text(json.dumps({**content, "pid": 2**22 + 1}))
    add_checkpoint(layout, 100)
    assert start_mirror(layout).wait(30) == 0
    assert "checkpoints/100-a1/manifest.json" in names(store)


def test_an_end_is_announced_last_and_with_nothing_pending(layout, store):
    seen = []

    def watch():
        storage = open_storage(f"{store}/{ID}")
        while not seen or seen[-1] != "end":
            there = {entry.name for entry in storage.list()}
            if "status.json" in there and b"completed" in storage.read("status.json"):
                seen.append(there)
                seen.append("end")

    set_state(layout, State.COMPLETED)
    for step in range(20):
        add_checkpoint(layout, step, size=100_000)
    thread = threading.Thread(target=watch)
    thread.start()
    assert start_mirror(layout).wait(60) == 0
    thread.join()
    assert len([n for n in names(store) if n.endswith("manifest.json")]) == 20
    assert json.loads(open_storage(store).read(f"{ID}/status.json"))["upload_pending"] == 0


def test_the_spool_bound_drops_only_superseded_unsent_checkpoints(layout, store):
    Path(store).write_text("in the way")  # the store cannot be written
    for step in (100, 200, 300, 400):
        add_checkpoint(layout, step, size=10_000, mean=500.0 if step == 200 else 1.0)
    with mirroring(layout, RLNB_SPOOL_LIMIT="25000"):
        until(lambda: len([e for e in read_events(layout) if e.kind == "checkpoint_dropped"]) == 2)
        assert report(layout)["state"] != "ok"
        Path(store).unlink()
        until(lambda: report(layout)["state"] == "ok" and report(layout)["pending_bytes"] == 0)
    kept = {n for n in names(store) if n.endswith("manifest.json")}
    assert kept == {"checkpoints/200-a1/manifest.json", "checkpoints/400-a1/manifest.json"}
    assert "step 100" in next(e for e in read_events(layout) if e.kind == "checkpoint_dropped").message
    assert [e.kind for e in read_events(layout) if e.kind.startswith("store_")][-1] == "store_ok"


def test_over_the_bound_a_forks_beginning_and_the_newest_of_the_one_history_stay(layout, monkeypatch):
    monkeypatch.setenv("RLNB_SPOOL_LIMIT", "1")
    for step, attempt in ((50, 0), (200, 1), (300, 1), (250, 2)):  # attempt 2 resumed from step 200
        add_checkpoint(layout, step, attempt=attempt, mean=9.0 if step == 200 else 1.0)
    seen = scan(layout)
    waiting = {name: stamp.size for name, stamp in seen.stamps.items() if name.startswith("checkpoints/")}
    assert drop_superseded(layout, seen, waiting, MirrorReport(layout, 2), lambda _: False)
    assert [(step, attempt) for step, attempt, _ in layout.checkpoint_folders()] == [
        (50, 0),
        (200, 1),
        (250, 2),
    ]
    assert not any("300-a1" in name for name in waiting)


def test_killed_at_random_moments_the_store_is_the_same(layout, store, tmp_path):
    dice = random.Random(7)
    stop = threading.Event()

    def train():
        log = EventLog(layout, attempt=1)
        for step in range(1, 43):
            log.append("step", "x" * dice.randrange(2000), step=step)
            append(layout, "metrics/1-0.jsonl", json.dumps({"step": step}) + "\n")
            if step % 6 == 0:
                add_checkpoint(layout, step, size=300_000, chunks=(str(step // 12),))
                if step > 12:
                    folder = layout.checkpoint(step - 12, 1)
                    (folder / "manifest.json").unlink()
                    (folder / "policy.pt").unlink()
                    folder.rmdir()
            set_state(layout, State.RUNNING, beat=step)
            time.sleep(0.1)
        stop.set()

    trainer = threading.Thread(target=train)
    trainer.start()
    while not stop.is_set():
        with mirroring(layout) as process:
            stop.wait(0.25 + dice.random() * 0.8)
            process.send_signal(signal.SIGKILL)
            process.wait()
    trainer.join()
    set_state(layout, State.COMPLETED)
    assert start_mirror(layout).wait(60) == 0
    pulled = pull(f"{store}/{ID}", tmp_path / "elsewhere" / ID)
    assert contents(pulled) == contents(layout)
    assert len([n for n in names(store) if n.endswith("manifest.json")]) == 2


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("s3://me:pw@bucket/x", "set AWS_ACCESS_KEY_ID"),
        ("obs://bucket", "does not say where the bucket is"),
    ],
)
def test_an_unusable_store_is_said_where_a_person_looks(tmp_path, url, sentence):
    layout = make_run(tmp_path / "home", url)
    assert start_mirror(layout).wait(30) == 2
    assert sentence in report(layout)["last_error"]
    assert report(layout)["state"] == "denied"
    assert "pw" not in json.dumps(report(layout))


def test_a_store_that_is_the_working_copy_is_refused(tmp_path):
    layout = make_run(tmp_path / "home", str(tmp_path / "home"))
    assert start_mirror(layout).wait(30) == 2
    assert "is its working copy itself; promote to another folder" in report(layout)["last_error"]


def test_resumed_on_a_fresh_machine(layout, store, tmp_path):
    add_checkpoint(layout, 100, chunks=("a",))
    append(layout, "events.jsonl", '{"kind": "one"}\n')
    set_state(layout, State.SUSPENDED)
    assert start_mirror(layout).wait(30) == 0
    fresh = pull(f"{store}/{ID}", tmp_path / "fresh" / ID)
    assert contents(fresh) == contents(layout)
    claim(fresh, 2, rlnb_version="0.1.0")
    append(fresh, "events.jsonl", '{"kind": "two"}\n')
    old = add_checkpoint(fresh, 200, chunks=("b",)) and fresh.checkpoint(100, 1)
    for name in ("manifest.json", "policy.pt"):
        (old / name).unlink()
    set_state(fresh, State.COMPLETED, attempt=2)
    assert start_mirror(fresh, 2).wait(30) == 0
    again = pull(f"{store}/{ID}", tmp_path / "reader" / ID)
    left = {name for name in contents(fresh) if not name.startswith("checkpoints/chunks/")}
    assert {n: contents(again)[n] for n in left} == {n: contents(fresh)[n] for n in left}
    assert not [name for name in names(store) if "100-a1" in name]
    assert start_mirror(layout).wait(30) == 3  # the old machine wakes up and publishes nothing


def test_a_log_that_another_machine_continued_after_the_pull_is_sent_anew(layout, store, tmp_path):
    append(layout, "stdout.log", "one\n")
    set_state(layout, State.SUSPENDED)
    assert start_mirror(layout).wait(30) == 0
    fresh = pull(f"{store}/{ID}", tmp_path / "fresh" / ID)
    append(layout, "stdout.log", "a last word\n")
    assert start_mirror(layout).wait(30) == 0
    claim(fresh, 2, rlnb_version="0.1.0")
    append(fresh, "stdout.log", "two, and longer than what the other wrote\n")
    set_state(fresh, State.COMPLETED, attempt=2)
    assert start_mirror(fresh, 2).wait(30) == 0
    again = pull(f"{store}/{ID}", tmp_path / "reader" / ID)
    assert again.stdout_log.read_text() == "one\ntwo, and longer than what the other wrote\n"


def test_a_log_that_a_library_begins_anew_is_followed(layout, store):
    append(layout, "progress.csv", "step,return\n1,2\n")
    storage = open_storage(f"{store}/{ID}")

    def text():
        parts = whole_parts(storage.list("logs/progress.csv")).get("logs/progress.csv", [])
        return b"".join(storage.read(part.object_name) for part in chain(parts))

    with mirroring(layout):
        until(lambda: text() == b"step,return\n1,2\n")
        (layout.logs / "progress.csv").write_text("step\n")
        until(lambda: text() == b"step\n")


def test_the_mirror_loads_nothing_heavy():
    code = "import sys, rlnb.jobs.mirror; print([m for m in ('numpy', 'pandas', 'torch', 'pyarrow', 's3fs') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_full_local_disk_does_not_end_the_mirror(layout, store, tmp_path):
    for path in (layout.mirror_json, layout.local / "mirror-sent.json"):
        path.mkdir(parents=True)  # neither report nor ledger can be written
        (path / "x").touch()
    add_checkpoint(layout, 100)
    set_state(layout, State.COMPLETED)
    assert start_mirror(layout).wait(30) == 0
    assert "checkpoints/100-a1/manifest.json" in names(store)
