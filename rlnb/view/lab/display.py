"""Shows a lab wherever the reader is: as a widget, as pictures and tables, or as a line of text.

In a live notebook one cell gets two outputs, as a run does (`rlnb.view.display`): the widget, and a still
picture for readers without a kernel, which the browser hides beside a living widget.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlnb.errors import RlnbError
from rlnb.run.autosave import Autosave
from rlnb.view.display import NotebookOutput, publish
from rlnb.view.frontend import FrontEnd, front_end
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.listeners import Event
from rlnb.view.lab.static_view import StaticLab

#: seconds without an edit after which the still picture is drawn anew
STILL_DELAY = 4.0


def show_lab(
    static: Callable[[], StaticLab], bench: Workbench | None, make: Callable[[], Any] | None
) -> None:
    """Shows a lab in the running cell.

    Args:
        static: makes the lab's still face as it is then.
        bench: the model, or None without episodes.
        make: returns the widget; None where there is nobody to use it.
    """
    where = front_end()
    if where is FrontEnd.TERMINAL:
        print(static().text())
    elif where is FrontEnd.LIVE and bench is not None and make is not None:
        _show_live(static, bench, make())
    else:
        face = static()
        publish({"text/html": face.html(), "text/plain": face.text()}, {})
        if bench is not None:
            publish(*face.picture())


def _show_live(static: Callable[[], StaticLab], bench: Workbench, widget: Any) -> None:
    output = NotebookOutput()
    face = static()
    output.open(widget, face.text(), face.png())

    def redraw() -> None:
        now = static()
        output.halt(now.png(), now.text())

    def say(error: BaseException) -> None:
        if isinstance(error, RlnbError):
            bench.say(str(error))

    still = Autosave(redraw, delay=STILL_DELAY, on_error=say)
    bench.listeners.add(lambda event: still.touch() if event is Event.SETTLED else None)
