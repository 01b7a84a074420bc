from __future__ import annotations

import signal

import pytest

from rlnb.jobs.supervisor.verdict import NOT_RETRIED, AttemptEnd, Wish, judge
from rlnb.run.status import EndKind, State

CELL = {"number": 3, "id": "c3", "ename": "ValueError", "evalue": "no", "traceback": ["ValueError: no"]}


def end(**changes) -> AttemptEnd:
    values = {"exit_code": 0, "worker": {"outcome": "ok"}, "trained": False, "in_training": False}
    return AttemptEnd(**{**values, **changes})


def test_training_s_record_means_completed():
    verdict = judge(end(trained=True, in_training=True))
    assert (verdict.state, verdict.evidence.kind, verdict.retry) == (State.COMPLETED, EndKind.OK, False)


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"worker": {"outcome": "cell_error", "cell": CELL}}, EndKind.CELL_ERROR, "training has finished; after it, cell 3 raised ValueError: no"),
        ({"worker": {"outcome": "kernel_died", "exit_code": -11, "cell": CELL}}, EndKind.KERNEL_DIED, "training has finished; after it, the kernel was killed by SIGSEGV in cell 3"),
        ({"worker": None, "exit_code": -9, "wish": Wish.STOP}, EndKind.OK, "training has finished; the later cells were ended by stop"),
    ],
)  # fmt: skip
def test_a_later_cell_s_end_is_shown_but_loses_nothing(changes, kind, message):
    verdict = judge(end(trained=True, in_training=True, **changes))
    assert (verdict.state, verdict.evidence.kind, verdict.retry) == (State.COMPLETED, kind, False)
    assert verdict.evidence.message == message


def test_an_end_without_training_never_reached_promote():
    verdict = judge(end())
    assert (verdict.state, verdict.evidence.kind, verdict.retry) == (
        State.FAILED,
        EndKind.NEVER_REACHED,
        False,
    )
    assert verdict.evidence.message.startswith("promote() was never reached: the notebook ran to its end")
    left = judge(end(worker={"outcome": "exited", "cell": {**CELL, "ename": "SystemExit"}}))
    assert left.evidence.message == "promote() was never reached: cell 3 called sys.exit()"


@pytest.mark.parametrize(
    ("worker", "how"),
    [
        ({"outcome": "ok"}, "caught the error that ended it and ran to its end"),
        ({"outcome": "exited", "cell": {**CELL, "ename": "SystemExit"}}, "left it by sys.exit() in cell 3"),
    ],
)
def test_a_training_that_the_notebook_left_has_begun_but_not_finished(worker, how):
    verdict = judge(end(worker=worker, in_training=True))
    assert (verdict.state, verdict.evidence.kind, verdict.retry) == (State.FAILED, EndKind.UNFINISHED, False)
    assert verdict.evidence.message == f"training has begun but not finished: the notebook {how}"


def test_an_environment_s_process_that_was_killed_for_memory_is_out_of_memory():
    report = {"outcome": "cell_error", "cell": {**CELL, "ename": "EOFError", "evalue": ""}}
    assert judge(end(worker=report, in_training=True)).evidence.kind is EndKind.CELL_ERROR
    verdict = judge(end(worker=report, in_training=True, memory="memory.events: oom_kill +1"))
    assert (verdict.evidence.kind, verdict.retry) == (EndKind.OOM, True)
    assert "had killed a process, out of memory (memory.events: oom_kill +1)" in verdict.evidence.message


def test_an_error_before_training_is_not_retried_and_one_in_training_is():
    report = {"outcome": "cell_error", "cell": CELL}
    assert not judge(end(worker=report)).retry
    assert judge(end(worker=report, in_training=True)).retry
    assert judge(end(worker=report)).evidence.cell == CELL
    assert judge(end(worker=report)).evidence.log == "logs/stdout.log"
    silent = {"outcome": "cell_error", "cell": {**CELL, "ename": "MemoryError", "evalue": ""}}
    assert judge(end(worker=silent)).evidence.message == "cell 3 raised MemoryError"


