"""Which bundles may be executed: those promoted by this user on this machine, and those trusted by name.

Reading a run never runs code; resuming, forking and verifying it do. The local index keeps the sha256 of
every bundle that was promoted here, so that a folder somebody else has written (or changed) is not
executed by accident.
"""

from __future__ import annotations

import hashlib

from rlnb import settings
from rlnb.errors import UsageError
from rlnb.jobs.capture.bundle import bundle_sha
from rlnb.run.checkpoints import MANIFEST
from rlnb.run.index import Index
from rlnb.run.layout import RunLayout
from rlnb.run.record import read_record


def require_trust(layout: RunLayout, *, trust: bool = False, restored: bool = False) -> None:
    """Makes sure that a run's bundle may be executed, and that a pickled environment of it may be restored.

    Args:
        layout: the run.
        trust: the user's word for it; it is remembered, so that the next attempt needs none.
        restored: whether a checkpoint that came from a store is going to be restored. A bundle that was
            promoted here vouches for itself by its sha256; the states of environments that lie in the store
            beside it are pickles that nobody vouches for.

    Raises:
        UsageError: the bundle, or the checkpoints, are not in the index and `trust` is not given.
        RunFormatError: the bundle is incomplete or a file differs from its manifest.
    """
    index = Index()
    asked = [(bundle_sha(layout), _foreign_bundle)]
    states = _checkpoints_sha(layout) if restored else None
    if states is not None:
        asked.append((states, _foreign_checkpoints))
    for sha, words in asked:
        if index.trusted(sha):
            continue
        if not trust:
            raise UsageError(words(layout))
        index.trust(sha)


def is_pulled(layout: RunLayout) -> bool:
    """Whether a folder is this machine's copy of a run that lies in a store."""
    return layout.root.is_relative_to(settings.cache_dir())


def _checkpoints_sha(layout: RunLayout) -> str | None:
    """Returns one sha256 for all manifests, which hold the sha256 of everything else; None without any."""
    digest, found = hashlib.sha256(), False
    for _, _, folder in layout.checkpoint_folders():
        if (folder / MANIFEST).is_file():
            digest.update(
                f"{folder.name}\0".encode() + hashlib.sha256((folder / MANIFEST).read_bytes()).digest()
            )
            found = True
    return digest.hexdigest() if found else None


def _foreign_bundle(layout: RunLayout) -> str:
    owner = read_record(layout).owner
    return (
        f"The bundle of {layout.id} (by {owner.get('user', '?')} on {owner.get('host', '?')}) was not promoted on "
        f"this machine, and executing it runs its code; look at {layout.bundle_notebook} and then say --trust "
        "(in Python: trust=True)."
    )


def _foreign_checkpoints(layout: RunLayout) -> str:
    return (
        f"The checkpoints of {layout.id} come from its store, and restoring the environments in them unpickles "
        "what lies there; if only people you trust can write to that store, say --trust (in Python: trust=True)."
    )
