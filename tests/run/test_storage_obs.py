"""The storage contract through a proxy that is as strict as OBS, slow, and cuts connections."""

from __future__ import annotations

import pytest

from rlnb.errors import StoreDenied, StoreError
from rlnb.run.storage import open_storage, probe
from rlnb.testing.obs_proxy import ObsProxy
from rlnb.testing.seaweed import DOMAIN, SeaweedServer
from rlnb.testing.storage_contract import StorageContract

pytestmark = pytest.mark.s3


@pytest.fixture(scope="module")
def weed():
    with SeaweedServer() as server:
        yield server


@pytest.fixture
def proxy(weed, monkeypatch):
    with ObsProxy(weed) as proxy:
        for name, value in proxy.environment.items():
            monkeypatch.setenv(name, value)
        yield proxy


class TestObs(StorageContract):
    exclusive = False

    @pytest.fixture(autouse=True)
    def _open(self, proxy, request):
        proxy.slow_down, proxy.cut = 0.05, 0.02
        self.storage = open_storage(proxy.url(f"contract/{request.node.name}"))
        yield
        self.storage.close()
        # Nothing that OBS refuses was ever sent, but for the probe's question about create-only.
        assert set(proxy.refused) <= {"NotImplemented"}
        assert not proxy.refused or "probe" in request.node.name


def test_the_server_checks_the_signature_behind_the_proxy(proxy, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret")
    storage = open_storage(proxy.url("x"))
    with pytest.raises(StoreDenied, match="SignatureDoesNotMatch"):
        storage.write("a", b"")
    storage.close()


def test_path_style_is_refused(proxy):
    storage = open_storage(f"s3://runs/x?endpoint=http://{DOMAIN}&region=us-east-1&addressing=path")
    with pytest.raises(StoreDenied, match="VirtualHostDomainRequired"):
        storage.write("a", b"")
    storage.close()
    assert proxy.refused["VirtualHostDomainRequired"] >= 1


def test_what_newer_clients_send_unasked_is_refused(proxy):
    import s3fs

    files = s3fs.S3FileSystem(
        endpoint_url=f"http://{DOMAIN}", client_kwargs={"region_name": "us-east-1"},
        config_kwargs={"s3": {"addressing_style": "virtual"}}, skip_instance_cache=True,
    )  # fmt: skip
    with pytest.raises(OSError, match="not supported"):
        files.call_s3("put_object", Bucket="runs", Key="x", Body=b"x")
    assert proxy.refused["InvalidEncoding"] + proxy.refused["InvalidChecksum"] >= 1


@pytest.mark.parametrize(
    ("operation", "more", "code"),
    [
        ("put_object", {"Key": "x", "Body": b"", "IfNoneMatch": "*"}, "NotImplemented"),
        ("rename_object", {"Key": "x", "RenameSource": "y"}, "MethodNotAllowed"),
        ("put_object", {"Key": "x", "Body": b"", "WriteOffsetBytes": 3}, "ObjectNotAppendable"),
    ],
)
def test_requests_that_obs_does_not_know_are_refused(proxy, operation, more, code):
    storage = open_storage(proxy.url())
    with pytest.raises(OSError):
        storage._files.call_s3(operation, Bucket="runs", **more)
    storage.close()
    assert proxy.refused[code] >= 1


def test_exclusive_create_is_an_error_not_a_silent_overwrite(proxy):
    storage = open_storage(proxy.url("exclusive"))
    with pytest.raises(StoreError, match="does not support this request"):
        storage.write("attempts/1", b"me", exclusive=True)
    assert list(storage.list()) == []
    result = probe(storage)
    assert (result.writes, result.reads, result.deletes, result.exclusive, result.error) == (
        True,
        True,
        True,
        False,
        None,
    )
    storage.close()


def test_with_a_third_of_the_requests_slowed_down_all_arrives(proxy):
    proxy.slow_down = 0.33
    storage = open_storage(proxy.url("slow"))
    for i in range(8):
        storage.write(f"x/{i}", b"x")
    assert len(list(storage.list("x/"))) == 8
    assert proxy.slowed > 0
    storage.close()
