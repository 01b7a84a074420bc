"""environment.json says what a run was promoted with."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

from rlnb.jobs.capture.environment import describe_environment, lock_text
from rlnb.run.secrets import Redactor


def _git(folder: Path, *command: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(["git", "-C", str(folder), *identity, *command], check=True, capture_output=True)


def test_describes_interpreter_packages_machine_and_flags(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    found = describe_environment(tmp_path, Redactor())
    assert found["python"] == {
        "version": platform.python_version(),
        "implementation": "CPython",
        "executable": sys.executable,
    }
    assert found["packages"]["pytest"] == __import__("pytest").__version__
    assert found["cpu"]["count"] >= found["cpu"]["usable"] >= 1
    assert found["determinism"]["OMP_NUM_THREADS"] == "3"
    assert isinstance(found["gpu"], list)
    assert lock_text({"a": "1", "b": "2.0"}) == "a==1\nb==2.0\n"


def test_git_commit_and_dirty_diff_without_secrets(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    _git(tmp_path, "init", "-q", "-b", "main")
    _git(tmp_path, "add", "a.py")
    _git(tmp_path, "commit", "-q", "-m", "first")
    redactor = Redactor({"topsecret99": "MY_TOKEN"})
    clean = describe_environment(tmp_path, redactor)["git"]
    assert (clean["dirty"], clean["diff"], clean["branch"], len(clean["commit"])) == (False, "", "main", 40)
    (tmp_path / "a.py").write_text("x = 'topsecret99'\n")
    (tmp_path / "new.py").write_text("")
    dirty = describe_environment(tmp_path, redactor)["git"]
    assert dirty["dirty"] is True
    assert dirty["untracked"] == ["new.py"]
    assert "-x = 1\n+x = '[redacted]'\n" in dirty["diff"]
