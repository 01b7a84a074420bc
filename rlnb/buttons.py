"""What the live view's buttons do to a run, wherever it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlnb.run.control import Verb
from rlnb.run.status import State
from rlnb.view.actions import Answer

if TYPE_CHECKING:
    from rlnb.job import Job


class JobActions:
    """`rlnb.view.actions.Actions` through a handle, so that runs of other machines have buttons too.

    Args:
        job: the run.
    """

    def __init__(self, job: Job) -> None:
        self.job = job

    def perform(self, verb: Verb, state: State) -> Answer:
        """Does what a button asks and returns the answer.

        Raises:
            RlnbError: it cannot be done; the view shows the sentence.
        """
        acts = {
            Verb.PAUSE: self.job.pause,
            Verb.SUSPEND: self.job.suspend,
            Verb.RESUME: self.job.resume,
            Verb.STOP: self.job.stop,
        }
        return Answer(True, acts[verb]())
