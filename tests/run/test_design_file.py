"""A lab's design file: nothing is lost, nothing is written over unseen, and it has one owner."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlnb.design.design import Design
from rlnb.design.reward import RewardSpec, Term, reward_term
from rlnb.design.term import marked_terms
from rlnb.errors import DesignError, DesignFileChanged, DesignFileTaken, UsageError
from rlnb.run.design_file import DesignFile, default_design_path
from rlnb.run.lab_notes import LabNotes

_ENV = Design()


def _design(weight: float) -> Design:
    return Design(RewardSpec([Term("env", "reward", weight=weight)]))


@pytest.fixture
def file(tmp_path: Path) -> DesignFile:
    return DesignFile(tmp_path / "lander.yaml")


def test_what_is_saved_is_read(file: DesignFile) -> None:
    assert file.read() is None
    assert file.save(_design(2.0))
    assert file.path.read_text().startswith("# Written by rlnb.Lab")
    assert not file.save(_design(2.0)), "nothing changed, nothing is written"
    again = DesignFile(file.path)
    assert again.read() == _design(2.0) == Design.from_yaml(file.path)
    assert os.listdir(file.path.parent) == ["lander.yaml"], "no temporary file stays"
    file.path.unlink()
    assert file.save(_design(2.0)), "a file that was deleted is written anew"


def test_a_hand_written_file_stays_until_something_changes(file: DesignFile) -> None:
    text = "# mine\nreward:\n  terms:\n  - {name: env, expression: reward, weight: 2}\n"
    file.path.write_text(text)
    found = file.read()
    assert found == _design(2.0)
    assert not file.save(found)
    assert file.path.read_text() == text
    assert file.save(_design(3.0))
    assert Design.from_yaml(file.path) == _design(3.0)


def test_python_terms_stay_unbound(file: DesignFile) -> None:
    def soft(batch: object) -> object:
        return batch

    reward_term(soft)
    assert "soft" in marked_terms()
    file.save(Design(RewardSpec([Term("soft", soft)])))
    found = file.read()
    assert found is not None
    assert found.reward.unbound == ("soft",)
    assert file.keep(found, "soft added") is not None
    assert file.read_version(1).reward.unbound == ("soft",)


def test_a_change_outside_is_told_and_not_written_over(file: DesignFile) -> None:
    file.save(_design(1.5))
    assert not file.changed_outside()
    os.utime(file.path)
    assert not file.changed_outside(), "touched, not changed"
    file.path.write_text(_design(9.0).to_yaml())
    assert file.changed_outside()
    with pytest.raises(
        DesignFileChanged, match=r"^lander\.yaml was changed at \d\d:\d\d:\d\d by .* load it again"
    ):
        file.save(_design(2.0))
    assert Design.from_yaml(file.path) == _design(9.0)
    assert file.save(_design(2.0), over=True)
    assert [(v.number, v.summary) for v in file.versions()] == [(1, "written by another program")]
    assert file.read_version(1) == _design(9.0)
    assert file.read() == _design(2.0)
    assert not file.changed_outside()


def test_what_cannot_be_read_is_kept_when_it_is_written_over(file: DesignFile) -> None:
    file.path.write_text("reward: [oops\n")
    with pytest.raises(DesignError, match=r"lander\.yaml cannot be read \(line 2"):
        file.read()
    with pytest.raises(DesignFileChanged, match="is there already and was not read"):
        file.save(_ENV)
    file.save(_ENV, over=True)
    [kept] = file.folder.glob("replaced-*.yaml.damaged")
    assert kept.read_text() == "reward: [oops\n"
    file.path.write_bytes(b"\xff")
    with pytest.raises(DesignError, match="cannot be read"):
        file.read()


def test_a_link_stays_a_link(file: DesignFile, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    file.path.symlink_to(tmp_path / "shared" / "d.yaml")
    assert file.save(_design(2.0))
    assert file.path.is_symlink()
    assert DesignFile(tmp_path / "shared" / "d.yaml").read() == _design(2.0)


@pytest.mark.parametrize("name", ["lander.txt", "lander", "folder.yaml"])
def test_a_path_that_is_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(UsageError, match="must be a file that ends in .yaml"):
        DesignFile(tmp_path / name)


def test_versions_are_numbered_and_never_written_again(file: DesignFile) -> None:
    summary = 'landing: weight 1 -> 2 "größer"\n: # \x07'
    first = file.keep(_design(1.5), summary)
    assert first is not None
    assert file.keep(_design(1.5), "again") is None
    other = DesignFile(file.path)
    assert [version.number for version in other.versions()] == [1]
    assert other.keep(_design(2.5), "more") is not None
    third = file.keep(_design(1.5), "back")
    assert third is not None
    assert third.number == 3
    assert [(v.number, v.summary) for v in DesignFile(file.path).versions()] == [
        (1, summary),
        (2, "more"),
        (3, "back"),
    ]
    assert DesignFile(file.path).versions() == file.versions()
    assert third.time.utcoffset() is not None
    assert first.fingerprint == third.fingerprint == _design(1.5).fingerprint()
    assert Design.from_yaml(file.folder / "versions" / "0002.yaml") == file.read_version(2) == _design(2.5)
    assert sorted(os.listdir(file.folder / "versions")) == ["0001.yaml", "0002.yaml", "0003.yaml"]
    with pytest.raises(DesignError, match=r"^lander\.yaml has no version 7; there are 1 to 3\.$"):
        file.read_version(7)


def test_what_lies_among_the_versions(file: DesignFile) -> None:
    folder = file.folder / "versions"
    folder.mkdir(parents=True)
    (folder / "0004.yaml").write_text(_design(4.0).to_yaml())
    (folder / "0005.yaml").write_text("torn: [")
    (folder / "notes.yaml").write_text("")
    assert [(v.number, v.fingerprint) for v in file.versions()] == [(4, _design(4.0).fingerprint())]
    made = file.keep(_design(5.0), "next")
    assert made is not None
    assert made.number == 6


def test_versions_without_hard_links(file: DesignFile, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    for weight in (1.5, 2.5):
        file.keep(_design(weight), "")
    assert [file.read_version(n) for n in (1, 2)] == [_design(1.5), _design(2.5)]


def test_one_lab_owns_it(file: DesignFile) -> None:
    assert file.claim("work/lander.ipynb", "c4") is None
    assert file.claim() is None, "claiming twice changes nothing"
    other = DesignFile(file.path)
    owner = other.claim("other.ipynb")
    assert owner is not None
    assert (owner.process.pid, owner.notebook, owner.cell) == (os.getpid(), "work/lander.ipynb", "c4")
    assert other.owner == owner
    with pytest.raises(
        DesignFileTaken,
        match=rf"belongs to the lab of lander\.ipynb \(process {os.getpid()} since \d\d:\d\d UTC",
    ):
        other.save(_ENV)
    with pytest.raises(DesignFileTaken):
        other.keep(_ENV, "")
    assert file.save(_ENV)
    file.release()
    assert other.claim("other.ipynb") is None
    other.read()
    assert other.save(_design(2.0))


def test_who_takes_it_over_has_it(file: DesignFile) -> None:
    other, third = DesignFile(file.path), DesignFile(file.path)
    file.claim("first.ipynb")
    assert other.claim("second.ipynb") is not None
    other.take_over("second.ipynb")
    assert other.owner is None
    assert other.save(_design(2.0))
    with pytest.raises(DesignFileTaken, match=r"the lab of second\.ipynb"):
        file.save(_design(3.0))
    assert str(file.owner).startswith("the lab of second.ipynb")
    assert third.claim() is not None, "the new owner's lock counts"
    other.take_over()
    assert other.save(_design(4.0))
    other.release()
    assert third.claim() is None


def test_a_folder_that_was_tidied_away_is_made_again(file: DesignFile) -> None:
    import shutil

    file.claim("first.ipynb")
    shutil.rmtree(file.folder)
    assert file.save(_ENV)
    other = DesignFile(file.path).claim()
    assert other is not None
    assert other.notebook == "first.ipynb"


def test_a_folder_that_cannot_be_written(file: DesignFile) -> None:
    file.folder.write_text("in the way")
    with pytest.raises(
        UsageError, match=r"lander\.lab cannot be written \(File exists\); give the lab a design file"
    ):
        file.claim()


def test_notes_are_the_owners(file: DesignFile) -> None:
    assert file.read_notes() == LabNotes()
    assert file.claim() is None
    assert file.write_notes(LabNotes(good=("demo",)))
    assert not file.write_notes(LabNotes(good=("demo",)))
    other = DesignFile(file.path)
    assert other.read_notes() == LabNotes(good=("demo",))
    assert other.claim() is not None
    with pytest.raises(DesignFileTaken):
        other.write_notes(LabNotes())
    (file.folder / "lab.json").write_text("torn")
    assert (other.read_notes(), str(other.notes_said)[:19]) == (LabNotes(), "lab.json is damaged")


_OWN = """
import os, signal, sys
from rlnb.run.design_file import DesignFile
file = DesignFile(sys.argv[1])
assert file.claim("killed.ipynb") is None
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    file.owner
    os.write(writing, b"!")
    signal.pause()
