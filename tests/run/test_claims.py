from __future__ import annotations

import subprocess
import sys

import pytest

from rlnb.errors import Superseded
from rlnb.run.claims import attempt_owner, claim, latest_attempt
from rlnb.run.host import ProcessIdentity, hostname
from rlnb.run.layout import RunLayout

RACE = """
import sys
from rlnb.run.claims import claim
from rlnb.run.layout import RunLayout
from rlnb.errors import Superseded
sys.stdin.readline()
try:
    claim(RunLayout(sys.argv[1]), 1, rlnb_version="t"); print("won")
except Superseded:
    print("lost")
"""


def test_a_claim_records_who_and_ends_the_older_one(tmp_path):
    layout = RunLayout(tmp_path)
    assert latest_attempt(layout) == 0
    first = claim(layout, 1, rlnb_version="0.1.0")
    assert first.holds()
    assert attempt_owner(layout, 1)["host"] == hostname()
    assert ProcessIdentity.from_dict(attempt_owner(layout, 1)) == ProcessIdentity.of()
    claim(layout, 2, rlnb_version="0.1.0")
    assert not first.holds()
    with pytest.raises(Superseded, match="Attempt 1 of .* was superseded by attempt 2"):
        first.check()
    with pytest.raises(Superseded, match="already taken"):
        claim(layout, 1, rlnb_version="0.1.0")


def test_of_many_claimants_one_wins(tmp_path):
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    answers = sorted(racer.communicate(timeout=60)[0].strip() for racer in racers)
    assert answers == ["lost"] * 5 + ["won"]
    assert [p.name for p in RunLayout(tmp_path).attempts.iterdir()] == ["1"]
