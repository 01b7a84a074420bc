"""A mounted bucket as store: a real file system that refuses rename, append, lock and link."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from rlnb.errors import StoreUnreachable
from rlnb.run.storage import open_storage
from rlnb.run.storages.folder import file_system
from rlnb.testing.storage_contract import StorageContract
from rlnb.testing.strict_mount import StrictMount

needs_fuse = pytest.mark.skipif(not StrictMount.available(), reason="mounting needs root and /dev/fuse")


@pytest.fixture(scope="module")
def bucket():
    with (
        tempfile.TemporaryDirectory() as mountpoint,
        tempfile.TemporaryDirectory() as backing,
        StrictMount(Path(mountpoint), Path(backing)) as mount,
    ):
        yield mount.mountpoint


@needs_fuse
class TestMountedBucket(StorageContract):
    exclusive = False  # this machine alone decides there

    @pytest.fixture(autouse=True)
    def _open(self, bucket, request):
        self.storage = open_storage(str(bucket / request.node.name))


@needs_fuse
def test_the_mount_is_as_poor_as_a_bucket(bucket):
    path = bucket / "poor"
    path.write_bytes(b"0123")
    assert file_system(path) == "fuse.bucket"
    with pytest.raises(OSError, match="not supported"):
        path.rename(bucket / "other")
    with pytest.raises(OSError, match="not supported"):
        os.open(path, os.O_WRONLY | os.O_APPEND)
    with pytest.raises(OSError, match="not supported"):
        os.link(path, bucket / "other")
    with open(path, "r+b", buffering=0) as file:
        with pytest.raises(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.seek(2)
        with pytest.raises(OSError, match="not supported"):
            file.write(b"x")


@needs_fuse
def test_a_mount_that_has_died_is_unreachable(tmp_path):
    (tmp_path / "mnt").mkdir()
    (tmp_path / "data").mkdir()
    with StrictMount(tmp_path / "mnt", tmp_path / "data") as mount:
        storage = open_storage(str(tmp_path / "mnt"))
        storage.write("a", b"x")
        assert mount._process is not None
        mount._process.kill()
        mount._process.wait()
        with pytest.raises(StoreUnreachable, match="does not work now"):
            storage.write("b", b"x")
        with pytest.raises(StoreUnreachable, match="does not work now"):
            storage.read("a")
        with pytest.raises(StoreUnreachable, match="does not work now"):
            list(storage.list())


def test_a_folder_that_refuses_a_rename_is_written_to_directly(tmp_path, monkeypatch):
    storage = open_storage(str(tmp_path))

    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "replace", refuse)
    storage.write("a", b"one")
    storage.write("a", b"two")
    assert storage.read("a") == b"two"
    assert os.listdir(tmp_path) == ["a"]
