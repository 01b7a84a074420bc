"""A table of components: what each was seen to do against what its space declares. HTML, without a widget."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from rlnb.design.checks.wording import percent
from rlnb.design.profile import ComponentProfile
from rlnb.view.lab.state.number_text import short_number
from rlnb.view.lab.state.svg_marks import histogram, range_bar

#: rows that are shown at once; the others open on a click
LIMIT = 40

_COLUMNS = (
    ("component", 112, "name and dtype"),
    ("seen, of declared", 124, "smallest and largest value seen, within the declared bounds"),
    ("mean", 56, "mean of the finite values"),
    ("spread", 56, "standard deviation"),
    ("at bound", 54, "share of steps at a finite declared bound"),
    ("distribution", 104, "how often each value occurs, from the smallest to the largest seen"),
)


def component_table_html(
    profiles: Sequence[ComponentProfile],
    *,
    title: str,
    note: str = "",
    new: Collection[str] = (),
    limit: int = LIMIT,
) -> str:
    """Returns components as a table.

    Args:
        profiles: of the components, in their order.
        title: heading, e.g. "Before: what the environment gives".
        note: how the values were found, e.g. "20,000 sampled steps".
        new: names that are marked as new.
        limit: the most rows at once; the rest is folded behind "and 31 more".

    Returns:
        HTML in which everything is escaped; `lab_tables.css` styles it.
    """
    rows = [_row(profile, profile.name in new) for profile in profiles]
    head = "".join(f'<th scope="col" title="{escape(about)}">{name}</th>' for name, _, about in _COLUMNS)
    shown = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows[:limit])}</tbody>"
    more = ""
    if len(rows) > limit:
        rest = _table(f"<tbody>{''.join(rows[limit:])}</tbody>")
        more = f"<details><summary>and {len(rows) - limit:,} more</summary>{rest}</details>"
    count = f"{len(rows):,} component" + ("" if len(rows) == 1 else "s")
    words = count + (f", {note}" if note else "")
    return (
        f'<div class="rlnb-profile"><div class="rlnb-profile-title"><b>{escape(title)}</b> '
        f'<span class="rlnb-muted">{escape(words)}</span></div>'
        f'<div class="rlnb-profile-scroll">{_table(shown)}{more}</div></div>'
    )


def _table(inside: str) -> str:
    # Widths of their own, so that a folded table's columns stand below those of the first.
    total = sum(width for _, width, _ in _COLUMNS)
    columns = "".join(f'<col style="width:{100 * width / total:.1f}%">' for _, width, _ in _COLUMNS)
    return f'<table class="rlnb-profile-table"><colgroup>{columns}</colgroup>{inside}</table>'


def _row(profile: ComponentProfile, new: bool) -> str:
    marks = []
    if new:
        marks.append('<span class="rlnb-tag rlnb-tag-new">new</span>')
    if profile.constant:
        marks.append('<span class="rlnb-tag rlnb-tag-warn">constant</span>')
    for count, word in ((profile.missing, "NaN"), (profile.infinite, "infinite")):
        if count:
            marks.append(f'<span class="rlnb-tag rlnb-tag-bad">{count:,} {word}</span>')
    if _outside(profile):
        marks.append('<span class="rlnb-tag rlnb-tag-bad">out of bounds</span>')
    seen = f"{short_number(profile.seen_low)} to {short_number(profile.seen_high)}"
    if profile.constant:
        seen = short_number(profile.seen_low)
    declared = f"of [{short_number(profile.low)}, {short_number(profile.high)}]"
    bounded = profile.low > float("-inf") or profile.high < float("inf")
    name = escape(profile.name)
    return (
        f'<tr><th scope="row" title="{name}"><span class="rlnb-component">{name}</span> '
        f'<span class="rlnb-muted">{escape(profile.dtype)} {"".join(marks)}</span></th>'
        f'<td class="rlnb-range">{range_bar(profile, f"{seen} {declared}")}'
        f'<span>{seen}</span> <span class="rlnb-muted">{declared}</span></td>'
        f"<td>{short_number(profile.mean)}</td><td>{short_number(profile.spread)}</td>"
        f"<td>{percent(profile.saturated) if bounded else '–'}</td><td>{histogram(profile)}</td></tr>"
    )


def _outside(profile: ComponentProfile) -> bool:
    return profile.seen_low < profile.low or profile.seen_high > profile.high