@pytest.mark.parametrize("name", sorted(NOT_RETRIED))
def test_what_the_request_got_wrong_is_never_retried(name):
    report = {"outcome": "cell_error", "cell": {**CELL, "ename": name}}
    verdict = judge(end(worker=report, in_training=True))
    assert not verdict.retry
    assert (verdict.evidence.kind is EndKind.MISMATCH) == (name == "FingerprintMismatch")


def test_the_names_are_those_of_the_errors():
    import rlnb.errors as errors

    usage = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.UsageError)
    }
    assert usage == NOT_RETRIED


def test_a_sigkill_without_memory_evidence_is_called_a_stranger_s():
    verdict = judge(end(worker={"outcome": "kernel_died", "exit_code": -9}, in_training=True))
    assert (verdict.evidence.kind, verdict.evidence.signal, verdict.retry) == (
        EndKind.KERNEL_DIED,
        signal.SIGKILL,
        True,
    )
    assert "which rlnb did not send" in verdict.evidence.message
    assert not verdict.repeats_by_itself


def test_a_sigkill_with_memory_evidence_is_out_of_memory():
    verdict = judge(
        end(worker={"outcome": "kernel_died", "exit_code": -9}, in_training=True, memory="x: oom_kill +1")
    )
    assert (verdict.evidence.kind, verdict.retry, verdict.repeats_by_itself) == (EndKind.OOM, True, True)
    assert (
        verdict.evidence.message
        == "the kernel was killed by the operating system, out of memory (x: oom_kill +1)"
    )


def test_a_dead_worker_speaks_through_its_exit_code():
    killed = judge(end(worker=None, exit_code=-9))
    assert (killed.evidence.kind, killed.evidence.signal, killed.retry) == (EndKind.WORKER_DIED, 9, True)
    crashed = judge(end(worker=None, exit_code=1))
    assert (crashed.evidence.exit_code, crashed.evidence.message) == (1, "the worker exited with code 1")


def test_what_rlnb_refuses_in_the_worker_is_not_retried():
    report = {"outcome": "worker_error", "message": "damaged", "retry": False}
    verdict = judge(end(worker=report))
    assert (verdict.evidence.message, verdict.retry) == ("damaged", False)


@pytest.mark.parametrize(
    ("wish", "changes", "state", "message"),
    [
        (Wish.SUSPEND, {"in_training": True, "at_safe_point": True, "step": 40}, State.SUSPENDED, "suspended at a checkpoint, step 40"),
        (Wish.STOP, {"in_training": True, "step": 30}, State.STOPPED, "stopped without reaching a safe point in the grace time; the newest checkpoint, step 30, is the final one"),
        (Wish.STOP, {"in_training": True}, State.STOPPED, "stopped without reaching a safe point in the grace time; there is no checkpoint"),
        (Wish.SUSPEND, {"in_training": True, "step": 9, "worker": {"outcome": "cell_error", "cell": CELL}}, State.SUSPENDED, "suspended, but before a safe point was reached, cell 3 raised ValueError: no; the newest checkpoint, step 9, is the final one"),
        (Wish.STOP, {}, State.STOPPED, "stopped before training started"),
        (Wish.SUSPEND, {"step": 7}, State.SUSPENDED, "suspended before training started; the checkpoint at step 7 is the newest"),
    ],
)  # fmt: skip
def test_what_was_asked_for_is_what_it_became(wish, changes, state, message):
    verdict = judge(end(wish=wish, **{"worker": {"outcome": "ended"}, **changes}))
    assert (verdict.state, verdict.evidence.message, verdict.retry) == (state, message, False)


def test_a_hang_is_retried_and_a_time_limit_is_not():
    assert judge(end(wish=Wish.HANG, in_training=True)).retry
    verdict = judge(end(wish=Wish.TIMEOUT, in_training=True, at_safe_point=True, step=5))
    assert (verdict.state, verdict.evidence.kind, verdict.retry) == (State.FAILED, EndKind.TIMEOUT, False)


def test_the_same_end_has_the_same_signature():
    first = judge(end(worker={"outcome": "cell_error", "cell": CELL}, in_training=True))
    other = judge(
        end(worker={"outcome": "cell_error", "cell": {**CELL, "ename": "KeyError"}}, in_training=True)
    )
    assert first.signature != other.signature
    assert first.failed_because("twice").evidence.message == "cell 3 raised ValueError: no; twice"
