"""The tab Checks: what would go wrong if an agent were trained on this design, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import ipywidgets as w

from rlnb.design.checks.finding import Finding, Severity
from rlnb.design.checks.reward.payments import WEAK_POLICIES
from rlnb.errors import RlnbError
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.checks.findings_html import finding_card, grouped, passed_html, summary
from rlnb.view.lab.listeners import Event
from rlnb.view.lab.reward.reward_figures import episode_name
from rlnb.view.lab.widget_tree import close_tree

#: steps of a finding that can be jumped to
_MOST_ROWS = 4


class ChecksTab:
    """Shows the findings of a workbench's last settling.

    Args:
        bench: the model.

    Attributes:
        widget: what is shown.
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._quiet = False
        self._cards: dict[Finding | str, w.Widget] = {}
        self._summary = w.HTML()
        self._summary.add_class("rlnb-summary")
        self._status = w.HTML()
        self._status.add_class("rlnb-muted")
        self._again = w.Button(description="Check again", icon="refresh", layout=w.Layout(width="auto"))
        self._again.on_click(lambda _: self._check())
        head = w.HBox([self._summary, self._again, self._status])
        head.add_class("rlnb-checks-head")
        self._good = w.Box(layout=w.Layout(flex_flow="row wrap"))
        self._good.add_class("rlnb-names-box")
        self._good_words = w.HTML()
        self._good_words.add_class("rlnb-muted")
        self._found = w.VBox()
        self._found.add_class("rlnb-findings")
        good = w.VBox([w.HBox([w.Label("Good policies:"), self._good]), self._good_words])
        good.add_class("rlnb-good")
        self.widget = w.VBox([head, good, self._found])
        self.widget.add_class("rlnb-checks")
        self._show_good()
        self._show()
        bench.listeners.add(self._hear)

    def _hear(self, event: Event) -> None:
        if event is Event.SETTLED:
            self._show()
        elif event in (Event.REWARD, Event.STATE, Event.EPISODES):
            self._status.value = "Changed since; this is what was found before."
            if event is Event.EPISODES:
                self._show_good()
                self._show_cards([])  # they point at rows of episodes that may be gone
        elif event is Event.NOTES:
            self._show_good()

    # --- findings

    def _show(self) -> None:
        findings = self._bench.findings
        self._status.value = ""
        self._summary.value = f"<b>{escape(summary(findings))}</b>" if findings else "Not checked yet."
        self._show_cards(findings)

    def _show_cards(self, findings: Iterable[Finding]) -> None:
        """Shows findings; what is the same as before stays as it is, with what somebody has opened there."""
        old, self._cards = self._cards, {}
        for name, group in grouped(findings).items():
            heading = f'<h4 class="rlnb-group">{escape(name)}</h4>'
            self._cards[heading] = old.pop(heading, None) or w.HTML(heading)
            for one in group:
                if one.severity is not Severity.FINE:
                    self._cards[one] = old.pop(one, None) or self._card(one)
            passed = passed_html(group)
            if passed:
                self._cards[passed] = old.pop(passed, None) or w.HTML(passed)
        self._found.children = list(self._cards.values())
        for card in old.values():
            close_tree(card)

    def _card(self, finding: Finding) -> w.Widget:
        card = w.HTML(finding_card(finding))
        rows = [row for row in finding.rows if 0 <= row < len(self._bench.batch)][:_MOST_ROWS]
        if not rows:
            return card
        where = w.HTML()
        where.add_class("rlnb-muted")
        buttons = [self._show_button(row, where) for row in rows]
        line = w.HBox([w.Label("Show"), *buttons, where])
        line.add_class("rlnb-show-line")
        return w.VBox([card, line])

    def _show_button(self, row: int, where: w.HTML) -> w.Button:
        bench = self._bench
        episode = int(bench.batch.starts.searchsorted(row, side="right")) - 1
        t = int(bench.batch.t[row])
        name = episode_name(bench, episode)
        made = w.Button(description=f"{name}, t = {t}", layout=w.Layout(width="auto"))
        made.tooltip = "look at this episode in the tab Episodes"

        def show(_: object) -> None:
            try:
                bench.select(episode)
            except RlnbError as error:
                where.value = escape(str(error))
            else:
                where.value = escape(f"{name} is chosen: see step {t} in the tab Episodes.")

        made.on_click(show)
        return made

    def _check(self) -> None:
        self._again.disabled = True
        self._status.value = "checking …"
        try:
            self._bench.settle()
        except RlnbError as error:
            self._status.value = escape(str(error))
        finally:
            self._again.disabled = False

    # --- which policies are good

    def _show_good(self) -> None:
        bench = self._bench
        labels = [label for label in dict.fromkeys(bench.batch.labels.values()) if label]
        good = bench.good
        self._quiet = True
        try:
            if [box.description for box in self._good.children] != labels:
                self._good.children = [self._good_box(label) for label in labels]
            for box in self._good.children:
                box.value = box.description in good
        finally:
            self._quiet = False
        named = ", ".join(WEAK_POLICIES)
        chosen = "chosen here" if bench.notes.good else f"all but {named}, as long as none is chosen"
        self._good_words.value = escape(
            f"Episodes that show what is wanted ({chosen}). The checks ask whether the reward pays them more than "
            "the others, and more than what an idle or looping policy would get."
        )

    def _good_box(self, label: str) -> w.Checkbox:
        box = w.Checkbox(description=label, indent=False, layout=w.Layout(width="auto"))
        box.observe(lambda _: self._choose_good(), "value")
        return box

    def _choose_good(self) -> None:
        if not self._quiet:
            self._bench.note(good=tuple(box.description for box in self._good.children if box.value))
            self._status.value = "Changed since; this is what was found before."
