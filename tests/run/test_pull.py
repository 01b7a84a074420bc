"""Pulling: incremental, whole at any moment, and never outside its folder."""

from __future__ import annotations

import os
import threading
import uuid

import pytest

from rlnb.errors import RunFormatError, RunNotFound, StoreUnreachable, UsageError
from rlnb.run.layout import read_json
from rlnb.run.pull import pull
from rlnb.run.storage import Entry, StoreMissing, open_storage
from rlnb.run.storages.memory import MemoryStorage


@pytest.fixture
def url(request):
    return f"memory://{request.node.name.partition('[')[0]}-{uuid.uuid4().hex}/exp-1"


@pytest.fixture
def store(url):
    storage = open_storage(url)
    for name, data in {
        "run.yaml": b"format: 1\n",
        "bundle/notebook.ipynb": b"{}",
        "attempts/1": b"{}",
        "status.json": b'{"state": "running"}',
        "checkpoints/100-a1/manifest.json": b'{"files": []}',
        "checkpoints/100-a1/policy.pt": b"weights",
        "checkpoints/chunks/ab.bin": b"rows",
        "data/demo.parquet": b"PAR1",
        "logs/events.jsonl@0-4": b"one\n",
        "logs/events.jsonl@4-8": b"two\n",
        "logs/tb/events.out@0-2": b"tb",
        "output.1.ipynb": b"{}",
    }.items():
        storage.write(name, data)
    return storage


@pytest.fixture
def reads(monkeypatch):
    """The names that are read from the store, in order."""
    names: list[str] = []
    read = MemoryStorage.read

    def noting(self, name, *, start=0, end=None):
        names.append(name)
        return read(self, name, start=start, end=end)

    monkeypatch.setattr(MemoryStorage, "read", noting)
    return names


def files(root):
    return {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()} - {
        "local/pulled.json",
        "local/pull.lock",
    }


def test_everything_comes_and_logs_are_joined(url, store, tmp_path):
    layout = pull(url, tmp_path / "exp-1")
    assert layout.events.read_bytes() == b"one\ntwo\n"
    assert files(layout.root) == {
        "run.yaml", "bundle/notebook.ipynb", "attempts/1", "status.json", "checkpoints/100-a1/manifest.json",
        "checkpoints/100-a1/policy.pt", "checkpoints/chunks/ab.bin", "data/demo.parquet", "logs/events.jsonl",
        "logs/tb/events.out", "output.1.ipynb",
    }  # fmt: skip


def test_light_leaves_out_what_is_large(url, store, tmp_path):
    layout = pull(url, tmp_path / "exp-1", what="light")
    assert files(layout.root) == {
        "run.yaml", "bundle/notebook.ipynb", "attempts/1", "status.json", "checkpoints/100-a1/manifest.json",
        "logs/events.jsonl", "output.1.ipynb",
    }  # fmt: skip
    assert pull(url, tmp_path / "exp-1").checkpoint(100, 1).joinpath("policy.pt").read_bytes() == b"weights"


def test_the_second_pull_reads_only_what_changed(url, store, tmp_path, reads, monkeypatch):
    old = MemoryStorage.list
    monkeypatch.setattr(
        MemoryStorage, "list",
        lambda self, prefix="": (
            Entry(e.name, e.size, e.modified + 100 * (e.name == "status.json")) for e in old(self, prefix)
        ),
    )  # fmt: skip
    pull(url, tmp_path / "exp-1")
    reads.clear()
    store.write("logs/events.jsonl@8-14", b"three\n")
    layout = pull(url, tmp_path / "exp-1")
    assert set(reads) == {"logs/events.jsonl@8-14", "status.json"}
    assert layout.events.read_bytes() == b"one\ntwo\nthree\n"


def test_status_is_read_last_and_a_manifest_after_its_payload(url, store, tmp_path, reads):
    pull(url, tmp_path / "exp-1")
    assert reads[-1] == "status.json"
    assert reads.index("checkpoints/100-a1/policy.pt") < reads.index("checkpoints/100-a1/manifest.json")
    assert reads.index("checkpoints/chunks/ab.bin") < reads.index("checkpoints/100-a1/manifest.json")


def test_an_overwritten_object_of_the_same_size_and_second_is_seen(url, store, tmp_path):
    pull(url, tmp_path / "exp-1")
    store.write("status.json", b'{"state": "stopped"}')
    store.write("output.1.ipynb", b"[]")
    layout = pull(url, tmp_path / "exp-1")
    assert read_json(layout.status) == {"state": "stopped"}
    assert layout.output(1).read_bytes() == b"[]"


