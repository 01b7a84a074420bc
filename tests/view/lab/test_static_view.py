from __future__ import annotations

import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

import rlnb
from rlnb.view.drawing import WIDTH
from rlnb.view.figures import PALETTE
from rlnb.view.lab.still import static_state
from rlnb.view.lab.still.static_figures import css_color, figure_rows
from rlnb.view.lab.still.static_view import StaticLab, figures_image, shown_episode
from tests.view.lab.shown import figures

DEFAULTS = rlnb.Design(rlnb.RewardSpec([rlnb.Term("env", "reward"), rlnb.Term("tilt", "-abs(theta)")]))
CHANGED = rlnb.RewardSpec(
    [
        rlnb.Term("env", "reward"),
        rlnb.Term("tilt", "-abs(theta)", weight=2.5, clip=(-0.2, 0.0), group="safety"),
        rlnb.Term("slow", "-abs(x_dot)", enabled=False),
        rlnb.Shaping("near", "-abs(x)", gamma=0.9),
    ],
    groups=[rlnb.TermGroup("safety", weight=0.5)],
)
STATE = rlnb.StateSpec([rlnb.Derive("energy", "theta_dot**2"), rlnb.Select(["x", "theta", "energy"])])


class Reader(HTMLParser):
    """What a browser would make of it: texts of table rows, and every tag and attribute."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: dict[str, str] = {}
        self.rows: list[list[str]] = []
        self.text = ""
        self._cell = self._style = False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.update(attrs)
        self._style = tag == "style"
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self._cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self._cell = False
        self._style = self._style and tag != "style"

    def handle_data(self, data):
        if self._style:
            return
        self.text += data
        if self._cell:
            self.rows[-1][-1] += data


def _static(bench) -> StaticLab:
    return StaticLab(bench, bench.design, DEFAULTS, title="CartPole-v1", file_name="cart.yaml")


@pytest.fixture
def edited(bench):
    bench.edit(reward=CHANGED, state=STATE, what="edited")
    return bench


def test_a_document_says_what_is_trained(edited):
    html = _static(edited).html()
    read = Reader(html)
    assert "5 episodes (3 random, 2 balance)" in read.text
    assert ["term", "computed from", "weight", "clipped to", "gamma", "group"] in read.rows
    assert ["tilt", "-abs(theta)", "2.5", "[-0.2, 0]", "", "safety"] in read.rows
    assert ["slow", "-abs(x_dot)", "1 (off)", "", "", ""] in read.rows
    assert ["near", "shaping by the potential -abs(x)", "1", "", "0.9", ""] in read.rows
    assert ["safety", "the sum of its weighted terms", "0.5"] in read.rows
    assert "Reward of a step: the sum of the weighted terms and groups." in read.text
    assert "derive: name energy, expression theta_dot**2" in read.text
    assert "Observation space: Box of shape (3,), float32: x, theta, energy" in read.text
    assert "Before: what the environment gives" in read.text
    assert "After: what the agent sees" in read.text
    assert "script" not in read.tags
    assert len(html.encode()) < 60_000


def test_the_difference_from_the_code_is_in_words(edited):
    text = Reader(_static(edited).html()).text
    assert "tilt: weight 1 -> 2.5" in text
    assert "tilt: clip none -> [-0.2, 0]" in text
    assert "state 1 added: derive: name energy" in text
    edited.edit(reward=DEFAULTS.reward, state=rlnb.StateSpec(), what="back")
    same = Reader(_static(edited).html()).text
    assert "As in the code: the design file changes nothing." in same
    assert "->" not in same
    assert "Before" not in same


def test_returns_are_told_by_policy(edited):
    rows = Reader(_static(edited).html()).rows
    preview = edited.preview
    balanced = [place for place, label in enumerate(preview.labels) if label == "balance"]
    [row] = [row for row in rows if row[0] == "balance"]
    assert row[1:3] == ["2", "1,000"]
    assert row[4] == "500.0 ± 0"
    assert row[3].startswith(f"{preview.returns[balanced].mean():.1f} ±")


def test_the_findings_are_those_of_the_checks(edited):
    text = Reader(_static(edited).html()).text
    assert edited.findings
    assert all(finding.sentence in text for finding in edited.findings)


def test_whatever_a_design_says_is_escaped(bench):
    design = rlnb.Design(rlnb.RewardSpec([rlnb.Term("a", "where(x < 1, 1, 0)"), rlnb.Term("b", python="f")]))
    lab = StaticLab(bench, design, DEFAULTS, title="<img src=x onerror=alert(1)>", file_name='"><b>.yaml')
    read = Reader(lab.html())
    assert "img" not in read.tags
    assert "onerror" not in read.attributes
    assert "<img src=x onerror=alert(1)>" in read.text
    assert ["a", "where(x < 1, 1, 0)", "1"] in read.rows
    assert ["b", "f(batch)", "1"] in read.rows


def test_a_terminal_gets_one_line(edited):
    said = "Lab of CartPole-v1 (cart.yaml): 5 episodes (3 random, 2 balance); 3 reward terms; 3 dimensions, float32"
    assert _static(edited).text() == said


def test_many_components_are_counted_and_not_all_shown(edited, monkeypatch):
    monkeypatch.setattr(static_state, "ROWS", 2)
    text = Reader(_static(edited).html()).text
    assert "the first 2 of 4 are shown" in text
    assert "the first 2 of 3 are shown" in text
    monkeypatch.setattr(static_state, "MOST_BYTES", 100)
    assert "too much for a document; see the tab State" in Reader(_static(edited).html()).text


def test_the_picture_is_light_small_and_full(edited):
    lab = _static(edited)
    data, metadata = lab.picture()
    png = base64.b64decode(data["image/png"])
    assert len(png) < 150_000
    assert metadata["image/png"]["width"] == WIDTH
    assert data["text/plain"] == lab.text()
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    assert pixels.shape[1] == 1600
    assert (pixels[0, 0] == 255).all()
    top, bottom = np.array_split(pixels, 2)
    assert (top.mean(axis=2) < 200).mean() > 0.05, "the stack fills the upper half"
    assert all((part < 200).any() for part in np.array_split(bottom, 3, axis=1))


def test_the_best_episode_is_drawn_until_somebody_chooses(edited):
    best = int(np.argmax(edited.preview.returns))
    assert best > 2
    assert shown_episode(edited) == best
    edited.select(1)
    assert shown_episode(edited) == 1


def test_every_kind_of_figure_is_drawn_in_its_colours():
    every = figures()
    assert [len(row) for row in figure_rows(every)] == [1, 3, 2, 1, 1]
    png = figures_image(every, "title", "words $x_{", "aside")
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    rows = np.array_split(pixels, 5)
    for place, colors in {0: (0, 1), 1: ("#7a7a7a", 2, 0), 2: (0, 1), 3: (2,)}.items():
        for color in colors:
            solid = np.array([int(css_color(color)[at : at + 2], 16) for at in (1, 3, 5)])
            ink = solid if place else 0.75 * solid + 0.25 * 255  # what is stacked is paler than a line
            near = np.abs(rows[place] - ink).max(axis=2) < 16
            assert near.sum() > 20, (place, color)


def test_colours_are_those_of_white_paper():
    assert css_color(9) == PALETTE[1]
    assert css_color("#123456") == "#123456"
    assert re.fullmatch("#[0-9a-f]{6}", css_color("ink"))
    assert css_color("var(--rlnb-c1)") == css_color("ink")


def test_a_broken_check_is_a_sentence_and_no_crash(edited, monkeypatch):
    def refuse():
        raise rlnb.RlnbError("it cannot be <checked>")

    monkeypatch.setattr(edited, "settle", refuse)
    assert "it cannot be <checked>" in Reader(_static(edited).html()).text
