from __future__ import annotations

import json
import subprocess
import sys

import pytest

from rlnb.cli.main import build_parser

COMMANDS = [
    "promote", "jobs", "show", "logs", "metrics", "pause", "suspend", "resume", "stop", "fork",
    "inspect", "verify", "wait", "doctor", "new", "reconcile", "index",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(rlnb, command):
    code, out, _ = rlnb(command, "--help")
    assert code == 0
    assert f"usage: rlnb {command}" in out


def test_the_parser_has_no_other_commands():
    actions = [action for action in build_parser()._actions if action.dest == "command"]
    assert sorted(actions[0].choices) == sorted(COMMANDS)


def test_bad_usage_is_one_sentence_and_2(rlnb):
    code, out, err = rlnb("promot", "x.ipynb")
    assert (code, out) == (2, "")
    assert (
        err
        == "rlnb: 'promot' is not a command of rlnb. Did you mean 'promote'? `rlnb --help` lists what is.\n"
    )


def test_without_a_command_help_is_shown(rlnb):
    code, _, err = rlnb()
    assert code == 2
    assert "usage: rlnb" in err


def test_missing_arguments_are_2(rlnb):
    code, _, err = rlnb("show")
    assert code == 2
    assert "RUN" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("logs", "x", "--log", "stdot"), "logs: 'stdot' is not possible for --log. Did you mean 'stdout'? `rlnb logs --help` lists what is."),
        (("index", "rebild"), "index: 'rebild' is not a command of rlnb index. Did you mean 'rebuild'? `rlnb index --help` lists what is."),
        (("jobs", "-n", "-3"), "jobs: argument -n/--limit: '-3' is not a whole number of 0 or more"),
        (("wait", "x", "--timeout", "soon"), "wait: argument --timeout: 'soon' is not a number of seconds, 0 or more"),
        (("fork", "x", "-c", "lr"), "'lr' is not NAME=VALUE; write for example -c learning_rate=1e-4."),
    ],
)  # fmt: skip
def test_a_bad_argument_is_named_with_what_is_possible(rlnb, words, message):
    assert rlnb(*words) == (2, "", f"rlnb: {message}\n")
    code, out, _ = rlnb(*words, "--json")
    assert (code, json.loads(out)) == (2, {"error": message})


def test_json_may_stand_before_an_argument_that_can_be_left_out(rlnb, tmp_path):
    assert json.loads(rlnb("index", "rebuild", "--json", str(tmp_path))[1]) == {"runs": 0}


def test_an_error_of_the_operating_system_is_a_sentence(rlnb, monkeypatch):
    monkeypatch.setenv("RLNB_HOME", "/proc/nowhere")
    assert rlnb("jobs") == (2, "", "rlnb: No such file or directory: /proc/nowhere\n")


def test_the_version_is_printed(rlnb):
    import rlnb as package

    assert rlnb("--version") == (0, f"{package.__version__}\n", "")


def test_an_unknown_run_is_2_and_json_stays_json(rlnb):
    code, out, err = rlnb("show", "nope", "--json")
    assert code == 2
    assert out == '{\n  "error": "There is no run \'nope\' here; `rlnb jobs` lists them."\n}\n'
    assert err == "rlnb: There is no run 'nope' here; `rlnb jobs` lists them.\n"


def test_a_fault_of_our_own_is_a_sentence_unless_asked_for(rlnb, monkeypatch):
    def broken(**_):
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr("rlnb.listing.jobs", broken)
    code, _, err = rlnb("jobs")
    assert code == 2
    assert err == "rlnb: internal error, ZeroDivisionError: a fault; RLNB_DEBUG=1 shows where.\n"
    monkeypatch.setenv("RLNB_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        rlnb("jobs")


def test_python_m_rlnb_is_the_command_line():
    shown = subprocess.run(
        [sys.executable, "-m", "rlnb", "jobs", "--json"], capture_output=True, text=True, check=True
    )
    assert shown.stdout == "[]\n"


def test_the_help_loads_nothing_heavy():
    code = (
        "import sys; from rlnb.cli.main import main; main(['--help']);"
        "print([m for m in ('torch', 'numpy', 'pandas', 'papermill', 's3fs', 'plotly') if m in sys.modules], file=sys.stderr)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stderr.strip() == "[]"


def test_a_reader_that_closes_the_pipe_is_no_error(make_run):
    run = make_run()
    run.begin()
    run.layout.stdout_log.parent.mkdir(parents=True, exist_ok=True)
    run.layout.stdout_log.write_text("line\n" * 200_000)
    command = f"{sys.executable} -m rlnb logs {run.layout.id} --log stdout | head -1; exit ${{PIPESTATUS[0]}}"
    shown = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (shown.stdout, shown.stderr, shown.returncode) == ("line\n", "", 0)
