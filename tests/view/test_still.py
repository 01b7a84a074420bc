from __future__ import annotations

import io
import sys
import xml.etree.ElementTree as ET

import numpy as np
from PIL import Image

from rlnb.run.status import State
from rlnb.view.facts import Facts
from rlnb.view.history import History
from rlnb.view.still import ImageFormat, still_image
from rlnb.view.watch import RunWatch


def test_a_png_is_light_small_and_full(run):
    run.checkpoint()
    run.become(State.PAUSED)
    watch = RunWatch(run.layout)
    watch.poll()
    png = still_image(watch.history, watch.facts)
    image = Image.open(io.BytesIO(png))
    assert image.format == "PNG"
    assert image.width == 1600
    pixels = np.asarray(image.convert("RGB"))
    assert (pixels[0, 0] == 255).all()  # white, so that it reads in a dark theme too
    assert (pixels.mean(axis=2) > 250).mean() > 0.8
    # All three columns of charts have ink.
    assert all((part < 200).any() for part in np.array_split(pixels, 3, axis=1))
    assert len(png) < 250_000


def test_an_svg_is_well_formed(run):
    watch = RunWatch(run.layout)
    watch.poll()
    root = ET.fromstring(still_image(watch.history, watch.facts, form=ImageFormat.SVG))
    assert root.tag.endswith("svg")


def test_a_run_without_rows_has_an_image_too():
    assert still_image(History(), Facts("exp-1"))[:4] == b"\x89PNG"


def test_a_dollar_in_a_name_is_not_mathematics():
    assert still_image(History(), Facts("exp", name="a $ b $ c_{"))[:4] == b"\x89PNG"


def test_pyplot_and_its_global_figures_are_left_alone(run):
    import subprocess

    code = (
        "import sys; from rlnb.view.still import still_image; from rlnb.view.history import History;"
        "from rlnb.view.facts import Facts; still_image(History(), Facts('r'));"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
