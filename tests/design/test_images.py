"""Pictures: what the operations make of them, and that stacks preview as they train."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from rlnb.design.design import Design
from rlnb.design.state import (
    Clip,
    Delta,
    Derive,
    Grayscale,
    Resize,
    Scale,
    Select,
    Stack,
    StateSpec,
    ToUnit,
)  # fmt: skip
from rlnb.design.transitions import Transitions
from rlnb.errors import DesignError
from tests.design.batches import NAMES, make_batch

RGB = spaces.Box(0, 255, (20, 24, 3), np.uint8)
FIRST = spaces.Box(0, 255, (3, 20, 24), np.uint8)
FLAT = spaces.Box(0, 255, (40, 40), np.uint8)
UNIT = spaces.Box(0, 1, (20, 24, 3), np.float32)


def _show(spec, space, rows):
    return spec.transform(rows, spec.initial_state(len(rows), space, ()))


def _pictures(space, n=3, seed=0):
    rng = np.random.default_rng(seed)
    if space.dtype == np.uint8:
        return rng.integers(0, 256, (n, *space.shape)).astype(np.uint8)
    return rng.random((n, *space.shape)).astype(space.dtype)


def test_grayscale_is_the_luma_of_bt_601():
    rows = _pictures(RGB)
    grey = _show(StateSpec(Grayscale()), RGB, rows)
    assert (grey.dtype, grey.shape) == (np.uint8, (3, 20, 24, 1))
    for one, row in zip(grey, rows, strict=True):
        assert one[..., 0].tolist() == np.asarray(Image.fromarray(row).convert("L")).tolist()
    assert StateSpec(Grayscale()).space(RGB, ()) == spaces.Box(0, 255, (20, 24, 1), np.uint8)
    last = np.moveaxis(rows, 3, 1)
    assert _show(StateSpec(Grayscale()), FIRST, last)[:, 0].tobytes() == grey[..., 0].tobytes()
    primary = np.eye(3, dtype=np.float32).reshape(1, 1, 3, 3)
    thin = spaces.Box(0, 1, (1, 3, 3), np.float32)
    assert StateSpec(Grayscale()).plan(thin, ()).space.shape == (1, 3, 3)  # one channel, which is the first
    wide = np.tile(primary, (1, 4, 2, 1))
    seen = _show(StateSpec(Grayscale()), spaces.Box(0, 1, (4, 6, 3), np.float32), wide)
    assert seen[0, 0, :3, 0].tolist() == np.float32([0.299, 0.587, 0.114]).tolist()
    flat = _pictures(FLAT)
    assert _show(StateSpec([Grayscale(), Grayscale()]), FLAT, flat).tolist() == flat[..., None].tolist()


def test_resize_is_the_mean_of_the_area():
    rows = np.array([[[0, 10, 200, 200], [20, 30, 100, 100]]], np.uint8)
    space = spaces.Box(0, 255, (2, 4), np.uint8)
    spec = StateSpec(Resize(1, 2))
    assert _show(spec, space, rows).tolist() == [[[15, 150]]]
    assert spec.space(space, ()) == spaces.Box(0, 255, (1, 2), np.uint8)
    rows = _pictures(RGB)
    small = _show(StateSpec(Resize(10, 12)), RGB, rows)
    expected = [np.asarray(Image.fromarray(row).resize((12, 10), Image.Resampling.BOX)) for row in rows]
    assert small.tobytes() == np.stack(expected).tobytes()
    assert _show(StateSpec(Resize(10, 12)), FIRST, np.moveaxis(rows, 3, 1)).tolist() == np.moveaxis(small, 3, 1).tolist()  # fmt: skip
    assert _show(StateSpec(Resize(20, 24)), RGB, rows).tolist() == rows.tolist()
    units = _pictures(UNIT)
    means = units.reshape(3, 10, 2, 12, 2, 3).astype(np.float64).mean(axis=(2, 4))
    np.testing.assert_allclose(_show(StateSpec(Resize(10, 12)), UNIT, units), means, rtol=1e-6)


def test_to_unit():
    rows = _pictures(RGB)
    spec = StateSpec([ToUnit()])
    assert _show(spec, RGB, rows).tolist() == (rows / 255).astype(np.float32).tolist()
    assert spec.space(RGB, ()) == spaces.Box(0, 1, RGB.shape, np.float32)
    centred = spaces.Box(-1, 1, (8, 8, 3), np.float64)
    assert _show(spec, centred, np.full((1, 8, 8, 3), 0.5)).tolist() == np.full((1, 8, 8, 3), 0.75).tolist()
    assert spec.plan(centred, ()).space.dtype == np.float32


def test_pictures_are_stacked_along_their_channels_oldest_first():
    spec = StateSpec(Stack(3))
    assert spec.space(RGB, ()).shape == (20, 24, 9)
    assert spec.space(FIRST, ()).shape == (9, 20, 24)
    assert spec.space(FLAT, ()).shape == (40, 40, 3)
    context = spec.initial_state(1, FIRST, ())
    a, b = _pictures(FIRST, 2)
    assert spec.transform(a[None], context).tolist() == [np.concatenate([a, a, a]).tolist()]
    assert spec.transform(b[None], context).tolist() == [np.concatenate([a, a, b]).tolist()]
    assert spec.space(FIRST, ()).dtype == np.uint8


def test_stacked_numbers_have_the_bounds_of_their_component():
    box = spaces.Box(np.array([-1, -2, -3, 0], np.float32), np.array([1, 2, 3, 5], np.float32))
    spec = StateSpec([Select(["y", "x"]), Stack(3)])
    plan = spec.plan(box, NAMES)
    assert plan.names == ("y", "x", "y_1", "x_1", "y_2", "x_2")
    assert plan.space.high.tolist() == [2, 1, 2, 1, 2, 1]
    context = spec.initial_state(1, box, NAMES)
    seen = [
        spec.transform(np.array([[i, 10 * i, 0, 0]], np.float32), context)[0].tolist() for i in (1, 2, 3, 4)
    ]
    assert seen == [
        [10, 1, 10, 1, 10, 1],
        [20, 2, 10, 1, 10, 1],
        [30, 3, 20, 2, 10, 1],
        [40, 4, 30, 3, 20, 2],
    ]
    small = spaces.Box(0, 1, (3, 4), np.float32)  # few floats in rows are numbers, bytes are a picture
    names = tuple(f"obs{i}" for i in range(12))
    assert StateSpec(Stack(2)).plan(small, names).space.shape == (24,)
    assert StateSpec(Stack(2)).plan(spaces.Box(0, 255, (3, 4), np.uint8), names).space.shape == (3, 4, 2)
    assert StateSpec(Select(["obs3"])).plan(spaces.Box(0, 255, (3, 4), np.uint8), names).space.shape == (1,)


_NUMBERS = st.lists(
    st.sampled_from([Stack(2), Stack(4, ["x"]), Delta(["y"]), Scale(None, 0.3, 1.0), Derive("s", "x * y"), Clip(None, -1, 1)]),
    min_size=1, max_size=3, unique_by=lambda op: op.kind,
)  # fmt: skip
_PICTURES = st.lists(
    st.sampled_from([Stack(2), Stack(3), Resize(9, 7), Resize(30, 8), ToUnit()]), min_size=1, max_size=4
).map(lambda ops: [Grayscale(), *ops] if len(ops) % 2 else ops)


@settings(max_examples=30, deadline=None)
@given(st.one_of(_NUMBERS.map(lambda ops: (ops, None)), st.tuples(_PICTURES, st.sampled_from([RGB, FIRST, UNIT]))),
       st.integers(1, 3), st.integers(1, 5))  # fmt: skip
def test_a_preview_equals_what_the_vector_environment_showed(case, n_envs, length):
    """Replayed step by step with resets, and with everything saved and put back in the middle."""
    ops, space = case
    spec, names = StateSpec(ops), () if space else NAMES
    recorded = [make_batch(10, seed=env, length=length) for env in range(n_envs)]
    if space is None:
        space = spaces.Box(-9, 9, (4,))
    else:
        recorded = [_filmed(batch, space, env) for env, batch in enumerate(recorded)]
    plan, context = spec.plan(space, names), spec.initial_state(n_envs, space, names)
    shown = [spec.transform(np.stack([batch.obs.matrix[0] for batch in recorded]), context)]
    after = []
    for row in range(10):
        done = np.array([batch.terminated[row] or batch.truncated[row] for batch in recorded])
        reached = np.stack([batch.next_obs.matrix[row] for batch in recorded])
        ended = np.flatnonzero(done)
        final = spec.transform(reached[ended], context, envs=ended, peek=True) if len(ended) else None
        now = reached.copy()
        for env in ended if row < 9 else ():
            now[env] = recorded[env].obs.matrix[row + 1]
        obs = spec.transform(now, context, starts=done)
        shown.append(obs)
        after.append(obs.copy())
        if final is not None:
            after[-1][ended] = final
        if row == 4:
            saved, context = context.state_dict(), spec.initial_state(n_envs, space, names)
            context.load_state_dict(saved)
    for env, batch in enumerate(recorded):
        obs, next_obs = plan.preview(batch)
        assert obs.dtype == plan.space.dtype
        assert obs.shape[1:] == plan.space.shape
        assert obs.tobytes() == np.stack([rows[env] for rows in shown[:10]]).tobytes()
        assert next_obs.tobytes() == np.stack([rows[env] for rows in after]).tobytes()
        if not names:
            assert all(plan.space.contains(row) for row in next_obs)


def _filmed(batch: Transitions, space, seed: int) -> Transitions:
    """The same episodes with pictures for observations."""
    films = _pictures(space, len(batch) + 1, seed)
    return Transitions.from_arrays(
        films[:-1], films[1:], np.asarray(batch.action), reward=batch.reward, terminated=batch.terminated,
        truncated=batch.truncated, t=batch.t, episode=batch.episode,
    )  # fmt: skip


def test_stages_and_previews_up_to_one():
    ops = [Grayscale(), Resize(10, 12), Stack(4), ToUnit()]
    plan = StateSpec(ops).plan(RGB, ())
    assert [stage.op for stage in plan.stages] == [None, *ops]
    assert [stage.space.shape for stage in plan.stages] == [(20, 24, 3), (20, 24, 1), (10, 12, 1), (10, 12, 4), (10, 12, 4)]  # fmt: skip
    assert plan.stages[0].space is RGB
    assert plan.stages[-1].space == plan.space
    assert plan.stages[-1].high.shape == (10, 12, 4)
    assert (plan.stages[3].high.max(), plan.stages[4].high.max()) == (255.0, 1.0)
    batch = _filmed(make_batch(7), RGB, 0)
    assert plan.preview(batch, upto=0)[0] is batch.obs.matrix
    for upto, stage in enumerate(plan.stages):
        for shown in plan.preview(batch, upto=upto):
            assert (shown.shape[1:], shown.dtype) == (stage.space.shape, stage.space.dtype)
    assert plan.preview(batch, upto=4)[1].tobytes() == plan.preview(batch)[1].tobytes()
    numbers = StateSpec([Select(["x"]), Stack(2)]).plan(spaces.Box(-9, 9, (4,)), NAMES)
    assert [stage.names for stage in numbers.stages] == [NAMES, ("x",), ("x", "x_1")]
    assert [stage.low.tolist() for stage in numbers.stages] == [[-9] * 4, [-9], [-9, -9]]
    assert numbers.preview(make_batch(7), upto=1)[0].shape == (7, 1)
    with pytest.raises(DesignError, match=r"upto=5 does not fit; the state has 4 operations, so give 0 to 4"):
        plan.preview(batch, upto=5)
    (only,) = StateSpec().plan(spaces.Discrete(4, start=2), ["cell"]).stages
    assert (only.names, only.low.tolist(), only.high.tolist()) == (("cell",), [2], [5])


def test_files_hold_pictures_operations():
    design = Design(state=StateSpec([Grayscale(), Resize(84, 84), Stack(4), ToUnit()]))
    assert design.to_dict()["state"] == [
        {"grayscale": {}}, {"resize": {"height": 84, "width": 84}}, {"stack": {"frames": 4}}, {"to_unit": {}},
    ]  # fmt: skip
    assert Design.from_yaml(design.to_yaml()) == design
    assert Design.from_yaml("state: [grayscale: , stack: {frames: 2, names: [x]}]").state.ops == (
        Grayscale(), Stack(2, ("x",)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Resize(84, 512), "width of resize is 512; it must be a whole number from 1 to 256"),
        (lambda: Resize(0, 84), "height of resize is 0"),
        (lambda: Resize(84.0, 84), r"height of resize is 84\.0"),
        (lambda: Stack(1), "frames of stack is 1; it must be a whole number from 2 to 64"),
        (lambda: Stack(True), "frames of stack is True"),
        (lambda: StateSpec([Grayscale(), Scale(factor=2.0)]).plan(RGB, ()),
         "scale works on named numbers, and at that point there is a 20x24 uint8 picture of 1 channel; of a picture"),
        (lambda: StateSpec([Select(["x"]), ToUnit()]).plan(spaces.Box(-1, 1, (4,)), NAMES),
         r"to_unit works on images, and at that point there are 1 named numbers \(x\)"),
        (lambda: StateSpec([Resize(8, 8)]).plan(spaces.Box(-1, 1, (4,)), NAMES),
         r"one picture, a Box of 2 or 3 dimensions .* and the observation is Box\(-1.0, 1.0, \(4,\), float32\); let a wrapper"),
        (lambda: StateSpec([Resize(8, 8)]).plan(spaces.Dict(picture=RGB), ()), r"the observation is Dict\('picture'.*FilterObservation"),
        (lambda: StateSpec([Resize(8, 8)]).plan(spaces.Box(0, 255, (20, 3, 24), np.uint8), ()),
         r"picture of \(20, 3, 24\), whose smallest dimension, the channels, is neither the last nor the first"),
        (lambda: StateSpec([Resize(8, 8)]).plan(spaces.Box(0, 255, (2, 3, 20, 24), np.uint8), ()), "Box of 2 or 3 dimensions"),
        (lambda: StateSpec([Stack(4), Grayscale()]).plan(RGB, ()),
         "grayscale mixes 3 channels .* there is a 20x24 uint8 picture of 12 channels; put it before stack"),
        (lambda: StateSpec([Grayscale(), Stack(4, ["x"])]).plan(RGB, ()), "stack names x, and there is a 20x24 uint8 picture"),
        (lambda: StateSpec([ToUnit()]).plan(spaces.Box(-np.inf, np.inf, (20, 24, 3)), ()),
         r"to_unit needs a picture with finite bounds, and there is one of \[-inf, inf\]"),
        (lambda: StateSpec([Stack(2), Stack(2)]).plan(spaces.Box(-1, 1, (4,)), NAMES), "stack adds 'x_1', but that name is taken"),
    ],
)  # fmt: skip
def test_what_does_not_fit_a_picture_is_refused(make, message):
    with pytest.raises(DesignError, match=message):
        make()
