"""The tab Episodes: which there are, one of them step by step, and recording more."""

from __future__ import annotations

import ipywidgets as w

from rlnb.view.lab.bench import Workbench
from rlnb.view.lab.charts.viewer import EpisodeViewer
from rlnb.view.lab.episodes.episode_data import (
    MOST,
    EpisodeRow,
    Pictures,
    by_variation,
    episode_rows,
    episode_shown,
    first_components,
    ordered,
)
from rlnb.view.lab.episodes.episode_list import EpisodeList
from rlnb.view.lab.episodes.episodes import Episodes
from rlnb.view.lab.episodes.record_panel import RecordPanel
from rlnb.view.lab.episodes.recordings_list import RecordingsList
from rlnb.view.lab.listeners import Event
from rlnb.view.lab.reward.term_row import button
from rlnb.view.lab.state.names_picker import NamesPicker

_ALL = ""  # of the policies' menu


class EpisodesTab:
    """Shows a workbench's episodes.

    Args:
        bench: the model.
        episodes: what there is on disk, and what can be recorded.
        visible: whether it is seen at first; what is not seen costs nothing while a slider moves.

    Attributes:
        widget: what is shown.
        list: the episodes, `viewer` the one that is looked at, `panel` records, `recordings` are the files.
    """

    def __init__(self, bench: Workbench, episodes: Episodes, *, visible: bool = True) -> None:
        self._bench, self._episodes = bench, episodes
        self._visible = False
        self._stale = True
        self._offered = False
        self._shown: list[EpisodeRow] = []
        self._pictures: dict[str, Pictures] = {}
        self._chosen: tuple[str, ...] | None = None  # components; None: those that are shown at first
        self.list, self.viewer = EpisodeList(), EpisodeViewer()
        self.panel = RecordPanel(bench, episodes)
        self.recordings = RecordingsList(bench, episodes)
        self._policy = w.Dropdown(options=[("all policies", _ALL)], layout=w.Layout(width="220px"))
        self._words = w.HTML()
        self._words.add_class("rlnb-muted")
        self._before = button("chevron-left", "the episode before, in the list's order", lambda: self._go(-1))
        self._after = button("chevron-right", "the next episode, in the list's order", lambda: self._go(1))
        self._names = NamesPicker(self._choose, f"all, at most {MOST}")
        self._names_line = w.HBox([w.Label("components shown"), self._names.widget])
        line = w.HBox([self._policy, self._before, self._after, self._words])
        for box in (line, self._names_line):
            box.add_class("rlnb-episodes-line")
        left = w.VBox([line, self.list])
        left.add_class("rlnb-episodes-list")
        top = w.HBox([left, self.panel.widget])
        top.add_class("rlnb-episodes-top")
        self.widget = w.VBox(
            [
                self.recordings.trouble, top, self.viewer, self._names_line, self._names.box,
                self.recordings.widget,
            ]
        )  # fmt: skip
        self._policy.observe(lambda _: self._list_again(), "value")
        self.list.on_select(self._select)
        self.list.on_sort(self._sort)
        bench.listeners.add(self._hear)
        self.visible = visible

    @property
    def visible(self) -> bool:
        """Whether it is seen; when it comes to be, it shows what has changed meanwhile."""
        return self._visible

    @visible.setter
    def visible(self, is_so: bool) -> None:
        with self._bench.lock:
            self._visible = is_so
            if is_so and self._stale:
                self._show_all()
        if is_so and not self._offered:
            self._offered = True
            self.panel.offer()

    # --- showing

    def _hear(self, event: Event) -> None:
        if event is Event.EPISODES:
            self._pictures.clear()
            self.recordings.show()
        if event not in (Event.EPISODES, Event.SELECTION, Event.REWARD, Event.NOTES):
            return
        if not self._visible:
            self._stale = True
        elif event is Event.SELECTION:
            self._show_place()
            self._show_episode()
        elif event is Event.NOTES:
            self._show_episode()
        else:
            self._show_all()

    def _show_all(self) -> None:
        self._stale = False
        self._show_list()
        self._show_episode()

    def _show_list(self) -> None:
        rows = episode_rows(self._bench)
        labels = dict.fromkeys(row.label for row in rows)
        options = [("all policies", _ALL), *((label or "no policy named", f"={label}") for label in labels)]
        if list(self._policy.options) != options:
            kept = self._policy.value
            self._policy.options = options
            self._policy.value = kept if kept in [value for _, value in options] else _ALL
        wanted = self._policy.value
        rows = [row for row in rows if wanted in (_ALL, f"={row.label}")]
        self._shown = ordered(rows, self.list.sort, descending=self.list.descending)
        self.list.show(self._shown, self._bench.episode)
        self._show_place()

    def _show_place(self) -> None:
        """Marks the episode that is looked at, and says where it stands in the list."""
        self.list.selected = self._bench.episode
        at = self._at()
        count = f"{len(self._shown):,}"
        self._words.value = f"{at + 1:,} of {count}" if at >= 0 else f"{count} listed"
        self._before.disabled, self._after.disabled = at <= 0, at >= len(self._shown) - 1

    def _show_episode(self) -> None:
        bench = self._bench
        names = bench.batch.obs.names
        shown = first_components(bench.batch.obs) if self._chosen is None else list(self._chosen)
        key: str = bench.keys[bench.episode]
        if key not in self._pictures:
            self._pictures[key] = self._episodes.pictures(key)
        self.viewer.show(episode_shown(bench, bench.episode, shown, self._pictures[key]))
        self._names_line.layout.display = "" if len(names) > 1 else "none"
        self._names.show(names, None if set(shown) >= set(names) else shown)

    # --- what is clicked

    def _at(self) -> int:
        places = [row.place for row in self._shown]
        return places.index(self._bench.episode) if self._bench.episode in places else -1

    def _select(self, place: int) -> None:
        with self._bench.lock:
            if place < len(self._bench.keys):  # else the list in the browser is older than the episodes
                self._bench.select(place)

    def _go(self, by: int) -> None:
        with self._bench.lock:
            there = max(0, self._at() + by)
            if there < len(self._shown):
                self._bench.select(self._shown[there].place)

    def _sort(self, key: str) -> None:
        """Sorts by a column; once more turns the order round. Numbers begin with the largest."""
        if key not in {column["key"] for column in self.list.columns}:
            return
        if key == self.list.sort:
            self.list.descending = not self.list.descending
        else:
            self.list.descending = key in ("length", "designed", "environment")
            self.list.sort = key
        self._list_again()

    def _list_again(self) -> None:
        with self._bench.lock:
            if self._visible:
                self._show_list()

    def _choose(self, names: tuple[str, ...] | None) -> bool:
        with self._bench.lock:
            obs = self._bench.batch.obs
            self._chosen = (
                tuple(obs.names if len(obs.names) <= MOST else by_variation(obs)) if names is None else names
            )
            self._show_episode()
        return True
