"""Schedules, stop rules, noise, checkpoint plans and references: values, and the message of each bad input."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest

from rlnb.errors import ExperimentError
from rlnb.run.arguments import Argument, Kind
from rlnb.run.noise import make_noise, plain_noise
from rlnb.run.plans import CheckpointPlan, InitFrom, Part
from rlnb.run.references import References
from rlnb.run.schedule import LinearSchedule, parse_schedule
from rlnb.run.stop import StopRule, StopWatch


def test_a_linear_schedule_falls_to_zero_as_the_zoo_computes_it() -> None:
    schedule = parse_schedule("lin_1e-3")
    assert schedule == LinearSchedule(0.001)
    assert isinstance(schedule, LinearSchedule)
    assert schedule(-0.01) == 0.0  # the last rollout overshoots
    assert [schedule(1.0), schedule(0.3), schedule(0.0)] == [0.001, 0.3 * 0.001, 0.0]
    assert str(schedule) == "lin_0.001"


def test_a_linear_schedule_may_end_elsewhere() -> None:
    schedule = parse_schedule("lin_1e-3_1e-4")
    assert isinstance(schedule, LinearSchedule)
    assert schedule(1.0) == pytest.approx(1e-3)
    assert schedule(0.0) == 1e-4
    assert parse_schedule(str(schedule)) == schedule


def test_a_number_is_a_constant() -> None:
    assert parse_schedule("3e-4") == 3e-4


@pytest.mark.parametrize("text", ["lin_", "lin_x", "linear_1e-3", "lin_inf", "cosine", ""])
def test_another_schedule_is_refused(text: str) -> None:
    with pytest.raises(
        ExperimentError, match=r"learning_rate='.*' is no schedule; write a number, or 'lin_1e-3'"
    ):
        parse_schedule(text)


def test_a_stop_rule_is_read_and_written_back() -> None:
    rule = StopRule.parse("return_mean > 240 for 20 episodes")
    assert (rule.metric, rule.value, rule.episodes) == ("return_mean", 240.0, 20)
    assert rule.comparison.holds is operator.gt
    assert str(rule) == "return_mean > 240 for 20 episodes"
    assert StopRule.parse(str(StopRule.parse("length<=1.5e1"))) == StopRule.parse(
        "length <= 15 for 1 episode"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("return_mean = 240", r"cannot be read; write it like 'return_mean > 240 for 20 episodes'"),
        ("return_mean > 240 for 20 steps", r"cannot be read; write it like"),
        (
            "retrun_mean > 240",
            r"compares 'retrun_mean', which is not measured\. Did you mean 'return_mean'\?",
        ),
        ("return_mean > high", r"compares with 'high', which is no number"),
        ("return_mean > nan", r"compares with 'nan', which is no number"),
        ("return_mean > 1 for 0 episodes", r"has to hold for at least 1 episode"),
    ],
)
def test_a_bad_stop_rule_says_why(text: str, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        StopRule.parse(text)


def test_a_watch_counts_episodes_in_a_row_and_survives_a_checkpoint() -> None:
    watch = StopWatch(StopRule.parse("return_mean > 1 for 3 episodes"))
    assert not any(watch.episode({"return_mean": value}) for value in (2.0, 2.0, 1.0, 2.0, 2.0))
    resumed = StopWatch(watch.rule)
    resumed.load_state_dict(watch.state_dict())
    assert resumed.episode({"return_mean": 2.0})
    assert resumed.fired
    assert resumed.episode({"return_mean": 0.0})  # once fired, it stays so until training has ended


def test_a_missing_metric_breaks_the_streak() -> None:
    watch = StopWatch(StopRule.parse("success_rate >= 0.5 for 2 episodes"))
    assert not watch.episode({"success_rate": 1.0})
    assert not watch.episode({})
    assert not watch.episode({"success_rate": 1.0})
    assert watch.episode({"success_rate": 1.0})


def test_noise_from_text_and_from_sb3_is_the_same_data() -> None:
    from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise

    assert plain_noise("normal_0.2", "action_noise") == {"noise": "normal", "mean": 0.0, "sigma": 0.2}
    given = plain_noise(NormalActionNoise(np.zeros(2), np.full(2, 0.5)), "action_noise")
    assert given == {"noise": "normal", "mean": [0.0, 0.0], "sigma": [0.5, 0.5]}
    ornstein = OrnsteinUhlenbeckActionNoise(np.zeros(1), np.ones(1), theta=0.3)
    plain = plain_noise(ornstein, "action_noise")
    assert plain == {"noise": "ornstein-uhlenbeck", "mean": [0.0], "sigma": [1.0], "theta": 0.3, "dt": 0.01}
    assert plain_noise(plain, "action_noise") == plain


def test_noise_is_made_for_every_action() -> None:
    made = make_noise(plain_noise("normal_0.2", "action_noise"), actions=3)
    np.testing.assert_array_equal(made._sigma, [0.2, 0.2, 0.2])
    ornstein = make_noise(plain_noise("ornstein-uhlenbeck_0.1", "action_noise"), actions=2)
    assert (ornstein._theta, ornstein._dt) == (0.15, 0.01)
    assert make_noise(None, actions=3) is None


@pytest.mark.parametrize("value", ["pink_0.1", "normal_x", 0.1, {"noise": "normal", "gamma": 1}, object()])
def test_other_noise_is_refused(value: Any) -> None:
    with pytest.raises(ExperimentError, match=r"action_noise=.* is no action noise.*write 'normal_0\.1'"):
        plain_noise(value, "action_noise")


def test_noise_has_to_be_finite() -> None:
    with pytest.raises(ExperimentError, match="action_noise has nan where a finite number belongs"):
        plain_noise("normal_nan", "action_noise")


def test_a_checkpoint_plan_has_defaults_and_checks() -> None:
    assert CheckpointPlan.parse(None) == CheckpointPlan(None, 1.0, 3, True, None)
    assert CheckpointPlan.parse({"every_steps": 1e4, "every_minutes": None}).every_steps == 10_000
    assert CheckpointPlan.parse(CheckpointPlan(keep_last=5).to_dict()) == CheckpointPlan(keep_last=5)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"every_step": 10}, r"checkpoint\.every_step is unknown\. Did you mean 'every_steps'\?"),
        ({"keep_last": 0}, r"checkpoint\.keep_last=0 is out of range; .* takes an integer >= 1"),
        ({"every_minutes": None}, r"checkpoint has neither every_steps nor every_minutes"),
        ({"every_minutes": 0}, r"checkpoint\.every_minutes=0 would never let training go on"),
        (5, r"checkpoint=5 is no mapping; write e\.g\. checkpoint="),
    ],
)
def test_a_bad_checkpoint_plan_says_why(value: Any, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        CheckpointPlan.parse(value)


@pytest.mark.parametrize(
    ("text", "run", "step"),
    [
        ("exp-7f3a", "exp-7f3a", "final"),
        ("exp-7f3a@20_000", "exp-7f3a", 20000),
        ("exp-7f3a@best", "exp-7f3a", "best"),
        ("s3://bucket/runs/exp@latest", "s3://bucket/runs/exp", "latest"),
    ],
)
def test_init_from_reads_run_and_step(text: str, run: str, step: Any) -> None:
    parsed = InitFrom.parse(text)
    assert parsed == InitFrom(run, step)
    assert parsed is not None
    assert InitFrom.parse(parsed.to_dict()) == parsed


def test_init_from_takes_parts_by_choice() -> None:
    parsed = InitFrom.parse({"run": "exp", "parts": ["replay", "policy"]})
    assert parsed == InitFrom("exp", "final", (Part.POLICY, Part.REPLAY))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("exp@soon", r"init_from has the step 'soon'; write a step, 'best', 'latest' or 'final'"),
        ("@10", r"init_from=.* cannot be read; write 'RUN' or 'RUN@20000'"),
        ({"run": "exp", "part": "policy"}, r"init_from\.part is unknown\. Did you mean 'parts'\?"),
        ({"run": "exp", "parts": ["polcy"]}, r"init_from\.parts has 'polcy'\. Did you mean 'policy'\?"),
        ({"run": "exp", "parts": []}, r"init_from\.parts=\[\] is no list; name some of policy, critic"),
    ],
)
def test_a_bad_init_from_says_why(value: Any, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        InitFrom.parse(value)


class Local:
    """A class that stands for one of a notebook cell."""


def test_references_keep_live_objects_beside_the_data() -> None:
    references = References()
    plain = references.freeze({"sizes": (1, np.int64(2)), "kind": Local}, "policy_kwargs")
    assert plain == {"sizes": [1, 2], "kind": {"$ref": f"{__name__}:Local"}}
    assert references.thaw(plain, "policy_kwargs") == {"sizes": [1, 2], "kind": Local}


def test_only_training_libraries_are_imported_on_the_word_of_a_file() -> None:
    import torch

    assert References().thaw({"$ref": "torch.nn.modules.activation:ReLU"}, "x") is torch.nn.ReLU
    for reference, message in (
        ("os:system", "x is 'os:system' of a module that is not imported on the word of a file"),
        ("__main__:Net", "x is 'Net', which is defined in the notebook; run the notebook's cells"),
        ("torch.nn:Nothing", "x is 'torch.nn:Nothing', which is no class of torch.nn"),
        ("torch.nn.functional:relu", "which is no class of torch.nn.functional"),
        ("torch", "x='torch' is no reference; write it as 'module:name'"),
    ):
        with pytest.raises(ExperimentError, match=message):
            References().thaw({"$ref": reference}, "x")


@pytest.mark.parametrize("value", [object(), {1, 2}, np.zeros(3)])
def test_what_cannot_be_written_is_named(value: Any) -> None:
    with pytest.raises(
        ExperimentError, match=r"policy_kwargs\.x holds a \w+ \(.*which run\.yaml cannot carry"
    ):
        References().freeze({"x": value}, "policy_kwargs")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (Kind.INT, np.int64(3), 3),
        (Kind.INT, 3.0, 3),
        (Kind.FLOAT, 1, 1.0),
        (Kind.AUTO, "auto_0.5", "auto_0.5"),
        (Kind.AUTO, "0.5", 0.5),
        (Kind.FREQUENCY, (5, "step"), 5),
        (Kind.FREQUENCY, (5, "episode"), [5, "episode"]),
        (Kind.SCHEDULE, "lin_1e-3", "lin_0.001"),
        (Kind.SCHEDULE, LinearSchedule(0.1), "lin_0.1"),
        (Kind.BOOL, np.True_, True),
    ],
)
def test_an_argument_is_made_plain(kind: Kind, value: Any, expected: Any) -> None:
    plain = Argument("x", kind, None).plain(value, References())
    assert plain == expected
    assert type(plain) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Kind.INT, 2.5, r"x=2\.5 is no whole number; x takes an integer >= 1"),
        (Kind.INT, True, r"x=True is no whole number"),
        (Kind.INT, 0, r"x=0 is out of range; x takes an integer >= 1"),
        (Kind.INT, math.inf, r"x=inf is no whole number"),
        (Kind.INT, None, r"x=None is not possible; x takes an integer >= 1"),
        (Kind.FLOAT, "fast", r"x='fast' is no finite number"),
        (Kind.FLOAT, math.nan, r"x=nan is no finite number"),
        (Kind.BOOL, 1, r"x=1 is neither true nor false"),
        (
            Kind.AUTO,
            "automatic",
            r"x='automatic' cannot be read; x takes a number >= 1, 'auto' or 'auto_0\.1'",
        ),
        (
            Kind.FREQUENCY,
            (5, "epoch"),
            r"x=\(5, 'epoch'\) cannot be read; x takes an integer >= 1 or \[integer, 'step'",
        ),
        (Kind.SCHEDULE, "lin_0.5", r"x=0\.5 is out of range"),
        (Kind.MAPPING, [1], r"x=\[1\] is no mapping; x takes a mapping"),
    ],
)
def test_a_bad_argument_says_what_it_takes(kind: Kind, value: Any, message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        Argument("x", kind, None, low=1).plain(value, References())
