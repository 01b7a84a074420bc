"""Where a run's files come from and where requests to it go: this machine's working copy, or the mirror.

Readers only ever read local folders. A run of this machine is read in its working copy; a run of another
machine is pulled, as little as possible at a time, into `settings.cache_dir()` and read there. Requests
are files in `control/`: of the working copy, or of the mirror, from where the run's own mirror process
fetches them.
"""

from __future__ import annotations

import time
from typing import Any, Literal

from rlnb import settings
from rlnb.errors import RlnbError, RunError, RunNotFound
from rlnb.run.control import Acknowledgement, Verb, acknowledgement, request
from rlnb.run.layout import RunLayout, read_json
from rlnb.run.record import read_record
from rlnb.run.status import Observation, Observer

PULL_EVERY = 2.0  # seconds: several properties read in a row cost one look at the store
LOCAL_PATIENCE = 15.0  # seconds for an acknowledgement of this machine's supervisor
REMOTE_PATIENCE = 90.0  # seconds for a request that travels through the store and back


def join_run_url(store_url: str, run_id: str) -> str:
    """Returns the address of a run in a store; the store's query (region, endpoint) stays at the end."""
    base, mark, query = store_url.partition("?") if "://" in store_url else (store_url, "", "")
    return f"{base.rstrip('/')}/{run_id}{mark}{query}"


def split_run_url(url: str) -> tuple[str, str]:
    """Splits the address of a run into (store's address, run's id).

    Raises:
        RunError: the address has no last part that could be a run's id.
    """
    base, mark, query = url.partition("?") if "://" in url else (url, "", "")
    store, _, run_id = base.rstrip("/").rpartition("/")
    if not store or not run_id or store.endswith(("/", ":")):
        raise RunError(f"{url!r} is not the address of a run; it should end with the run's id.")
    return f"{store}{mark}{query}", run_id


def superseded(layout: RunLayout) -> bool:
    """Whether the mirror of this working copy found that another machine has taken the run over."""
    return bool((read_json(layout.mirror_json) or {}).get("superseded"))


class RunSource:
    """Reads one run and asks things of it, wherever it runs.

    Args:
        layout: the local folder to read.
        url: the run's address in its store, or None for what run.yaml says.
    """

    def __init__(self, layout: RunLayout, url: str | None = None) -> None:
        self.layout = layout
        self._url = url
        self._pulled: dict[str, float] = {}
        self._observer = Observer(layout)

    @property
    def remote(self) -> bool:
        """Whether the folder is a pulled copy of a run of another machine."""
        return self.layout.root.parent == settings.cache_dir()

    @property
    def url(self) -> str:
        """The run's address in its store."""
        if self._url is None:
            self._url = join_run_url(str(read_record(self.layout).store["url"]), self.layout.id)
        return self._url

    def refresh(self, *, what: Literal["light", "all"] = "light", max_age: float = PULL_EVERY) -> None:
        """Brings the folder up to date; a working copy of this machine always is.

        Args:
            what: "light" leaves out checkpoints and data, "all" does not.
            max_age: seconds for which an earlier pull is new enough.

        Raises:
            StoreError: the store cannot be read.
        """
        if not self.remote or time.monotonic() - self._pulled.get(what, -1e9) < max_age:
            return
        from rlnb.run.pull import pull

        pull(self.url, self.layout.root, what=what)
        self._pulled[what] = time.monotonic()

    def observe(self) -> Observation:
        """Returns what can be said of the run now, without touching the store.

        Raises:
            RunNotFound: the folder was removed.
        """
        seen = self._observer.observe()
        if seen.status is None and not self.layout.root.is_dir():
            raise RunNotFound(
                f"The run folder {self.layout.root} was removed; its store may still have the run."
            )
        return seen

    def ask(self, verb: Verb, *, timeout: float | None = None, **args: Any) -> Acknowledgement:
        """Makes a request and waits for its answer.

        Raises:
            RunError: the run refused, or nobody answered in time (the request stays).
            StoreError: the store cannot be reached.
        """
        request_id = request(self.layout, verb, **args)
        if self.remote:
            self._send(request_id)
        patience = timeout if timeout is not None else (REMOTE_PATIENCE if self.remote else LOCAL_PATIENCE)
        answer = self._await(request_id, patience)
        if answer is None and not (seen := self.observe()).state.living:
            raise RunError(f"{self.layout.id} ended before it heard of {str(verb)!r}: it is {seen.state}.")
        if answer is None:
            raise RunError(
                f"{self.layout.id} did not answer {str(verb)!r} within {patience:g} s; the request stays "
                f"and is honoured at the next safe point. `rlnb show {self.layout.id}` tells how it is."
            )
        if not answer.ok:
            raise RunError(f"{self.layout.id} refused {str(verb)!r}: {answer.message}")
        return answer

    def _send(self, request_id: str) -> None:
        from rlnb.run.storage import open_storage

        store, run_id = split_run_url(self.url)
        path = self.layout.control / f"{request_id}.json"
        name = f"{run_id}/{self.layout.relative(path)}"
        try:
            open_storage(store).write(name, path.read_bytes())
        except RlnbError:
            # Unsent, the copy here would look like a request that the run ignores.
            path.unlink(missing_ok=True)
            raise

    def _await(self, request_id: str, timeout: float) -> Acknowledgement | None:
        deadline = time.monotonic() + timeout
        while True:
            self.refresh(max_age=1.0)
            answer = acknowledgement(self.layout, request_id)
            if answer is not None or time.monotonic() > deadline:
                return answer
            if not self.remote and not self.observe().state.living:
                # It has ended; an answer that was written just before is there now or never.
                return acknowledgement(self.layout, request_id)
            time.sleep(0.5 if self.remote else 0.05)
