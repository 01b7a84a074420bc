"""A lab's design file: read, saved whole, kept in versions, owned by one lab.

lander.yaml             the design, as `Design.from_yaml` reads it
lander.lab/versions/    what it was before (`design_versions`)
lander.lab/owner.json   whose it is (`design_owner`)
lander.lab/lab.json     what belongs to the lab and not to the design (`lab_notes`)
lander.lab/episodes/    the recordings it is shaped on
"""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import re
import threading
import time
from dataclasses import replace
from pathlib import Path
from stat import S_ISREG

from rlnb.design.design import Design
from rlnb.design.term import Term
from rlnb.design.yamltext import read_yaml
from rlnb.errors import DesignError, DesignFileChanged, DesignFileTaken, UsageError
from rlnb.run.atomic import sweep, write_atomic
from rlnb.run.design_owner import Owner, Ownership, read_owner
from rlnb.run.design_versions import Version, Versions
from rlnb.run.lab_notes import LabNotes, read_notes, write_notes

_HEADER = "# Written by rlnb.Lab; it notices when you edit this file, but keeps no comments.\n"


def default_design_path(env_label: str) -> Path:
    """Returns where a lab keeps its design when it is not told: `LunarLander-v3` → `lunarlander-v3.yaml`."""
    slug = re.sub(r"[^\w.-]+", "-", env_label.lower()).strip("-._")
    return Path(f"{slug or 'design'}.yaml")


