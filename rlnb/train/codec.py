"""Trees of plain values and arrays as bytes, and back; reading them never runs code.

A tree is nested dicts, lists and tuples of None, bool, int, float, str, bytes, NumPy arrays and scalars, and
tensors on the CPU. It becomes one `.npz` file: the arrays under numbers, the structure as JSON. Tensors go through `torch.save` and
are read with `weights_only=True`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from rlnb.errors import CheckpointError

_TREE = "tree"


def encode_tree(tree: Any) -> bytes:
    """Returns a tree as the bytes of an uncompressed `.npz` file; equal trees give equal bytes.

    Raises:
        TypeError: the tree holds something else, naming where.
    """
    arrays: dict[str, Any] = {}
    structure = _pack(tree, arrays, "tree")
    arrays[_TREE] = np.frombuffer(json.dumps(structure).encode(), dtype=np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def decode_tree(data: bytes) -> Any:
    """Returns the tree that `encode_tree` wrote.

    Raises:
        CheckpointError: the bytes are no such file.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return _unpack(json.loads(arrays.pop(_TREE).tobytes()), arrays)
    except Exception as error:  # foreign bytes: NumPy, zipfile, zlib and JSON each raise what they like
        raise CheckpointError(
            f"A checkpoint's state cannot be read ({_words(error)}); choose another one."
        ) from None


def encode_tensors(tensors: Any) -> bytes:
    """Returns nested dicts and lists of tensors and numbers as `torch.save` writes them."""
    import torch

    file = io.BytesIO()
    torch.save(tensors, file)
    return file.getvalue()


def decode_tensors(data: bytes) -> Any:
    """Reads tensors onto the CPU; `weights_only=True`, so nothing in the file is executed.

    Raises:
        CheckpointError: the bytes are no such file.
    """
    import torch

    try:
        return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:  # foreign bytes, as above
        raise CheckpointError(
            f"A checkpoint's tensors cannot be read ({_words(error)}); choose another one."
        ) from None


def _words(error: Exception) -> str:
    first = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first[:120]}" if first else type(error).__name__


def _pack(value: Any, arrays: dict[str, Any], where: str) -> Any:
    if value is None or isinstance(value, (bool, str)) or type(value) in (int, float):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.hasobject:
            raise TypeError(f"{where} is an array of objects, which a checkpoint cannot carry")
        if isinstance(value, np.generic):
            return {"$s": _store(np.asarray(value), arrays)}
        order = _memory_order(value)
        return (
            {"$a": _store(value, arrays)}
            if order is None
            else {"$v": [_store(value.transpose(order), arrays), order]}
        )
    if isinstance(value, (bytes, bytearray)):
        return {"$b": _store(np.frombuffer(bytes(value), dtype=np.uint8), arrays)}
    if isinstance(value, (int, float)):  # IntEnum and the like
        return int(value) if isinstance(value, int) else float(value)
    if isinstance(value, tuple):
        return {"$t": [_pack(inner, arrays, f"{where}[{index}]") for index, inner in enumerate(value)]}
    if isinstance(value, list):
        return [_pack(inner, arrays, f"{where}[{index}]") for index, inner in enumerate(value)]
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _pack(inner, arrays, f"{where}.{key}") for key, inner in value.items()}
        pairs = [
            [_pack(key, arrays, where), _pack(inner, arrays, f"{where}.{key}")]
            for key, inner in value.items()
        ]
        return {"$d": pairs}
    if type(value).__module__ == "torch" and hasattr(value, "detach"):
        return {"$n": _store(value.detach().cpu().numpy().copy(), arrays)}
    raise TypeError(f"{where} is a {type(value).__name__}, which a checkpoint cannot carry")


def _memory_order(array: Any) -> list[int] | None:
    """Returns the axes in the order of memory, where that is not the usual one; None otherwise.

    Image observations are transposed views, and a convolution rounds differently when its input lies otherwise in
    memory, so an array has to come back as it lay.
    """
    if array.flags.c_contiguous:
        return None
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    return order if array.transpose(order).flags.c_contiguous else None


def _store(array: Any, arrays: dict[str, Any]) -> str:
    name = str(len(arrays))
    arrays[name] = array
    return name


def _unpack(value: Any, arrays: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_unpack(inner, arrays) for inner in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (key, inner), *_ = value.items()
        if key == "$a":
            return arrays[inner]
        if key == "$v":
            return arrays[inner[0]].transpose(np.argsort(inner[1]))
        if key == "$n":
            import torch

            return torch.from_numpy(arrays[inner])
        if key == "$s":
            return arrays[inner][()]
        if key == "$b":
            return arrays[inner].tobytes()
        if key == "$t":
            return tuple(_unpack(one, arrays) for one in inner)
        if key == "$d":
            return {_hashable(_unpack(name, arrays)): _unpack(one, arrays) for name, one in inner}
    return {key: _unpack(inner, arrays) for key, inner in value.items()}


def _hashable(key: Any) -> Any:
    return key.item() if isinstance(key, np.generic) else key
