"""Image observations as pictures, with their size: HTML, without a widget."""

from __future__ import annotations

import base64
import io
import math
from html import escape
from typing import Any

import numpy as np

from rlnb.design.columns import Array
from rlnb.design.operations.image_layout import ImageLayout
from rlnb.design.profile import ImageProfile
from rlnb.design.replay_size import size
from rlnb.view.lab.state.number_text import short_number

#: the longer side of a picture in CSS pixels; small ones grow in whole steps, so that pixels stay square
_SIDE = 120
#: pictures that are shown, and observations that are strips of pictures themselves
_MOST, _MOST_STACKS = 5, 3


def images_html(profile: ImageProfile, space: Any, *, title: str, frames: int = 1, note: str = "") -> str:
    """Returns a few example observations as pictures.

    Args:
        profile: with the examples.
        space: the Box they are of.
        title: heading, e.g. "After: what the agent sees".
        frames: how many pictures one observation stacks; they are shown side by side, the oldest first.
        note: how the examples were found.

    Returns:
        HTML with the pictures inside it.
    """
    layout = ImageLayout.of(space)
    shown = profile.examples[: _MOST if frames == 1 else _MOST_STACKS]
    pictures = "".join(
        _picture(example, layout, frames, f"step {row}")
        for example, row in zip(shown, profile.rows.tolist(), strict=False)
    )
    shape = " x ".join(str(side) for side in profile.shape)
    facts = [
        f"<b>{shape}</b> {escape(profile.dtype)}",
        f"<b>{size(profile.bytes_each)}</b> each",
        f"values {short_number(profile.seen_low)} to {short_number(profile.seen_high)} "
        f"of [{short_number(profile.low)}, {short_number(profile.high)}]",
    ]
    if frames > 1:
        facts.append(f"{frames} pictures in each, the oldest first")
    muted = f'<span class="rlnb-muted">{escape(note)}</span>' if note else ""
    return (
        f'<div class="rlnb-profile"><div class="rlnb-profile-title"><b>{escape(title)}</b> {muted}</div>'
        f'<div class="rlnb-profile-facts">{", ".join(facts)}</div><div class="rlnb-pictures">{pictures}</div></div>'
    )


def _picture(values: Array, layout: ImageLayout, frames: int, words: str) -> str:
    from PIL import Image

    pixels = _bytes(values, layout)
    if layout.channels is None:
        pixels = pixels[..., None]
    elif layout.first:
        pixels = np.moveaxis(pixels, 0, -1)
    width = pixels.shape[2] // frames
    parts = [_colours(pixels[..., i * width : (i + 1) * width]) for i in range(frames)]
    file = io.BytesIO()
    Image.fromarray(np.concatenate(parts, axis=1)).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    scale = _SIDE / max(layout.height, layout.width)
    scale = math.floor(scale) if scale >= 1 else scale
    return (
        f'<img alt="{escape(words)}" title="{escape(words)}" src="data:image/png;base64,{data}" '
        f'width="{round(layout.width * scale) * frames}" height="{round(layout.height * scale)}">'
    )


def _bytes(values: Array, layout: ImageLayout) -> Array:
    """Returns numbers as shades: bytes as they are, others from the declared or else the seen range."""
    if values.dtype == np.uint8:
        return values
    low, high = layout.low, layout.high
    if not math.isfinite(high - low):
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    span = high - low or 1.0
    shades = np.clip((np.nan_to_num(values.astype(np.float64), nan=low) - low) / span, 0.0, 1.0)
    return np.asarray((255 * shades).round(), dtype=np.uint8)


def _colours(pixels: Array) -> Array:
    """Returns (h, w, 3): red, green, blue as they are; any other number of channels as their mean."""
    if pixels.shape[2] == 3:
        return pixels
    grey = pixels.mean(axis=2).round().astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=2)
