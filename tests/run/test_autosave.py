"""Autosave: one save for many touches, none lost, errors told once and tried again."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from rlnb.run.autosave import Autosave

NEVER = 3600.0


class Saved:
    """Counts saves; fails while it is told to."""

    def __init__(self) -> None:
        self.value = 0
        self.saves: list[int] = []
        self.error: Exception | None = None
        self.errors: list[Exception] = []
        self.happened = threading.Semaphore(0)

    def save(self) -> None:
        if self.error is not None:
            raise self.error
        self.saves.append(self.value)
        self.happened.release()

    def failed(self, error: Exception) -> None:
        self.errors.append(error)
        self.happened.release()

    def wait(self) -> None:
        assert self.happened.acquire(timeout=20)


@pytest.fixture
def saved() -> Saved:
    return Saved()


def test_it_saves_by_itself(saved: Saved) -> None:
    with Autosave(saved.save, delay=0.001) as autosave:
        for saved.value in (1, 2):
            autosave.touch()
            saved.wait()
        assert saved.saves == [1, 2]


def test_many_touches_are_one_save(saved: Saved) -> None:
    with Autosave(saved.save, delay=NEVER) as autosave:
        for saved.value in range(100):
            autosave.touch()
        assert autosave.pending
        autosave.flush()
        autosave.flush()
        assert not autosave.pending
    assert saved.saves == [99]


def test_touches_without_an_end_are_saved_meanwhile(saved: Saved) -> None:
    with Autosave(saved.save, delay=0.01) as autosave:
        while not saved.happened.acquire(blocking=False):
            autosave.touch()


def test_a_touch_while_saving_is_saved_too(saved: Saved) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def save() -> None:
        saved.save()
        begun.set()
        assert go_on.wait(20)

    with Autosave(save, delay=0.001) as autosave:
        autosave.touch()
        assert begun.wait(20)
        saved.value = 1
        autosave.touch()
        go_on.set()
        saved.wait()
        saved.wait()
    assert saved.saves == [0, 1]


def test_an_error_is_told_once_and_tried_again(saved: Saved) -> None:
    saved.error = OSError("disk full")
    autosave = Autosave(saved.save, delay=0.001, on_error=saved.failed)
    autosave.touch()
    saved.wait()
    assert saved.errors == [saved.error]
    assert autosave.pending
    with pytest.raises(OSError, match="disk full"):
        autosave.flush()
    saved.error = None
    saved.value = 5
    autosave.touch()
    saved.wait()
    autosave.close()
    assert saved.saves == [5]
    assert len(saved.errors) == 1


def test_closing_saves_and_further_touches_wait_for_flush(saved: Saved) -> None:
    autosave = Autosave(saved.save, delay=NEVER)
    autosave.touch()
    autosave.close()
    assert saved.saves == [0]
    saved.value = 1
    autosave.touch()
    autosave.flush()
    assert saved.saves == [0, 1]


def test_the_end_of_the_process_saves() -> None:
    code = (
        "from rlnb.run.autosave import Autosave\na = Autosave(lambda: print('saved'), delay=3600)\na.touch()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "saved\n"
