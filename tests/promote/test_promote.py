"""promote() and promote_notebook() up to the moment a supervisor is started."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import rlnb
from rlnb import settings
from rlnb.design.design import Design
from rlnb.design.reward import RewardSpec, Term
from rlnb.design.state import StateSpec
from rlnb.errors import CaptureError, ExperimentError, ParameterError, SecretError, UsageError
from rlnb.experiment import Experiment
from rlnb.job import Job
from rlnb.jobs.capture import recorder as capture
from rlnb.jobs.capture.recorder import CellRun
from rlnb.jobs.executors.local import LocalExecutor
from rlnb.promote import promote, promote_notebook
from rlnb.run.findings import Finding, Level
from rlnb.run.host import ProcessIdentity
from rlnb.run.index import Index
from rlnb.run.layout import RunLayout
from rlnb.run.record import Target, read_record
from rlnb.run.status import State, Status, write_status
from tests.promote.notebooks import code, notebook

CELLS = (
    code("seed = 0", "p", "parameters"),
    code(
        "import rlnb\nexp = rlnb.Experiment('cart', env='CartPole-v1', total_timesteps=1000, seed=seed)", "e"
    ),
    code("job = rlnb.promote(exp)", "t"),
    code("job", "j"),
)


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[RunLayout]:
    """Runs that would have been started; each is said to be starting by this living process."""
    layouts: list[RunLayout] = []

    def submit(self: LocalExecutor, layout: RunLayout, **_: Any) -> int:
        layouts.append(layout)
        write_status(layout, Status(State.STARTING, 1, ProcessIdentity.of()))
        return 1

    monkeypatch.setattr(LocalExecutor, "submit", submit)
    return layouts


@pytest.fixture(autouse=True)
def rehearsals(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The rehearsal has tests of its own; here it finds what a test puts there."""
    made = SimpleNamespace(count=0, findings=[])

    def rehearse(*_: Any, **__: Any) -> list[Finding]:
        made.count += 1
        return made.findings

    module = ModuleType("rlnb.train.rehearse")
    module.rehearse = rehearse  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rlnb.train.rehearse", module)
    return made


