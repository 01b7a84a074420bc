from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

import rlnb
from rlnb.design.columns import MappingColumns
from rlnb.errors import DesignError, ExpressionError, UsageError
from rlnb.run.recordings import Recorded
from rlnb.view.lab.listeners import Event
from tests.view.lab.conftest import total


def fails(batch):
    return batch.nothing


TERMS = [rlnb.Term("env", "reward"), rlnb.Term("tilt", "-abs(theta)", weight=2.0)]


def test_an_edit_is_shown_told_and_taken_back(bench, told):
    bench.edit(reward=rlnb.RewardSpec(TERMS), what="tilt")
    assert told == ["reward"]
    assert bench.preview.result.total.tobytes() == total(bench).tobytes()
    assert bench.undoes == "tilt"
    bench.undo()
    assert bench.reward.is_identity
    assert bench.preview.result.total.tobytes() == bench.batch.reward.astype(np.float32).tobytes()
    bench.redo()
    assert bench.reward == rlnb.RewardSpec(TERMS)
    assert told == ["reward"] * 3


@pytest.mark.parametrize(
    ("reward", "error"),
    [
        ([rlnb.Term("a", "nowhere + 1")], ExpressionError),
        ([rlnb.Term("a", python="missing")], DesignError),
        ([rlnb.Term("a", fails)], DesignError),
    ],
)
def test_an_edit_that_does_not_work_leaves_everything_as_it_was(bench, told, reward, error):
    bench.edit(reward=rlnb.RewardSpec(TERMS), what="tilt")
    before = bench.preview.result.total.tobytes()
    with pytest.raises(error):
        bench.edit(reward=rlnb.RewardSpec(reward), what="bad")
    assert (bench.reward, bench.undoes) == (rlnb.RewardSpec(TERMS), "tilt")
    assert bench.preview.result.total.tobytes() == before
    assert told == ["reward"]


def test_reward_and_state_change_together_or_not_at_all(bench, told):
    with pytest.raises(DesignError, match="speed"):
        bench.edit(reward=rlnb.RewardSpec(TERMS), state=rlnb.StateSpec([rlnb.Select(["speed"])]), what="both")
    assert (bench.reward.is_identity, bench.state.is_identity, bench.plan.names[0], told) == (
        True,
        True,
        "x",
        [],
    )
    bench.edit(reward=rlnb.RewardSpec(TERMS), state=rlnb.StateSpec([rlnb.Select(["x"])]), what="both")
    assert bench.plan.names == ("x",)
    assert told == ["reward", "state"]
    bench.undo()
    assert bench.plan.names == ("x", "x_dot", "theta", "theta_dot")


def test_a_function_that_a_cell_defines_anew_counts_at_once(bench, told):
    @rlnb.reward_term
    def bonus(batch):
        return np.ones(len(batch))

    bench.edit(reward=rlnb.RewardSpec([bonus]), what="bonus")
    bench.edit(reward=rlnb.RewardSpec([rlnb.Term("twice", bonus, weight=2.0)]), what="twice")

    @rlnb.reward_term
    def bonus(batch):
        return np.full(len(batch), 3.0)

    bench.rebind()
    assert told == ["reward"] * 3
    assert set(bench.preview.result.total.tolist()) == {6.0}
    bench.rebind()  # nothing new
    assert told == ["reward"] * 3
    bench.undo()
    assert set(bench.preview.result.total.tolist()) == {3.0}


def test_the_episode_that_is_looked_at_stays_when_others_come_and_go(bench, told, cartpole_episodes):
    bench.select(4)
    episodes = cartpole_episodes.episodes()
    fewer = rlnb.Transitions.concat([episodes[1], episodes[4]])
    bench.set_episodes(Recorded(fewer, ("e:1", "e:4")))
    assert (bench.episode, bench.keys, bench.label_of(1)) == (1, ("e:1", "e:4"), "balance")
    bench.set_episodes(Recorded(fewer, ("f:0", "f:1")))
    assert bench.episode == 0
    assert told == ["selection", "episodes", "episodes"]
    with pytest.raises(UsageError, match="episode=2 is not there; the lab has the episodes 0 to 1"):
        bench.select(2)
    with pytest.raises(UsageError, match="at least one episode"):
        bench.set_episodes(Recorded(None, ()))


