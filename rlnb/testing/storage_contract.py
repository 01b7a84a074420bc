"""What every `Storage` must do, as a suite without pytest in it.

Use it by inheritance, in the manner of optuna's `StorageTestCase`:

    class TestMyStore(StorageContract):
        @pytest.fixture(autouse=True)
        def _open(self, tmp_path):
            self.storage = open_storage(str(tmp_path))
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
from pathlib import Path

from rlnb.errors import RlnbError, StoreConflict
from rlnb.run.storage import Storage, StoreMissing, probe


class StorageContract:
    """Tests for one implementation; `storage` must be empty at the start of each.

    Attributes:
        storage: the one under test.
        exclusive: what `probe` must find out about create-only.
    """

    storage: Storage
    exclusive: bool = True

    def test_what_is_written_is_read(self) -> None:
        self.storage.write("run/status.json", b"{}")
        assert self.storage.read("run/status.json") == b"{}"
        assert [(e.name, e.size) for e in self.storage.list()] == [("run/status.json", 2)]

    def test_an_empty_object_is_an_object(self) -> None:
        self.storage.write("empty", b"")
        assert self.storage.read("empty") == b""
        assert self.storage.read("empty", start=0, end=10) == b""
        assert [(e.name, e.size) for e in self.storage.list()] == [("empty", 0)]

    def test_writing_again_replaces(self) -> None:
        self.storage.write("status.json", b"a longer text")
        self.storage.write("status.json", b"short")
        assert self.storage.read("status.json") == b"short"

    def test_ranges_are_half_open_and_may_pass_the_end(self) -> None:
        self.storage.write("log", b"0123456789")
        assert self.storage.read("log", start=2, end=5) == b"234"
        assert self.storage.read("log", start=8, end=99) == b"89"
        assert self.storage.read("log", start=7) == b"789"
        assert self.storage.read("log", start=3, end=3) == b""

    def test_a_missing_object_is_named(self) -> None:
        try:
            self.storage.read("no/such")
        except StoreMissing as error:
            assert "no/such" in str(error)  # noqa: PT017
        else:
            raise AssertionError("reading a missing object did not fail")

    def test_a_prefix_is_a_string_not_a_folder(self) -> None:
        for name in ("a/1", "a/12", "a/2", "ab", "b/a/1"):
            self.storage.write(name, name.encode())
        assert [e.name for e in self.storage.list("a/1")] == ["a/1", "a/12"]
        assert [e.name for e in self.storage.list("a")] == ["a/1", "a/12", "a/2", "ab"]
        assert [e.name for e in self.storage.list("c")] == []

    def test_names_keep_their_characters(self) -> None:
        names = [
            "logs/a b@0-12",
            "logs/ü+&=%41#?.txt",
            "logs/日本.jsonl@3-4",
            "logs/.hidden",
            "logs/~x'(1)!*",
        ]
        for name in names:
            self.storage.write(name, name.encode())
        assert sorted(e.name for e in self.storage.list("logs/")) == sorted(names)
        for name in names:
            assert self.storage.read(name) == name.encode()
        self.storage.remove(names)
        assert list(self.storage.list()) == []

    def test_more_objects_than_a_page(self) -> None:
        names = [f"many/{i:04d}" for i in range(1030)]

        def fill(part: list[str]) -> None:
            for name in part:
                self.storage.write(name, b"x")

        threads = [threading.Thread(target=fill, args=(names[start::16],)) for start in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [e.name for e in self.storage.list("many/")] == names

    def test_a_large_file_arrives_whole(self) -> None:
        content = hashlib.shake_128(b"rlnb").digest(20_000_003)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "payload"
            path.write_bytes(content)
            self.storage.write("checkpoints/payload", path)
        assert next(iter(self.storage.list("checkpoints/"))).size == len(content)
        assert (
            self.storage.read("checkpoints/payload", start=8_388_600, end=16_777_300)
            == content[8_388_600:16_777_300]
        )
        assert (
            hashlib.sha256(self.storage.read("checkpoints/payload")).digest()
            == hashlib.sha256(content).digest()
        )

    def test_links_are_not_followed(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "secret").write_bytes(b"secret")
            (Path(folder) / "link").symlink_to(Path(folder) / "secret")
            try:
                self.storage.write("leak", Path(folder) / "link")
            except (RlnbError, OSError):
                pass
            else:
                raise AssertionError("a link was followed")
        assert list(self.storage.list("leak")) == []

    def test_removing_is_by_name_and_forgives(self) -> None:
        for name in ("x/1", "x/2", "x/3"):
            self.storage.write(name, b"")
        self.storage.remove(["x/2", "x/nothing", "x/1"])
        assert [e.name for e in self.storage.list()] == ["x/3"]
        self.storage.remove([])

    def test_names_that_climb_are_refused(self) -> None:
        for name in ("../up", "/abs", "a//b", "a/./b", "a/..", "", "a\\b"):
            for verb in (
                self.storage.read,
                lambda n: self.storage.write(n, b""),
                lambda n: self.storage.remove([n]),
            ):
                try:
                    verb(name)
                except RlnbError as error:
                    assert "plain relative name" in str(error)  # noqa: PT017
                else:
                    raise AssertionError(f"{name!r} was accepted")

    def test_exclusive_create_keeps_the_first(self) -> None:
        if not self.exclusive:
            return
        self.storage.write("attempts/1", b"me", exclusive=True)
        try:
            self.storage.write("attempts/1", b"you", exclusive=True)
        except StoreConflict as error:
            assert "attempts/1" in str(error)  # noqa: PT017
        else:
            raise AssertionError("the second claim was accepted")
        assert self.storage.read("attempts/1") == b"me"

    def test_the_probe_tells_what_holds_and_leaves_nothing(self) -> None:
        result = probe(self.storage)
        assert result.error is None
        assert (result.writes, result.reads, result.deletes) == (True, True, True)
        assert result.exclusive is self.exclusive
        assert list(self.storage.list()) == []
