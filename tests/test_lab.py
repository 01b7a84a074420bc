"""`rlnb.Lab` as a notebook's code uses it, without a front end."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import rlnb
from rlnb.envs.apply import DesignApplier
from rlnb.envs.make import resolve_env
from rlnb.errors import DesignError, EnvError, ExperimentError, UsageError
from rlnb.run.recordings import EpisodeStore
from rlnb.view.frontend import after_each_cell

TERMS = [rlnb.Term("env", "reward"), rlnb.Term("tilt", "-abs(theta)", weight=2.0)]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def opened():
    """Opens labs and closes them at the end, as the end of a kernel does."""
    labs = []

    def open_lab(*args, **kwargs):
        labs.append(rlnb.Lab(*args, **{"episodes": 2, "frames": 0} | kwargs))
        return labs[-1]

    yield open_lab
    for lab in labs:
        lab.close()


def test_a_lab_alone_records_a_few_random_episodes_and_finds_them_again(opened, here, capsys):
    lab = opened("CartPole-v1")
    assert "Recording 2 random episodes of CartPole-v1" in capsys.readouterr().out
    assert set(lab.batch.labels.values()) == {"random"}
    assert [path.name for path in (here / "cartpole-v1.lab" / "episodes").glob("*.parquet")] == [
        "001-random.parquet"
    ]
    assert not (here / "cartpole-v1.yaml").exists()
    again = opened("CartPole-v1")
    assert capsys.readouterr().out == ""
    assert again.batch.reward.tobytes() == lab.batch.reward.tobytes()
    assert repr(again).startswith("Lab(CartPole-v1, cartpole-v1.yaml: 2 episodes; ")


def test_edits_reach_the_file_and_the_file_beats_the_code(opened, here):
    lab = opened("CartPole-v1", design="cart.yaml", reward=TERMS)
    assert lab.spec.reward == rlnb.RewardSpec(TERMS)
    lab.change(reward=[rlnb.Term("env", "reward", weight=0.5)], state=[rlnb.Select(["x", "theta"])])
    lab.flush()
    assert rlnb.Design.from_yaml(here / "cart.yaml") == lab.design()
    lab.undo()
    lab.redo()
    again = opened("CartPole-v1", design="cart.yaml", reward=TERMS)
    assert again.spec.reward.terms[0].weight == 0.5
    assert again.diff() == ["tilt removed", "env: weight 1 -> 0.5", "state 1 added: select x, theta"]
    assert [path.name for path in lab.files()] == ["cart.yaml", "001-random.parquet"]
    assert 'rlnb.Term("env", "reward", weight=0.5)' in again.to_code()


def test_running_the_cell_again_saves_what_the_first_lab_had_and_closes_it(opened):
    first = opened("CartPole-v1", design="cart.yaml")
    first.change(reward=TERMS)
    made_before = first.experiment()
    second = opened("CartPole-v1", design="cart.yaml")
    assert second.spec.reward == rlnb.RewardSpec(TERMS)
    first.change(reward="reward")
    with pytest.raises(
        UsageError, match="has been opened again since; use the new one, and make experiments"
    ):
        first.flush()
    with pytest.raises(UsageError, match="opened again since"):
        made_before.spec()
    assert rlnb.Design.from_yaml(second.path).reward == rlnb.RewardSpec(TERMS)


def test_the_lab_shows_what_training_pays_and_shows(opened):
    """The bytes of `rewards` and `observations` are those of the step-wise applier that training uses."""
    lab = opened("CartPole-v1", reward=TERMS, state=[rlnb.Delta(["theta"]), rlnb.Stack(3, ["x"])])
    factory = resolve_env("CartPole-v1")
    row = 0
    for episode in lab.batch.episodes():
        applier = DesignApplier(lab.design(), factory.spaces().observation, lab.names, 1)
        seen = applier.reset(episode.obs.matrix[:1])
        for step in range(len(episode)):
            assert lab.observations[row].tobytes() == seen[0].tobytes()
            done = bool(episode.terminated[step] or episode.truncated[step])
            info = {"TimeLimit.truncated": bool(episode.truncated[step])}
            if done:
                info["terminal_observation"] = episode.next_obs.matrix[step]
            seen, paid, _ = applier.step(
                episode.next_obs.matrix[step : step + 1],
                episode.action[step : step + 1],
                episode.reward[step : step + 1].astype(np.float32),
                np.array([done]),
                [info],
            )
            assert lab.rewards[row].tobytes() == paid[0].tobytes()
            row += 1
    assert row == len(lab.batch)


def test_recording_the_same_again_records_nothing(opened, here):
    lab = opened("CartPole-v1")

    def left(obs):
        return 0

    for _ in range(2):
        lab.record(left, episodes=2, seed=3)
    lab.record("idle", episodes=1)
    lab.record(left, episodes=2, seed=5)
    store = EpisodeStore(here / "cartpole-v1.lab" / "episodes")
    assert [entry.label for entry in store.entries()] == ["random", "left", "idle", "left"]
    assert len(lab.bench.keys) == 7
    assert lab.bench.good == {"left"}


def test_a_demonstration_stands_first_and_must_fit(opened, here):
    demo = rlnb.record(
        "CartPole-v1", lambda obs: int(obs[2] > 0), episodes=2, label="demo", to="demo.parquet"
    )
    lab = opened("CartPole-v1", demo)
    assert lab.bench.keys == ("demo:0", "demo:1")
    assert not (here / "cartpole-v1.lab" / "episodes").exists()
    assert opened("CartPole-v1", "demo.parquet", design="other.yaml").batch.labels == {0: "demo", 1: "demo"}
    with pytest.raises(
        UsageError, match=r"observations are x, x_dot, theta, theta_dot, and the environment's are cos_theta"
    ):
        opened("Pendulum-v1", demo)
    with pytest.raises(UsageError, match=r"demo='gone\.parquet' is no file"):
        opened("CartPole-v1", "gone.parquet")
    with pytest.raises(UsageError, match="demo=3 is no recording"):
        opened("CartPole-v1", 3)


def test_what_is_wrong_is_said_before_anything_is_made(opened, here):
    with pytest.raises(EnvError, match="CartPole-v1"):
        opened("CartPol-v1")
    with pytest.raises(DesignError, match="design='a.txt' names no design file"):
        opened("CartPole-v1", design="a.txt")
    with pytest.raises(DesignError, match="thetta"):
        opened("CartPole-v1", reward=[rlnb.Term("tilt", "thetta")])
    (here / "bad.yaml").write_text("reward:\n  terms:\n    - {name: env, expresion: reward}\n")
    with pytest.raises(DesignError, match="expresion"):
        opened("CartPole-v1", design="bad.yaml")
    assert sorted(path.name for path in here.iterdir() if path.suffix == ".yaml") == ["bad.yaml"]


def test_an_experiment_takes_policy_gamma_and_name_from_the_lab(opened):
    lab = opened(
        "CartPole-v1", reward=[rlnb.Term("env", "reward"), rlnb.Shaping("up", "-abs(theta)", gamma=0.9)]
    )
    exp = lab.experiment("PPO", total_timesteps=500)
    assert (exp.name, exp.spec.hyperparameters["gamma"], exp.spec.policy) == ("cartpole-v1", 0.9, "MlpPolicy")
    assert exp.spec.total_timesteps == 500
    assert lab.experiment("A2C", "mine").spec.total_timesteps == 100_000
    with pytest.raises(ExperimentError, match="gamma"):
        lab.experiment("PPO", gamma=0.5)
    assert exp.design == lab.design()


def test_an_experiment_made_before_an_edit_trains_the_edited_design(opened, here):
    lab = opened("CartPole-v1", design="cart.yaml")
    exp = lab.experiment("PPO", total_timesteps=500)
    lab.change(reward=TERMS)
    assert rlnb.Design.from_dict(exp.spec.design).reward == rlnb.RewardSpec(TERMS)
    assert (here / "cart.yaml").exists()  # `spec` flushes, so that promote() bundles what it trains


def test_signals_reach_terms(opened):
    signals = {"height": lambda env: float(env.unwrapped.state[0])}
    lab = opened("CartPole-v1", signals=signals, reward=[rlnb.Term("height", 'signals["height"] - next_x')])
    assert np.abs(lab.rewards).max() < 1e-6
    assert lab.experiment("PPO", total_timesteps=500).signals.keys() == {"height"}


def test_checks_speak_with_numbers(opened):
    lab = opened("CartPole-v1", reward=[rlnb.Term("none", "0 * x")])
    found = {finding.code: finding for finding in lab.check()}
    assert found["reward.never_fires"].severity == "warning"
    assert "none" in found["reward.never_fires"].sentence


def test_outside_a_notebook_no_cells_are_awaited():
    after_each_cell(lambda: None)()


def test_in_a_terminal_a_lab_is_a_line(opened, capsys):
    lab = opened("CartPole-v1")
    capsys.readouterr()
    lab._ipython_display_()
    assert capsys.readouterr().out.startswith("Lab of CartPole-v1 (cartpole-v1.yaml): 2 episodes (2 random)")


def test_a_lab_that_is_opened_again_lets_its_widgets_and_its_numbers_go(opened, monkeypatch):
    from ipywidgets.widgets.widget import _instances

    monkeypatch.setenv("JPY_SESSION_NAME", "a.ipynb")
    demo = rlnb.record("CartPole-v1", episodes=2)

    def open_again():
        lab = opened("CartPole-v1", demo=demo, design="cart.yaml", reward=TERMS)
        return lab, lab._shown().widget()

    first, widget = open_again()
    first_preview = weakref.ref(first.bench.preview)
    made = widget_ids(widget) & set(_instances)
    assert len(made) > 100
    again = [open_again() for _ in range(3)]
    assert not made & set(_instances)
    gc.collect()
    assert first_preview() is None
    assert all(lab.batch is first.batch for lab, _ in again)
    assert first.rewards.tobytes() == again[-1][0].rewards.tobytes()  # it is still a value to look at


def widget_ids(widget):
    """Returns the ids of a widget and of all inside it."""
    inside = (one for child in getattr(widget, "children", ()) for one in widget_ids(child))
    return {widget.model_id, widget.layout.model_id, *inside}


def test_running_the_cell_again_takes_in_a_file_that_was_edited_and_keeps_what_was_not_saved(opened):
    first = opened("CartPole-v1", design="cart.yaml", reward=TERMS)
    first.change(reward=[rlnb.Term("env", "reward", weight=2.0)])
    first.flush()
    first.path.write_text(first.path.read_text().replace("weight: 2.0", "weight: 7.0"))
    first.change(reward=[rlnb.Term("env", "reward", weight=3.0)])
    second = opened("CartPole-v1", design="cart.yaml", reward=TERMS)
    assert second.spec.reward.terms[0].weight == 7.0
    assert second.versions()[-1].summary == "not saved, as the file was changed meanwhile"


@pytest.mark.parametrize("policies", [5, ["expert"], {5: len}, {"expert": 5}])
def test_policies_that_cannot_act_are_refused_before_anything_is_recorded(opened, here, policies):
    with pytest.raises(UsageError, match="policies"):
        opened("CartPole-v1", policies=policies)
    assert not list(here.iterdir())


def test_a_policy_without_a_name_needs_a_label(opened):
    lab = opened("CartPole-v1")
    with pytest.raises(UsageError, match="has no name to label its episodes with; give label='expert'"):
        lab.record(lambda obs: 0, episodes=1)
    lab.record(lambda obs: 0, episodes=1, label="left")
    assert set(lab.batch.labels.values()) == {"random", "left"}


def test_a_lab_that_is_opened_again_stops_recording(opened):
    first = opened("CartPole-v1", design="cart.yaml")
    acting, replaced = threading.Event(), threading.Event()

    def waits(obs):
        acting.set()
        assert replaced.wait(30)
        return 0

    recording = threading.Thread(target=lambda: first.record(waits, episodes=1000))
    recording.start()
    assert acting.wait(30)
    opened("CartPole-v1", design="cart.yaml")
    replaced.set()
    recording.join(30)
    assert not recording.is_alive()
    assert len(first.episodes.entries()) == 1  # nothing but the first, random ones: no episode was whole


def test_a_file_that_does_not_work_on_the_episodes_is_named(opened, here):
    (here / "cart.yaml").write_text(rlnb.Design(rlnb.RewardSpec([rlnb.Term("a", "vy")])).to_yaml())
    with pytest.raises(
        DesignError, match=r"cart\.yaml does not work on this lab's episodes: 'vy' in .* Correct it"
    ):
        opened("CartPole-v1", design="cart.yaml")
    with pytest.raises(DesignError, match="^'vy' in"):
        opened("CartPole-v1", design="new.yaml", reward="vy")
