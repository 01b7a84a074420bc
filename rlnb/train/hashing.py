"""Hashes that say whether two runs did the same."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np


def weights_sha256(state: Mapping[str, Any]) -> str:
    """Hashes tensors, not files: sorted name, dtype, shape and raw bytes of each.

    `torch.save`'s bytes depend on the file's name, so that equal weights have unequal files.

    Args:
        state: a `state_dict()`.
    """
    digest = hashlib.sha256()
    for name in sorted(state):
        array = np.ascontiguousarray(state[name].detach().cpu().numpy())
        digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def crc32(value: Any) -> int:
    """CRC32 of an observation: an array, or a dict or tuple of them, keys sorted."""
    if isinstance(value, Mapping):
        check = 0
        for key in sorted(value):
            check = zlib.crc32(str(crc32(value[key])).encode(), zlib.crc32(str(key).encode(), check))
        return check
    if isinstance(value, tuple):
        return zlib.crc32(repr([crc32(one) for one in value]).encode())
    array = np.ascontiguousarray(value)
    return zlib.crc32(array.tobytes(), zlib.crc32(f"{array.dtype.str}{array.shape}".encode()))
