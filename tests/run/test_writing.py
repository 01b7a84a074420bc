from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from rlnb.run.writing import try_to_write


def fail(number: int):
    def action():
        raise OSError(number, "no")

    return action


def test_a_full_disk_is_survived_and_said(capsys):
    assert not try_to_write(fail(errno.ENOSPC))
    assert "[Errno 28] no" in capsys.readouterr().err
    assert try_to_write(lambda: None)
    with pytest.raises(OSError, match="no"):
        try_to_write(fail(errno.EIO))


def test_a_log_on_the_full_disk_is_survived_too():
    code = (
        "import errno\nfrom rlnb.run.writing import try_to_write\n"
        "def fail():\n    raise OSError(errno.ENOSPC, 'no')\n"
        "print([try_to_write(fail) for _ in range(3)], flush=True)"
    )
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=full, text=True, check=False
        )
    assert ended.stdout == "[False, False, False]\n"