def test_superseded_checkpoints_go_here_too_but_not_what_was_made_here(url, store, tmp_path):
    layout = pull(url, tmp_path / "exp-1")
    store.remove(["checkpoints/100-a1/manifest.json", "checkpoints/100-a1/policy.pt"])
    own = layout.checkpoint(200, 2)
    own.mkdir()
    (own / "manifest.json").write_text("{}")
    pull(url, tmp_path / "exp-1")
    assert not layout.checkpoint(100, 1).exists()
    assert own.exists()


def test_a_torn_append_is_continued(url, store, tmp_path):
    layout = pull(url, tmp_path / "exp-1")
    os.truncate(layout.events, 5)  # killed within the second part
    assert pull(url, tmp_path / "exp-1").events.read_bytes() == b"one\ntwo\n"


def test_a_log_that_was_begun_anew_is_read_anew(url, store, tmp_path):
    pull(url, tmp_path / "exp-1")
    store.remove(["logs/events.jsonl@0-4", "logs/events.jsonl@4-8"])
    store.write("logs/events.jsonl@0-5", b"fresh")
    assert pull(url, tmp_path / "exp-1").events.read_bytes() == b"fresh"


def test_parts_that_are_merged_meanwhile_are_found_again(url, store, tmp_path, monkeypatch):
    read = MemoryStorage.read

    def merging(self, name, *, start=0, end=None):
        if name == "logs/events.jsonl@0-4":
            self.write("logs/events.jsonl@0-8", b"one\ntwo\n")
            self.remove(["logs/events.jsonl@0-4", "logs/events.jsonl@4-8"])
        return read(self, name, start=start, end=end)

    monkeypatch.setattr(MemoryStorage, "read", merging)
    assert pull(url, tmp_path / "exp-1").events.read_bytes() == b"one\ntwo\n"


def test_two_pulls_at_once_append_once(url, store, tmp_path):
    threads = [threading.Thread(target=pull, args=(url, tmp_path / "exp-1")) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "exp-1" / "logs" / "events.jsonl").read_bytes() == b"one\ntwo\n"


def test_no_run_there(tmp_path):
    with pytest.raises(RunNotFound, match=r"memory://nothing/exp-1 holds no run.yaml; check the address"):
        pull("memory://nothing/exp-1", tmp_path / "exp-1")
    open_storage("memory://young/exp-1").write("attempts/1", b"{}")
    with pytest.raises(RunNotFound, match=r"yet: its notebook has not reached promote\(\)"):
        pull("memory://young/exp-1", tmp_path / "exp-1")


def test_an_unknown_amount_is_refused(url, tmp_path):
    with pytest.raises(UsageError, match="what='most' is unknown; use 'all' or 'light'"):
        pull(url, tmp_path, what="most")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["../../outside", "bundle/../../outside", "/outside"])
def test_names_that_leave_the_folder_are_refused(url, store, tmp_path, name):
    store._objects[f"exp-1/{name}"] = (b"evil", 0.0)
    with pytest.raises(RunFormatError, match="not a plain relative name"):
        pull(url, tmp_path / "a" / "exp-1")
    assert not list(tmp_path.rglob("outside"))


def test_a_store_cannot_write_flags_and_records_of_this_machine(url, store, tmp_path):
    store.write("local/flag.json", b'{"flag": "stop"}')
    store.write("work/sitecustomize.py", b"evil")
    layout = pull(url, tmp_path / "exp-1")
    assert not layout.flag.exists()
    assert not layout.work.exists()


def test_a_link_in_the_folder_is_not_written_through(url, store, tmp_path):
    (tmp_path / "exp-1").mkdir()
    (tmp_path / "victim").mkdir()
    (tmp_path / "exp-1" / "bundle").symlink_to(tmp_path / "victim")
    with pytest.raises(RunFormatError, match="never follows links"):
        pull(url, tmp_path / "exp-1")
    assert not list((tmp_path / "victim").iterdir())


def test_a_store_in_steady_flight_is_given_up(url, store, tmp_path, monkeypatch):
    def gone(self, name, *, start=0, end=None):
        raise StoreMissing(name)

    monkeypatch.setattr(MemoryStorage, "read", gone)
    with pytest.raises(StoreUnreachable, match="changes faster than it can be read"):
        pull(url, tmp_path / "exp-1")
