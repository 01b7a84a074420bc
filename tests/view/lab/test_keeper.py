"""A lab's design on disk: saved after edits, kept in versions, by one owner."""

from __future__ import annotations

import threading

import pytest

import rlnb
from rlnb.errors import DesignError, DesignFileChanged, UsageError
from rlnb.run.design_file import DesignFile
from rlnb.view.lab.keeper import Keeper
from rlnb.view.lab.listeners import Event


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cart.yaml"


@pytest.fixture
def keeper(bench, path):
    kept = Keeper(bench, DesignFile(path))
    yield kept
    kept.close()


def settle(bench, act, until=lambda: True):
    """Does something and waits until the bench has rested and something is true."""
    rested = threading.Event()
    end = bench.listeners.add(lambda event: rested.set() if event is Event.SETTLED and until() else None)
    act()
    assert rested.wait(30)
    end()


def weigh(bench, weight):
    bench.edit(reward=rlnb.RewardSpec([rlnb.Term("env", "reward", weight=weight)]), what=f"weight {weight}")


def on_disk(path):
    return rlnb.Design.from_yaml(path).reward.terms[0].weight


def test_nothing_is_written_before_the_first_edit(bench, path):
    keeper = Keeper(bench, DesignFile(path))
    assert bench.file_words == "the code's defaults; written with the first change"
    keeper.flush()
    keeper.close()
    assert not path.exists()


def test_an_edit_is_saved_checked_and_kept_as_a_version(bench, path, keeper):
    settle(bench, lambda: weigh(bench, 2.0), until=path.exists)
    assert on_disk(path) == 2.0
    assert bench.file_words.startswith("saved ")
    assert bench.findings
    settle(bench, lambda: weigh(bench, 3.0), until=lambda: on_disk(path) == 3.0)
    assert [words.partition(": ")[2] for _, words in keeper.versions] == [
        "env: weight 2 -> 3",
        "env: weight 1 -> 2",
    ]
    keeper.restore(keeper.versions[-1][0])
    assert bench.reward.terms[0].weight == 2.0
    bench.undo()
    assert bench.reward.terms[0].weight == 3.0


def test_flush_saves_at_once(bench, path, keeper):
    weigh(bench, 2.5)
    keeper.flush()
    assert (on_disk(path), keeper.pending) == (2.5, False)


def test_a_second_lab_is_told_and_may_take_over(bench, path, keeper, cartpole_episodes):
    weigh(bench, 2.0)
    keeper.flush()
    other_bench = type(bench)(bench.subject, bench.recorded, bench.design, bench.notes)
    other = Keeper(other_bench, DesignFile(path))
    assert other.owner is not None
    assert "is open in another lab (process" in other_bench.file_words
    weigh(other_bench, 9.0)
    with pytest.raises(UsageError, match="Take over"):
        other.flush()
    assert on_disk(path) == 2.0
    settle(other_bench, other.take_over, until=lambda: other.conflict)  # the first has saved since
    assert on_disk(path) == 2.0
    other.keep_mine()
    assert (on_disk(path), other.conflict) == (9.0, False)
    assert keeper.owner is not None  # the first lab notices
    weigh(bench, 4.0)
    with pytest.raises(UsageError, match="Take over"):
        keeper.flush()
    assert on_disk(path) == 9.0
    settle(bench, lambda: weigh(bench, 4.5), until=lambda: "is open in" in bench.file_words)
    other.close()


def test_taking_over_takes_in_what_the_other_has_saved_when_nothing_is_lost_by_it(bench, path, keeper):
    other_bench = type(bench)(bench.subject, bench.recorded, bench.design, bench.notes)
    other = Keeper(other_bench, DesignFile(path))
    weigh(bench, 2.0)
    keeper.flush()
    other.take_over()
    assert (other_bench.reward.terms[0].weight, other_bench.file_words) == (2.0, "as on disk")
    other.close()