os.read(reading, 1)  # what a child does after a fork is done
print(child, flush=True)
signal.pause()
"""


def test_the_lock_goes_with_the_process_but_not_with_its_children(file: DesignFile) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _OWN, str(file.path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    child = None
    try:
        child = int(process.stdout.readline())
        owner = file.claim()
        assert owner is not None
        assert (owner.process.pid, owner.notebook) == (process.pid, "killed.ipynb")
        process.kill()
        process.wait()
        assert file.claim() is None, "its child lives and holds nothing"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        if child is not None:
            os.kill(child, 9)


def test_where_there_are_no_locks_the_record_counts(
    file: DesignFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno
    import fcntl

    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert file.claim("first.ipynb") is None
    other = DesignFile(file.path)
    assert other.claim() is not None
    other.take_over("second.ipynb")
    assert file.owner is not None
    record = file.folder / "owner.json"
    record.write_text(record.read_text().replace(str(os.getpid()), "999999999"))
    assert DesignFile(file.path).claim() is None, "its process is gone"
    record.write_text("torn")
    assert DesignFile(file.path).claim() is None


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("LunarLander-v3", "lunarlander-v3.yaml"),
        ("ALE/Pong-v5", "ale-pong-v5.yaml"),
        ("my_envs.walk:Walk", "my_envs.walk-walk.yaml"),
        ("../x y", "x-y.yaml"),
        ("!", "design.yaml"),
    ],
)
def test_where_a_lab_keeps_its_design_by_itself(label: str, name: str) -> None:
    assert str(default_design_path(label)) == name


@pytest.mark.parametrize("name", ["a" * 300 + ".yaml", "a\0.yaml"])
def test_a_name_that_no_disk_takes_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match="must be a file that ends in .yaml"):
        DesignFile(tmp_path / name)


def test_a_pipe_is_no_design_file(tmp_path):
    os.mkfifo(tmp_path / "a.yaml")
    with pytest.raises(UsageError, match="must be a file that ends in .yaml"):
        DesignFile(tmp_path / "a.yaml")


def test_what_killed_writers_left_is_swept_after_an_hour(tmp_path):
    file = DesignFile(tmp_path / "a.yaml")
    versions = tmp_path / "a.lab" / "versions"
    versions.mkdir(parents=True)
    old = [tmp_path / ".a.yaml.1.tmp", versions.parent / ".lab.json.1.tmp", versions / ".0001.yaml.1.tmp"]
    fresh, foreign = tmp_path / ".a.yaml.2.tmp", tmp_path / ".b.yaml.1.tmp"
    for path in (*old, fresh, foreign):
        path.write_text("")
    for path in (*old, foreign):
        os.utime(path, (0, 0))
    file.claim()
    assert [path for path in (*old, fresh, foreign) if path.exists()] == [fresh, foreign]
    file.release()
