"""The recorder in a real IPython shell."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap


def _run_in_ipython(script: str) -> object:
    """Runs a script in a process of its own: a shell is a singleton and changes much of its process."""
    prelude = """
        import json, sys
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        def cell(source, cell_id=None, **more):
            shell.run_cell(source, store_history=more.pop("store_history", True), cell_id=cell_id, **more)
    """
    code = textwrap.dedent(prelude) + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_runs_before_and_after_the_import() -> None:
    found = _run_in_ipython("""
        import io, contextlib
        with contextlib.redirect_stdout(io.StringIO()):
            cell("a = 1", "c1")
            cell("1/0", "c2")
            cell("import rlnb", "c3")
            cell("b = (", "c4")
            cell("%time c = 1", "c5")
            cell("hidden = 1", "c6", store_history=False)
            cell("")
            cell("from rlnb.jobs.capture.recorder import install\\nr = install()\\nrunning = r.running.source\\ncalls = [r.count_call(), r.count_call()]", "c7")
            cell("calls.append(r.count_call())", "c8")
        runs = [(run.source.split("\\n")[0], run.cell_id, run.ok, run.started is not None) for run in shell._rlnb_recorder.runs]
        print(json.dumps([runs, shell.user_ns["calls"], shell.user_ns["running"].split("\\n")[0], shell._rlnb_recorder.running]))
    """)
    assert found == [
        [
            ["a = 1", None, True, False],
            ["1/0", None, False, False],
            ["import rlnb", "c3", True, True],
            ["b = (", "c4", False, True],
            ["%time c = 1", "c5", True, True],
            ["from rlnb.jobs.capture.recorder import install", "c7", True, True],
            ["calls.append(r.count_call())", "c8", True, True],
        ],
        [1, 2, 1],
        "from rlnb.jobs.capture.recorder import install",
        None,
    ]


def test_outside_ipython_there_is_nothing_to_record() -> None:
    code = "import rlnb, sys; from rlnb.jobs.capture.recorder import install; assert install() is None and 'IPython' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
