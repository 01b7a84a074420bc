"""Shows a run wherever the reader is: live in a notebook, as an image in a document, as text in a terminal.

In a live notebook one cell gets two outputs. The first is the widget. The second is for readers without
a kernel: text at first, an image whenever the run pauses; beside a living widget the browser hides it
(see `static/job.css`). At the end the image takes the widget's place.
"""

from __future__ import annotations

import base64
import struct
import uuid
from collections.abc import Callable
from typing import Any

from rlnb.run.layout import RunLayout
from rlnb.view.actions import Actions, RunActions
from rlnb.view.drawing import WIDTH
from rlnb.view.frontend import FrontEnd, front_end
from rlnb.view.subject import RunSubject, Subject
from rlnb.view.watch import RunWatch

Bundle = tuple[dict[str, Any], dict[str, Any]]


def show(
    layout: RunLayout,
    *,
    title: str = "",
    actions: Actions | None = None,
    refresh: Callable[[], object] | None = None,
    failure: Callable[[], str] | None = None,
) -> Shown:
    """Makes a run showable.

    Args:
        layout: the folder to read.
        title: what to call it; the experiment's name when empty.
        actions: what the buttons do; requests in the run folder when None.
        refresh: brings the folder up to date from elsewhere, see `RunWatch`.
        failure: tells why the run failed, below its last image; a line and the log's path when None.

    Returns:
        An object that IPython displays (`_ipython_display_`), whose `repr` is text and whose
        `_repr_mimebundle_` is the image with the text.
    """
    watch = RunWatch(layout, refresh=refresh)
    return Shown(RunSubject(watch, actions or RunActions(layout), title=title, failure=failure))


class Shown:
    """A subject, ready to be displayed; reads it anew each time."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def __repr__(self) -> str:
        self.subject.poll()
        return self.subject.text()

    def _repr_mimebundle_(self, **_: Any) -> Bundle:
        """Returns image and text: what a document keeps."""
        self.subject.poll()
        return image_bundle(self.subject.still(), self.subject.text())

    def _ipython_display_(self) -> None:
        where = front_end()
        if where is FrontEnd.TERMINAL:
            print(repr(self))
            return
        self.subject.poll()
        if where is FrontEnd.LIVE and not self.subject.ended:
            _show_live(self.subject)
        else:
            publish(*image_bundle(self.subject.still(), self.subject.text()))
            if self.subject.ended:
                publish({"text/plain": self.subject.closing()}, {})


def image_bundle(png: bytes, text: str) -> Bundle:
    """Returns (data, metadata) of an image with a text for readers that show none."""
    width, height = struct.unpack(">II", png[16:24])  # of the PNG header
    size = {"width": WIDTH, "height": round(height * WIDTH / width)}
    return {"image/png": base64.b64encode(png).decode(), "text/plain": text}, {"image/png": size}


class NotebookOutput:
    """The two outputs of one cell, by their display ids."""

    def __init__(self) -> None:
        self._live, self._still = (f"rlnb-{uuid.uuid4().hex}" for _ in range(2))

    def open(self, widget: Any, text: str, png: bytes | None) -> None:
        """Publishes both; `png` when there is an image to keep already."""
        publish(widget_bundle(widget, text), {}, self._live)
        publish(*(image_bundle(png, text) if png else ({"text/plain": text}, {})), self._still)

    def halt(self, png: bytes, text: str) -> None:
        publish(*image_bundle(png, text), self._still, update=True)

    def replace(self, words: str) -> None:
        """Puts words in the widget's place; what stands beside it stays."""
        publish({"text/plain": words}, {}, self._live, update=True)

    def end(self, png: bytes, text: str, closing: str) -> None:
        publish(*image_bundle(png, text), self._live, update=True)
        publish({"text/plain": closing}, {}, self._still, update=True)


_views: dict[str, Any] = {}


def _show_live(subject: Subject) -> None:
    """Shows the one live view of a subject, made at its first showing, in the running cell."""
    from rlnb.view.live import LiveView

    view = _views.get(subject.key)
    if view is None or not view.alive:
        view = _views[subject.key] = LiveView(subject)
        view.start()
    output = NotebookOutput()
    output.open(view.widget, subject.text(), subject.still() if subject.halted else None)
    view.attach(output)


def widget_bundle(widget: Any, text: str) -> dict[str, Any]:
    """Returns the data of an output that shows a widget, with a text for readers without a kernel."""
    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    return {"text/plain": text, "application/vnd.jupyter.widget-view+json": view}


def publish(
    data: dict[str, Any], metadata: dict[str, Any], display_id: str | None = None, *, update: bool = False
) -> None:
    from IPython.display import publish_display_data

    transient = {"display_id": display_id} if display_id else {}
    publish_display_data(data, metadata, transient=transient, update=update)  # type: ignore[no-untyped-call]
