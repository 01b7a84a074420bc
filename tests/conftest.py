"""Every test has a home of its own, and no test sees the developer's settings."""

from __future__ import annotations

import os

import pytest

# One thread per process: what is tested is bytes and order, and two cores are shared by many processes.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


def pytest_collection_modifyitems(items):
    """Puts the longest files first, so that no worker is left alone with one of them at the end."""
    items.sort(key=lambda item: item.path.parent.name != "e2e" and item.get_closest_marker("browser") is None)


@pytest.fixture(autouse=True)
def rlnb_home(tmp_path_factory, monkeypatch):
    """A fresh $RLNB_HOME; returns its path."""
    home = tmp_path_factory.mktemp("rlnb-home")
    monkeypatch.setenv("RLNB_HOME", str(home))
    for name in list(os.environ):
        if name.startswith("RLNB_") and name not in ("RLNB_HOME", "RLNB_LABEXT"):
            monkeypatch.delenv(name)
    return home
