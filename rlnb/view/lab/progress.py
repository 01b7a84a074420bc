"""How far a recording is: a bar in a notebook, one line elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rlnb.envs.progress import Progress
from rlnb.view.frontend import FrontEnd, front_end


@contextmanager
def recording(title: str, episodes: int) -> Iterator[Callable[[Progress], None]]:
    """Shows how far a recording is while the block runs; yields what to tell about it.

    Args:
        title: what is being recorded.
        episodes: how many there will be.
    """
    if front_end() is not FrontEnd.LIVE:
        print(f"{title} …")
        yield lambda _: None
        return
    import ipywidgets as w
    from IPython.display import display

    bar = w.IntProgress(min=0, max=episodes, description="", layout=w.Layout(width="240px"))
    words = w.Label(f"{title} …")
    box = w.HBox([bar, words])
    display(box)  # type: ignore[no-untyped-call]

    def tell(progress: Progress) -> None:
        bar.value = progress.episode if progress.ended else progress.episode - 1
        words.value = f"{title}: {in_words(progress)}"

    try:
        yield tell
    finally:
        box.close()
        for part in (bar, words):
            part.close()


def in_words(progress: Progress) -> str:
    """Says how far a recording is."""
    return (
        f"episode {progress.episode} of {progress.episodes}, step {progress.step:,}, "
        f"return {progress.return_env:.4g}"
    )
