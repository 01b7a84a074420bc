"""States: operations, bounds, memory, and that a preview equals what a vector environment shows."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from rlnb.design.state import (
    Clip,
    Delta,
    Derive,
    RunningZScore,
    Scale,
    Select,
    StateSpec,
    ZScore,
)
from rlnb.errors import DesignError
from tests.design.batches import NAMES, make_batch

BOX = spaces.Box(np.array([-1, -2, -np.inf, 0], np.float32), np.array([1, 2, np.inf, 5], np.float32))


def _run(spec: StateSpec, rows, names=NAMES, space=BOX):
    context = spec.initial_state(len(rows), space, names)
    return spec.transform(np.asarray(rows, dtype=np.float32), context)


def test_without_operations_nothing_is_touched():
    spec = StateSpec()
    rows = np.ones((2, 4), dtype=np.float32)
    assert spec.is_identity
    assert spec.space(BOX, NAMES) is BOX
    assert spec.transform(rows, spec.initial_state(2, BOX, NAMES)) is rows
    image = spaces.Box(0, 255, (84, 84, 3), np.uint8)
    assert spec.space(image, ()) is image


def test_select_keeps_order():
    spec = StateSpec([Select(["vy", "x"])])
    assert _run(spec, [[1, 2, 3, 4]]).tolist() == [[4, 1]]
    space = spec.space(BOX, NAMES)
    assert space.dtype == np.float32
    assert (space.low.tolist(), space.high.tolist()) == ([0, -1], [5, 1])


def test_derive_appends_with_bounds_from_what_it_uses():
    spec = StateSpec([Derive("speed", "abs(x) + y ** 2"), Derive("w", 'obs["vx"] / 2', low=-1, high=3)])
    assert _run(spec, [[-1, 2, 8, 0]]).tolist() == [[-1, 2, 8, 0, 5, 3]]
    plan = spec.plan(BOX, NAMES)
    assert plan.names == (*NAMES, "speed", "w")
    assert (plan.space.low[4:].tolist(), plan.space.high[4:].tolist()) == ([0, -1], [5, 3])
    unbounded = StateSpec([Derive("a", "x / y")]).plan(BOX, NAMES).space
    assert (unbounded.low[4], unbounded.high[4]) == (-np.inf, np.inf)


def test_zscore_with_stored_statistics():
    spec = StateSpec([ZScore(["x", "vy"], mean=[0.5, 1], std=[0.5, 2])])
    assert _run(spec, [[1, 7, 7, 4]]).tolist() == [[1, 7, 7, 1.5]]
    space = spec.space(BOX, NAMES)
    assert (space.low.tolist(), space.high.tolist()) == ([-3, -2, -np.inf, -0.5], [1, 2, np.inf, 2])
    of = ZScore.of(np.array([[1.0, 5.0], [3.0, 5.0]]), ["x", "y"])
    assert of == ZScore(("x", "y"), (2.0, 5.0), (1.0, 1.0))


def test_clip_and_scale():
    spec = StateSpec([Clip(["vx"], -1, 1), Scale(["x", "vy"], factor=-2, offset=1), Clip("y", low=0)])
    assert _run(spec, [[1, -2, 9, 5]]).tolist() == [[-1, 0, 1, -9]]
    space = spec.space(BOX, NAMES)
    assert (space.low.tolist(), space.high.tolist()) == ([-1, 0, -1, -9], [3, 2, 1, 1])


def test_no_names_mean_all():
    assert _run(StateSpec([Scale(factor=2)]), [[1, 2, 3, 4]]).tolist() == [[2, 4, 6, 8]]
    assert StateSpec([Select(["x"]), Delta()]).plan(BOX, NAMES).names == ("x", "d_x")


def test_delta_is_zero_at_the_start_and_peeking_remembers_nothing():
    spec = StateSpec([Delta(["x"])])
    space = spec.space(BOX, NAMES)
    assert (space.low[4], space.high[4]) == (-2, 2)
    context = spec.initial_state(2, BOX, NAMES)

    def step(xs, **how):
        rows = np.zeros((len(xs), 4), dtype=np.float32)
        rows[:, 0] = xs
        return spec.transform(rows, context, **how)[:, 4].tolist()

    assert step([1, 5]) == [0, 0]
    assert step([3, 4]) == [2, -1]
    assert step([9], envs=np.array([1]), peek=True) == [5]  # the last observation of env 1's episode
    assert step([4, 0], starts=np.array([False, True])) == [1, 0]
    assert step([4, 2]) == [0, 2]


def test_running_statistics_grow_freeze_and_are_saved():
    spec = StateSpec([RunningZScore(["x"], clip=2.0, epsilon=1e-8), Delta(["x"])])
    rng = np.random.default_rng(0)
    context = spec.initial_state(4, BOX, NAMES)
    seen = []
    for _ in range(50):
        rows = rng.standard_normal((4, 4)).astype(np.float32) * 3 + 1
        seen.append(rows[:, 0])
        shown = spec.transform(rows, context)
    everything = np.concatenate(seen).astype(np.float64)
    found = context.known_statistics()[0]
    assert found.mean[0] == pytest.approx(everything.mean(), abs=1e-5)
    assert found.variance[0] == pytest.approx(everything.var(), rel=1e-4)
    expected = np.clip((rows[:, 0] - found.mean[0]) / np.sqrt(found.variance[0] + 1e-8), -2, 2)
    assert shown[:, 0].tolist() == expected.astype(np.float32).tolist()
    space = spec.space(BOX, NAMES)
    assert (space.low[0], space.high[0], space.low[4], space.high[4]) == (-2, 2, -4, 4)

    state = context.state_dict()
    assert all(isinstance(values, np.ndarray) for values in state.values())
    other = spec.initial_state(4, BOX, NAMES)
    other.load_state_dict(state)
    rows = rng.standard_normal((4, 4)).astype(np.float32)
    assert spec.transform(rows, other).tobytes() == spec.transform(rows, context).tobytes()

    context.learning = False
    before = context.known_statistics()[0].mean.copy()
    spec.transform(rows + 100, context)
    assert context.known_statistics()[0].mean.tobytes() == before.tobytes()
    with pytest.raises(DesignError, match="of 4 environments, but there are 3; resume with n_envs=4"):
        spec.initial_state(3, BOX, NAMES).load_state_dict(state)


_OPS = st.lists(
    st.sampled_from(
        [
            Derive("speed", "hypot(vx, vy)"),
            Derive("odd", "exp(-x) * sin(y) / (vx + 0.1)", low=-3, high=3),
            ZScore(["x", "vx"], [0.1, -0.3], [0.7, 1.3]),
            Clip(["x", "y"], -0.5, 0.5),
            Scale(None, 1.7, 0.3),
            Delta(["x", "vy"]),
            Delta(["y"]),
        ]
    ),
    min_size=1, max_size=5, unique_by=lambda op: (op.kind, getattr(op, "name", ""), str(getattr(op, "names", ""))),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(_OPS, st.integers(1, 4), st.integers(1, 5), st.booleans())
def test_a_preview_equals_what_the_vector_environment_showed(ops, n_envs, length, learned):
    """The same transitions, recorded per environment and replayed step by step with resets in between."""
    spec = StateSpec([*ops, Select(["x", "y"])] if learned else ops)
    recorded = [make_batch(10, seed=env, length=length) for env in range(n_envs)]
    plan = spec.plan(BOX, NAMES)
    context = spec.initial_state(n_envs, BOX, NAMES)
    shown = [spec.transform(np.stack([batch.obs.matrix[0] for batch in recorded]), context)]
    after = []
    for row in range(10):
        done = np.array([batch.terminated[row] or batch.truncated[row] for batch in recorded])
        reached = np.stack([batch.next_obs.matrix[row] for batch in recorded])
        ended = np.flatnonzero(done)
        final = spec.transform(reached[ended], context, envs=ended, peek=True) if len(ended) else None
        now = reached.copy()
        if row < 9:
            for env in ended:
                now[env] = recorded[env].obs.matrix[row + 1]
        obs = spec.transform(now, context, starts=done)
        shown.append(obs)
        reached_seen = obs.copy()
        if final is not None:
            reached_seen[ended] = final
        after.append(reached_seen)
    for env, batch in enumerate(recorded):
        obs, next_obs = plan.preview(batch)
        assert obs.tobytes() == np.stack([rows[env] for rows in shown[:10]]).tobytes()
        assert next_obs.tobytes() == np.stack([rows[env] for rows in after]).tobytes()


@settings(max_examples=60, deadline=None)
@given(_OPS, st.integers(0, 99))
def test_values_stay_in_the_derived_space(ops, seed):
    space = StateSpec(ops).plan(BOX, NAMES).space
    rng = np.random.default_rng(seed)
    rows = rng.uniform([-1, -2, -9, 0], [1, 2, 9, 5], (20, 4)).astype(np.float32)
    rows[0], rows[1] = np.where(np.isinf(BOX.low), -9, BOX.low), np.where(np.isinf(BOX.high), 9, BOX.high)
    shown = _run(StateSpec(ops), rows)
    for row in shown:
        assert space.contains(row) or np.isnan(row).any(), (row, space.low, space.high)


def test_a_preview_takes_statistics_from_training_or_from_itself():
    spec = StateSpec([RunningZScore(["x"])])
    plan, batch = spec.plan(BOX, NAMES), make_batch(50)
    alone, _ = plan.preview(batch)
    assert abs(alone[:, 0].mean()) < 1e-3
    context = spec.initial_state(1, BOX, NAMES)
    spec.transform(np.array([[100, 0, 0, 0]], np.float32), context)
    spec.transform(np.array([[102, 0, 0, 0]], np.float32), context)
    trained, _ = plan.preview(batch, context)
    assert (trained[:, 0] == -10).all()
    assert StateSpec().plan(BOX, NAMES).preview(batch)[0] is batch.obs.matrix


def test_other_spaces():
    spec = StateSpec([Scale(factor=0.5)])
    number = spaces.Discrete(4, start=2)
    context = spec.initial_state(3, number, ["cell"])
    assert spec.transform(np.array([2, 3, 5]), context).tolist() == [[1], [1.5], [2.5]]
    assert spec.space(number, ["cell"]).high.tolist() == [2.5]
    both = spaces.Dict({"a": spaces.Box(-1, 1, (2,)), "b": spaces.MultiDiscrete([3, 5])})
    raw = {"a": np.array([[0.5, 1]], np.float32), "b": np.array([[1, 2]])}
    names = ("a_0", "a_1", "b_0", "b_1")
    assert spec.transform(raw, spec.initial_state(1, both, names)).tolist() == [[0.25, 0.5, 0.5, 1]]
    assert spec.space(both, names).high.tolist() == [0.5, 0.5, 1, 2]


def test_more_than_a_hundred_dimensions_warn():
    wide = spaces.Box(-1, 1, (101,))
    names = [f"obs{i}" for i in range(101)]
    with pytest.warns(UserWarning, match="The state has 101 dimensions, more than 100"):
        StateSpec().space(wide, names)
    assert StateSpec(Select(names[:100])).space(wide, names).shape == (100,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Select([]), "keeps nothing"),
        (lambda: Select(["x", "x"]), "select names 'x' twice"),
        (lambda: Select([1]), "give a list of names"),
        (lambda: Derive("a b", "x"), "'a b' cannot be a name"),
        (lambda: Derive("a", "x +"), "In 'a': 'x \\+' is not an expression"),
        (lambda: Derive("a", "x", low=2, high=1), r"bounds of 'a' are \[2.0, 1.0\]"),
        (lambda: Derive("a", "x", low="big"), "low of 'a' is 'big'; it must be a number"),
        (lambda: ZScore(["x"], [0, 1], [1, 1]), "one mean and one std for each component; it has 2 means"),
        (lambda: ZScore(["x"], [0], [0]), "std of a zscore must be above 0"),
        (lambda: RunningZScore(clip=0), "clip of running_zscore is 0.0; it must be above 0"),
        (lambda: Clip(low=1, high=-1), "low must not exceed high"),
        (lambda: Clip(low=float("nan")), "low of clip is nan"),
        (lambda: Scale(factor=0), "finite factor other than 0"),
        (lambda: StateSpec(["x"]), r"made of operations .*not of 'x'; write e\.g\. rlnb\.Select\(\['x'\]\)"),
        (lambda: StateSpec(5), "made of operations .*not of 5"),
        (lambda: StateSpec("x"), "made of operations .*not of 'x'"),
        (lambda: StateSpec([Select(["vz"])]).plan(BOX, NAMES), "select uses 'vz', which is not there"),
        (lambda: StateSpec([Select(["x"]), Clip(["y"])]).plan(BOX, NAMES), "There are: x"),
        (lambda: StateSpec([Derive("x", "y")]).plan(BOX, NAMES), "adds 'x', but that name is taken"),
        (
            lambda: StateSpec([Derive("a", "next_x")]).plan(BOX, NAMES),
            "'next_x' is not a name|not a known name",
        ),
        (lambda: StateSpec([ZScore(None, [0], [1])]).plan(BOX, NAMES), "1 means, but there are 4 components"),
        (
            lambda: StateSpec([Clip()]).plan(spaces.Box(0, 255, (84, 84)), ()),
            "clip works on named numbers, and at that point there is a 84x84 float32 picture",
        ),
        (lambda: StateSpec([Clip()]).plan(spaces.Box(0, 1, (2000,)), ()), "2000 components and 0 names"),
        (lambda: StateSpec([Clip()]).plan(spaces.Text(3), ["a"]), "observation space Text has no components"),
    ],
)
def test_bad_states_are_refused(make, message):
    with pytest.raises(DesignError, match=message):
        make()
