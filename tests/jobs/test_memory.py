from __future__ import annotations

from pathlib import Path

from rlnb.jobs.supervisor.memory import MemoryWatch, counter_files


def _system(tmp_path: Path, cgroup: str) -> dict[str, Path]:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(cgroup)
    (tmp_path / "proc/vmstat").write_text("nr_free_pages 5\noom_kill 7\n")
    return {"proc": tmp_path / "proc", "cgroups": tmp_path / "cgroup"}


def test_the_second_version_s_group_is_found(tmp_path):
    where = _system(tmp_path, "0::/job/7\n")
    events = tmp_path / "cgroup/job/7/memory.events"
    events.parent.mkdir(parents=True)
    events.write_text("low 0\noom 1\noom_kill 1\n")
    assert counter_files(**where) == [events, tmp_path / "proc/vmstat"]


def test_the_first_version_s_group_is_found_at_a_container_s_root(tmp_path):
    where = _system(tmp_path, "4:memory:/host/path\n1:cpu:/x\n")
    control = tmp_path / "cgroup/memory/memory.oom_control"
    control.parent.mkdir(parents=True)
    control.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 0\n")
    assert counter_files(**where) == [control, tmp_path / "proc/vmstat"]


def test_only_a_counter_that_went_up_is_evidence(tmp_path):
    events = tmp_path / "memory.events"
    events.write_text("oom 3\noom_kill 2\n")
    watch = MemoryWatch([events, tmp_path / "absent"])
    assert watch.evidence() is None
    events.write_text("oom 4\noom_kill 3\n")
    assert watch.evidence() == f"{events}: oom_kill +1"


def test_this_machine_has_a_counter():
    assert counter_files()
