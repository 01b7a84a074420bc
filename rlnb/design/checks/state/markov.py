"""The finding that says whether the state lacks something that the frame before tells."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlnb.design.checks.finding import Finding, Severity
from rlnb.design.checks.state.sample import StateSample
from rlnb.design.checks.state.sufficiency import REWARD, sufficiency
from rlnb.design.checks.wording import counted

_WHY = "A policy without memory can only act on what the observation shows; what is missing it cannot learn to use."


def check_markov(sample: StateSample, action_space: Any = None) -> Finding:
    """Says whether the previous frame adds to what the present one tells ("state.markov")."""
    found = sufficiency(sample, action_space)
    if isinstance(found, str):
        return Finding(
            "state.markov", Severity.HINT, f"Whether the state is sufficient cannot be told: {found}.", _WHY,
            "Record more episodes." if "episode" in found else "",
        )  # fmt: skip
    insufficient = bool(found.insufficient.any())
    lacking = found.insufficient if insufficient else found.delayed
    order = np.argsort(-np.where(lacking, found.gains, found.gains - 2), kind="stable")
    most = int(order[0])
    gain, name = float(found.gains[most]), found.targets[most]
    what = "the reward" if name == REWARD else f"the next change of {name}"
    numbers = (
        f"R2 {max(found.one_frame[most], 0):.2f} from one frame, {max(found.two_frames[most], 0):.2f} from two, "
        f"held out, {counted(found.steps, 'step')} of {counted(found.episodes, 'episode')}"
    )
    if not lacking.any():
        sentence = f"The frame before adds little to what the state tells, most about {what} ({numbers})."
        return Finding("state.markov", Severity.FINE, sentence, _WHY, value=gain)
    if insufficient:
        severity, told = Severity.WARNING, "The state does not seem to be sufficient: the frame before tells"
        advice = "Add what is missing (a velocity, a rate), a Delta of these components, or Stack frames."
    else:
        severity, told = Severity.HINT, "Only the action before is missing in the state: it tells"
        advice = "Add the previous action to the observation if learning stalls."
    return Finding(
        "state.markov", severity, f"{told} what is needed to predict {what} ({numbers}).", _WHY, advice, gain,
        tuple(found.targets[place] for place in order if lacking[place]),
    )  # fmt: skip
