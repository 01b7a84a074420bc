"""The whole lab as one widget: a heading with the file, undo and redo, and a tab for each thing to do."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import ipywidgets as w

from rlnb.design.checks.finding import Severity
from rlnb.design.code import to_code
from rlnb.errors import RlnbError
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.checks.checks_tab import ChecksTab
from rlnb.view.lab.episodes.episodes import Episodes
from rlnb.view.lab.episodes.episodes_tab import EpisodesTab
from rlnb.view.lab.keeper import Keeper
from rlnb.view.lab.listeners import Event
from rlnb.view.lab.reward.reward_tab import RewardTab
from rlnb.view.lab.state.state_tab import StateTab
from rlnb.view.lab.style import style

TABS = ("Episodes", "Reward", "State", "Checks")


class LabView:
    """The widgets of a lab.

    Args:
        title: what is worked on, e.g. "LunarLander-v3".
        file_name: name of the design file.
        bench: the model.
        keeper: saves it.
        episodes: what can be recorded.

    Attributes:
        widget: what is shown.
    """

    def __init__(
        self, title: str, file_name: str, bench: Workbench, keeper: Keeper, episodes: Episodes
    ) -> None:
        self._bench, self._keeper = bench, keeper
        self._undo = _button("Undo", "undo", bench.undo, self._guard)
        self._redo = _button("Redo", "repeat", bench.redo, self._guard)
        self._words = w.HTML()
        self._words.add_class("rlnb-muted")
        self._versions = w.Dropdown(options=[("Versions", 0)], layout=w.Layout(width="130px"))
        self._versions.observe(lambda change: self._restore(change["new"]), "value")
        self._code = w.ToggleButton(description="Code", icon="code", layout=w.Layout(width="84px"))
        self._code.tooltip = "the same design as the source of a cell"
        self._source = w.Textarea(
            layout=w.Layout(width="100%", height="180px", display="none"), disabled=True
        )
        self._code.observe(lambda _: self._show_code(), "value")
        self._banner = w.HTML()
        self._take = _button("Take over", "hand-paper-o", keeper.take_over, self._guard)
        self._mine = _button("Keep mine", "save", keeper.keep_mine, self._guard)
        self._theirs = _button("Load the file", "download", keeper.load_theirs, self._guard)
        self._decide = w.HBox([self._banner, self._take, self._mine, self._theirs])
        self._decide.add_class("rlnb-lab-banner")
        head = w.HBox(
            [
                w.HTML(f"<b>{escape(title)}</b>"), w.HTML(f"<code>{escape(file_name)}</code>"), self._words,
                self._undo, self._redo, self._versions, self._code,
            ]
        )  # fmt: skip
        head.add_class("rlnb-lab-head")
        looking = EpisodesTab(bench, episodes, visible=False)
        self._tabs = w.Tab(
            children=[
                looking.widget,
                RewardTab(bench).widget,
                StateTab(bench).widget,
                ChecksTab(bench).widget,
            ],
            selected_index=1,
        )
        for place, name in enumerate(TABS):
            self._tabs.set_title(place, name)
        self._tabs.observe(lambda change: setattr(looking, "visible", change["new"] == 0), "selected_index")
        self.widget = w.VBox([style(), head, self._decide, self._source, self._tabs])
        for name in ("rlnb-lab", "rlnb-lab-view"):
            self.widget.add_class(name)
        bench.listeners.add(self._hear)
        self._show_head()

    def _hear(self, event: Event) -> None:
        if event in (Event.REWARD, Event.STATE, Event.FILE, Event.SETTLED):
            self._show_head()

    def _show_head(self) -> None:
        bench, keeper = self._bench, self._keeper
        self._undo.disabled, self._redo.disabled = not bench.undoes, not bench.redoes
        self._undo.tooltip = f"take back: {bench.undoes}" if bench.undoes else "nothing to take back"
        self._redo.tooltip = f"do again: {bench.redoes}" if bench.redoes else "nothing to do again"
        question = keeper.question
        self._words.value = "" if question else escape(bench.file_words)
        self._banner.value = escape(question)
        self._decide.layout.display = "" if question else "none"
        self._take.layout.display = "" if keeper.owner is not None else "none"
        for button in (self._mine, self._theirs):
            button.layout.display = "" if keeper.conflict else "none"
        options = [("Versions", 0), *((words, number) for number, words in keeper.versions[:30])]
        if list(self._versions.options) != options:
            self._versions.options = options
        bad = sum(one.severity in (Severity.PROBLEM, Severity.WARNING) for one in bench.findings)
        self._tabs.set_title(len(TABS) - 1, f"Checks ({bad})" if bad else "Checks")
        if self._code.value:
            self._source.value = to_code(bench.design)

    def _restore(self, number: int) -> None:
        if number:
            self._guard(lambda: self._keeper.restore(number))
            self._versions.value = 0

    def _show_code(self) -> None:
        self._source.layout.display = "" if self._code.value else "none"
        if self._code.value:
            self._source.value = to_code(self._bench.design)

    def _guard(self, action: Callable[[], None]) -> None:
        """Does what a button says, and says in the heading when it does not work."""
        try:
            action()
        except RlnbError as error:
            self._bench.say(str(error))


def _button(
    text: str, icon: str, action: Callable[[], None], guard: Callable[[Callable[[], None]], None]
) -> w.Button:
    made = w.Button(description=text, icon=icon, layout=w.Layout(width="auto"))
    made.on_click(lambda _: guard(action))
    return made
