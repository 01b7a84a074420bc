"""What a job takes along, and how it lies in the run folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from rlnb.errors import CaptureError, RunFormatError, SecretError
from rlnb.jobs.capture import collect as collecting
from rlnb.jobs.capture.bundle import Bundle, bundle_sha, lay_out, write_bundle
from rlnb.jobs.capture.collect import collect, refuse_secrets
from rlnb.jobs.capture.localmodules import live_modules
from rlnb.run.layout import RunLayout
from rlnb.run.secrets import Redactor


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "nb"
    for name, text in {
        "lander.yaml": "reward: 1", "demo.parquet": "PAR", "helper.py": "import deeper, os\n", "deeper.py": "",
        "pack/__init__.py": "", "pack/sub/part.py": "import second\n", "second.py": "", "unused.py": "", "data/a.csv": "1", "data/b.csv": "2",
        "runs/x/run.yaml": "id: x", "nb.ipynb": "{}", "sub/dir/file.txt": "t",
    }.items():  # fmt: skip
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return made


def _names(bundle: Bundle) -> dict[str, str]:
    return {file.name: file.why for file in bundle.files}


def test_modules_literals_and_includes(folder: Path) -> None:
    sources = [
        "import helper, numpy, json\nfrom pack.sub import part",
        'lab = Lab(env, "lander.yaml", to="./demo.parquet")',
        "open('sub/dir/file.txt')",
    ]
    bundle = collect(folder, sources, include=["data/*.csv"])
    assert _names(bundle) == {
        "helper.py": "module", "deeper.py": "module", "pack/__init__.py": "module", "pack/sub/part.py": "module", "second.py": "module",
        "lander.yaml": "literal", "demo.parquet": "literal", "sub/dir/file.txt": "literal", "data/a.csv": "include", "data/b.csv": "include",
    }  # fmt: skip
    assert bundle.bytes == sum(path.path.stat().st_size for path in bundle.files)
    assert bundle.describe().startswith("the notebook and 10 files (47 B: data/a.csv, data/b.csv, ")


def test_what_stays_behind(folder: Path) -> None:
    sources = [
        "x = ['../other', '/etc/passwd', '', '.', 'nb.ipynb', 'runs', 'data', 'missing.txt', 'a\\nb', '~', 'x' * 300]"
    ]
    bundle = collect(folder, sources, exclude=[folder / "nb.ipynb", folder / "runs"])
    assert bundle.files == ()
    assert bundle.folders == ("data",)
    assert bundle.describe() == "the notebook alone"


def test_a_link_out_of_the_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("x")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    assert collect(folder, ["open('link.txt')"]).files == ()
    with pytest.raises(CaptureError, match="leads outside .* through a link; copy link.txt"):
        collect(folder, [], include=["link.txt"])


@pytest.mark.parametrize(
    ("include", "message"),
    [
        ("missing.csv", "include='missing.csv' names no file in"),
        ("../x", "include='../x' is outside the notebook's folder"),
        ("/etc/hosts", "include='/etc/hosts' is outside the notebook's folder .*; copy it into it"),
    ],
)
def test_bad_includes(folder: Path, include: str, message: str) -> None:
    with pytest.raises(CaptureError, match=message):
        collect(folder, [], include=[include])


def test_a_folder_and_an_absolute_path_can_be_included(folder: Path) -> None:
    assert set(_names(collect(folder, [], include=["data", folder / "second.py"]))) == {
        "data/a.csv",
        "data/b.csv",
        "second.py",
    }


def test_the_cap_names_the_largest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "CAP_BYTES", 2000)
    (folder / "big.npy").write_bytes(bytes(3000))
    with pytest.raises(
        CaptureError,
        match=r"is 3.0 kB, over the cap of 2.0 kB; the largest file is big.npy \(3.0 kB, literal\)",
    ):
        collect(folder, ["load('big.npy')", "'lander.yaml'"])


def test_modules_on_a_path_the_notebook_added(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "mylib.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    assert _names(collect(folder, ["import mylib"])) == {"mylib.py": "module"}
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    assert _names(collect(folder, ["import mylib"])) == {}


def test_live_modules_are_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(__import__("sys").modules, "unused", raising=False)
    __import__("unused")
    bundle = collect(folder, [], live_modules=lambda: live_modules(folder))
    __import__("sys").modules.pop("unused")
    assert _names(bundle) == {"unused.py": "module"}


def test_files_that_hold_secrets_by_convention_are_withheld(folder: Path) -> None:
    for name in (".env", "deploy.pem", "environment.txt"):
        (folder / name).write_text("x")
    bundle = collect(folder, ["load_dotenv('.env'); open('deploy.pem'); open('environment.txt')"])
    assert (list(_names(bundle)), bundle.withheld) == (["environment.txt"], (".env", "deploy.pem"))


def test_secrets_are_refused(folder: Path) -> None:
    redactor = Redactor({"topsecret99": "MY_TOKEN"})
    (folder / "lander.yaml").write_text("key: topsecret99")
    with pytest.raises(SecretError, match=r"The file lander.yaml holds the value of MY_TOKEN"):
        refuse_secrets(collect(folder, ["'lander.yaml'"]), [], redactor)
    with pytest.raises(
        SecretError, match=r"Cell 3 holds the value of MY_TOKEN.*os.environ\['MY_TOKEN'\] with env_vars"
    ):
        refuse_secrets(Bundle(()), [("Cell 3", "token = 'topsecret99'")], redactor)
    refuse_secrets(Bundle(()), [("Cell 3", "token = ''")], redactor)


@pytest.fixture
def layout(folder: Path, tmp_path: Path) -> RunLayout:
    made = RunLayout(tmp_path / "exp-1")
    bundle = collect(folder, ["import helper; 'sub/dir/file.txt'"])
    sha = write_bundle(
        made, bundle, notebook="{}", notebook_name="nb.ipynb", environment={"a": 1}, lock="x==1\n"
    )
    assert sha == bundle_sha(made)
    return made


def test_layout_on_disk(layout: RunLayout) -> None:
    manifest = json.loads(layout.bundle_files.read_text())
    assert manifest["notebook"] == "nb.ipynb"
    names = [
        "environment.json",
        "files/deeper.py",
        "files/helper.py",
        "files/sub/dir/file.txt",
        "lock.txt",
        "notebook.ipynb",
    ]
    assert [entry["name"] for entry in manifest["files"]] == names
    assert manifest["files"][2]["why"] == "module"
    assert len(manifest["files"][0]["sha256"]) == 64


def test_work_is_laid_out_afresh(layout: RunLayout) -> None:
    layout.work.mkdir()
    (layout.work / "left_over.txt").write_text("from an earlier attempt")
    work = lay_out(layout)
    assert sorted(p.relative_to(work).as_posix() for p in work.rglob("*") if p.is_file()) == [
        "deeper.py",
        "helper.py",
        "sub/dir/file.txt",
    ]


def test_a_changed_file_is_refused(layout: RunLayout) -> None:
    before = bundle_sha(layout)
    (layout.bundle / "files" / "helper.py").write_text("import os; os.remove('/')")
    with pytest.raises(
        RunFormatError, match=r"helper.py is not the file that was promoted \(its sha256 differs\)"
    ):
        lay_out(layout)
    with pytest.raises(RunFormatError, match="its sha256 differs"):
        bundle_sha(layout)
    assert len(before) == 64


def test_a_manifest_that_climbs_out_is_refused(layout: RunLayout) -> None:
    manifest = json.loads(layout.bundle_files.read_text())
    manifest["files"][1]["name"] = "files/../../../evil.py"
    layout.bundle_files.write_text(json.dumps(manifest))
    with pytest.raises(RunFormatError, match="is not a plain relative name"):
        lay_out(layout)
    layout.bundle_files.unlink()
    with pytest.raises(RunFormatError, match="files.json is missing or torn"):
        lay_out(layout)


def test_modules_whose_file_is_nowhere_are_passed_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.ops has the file "_ops.py", which resolves into whatever the working directory is."""
    nowhere = ModuleType("nowhere")
    nowhere.__file__ = "_ops.py"
    monkeypatch.setitem(sys.modules, "nowhere", nowhere)
    monkeypatch.chdir(folder)
    assert live_modules(folder) == []
