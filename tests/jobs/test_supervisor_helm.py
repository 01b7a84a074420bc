from __future__ import annotations

import errno
import signal
from unittest.mock import Mock

import pytest

from rlnb.jobs.supervisor import helm as supervisor_helm
from rlnb.jobs.supervisor.helm import Helm
from rlnb.run import control
from rlnb.run.control import Verb, acknowledgement, request
from rlnb.run.events import EventLog, read_events
from rlnb.run.layout import RunLayout
from rlnb.run.progress import Flag, FlagReader


@pytest.fixture
def layout(tmp_path) -> RunLayout:
    (tmp_path / "run").mkdir()
    return RunLayout(tmp_path / "run")


def hear(helm: Helm, verb: Verb, *, trained: bool = False, **args):
    asked = request(helm.layout, verb, **args)
    helm.hear(EventLog(helm.layout), trained=trained)
    return acknowledgement(helm.layout, asked)


def test_a_request_becomes_the_flag_and_an_event(layout):
    helm = Helm(layout, least_free=0)
    for verb, flag in [
        (Verb.PAUSE, Flag.PAUSE),
        (Verb.RESUME, Flag.RUN),
        (Verb.SUSPEND, Flag.SUSPEND),
        (Verb.STOP, Flag.STOP),
    ]:
        assert hear(helm, verb).ok
        assert (helm.flag, FlagReader(layout).read()) == (flag, flag)
    assert [e.kind for e in read_events(layout)] == [
        f"{v}_requested" for v in ("pause", "resume", "suspend", "stop")
    ]


def test_a_stop_is_not_taken_back(layout):
    helm = Helm(layout, least_free=0)
    hear(helm, Verb.STOP)
    assert hear(helm, Verb.SUSPEND).message == "it is being stopped"
    answer = hear(helm, Verb.RESUME)
    assert not answer.ok
    assert answer.message.endswith("resume it when it has ended")
    assert not hear(helm, Verb.PAUSE).ok
    helm.preempt(signal.SIGTERM)
    assert helm.flag is Flag.STOP


def test_a_full_disk_pauses_and_free_space_releases(layout):
    helm = Helm(layout, least_free=1e18)
    helm.look_at_disk()
    assert (helm.flag, FlagReader(layout).read()) == (Flag.PAUSE, Flag.PAUSE)
    assert helm.disk_full
    assert helm.reason.startswith("the local disk is full: ")
    helm.least_free = 1.0
    helm.look_at_disk()
    assert (helm.flag, helm.reason, helm.disk_full) == (Flag.RUN, "", False)


def test_a_full_disk_does_not_take_back_a_person_s_pause(layout):
    helm = Helm(layout, least_free=1e18)
    hear(helm, Verb.PAUSE)
    helm.look_at_disk()
    helm.least_free = 1.0
    helm.look_at_disk()
    assert helm.flag is Flag.PAUSE


def test_old_requests_are_dropped_and_new_ones_kept(layout):
    helm = Helm(layout, least_free=0)
    old = request(layout, Verb.STOP)
    boundary = int(old.split("-")[0]) + 1
    new = request(layout, Verb.PAUSE)
    helm.drop_stale(before_ns=boundary)
    assert acknowledgement(layout, old).message == "too late: the run was resumed after it was asked"
    assert acknowledgement(layout, new) is None


def test_an_inspection_is_noted_with_its_expression(layout):
    helm = Helm(layout, least_free=0)
    assert hear(helm, Verb.INSPECTED, expression="len(x)").ok
    assert [(e.kind, e.message) for e in read_events(layout)] == [("inspected", "len(x)")]


def test_what_a_full_disk_keeps_from_being_written_is_written_later(layout, monkeypatch):
    helm, asked = Helm(layout, least_free=0), request(layout, Verb.STOP)
    full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    with monkeypatch.context() as patch:
        patch.setattr(supervisor_helm, "write_flag", full)
        patch.setattr(control, "write_json", full)
        helm.hear(EventLog(layout), trained=False)
        assert helm.flag is Flag.STOP
        assert acknowledgement(layout, asked) is None
    helm.tell()
    assert FlagReader(layout).read() is Flag.STOP
    helm.hear(EventLog(layout), trained=False)
    assert acknowledgement(layout, asked).ok
    assert [event.kind for event in read_events(layout)] == ["stop_requested"]
