"""What a person sees and does in a lab, in a page that tests drive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.browser import NotebookPage

OPEN = ".jp-NotebookPanel:not(.lm-mod-hidden)"
"""The notebook that is in front."""

TABS = ("Episodes", "Reward", "State", "Checks")

_PIXELS = """canvas => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let hash = 0;
  for (let i = 0; i < data.length; i += 4) hash = (hash * 31 + data[i] + 3 * data[i + 1] + 7 * data[i + 2]) | 0;
  return hash;
}"""


class LabPage:
    """The lab of the notebook that is in front."""

    def __init__(self, notebook: NotebookPage) -> None:
        self.notebook, self.page = notebook, notebook.page

    @property
    def root(self) -> Any:
        return self.page.locator(f"{OPEN} .rlnb-lab-view").first

    def wait(self) -> None:
        """Waits until it is there and checked; goes to the tab Reward, since only what is seen is drawn."""
        self.root.wait_for(timeout=60_000)
        self.tab("Reward")
        self.page.wait_for_selector(f"{OPEN} [data-key='ranking'] canvas", state="attached", timeout=60_000)

    def tab(self, name: str) -> None:
        self.root.locator(".lm-TabBar-tab").nth(TABS.index(name)).click()

    @property
    def tab_in_front(self) -> str:
        return str(self.root.locator(".lm-TabBar-tab.lm-mod-current").first.inner_text()).split(" ")[0]

    def button(self, name: str) -> Any:
        return self.root.locator("button", has_text=name)

    def term(self, place: int) -> Any:
        """Returns the row of a reward term, counted from 0."""
        return self.root.locator(".rlnb-term").nth(place)

    def expression(self, place: int) -> Any:
        return self.term(place).locator(".rlnb-expression-input")

    def weight(self, place: int) -> str:
        """What the exact field of a term's weight shows."""
        return str(self.exact(place).input_value())

    def exact(self, place: int) -> Any:
        return self.term(place).locator(".rlnb-term-line > .widget-text input").last

    def drag(self, place: int, by: int, *, steps: int = 8) -> None:
        """Drags the weight slider of a term with the mouse, `by` pixels to the right."""
        handle = self.term(place).locator(".noUi-handle").bounding_box()
        x, y = handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(x + by, y, steps=steps)
        self.page.mouse.up()

    def pixels(self, key: str) -> int:
        """Returns a number that differs where the drawing of a chart does."""
        found: int = self.root.locator(f"[data-key='{key}'] canvas").first.evaluate(_PIXELS)
        return found

    def until(self, script: str, arg: Any = None) -> None:
        """Waits until a JavaScript function of the lab's element and `arg` is true."""
        self.page.wait_for_function(
            f"arg => (({script})(document.querySelector(`{OPEN} .rlnb-lab-view`), arg))",
            arg=arg,
            timeout=20_000,
        )

    def pictures(self, folder: str | None, name: str) -> None:
        """Leaves pictures of all tabs from top to bottom in both themes, for people to look at."""
        if not folder:
            return
        for theme in ("Dark", "Light"):
            self.notebook.theme(f"JupyterLab {theme}")
            for tab in TABS:
                self.tab(tab)
                self._pages(Path(folder), f"{name}-{tab.lower()}-{theme.lower()}")
        self.tab("Reward")

    def _pages(self, folder: Path, name: str) -> None:
        panel = f"document.querySelector(`{OPEN} .jp-WindowedPanel-outer`)"
        self.page.evaluate(f"{panel}.scrollTop = 0")
        for number in range(6):
            self.page.wait_for_timeout(700)
            self.notebook.screenshot(folder / f"{name}-{number}.png")
            if self.page.evaluate(f"{panel}.scrollTop + {panel}.clientHeight >= {panel}.scrollHeight - 5"):
                break
            self.page.evaluate(f"{panel}.scrollTop += {panel}.clientHeight - 40")
        self.page.evaluate(f"{panel}.scrollTop = 0")
