from __future__ import annotations

import numpy as np

from rlnb.run.layout import RunLayout
from rlnb.run.metrics import MetricReader
from rlnb.testing.synthetic_run import SyntheticRun
from rlnb.view.history import History
from rlnb.view.panels import PANEL_KEYS, LineStyle, panels_of


def episodes(count: int, **columns: object) -> list[dict[str, object]]:
    rows = []
    for place in range(count):
        values = {key: value(place) if callable(value) else value for key, value in columns.items()}
        rows.append({"kind": "episode", "step": 10 * (place + 1), **values})
    return rows


def by_key(rows) -> dict[str, object]:
    return {panel.key: panel for panel in panels_of(History(rows))}


def test_without_rows_the_charts_that_every_run_has_are_there_and_empty():
    panels = panels_of(History())
    assert [panel.key for panel in panels] == ["return", "length", "speed"]
    assert all(not panel.lines and panel.unit for panel in panels)


def test_the_environments_own_reward_makes_one_line():
    rows = episodes(5, **{"episode/return": float, "episode/return_env": lambda i: i + 1e-7})
    panel = by_key(rows)["return"]
    assert [(line.label, line.style) for line in panel.lines] == [
        ("episodes", LineStyle.FAINT),
        ("return", LineStyle.LINE),
    ]
    assert panel.last == [4.0, 2.0]


def test_a_designed_reward_stands_beside_the_environments():
    rows = episodes(3, **{"episode/return": 1.0, "episode/return_env": 5.0})
    panel = by_key(rows)["return"]
    solid = [line.label for line in panel.lines if line.style is LineStyle.LINE]
    assert solid == ["designed", "environment"]
    assert panel.last == [1.0, 5.0, 1.0, 5.0]
    assert panel.unit == "reward per episode"


def test_terms_are_shown_from_two_on_and_eight_at_most():
    one = episodes(3, **{"episode/return": 1.0, "reward/env": 1.0})
    assert "terms" not in by_key(one)
    many = episodes(3, **{f"reward/t{i}": float(i) for i in range(11)})
    panel = by_key(many)["terms"]
    assert [line.label for line in panel.lines] == [f"t{i}" for i in range(8)]
    assert panel.note == "mean of 20 episodes; first 8 of 11 terms"
    assert panel.last == [float(i) for i in range(8)]


def test_entropy_is_minus_sb3s_entropy_loss():
    panel = by_key([{"kind": "train", "step": 1, "train/entropy_loss": -1.25}])["entropy"]
    assert panel.last == [1.25]
    assert panel.unit == "nats"


def test_off_policy_losses_have_their_places():
    row = {
        "kind": "train",
        "step": 4,
        "train/actor_loss": -3.0,
        "train/critic_loss": 2.0,
        "train/ent_coef": 0.1,
    }
    panels = by_key([row])
    assert [line.label for line in panels["value_loss"].lines] == ["critic"]
    assert [line.label for line in panels["policy_loss"].lines] == ["actor"]
    assert panels["exploration"].last == [0.1]
    assert "kl" not in panels


def test_a_loss_that_is_alone_is_no_total():
    panel = by_key([{"kind": "train", "step": 4, "train/loss": 1.0}])["value_loss"]
    assert [line.label for line in panel.lines] == ["loss"]


def test_speed_is_one_line_even_when_two_keys_carry_it():
    row = {"kind": "train", "step": 4, "time/fps": 10.0, "speed/steps_per_second": 12.0}
    panel = by_key([row])["speed"]
    assert [line.label for line in panel.lines] == ["steps per second"]
    assert panel.last == [12.0]


def test_rows_of_other_values_make_no_points():
    rows = [{"kind": "train", "step": 1, "train/loss": 1.0}, {"kind": "train", "step": 2, "time/fps": 9.0}]
    assert by_key(rows)["value_loss"].x.tolist() == [1.0]


def test_a_whole_run_fits_the_screen(tmp_path):
    run = SyntheticRun(RunLayout(tmp_path / "run"), total=300_000)
    run.begin()
    run.advance(300_000)
    rows, _ = MetricReader(run.layout).read()
    panels = panels_of(History(rows), points=500)
    keys = [panel.key for panel in panels]
    assert keys == [key for key in PANEL_KEYS if key != "exploration"]
    for panel in panels:
        assert panel.ys.shape == (len(panel.lines), len(panel.x))
        assert 2 <= len(panel.x) <= 500
        assert np.all(np.diff(panel.x) >= 0)
        assert panel.title
        assert panel.unit or panel.title.endswith("loss")  # whose unit is the algorithm's own


def test_only_some_panels():
    assert [panel.key for panel in panels_of(History(), only=["speed"])] == ["speed"]
