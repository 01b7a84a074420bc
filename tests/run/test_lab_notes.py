"""A lab's notes survive restarts, and a damaged file is no reason to open no lab."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlnb.run.lab_notes import LabNotes, read_notes, write_notes

_NOTES = LabNotes({"landing": "#1f77b4"}, (("a:1", "b:0"),), ("größe", "run@best"), 50_000, ("x", "vy"))


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "lander.lab" / "lab.json"
    assert read_notes(path) == (LabNotes(), None)
    assert write_notes(path, _NOTES)
    assert not write_notes(path, _NOTES)
    assert read_notes(path) == (_NOTES, None)
    path.write_text("{}")
    assert read_notes(path) == (LabNotes(), None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("colours", {"landing": "red"}),
        ("colours", []),
        ("preferences", [["a"]]),
        ("good", "demo"),
        ("buffer_size", -1),
        ("buffer_size", True),
        ("axes", ["x", 1]),
    ],
)
def test_what_is_wrong_begins_anew(tmp_path: Path, key: str, value: object) -> None:
    path = tmp_path / "lab.json"
    text = json.dumps({**json.loads(_NOTES.to_json()), key: value})
    path.write_text(text)
    notes, said = read_notes(path)
    expected = {
        name: getattr(_NOTES, name) for name in ("colours", "preferences", "good", "buffer_size", "axes")
    }
    assert notes == LabNotes(**{**expected, key: getattr(LabNotes(), key)})
    assert said == (
        f"lab.json is damaged ({key}) and begins anew there; the next change keeps the damaged file as "
        "lab.json.damaged."
    )
    assert path.read_text() == text, "reading writes nothing"
    assert write_notes(path, notes)
    assert (tmp_path / "lab.json.damaged").read_text() == text
    assert read_notes(path) == (notes, None)


def test_no_json_at_all(tmp_path: Path) -> None:
    path = tmp_path / "lab.json"
    path.write_bytes(b"\xff{")
    notes, said = read_notes(path)
    assert notes == LabNotes()
    assert said is not None
    assert said.startswith("lab.json is damaged (all of it)")
