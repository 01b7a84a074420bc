"""What training says: metric rows, TensorBoard files, train.log and progress. None of it draws a random number."""

from __future__ import annotations

import json
import math
import os
import socket
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from rlnb.run.appending import append_lines
from rlnb.run.host import utc_now
from rlnb.run.layout import RunLayout
from rlnb.run.metrics import JsonlMetricLog
from rlnb.run.progress import Phase, Progress, write_progress
from rlnb.run.writing import try_to_write
from rlnb.train.seam import EpisodeEnd

PAGE = os.sysconf("SC_PAGE_SIZE")


class Recorder:
    """Writes one attempt's metrics.

    Args:
        layout: the run folder.
        attempt: the writing attempt.
        total: environment steps asked for.
        window: episodes that mean values are taken over (SB3's stats_window_size).

    Attributes:
        episodes: finished, over all attempts.
        row_step: step of the last training row.
    """

    def __init__(self, layout: RunLayout, attempt: int, *, total: int, window: int) -> None:
        self.layout, self.attempt, self.total = layout, attempt, total
        self.log = JsonlMetricLog(layout, attempt)
        self.episodes = 0
        self.row_step = 0
        self._recent: deque[tuple[float, float, int, float | None]] = deque(maxlen=window)
        self._speed = (time.monotonic(), 0)
        self._tensorboard: Any = None

    def rewind(self, step: int) -> None:
        """Marks that everything written before with a later step did not happen."""
        self.log.append({"kind": "rewind", "step": step, "attempt": self.attempt})
        self._speed = (time.monotonic(), step)

    def episode(self, end: EpisodeEnd) -> None:
        """Writes the row of a finished episode."""
        self.episodes += 1
        self._recent.append((end.paid, end.own, end.length, end.success))
        row: dict[str, Any] = {
            "step": end.step, "kind": "episode", "episode/return": end.paid, "episode/return_env": end.own,
            "episode/length": end.length, "episode/env": end.env,
        }  # fmt: skip
        if end.success is not None:
            row["episode/success"] = end.success
        for name, total in end.terms.items():
            row[f"reward/{name}"] = total
        for name, total in end.values.items():
            row[f"reward_unweighted/{name}"] = total
        self.log.append(row)

    def train(self, step: int, values: Mapping[str, Any]) -> None:
        """Writes a row of SB3's values, speed and memory, to the metrics and to TensorBoard."""
        self.row_step = step
        # SB3 counts the seconds of the running attempt only, and "time" stands in every row.
        plain = {name: _number(value) for name, value in values.items() if name != "time/time_elapsed"}
        row = {
            "step": step, "kind": "train", **{name: value for name, value in plain.items() if value is not None},
            "speed/steps_per_second": self.steps_per_second(step), "memory/rss_mb": resident_mb(),
        }  # fmt: skip
        self.log.append(row)
        self._to_tensorboard(step, row)

    def checkpoint(self, step: int) -> None:
        """Writes the row that marks a checkpoint."""
        self.log.append({"step": step, "kind": "checkpoint", "attempt": self.attempt})

    def progress(self, phase: Phase, step: int, *, checkpoint: int | None) -> None:
        """Tells the supervisor where training is."""
        write_progress(
            self.layout,
            Progress(phase, self.attempt, step, self.total, return_mean=self.mean("own"),
                     steps_per_second=self._last_speed, checkpoint=checkpoint),
        )  # fmt: skip

    def say(self, message: str, *, level: str = "info", **data: Any) -> None:
        """Writes one structured line to train.log."""
        line = {"time": utc_now(), "level": level, "attempt": self.attempt, "message": message, **data}
        try_to_write(lambda: append_lines(self.layout.train_log, json.dumps(line, default=str) + "\n"))

    def mean(self, what: str) -> float | None:
        """Mean over the last episodes of "paid", "own", "length" or "success"; None before the first."""
        index = ("paid", "own", "length", "success").index(what)
        values = [float(one[index]) for one in self._recent if one[index] is not None]  # type: ignore[arg-type]
        return math.fsum(values) / len(values) if values else None

    def stop_metrics(self, end: EpisodeEnd) -> dict[str, float]:
        """Returns what a stop rule may compare; call it after `episode`."""
        found = {
            "return": end.paid, "return_env": end.own, "length": float(end.length),
            "return_mean": self.mean("paid"), "return_env_mean": self.mean("own"),
            "length_mean": self.mean("length"), "success_rate": self.mean("success"),
        }  # fmt: skip
        return {name: value for name, value in found.items() if value is not None}

    _last_speed: float | None = None

    def steps_per_second(self, step: int) -> float | None:
        """Steps per second since the last call."""
        now = time.monotonic()
        then, before = self._speed
        if now > then and step > before:
            self._last_speed = round((step - before) / (now - then), 3)
            self._speed = (now, step)
        return self._last_speed

    def state_dict(self) -> dict[str, Any]:
        """The counts, for a checkpoint."""
        return {
            "episodes": self.episodes,
            "row_step": self.row_step,
            "recent": [list(one) for one in self._recent],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues the counts."""
        self.episodes = int(state["episodes"])
        self.row_step = int(state.get("row_step", 0))
        self._recent.clear()
        self._recent.extend((one[0], one[1], one[2], one[3]) for one in state["recent"])

    def close(self) -> None:
        """Closes the files."""
        try_to_write(self.log.flush)
        self.log.close()
        self._close_tensorboard()

    def _close_tensorboard(self) -> None:
        writer, self._tensorboard = self._tensorboard, None
        if writer is not None:
            try_to_write(writer.close)

    def _to_tensorboard(self, step: int, row: Mapping[str, Any]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        scalars = [
            Summary.Value(tag=name, simple_value=float(value))
            for name, value in row.items()
            if "/" in name and isinstance(value, (int, float))
        ]
        mean = self.mean("paid")
        if mean is not None:
            scalars.append(Summary.Value(tag="rollout/return_mean", simple_value=mean))
        event = Event(wall_time=time.time(), step=step, summary=Summary(value=scalars))
        # All of it stands in the metrics, too; on a full disk the rest goes into a further file.
        if not try_to_write(lambda: self._event_file().write(event.SerializeToString())):
            self._close_tensorboard()

    def _event_file(self) -> Any:
        # Not TensorBoard's EventFileWriter: its thread costs PPO on CartPole 1.5 % of its speed.
        if self._tensorboard is None:
            from tensorboard.compat.proto.event_pb2 import Event
            from tensorboard.summary.writer.record_writer import RecordWriter

            folder = self.layout.tensorboard / f"attempt-{self.attempt}"
            folder.mkdir(parents=True, exist_ok=True)
            name = f"events.out.tfevents.{time.time_ns() // 1000}.{socket.gethostname()}.{os.getpid()}"
            writer = RecordWriter(open(folder / name, "xb"))  # noqa: SIM115
            writer.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
            self._tensorboard = writer
        return self._tensorboard


def resident_mb() -> float:
    """Memory of this process in MB."""
    with open("/proc/self/statm", "rb") as file:
        return round(int(file.read().split()[1]) * PAGE / 1e6, 1)


def _number(value: Any) -> float | int | None:
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "ndim", 1) == 0:
        value = item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value
