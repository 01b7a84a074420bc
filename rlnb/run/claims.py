"""One writer: attempt n of a run belongs to whoever creates `attempts/<n>` first."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import asdict, dataclass
from typing import Any

from rlnb.errors import Superseded
from rlnb.run.host import ProcessIdentity, utc_now
from rlnb.run.layout import RunLayout, read_json


@dataclass(frozen=True)
class Claim:
    """The right to publish for one attempt of one run."""

    layout: RunLayout
    number: int

    def holds(self) -> bool:
        """Says whether no newer attempt has been claimed on this machine."""
        return latest_attempt(self.layout) == self.number

    def check(self) -> None:
        """Raises Superseded when a newer attempt has been claimed."""
        latest = latest_attempt(self.layout)
        if latest == 0:
            raise Superseded(f"The run folder {self.layout.root} was removed; attempt {self.number} ends.")
        if latest != self.number:
            raise Superseded(f"Attempt {self.number} of {self.layout.id} was superseded by attempt {latest}.")


def latest_attempt(layout: RunLayout) -> int:
    """Returns the highest attempt that was claimed, 0 when none was."""
    try:
        return max((int(name) for name in os.listdir(layout.attempts) if name.isdigit()), default=0)
    except FileNotFoundError:
        return 0


def attempt_owner(layout: RunLayout, number: int) -> dict[str, Any] | None:
    """Returns what attempt `number` recorded of its owner, or None when it was never claimed."""
    return read_json(layout.attempt(number))


def claim(layout: RunLayout, number: int, *, rlnb_version: str, **more: Any) -> Claim:
    """Claims attempt `number` for this process.

    The claim is written whole under a private name and then linked to its own, which fails when
    the name exists: a reader never sees a torn claim, and two claimants never both succeed.

    Raises:
        Superseded: somebody else has claimed this or a newer attempt.
    """
    layout.attempts.mkdir(parents=True, exist_ok=True)
    if latest_attempt(layout) >= number:
        raise Superseded(f"Attempt {number} of {layout.id} is already taken.")
    record = {
        "attempt": number,
        **asdict(ProcessIdentity.of()),
        "time": utc_now(),
        "rlnb": rlnb_version,
        **more,
    }
    private = layout.attempts / f".{number}.{uuid.uuid4().hex}.tmp"
    try:
        with open(private, "x") as file:
            json.dump(record, file)
            file.flush()
            os.fsync(file.fileno())
        os.link(private, layout.attempt(number))
    except FileExistsError:
        raise Superseded(f"Attempt {number} of {layout.id} is already taken.") from None
    finally:
        private.unlink(missing_ok=True)
    return Claim(layout, number)
