from __future__ import annotations

import pytest

from rlnb.cli.main import main
from tests.job.runs import Maker


@pytest.fixture
def rlnb(capsys):
    """Runs `rlnb WORDS` in this process; returns (exit code, stdout, stderr)."""

    def call(*words: str) -> tuple[int, str, str]:
        code = main(words)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


@pytest.fixture
def make_run():
    """See `Maker`."""
    return Maker()
