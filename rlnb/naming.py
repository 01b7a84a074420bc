"""Ids of runs: readable, sortable by day, and nobody else's."""

from __future__ import annotations

import re
import secrets

from rlnb import settings
from rlnb.run.host import utc_now
from rlnb.run.layout import RunLayout


def new_run(name: str) -> RunLayout:
    """Makes an empty working copy `exp-<date>-<name>-<4 hex>` that no other run has.

    Args:
        name: the experiment's name; its letters and digits become part of the id.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "run"
    parent = settings.runs_dir()
    parent.mkdir(parents=True, exist_ok=True)
    while True:
        root = parent / f"exp-{utc_now()[:10]}-{slug}-{secrets.token_hex(2)}"
        try:
            root.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return RunLayout(root)
