"""Shows a lab wherever the reader is: as a widget, as pictures and tables, or as a line of text.

In a live notebook one cell gets two outputs, as a run does (`rlnb.view.display`): the widget, and a still
picture for readers without a kernel, which the browser hides beside a living widget.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlnb.run.autosave import Autosave
from rlnb.view.display import NotebookOutput, publish
from rlnb.view.frontend import FrontEnd, front_end
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.listeners import Event
from rlnb.view.lab.still.static_view import StaticLab

#: seconds without an edit after which the still picture is drawn anew
STILL_DELAY = 4.0


class Showing:
    """Shows one lab in the cells that ask for it.

    Args:
        static: makes the lab's still face as it is then.
        bench: the model.
        make: returns the widget; None where there is nobody to use it.
    """

    def __init__(
        self, static: Callable[[], StaticLab], bench: Workbench, make: Callable[[], Any] | None
    ) -> None:
        self._static, self._bench, self._make = static, bench, make
        self._outputs: list[NotebookOutput] = []
        self._widget: Any = None
        self._still = Autosave(self._redraw, delay=STILL_DELAY, on_error=lambda error: bench.say(str(error)))

    def show(self) -> None:
        """Shows the lab in the running cell."""
        where = front_end()
        if where is FrontEnd.TERMINAL:
            print(self._static().text())
        elif where is FrontEnd.LIVE and self._make is not None:
            self._show_live(self.widget())
        else:
            face = self._static()
            publish({"text/html": face.html(), "text/plain": face.text()}, {})
            publish(*face.picture())

    def widget(self) -> Any:
        """Returns the widget; one for the whole life of the lab, so that every cell shows the same."""
        if self._widget is None and self._make is not None:
            self._widget = self._make()
        return self._widget

    def end(self, words: str) -> None:
        """Ends the widget, which is shown no more; where it was, a sentence and the last picture stay."""
        self._still.close(save=False)  # drawing would hold up the lab that takes this one's place
        for output in self._outputs:
            output.replace(words)
        if self._widget is not None:
            from rlnb.view.lab.widget_tree import close_tree

            close_tree(self._widget)
        self._outputs, self._widget, self._make = [], None, None

    def _show_live(self, widget: Any) -> None:
        if not self._outputs:
            self._bench.listeners.add(lambda event: self._still.touch() if event is Event.SETTLED else None)
        self._outputs.append(NotebookOutput())
        self._outputs[-1].open(widget, self._static().text(), None)
        self._still.touch()  # drawing the picture takes longer than opening the lab

    def _redraw(self) -> None:
        """Draws the still picture anew beside the newest output."""
        if self._outputs:
            face = self._static()
            self._outputs[-1].halt(face.png(), face.text())
