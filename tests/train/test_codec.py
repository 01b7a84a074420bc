"""Trees as bytes, without pickle."""

from __future__ import annotations

import math
from collections import OrderedDict

import numpy as np
import pytest
import torch

from rlnb.errors import CheckpointError
from rlnb.train.codec import decode_tensors, decode_tree, encode_tensors, encode_tree


def test_a_tree_comes_back_equal():
    tree = {
        "none": None, "flag": True, "big": 2**90, "nan": math.nan, "inf": -math.inf, "text": "ä", "bytes": b"\0\1",
        "tuple": (1, [2.5, "x"]), "array": np.arange(6, dtype=np.float32).reshape(2, 3), "scalar": np.float64(0.1),
        "keys": {1: "a", (2, 3): "b", "$a": 0}, "empty": np.zeros((0, 3)), "tensor": torch.arange(3),
    }  # fmt: skip
    back = decode_tree(encode_tree(tree))
    assert math.isnan(back.pop("nan"))
    assert np.array_equal(back["array"], tree["array"])
    assert back["array"].dtype == np.float32
    assert back["empty"].shape == (0, 3)
    assert isinstance(back["scalar"], np.float64)
    assert torch.equal(back["tensor"], tree["tensor"])
    for key in ("none", "flag", "big", "inf", "text", "bytes", "tuple", "scalar", "keys"):
        assert back[key] == tree[key], key


def test_equal_trees_give_equal_bytes():
    assert encode_tree({"a": np.ones(3)}) == encode_tree({"a": np.ones(3)})


def test_what_cannot_be_carried_is_named():
    with pytest.raises(TypeError, match=r"tree\.a\[1\] is a object, which a checkpoint cannot carry"):
        encode_tree({"a": [1, object()]})
    with pytest.raises(TypeError, match=r"tree\.a is an array of objects"):
        encode_tree({"a": np.array([None])})


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("code was run",))


def test_loading_never_runs_code():
    import io
    import pickle

    with pytest.raises(CheckpointError, match="A checkpoint's state cannot be read"):
        decode_tree(pickle.dumps(Evil()))
    file = io.BytesIO()
    np.savez(file, tree=np.array([Evil()], dtype=object))
    with pytest.raises(CheckpointError, match="A checkpoint's state cannot be read"):
        decode_tree(file.getvalue())
    file = io.BytesIO()
    torch.save({"a": Evil()}, file)
    with pytest.raises(CheckpointError, match="A checkpoint's tensors cannot be read"):
        decode_tensors(file.getvalue())


def test_tensors_come_back():
    state = OrderedDict(a=torch.ones(2), b=[{"lr": 0.1, "params": [0]}])
    back = decode_tensors(encode_tensors(state))
    assert torch.equal(back["a"], state["a"])
    assert back["b"] == state["b"]


def test_an_array_comes_back_as_it_lay_in_memory():
    image = np.arange(2 * 4 * 5 * 3).reshape(2, 4, 5, 3).transpose(0, 3, 1, 2)
    back = decode_tree(encode_tree({"image": image, "every other": np.arange(10)[::2]}))
    assert np.array_equal(back["image"], image)
    assert back["image"].strides == image.strides
    assert np.array_equal(back["every other"], [0, 2, 4, 6, 8])
