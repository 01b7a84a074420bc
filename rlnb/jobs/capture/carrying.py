"""Values as Python source: how a parameter gets into a notebook exactly as it was given.

No JSON in between turns a tuple into a list or a NaN into a syntax error. What cannot be carried
exactly is refused by name.
"""

from __future__ import annotations

import datetime
import math
import re
import zoneinfo
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Any

from rlnb.errors import ParameterError

_DATETIMES = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, datetime.timezone)


def to_source(value: Any, name: str) -> str:
    """Return Python source that evaluates to exactly this value.

    Args:
        value: int, float (NaN and infinities too), complex, str, bytes, bool, None; list, tuple, dict, set
            and frozenset of such; range, numpy scalars, Path, datetime values, Decimal, Fraction.
        name: of the parameter, for the message.

    Raises:
        ParameterError: the value is of another type, which is named.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes, range):
        return repr(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if kind is complex:
        return f"complex({to_source(value.real, name)}, {to_source(value.imag, name)})"
    if kind is list:
        return "[" + ", ".join(to_source(item, name) for item in value) + "]"
    if kind is tuple:
        return "(" + "".join(to_source(item, name) + ", " for item in value) + ")"
    if kind is dict:
        pairs = (f"{to_source(key, name)}: {to_source(item, name)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if kind in (set, frozenset):
        # Sorted, because a set's own order varies with the process's hash seed.
        return f"{kind.__name__}([" + ", ".join(sorted(to_source(item, name) for item in value)) + "])"
    if isinstance(value, PurePath):
        return f"__import__('pathlib').{'Path' if isinstance(value, Path) else kind.__name__}({str(value)!r})"
    zone = getattr(value, "tzinfo", None)
    if kind in _DATETIMES and type(zone) in (type(None), datetime.timezone, zoneinfo.ZoneInfo):
        source = re.sub(r"\bdatetime\.", "__import__('datetime').", repr(value))
        return re.sub(r"\bzoneinfo\.", "__import__('zoneinfo').", source)
    if kind in (Decimal, Fraction):
        return f"__import__({kind.__module__!r}).{kind.__name__}({str(value)!r})"
    return _numpy_source(value, name)


def _numpy_source(value: Any, name: str) -> str:
    kind = type(value)
    if kind.__module__ == "numpy" and hasattr(value, "dtype") and getattr(value, "ndim", None) == 0:
        if kind.__name__ in ("datetime64", "timedelta64"):
            unit = str(value.dtype).partition("[")[2].rstrip("]")
            count = None if str(value) == "NaT" else int(value.astype("int64"))
            return f"__import__('numpy').{kind.__name__}({'NaT' if count is None else count!r}, {unit!r})"
        if value.dtype.kind in "biufc" and value.dtype.name != "longdouble" and value.itemsize <= 16:
            # float32 → float64 → float32 is exact, and so is every integer.
            return f"__import__('numpy').{value.dtype.name.replace('bool', 'bool_')}({to_source(value.item(), name)})"
        if value.dtype.kind in "US":
            return f"__import__('numpy').{kind.__name__}({value.item()!r})"
    hint = "; pass .tolist() of it" if hasattr(value, "tolist") else "; build it in a cell from plain values"
    raise ParameterError(
        f"The parameter {name!r} holds a {kind.__module__}.{kind.__qualname__}, which cannot be carried exactly{hint}."
    )


def to_record(value: Any, name: str) -> Any:
    """Return the value as run.yaml holds it: itself where YAML keeps it, else {"python": source}."""
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    if type(value) is list:
        return [to_record(item, name) for item in value]
    return {"python": to_source(value, name)}


def recorded_source(recorded: Any, name: str) -> str:
    """Return the source of a value as `to_record` wrote it; a dictionary there is always {"python": source}."""
    if isinstance(recorded, dict):
        return str(recorded["python"])
    if isinstance(recorded, list):
        return "[" + ", ".join(recorded_source(item, name) for item in recorded) + "]"
    return to_source(recorded, name)
