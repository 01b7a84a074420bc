"""Keeps a workbench's design on disk: saved a moment after each edit, with versions, by one owner.

Nothing is written before the first edit: until then the code's own defaults may still change.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rlnb.design.describe import design_diff
from rlnb.design.design import Design
from rlnb.errors import DesignFileChanged, RlnbError, UsageError
from rlnb.run.autosave import Autosave
from rlnb.run.design_file import DesignFile
from rlnb.run.design_owner import Owner
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.listeners import Event

#: seconds without an edit after which it is saved and checked
DELAY = 0.35


class Keeper:
    """One lab's hold on its design file.

    Args:
        bench: whose design is kept.
        file: where.

    Attributes:
        conflict: the file was changed by somebody else and nobody has said yet which one counts.
    """

    def __init__(self, bench: Workbench, file: DesignFile) -> None:
        self._bench, self._file = bench, file
        self.conflict = False
        self.closed = False
        self._saved: Design = bench.design
        self._saved_notes = bench.notes
        self._notebook = os.environ.get("JPY_SESSION_NAME", "")
        file.claim(self._notebook)
        self._autosave = Autosave(self._rest, delay=DELAY, on_error=self._say_error)
        self._end = bench.listeners.add(self._hear)
        self._say_owner()
        self._autosave.touch()  # the first checks, in the background

    @property
    def owner(self) -> Owner | None:
        """The lab that has the file open and is not this one; None when this one may write."""
        try:
            return self._file.owner
        except OSError:
            return None  # the folder cannot be used, and so by nobody; saving says it

    @property
    def question(self) -> str:
        """What a person has to decide, as a sentence; "" when there is nothing."""
        if self.owner is not None:
            return f"{self._file.path.name} is open in {self.owner}; changes here are not saved."
        return self._bench.file_words if self.conflict else ""

    @property
    def versions(self) -> list[tuple[int, str]]:
        """Returns number and words of each kept version, newest first."""
        return [
            (version.number, f"{version.time:%d %b %H:%M}: {version.summary}")
            for version in reversed(self._file.versions())
        ]

    @property
    def pending(self) -> bool:
        """Whether something was changed that is not on disk."""
        return self._bench.design != self._saved or self._bench.notes != self._saved_notes

    def flush(self, *, yields: bool = False) -> None:
        """Saves now, so that the file holds the design as it stands.

        Where nothing is to be saved, what somebody else has written is taken in.

        Args:
            yields: where somebody else has changed the file, theirs stays and this lab's design is kept as a
                version.

        Raises:
            UsageError: another lab has the file, it was changed by somebody else, or it cannot be written;
                nothing is written.
        """
        if self.closed:
            return
        if not self.pending:
            with self._disk():
                changed = self._file.changed_outside()
            if changed:
                self.load_theirs()
            return
        if self.owner is not None:
            raise UsageError(
                f"{self._file.path.name} is open in {self.owner}, so this lab's changes are not "
                "saved; press 'Take over' in this one, or close the other."
            )
        try:
            self._save()
        except DesignFileChanged:
            if not yields:
                raise
            with self._disk():
                self._file.keep(self._bench.design, "not saved, as the file was changed meanwhile")

    def take_over(self) -> None:
        """Makes this lab the owner; the other one is told when it next saves.

        What the other one has saved meanwhile is not written over: where this lab was changed, too, a person
        has to decide, and else it is taken in.
        """
        with self._disk():
            self._file.take_over(self._notebook)
            changed = self._file.changed_outside()
        if changed and not self.pending:
            self.load_theirs()
        else:
            self._say_owner()
        self._autosave.touch()

    def keep_mine(self) -> None:
        """Writes this lab's design over what somebody else has written; theirs stays as a version."""
        self._save(over=True)

    def load_theirs(self) -> None:
        """Takes the design that somebody else has written; undo brings this lab's back.

        Raises:
            DesignError: it does not work on the episodes.
        """
        theirs = self._file.read()
        if theirs is None:
            raise UsageError(f"{self._file.path} is gone; press 'Keep mine' to write it again.")
        with self._bench.lock:
            try:
                self._bench.edit(
                    reward=theirs.reward, state=theirs.state, what=f"load {self._file.path.name}"
                )
            except RlnbError:
                self.conflict = True  # it stays on disk until 'Keep mine', and is a version after that
                with self._disk():
                    self._file.keep(theirs, f"{self._file.path.name} as somebody else wrote it")
                raise
            self.conflict, self._saved = False, theirs
            self._say_owner()

    def restore(self, number: int) -> None:
        """Goes to an earlier version; undo comes back."""
        version = self._file.read_version(number)
        self._bench.edit(reward=version.reward, state=version.state, what=f"version {number}")

    def close(self) -> None:
        """Saves what is pending and lets the file go."""
        if self.closed:
            return
        self._end()
        self._autosave.close()
        words = (
            "This lab is closed, since its cell was run again or it was told to: changes here are not saved."
        )
        try:
            if self.pending:
                self.flush()
        except RlnbError as error:
            words = f"{error} {words}"
        self.closed = True
        with suppress(OSError):
            self._file.release()
        self._bench.say(words)

    def _hear(self, event: Event) -> None:
        if event in (Event.REWARD, Event.STATE, Event.EPISODES, Event.NOTES):
            self._autosave.touch()

    def _rest(self) -> None:
        """Saves and checks, in the background."""
        with self._bench.lock:
            if self.pending and self.owner is not None:
                self._say_owner()
            elif self.pending and not self.conflict:
                try:
                    self._save()
                except DesignFileChanged as error:
                    self.conflict = True
                    self._bench.say(str(error))
                except RlnbError as error:
                    self._bench.say(str(error))
        self._bench.settle()

    def _say_error(self, error: Exception) -> None:
        self._bench.say(f"The design could not be checked: {type(error).__name__}: {error}")

    @contextmanager
    def _disk(self) -> Iterator[None]:
        """Makes a sentence of what a disk or a folder refuses."""
        try:
            yield
        except OSError as error:
            raise UsageError(
                f"{self._file.path.name} cannot be saved ({error.strerror or error}: "
                f"{error.filename or self._file.path}); the changes are kept in this lab only, and the next one "
                "tries again."
            ) from error

    def _save(self, *, over: bool = False) -> None:
        with self._bench.lock, self._disk():
            design, notes = self._bench.design, self._bench.notes
            if design != self._saved or over:
                what = "; ".join(design_diff(self._saved, design)[:3]) or "as it was"
                self._file.save(design, over=over)
                self._file.keep(design, what)
                self._saved = design
            if notes != self._saved_notes:
                self._file.write_notes(notes)
                self._saved_notes = notes
            self.conflict = False
            self._bench.say(f"saved {time.strftime('%H:%M:%S')}")

    def _say_owner(self) -> None:
        if self.owner is not None:
            words = self.question
        elif self.pending:
            words = "not saved yet"
        elif self._file.path.exists():
            words = "as on disk"
        else:
            words = "the code's defaults; written with the first change"
        self._bench.say(" ".join(part for part in (words, self._file.notes_said) if part))
