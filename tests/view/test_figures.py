from __future__ import annotations

from rlnb.run.metrics import MetricReader
from rlnb.view.figures import X_LABEL, job_figure
from rlnb.view.history import History


def test_every_chart_has_a_title_and_units(run):
    run.checkpoint()
    kept = run.step
    run.begin(resume_at=kept)
    run.advance(2000)
    figure = job_figure(MetricReader(run.layout).read()[0], title="lander")
    titles = [note.text for note in figure.layout.annotations]
    assert titles[:3] == [
        "Return (mean of 20 episodes)",
        "Episode length (mean of 20 episodes)",
        "Reward by term (mean of 20 episodes)",
    ]
    assert len(titles) == 8
    assert figure.layout.title.text == "lander"
    axes = [figure.layout[name] for name in figure.to_dict()["layout"] if name.startswith("yaxis")]
    assert [axis.title.text for axis in axes] == [
        "reward per episode", "steps", "reward per episode", "", "", "nats", "nats", "steps/s",
    ]  # fmt: skip
    xs = [figure.layout[name] for name in figure.to_dict()["layout"] if name.startswith("xaxis")]
    assert {axis.title.text for axis in xs} == {X_LABEL}
    # The attempt is a line through every chart, the checkpoint a mark on the first one's axis.
    assert len(figure.layout.shapes) == 8
    marks = [trace for trace in figure.data if trace.name == "checkpoint"]
    assert [list(trace.x) for trace in marks] == [[kept]]


def test_traces_are_decimated_and_no_webgl(run):
    figure = job_figure(MetricReader(run.layout).read()[0], only=["return"])
    assert {trace.type for trace in figure.data} == {"scatter"}
    assert all(len(trace.x) <= 2000 for trace in figure.data)
    assert [trace.name for trace in figure.data if trace.showlegend] == ["designed", "environment"]


def test_a_run_without_rows_makes_empty_charts():
    figure = job_figure(History())
    assert len(figure.data) == 0
    assert figure.layout.annotations[0].text.startswith("Return")


def test_checkpoints_before_the_first_finite_value():
    rows = [{"kind": "episode", "step": 1, "episode/return": float("nan")}, {"kind": "checkpoint", "step": 1}]
    figure = job_figure(rows)
    assert [list(trace.y) for trace in figure.data if trace.name == "checkpoint"] == [[0.0]]
