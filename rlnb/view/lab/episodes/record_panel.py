"""Recording more episodes: who acts, how many, from which seed, and how far it is."""

from __future__ import annotations

import threading
import time
from html import escape

import ipywidgets as w

from rlnb.envs.frames import FrameBudget
from rlnb.envs.progress import Progress
from rlnb.envs.rollouts import Rollouts
from rlnb.errors import DesignError, RlnbError
from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.episodes.episodes import BUILT_IN, Episodes, PolicyChoice
from rlnb.view.lab.progress import in_words

#: messages to a browser are limited in number: short episodes end more often than anybody can read
_TELL_SECONDS = 0.1

_MAX_SEED = 2**31 - 1


class RecordPanel:
    """Records in a thread of its own, so that the notebook can be used meanwhile.

    Args:
        bench: gets the episodes.
        episodes: records and keeps them.

    Attributes:
        widget: what is shown.
    """

    def __init__(self, bench: Workbench, episodes: Episodes) -> None:
        self._bench, self._episodes = bench, episodes
        self._choices: list[PolicyChoice] = list(BUILT_IN)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._stopping = threading.Event()
        self._told = 0.0
        self._policy = w.Dropdown(layout=w.Layout(flex="1 1 120px", min_width="0"))
        again = w.Button(icon="refresh", tooltip="look for policies that were trained meanwhile")
        again.add_class("rlnb-icon-button")
        again.on_click(lambda _: self.offer())
        narrow = w.Layout(width="84px")
        self._count = w.BoundedIntText(value=5, min=1, max=10_000, layout=narrow)
        self._seed = w.BoundedIntText(value=0, min=0, max=_MAX_SEED, layout=narrow)
        self._images = w.Checkbox(
            value=True, description="with images, up to", indent=False, layout=w.Layout(width="auto")
        )
        self._budget = w.BoundedFloatText(
            value=FrameBudget().megabytes, min=0.1, max=1000.0, layout=w.Layout(width="70px")
        )
        self._record = w.Button(description="Record", icon="circle", layout=w.Layout(width="96px"))
        self._record.add_class("rlnb-record")
        self._stop = w.Button(
            description="Stop", icon="stop", layout=w.Layout(width="80px"), disabled=True,
            tooltip="whole episodes are kept",
        )  # fmt: skip
        self._bar = w.IntProgress(layout=w.Layout(width="100%", height="10px", display="none"))
        self._words = w.HTML()
        self._words.add_class("rlnb-record-words")
        self._policy.observe(lambda _: self._propose_seed(), "value")
        self._images.observe(lambda change: setattr(self._budget, "disabled", not change["new"]), "value")
        self._record.on_click(lambda _: self.start())
        self._stop.on_click(lambda _: self.stop())
        self.widget = w.VBox(
            [
                w.HTML("<b>Record more episodes</b>"),
                _line("policy", self._policy, again),
                _line("episodes", self._count, w.Label("seed"), self._seed),
                _line("", self._images, self._budget, w.Label("MB")),
                _line("", self._record, self._stop),
                self._bar,
                self._words,
            ]
        )
        self.widget.add_class("rlnb-record-panel")
        self._show_choices()

    def offer(self) -> None:
        """Looks who can act here, also among runs that were trained since."""
        try:
            self._choices = self._episodes.choices()
        except RlnbError as error:
            self._choices = list(BUILT_IN)
            self._say(str(error), bad=True)
        self._show_choices()

    @property
    def busy(self) -> bool:
        """Whether it is recording."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begins to record what is chosen; nothing happens while another recording runs."""
        with self._starting:
            if self.busy:
                return
            choice = self._choices[self._policy.value]
            frames = FrameBudget(megabytes=self._budget.value) if self._images.value else None
            count, seed = self._count.value, self._seed.value
            self._stopping.clear()
            self._bar.bar_style, self._bar.max, self._bar.value = "", count, 0
            self._bar.layout.display = ""
            self._record.disabled, self._stop.disabled = True, False
            self._say(f"{choice.label}: getting ready …")
            # A daemon: a kernel that is shut down need not wait, a recording is on disk whole or not at all.
            self._thread = threading.Thread(
                target=self._run, args=(choice, count, seed, frames), name="rlnb-record", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Ends the recording at its next step; episodes that are whole are kept."""
        self._stopping.set()
        self._stop.disabled = True

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until nothing is recorded any more; False if the time was too short."""
        if self._thread is not None:
            self._thread.join(timeout)
        return not self.busy

    def _run(self, choice: PolicyChoice, count: int, seed: int, frames: FrameBudget | None) -> None:
        try:
            found = self._episodes.record(
                choice, episodes=count, seed=seed, frames=frames, progress=self._tell,
                should_stop=self._stopping.is_set,
            )  # fmt: skip
            self._say(_done(choice, found))
            if found.batch is not None:
                self._take()
        except RlnbError as error:
            self._fail(str(error))
        except (Exception, SystemExit) as error:  # whatever a user's policy or environment raises
            text = (str(error).strip().splitlines() or [""])[0]
            self._fail(f"{choice.label} failed while it was recorded ({type(error).__name__}: {text:.200})")
        finally:
            self._record.disabled, self._stop.disabled = False, True
            self._propose_seed()

    def _take(self) -> None:
        recorded = self._episodes.load()
        if recorded is None:
            return
        try:
            self._bench.set_episodes(recorded)
        except DesignError as error:
            self._fail(f"They are kept, but the design does not work on them: {error}")

    def _tell(self, progress: Progress) -> None:
        now = time.monotonic()
        last = progress.ended and progress.episode == progress.episodes
        if now - self._told < _TELL_SECONDS and not last:
            return
        self._told = now
        self._bar.value = progress.episode if progress.ended else progress.episode - 1
        self._say(in_words(progress))

    def _fail(self, words: str) -> None:
        self._bar.bar_style = "danger"
        self._say(words, bad=True)

    def _say(self, words: str, *, bad: bool = False) -> None:
        text = escape(words)
        self._words.value = f'<span class="rlnb-bad">{text}</span>' if bad else text

    def _show_choices(self) -> None:
        chosen = self._policy.label
        words = [(choice.words, place) for place, choice in enumerate(self._choices)]
        self._policy.options = words
        self._policy.value = next((place for word, place in words if word == chosen), 0)
        self._propose_seed()

    def _propose_seed(self) -> None:
        """Proposes starts that no recording of this policy has seen yet."""
        if self._policy.value is None:
            return
        label = self._choices[self._policy.value].label
        self._seed.value = min(self._episodes.store.next_seed(label), _MAX_SEED)


def _line(text: str, *fields: w.Widget) -> w.HBox:
    made = w.HBox([w.Label(text, layout=w.Layout(width="62px")), *fields])
    made.add_class("rlnb-record-line")
    return made


def _done(choice: PolicyChoice, found: Rollouts) -> str:
    """Says what came of a recording."""
    if found.batch is None:
        return "Stopped before the first episode had ended; nothing is kept."
    count, steps = len(found.batch.starts), len(found.batch)
    said = "" if found.frames is None else found.frames.said
    return (
        f"{'Stopped: ' if found.stopped else ''}{count:,} episode{'' if count == 1 else 's'} of {choice.label}, "
        f"{steps:,} steps in {found.seconds:.1f} s. {said}"
    ).strip()