def test_good_policies_are_those_that_are_not_weak_until_somebody_says(bench):
    assert bench.good == {"balance"}
    bench.note(good=("random", "gone"))
    assert bench.good == {"random"}


def test_findings_come_with_settling_and_edits_go_on_meanwhile(bench, told, monkeypatch):
    import rlnb.view.lab.bench as module

    checking, go_on = threading.Event(), threading.Event()
    original = module.check_design

    def slow(*args, **kwargs):
        checking.set()
        assert go_on.wait(20)
        return original(*args, **kwargs)

    monkeypatch.setattr(module, "check_design", slow)
    settling = threading.Thread(target=bench.settle)
    settling.start()
    assert checking.wait(20)
    bench.edit(reward=rlnb.RewardSpec(TERMS), what="tilt")  # would hang if the lock were held
    go_on.set()
    settling.join(20)
    assert told == ["reward", "settled"]
    codes = [finding.code for finding in bench.findings]
    assert {"reward.separation", "state.markov"} <= set(codes)


@pytest.mark.parametrize(("others", "severity"), [([], "fine"), ([0.98], "warning")])
def test_shaping_is_checked_with_the_discount_that_it_brings_to_training(bench, others, severity):
    shapings = [rlnb.Shaping(f"s{i}", "-abs(x)", gamma=gamma) for i, gamma in enumerate([0.95, *others])]
    bench.edit(reward=rlnb.RewardSpec([*bench.reward.terms, *shapings]), what="shaping")
    worst = next(finding for finding in bench.settle() if finding.code == "reward.shaping")
    assert worst.severity == severity


def test_drags_from_several_threads_end_in_one_state(bench):
    bench.edit(reward=rlnb.RewardSpec(TERMS), what="tilt")

    def drag(place, values):
        for value in values:
            with bench.lock:
                terms = list(bench.reward.terms)
                terms[place] = replace(terms[place], weight=value)
                bench.edit(reward=rlnb.RewardSpec(terms), what="weight", merge=f"weight {place}")

    threads = [threading.Thread(target=drag, args=(place, [0.1 * i for i in range(30)])) for place in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [part.weight for part in bench.reward.terms] == [0.1 * 29] * 2
    assert bench.preview.result.total.tobytes() == total(bench).tobytes()


def test_a_listener_that_fails_keeps_no_other_from_being_told(bench, told):
    def fails(event):
        raise ZeroDivisionError

    end = bench.listeners.add(fails)
    later = []
    bench.listeners.add(later.append)
    with pytest.raises(ZeroDivisionError):
        bench.select(1)
    end()
    assert later == [Event.SELECTION]


def test_an_undo_that_does_not_work_on_the_episodes_of_now_changes_nothing(bench, told):
    scored = replace(
        bench.batch,
        info=MappingColumns("info", {"score": np.ones(len(bench.batch))}),
        labels=bench.batch.labels,
    )
    bench.set_episodes(Recorded(scored, bench.keys))
    bench.edit(reward=rlnb.RewardSpec([rlnb.Term("score", 'info["score"]')]), what="score")
    bench.edit(reward=rlnb.RewardSpec([rlnb.Term("env", "reward", weight=2.0)]), what="double")
    bench.set_episodes(Recorded(replace(scored, info=MappingColumns("info", {})), bench.keys))
    shown = bench.preview.result.total.tobytes()
    with pytest.raises(DesignError, match="score"):
        bench.undo()
    assert (bench.reward.terms[0].name, bench.undoes, bench.redoes) == ("env", "double", "")
    assert bench.preview.result.total.tobytes() == shown == total(bench).tobytes()
    bench.redo()
    assert bench.reward.terms[0].name == "env"
