from __future__ import annotations

import re

import pytest

from rlnb.design.checks.finding import Finding, Severity
from rlnb.errors import DesignError
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.checks.checks_tab import ChecksTab
from rlnb.view.lab.checks.findings_html import finding_card, findings_html, grouped, summary
from rlnb.view.lab.listeners import Event
from tests.view.lab.benches import bench_of

LOOP = Finding(
    "reward.loop", Severity.PROBLEM, "The best loop earns 0.5 in 3 steps.", "It is <never> left.",
    "Take a cost for each step.", value=0.5, rows=(30, 99),
)  # fmt: skip
WIDE = Finding("state.dimensions", Severity.WARNING, "The state has 1,200 dimensions.", "Slow.", value=1200.0)
CONSTANT = Finding("state.constant", Severity.FINE, "Every component of x_2 changes.", "")
SCALE = Finding("reward.scale", Severity.FINE, "A step pays 12 % of 3 steps.", "", value=0.1204)
FINDINGS = [CONSTANT, LOOP, SCALE, WIDE]


def words(widget):
    """Returns all text of a widget and of what is in it."""
    own = [str(getattr(widget, name)) for name in ("value", "description") if hasattr(widget, name)]
    return " ".join([*own, *(words(child) for child in getattr(widget, "children", ()))])


def buttons(widget):
    found = [widget] if type(widget).__name__ == "Button" else []
    return [*found, *(one for child in getattr(widget, "children", ()) for one in buttons(child))]


@pytest.fixture
def bench():
    return bench_of()


@pytest.fixture
def tab(bench):
    tab = ChecksTab(bench)
    bench.findings = FINDINGS
    bench.listeners.tell(Event.SETTLED)
    return tab


def test_the_worst_comes_first_and_what_passed_is_folded():
    html = findings_html(FINDINGS)
    assert summary(FINDINGS) == "1 problem, 1 warning, 2 passed"
    assert (
        html.index("Reward</h4>") < html.index("loop earns") < html.index("State</h4>") < html.index("1,200")
    )
    assert html.count("1 check passed") == 2
    assert "<never>" not in html
    assert "&lt;never&gt;" in html
    assert [one.code for one in grouped(FINDINGS)["Reward"]] == ["reward.loop", "reward.scale"]
    assert "Nothing has been checked" in findings_html([])
    assert summary([]) == "0 passed"


@pytest.mark.parametrize(
    ("sentence", "value", "bold"),
    [
        ("The best loop earns 0.5 in 3 steps.", 0.5, "0.5"),
        ("Of 200 episodes 12 % fail.", 0.1204, "12 %"),
        ("obs_2 has 1,200 values.", None, "1,200"),
        ("'a' ranks 0.87 and -3.5e-05 below.", -3.5e-5, "-3.5e-05"),
        ("No component repeats 'x1'.", 0.0, None),
    ],
)
def test_the_finding_s_own_number_is_bold(sentence, value, bold):
    card = finding_card(Finding("state.a", Severity.HINT, sentence, "", value=value))
    assert re.findall(r"<b>(.*?)</b>", card) == ([bold] if bold else [])


def test_severity_is_a_word_and_a_sign_beside_the_colour():
    for severity, word in ((Severity.PROBLEM, "✖</span> Problem"), (Severity.HINT, "●</span> Hint")):
        assert word in finding_card(Finding("a.b", severity, "s", "w"))


def test_findings_are_shown_when_the_bench_settles(bench, tab):
    text = words(tab.widget)
    assert "1 problem, 1 warning, 2 passed" in tab._summary.value
    assert text.index("Reward") < text.index("loop earns") < text.index("State</h4>")
    bench.listeners.tell(Event.STATE)
    assert "found before" in tab._status.value
    assert "loop earns" in words(tab.widget)


def test_a_step_of_a_finding_is_shown_as_an_episode(bench, tab):
    jumps = [one for one in buttons(tab.widget) if one.description != "Check again"]
    assert [one.description for one in jumps] == ["demo 1, t = 5", "demo 2, t = 24"]
    jumps[1].click()
    assert bench.episode == 3
    assert "demo 2 is chosen: see step 24 in the tab Episodes." in words(tab.widget)


def test_what_is_the_same_stays_and_the_rest_is_closed(bench, tab):
    _heading, loop, passed, _state, wide, _fine = tab._found.children
    bench.findings = [LOOP, SCALE]
    bench.listeners.tell(Event.SETTLED)
    assert tab._found.children[1:] == (loop, passed)
    assert wide.comm is None  # closed
    assert loop.comm is not None


def test_rows_that_are_gone_are_no_buttons(bench, tab):
    bench.listeners.tell(Event.EPISODES)
    assert tab._found.children == ()
    bench.findings = [Finding("reward.loop", Severity.HINT, "s", "w", rows=(10_000,))]
    bench.listeners.tell(Event.SETTLED)
    assert [one.description for one in buttons(tab.widget)] == ["Check again"]


def test_which_policies_are_good_is_chosen_here(bench, tab):
    boxes = {box.description: box for box in tab._good.children}
    assert {label: box.value for label, box in boxes.items()} == {"random": False, "demo": True}
    assert "as long as none is chosen" in tab._good_words.value
    boxes["random"].value = True
    assert bench.notes.good == ("random", "demo")
    assert "(chosen here)" in tab._good_words.value
    boxes["demo"].value = False
    assert bench.good == {"random"}
    bench.note(good=())
    assert boxes["demo"].value
    assert not boxes["random"].value


def test_check_again_checks_what_is_there(bench, tab):
    tab._again.click()
    assert len(bench.findings) > 10
    assert tab._status.value == ""
    assert {one.code for one in bench.findings} >= {"state.constant", "reward.scale"}
    assert "flag" in words(tab.widget)  # it never changes


def test_a_check_that_fails_is_said(tab, monkeypatch):
    def fail(self):
        raise DesignError("The reward <fails>.")

    monkeypatch.setattr(Workbench, "settle", fail)
    tab._again.click()
    assert tab._status.value == "The reward &lt;fails&gt;."
    assert not tab._again.disabled
