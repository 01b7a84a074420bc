"""What a lab takes along: its design file and recordings, no frames, and never too much."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.design.design import Design
from rlnb.design.reward import RewardSpec, Term
from rlnb.errors import CaptureError
from rlnb.experiment import Experiment
from rlnb.jobs.capture import collect as collecting
from rlnb.jobs.capture.collect import collect
from rlnb.prepare import Prepared, prepare
from rlnb.run.record import Target
from tests.promote.notebooks import code, notebook


class Lab:
    """What an Experiment asks of a lab, with the files of one."""

    env = "CartPole-v1"

    def __init__(self, design: Path) -> None:
        self.path = design

    def flush(self) -> None:
        self.path.write_text(self.design().to_yaml())

    def design(self) -> Design:
        return Design(RewardSpec([Term("upright", "cos(theta)", weight=2.0)]))

    def files(self) -> list[Path]:
        return [self.path, *sorted(self.path.with_suffix(".lab").rglob("*.*"))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    _write(tmp_path, "lander")
    return tmp_path


def _write(folder: Path, stem: str) -> None:
    beside = folder / f"{stem}.lab"
    for name in ("episodes/a.parquet", "episodes/b.parquet", "episodes/a.frames.parquet", "episodes/b.frames/0.png", "versions/0001.yaml", "owner.json"):  # fmt: skip
        (beside / name).parent.mkdir(parents=True, exist_ok=True)
        (beside / name).write_text(name)
    (beside / "lab.json").write_text('{"buffer_size": 1}')
    (folder / f"{stem}.yaml").write_text(Design().to_yaml())


def _whys(bundle: object) -> dict[str, str]:
    return {file.name: file.why for file in bundle.files}  # type: ignore[attr-defined]


_LANDER = {f"lander.lab/{name}": "lab" for name in ("episodes/a.parquet", "episodes/b.parquet", "lab.json")}


@pytest.mark.parametrize(
    "source", ["Lab('X', design='lander.yaml')", "lab = rlnb.Lab(env, demo, './lander.yaml')"]
)
def test_a_design_that_is_named_brings_its_recordings(folder: Path, source: str) -> None:
    assert _whys(collect(folder, [source])) == {"lander.yaml": "literal", **_LANDER}


@pytest.mark.parametrize(
    "source",
    ["rlnb.Lab('Lander!')", "Lab(env='Lander')", "env = 'Lander'\nlab = rlnb.Lab(env, demo)"],
)
def test_a_lab_without_a_design_has_one_by_its_environment(folder: Path, source: str) -> None:
    assert _whys(collect(folder, [source])) == {"lander.yaml": "lab", **_LANDER}


@pytest.mark.parametrize(
    "source",
    ["Lab('Lander', design=path)", "Lab('Lander', demo, path)", "Lab('Other')", "Lab(**given)", "Bar('Lander')", "x = '.yaml'", "x = '../lander.yaml'"],
)  # fmt: skip
def test_no_lab_no_files(folder: Path, source: str) -> None:
    assert collect(folder, [source]).files == ()


def test_a_living_lab_names_its_files(folder: Path) -> None:
    lab = Lab(folder / "lander.yaml")
    exp = Experiment("cart", lab, total_timesteps=10)
    whys = _whys(collect(folder, ["x = 1"], lab=exp.lab_files()))
    assert whys == {
        "lander.yaml": "lab",
        **_LANDER,
        "lander.lab/owner.json": "lab",
        "lander.lab/versions/0001.yaml": "lab",
    }
    assert Experiment("cart", env="CartPole-v1", total_timesteps=10).lab_files() == []


def test_a_lab_elsewhere_is_refused(folder: Path) -> None:
    (folder / "sub").mkdir()
    with pytest.raises(
        CaptureError,
        match=r"^The lab's file .*lander\.yaml is outside the notebook's folder .*; move it there",
    ):
        collect(folder / "sub", [], lab=[folder / "lander.yaml"])


def test_recordings_over_the_cap_stay_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "CAP_BYTES", 600)
    for name in "ab":
        (folder / f"lander.lab/episodes/{name}.parquet").write_bytes(b"x" * 300)
    made = _prepared(folder, "Lab('X', design='lander.yaml')")
    assert _whys(made.bundle) == {"lander.yaml": "literal", "lander.lab/lab.json": "lab"}
    [finding] = [finding for finding in made.findings if finding.code == "recordings_left_out"]
    assert str(finding).startswith(
        "warning: The lab's 2 recordings (600 B) stay here, since the bundle has a cap of "
    )
    (folder / "big.csv").write_bytes(b"x" * 601)
    with pytest.raises(CaptureError, match="the largest file is big.csv"):
        collect(folder, ["'lander.yaml'", "'big.csv'"])


def _prepared(folder: Path, source: str, lab: Lab | None = None) -> Prepared:
    book = notebook(folder, code(source, "l"), code("promote(exp)", "t"))
    files = [] if lab is None else lab.files()
    return prepare(book, target=Target("t", 1), lab=files, store=str(folder / "runs"))


@pytest.mark.parametrize("source", ["Lab('X', design='lander.yaml')", "Lab('Lander')"])
def test_the_design_counts_and_nothing_else_of_a_lab(folder: Path, source: str) -> None:
    lab = Lab(folder / "lander.yaml")
    key = _prepared(folder, source).key
    assert _prepared(folder, source, lab).key == key, "the same with and without a kernel"
    (folder / "lander.lab/episodes/c.parquet").write_text("more")
    (folder / "lander.lab/lab.json").write_text('{"buffer_size": 2}')
    (folder / "lander.lab/versions/0002.yaml").write_text(lab.design().to_yaml())
    assert _prepared(folder, source, lab).key == key
    text = lab.path.read_text()
    lab.path.write_text("# said otherwise\nreward:\n  terms: [{name: env, expression: reward, weight: 1}]\n")
    assert _prepared(folder, source, lab).key == key, "the same design, written otherwise"
    lab.flush()
    assert _prepared(folder, source, lab).key != key
    lab.path.write_text(text)
    assert _prepared(folder, source).key == key
