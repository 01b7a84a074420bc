"""`rlnb new NAME`: a notebook that trains as it stands, to be changed from there."""

from __future__ import annotations

import json
import re
import uuid
from importlib.resources import files
from pathlib import Path

from rlnb.errors import UsageError

PLACEHOLDER = "RLNB_NAME"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")


def write_notebook(name: str) -> Path:
    """Writes the template under a new name.

    Args:
        name: path of the notebook, with or without .ipynb; its last part names the experiment.

    Returns:
        The file that was written.

    Raises:
        UsageError: the name cannot name an experiment, the folder is missing, or the file exists.
    """
    path = Path(name if name.endswith(".ipynb") else f"{name}.ipynb").absolute()
    if not _NAME.fullmatch(path.stem):
        raise UsageError(
            f"{path.stem!r} cannot name an experiment; use up to 60 letters, digits, '-', '_' and '.', "
            "and begin with a letter or digit."
        )
    if not path.parent.is_dir():
        raise UsageError(f"The folder {path.parent} does not exist; make it first.")
    template = json.loads(files("rlnb").joinpath("templates/notebook.ipynb").read_text("utf-8"))
    for cell in template["cells"]:
        cell["source"] = [line.replace(PLACEHOLDER, path.stem) for line in cell["source"]]
        cell["id"] = uuid.uuid4().hex[:8]
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(json.dumps(template, indent=1, ensure_ascii=False) + "\n")
    except FileExistsError:
        raise UsageError(f"{path} exists; choose another name or remove the file.") from None
    return path
