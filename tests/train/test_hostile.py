"""Checkpoints that somebody has damaged or forged: never executed, reported, skipped."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import torch

from rlnb.errors import CheckpointError
from rlnb.run.checkpoints import MANIFEST, checkpoints
from rlnb.run.events import read_events
from rlnb.train.codec import decode_tensors, decode_tree, encode_tensors, encode_tree
from rlnb.train.load import load_model, load_weights

PPO = {"env": "CartPole-v1", "algo": "PPO", "n_envs": 2, "n_steps": 32, "batch_size": 32, "n_epochs": 1,
       "total_timesteps": 256, "checkpoint": {"every_steps": 64}}  # fmt: skip

DQN = {"env": "CartPole-v1", "algo": "DQN", "learning_starts": 20, "batch_size": 8, "total_timesteps": 200,
       "policy_kwargs": {"net_arch": [8]}, "checkpoint": {"every_steps": 50}}  # fmt: skip


class Bomb:
    """Unpickling it makes a folder."""

    def __init__(self, trap):
        self.trap = str(trap)

    def __reduce__(self):
        return os.mkdir, (self.trap,)


def bombs(trap):
    """Files that run code in a careless reader."""
    arrays, tensors = io.BytesIO(), io.BytesIO()
    np.savez(arrays, tree=np.array([Bomb(trap)], dtype=object))
    torch.save({"policy": Bomb(trap)}, tensors)
    return {"plain": pickle.dumps(Bomb(trap)), "npz": arrays.getvalue(), "torch": tensors.getvalue()}


def forge(checkpoint, name, data):
    """Puts other bytes into a checkpoint, and a manifest that vouches for them."""
    checkpoint.path(name).write_bytes(data)
    manifest = json.loads((checkpoint.folder / MANIFEST).read_text())
    for entry in manifest["files"]:
        if f"/{entry['name']}".endswith("/" + name):
            entry |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (checkpoint.folder / MANIFEST).write_text(json.dumps(manifest))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    from rlnb.run.layout import RunLayout
    from tests.train.conftest import Trial

    run = Trial(RunLayout(tmp_path_factory.mktemp("whole") / "run"), PPO)
    return run.attempt()


@pytest.mark.parametrize("kind", ["plain", "npz", "torch"])
@pytest.mark.parametrize("name", ["state.npz", "tensors.pt", "envs.npz.z"])
def test_a_pickle_that_the_manifest_vouches_for_is_not_executed(trial, tmp_path, whole, name, kind):
    run, trap = trial(**PPO), tmp_path / "trap"
    run.suspended(150)
    newest = checkpoints(run.layout)[-1]
    forge(newest, name, bombs(trap)[kind])
    record = run.attempt()
    assert not trap.exists()
    assert record["weights_sha256"] == whole["weights_sha256"]
    said = [event.message for event in read_events(run.layout) if event.kind == "checkpoint_damaged"]
    assert len(said) == 1
    assert said[0].startswith(f"The checkpoint {newest.folder.name} is skipped: A checkpoint's ")


def test_a_replay_chunk_that_the_manifest_vouches_for_is_not_executed(trial, tmp_path):
    run, trap = trial(**DQN), tmp_path / "trap"
    run.suspended(150)
    newest = checkpoints(run.layout)[-1]
    chunk = [entry["name"] for entry in newest.files if entry["name"].startswith("chunks/")][-1]
    forge(newest, chunk, bombs(trap)["npz"])
    record = run.attempt()
    assert not trap.exists()
    assert record["weights_sha256"] == trial(**DQN).attempt()["weights_sha256"]
    said = [event.message for event in read_events(run.layout) if event.kind == "checkpoint_damaged"]
    assert said
    assert said[0].startswith(
        f"The checkpoint {newest.folder.name} is skipped: A checkpoint's state cannot be read"
    )


@pytest.mark.parametrize("kind", ["plain", "npz", "torch"])
def test_loading_a_model_executes_nothing(trial, tmp_path, kind):
    run, trap = trial(**PPO), tmp_path / "trap"
    run.suspended(100)
    for name in ("state.npz", "tensors.pt"):
        forge(checkpoints(run.layout)[-1], name, bombs(trap)[kind])
        with pytest.raises(CheckpointError, match="cannot be read .* choose another"):
            load_weights(run.layout, "latest")
        with pytest.raises(CheckpointError, match="cannot be read .* choose another"):
            load_model(run.layout, "latest")
    assert not trap.exists()


@pytest.mark.parametrize("change", [
    {"files": [{"name": "../../../../etc/hostname", "bytes": 1, "sha256": ""}]},
    {"files": [{"name": "/etc/hostname", "bytes": 1, "sha256": ""}]},
    {"files": [{"bytes": 1}]}, {"files": ["state.npz"]}, {"files": 7}, {"files": None},
    {"files": [{"name": "x", "bytes": float("inf"), "sha256": ""}]},
    {"time": []}, {"return_mean": "high"}, {"number": "first"}, {"versions": 3}, {"format": "one"}, {"format": 99},
])  # fmt: skip
def test_a_forged_manifest_is_reported_and_skipped(trial, whole, change):
    run = trial(**PPO)
    run.suspended(150)
    path = checkpoints(run.layout)[-1].folder / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert run.attempt()["weights_sha256"] == whole["weights_sha256"]
    assert [event.kind for event in read_events(run.layout)].count("checkpoint_damaged") == 1


def test_a_manifest_that_nests_without_end_is_reported_and_skipped(trial, whole):
    run = trial(**PPO)
    run.suspended(150)
    (checkpoints(run.layout)[-1].folder / MANIFEST).write_text("[" * 100_000)
    assert run.attempt()["weights_sha256"] == whole["weights_sha256"]


def test_a_link_is_not_followed(trial, tmp_path, whole):
    run = trial(**PPO)
    run.suspended(150)
    tensors = checkpoints(run.layout)[-1].path("tensors.pt")
    outside = tensors.rename(tmp_path / "outside.pt")
    tensors.symlink_to(outside)  # the very bytes, but somewhere else
    assert run.attempt()["weights_sha256"] == whole["weights_sha256"]
    said = [event.message for event in read_events(run.layout) if event.kind == "checkpoint_damaged"]
    assert "is a symbolic link" in said[0]


@pytest.mark.parametrize(("encode", "decode"), [(encode_tree, decode_tree), (encode_tensors, decode_tensors)])
def test_truncated_at_every_length_is_one_sentence(encode, decode):
    data = encode({"a": torch.arange(3.0), "n": [1, 2]})
    for length in range(len(data)):
        with pytest.raises(CheckpointError, match=r"cannot be read \(.*\); choose another one\."):
            decode(data[:length])


def test_an_archive_that_claims_to_be_huge_is_refused():
    file = io.BytesIO()
    header = (
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999,), }".ljust(117)
        + b"\n"
    )
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("tree.npy", header)
    with pytest.raises(CheckpointError, match="cannot be read"):
        decode_tree(file.getvalue())
