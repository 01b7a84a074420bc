"""The Lab's widgets in a real JupyterLab in Chromium, with made-up episodes.

`RLNB_SCREENSHOTS=folder pytest tests/view/lab/test_widgets_browser.py` leaves pictures to look at.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.browser import NotebookPage, chromium, jupyter_lab, needs_browser, write_notebook

pytestmark = [pytest.mark.browser, needs_browser]

SCREENSHOTS = os.environ.get("RLNB_SCREENSHOTS")
ROOT = Path(__file__).parents[3]

PLOTS = """
import ipywidgets as w
from rlnb.view.lab.charts.expression_field import ExpressionField, Suggestion
from rlnb.view.lab.charts.plots import PlotsWidget
from rlnb.view.lab.charts.viewer import EpisodeViewer
from tests.view.lab.shown import episode, figures
heard = w.Label("nothing")
heard.add_class("heard")
def hear(*words):
    heard.value = " ".join(map(str, words))
plots = PlotsWidget(measure=True)
plots.show(figures(), stamp=1.5)
plots.select([3], ["A"])
plots.on_select(lambda key, index: hear("select", key, index))
plots.on_cursor(lambda x: hear("cursor", x))
plots.on_drawn(lambda seq, stamp, at: hear("drawn", seq, stamp))
more = w.Button(description="more")
more.on_click(lambda _: plots.show(figures(scale=3), stamp=2.5))
w.VBox([more, heard, plots])
"""

VIEWER = """
viewer = EpisodeViewer()
viewer.show(episode())
viewer.on_cursor(lambda step: hear("step", step))
other = EpisodeViewer()
other.show(episode(30, frames=False))
w.Tab([viewer, w.HBox([other])], titles=["with pictures", "without"])
"""

FIELDS = """
field = ExpressionField(placeholder="e.g. -abs(x)", label="expression of fuel")
field.suggestions = [Suggestion("vx", "observation"), Suggestion("vy", "vertical velocity"), Suggestion("next_vy", "after the step"), Suggestion("hypot(", "function")]
field.value = "vx"
field.clear_error()
def check(text):
    hear("text", text)
    if "bad" in text:
        field.show_error("There is no 'bad' here.", text.index("bad"), 3)
    else:
        field.clear_error()
field.on_change(check)
undo = w.Button(description="undo")
def restore(_):
    field.value = "vx"
    field.clear_error()
