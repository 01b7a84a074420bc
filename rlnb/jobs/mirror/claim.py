"""The mirror's side of "one writer": the claim on an attempt in the store, checked before publishing."""

from __future__ import annotations

import time

from rlnb.errors import StoreConflict, StoreError, StoreUnreachable, Superseded
from rlnb.run.claims import latest_attempt
from rlnb.run.layout import RunLayout
from rlnb.run.storage import Storage, StoreMissing

#: Seconds for which a look at the store's claims is believed. Two machines are never closer than that:
#: the later one reads the run, claims, and starts a kernel before it has anything to publish.
BELIEVED = 1.0


class Replaced(Exception):
    """This machine itself has started a newer attempt, whose own mirror goes on."""


class StoreClaim:
    """Attempt n in the store, taken by exclusive create where the store honours it.

    Args:
        layout: the working copy, which holds the same claim.
        storage: the run's folder in the store.
        number: the attempt.
        exclusive: whether the store was seen to honour create-only; None when nobody has tried.
    """

    def __init__(self, layout: RunLayout, storage: Storage, number: int, *, exclusive: bool | None) -> None:
        self.layout, self.storage, self.number = layout, storage, number
        self._exclusive = exclusive
        self._taken = False
        self._checked = float("-inf")

    def check(self) -> None:
        """Takes the claim if need be and makes sure that nobody has a newer one.

        Raises:
            Superseded: somebody else runs this or a newer attempt.
            Replaced: this machine does.
            StoreError: the store cannot tell.
        """
        if latest_attempt(self.layout) > self.number:
            raise Replaced
        if self._taken and time.monotonic() - self._checked < BELIEVED:
            return
        names = [entry.name.partition("/")[2] for entry in self.storage.list("attempts/")]
        newest = max((int(name) for name in names if name.isdecimal()), default=0)
        if newest > self.number:
            self._lose(newest)
        if not self._taken:
            self._take(present=str(self.number) in names)
        elif newest < self.number:
            self._taken = False
            raise StoreUnreachable(
                f"The claim of attempt {self.number} is gone from {self.storage.url}: somebody emptied the store; "
                "everything is published anew."
            )
        self._taken, self._checked = True, time.monotonic()

    def _take(self, *, present: bool) -> None:
        name = f"attempts/{self.number}"
        ours = self.layout.attempt(self.number).read_bytes()
        if not present:
            try:
                self._create(name, ours)
            except StoreConflict:
                pass  # perhaps by ourselves: the answer to our own request was lost
        try:
            theirs = self.storage.read(name)
        except StoreMissing as error:
            raise StoreError(f"{self.storage.url} did not keep {name}, which was just written.") from error
        if theirs == ours:
            return
        if not ours.startswith(theirs):
            self._lose(self.number)
        self.storage.write(name, ours)  # torn by a kill, on a file system that cannot rename

    def _create(self, name: str, ours: bytes) -> None:
        if self._exclusive is not False:
            try:
                self.storage.write(name, ours, exclusive=True)
                return
            except StoreConflict:
                raise
            except StoreError as error:
                if self._exclusive or type(error) is not StoreError:
                    raise
        self.storage.write(name, ours)

    def _lose(self, newest: int) -> None:
        raise Superseded(
            f"Attempt {newest} of {self.layout.id} is run by somebody else according to {self.storage.url}; "
            f"attempt {self.number} publishes nothing more."
        )
