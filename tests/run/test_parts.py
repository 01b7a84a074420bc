"""Growing files as byte-range parts."""

from __future__ import annotations

import pytest

from rlnb.run.parts import Part, chain, parse_part, whole_parts
from rlnb.run.storage import Entry


def test_a_part_names_its_range_and_is_read_back():
    part = Part("logs/events.jsonl", 512, 1024)
    assert part.object_name == "logs/events.jsonl@512-1024"
    assert parse_part(part.object_name) == part
    assert parse_part("logs/odd@1-2@0-50") == Part("logs/odd@1-2", 0, 50)


@pytest.mark.parametrize(
    "name", ["logs/events.jsonl", "data/x@0-5", "logs/x@5-5", "logs/x@9-3", "logs/x@-1-3"]
)
def test_other_names_are_no_parts(name):
    assert parse_part(name) is None


def test_torn_parts_do_not_count():
    entries = [Entry("logs/a@0-10", 10, 0), Entry("logs/a@10-20", 7, 0), Entry("logs/b@0-3", 3, 0)]
    assert whole_parts(entries) == {"logs/a": [Part("logs/a", 0, 10)], "logs/b": [Part("logs/b", 0, 3)]}


def test_a_chain_takes_the_fewest_parts_and_stops_at_a_gap():
    parts = [Part("x", a, b) for a, b in ((0, 10), (10, 20), (20, 30), (0, 20), (40, 50))]
    assert chain(parts) == [Part("x", 0, 20), Part("x", 20, 30)]
    assert [part.end for part in chain(parts, 15)] == [20, 30]
    assert chain(parts, 30) == []
    assert chain(parts, 40) == [Part("x", 40, 50)]