class Kernel:
    """Says what IPython's recorder would say; tests/promote/test_kernel.py drives a real one."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.book = notebook(folder, *CELLS)
        self.runs = [CellRun(cell.source, cell.id, 1.0, True) for cell in self.book.cells[:3]]
        self.calls = 0
        self.namespace: dict[str, Any] = {}
        monkeypatch.setattr(capture, "install", lambda: self)
        monkeypatch.setenv("JPY_SESSION_NAME", str(self.book.path))

    @property
    def running(self) -> CellRun:
        return self.runs[-1]

    def count_call(self) -> int:
        self.calls += 1
        return self.calls

    def promote(self, exp: Experiment | None = None, **more: Any) -> Any:
        self.runs[-1] = CellRun(self.runs[-1].source, self.runs[-1].cell_id, 2.0)
        self.calls = 0
        return promote(exp or _experiment(), **more)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(tmp_path, monkeypatch)


def _experiment(**more: Any) -> Experiment:
    return Experiment("cart", env="CartPole-v1", **{"total_timesteps": 1000, **more})


def _finish(layout: RunLayout, state: State) -> None:
    write_status(layout, Status(state, 1, ProcessIdentity.of()))


def test_what_stands_in_the_run_folder(kernel: Kernel, started: list[RunLayout], tmp_path: Path) -> None:
    exp = _experiment(tags=("x",))
    job = kernel.promote(exp, store="./runs", tags=["y"], retries=1, env_vars=["HOME"])
    assert started == [job.layout]
    assert job.folder.parent == settings.runs_dir()
    assert __import__("re").fullmatch(r"exp-\d{4}-\d\d-\d\d-cart-[0-9a-f]{4}", job.id)
    record = read_record(job.layout)
    assert record.experiment == exp.spec.to_dict()
    assert record.fingerprint == exp.spec.fingerprint()
    assert record.target == Target("t", 1)
    assert record.store == {"url": str(tmp_path / "runs"), "exclusive": True}
    assert record.notebook == {"path": str(kernel.book.path), "folder": str(tmp_path), "checked": True}
    assert (record.tags, record.limits.retries, record.pass_env) == (["y", "x"], 1, ["HOME"])
    assert record.kernel == {"python": sys.executable}
    frozen = json.loads(job.layout.bundle_notebook.read_text())
    assert [cell["id"] for cell in frozen["cells"]] == ["p", "e", "t", "j"]
    assert json.loads(job.layout.environment_json.read_text())["packages"]["gymnasium"]
    [row] = Index().rows()
    assert (row.id, row.algo, row.env, row.url) == (job.id, "PPO", "CartPole-v1", f"{tmp_path}/runs/{job.id}")


class _Lab:
    """What an Experiment asks of a lab."""

    env = "CartPole-v1"

    def __init__(self, file: Path) -> None:
        self.file = file

    def flush(self) -> None:
        self.file.write_text(self.design().to_yaml())

    def design(self) -> Design:
        return Design(RewardSpec([Term("upright", "cos(theta)", weight=2.0)]), StateSpec())


def test_a_lab_is_flushed_frozen_and_bundled(kernel: Kernel, tmp_path: Path) -> None:
    lab = _Lab(tmp_path / "cart.yaml")
    kernel.runs[1] = CellRun(
        "import rlnb\nexp = rlnb.Experiment('cart', rlnb.Lab('CartPole-v1', design='cart.yaml'))",
        "e",
        1.0,
        True,
    )
    job = kernel.promote(Experiment("cart", lab, total_timesteps=1000))
    assert (job.layout.bundle / "files" / "cart.yaml").read_text() == lab.design().to_yaml()
    experiment = read_record(job.layout).experiment or {}
    assert experiment["design"]["reward"]["terms"][0]["expression"] == "cos(theta)"


def test_more_recordings_are_no_other_run_but_another_design_is(kernel: Kernel, tmp_path: Path) -> None:
    class Lab(_Lab):
        weight = 2.0

        def design(self) -> Design:
            return Design(RewardSpec([Term("upright", "cos(theta)", weight=self.weight)]), StateSpec())

        def files(self) -> list[Path]:
            return [self.file, *tmp_path.glob("cart.lab/episodes/*")]

    lab = Lab(tmp_path / "cart.yaml")
    exp = Experiment("cart", lab, total_timesteps=1000)
    first = kernel.promote(exp)
    (tmp_path / "cart.lab" / "episodes").mkdir(parents=True)
    (tmp_path / "cart.lab" / "episodes" / "001-random.parquet").write_text("episodes")
    assert kernel.promote(exp).id == first.id
    lab.weight = 3.0
    other = kernel.promote(exp)
    assert other.id != first.id
    files = {
        path.name: path.read_text() for path in (other.layout.bundle / "files").rglob("*.*") if path.is_file()
    }
    assert files == {"cart.yaml": lab.design().to_yaml(), "001-random.parquet": "episodes"}
    manifest = json.loads(other.layout.bundle_files.read_text())["files"]
    assert {row["name"]: row["why"] for row in manifest if row["why"] != "rlnb"} == {
        "files/cart.yaml": "lab",
        "files/cart.lab/episodes/001-random.parquet": "lab",
    }
    lab.weight = 2.0
    assert kernel.promote(exp).id == first.id


def test_waiting_returns_when_the_run_rests(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    monkeypatch.setattr(Job, "wait", lambda self: waited.append(self.id) or self)
    job = kernel.promote(wait=True)
    assert waited == [job.id]


def test_run_all_again_attaches_and_says_so(
    kernel: Kernel, started: list[RunLayout], capsys: pytest.CaptureFixture[str]
) -> None:
    first = kernel.promote()
    assert kernel.promote().id == first.id
    assert (
        f"{first.id} is starting with this notebook, design and parameters: attached to it (new=True starts another)."
        in capsys.readouterr().out
    )
    _finish(first.layout, State.COMPLETED)
    assert kernel.promote().id == first.id
    assert len(started) == 1


def test_new_starts_another(kernel: Kernel) -> None:
    first = kernel.promote()
    second = kernel.promote(new=True)
    assert first.id != second.id
    assert kernel.promote().id == second.id


@pytest.mark.parametrize("state", [State.FAILED, State.STOPPED])
def test_an_ended_run_is_not_attached_to(kernel: Kernel, state: State) -> None:
    first = kernel.promote()
    _finish(first.layout, state)
    assert kernel.promote().id != first.id


def test_a_run_that_was_never_started_is_not_attached_to(kernel: Kernel) -> None:
    first = kernel.promote()
    first.layout.status.unlink()  # as when the kernel was killed before it could submit
    assert first.state is State.QUEUED
    assert kernel.promote().id != first.id


def test_a_suspended_run_is_attached_to(kernel: Kernel, capsys: pytest.CaptureFixture[str]) -> None:
    first = kernel.promote()
    _finish(first.layout, State.SUSPENDED)
    assert kernel.promote().id == first.id
    assert (
        "is suspended with this notebook, design and parameters: attached to it; job.resume() lets it go on"
        in capsys.readouterr().out
    )


def test_another_experiment_or_source_is_another_run(kernel: Kernel) -> None:
    first = kernel.promote()
    second = kernel.promote(_experiment(learning_rate=1e-4))
    kernel.runs[1] = CellRun(kernel.runs[1].source + "\nx = 1", "e", 1.0, True)
    third = kernel.promote()
    assert len({first.id, second.id, third.id}) == 3


def test_attaching_works_without_an_index(kernel: Kernel) -> None:
    first = kernel.promote()
    settings.index_path().unlink()
    assert kernel.promote().id == first.id


def test_findings_stop_promotion_and_leave_nothing(
    kernel: Kernel, started: list[RunLayout], rehearsals: SimpleNamespace
) -> None:
    rehearsals.findings = [Finding(Level.ERROR, "env", "The env breaks gymnasium's rules; mend it.")]
    with pytest.raises(
        ExperimentError, match=r"Not promoted: The env breaks gymnasium's rules; mend it. \(check=False"
    ):
        kernel.promote()
    assert started == []
    assert Index().rows() == []
    kernel.promote(check=False)
    assert len(started) == 1


def test_one_rehearsal_for_check_and_promote(kernel: Kernel, rehearsals: SimpleNamespace) -> None:
    exp = _experiment()
    assert exp.check().ok
    kernel.promote(exp)
    assert rehearsals.count == 1


def test_undefined_names_stop_promotion_before_the_rehearsal(
    kernel: Kernel, rehearsals: SimpleNamespace
) -> None:
    kernel.runs[1] = CellRun("exp = rlnb.Experiment(lr)", "e", 1.0, True)
    with pytest.raises(ExperimentError, match="Cell 2 uses `lr`, but no cell defines it"):
        kernel.promote()
    assert rehearsals.count == 0


def test_a_store_that_cannot_be_written_stops_promotion(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        ExperimentError, match="The store .*/file/x cannot be used|The store .*/file/x failed a real write"
    ):
        kernel.promote(store="file/x")


def test_secrets_never_reach_the_run_folder(
    kernel: Kernel, started: list[RunLayout], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
    kernel.runs[1] = CellRun(kernel.runs[1].source + "\nlogin('0123456789abcdef')", "e", 1.0, True)
    with pytest.raises(SecretError, match="Cell 2 of the notebook holds the value of WANDB_API_KEY"):
        kernel.promote(check=False)
    kernel.runs[1] = CellRun(CELLS[1].source, "e", 1.0, True)
    with pytest.raises(SecretError, match="A setting of the experiment holds the value of WANDB_API_KEY"):
        kernel.promote(_experiment(tags=["0123456789abcdef"]), check=False)
    assert started == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"env_vars": ["HOMER"]},
            "env_vars names 'HOMER', which is not set here; set it or take it out. Did you mean 'HOME'",
        ),
        (
            {"env_vars": ["A_TOKEN=x"]},
            "env_vars holds 'A_TOKEN' with more than a name; give the variable's name only",
        ),
        ({"exp": 5}, r"promote\(\) takes an Experiment, not 5; write rlnb\.promote\(rlnb\.Experiment\("),
        ({"env_vars": 5}, r"env_vars holds 5, which is no word; write e\.g\. env_vars=\['a', 'b'\]"),
        ({"tags": [5]}, "tags holds 5, which is no word"),
        ({"include": 5}, r"include holds 5, which is no path; write e\.g\. include=\['data/a\.csv'\]"),
        ({"retries": "3"}, "retries='3' is no whole number; give 0 or more"),
        ({"retries": 1.5}, "retries=1.5 is no whole number"),
        ({"hold": "1h"}, "hold='1h' is no number of seconds; give 0 or more"),
        ({"hold": float("nan")}, "hold=nan is no number of seconds"),
        ({"store": 5}, r"store=5 is no place; give a folder such as '\./runs', or s3:// or obs://"),
        ({"store": ""}, "store='' is no place"),
        ({"notebook": 5}, "notebook=5 is no path; pass the path of the .ipynb file"),
        ({"grid": 5}, r"grid=5 is no mapping; give for example grid=\{\"seed\": range\(5\)\}"),
        ({"grid": {"seed": 5}}, r"grid\['seed'\] is 5; give a list or range of values"),
        (
            {"grid": {"seed": [object()]}},
            "The parameter 'seed' holds a builtins.object, which cannot be carried",
        ),
        ({"retries": -1}, "retries=-1 is negative; give 0 or more"),
        ({"hold": -1.0}, "hold=-1.0 is negative"),
        ({"store": "memory://x"}, "ends with the process that holds it"),
        ({"grid": {"sed": range(2)}}, "'sed' is not in the parameters cell .* Did you mean 'seed'"),
        ({"include": ["gone"]}, "include='gone' names no file"),
        ({"notebook": "gone.ipynb"}, "notebook='gone.ipynb' is not an existing .ipynb file"),
    ],
)
def test_bad_options(kernel: Kernel, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        kernel.promote(**options)
    assert not settings.runs_dir().exists()


def test_a_failed_start_leaves_no_half_run(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("rlnb.launch.write_record", refuse)
    with pytest.raises(OSError, match="disk full"):
        kernel.promote()
    assert list(settings.runs_dir().iterdir()) == []
    assert Index().rows() == []


def test_the_second_call_of_a_cell_is_its_own_run(kernel: Kernel) -> None:
    first = kernel.promote()
    second = promote(_experiment(seed=1))
    assert read_record(second.layout).target == Target("t", 2)
    assert first.id != second.id
    assert promote(_experiment(seed=2)).id not in (first.id, second.id)


def test_a_grid_is_a_group_over_parameters(kernel: Kernel, started: list[RunLayout]) -> None:
    group = kernel.promote(grid={"seed": range(3)}, tags=["sweep"])
    assert [read_record(job.layout).parameters for job in group] == [{"seed": 0}, {"seed": 1}, {"seed": 2}]
    records = [read_record(layout) for layout in started]
    assert {record.group for record in records} == {group.name}
    assert all(record.experiment is None and record.tags == ["sweep"] for record in records)
    sources = [
        [cell["source"] for cell in json.loads(layout.bundle_notebook.read_text())["cells"]]
        for layout in started
    ]
    assert sources[2][1] == ["# Parameters\n", "seed = 2"]
    again = kernel.promote(grid={"seed": range(3)}, tags=["sweep"])
    assert [job.id for job in again] == [job.id for job in group]
    assert again.name == group.name
    assert len(started) == 3


def test_a_plain_script_needs_notebook(tmp_path: Path, started: list[RunLayout]) -> None:
    with pytest.raises(CaptureError, match=r"promote\(\) runs outside a notebook; pass notebook='…'"):
        promote(_experiment())
    book = notebook(tmp_path, *CELLS)
    job = promote(_experiment(), notebook=book.path, check=False)
    record = read_record(job.layout)
    assert record.target == Target("t", 1)
    assert record.fingerprint == _experiment().spec.fingerprint()


def test_without_a_kernel(
    tmp_path: Path, started: list[RunLayout], rehearsals: SimpleNamespace, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    book = notebook(tmp_path, *CELLS)
    (tmp_path / "shell").mkdir()
    monkeypatch.chdir(tmp_path / "shell")
    job = promote_notebook(book.path, parameters={"seed": 4}, store="runs", tags="one")
    record = read_record(job.layout)
    assert (record.experiment, record.fingerprint, record.parameters) == (None, None, {"seed": 4})
    assert (record.name, record.target, record.tags) == ("cart", Target("t", 1), ["one"])
    assert record.store["url"] == str(tmp_path / "shell" / "runs")
    assert record.notebook["checked"] is False
    assert rehearsals.count == 0
    capsys.readouterr()
    assert promote_notebook(book.path, parameters={"seed": 4}, store="runs").id == job.id
    said = capsys.readouterr()
    assert (said.out, "attached to it" in said.err) == ("", True), "standard output is the command's own"
    assert promote_notebook(book.path, parameters={"seed": 5}, store="runs").id != job.id
    assert promote_notebook(book.path, store="runs", name="named").id.rpartition("-")[0].endswith("-named")


def test_without_a_kernel_a_call_in_a_loop_is_the_first(
    tmp_path: Path, started: list[RunLayout], capsys: pytest.CaptureFixture[str]
) -> None:
    loop = "for seed in range(3):\n    rlnb.promote(rlnb.Experiment(f'n{seed}', env='CartPole-v1'))"
    book = notebook(tmp_path, "import rlnb", loop)
    promote_notebook(book.path, store="runs")
    message = (
        "promote() of nb.ipynb stands in a loop, a function or a branch: the job trains the first experiment"
    )
    assert message in capsys.readouterr().err
    job = promote_notebook(book.path, store="runs", experiment="n1")
    assert message not in capsys.readouterr().err
    assert read_record(job.layout).experiment_name == "n1"
    assert promote_notebook(book.path, store="runs", experiment="n1").id == job.id
    assert promote_notebook(book.path, store="runs", experiment="n2").id != job.id
    assert promote_notebook(book.path, store="runs").id == started[0].id


def test_without_a_kernel_typos_and_secrets_are_refused(tmp_path: Path, started: list[RunLayout]) -> None:
    book = notebook(tmp_path, *CELLS)
    with pytest.raises(ParameterError, match="Did you mean 'seed'"):
        promote_notebook(book.path, parameters={"sedd": 1})
    with pytest.raises(SecretError, match="'api_token' is named like a secret"):
        promote_notebook(book.path, parameters={"api_token": "x"})
    with pytest.raises(CaptureError, match="There is no notebook .*gone.ipynb"):
        promote_notebook(tmp_path / "gone.ipynb")
    assert started == []


def test_a_kernel_run_and_a_shell_run_of_the_same_are_the_same(kernel: Kernel) -> None:
    job = kernel.promote()
    assert promote_notebook(kernel.book.path, store=kernel.book.path.parent / "runs").id == job.id


def test_it_is_public() -> None:
    assert rlnb.promote is promote


def test_two_promotions_at_the_same_moment_start_one_run(tmp_path: Path, started: list[RunLayout]) -> None:
    book = notebook(tmp_path, *CELLS)
    with ThreadPoolExecutor(4) as pool:
        jobs = list(pool.map(lambda _: promote_notebook(book.path, store=tmp_path / "runs"), range(4)))
    assert len({job.id for job in jobs}) == len(started) == 1
