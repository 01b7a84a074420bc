"""rlnb: one notebook is the prototype, the training job and the report.

Everything public is named here and loaded when first used, so that `import rlnb` is quick and
never imports torch.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

#: public name → (module, attribute)
_PUBLIC = {
    "CheckReport": ("rlnb.check_report", "CheckReport"),
    "Clip": ("rlnb.design.state", "Clip"),
    "Delta": ("rlnb.design.state", "Delta"),
    "Derive": ("rlnb.design.state", "Derive"),
    "Design": ("rlnb.design.design", "Design"),
    "Experiment": ("rlnb.experiment", "Experiment"),
    "Grayscale": ("rlnb.design.state", "Grayscale"),
    "Group": ("rlnb.group", "Group"),
    "Job": ("rlnb.job", "Job"),
    "Lab": ("rlnb.lab", "Lab"),
    "Resize": ("rlnb.design.state", "Resize"),
    "RewardSpec": ("rlnb.design.reward", "RewardSpec"),
    "RlnbError": ("rlnb.errors", "RlnbError"),
    "RunningZScore": ("rlnb.design.state", "RunningZScore"),
    "Scale": ("rlnb.design.state", "Scale"),
    "Select": ("rlnb.design.state", "Select"),
    "Shaping": ("rlnb.design.reward", "Shaping"),
    "Stack": ("rlnb.design.state", "Stack"),
    "StateSpec": ("rlnb.design.state", "StateSpec"),
    "Term": ("rlnb.design.reward", "Term"),
    "TermGroup": ("rlnb.design.reward", "TermGroup"),
    "ToUnit": ("rlnb.design.state", "ToUnit"),
    "Transitions": ("rlnb.design.transitions", "Transitions"),
    "ZScore": ("rlnb.design.state", "ZScore"),
    "attempt": ("rlnb.here", "attempt"),
    "job": ("rlnb.listing", "job"),
    "jobs": ("rlnb.listing", "jobs"),
    "promote": ("rlnb.promote", "promote"),
    "read_transitions": ("rlnb.run.trajectories", "read_transitions"),
    "record": ("rlnb.envs.record", "record"),
    "reward_term": ("rlnb.design.reward", "reward_term"),
    "run_folder": ("rlnb.here", "run_folder"),
    "verify": ("rlnb.verify", "verify"),
    "write_transitions": ("rlnb.run.trajectories", "write_transitions"),
}

__all__ = ["__version__", *sorted(_PUBLIC)]

if TYPE_CHECKING:
    from rlnb.check_report import CheckReport as CheckReport
    from rlnb.design.design import Design as Design
    from rlnb.design.reward import RewardSpec as RewardSpec
    from rlnb.design.reward import Shaping as Shaping
    from rlnb.design.reward import Term as Term
    from rlnb.design.reward import TermGroup as TermGroup
    from rlnb.design.reward import reward_term as reward_term
    from rlnb.design.state import Clip as Clip
    from rlnb.design.state import Delta as Delta
    from rlnb.design.state import Derive as Derive
    from rlnb.design.state import Grayscale as Grayscale
    from rlnb.design.state import Resize as Resize
    from rlnb.design.state import RunningZScore as RunningZScore
    from rlnb.design.state import Scale as Scale
    from rlnb.design.state import Select as Select
    from rlnb.design.state import Stack as Stack
    from rlnb.design.state import StateSpec as StateSpec
    from rlnb.design.state import ToUnit as ToUnit
    from rlnb.design.state import ZScore as ZScore
    from rlnb.design.transitions import Transitions as Transitions
    from rlnb.envs.record import record as record
    from rlnb.errors import RlnbError as RlnbError
    from rlnb.experiment import Experiment as Experiment
    from rlnb.group import Group as Group
    from rlnb.here import attempt as attempt
    from rlnb.here import run_folder as run_folder
    from rlnb.job import Job as Job
    from rlnb.lab import Lab as Lab
    from rlnb.listing import job as job
    from rlnb.listing import jobs as jobs
    from rlnb.promote import promote as promote
    from rlnb.run.trajectories import read_transitions as read_transitions
    from rlnb.run.trajectories import write_transitions as write_transitions
    from rlnb.verify import verify as verify


class _Package(type(sys)):  # type: ignore[misc]
    """The package itself, with its public names loaded on first use.

    Several public functions are called like the module that holds them (`rlnb.job`,
    `rlnb.promote`). Importing such a module would put the module in the function's place, so
    that assignment is turned into the function.
    """

    def __getattr__(self, name: str) -> Any:
        if name not in _PUBLIC:
            raise AttributeError(f"module 'rlnb' has no attribute {name!r}")
        module, attribute = _PUBLIC[name]
        value = getattr(importlib.import_module(module), attribute)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _PUBLIC and isinstance(value, type(sys)) and value.__name__ == f"rlnb.{name}":
            return  # the submodule stays reachable through sys.modules; the name means the function
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *__all__})


sys.modules[__name__].__class__ = _Package

if "IPython" in sys.modules:
    from rlnb.jobs.capture.recorder import install as _install

    _install()
