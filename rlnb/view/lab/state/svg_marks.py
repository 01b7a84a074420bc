"""Small pictures inside a table's cells, as SVG text: a range within its bounds, and a histogram.

They carry colours of their own for readers without the Lab's stylesheet, which overrides them.
"""

from __future__ import annotations

import math
from html import escape

from rlnb.design.profile import ComponentProfile

_WIDTH, _BAR_HEIGHT, _HISTOGRAM_HEIGHT = 96, 8, 22
_SEEN, _OUTSIDE, _TRACK = "#1d63d8", "#c8291f", "#9e9e9e"


def range_bar(profile: ComponentProfile, words: str) -> str:
    """Returns the range that was seen within the declared one; what lies outside is marked.

    An end that is declared infinite is open: its line is dashed and fades into nothing.

    Args:
        words: the same for readers who do not see it.
    """
    if math.isnan(profile.seen_low):
        return ""
    span = profile.seen_high - profile.seen_low or abs(profile.seen_low) or 1.0
    if not math.isfinite(span):
        span = abs(profile.seen_high) / 2
    low = profile.low if math.isfinite(profile.low) else min(profile.seen_low, profile.high) - span
    high = profile.high if math.isfinite(profile.high) else max(profile.seen_high, profile.low) + span
    left, right = min(low, profile.seen_low), max(high, profile.seen_high)

    def place(value: float) -> float:
        # halves, because the span of float32's own bounds squared would not be finite
        share = (value / 2 - left / 2) / (right / 2 - left / 2) if right > left else 0.5
        return 1 + (_WIDTH - 2) * min(1.0, max(0.0, share))

    parts = []
    open_ends = math.isinf(profile.low) or math.isinf(profile.high)
    dash = ' stroke-dasharray="2 3"' if open_ends else ""
    middle = _BAR_HEIGHT / 2
    parts.append(_line(place(low), place(high), middle, dash))
    for end in (profile.low, profile.high):
        if math.isfinite(end):
            x = place(end)
            parts.append(
                f'<path class="rlnb-svg-track" d="M{x:.1f} 0V{_BAR_HEIGHT}" stroke="{_TRACK}" stroke-width="1"/>'
            )
    inside = max(profile.seen_low, low), min(profile.seen_high, high)
    if inside[0] <= inside[1]:
        parts.append(_block("rlnb-svg-seen", place(inside[0]), place(inside[1]), _SEEN))
    if profile.seen_low < low:
        parts.append(_block("rlnb-svg-outside", place(profile.seen_low), place(low), _OUTSIDE))
    if profile.seen_high > high:
        parts.append(_block("rlnb-svg-outside", place(high), place(profile.seen_high), _OUTSIDE))
    return _svg(_BAR_HEIGHT, words, parts)


def histogram(profile: ComponentProfile) -> str:
    """Returns how often each value occurs, as bars from the smallest to the largest value that was seen."""
    most = int(profile.counts.max()) if len(profile.counts) else 0
    if not most:
        return ""
    step = (_WIDTH - 2) / len(profile.counts)
    gap = 1.0 if step > 3 else 0.0
    bars = []
    for place, count in enumerate(profile.counts.tolist()):
        if count:
            # a single step among thousands still shows
            height = max(1.0, (_HISTOGRAM_HEIGHT - 1) * count / most)
            x = 1 + place * step + gap / 2
            bars.append(f"M{x:.1f} {_HISTOGRAM_HEIGHT - 1}v-{height:.1f}h{step - gap:.1f}v{height:.1f}z")
    floor = f'<path class="rlnb-svg-track" d="M0 {_HISTOGRAM_HEIGHT - 0.5}H{_WIDTH}" stroke="{_TRACK}" stroke-width="1"/>'
    body = f'<path class="rlnb-svg-bars" d="{"".join(bars)}" fill="{_SEEN}"/>'
    return _svg(_HISTOGRAM_HEIGHT, f"histogram of {profile.name}", [floor, body])


def _svg(height: int, words: str, parts: list[str]) -> str:
    return (
        f'<svg class="rlnb-svg" role="img" aria-label="{escape(words)}" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}">{"".join(parts)}</svg>'
    )


def _line(left: float, right: float, y: float, dash: str) -> str:
    return f'<path class="rlnb-svg-track" d="M{left:.1f} {y}H{right:.1f}" stroke="{_TRACK}" stroke-width="1"{dash}/>'


def _block(kind: str, left: float, right: float, fill: str) -> str:
    # a range narrower than two pixels would not be seen
    if right - left < 2:
        left, right = max(0.0, (left + right) / 2 - 1), min(float(_WIDTH), (left + right) / 2 + 1)
    return (
        f'<rect class="{kind}" x="{left:.1f}" y="1.5" width="{right - left:.1f}" height="5" fill="{fill}"/>'
    )
