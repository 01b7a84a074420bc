"""Keeps a workbench's design on disk: saved a moment after each edit, with versions, by one owner.

Nothing is written before the first edit: until then the code's own defaults may still change.
"""

from __future__ import annotations

import os
import time

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
        self._autosave = Autosave(self._rest, delay=DELAY)
        self._end = bench.listeners.add(self._hear)
        self._say_owner()
        self._autosave.touch()  # the first checks, in the background

    @property
    def owner(self) -> Owner | None:
        """The lab that has the file open and is not this one; None when this one may write."""
        return self._file.owner

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

    def flush(self) -> None:
        """Saves now.

        Raises:
            UsageError: another lab has the file, or it was changed by somebody else; nothing is written.
        """
        if not self.pending or self.closed:
            return
        if self.owner is not None:
            raise UsageError(
                f"{self._file.path.name} is open in {self.owner}, so this lab's changes are not "
                "saved; press 'Take over' in this one, or close the other."
            )
        self._save()

    def take_over(self) -> None:
        """Makes this lab the owner; the other one is told when it next saves.

        What the other one has saved meanwhile is not written over: where this lab was changed, too, a person
        has to decide, and else it is taken in.
        """
        self._file.take_over(self._notebook)
        if not self.pending and self._file.changed_outside():
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
        try:
            self.flush()
        except RlnbError as error:
            self._bench.say(str(error))
        self.closed = True
        self._file.release()
        self._bench.say(
            "This lab is closed, since its cell was run again or it was told to: changes here are not saved."
        )

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
                except (RlnbError, OSError) as error:
                    self._bench.say(f"{self._file.path.name} could not be saved: {error}")
        self._bench.settle()

    def _save(self, *, over: bool = False) -> None:
        with self._bench.lock:
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
