"""How still pictures look: ink, axes and encoding, the same for runs and for labs.

Everything is drawn with matplotlib's object-oriented interface on its own canvas, so that neither pyplot's
global figures nor the notebook's backend are touched. The background is white in every theme.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.ticker import Locator

WIDTH = 960
"""Width of an image in CSS pixels."""

DPI = 160  # sharp on screens of twice the resolution, without doubling the notebook's size
INK, SOFT, GRID = "#222222", "#616161", "#e8e8e8"


def png_of(canvas: FigureCanvasAgg) -> bytes:
    """Draws and encodes with a palette of 128 colours: a third of the bytes in every saved notebook, to the eye the same.

    The palette covers the picture's colours, however rare: the median cut would lose that of a term which
    is seen in the legend alone.
    """
    from PIL import Image

    canvas.figure.set_dpi(DPI)
    canvas.draw()  # type: ignore[no-untyped-call]
    size = canvas.get_width_height(physical=True)
    pixels = canvas.buffer_rgba()  # type: ignore[no-untyped-call]
    image = Image.frombuffer("RGBA", size, pixels, "raw", "RGBA", 0, 1).convert("RGB")
    buffer = io.BytesIO()
    paletted = image.quantize(128, Image.Quantize.MAXCOVERAGE)
    paletted.save(buffer, format="png", optimize=True, dpi=(DPI, DPI))
    return buffer.getvalue()


def dress(axes: Axes, title: str, x_label: str, y_label: str) -> None:
    """Gives axes a title, labels with units, a quiet grid and two spines."""
    axes.set_title(title, loc="left", size=9, weight="bold", color=INK, pad=4, parse_math=False)
    axes.set_xlabel(x_label, size=7.5, color=SOFT, labelpad=2, parse_math=False)
    axes.set_ylabel(y_label, size=7.5, color=SOFT, labelpad=2, parse_math=False)
    axes.tick_params(labelsize=7, colors=SOFT, length=2, pad=2)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color("#bdbdbd")


def say_empty(axes: Axes, words: str) -> None:
    """Says in the middle of axes why there is nothing in them."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", size=8, color=SOFT, parse_math=False)


def short_number(value: float, _position: object = None) -> str:
    """Writes a number short: 0, 500, 20k, 1.5M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.4g}{unit}"
    return f"{value:g}"


def few_ticks(*, integer: bool = False) -> Locator:
    """Returns a locator of at most six ticks."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=5, integer=integer)
