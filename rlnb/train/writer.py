"""Writing checkpoints beside training: the copy is made at the safe point, the bytes go out in a thread.

One at a time and in order: the next snapshot is taken only when the one before it is on the disk, so that
replay chunks and manifests follow each other as in a single thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from rlnb.run.checkpoints import Checkpoint, checkpoints, write_checkpoint
from rlnb.run.chunks import write_chunk
from rlnb.run.layout import RunLayout
from rlnb.run.plans import CheckpointPlan
from rlnb.run.retention import retain
from rlnb.run.writing import is_full
from rlnb.train.hashing import weights_sha256
from rlnb.train.replay import ReplayLog
from rlnb.train.snapshot import Snapshot, to_payload


class CheckpointWriter:
    """Writes snapshots of one attempt.

    Args:
        layout: the run folder.
        attempt: the writing attempt.
        plan: what is kept.
        replay: what has been written of the replay buffer, or None.
        written: called, in the writing thread, with each checkpoint that is on the disk.
    """

    def __init__(
        self,
        layout: RunLayout,
        attempt: int,
        plan: CheckpointPlan,
        *,
        replay: ReplayLog | None,
        written: Callable[[Checkpoint], None],
    ) -> None:
        self.layout, self.attempt, self.plan = layout, attempt, plan
        self.newest: Checkpoint | None = None
        self._replay, self._written = replay, written
        self._number = len(checkpoints(layout))
        self._thread: threading.Thread | None = None
        self._work: tuple[Snapshot, Mapping[str, Any]] | None = None
        self._error: BaseException | None = None

    @property
    def busy(self) -> bool:
        """Whether a checkpoint is being written."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def disk_full(self) -> bool:
        """Whether the last write found no space; its snapshot waits to be written again."""
        return is_full(self._error)

    def start(self, snapshot: Snapshot, meta: Mapping[str, Any]) -> None:
        """Begins to write a snapshot; call it only when not busy."""
        self.wait()
        self._work = (snapshot, meta)
        self._launch()

    def retry(self) -> bool:
        """Writes again what found no space; returns whether the disk is still full."""
        self._error = None
        self._launch()
        self.wait()
        return self.disk_full

    def wait(self) -> None:
        """Waits until everything is on the disk.

        Raises:
            Exception: whatever writing raised, except a full disk, which `disk_full` tells.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None and not self.disk_full:
            error, self._error = self._error, None
            raise error

    def _launch(self) -> None:
        self._thread = threading.Thread(target=self._run, name="rlnb-checkpoint", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        assert self._work is not None
        try:
            self._write(*self._work)
            self._work = None
        except BaseException as error:  # handed to training, which decides
            self._error = error

    def _write(self, snapshot: Snapshot, meta: Mapping[str, Any]) -> None:
        header = None
        if self._replay is not None and snapshot.replay is not None:
            header = self._replay.commit(
                snapshot.replay, lambda data: write_chunk(self.layout, data, extension="npz")
            )
        shared = () if header is None else tuple(dict.fromkeys(name for name, _ in header["chunks"]))
        self._number += 1
        checkpoint = write_checkpoint(
            self.layout, snapshot.step, self.attempt, to_payload(snapshot, replay=header), shared=shared,
            meta={"weights_sha256": weights_sha256(snapshot.tensors["policy"]), "number": self._number, **meta},
        )  # fmt: skip
        self.newest = checkpoint
        retain(self.layout, self.plan, sure=checkpoint)
        self._written(checkpoint)
