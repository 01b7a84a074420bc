"""The environment a job runs in: what is on the allow-list, what the user named, and fixed values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rlnb.jobs.processes import MARK
from rlnb.run.identity import VARIABLE, JobIdentity
from rlnb.run.record import RunRecord
from rlnb.run.secrets import find_userinfo, is_secret_name
from rlnb.settings import OVERRIDE

#: Variables that a program needs to find its files, libraries and devices. What a Jupyter server
#: hands down besides (FORCE_COLOR, MPLBACKEND, JPY_*, PAGER, …) would change what a job prints.
ALLOWED = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV", "CONDA_PREFIX",
     "CONDA_DEFAULT_ENV", "PYTHONPATH", "PYTHONNOUSERSITE", "LD_LIBRARY_PATH", "LD_PRELOAD", "DISPLAY", "XAUTHORITY",
     "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy",
     "https_proxy", "no_proxy", "COVERAGE_PROCESS_START"}
)  # fmt: skip
ALLOWED_PREFIXES = (
    "LC_", "XDG_", "RLNB_", "CUDA_", "NVIDIA_", "NCCL_", "ROCM_", "HIP_", "HSA_", "ASCEND_", "TORCH", "PYTORCH_",
    "OMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "KMP_", "GOMP_", "MUJOCO_", "PYOPENGL_", "EGL_", "MESA_", "LIBGL_",
    "SDL_", "SLURM_",
)  # fmt: skip
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def is_allowed(name: str, value: str) -> bool:
    """Says whether a variable reaches jobs without being named."""
    if name in (MARK, VARIABLE) or is_secret_name(name) or find_userinfo(value):
        return False
    return name in ALLOWED or name.startswith(ALLOWED_PREFIXES)


def environment_outside_jobs() -> dict[str, str]:
    """Returns this process's environment without what binds a job's processes to its run.

    A run may be started from a notebook that a job executes; it must not take on that job's identity.
    """
    return {name: value for name, value in os.environ.items() if name not in (MARK, VARIABLE)}


def job_environment(
    record: RunRecord, environ: Mapping[str, str], *, root: Path, attempt: int
) -> dict[str, str]:
    """Returns the environment of a run's worker and kernel.

    Args:
        record: what was asked; its `pass_env` names further variables.
        environ: the environment the supervisor was started with.
        root: the run folder.
        attempt: the attempt.
    """
    chosen = {
        name: value for name, value in environ.items() if name in record.pass_env or is_allowed(name, value)
    }
    # What overrides an experiment is what it was when the run was promoted.
    chosen = {
        name: value for name, value in chosen.items() if not OVERRIDE.fullmatch(name)
    } | record.overrides
    # Set iteration order must not change between attempts; a fixed seed makes it the same.
    chosen["PYTHONHASHSEED"] = "0"
    threads = (record.experiment or {}).get("torch_threads")
    if isinstance(threads, int) and threads > 0:
        chosen.update(dict.fromkeys(THREADS, str(threads)))
    identity = JobIdentity(root, attempt, record.task, record.target.cell, record.target.call)
    return {**chosen, MARK: str(root), VARIABLE: identity.to_json()}
