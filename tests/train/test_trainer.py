"""One attempt in its run folder: records, flags, events, one history."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time

import pytest
import stable_baselines3
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

from rlnb.errors import CheckpointError
from rlnb.fork import copy_checkpoint
from rlnb.run.checkpoints import checkpoints
from rlnb.run.events import read_events
from rlnb.run.metrics import MetricReader, one_history
from rlnb.run.progress import Flag, Phase, read_progress, write_flag
from rlnb.train import session as session_module
from rlnb.train import writer as writer_module
from rlnb.train.hashing import crc32, weights_sha256
from tests.histories import assert_same_rows, rows
from tests.train.conftest import Ended

PPO = {"env": "CartPole-v1", "algo": "PPO", "n_envs": 2, "n_steps": 32, "batch_size": 32, "n_epochs": 1,
       "total_timesteps": 512, "checkpoint": {"every_steps": 64}}  # fmt: skip


def kinds(trial):
    return [event.kind for event in read_events(trial.layout)]


def test_the_record_says_how_it_ended(trial):
    run = trial(**PPO)
    record = run.attempt()
    assert record["step"] == 512
    assert record["ended_by"] == "total_timesteps"
    assert record["exact_resume"] is True
    assert record["checkpoint"] == "512-a1"
    assert checkpoints(run.layout)[-1].weights_sha256 == record["weights_sha256"]
    assert read_progress(run.layout).phase is Phase.FINISHED
    assert run.attempt() == record  # training is neither repeated nor lost


def test_training_seeds_itself(trial):
    first = trial(**PPO).attempt()
    torch.manual_seed(99)
    assert trial(**PPO).attempt()["weights_sha256"] == first["weights_sha256"]
    assert trial(**PPO, seed=1).attempt()["weights_sha256"] != first["weights_sha256"]


def test_a_design_that_changes_nothing_trains_as_sb3_does(trial):
    model = stable_baselines3.PPO(
        "MlpPolicy", make_vec_env("CartPole-v1", n_envs=2, seed=0), seed=0, n_steps=32, batch_size=32, n_epochs=1,
        device="cpu",
    )  # fmt: skip
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    model.learn(512)
    torch.set_num_threads(threads)
    assert trial(**PPO).attempt()["weights_sha256"] == weights_sha256(model.policy.state_dict())


def test_a_crash_before_the_record_does_not_train_again(trial):
    run = trial(**PPO)
    record = run.attempt()
    run.layout.training_json.unlink()
    again = run.attempt()
    assert (again["weights_sha256"], again["step"], again["episodes"]) == (
        record["weights_sha256"],
        512,
        record["episodes"],
    )


def test_there_is_one_history(trial):
    run = trial(**{**PPO, "checkpoint": {"every_steps": 128}})
    run.crashed(350)
    run.attempt()
    rows, _ = MetricReader(run.layout).read()
    history = one_history(rows)
    episodes = [row for row in history if row["kind"] == "episode"]
    whole = trial(**PPO)
    whole.attempt()
    expected = [row for row in MetricReader(whole.layout).read()[0] if row["kind"] == "episode"]
    plain = [{key: value for key, value in row.items() if key != "time"} for row in episodes]
    assert plain == [{key: value for key, value in row.items() if key != "time"} for row in expected]
    assert {"train/loss", "speed/steps_per_second", "memory/rss_mb"} <= set().union(*history)
    assert any(path.name.startswith("events.out") for path in run.layout.tensorboard.rglob("*"))


def test_pause_holds_in_place_and_goes_on(trial):
    run, seen = trial(**PPO), []

    def supervise():
        while True:
            progress = read_progress(run.layout)
            if progress and progress.phase is Phase.TRAINING:
                write_flag(run.layout, Flag.PAUSE)
            if progress and progress.phase is Phase.PAUSED:
                seen.append(progress.checkpoint)
                write_flag(run.layout, Flag.RUN)
                return
            time.sleep(0.005)

    other = threading.Thread(target=supervise, daemon=True)
    other.start()
    record = run.attempt(total_timesteps=4096)
    other.join(10)
    assert seen
    assert seen[0] is not None
    assert record["weights_sha256"] == trial(**{**PPO, "total_timesteps": 4096}).attempt()["weights_sha256"]


@pytest.mark.parametrize(("flag", "phase"), [(Flag.SUSPEND, Phase.SUSPENDED), (Flag.STOP, Phase.STOPPED)])
def test_suspend_and_stop_checkpoint_and_wait_to_be_ended(trial, flag, phase):
    run = trial(**PPO)
    run.callbacks = [lambda variables, _: write_flag(run.layout, flag) or True]
    with pytest.raises(Ended):
        run.attempt()
    progress = read_progress(run.layout)
    assert progress.phase is phase
    assert checkpoints(run.layout)[-1].step == progress.step == progress.checkpoint


def test_an_interrupt_only_sets_the_flag(trial):
    before = signal.getsignal(signal.SIGINT)  # ignored, where a shell started the tests in the background
    run, sent = trial(**PPO), []

    def interrupt(variables, _):
        if not sent:
            sent.append(variables["self"].num_timesteps)
            os.kill(os.getpid(), signal.SIGINT)
        return True

    run.callbacks = [interrupt]
    with pytest.raises(Ended):
        run.attempt()
    assert read_progress(run.layout).phase is Phase.SUSPENDED
    assert checkpoints(run.layout)[-1].step == 64  # the next safe point, not in the middle of a rollout
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_leaves_training_broken_off(trial):
    def fail(_locals, _globals):
        raise ValueError("no")

    run = trial(**PPO)
    run.callbacks = [fail]
    with pytest.raises(ValueError, match="no"):
        run.attempt()
    assert read_progress(run.layout).phase is Phase.BROKEN_OFF


def test_a_stop_rule_stops_at_the_same_place_after_a_resume(trial):
    rule = {**PPO, "total_timesteps": 5000, "stop_when": "length > 5 for 40 episodes"}
    whole = trial(**rule).attempt()
    assert whole["ended_by"] == "stop_when"
    assert whole["step"] < 5000
    broken = trial(**rule)
    broken.suspended(200)
    record = broken.attempt()
    assert (record["step"], record["weights_sha256"]) == (whole["step"], whole["weights_sha256"])


def test_max_hours_ends_training(trial):
    record = trial(**{**PPO, "total_timesteps": 10**7, "max_hours": 0.5 / 3600}).attempt()
    assert record["ended_by"] == "max_hours"
    assert record["step"] < 10**7


def test_damaged_checkpoints_are_reported_and_skipped(trial):
    whole = trial(**PPO).attempt()
    run = trial(**PPO)
    run.suspended(300)
    newest = checkpoints(run.layout)[-1]
    newest.path("tensors.pt").write_bytes(b"rubbish")
    record = run.attempt()
    assert record["weights_sha256"] == whole["weights_sha256"]
    damaged = [event for event in read_events(run.layout) if event.kind == "checkpoint_damaged"]
    assert damaged[0].message.startswith(
        f"The checkpoint {newest.folder.name} is skipped: {newest.folder.name}/tensors.pt has"
    )


def test_other_first_observations_are_an_event(trial):
    run = trial(**PPO)
    run.suspended(100)
    manifest = checkpoints(run.layout)[-1].folder / "manifest.json"
    text = manifest.read_text()
    first = str(checkpoints(run.layout)[-1].meta["initial"]["observations"][0])
    manifest.write_text(text.replace(first, "1", 1))
    run.attempt()
    assert "initial_differs" in kinds(run)


class Counting(BaseCallback):
    """A callback with a count of its own, which decides something."""

    def __init__(self):
        super().__init__()
        self.seen = 0

    def _on_step(self):
        self.seen += 1
        return True


class Remembering(Counting):
    """The same, which takes part."""

    def state_dict(self):
        return {"seen": self.seen, "tensor": torch.ones(2)}

    def load_state_dict(self, state):
        self.seen = state["seen"]
        assert torch.equal(state["tensor"], torch.ones(2))


def test_a_callback_without_state_dict_is_not_exact(trial):
    run = trial(**PPO)
    run.callbacks = [Counting()]
    assert run.attempt()["exact_resume"] == "not exact: Counting has no state_dict"


def test_a_callback_takes_part_through_state_dict(trial, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    run = trial(**PPO)
    run.callbacks = [Remembering()]
    run.suspended(200)
    second = Remembering()
    run.callbacks = [second]
    assert run.attempt()["exact_resume"] is True
    assert (second.seen, second.n_calls) == (256, 256)


def test_another_version_is_not_exact(trial, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    run = trial(**PPO)
    run.suspended(100)
    for one in checkpoints(run.layout):
        path = one.folder / "manifest.json"
        path.write_text(path.read_text().replace(f'"numpy": "{one.versions["numpy"]}"', '"numpy": "1.0"'))
    now = checkpoints(trial(**PPO).layout) or one.versions["numpy"]
    assert run.attempt()["exact_resume"] == f"not exact: numpy was 1.0 and is {now}"


def test_a_full_disk_pauses_and_says_so(trial, monkeypatch):
    monkeypatch.setattr(session_module, "RETRY_EVERY", 0.01)
    real, failures = writer_module.write_checkpoint, [1, 1, 1]

    def full(*args, **kwargs):
        if failures:
            failures.pop()
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args, **kwargs)

    monkeypatch.setattr(writer_module, "write_checkpoint", full)
    run = trial(**PPO)
    assert run.attempt()["step"] == 512
    assert [kind for kind in kinds(run) if kind.startswith("disk")] == ["disk_full", "disk_ok"]


def test_a_disk_that_fills_up_between_checkpoints_costs_no_row(trial, monkeypatch):
    monkeypatch.setattr(session_module, "RETRY_EVERY", 0.01)
    whole = trial(**PPO)
    record = whole.attempt()
    real, failing = os.write, iter([0] * 10 + [1] * 4 + [0] * 3 + [1] * 2)

    def write(handle, data):
        if data.startswith(b'{"time"') and b'"kind"' in data and next(failing, 0):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, data)

    monkeypatch.setattr(os, "write", write)
    run = trial(**PPO)
    assert run.attempt()["weights_sha256"] == record["weights_sha256"]
    assert_same_rows(run.layout, whole.layout)
    assert {"disk_full", "disk_ok"} <= set(kinds(run))


def test_a_callback_that_ends_training_ends_it_once(trial):
    run = trial(**PPO)
    run.callbacks = [lambda variables, _: variables["self"].num_timesteps < 100]
    record = run.attempt()
    assert (record["ended_by"], record["step"]) == ("callback", 100)
    run.layout.training_json.unlink()  # killed after the last checkpoint, before the record
    again = run.attempt()
    assert (again["ended_by"], again["step"]) == ("callback", 100)
    assert again["weights_sha256"] == record["weights_sha256"]


def test_training_rows_depend_on_steps_and_not_on_the_clock(trial):
    a2c = {"env": "CartPole-v1", "algo": "A2C", "n_envs": 2, "total_timesteps": 2600}
    for given, expected in ((PPO, list(range(64, 513, 64))), (a2c, [1000, 2000, 2600])):
        run = trial(**given)
        run.attempt()
        found = rows(run.layout, "train")
        assert [row["step"] for row in found] == expected
        assert [row["time/iterations"] for row in found[:2]] == ([1, 2] if given is PPO else [100, 200])
        # Each row holds the update of its own iteration, not that of the one before, as SB3's own dumps do.
        assert all("train/value_loss" in row and "rollout/ep_rew_mean" in row for row in found)


def test_off_policy_rows_are_those_that_sb3_dumps(trial):
    run = trial(env="CartPole-v1", algo="DQN", total_timesteps=400, learning_starts=50, buffer_size=200, batch_size=8,
                policy_kwargs={"net_arch": [8]})  # fmt: skip
    run.attempt()
    episodes, found = rows(run.layout, "episode"), rows(run.layout, "train")
    dumped = [episode["step"] for episode in episodes[3::4]]
    assert [row["step"] for row in found] == dumped + [400] * (dumped[-1] < 400)
    assert [row["time/episodes"] for row in found[: len(dumped)]] == list(range(4, len(episodes) + 1, 4))


def test_tensorboard_reads_what_the_metrics_hold(trial):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = trial(**PPO)
    run.attempt()
    read = EventAccumulator(str(run.layout.tensorboard / "attempt-1"))
    read.Reload()
    found = rows(run.layout, "train")
    assert [one.step for one in read.Scalars("train/loss")] == [row["step"] for row in found]
    assert [one.value for one in read.Scalars("train/loss")] == pytest.approx(
        [row["train/loss"] for row in found]
    )


def test_a_fork_goes_on_with_changed_hyperparameters(trial):
    parent = trial(**PPO)
    parent.suspended(250)
    start = checkpoints(parent.layout)[-1]

    def forked(**changes):
        fork = trial(**{**PPO, **changes})
        copy_checkpoint(start, fork.layout)
        record = fork.attempt()
        assert "resumed" in kinds(fork)
        return record

    assert forked()["weights_sha256"] == trial(**PPO).attempt()["weights_sha256"]
    assert forked(learning_rate=1e-2)["weights_sha256"] != forked()["weights_sha256"]
    assert forked(total_timesteps=1024)["step"] == 1024
    with pytest.raises(
        CheckpointError, match="networks do not fit this experiment .* keep policy, policy_kwargs"
    ):
        forked(policy_kwargs={"net_arch": [8]})


def test_snapshots_stall_training_for_25_ms_at_most(trial, monkeypatch):
    """The figure `checkpoint_stall`; the median, because two cores are shared."""
    stalls = []
    real = session_module.Session._start_checkpoint

    def timed(self, now):
        started = time.perf_counter()
        real(self, now)
        stalls.append(time.perf_counter() - started)

    monkeypatch.setattr(session_module.Session, "_start_checkpoint", timed)
    trial(**{**PPO, "n_envs": 8, "total_timesteps": 4096}).attempt()
    assert sorted(stalls)[len(stalls) // 2] <= 0.025


def test_weights_are_hashed_by_content():
    state = {"b": torch.ones(2), "a": torch.zeros(3, dtype=torch.float64)}
    assert weights_sha256(state) == weights_sha256(dict(reversed(state.items())))
    assert weights_sha256(state) != weights_sha256({**state, "b": torch.ones(2, dtype=torch.float64)})
    assert weights_sha256(state) != weights_sha256({**state, "b": torch.ones(1, 2)})


def test_crc32_of_nested_observations():
    one = {"x": torch.ones(2).numpy(), "y": (torch.zeros(1).numpy(), torch.ones(1).numpy())}
    assert crc32(one) == crc32(dict(reversed(one.items())))
    assert crc32(one) != crc32({**one, "x": torch.zeros(2).numpy()})
