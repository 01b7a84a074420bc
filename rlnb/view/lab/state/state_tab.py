"""The tab State: operations as rows, and what they make of the recorded observations."""

from __future__ import annotations

from html import escape

import ipywidgets as w
import psutil

from rlnb.design.checks.finding import Severity
from rlnb.design.profile import ImageProfile
from rlnb.design.replay_size import WARNING_SHARE, replay_bytes, replay_finding
from rlnb.errors import DesignError
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.checks.findings_html import finding_card
from rlnb.view.lab.listeners import Event
from rlnb.view.lab.state.component_table import component_table_html
from rlnb.view.lab.state.coverage_panel import CoveragePanel
from rlnb.view.lab.state.image_strip import images_html
from rlnb.view.lab.state.operation_rows import OperationRows
from rlnb.view.lab.state.space_words import space_html
from rlnb.view.lab.state.state_look import StateLook, StateLooks

_MOST_TRANSITIONS = 1_000_000_000

BEFORE, AFTER = "Before: what the environment gives", "After: what the agent sees"


class StateTab:
    """Shows and edits a workbench's state.

    Args:
        bench: the model.

    Attributes:
        widget: what is shown.
        operations: the rows of operations.
        coverage: the map of where each policy has been.
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._looks = StateLooks(bench)
        self._quiet = False
        self._before, self._after, self._space, self._memory = w.HTML(), w.HTML(), w.HTML(), w.HTML()
        self._size = w.BoundedIntText(
            value=bench.notes.buffer_size, min=1, max=_MOST_TRANSITIONS, layout=w.Layout(width="120px")
        )
        self._size.observe(lambda event: self._resize(event["new"]), "value")
        both = w.HBox([self._before, self._after])
        both.add_class("rlnb-before-after")
        memory = w.HBox([w.Label("replay buffer of"), self._size, w.Label("transitions:"), self._memory])
        memory.add_class("rlnb-memory")
        self.operations = OperationRows(bench)
        self.coverage = CoveragePanel(bench, self._looks)
        self.widget = w.VBox(
            [
                w.HTML('<h4 class="rlnb-group">Operations, from top to bottom</h4>'), self.operations.widget,
                self._space, memory, both, self.coverage.widget,
            ]
        )  # fmt: skip
        self.widget.add_class("rlnb-state")
        self._show()
        bench.listeners.add(self._hear)

    def _hear(self, event: Event) -> None:
        if event in (Event.STATE, Event.EPISODES):
            self._show()
        elif event is Event.NOTES:
            self._show_memory()

    def _show(self) -> None:
        self._show_space()
        self._show_memory()
        try:
            before, after = self._looks.before(), self._looks.after()
        except DesignError as error:
            self._before.value = f'<p class="rlnb-unsupported">{escape(str(error))}</p>'
            self._after.value = ""
            return
        self._before.value = profile_html(before, BEFORE)
        if after is before:
            self._after.value = (
                '<div class="rlnb-profile"><div class="rlnb-profile-title"><b>After</b></div>'
                '<p class="rlnb-muted">The same: there is no operation yet.</p></div>'
            )
        else:
            self._after.value = profile_html(after, AFTER, before=before)

    def _show_space(self) -> None:
        self._space.value = space_html(self._bench.plan)

    def _show_memory(self) -> None:
        size = self._bench.notes.buffer_size
        self._quiet = True
        self._size.value = size
        self._quiet = False
        self._memory.value = memory_html(self._bench, size)

    def _resize(self, size: int) -> None:
        if not self._quiet:
            self._bench.note(buffer_size=size)


def profile_html(look: StateLook, title: str, *, before: StateLook | None = None) -> str:
    """Returns the profile of observations as a table, or as pictures.

    Args:
        look: the observations.
        title: heading.
        before: those that they were made of, to mark what is new.
    """
    if isinstance(look.profile, ImageProfile):
        return images_html(look.profile, look.space, title=title, frames=look.frames, note=look.phrase)
    new = set(look.names) - set(before.names) if before is not None else set()
    return component_table_html(look.profile, title=title, note=look.phrase, new=new)


def memory_html(bench: Workbench, buffer_size: int) -> str:
    """Returns how much of this machine's memory a replay buffer takes, or what it cannot keep."""
    try:
        needed = replay_bytes(bench.plan.space, bench.subject.env.spaces().action, buffer_size)
    except DesignError as error:
        return f'<span class="rlnb-muted">{escape(str(error))}</span>'
    found = replay_finding(needed, psutil.virtual_memory().total)
    words = escape(found.sentence)
    if found.severity is Severity.FINE:
        return f'{words} <span class="rlnb-muted">A warning comes at {100 * WARNING_SHARE:.0f} %.</span>'
    return finding_card(found)
