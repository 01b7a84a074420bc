"""Stores: one contract for all, and the messages of what a URL must not be."""

from __future__ import annotations

import os

import pytest

from rlnb.errors import StoreDenied, StoreUnreachable, UsageError
from rlnb.run.host import hostname
from rlnb.run.storage import StoreAddress, open_storage, probe
from rlnb.run.storages.folder import file_system
from rlnb.testing.seaweed import SeaweedServer
from rlnb.testing.storage_contract import StorageContract


class TestFolder(StorageContract):
    @pytest.fixture(autouse=True)
    def _open(self, tmp_path):
        self.storage = open_storage(f"file://{tmp_path}/store")


class TestMemory(StorageContract):
    @pytest.fixture(autouse=True)
    def _open(self, request):
        self.storage = open_storage(f"memory://{request.node.name}/below")


@pytest.fixture(scope="module")
def weed():
    with SeaweedServer() as server:
        yield server


@pytest.mark.s3
class TestS3(StorageContract):
    @pytest.fixture(autouse=True)
    def _open(self, weed, request, monkeypatch):
        for name, value in weed.environment.items():
            monkeypatch.setenv(name, value)
        self.storage = open_storage(weed.url(f"contract/{request.node.name}"))
        yield
        self.storage.close()


@pytest.mark.s3
class TestS3Errors:
    def test_wrong_credentials_are_denied_not_unreachable(self, weed, monkeypatch):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrongwrong")
        storage = open_storage(weed.url("x"))
        with pytest.raises(StoreDenied, match="correct credentials, rights or address"):
            storage.write("a", b"")
        result = probe(storage)
        storage.close()
        assert (result.writes, result.reads, result.deletes, result.exclusive) == (False, False, False, False)
        assert "refuses" in (result.error or "")

    def test_no_credentials_at_all(self, weed, monkeypatch, tmp_path):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        storage = open_storage(weed.url("x"))
        with pytest.raises(StoreDenied, match="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
            storage.read("a")
        storage.close()

    def test_a_bucket_that_is_not_there(self, weed, monkeypatch):
        for name, value in weed.environment.items():
            monkeypatch.setenv(name, value)
        storage = open_storage(weed.url().replace("s3://runs", "s3://absent"))
        with pytest.raises(StoreDenied, match="no bucket 'absent'"):
            list(storage.list())
        storage.close()

    def test_nobody_listens(self, monkeypatch):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
        storage = open_storage("s3://runs?endpoint=http://127.0.0.1:9")
        with pytest.raises(StoreUnreachable, match="does not answer"):
            storage.read("a")
        storage.close()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("", "The store is empty"),
        ("objs://bucket/x", r"unknown scheme 'objs'.*Did you mean 'obs'"),
        ("s3://AKIA123:sec@bucket/x", r"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ("s3://bucket/x?access_key=abc", r"'access_key': credentials do not belong in a URL"),
        ("obs://bucket/x?ak=abc&region=r", r"'ak': credentials do not belong"),
        ("s3://bucket/x?regoin=eu", r"unknown option 'regoin'.*Did you mean 'region'"),
        ("s3://bucket/x?endpoint=localhost:9000", r"must be http://host or https://host"),
        ("s3://bucket/x?endpoint=http://me:pw@host", r"without a user"),
        ("s3://bucket/x?addressing=dns", r"use path, virtual or auto"),
        ("s3://b/x", r"no valid bucket name \('b'\)"),
        ("obs://bucket/x", r"add \?region=…"),
        ("file://server/share", r"names the host 'server'"),
        ("s3://[bucket/x", r"cannot be read \(Invalid IPv6 URL\)"),
        ("s3://bucket/x#y", r"has a '#y'"),
    ],
)
def test_a_bad_url_is_one_sentence(url, sentence):
    with pytest.raises(UsageError, match=sentence):
        open_storage(url)


def test_a_refused_url_does_not_repeat_the_secret():
    for url in ("s3://AKIA123:s3cr3t@bucket/x", "s3://bucket/x?secret_key=s3cr3t"):
        with pytest.raises(UsageError) as caught:
            open_storage(url)
        assert "s3cr3t" not in str(caught.value)


def test_addresses_below_keep_the_query():
    address = StoreAddress.parse("obs://team-rl/lander/?region=cn-north-4")
    assert address.below("exp-1").url == "obs://team-rl/lander/exp-1?region=cn-north-4"
    assert StoreAddress.parse("/data/runs/").below("exp-1").url == "/data/runs/exp-1"
    assert StoreAddress.parse("file:///data/a%20b").url == "/data/a b"
    assert StoreAddress.parse("s3://bucket").below("exp-1").url == "s3://bucket/exp-1"


def test_options_win_over_the_query():
    assert open_storage("obs://bucket/x?region=a", options={"region": "b"}).url == "obs://bucket/x?region=b"


def test_nothing_is_made_before_the_first_write(tmp_path):
    storage = open_storage(str(tmp_path / "store"))
    assert list(storage.list()) == []
    assert not (tmp_path / "store").exists()


def test_a_link_inside_the_folder_is_refused(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "run").symlink_to(tmp_path)
    with pytest.raises(StoreDenied, match="never follows links"):
        open_storage(str(tmp_path / "store")).write("run/x", b"")
    assert list(open_storage(str(tmp_path / "store")).list()) == []


def test_an_interrupted_write_leaves_the_old_object(tmp_path):
    storage = open_storage(str(tmp_path))
    storage.write("status.json", b"old")
    with pytest.raises(FileNotFoundError):
        storage.write("status.json", tmp_path / "absent")
    assert storage.read("status.json") == b"old"
    assert [e.name for e in storage.list()] == ["status.json"]


def test_the_file_system_of_a_path_is_known():
    assert file_system(open_storage("/proc/self").root) == "proc"


def test_what_a_killed_writer_left_is_swept_away(tmp_path):
    dead, alive, away = (
        tmp_path / f".rlnb-upload-{pid}-abc123@{host}"
        for pid, host in ((999_999_999, hostname()), (os.getpid(), hostname()), (1, "another-machine"))
    )
    for path in (dead, alive, away):
        path.touch()
    storage = open_storage(str(tmp_path))
    storage.write("a", b"")
    assert sorted(os.listdir(tmp_path)) == sorted(["a", alive.name, away.name])
    assert [entry.name for entry in storage.list()] == ["a"]
