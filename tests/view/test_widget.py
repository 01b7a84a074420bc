from __future__ import annotations

import json

import numpy as np

from rlnb.view.assets import STATIC
from rlnb.view.history import History
from rlnb.view.panels import PANEL_KEYS, panels_of
from rlnb.view.widget import ChartsWidget, describe, pack


def test_every_chart_has_a_trait_for_its_numbers():
    names = {f"data_{key}" for key in PANEL_KEYS}
    assert names == {name for name in ChartsWidget.class_trait_names(sync=True) if name.startswith("data_")}


def test_numbers_are_packed_as_x_then_lines():
    rows = [{"kind": "episode", "step": s, "episode/return": 2.0 * s, "episode/length": 5} for s in (1, 2, 3)]
    panel = panels_of(History(rows), only=["return"])[0]
    numbers = np.frombuffer(pack(panel)).reshape(len(panel.lines) + 1, -1)
    assert numbers[0].tolist() == [1, 2, 3]
    assert numbers[1].tolist() == [2, 4, 6]
    assert numbers[2].tolist() == [2, 3, 4]


def test_descriptions_are_json_without_nan():
    rows = [{"kind": "episode", "step": 1, "episode/return": float("nan")}]
    text = json.dumps([describe(panel) for panel in panels_of(History(rows))], allow_nan=False)
    assert '"last": [null, null]' in text


def test_an_update_is_one_message(monkeypatch):
    widget = ChartsWidget()
    sent = []
    monkeypatch.setattr(widget, "send_state", lambda key=None: sent.append(set(key)))
    panels = panels_of(History([{"kind": "episode", "step": 1, "episode/return": 1.0}]))
    widget.show({"title": "a"}, panels, {"last_step": 1})
    assert len(sent) == 1
    assert {"head", "panels", "marks", "seq", "data_return"} <= sent[0]
    widget.show({"title": "b"})
    assert sent[1] == {"head", "seq"}


def test_only_well_formed_messages_are_heard():
    widget, heard = ChartsWidget(), []
    widget.on_verb(heard.append)
    for content in ({"verb": "pause"}, {"verb": 3}, "pause", {}):
        widget._msg_callbacks(widget, content, [])
    assert heard == ["pause"]


def test_the_licence_of_uplot_is_shipped_with_it():
    text = (STATIC / "uPlot.LICENSE.txt").read_text()
    assert text.startswith("The MIT License (MIT)")
    assert "Leon Sorokin" in text
