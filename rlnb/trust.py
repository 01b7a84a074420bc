"""Which bundles may be executed: those promoted by this user on this machine, and those trusted by name.

Reading a run never runs code; resuming, forking and verifying it do. The local index keeps the sha256 of
every bundle that was promoted here, so that a folder somebody else has written (or changed) is not
executed by accident.
"""

from __future__ import annotations

from rlnb.errors import UsageError
from rlnb.jobs.bundle import bundle_sha
from rlnb.run.index import Index
from rlnb.run.layout import RunLayout
from rlnb.run.record import read_record


def require_trust(layout: RunLayout, *, trust: bool = False) -> None:
    """Makes sure that a run's bundle may be executed.

    Args:
        layout: the run.
        trust: the user's word for it; it is remembered, so that the next attempt needs none.

    Raises:
        UsageError: the bundle is not in the index and `trust` is not given.
        RunFormatError: the bundle is incomplete or a file differs from its manifest.
    """
    sha = bundle_sha(layout)
    index = Index()
    if index.trusted(sha):
        return
    if not trust:
        owner = read_record(layout).owner
        raise UsageError(
            f"The bundle of {layout.id} (by {owner.get('user', '?')} on {owner.get('host', '?')}) was not promoted on "
            f"this machine, and executing it runs its code; look at {layout.bundle_notebook} and then say --trust "
            "(in Python: trust=True)."
        )
    index.trust(sha)
