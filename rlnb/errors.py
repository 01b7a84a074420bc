"""Every error rlnb raises on purpose, as one tree.

A message is one sentence for a person: what was wrong, with the value, and what to do next.
`UsageError` means the input was bad and nothing has started; the command line exits with 2.
"""

from __future__ import annotations

import difflib
import os
import sysconfig
import traceback
from collections.abc import Iterable, Iterator


class RlnbError(Exception):
    """Base of everything rlnb raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        """Returns what IPython shows below a cell: the sentence, and the user's own lines that led to it.

        The sentence says what to do; rlnb's insides would only hide it (`%debug` still opens them).
        """
        lines = [f"\x1b[31m{type(self).__name__}\x1b[0m: {self}"]
        return lines + [f"  {where}" for where in dict.fromkeys(_own_lines(self))]


def _own_lines(error: BaseException | None) -> Iterator[str]:
    """Yields the lines of the user's cells and modules in an error's traceback and in its causes'."""
    paths = sysconfig.get_paths()
    foreign = {os.path.dirname(__file__), *(paths[name] for name in ("stdlib", "purelib", "platlib"))}
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for frame in traceback.extract_tb(error.__traceback__):
            # IPython keeps each cell under a name of its own that means nothing to a person.
            cell = "ipykernel_" in frame.filename or "ipython-input" in frame.filename
            inside = any(frame.filename.startswith(folder + os.sep) for folder in foreign)
            if inside or (frame.filename.startswith("<") and not cell):
                continue
            file = "" if cell else f"{frame.filename}, "
            yield f"{file}line {frame.lineno}: {frame.line or ''}".rstrip(": ")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


class UsageError(RlnbError):
    """The request was wrong; nothing has started and nothing is lost."""


class DesignError(UsageError):
    """A reward or state design that cannot be applied."""


class ExpressionError(DesignError):
    """An expression that cannot be compiled or evaluated.

    Attributes:
        position: 0-based offset of the fault in the expression's text, or None.
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class DesignFileTaken(UsageError):
    """Another lab owns the design file; nothing was written."""


class DesignFileChanged(UsageError):
    """The design file was changed outside since it was read; nothing was written."""


def position_of(error: DesignError) -> int | None:
    """Returns where in an expression a fault stands, or None where the fault is of another kind."""
    return error.position if isinstance(error, ExpressionError) else None


class ExperimentError(UsageError):
    """An experiment's setting is unknown, mistyped or out of range."""


class EnvError(UsageError):
    """An environment that cannot be made or does not follow gymnasium's protocol."""


class CaptureError(UsageError):
    """The notebook could not be found or cannot be frozen as it stands."""


class ParameterError(UsageError):
    """A parameter is unknown to the parameters cell or cannot be carried exactly."""


class SecretError(UsageError):
    """A secret would have been written down."""


class FingerprintMismatch(UsageError):
    """The job's Experiment is not the one that was promoted."""


class MissingExtra(UsageError):
    """An optional dependency is needed that is not installed."""

    def __init__(self, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs packages that are not installed; run: pip install 'rlnb[{extra}]'"
        )
        self.extra = extra


class StoreError(RlnbError):
    """An object store or folder refused or failed an operation."""


class StoreUnreachable(StoreError):
    """The store does not answer now; the same call may work later."""


class StoreDenied(StoreError):
    """The store answered and refused: credentials, permissions or addressing."""


class StoreConflict(StoreError):
    """An exclusive create found the name taken."""


class StoreFull(StoreError):
    """No space (or quota) is left in the store."""


class RunError(RlnbError):
    """A run folder cannot be read or acted upon."""


class RunNotFound(RunError):
    """No run has that id, name or address."""


class RunFormatError(RunError):
    """A file of a run folder is not of a format this version reads."""


class CheckpointError(RunError):
    """No valid checkpoint is where one was asked for."""


class Superseded(RunError):
    """A newer attempt owns the run; this one may publish nothing more."""


class JobFailed(RlnbError):
    """A job ended without a training record.

    Attributes:
        job: the handle of the failed job (`rlnb.Job`), or None.
    """

    def __init__(self, message: str, job: object | None = None) -> None:
        super().__init__(message)
        self.job = job


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Returns the choice that a person who wrote `word` most likely meant, or None; case does not matter."""
    folded = {choice.casefold(): choice for choice in choices}
    found = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Returns " Did you mean 'x'?" for the nearest choice, or "" when none is near."""
    found = nearest(word, choices)
    return f" Did you mean {found!r}?" if found else ""
