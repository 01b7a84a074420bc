"""Secrets that a source writes out are known by the name they are given; ordinary names and blanks are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.jobs.capture.written_secrets import find_in_cell, find_in_file


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("WANDB_API_KEY = 'aBc123XyZ'", "WANDB_API_KEY"),
        ("x, db_password = 1, 'hunter2hunter2'", "db_password"),
        ("secret: str = 'hunter2hunter2'", "secret"),
        ("self.auth_token = 'hunter2hunter2'", "auth_token"),
        ("import os\nos.environ['MY_KEY'] = 'hunter2hunter2'", "MY_KEY"),
        ("environ.setdefault('X_TOKEN', 'hunter2hunter2')", "X_TOKEN"),
        ("os.putenv('X_TOKEN', 'hunter2hunter2')", "X_TOKEN"),
        ("%env HF_TOKEN=hunter2hunter2", "HF_TOKEN"),
        ("%set_env HF_TOKEN hunter2hunter2", "HF_TOKEN"),
        ("connect(password='hunter2hunter2')", "password"),
        ("config = {'api_key': 'hunter2hunter2'}", "api_key"),
        ("config['api_key'] = 'hunter2hunter2'", "api_key"),
    ],
)
def test_what_is_written_out_is_named(source: str, name: str) -> None:
    assert find_in_cell(source) == name


@pytest.mark.parametrize(
    "source",
    [
        "sort_key = 'episode_return'",
        "pad_token = 'end-of-text'",
        "key = 'observation'",
        "api_key = os.environ['MY_API_KEY']",
        "api_key = ''",
        "password = 'short'",
        "password = 'your password'",
        "password = '<password>'",
        "password = '********'",
        "password = 'changeme-please'",
        "%env HOME=/somewhere/else",
        "password_file = None",
        "def f(:",
    ],
)
def test_ordinary_sources_pass(source: str) -> None:
    assert find_in_cell(source) is None


@pytest.mark.parametrize(
    ("file", "text", "name"),
    [
        ("a.yaml", "user: me\nserver:\n  password: hunter2hunter2\n", "password"),
        ("a.json", '{"user": "me", "api_key": "hunter2hunter2"}', "api_key"),
        ("a.toml", "api-key = 'hunter2hunter2'\n", "api-key"),
        ("a.py", "API_KEY = 'hunter2hunter2'\n", "API_KEY"),
        ("a.yaml", "key: episode_return\npassword: $PASSWORD_OF_ME\n", None),
        ("a.csv", "password=hunter2hunter2", None),
    ],
)
def test_files(tmp_path: Path, file: str, text: str, name: str | None) -> None:
    (tmp_path / file).write_text(text)
    assert find_in_file(tmp_path / file) == name
