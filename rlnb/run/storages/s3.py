"""An object store that speaks S3, OBS included, over s3fs.

s3fs' `call_s3` is used rather than its file-system face: that one asks questions of its own (HEADs,
cached listings, bulk deletes) which OBS answers differently. Only six operations are sent: PUT, GET
with a range, DELETE, ListObjects (version 1: OBS documents no other), and the three of a multipart
upload. Objects are deleted one by one, because DeleteObjects may be refused.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from rlnb.errors import StoreConflict, StoreDenied, StoreError, StoreFull, StoreUnreachable, UsageError
from rlnb.run.storage import Entry, StoreAddress, StoreMissing, check_name
from rlnb.run.storages.folder import pieces

#: Bytes of one request body; larger objects are sent in parts, so that memory stays bounded.
PART_SIZE = 5 << 20  # the least that S3 takes
#: Seconds between tries of one request. Short: an outage is for the caller to sit out, and botocore's
#: own retries, which are off, take half a minute to tell of one.
_PAUSES = (0.1, 0.3, 0.9)

_MISSING = {"NoSuchKey", "404"}
_TAKEN = {"PreconditionFailed", "412", "ConditionalRequestConflict", "409"}
_DENIED = {
    "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "403", "401",
    "AllAccessDisabled", "AccountProblem", "InvalidSecurity", "RequestTimeTooSkewed", "NoSuchBucket",
    "PermanentRedirect", "301", "AuthorizationHeaderMalformed", "InvalidBucketName", "VirtualHostDomainRequired",
}  # fmt: skip
_FULL = {"QuotaExceeded", "InsufficientStorageSpace", "InsufficientStorage", "507", "XMinioStorageFull"}


class S3Storage:
    """Objects under a bucket's prefix.

    Args:
        address: of scheme "s3" or "obs".

    Raises:
        UsageError: s3fs is missing or too old.
    """

    def __init__(self, address: StoreAddress) -> None:
        try:
            import s3fs
        except ImportError:
            raise UsageError(
                f"The store {address.url} needs s3fs, which is not installed; run: pip install 's3fs>=2025.2'"
            ) from None
        if not hasattr(s3fs.S3FileSystem, "call_s3"):
            raise UsageError("The installed s3fs is too old for rlnb; run: pip install 's3fs>=2025.2'")
        self.url = address.url
        self._bucket = address.place
        self._prefix = f"{address.path}/" if address.path else ""
        options, obs = address.options, address.scheme == "obs"
        region = options.get("region")
        endpoint = options.get("endpoint") or (f"https://obs.{region}.myhuaweicloud.com" if obs else None)
        endpoint = endpoint or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        region = region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        addressing = "virtual" if obs else options.get("addressing", "auto")
        self._files = s3fs.S3FileSystem(
            endpoint_url=endpoint,
            client_kwargs={"region_name": region or "us-east-1"} if region or endpoint else {},
            config_kwargs={
                "s3": {"addressing_style": addressing},
                # OBS answers 400 or 404 to the checksum trailers that newer clients send unasked.
                "request_checksum_calculation": "when_required",
                "response_checksum_validation": "when_required",
                "retries": {"total_max_attempts": 1, "mode": "standard"},
                "connect_timeout": 5,
                "read_timeout": 60,
                "max_pool_connections": 4,
            },
            skip_instance_cache=True,
        )
        self._files.retries = 1

    def read(self, name: str, *, start: int = 0, end: int | None = None) -> bytes:
        if end is not None and end <= start:
            return b""
        more = {}
        if start or end is not None:
            more["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        try:
            return self._get(name, more)
        except _EmptyRange:
            return b""

    def write(self, name: str, data: bytes | Path, *, exclusive: bool = False) -> None:
        more = {"IfNoneMatch": "*"} if exclusive else {}
        with pieces(data, PART_SIZE) as source:
            first, second = next(source, b""), next(source, b"")
            if not second:
                self._call("put_object", name, Body=first, **more)
            else:
                self._write_parts(name, chain((first, second), source), more)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        marker = ""
        while True:
            page = self._call(
                "list_objects", None, Prefix=self._prefix + prefix, **({"Marker": marker} if marker else {})
            )
            found = page.get("Contents") or []
            for item in found:
                marker = item["Key"]
                name = marker[len(self._prefix) :]
                if name and not name.endswith("/"):  # consoles create empty objects as "folders"
                    yield Entry(name, int(item["Size"]), item["LastModified"].timestamp())
            marker = page.get("NextMarker") or marker
            if not page.get("IsTruncated") or not found:
                return

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                self._call("delete_object", name)
            except StoreMissing:
                continue

    def close(self) -> None:
        from fsspec.asyn import sync

        client, self._files._s3 = self._files._s3, None
        if client is not None:
            sync(self._files.loop, client.__aexit__, None, None, None, timeout=10)

    def _get(self, name: str, more: dict[str, Any]) -> bytes:
        from fsspec.asyn import sync

        last: Exception | None = None
        for _ in range(3):  # a connection that is cut within the body is not retried below
            answer = self._call("get_object", name, **more)
            try:
                content: bytes = sync(self._files.loop, _read_body, answer["Body"])
            except Exception as error:  # aiohttp's and botocore's own trees, all of the network
                last = error
                continue
            if len(content) == answer.get("ContentLength", len(content)):
                return content
        raise StoreUnreachable(f"{self.url}: the connection is cut while {name} is read ({last}).") from last

    def _write_parts(self, name: str, source: Iterator[bytes], more: dict[str, Any]) -> None:
        upload = self._call("create_multipart_upload", name)["UploadId"]
        try:
            parts = []
            for number, piece in enumerate(source, start=1):
                answer = self._call("upload_part", name, UploadId=upload, PartNumber=number, Body=piece)
                parts.append({"PartNumber": number, "ETag": answer["ETag"]})
            self._call(
                "complete_multipart_upload", name, UploadId=upload, MultipartUpload={"Parts": parts}, **more
            )
        except BaseException:
            try:
                self._call("abort_multipart_upload", name, UploadId=upload)
            except StoreError:
                pass  # the store's lifecycle rule collects it; the first error is what matters
            raise

    def _call(self, operation: str, name: str | None, **kwargs: Any) -> Any:
        if name is not None:
            kwargs["Key"] = self._prefix + check_name(name)
        for pause in (*_PAUSES, None):
            try:
                return self._files.call_s3(operation, Bucket=self._bucket, **kwargs)
            except Exception as error:  # s3fs, botocore and aiohttp have a tree each; ours names what to do
                explained = self._explain(error, name or "")
                if pause is None or not isinstance(explained, StoreUnreachable):
                    raise explained from error
            time.sleep(pause)
        raise AssertionError("unreachable")

    def _explain(self, error: Exception, name: str) -> Exception:
        from botocore.exceptions import (
            NoCredentialsError,
            ParamValidationError,
            PartialCredentialsError,
            ProfileNotFound,
        )

        response = getattr(error.__cause__ or error, "response", None) or {}
        code = str((response.get("Error") or {}).get("Code", ""))
        status = str((response.get("ResponseMetadata") or {}).get("HTTPStatusCode", ""))
        where = f"{self.url} ({name})" if name else self.url
        if code == "NoSuchBucket":
            return StoreDenied(
                f"{self.url}: there is no bucket {self._bucket!r} there; create it or correct the URL."
            )
        if code in _MISSING:
            return StoreMissing(f"{self.url} has no {name}.")
        if code == "InvalidRange":
            return _EmptyRange(str(error))
        if code in _TAKEN:
            return StoreConflict(f"{self.url} already has {name}.")
        if code in _FULL or status == "507":
            return StoreFull(f"{where}: no space or quota is left ({error}); raise the quota or free space.")
        if isinstance(error, NoCredentialsError):
            return StoreDenied(
                f"{self.url} needs credentials and none were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )
        if code in _DENIED or status in ("401", "403") or isinstance(error, PermissionError):
            return StoreDenied(
                f"{where} refuses ({code or status}: {error}); correct credentials, rights or address."
            )
        if code == "NotImplemented" or status in ("400", "405", "501"):
            return StoreError(f"{where} does not support this request ({code or status}: {error}).")
        if isinstance(error, ParamValidationError | PartialCredentialsError | ProfileNotFound):
            return StoreDenied(
                f"{where} cannot be used as it is configured ({error}); correct the URL or credentials."
            )
        return StoreUnreachable(
            f"{where} does not answer ({type(error).__name__}: {error}); it is tried again."
        )


class _EmptyRange(StoreError):
    """The range begins at or behind the object's end."""


async def _read_body(body: Any) -> bytes:
    try:
        return bytes(await body.read())
    finally:
        body.close()  # else a connection that was cut within the body is never given back