class DesignFile:
    """One design file, as one lab sees it. Its methods may be called from any thread.

    Args:
        path: ends in .yaml or .yml; need not exist yet.

    Raises:
        UsageError: the path is none of a design file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser().absolute()
        if self.path.suffix not in (".yaml", ".yml") or not _may_be_a_file(self.path):
            raise UsageError(
                f"The design file {str(path)!r:.200} must be a file that ends in .yaml; write design='lander.yaml'."
            )
        self.folder = self.path.with_suffix(".lab")
        self._versions = Versions(self.folder / "versions", self.path.name)
        self._ownership = Ownership(self.folder)
        self._read_only: Owner | None = None  # whose the file is, once it is not ours
        self._owned = False
        self._sha: str | None = None  # of what was last read or written; None: nothing was there
        self._stat: tuple[int, ...] | None = None
        self._fingerprint: str | None = None
        self._guard = threading.RLock()
        self.notes_said: str | None = None

    # reading and writing ---------------------------------------------------------------------------------

    def read(self) -> Design | None:
        """Returns the design, None where there is no file yet; its Python terms are not bound.

        Raises:
            DesignError: the file cannot be read, with the place.
        """
        with self._guard:
            try:
                stat, data = _signature(self.path), self.path.read_bytes()
            except FileNotFoundError:
                self._sha = self._stat = self._fingerprint = None
                return None
            except OSError as error:
                raise DesignError(f"The design file {str(self.path)!r} cannot be read: {error}.") from None
            design = self._parse(data)
            self._sha, self._stat, self._fingerprint = _sha(data), stat, design.fingerprint()
            return design

    def save(self, design: Design, *, over: bool = False) -> bool:
        """Writes the design, whole and durably.

        Args:
            over: write although somebody else has changed the file; theirs is kept as a version.

        Returns:
            Whether something was written; False when the file says just that already.

        Raises:
            DesignFileTaken: another lab has the file.
            DesignFileChanged: it was changed since this object read or wrote it.
            OSError: it cannot be written.
        """
        with self._guard:
            self._require_mine()
            theirs = self._others_content()
            if theirs is not None:
                if not over:
                    raise DesignFileChanged(self._how_changed())
                self._put_aside(theirs)
            elif self._fingerprint == design.fingerprint() and self.path.is_file():
                return False
            data = (_HEADER + design.to_yaml()).encode()
            # A link to a file elsewhere stays a link.
            write_atomic(Path(os.path.realpath(self.path)), data)
            self._sha, self._stat = _sha(data), _signature(self.path)
            self._fingerprint = design.fingerprint()
            return True

    def changed_outside(self) -> bool:
        """Whether the file has another content than was last read or written here; cheap.

        A file that was deleted does not count: the next save writes it anew.
        """
        with self._guard:
            return self._others_content(cheap=True) is not None

    # versions --------------------------------------------------------------------------------------------

    def versions(self) -> list[Version]:
        """Returns the kept versions, oldest first."""
        with self._guard:
            return self._versions.all()

    def keep(self, design: Design, summary: str) -> Version | None:
        """Keeps a version; None when it equals the newest one.

        Raises:
            DesignFileTaken: another lab has the file.
            OSError: it cannot be written.
        """
        with self._guard:
            self._require_mine()
            return self._versions.keep(design, summary)

    def read_version(self, number: int) -> Design:
        """Returns a version's design; its Python terms are not bound.

        Raises:
            DesignError: there is no such version.
        """
        return unbound(self._versions.read(number))

    # notes -----------------------------------------------------------------------------------------------

    def read_notes(self) -> LabNotes:
        """Returns the lab's notes; `notes_said` holds a sentence when something of them was damaged."""
        notes, self.notes_said = read_notes(self.folder / "lab.json")
        return notes

    def write_notes(self, notes: LabNotes) -> bool:
        """Writes the lab's notes; False when nothing changed.

        Raises:
            DesignFileTaken: another lab has the file.
            OSError: it cannot be written.
        """
        with self._guard:
            self._require_mine()
            return write_notes(self.folder / "lab.json", notes)

    # ownership -------------------------------------------------------------------------------------------

    def claim(self, notebook: str = "", cell: str = "") -> Owner | None:
        """Takes the file for this lab: afterwards no other may write it.

        Returns:
            None when this lab has it now. Else its living owner: then nothing can be saved here.

        Raises:
            UsageError: the lab's folder cannot be written.
        """
        with self._guard:
            try:
                self._read_only = self._ownership.claim(notebook, cell)
            except OSError as error:
                raise UsageError(
                    f"The lab's folder {self.folder} cannot be written ({error.strerror}); give the lab a design "
                    "file elsewhere, with design=."
                ) from None
            self._owned = self._read_only is None
            if self._owned:
                written = Path(os.path.realpath(self.path))
                sweep(written.parent, glob.escape(written.name))
                for folder in (self.folder, self.folder / "versions"):
                    sweep(folder)
            return self._read_only

    def take_over(self, notebook: str = "", cell: str = "") -> None:
        """Takes the file from the lab that has it, which can then save no more. Read it again afterwards.

        Raises:
            OSError: the lab's folder cannot be written.
        """
        with self._guard:
            self._ownership.take_over(notebook, cell)
            self._read_only, self._owned = None, True

    def release(self) -> None:
        """Gives the file back."""
        with self._guard:
            self._ownership.release()
            self._owned = False

    @property
    def owner(self) -> Owner | None:
        """The other lab that has the file, as far as is known here; None when this one may write."""
        with self._guard:
            if self._owned and not self._ownership.holds():
                self._owned = False
                self._read_only = read_owner(self.folder)
            return self._read_only

    # ------------------------------------------------------------------------------------------------------

    def _require_mine(self) -> None:
        if (owner := self.owner) is not None:
            raise DesignFileTaken(
                f"{self.path.name} belongs to {owner}, so nothing is saved here; close that lab, or take the "
                "file over."
            )

    def _parse(self, data: bytes) -> Design:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise DesignError(f"The design file {self.path} cannot be read: {error}.") from None
        values = read_yaml(text, self.path.name)
        return unbound(Design.from_dict({} if values is None else values, where=self.path.name))

    def _others_content(self, *, cheap: bool = False) -> bytes | None:
        """What the file holds, if that is not what was last read or written here."""
        try:
            stat = _signature(self.path)
            if cheap and stat == self._stat:
                return None
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        if _sha(data) != self._sha:
            return data
        self._stat = stat
        return None

    def _how_changed(self) -> str:
        if self._sha is None:
            return (
                f"{self.path.name} is there already and was not read; read it first, or save over it "
                "(what it holds now is kept as a version)."
            )
        at = time.strftime("%H:%M:%S", time.localtime(self.path.stat().st_mtime))
        return (
            f"{self.path.name} was changed at {at} by an editor or another program since this lab read it; "
            "load it again, or save over it (what it holds now is kept as a version)."
        )

    def _put_aside(self, theirs: bytes) -> None:
        try:
            self._versions.keep(self._parse(theirs), "written by another program")
        except DesignError:  # no design, but still somebody's work
            write_atomic(self.folder / f"replaced-{_sha(theirs)[:8]}.yaml.damaged", theirs)


def unbound(design: Design) -> Design:
    """Returns a design without the functions that reading it may have found."""
    terms = [
        replace(part, function=None) if isinstance(part, Term) and part.python else part
        for part in design.reward.terms
    ]
    return replace(design, reward=replace(design.reward, terms=terms))


def _may_be_a_file(path: Path) -> bool:
    """Whether a path names a file, or may name one; False for a folder, a pipe and a name that no disk takes."""
    try:
        return S_ISREG(os.stat(path).st_mode)
    except ValueError:  # a NUL in the name
        return False
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _signature(path: Path) -> tuple[int, ...]:
    stat = os.stat(path)
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
