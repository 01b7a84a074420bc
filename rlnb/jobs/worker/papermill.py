"""papermill, imported in a third of the usual time.

jsonschema imports `rfc3987_syntax` when it is installed, to check a string format that notebooks
do not use; that alone takes twice as long as all the rest of papermill. Nobody else is kept from
importing it afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_OPTIONAL = "rfc3987_syntax"
_absent = _OPTIONAL not in sys.modules
if _absent:
    sys.modules[_OPTIONAL] = None  # type: ignore[assignment]
try:
    import nbformat
    from nbclient.exceptions import CellExecutionError, DeadKernelError
    from papermill import execute_notebook
    from papermill.clientwrap import PapermillNotebookClient
    from papermill.engines import Engine, NotebookExecutionManager, papermill_engines
    from papermill.exceptions import PapermillExecutionError
finally:
    if _absent:
        del sys.modules[_OPTIONAL]

new_output: Callable[..., Any] = nbformat.v4.new_output

__all__ = [
    "CellExecutionError",
    "DeadKernelError",
    "Engine",
    "NotebookExecutionManager",
    "PapermillExecutionError",
    "PapermillNotebookClient",
    "execute_notebook",
    "nbformat",
    "new_output",
    "papermill_engines",
]
