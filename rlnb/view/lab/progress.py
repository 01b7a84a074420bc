"""How far a recording is: a bar in a notebook, one line elsewhere."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rlnb.envs.progress import Progress
from rlnb.view.display import publish, widget_bundle
from rlnb.view.frontend import FrontEnd, front_end


@contextmanager
def recording(what: str, episodes: int) -> Iterator[Callable[[Progress], None]]:
    """Shows how far a recording is while the block runs; yields what to tell about it.

    Args:
        what: what is being recorded, e.g. "5 random episodes of CartPole-v1".
        episodes: how many there will be.
    """
    if front_end() is not FrontEnd.LIVE:
        print(f"Recording {what} …")
        yield lambda _: None
        return
    import ipywidgets as w

    bar = w.IntProgress(min=0, max=episodes, description="", layout=w.Layout(width="240px"))
    words = w.Label(f"Recording {what} …")
    box = w.HBox([bar, words])
    output = f"rlnb-{uuid.uuid4().hex}"
    publish(widget_bundle(box, f"Recording {what} …"), {}, output)

    def tell(progress: Progress) -> None:
        bar.value = progress.episode if progress.ended else progress.episode - 1
        words.value = f"Recording {what}: {in_words(progress)}"

    end = f"Recording {what} came to no end."
    try:
        yield tell
        end = f"Recorded {what}."
    finally:
        # A closed widget that stayed in the notebook would be an error to whoever opens it later.
        publish({"text/plain": end}, {}, output, update=True)
        for part in (box, bar, words):
            part.close()


def in_words(progress: Progress) -> str:
    """Says how far a recording is."""
    return (
        f"episode {progress.episode} of {progress.episodes}, step {progress.step:,}, "
        f"return {progress.return_env:.4g}"
    )