undo.on_click(restore)
w.VBox([field, undo])
"""

HEARD = "document.querySelector('.heard')?.textContent"


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """One notebook that shows every widget; the tests run in order and leave it as they found it."""
    folder = tmp_path_factory.mktemp("lab")
    with jupyter_lab(folder, env={"PYTHONPATH": str(ROOT)}) as lab, chromium() as browser:
        write_notebook(lab.root / "lab.ipynb", PLOTS.strip(), VIEWER.strip(), FIELDS.strip())
        opened = NotebookPage.open(browser, lab, "lab.ipynb")
        opened.run_all()
        opened.command("notebook:hide-all-cell-code")
        opened.wait_for("[data-key='coverage'] canvas", timeout=60)
        opened.wait_for(".rlnb-viewer .uplot")
        opened.wait_for(".rlnb-expression-input")
        yield opened


@pytest.fixture(autouse=True)
def no_errors(notebook):
    yield
    assert notebook.errors == []


def show(notebook: NotebookPage, selector: str) -> None:
    notebook.page.evaluate("s => document.querySelector(s).scrollIntoView({block: 'start'})", selector)


def pictures(notebook: NotebookPage, name: str, *selectors: str) -> None:
    """Leaves a picture of each place in each theme, which the tests after it must not depend on."""
    if not SCREENSHOTS:
        return
    for theme in ("Dark", "Light"):
        notebook.theme(f"JupyterLab {theme}")
        for place, selector in enumerate(selectors):
            show(notebook, selector)
            notebook.page.wait_for_timeout(400)
            notebook.screenshot(Path(SCREENSHOTS) / f"{name}{place}-{theme.lower()}.png")


def hears(notebook: NotebookPage, text: str) -> None:
    notebook.page.wait_for_function("text => " + HEARD + " === text", arg=text, timeout=15_000)


def ink(notebook: NotebookPage, scope: str) -> list[int]:
    """Returns the number of coloured pixels of each canvas below `scope`."""
    return notebook.page.evaluate(
        """scope => [...document.querySelectorAll(scope + ' canvas')].map((canvas) => {
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          let count = 0;
          for (let i = 0; i < data.length; i += 4) {
            const spread = Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]);
            if (data[i + 3] > 30 && spread > 40) count++;
          }
          return count;
        })""",
        scope,
    )


def dot(notebook: NotebookPage, index: int) -> tuple[float, float]:
    """Returns where the ringed dot of `Strips` "returns" stands on the page."""
    box = notebook.page.locator("[data-key='returns'] .rlnb-ring").nth(index).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_every_chart_is_drawn_named_and_uncut(notebook):
    hears(notebook, "drawn 1 1.5")
    for key in ("terms", "returns", "ranks", "steps", "piled", "obs"):
        assert ink(notebook, f"[data-key='{key}']")[0] > 200, key
    assert min(ink(notebook, "[data-key='coverage'] [data-key$='demo']")) > 200
    named = notebook.page.get_by_role("img", name="Return per episode, reward per episode: random mean")
    assert named.count() == 1
    assert notebook.page.locator("[data-key='nothing'] .rlnb-empty").inner_text() == "no episodes yet"
    root = notebook.page.locator(".rlnb-plots").bounding_box()
    for plot in notebook.page.locator(".rlnb-plots .rlnb-plot canvas").all():
        box = plot.bounding_box()
        assert box["x"] + box["width"] <= root["x"] + root["width"] + 1
    pictures(notebook, "plots", ".rlnb-plots", "[data-key='coverage']")


def test_an_update_redraws_what_changed_and_says_when(notebook):
    before = ink(notebook, "[data-key='terms']")[0]
    notebook.page.evaluate("document.querySelector('[data-key=ranks] canvas').dataset.old = 'yes'")
    notebook.page.get_by_role("button", name="more").click()
    hears(notebook, "drawn 2 2.5")
    assert ink(notebook, "[data-key='terms']")[0] != before
    assert notebook.page.locator("[data-key='ranks'] canvas[data-old]").count() == 1


def test_a_click_selects_an_episode_and_hovering_names_it(notebook):
    show(notebook, "[data-key='returns']")
    x, y = dot(notebook, 0)
    notebook.page.mouse.move(x, y)
    tip = notebook.page.locator(".rlnb-plots .rlnb-tip")
    assert tip.inner_text().startswith("random, episode 3")
    notebook.page.mouse.down()
    notebook.page.mouse.up()
    hears(notebook, "select returns 3")
    # The keyboard goes from dot to dot, and JupyterLab does not take its keys.
    notebook.page.locator("[data-key='ranks'] .rlnb-plot").focus()
    notebook.page.keyboard.press("ArrowRight")
    notebook.page.keyboard.press("Enter")
    notebook.wait_until(HEARD + ".startsWith('select ranks ')")
    notebook.page.keyboard.press("Tab")


def test_the_cursor_goes_along_all_charts_of_the_steps(notebook):
    show(notebook, "[data-key='terms']")
    over = notebook.page.locator("[data-key='terms'] .u-over")
    box = over.bounding_box()
    over.click(position={"x": box["width"] / 2, "y": 30})
    hears(notebook, "cursor 100.0")
    for key, share in (("terms", 100 / 200), ("obs", 100 / 199)):
        plot = notebook.page.locator(f"[data-key='{key}'] .u-over").bounding_box()
        mark = notebook.page.locator(f"[data-key='{key}'] .rlnb-at").bounding_box()
        assert abs(mark["x"] + 1 - plot["x"] - share * plot["width"]) < 1.5
    notebook.page.keyboard.press("ArrowRight")
    tip = notebook.page.locator(".rlnb-plots .rlnb-tip")
    notebook.page.mouse.move(box["x"] + 100, box["y"] + 40)
    assert "environment" in tip.inner_text()
    notebook.page.mouse.move(5, 5)


def test_the_viewer_keeps_picture_table_and_lines_in_step(notebook):
    show(notebook, ".rlnb-viewer")
    page = notebook.page
    viewer = page.locator(".rlnb-viewer").first
    assert min(ink(notebook, ".rlnb-viewer .rlnb-spark")) > 50
    slider = viewer.get_by_role("slider")
    slider.focus()
    page.keyboard.press("End")
    assert viewer.locator(".rlnb-now").inner_text() == "step 199 / 199"
    hears(notebook, "step 199")
    page.keyboard.press("Home")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("ArrowRight")
    hears(notebook, "step 11")
    from tests.view.lab.shown import episode

    shown = episode()
    row = viewer.locator(".rlnb-terms tbody tr").first.locator("td").all_inner_texts()
    expected = (
        shown.terms[0].values[11],
        shown.terms[0].contributions[11],
        shown.terms[0].contributions[:12].sum(),
    )
    for text, value in zip(row, expected, strict=True):
        assert float(text.replace("−", "-")) == pytest.approx(value, rel=1e-3)
    notebook.wait_until("document.querySelector('.rlnb-picture img').alt === 'step 10'")
    assert viewer.locator(".rlnb-picture-step").inner_text() == "picture of step 10"
    notebook.wait_until("document.querySelector('.rlnb-picture img').naturalWidth === 96")
    mark = viewer.locator(".rlnb-viewer-chart .rlnb-at").bounding_box()
    plot = viewer.locator(".rlnb-viewer-chart .u-over").bounding_box()
    assert abs(mark["x"] + 1 - plot["x"] - plot["width"] * 11 / 200) < 1.5
    viewer.get_by_role("combobox").select_option("8×")
    viewer.get_by_role("button", name="play").click()
    notebook.wait_until("document.querySelector('.rlnb-now').textContent === 'step 199 / 199'")
    viewer.get_by_role("button", name="play").wait_for()  # it has stopped by itself
    hears(notebook, "step 199")
    pictures(notebook, "viewer", ".rlnb-viewer")


def test_a_viewer_in_a_hidden_tab_is_drawn_when_it_is_shown(notebook):
    assert notebook.page.locator(".rlnb-viewer").nth(1).locator("canvas").count() == 0
    notebook.page.get_by_role("tab", name="without").click()
    other = notebook.page.locator(".rlnb-viewer").nth(1)
    other.locator(".uplot").wait_for()
    assert other.locator(".rlnb-picture-said").inner_text() == "no frames recorded"
    pictures(notebook, "no-frames", ".jp-OutputArea:has(.rlnb-viewer)")
    notebook.page.get_by_role("tab", name="with pictures").click()


def test_the_field_offers_names_and_inserts_them(notebook):
    page = notebook.page
    field = page.get_by_role("combobox", name="expression of fuel")
    names = page.locator(".rlnb-names")
    show(notebook, ".rlnb-expression")
    field.click()
    field.fill("")
    field.type("0.5*v")
    assert names.locator("code").all_inner_texts() == ["vx", "vy", "next_vy"]
    assert names.locator("[aria-selected='true']").inner_text().split() == ["vx", "observation"]
    pictures(notebook, "field", ".rlnb-expression")
    field.press("ArrowDown")
    field.press("Tab")
    assert field.input_value() == "0.5*vy"
    assert not names.is_visible()
    hears(notebook, "text 0.5*vy")
    notebook.wait_for(".rlnb-expression[data-state='ok']")
    field.type(" - hy")
    names.locator("code", has_text="hypot(").click()
    assert field.input_value() == "0.5*vy - hypot("
    field.type("v")
    field.press("Escape")
    assert not names.is_visible()
    assert field.input_value() == "0.5*vy - hypot(v"


def test_the_field_marks_an_error_and_takes_undo_but_no_echo(notebook):
    page = notebook.page
    field = page.get_by_role("combobox", name="expression of fuel")
    field.fill("vx + bad*2")
    notebook.wait_for(".rlnb-expression[data-state='error']")
    assert page.locator(".rlnb-fault").inner_text() == "bad"
    assert page.locator(".rlnb-expression-error").inner_text() == "There is no 'bad' here."
    assert field.get_attribute("aria-invalid") == "true"
    # Typed faster than answers come: the text stays as typed.
    field.press("End")
    for part in range(12):
        field.type(f"+{part}")
        page.wait_for_timeout(60)
    typed = "vx + bad*2" + "".join(f"+{part}" for part in range(12))
    assert field.input_value() == typed
    hears(notebook, f"text {typed}")
    assert field.input_value() == typed
    pictures(notebook, "error", ".rlnb-expression")
    page.get_by_role("button", name="undo").click()
    page.wait_for_function("document.querySelector('.rlnb-expression-input').value === 'vx'")
    notebook.wait_for(".rlnb-expression[data-state='ok']")
    assert page.locator(".rlnb-fault").count() == 0


def test_a_reloaded_page_shows_the_same(notebook):
    page = notebook.page
    field = page.get_by_role("combobox", name="expression of fuel")
    field.fill("bad")
    notebook.wait_for(".rlnb-expression[data-state='error']")
    notebook.save()
    notebook.load()
    notebook.wait_for("[data-key='coverage'] canvas", timeout=60)
    notebook.wait_for(".rlnb-expression[data-state='error']")
    assert page.locator(".rlnb-expression-input").input_value() == "bad"
    assert page.locator(".rlnb-fault").text_content() == "bad"
    assert ink(notebook, "[data-key='terms']")[0] > 200
    assert page.locator("[data-key='terms'] .rlnb-at").is_visible()
    assert page.locator("[data-key='returns'] .rlnb-ring").text_content() == "A"
    notebook.wait_for(".rlnb-viewer .uplot")
    assert page.locator(".rlnb-now").first.text_content() == "step 199 / 199"
    notebook.wait_until("document.querySelector('.rlnb-picture img').alt === 'step 198'")