def test_a_file_that_somebody_else_changed_is_not_overwritten_until_one_says_which_counts(
    bench, path, keeper
):
    weigh(bench, 2.0)
    keeper.flush()
    theirs = path.read_text().replace("weight: 2.0", "weight: 7.0")
    path.write_text(theirs)
    settle(bench, lambda: weigh(bench, 3.0), until=lambda: keeper.conflict)
    assert path.read_text() == theirs
    with pytest.raises(DesignFileChanged):
        keeper.flush()
    keeper.load_theirs()
    assert (bench.reward.terms[0].weight, keeper.conflict) == (7.0, False)
    bench.undo()
    assert bench.reward.terms[0].weight == 3.0
    keeper.flush()
    path.write_text(theirs)
    weigh(bench, 5.0)
    with pytest.raises(DesignFileChanged):
        keeper.flush()
    keeper.keep_mine()
    assert on_disk(path) == 5.0
    assert any(
        DesignFile(path).read_version(number).reward.terms[0].weight == 7.0 for number, _ in keeper.versions
    )


def test_a_foreign_file_that_does_not_work_here_is_lost_by_no_decision(bench, path, keeper):
    weigh(bench, 2.0)
    keeper.flush()
    path.write_text(path.read_text().replace("expression: reward", "expression: nowhere"))
    settle(bench, lambda: weigh(bench, 3.0), until=lambda: keeper.conflict)
    with pytest.raises(DesignError, match="nowhere"):
        keeper.load_theirs()
    assert (keeper.conflict, bench.reward.terms[0].weight) == (True, 3.0)
    keeper.keep_mine()
    assert on_disk(path) == 3.0
    theirs = [
        DesignFile(path).read_version(number).reward.terms[0].expression for number, _ in keeper.versions
    ]
    assert "nowhere" in theirs


def test_notes_are_kept_and_are_no_part_of_the_design(bench, path, keeper):
    bench.note(colours={"env": "#123456"}, preferences=(("e:4", "e:0"),))
    keeper.flush()
    assert DesignFile(path).read_notes() == bench.notes
    assert not path.exists()


def test_closing_saves_what_is_pending_and_lets_the_file_go(bench, path):
    keeper = Keeper(bench, DesignFile(path))
    weigh(bench, 6.0)
    keeper.close()
    assert on_disk(path) == 6.0
    assert DesignFile(path).claim() is None
    weigh(bench, 8.0)
    keeper.flush()  # closed: it saves nothing more
    assert on_disk(path) == 6.0


def test_what_the_disk_refuses_is_a_sentence_and_the_design_stays(bench, path, keeper):
    weigh(bench, 2.0)
    keeper.flush()
    path.unlink()
    path.mkdir()
    settle(bench, lambda: weigh(bench, 3.0))
    assert "cart.yaml cannot be saved (Is a directory" in bench.file_words
    for act in (keeper.flush, keeper.keep_mine):
        with pytest.raises(UsageError, match="cannot be saved"):
            act()
    assert (bench.reward.terms[0].weight, keeper.pending) == (3.0, True)
    path.rmdir()
    keeper.flush()
    assert on_disk(path) == 3.0


def test_a_folder_that_became_a_file_is_a_sentence(bench, path, keeper):
    weigh(bench, 2.0)
    keeper.flush()
    folder = path.with_suffix(".lab")
    folder.rename(folder.with_suffix(".away"))
    folder.write_text("")
    weigh(bench, 3.0)
    with pytest.raises(UsageError, match="cannot be saved"):
        keeper.flush()
    assert (keeper.owner, keeper.versions) == (None, [])
    keeper.close()
    assert "cannot be saved" in bench.file_words
    folder.unlink()


def test_a_file_changed_outside_is_taken_in_before_it_is_trained(bench, path, keeper):
    weigh(bench, 2.0)
    keeper.flush()
    path.write_text(path.read_text().replace("weight: 2.0", "weight: 7.0"))
    keeper.flush()  # nothing of this lab's is unsaved, and a job reads the file
    assert bench.reward.terms[0].weight == 7.0
    path.write_text(path.read_text().replace("expression: reward", "expression: nowhere"))
    with pytest.raises(DesignError, match="nowhere"):
        keeper.flush()


def test_a_check_that_fails_is_said(bench, path, keeper, monkeypatch):
    said = threading.Event()
    bench.listeners.add(lambda event: said.set() if "could not be checked" in bench.file_words else None)
    monkeypatch.setattr(bench, "settle", lambda: 1 / 0)
    weigh(bench, 2.0)
    assert said.wait(30)
    assert on_disk(path) == 2.0
