"""What the agent sees, before and after the state design, as tables or pictures of a document."""

from __future__ import annotations

from dataclasses import replace

from rlnb.design.profile import ImageProfile
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.state.component_table import component_table_html
from rlnb.view.lab.state.image_strip import images_html
from rlnb.view.lab.state.state_look import StateLook, StateLooks
from rlnb.view.lab.still.static_html import paragraph

#: rows of a table and pictures of a strip; a saved notebook stays small
ROWS, PICTURES = 32, 3
#: bytes of HTML that a table or a strip may take of the notebook
MOST_BYTES = 60_000


def observations_html(bench: Workbench) -> str:
    """Returns what is observed before and, if a design changes it, after the state's operations.

    Raises:
        DesignError: the observation has no components that could be named; the sentence says why.
    """
    with bench.lock:
        looks = StateLooks(bench)
        before, after = looks.before(), looks.after()
    if after is before:
        return _profile(before, "What the agent sees")
    new = set(after.names) - set(before.names)
    sides = [
        _profile(before, "Before: what the environment gives"),
        _profile(after, "After: what the agent sees", new=new),
    ]
    columns = "".join(f'<div style="flex:1 1 430px;min-width:0">{side}</div>' for side in sides)
    return f'<div style="display:flex;flex-wrap:wrap;gap:6px 28px;margin-top:6px">{columns}</div>'


def _profile(look: StateLook, title: str, *, new: set[str] | None = None) -> str:
    found = look.profile
    if isinstance(found, ImageProfile):
        few = replace(found, examples=found.examples[:PICTURES], rows=found.rows[:PICTURES])
        made = images_html(few, look.space, title=title, frames=look.frames, note=look.phrase)
    else:
        more = f"; the first {ROWS} of {len(found):,} are shown" if len(found) > ROWS else ""
        made = component_table_html(found[:ROWS], title=title, note=look.phrase + more, new=new or ())
    if len(made) > MOST_BYTES:
        return paragraph(f"<b>{title}</b>: {len(made):,} bytes, too much for a document; see the tab State.")
    return made
