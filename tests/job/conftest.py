from __future__ import annotations

import pytest

from tests.job.runs import Maker


@pytest.fixture
def make_run():
    """See `Maker`."""
    return Maker()
