"""What a person waits for in a lab: opening it, a slider's move on the screen, and what the notebook weighs."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.benchmarks.harness import figure
from tests.browser import CHROMIUM, NotebookPage, chromium, jupyter_lab, write_notebook

ROOT = Path(__file__).parents[2]
STEPS = 100_000
ENV = "LunarLander-v3"

LAB = f"""
import rlnb
lab = rlnb.Lab({ENV!r}, design="lander.yaml", reward=[
    rlnb.Term("env", "reward"),
    rlnb.Shaping("approach", "-sqrt(x**2 + y**2)", gamma=0.999),
    rlnb.Term("speed", "-sqrt(vx**2 + vy**2) * (y < 0.5)", weight=0.3),
    rlnb.Term("upright", "-abs(angle)", weight=0.5, clip=(-1.0, 0.0)),
    rlnb.Term("spin", "-abs(angle_rate)", weight=0.1),
    rlnb.Term("landing", "where(left_contact + right_contact > 0, exp(-abs(next_vy)), 0)", weight=2.0),
    rlnb.Term("fuel", "-(action == 2) - 0.1*(action != 0)", weight=0.3),
    rlnb.Term("smooth", "-(action != prev_action)", weight=0.05),
])
""".strip()

RECORD = f"""
from rlnb.envs.frames import FrameBudget
from rlnb.envs.make import resolve_env
from rlnb.envs.rollouts import record_rollouts
from rlnb.run.recordings import EpisodeStore
env = resolve_env({ENV!r})
store = EpisodeStore("lander.lab/episodes", env=env.reference)
for frames, episodes in ((None, 1100), (FrameBudget(megabytes=1), 5)):
    made = record_rollouts(env, "random", episodes=episodes, label="random", frames=frames)
    store.add(made.batch, label="random", about=made.about, frames=made.frames)
"""

OPEN = f"""
import json, time
import rlnb
begun = time.perf_counter()
{LAB}
view = lab._shown().widget()
taken = time.perf_counter() - begun
print(json.dumps([taken, len(lab.batch)]))
"""

# The stamp is taken when the slider's message reaches the workbench. Edits are counted, too: one whose drawing is
# overtaken by the next would else be missing without a trace.
STAMP = """
import json, time
def parts(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from parts(child)
plots = next(one for one in parts(lab._shown().widget()) if type(one).__name__ == "PlotsWidget" and "contributions" in one.data)
plots.measure = True
show, edit, begun, taken = plots.show, lab.bench.edit, [], {}
def stamped_edit(**changes):
    begun.append(time.time())
    edit(**changes)
def stamped_show(figures, **more):
    show(figures, stamp=begun[-1] if begun else None, **more)
def hear(seq, stamp, at):
    if stamp is None:
        return
    taken.setdefault(stamp, 1e3 * (at - stamp))
    with open("taken.json", "w") as file:
        json.dump({"milliseconds": list(taken.values()), "steps": len(lab.batch), "edits": len(begun)}, file)
lab.bench.edit, plots.show = stamped_edit, stamped_show
plots.on_drawn(hear)
""".strip()


@cache
def recording() -> Path:
    """Returns a folder with a lab's recordings: 100,000 steps, the last five episodes with pictures."""
    folder = Path(tempfile.mkdtemp(prefix="rlnb-lab-"))
    subprocess.run([sys.executable, "-c", RECORD], cwd=folder, env=environment(), check=True)
    return folder


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@figure("lab_open", "s", "<= 2")
def lab_open() -> list[float]:
    """A lab on recordings of 100,000 steps and its widget, in a process that has imported only `rlnb`."""
    taken = []
    for _ in range(7):
        done = subprocess.run(
            [sys.executable, "-c", OPEN], cwd=recording(), env=environment(), check=True, capture_output=True
        )
        seconds, steps = json.loads(done.stdout.splitlines()[-1])
        assert steps >= STEPS
        taken.append(seconds)
    return taken[1:]  # the first reads from disk what stays in memory


@contextlib.contextmanager
def lab_in_browser(*cells: str) -> Iterator[NotebookPage]:
    """Opens a notebook with the lab of the recordings, and runs its cells."""
    assert CHROMIUM, "needs Chromium (Debian: apt install chromium)"
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        root = Path(name) / "root"
        root.mkdir()
        (root / "lander.lab").mkdir()
        (root / "lander.lab" / "episodes").symlink_to(recording() / "lander.lab" / "episodes")
        with jupyter_lab(Path(name), env={"PYTHONPATH": str(ROOT)}) as server:
            write_notebook(server.root / "lab.ipynb", f"{LAB}\nlab", *cells)
            notebook = NotebookPage.open(browser, server, "lab.ipynb")
            notebook.run_cell(0)
            notebook.wait_for("[data-key='contributions'] canvas", timeout=120)
            notebook.wait_for("[data-key='ranking'] canvas", timeout=120)  # the first checks are done
            yield notebook


@figure("slider_screen", "ms", "<= 60")
def slider_screen() -> list[float]:
    """From the slider's message in the kernel until the browser has drawn all plots of the tab Reward."""
    with lab_in_browser(STAMP) as notebook:
        page = notebook.page
        page.evaluate("window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1")
        notebook.command("notebook:run-cell")
        notebook.wait_until(
            "window.jupyterapp.shell.currentWidget.content.widgets[1].inputArea?.promptNode.textContent === '[2]:'"
        )
        for place in range(8):
            handle = page.locator(".rlnb-term").nth(place).locator(".noUi-handle")
            handle.scroll_into_view_if_needed()
            box = handle.bounding_box()
            x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            page.mouse.move(x, y)
            page.mouse.down()
            for moved in range(1, 9):
                page.mouse.move(x + 2 * moved, y)
                page.wait_for_timeout(100)
            page.mouse.up()
        page.wait_for_timeout(1000)
        found = json.loads((notebook.lab.root / "taken.json").read_text())
        assert found["steps"] >= STEPS
        drawn, edits = len(found["milliseconds"]), found["edits"]
        assert edits >= 40, f"the mouse made {edits} edits"
        assert drawn >= 0.95 * edits, f"{edits} edits, of which {drawn} were drawn one by one"
        print(f"# slider_screen: {edits} edits, {drawn} drawn, {found['steps']} steps", file=sys.stderr)
        return list(found["milliseconds"])[4:]  # the first ones grow caches


@figure("lab_notebook_size", "kB", "<= 300")
def lab_notebook_size() -> list[float]:
    """The file that JupyterLab writes, with the lab's still picture in it."""
    with lab_in_browser() as notebook:
        notebook.page.wait_for_selector(
            ".jp-OutputArea img[src^='data:image/png']", state="attached", timeout=60_000
        )
        notebook.save()
        return [(notebook.lab.root / "lab.ipynb").stat().st_size / 1e3]
