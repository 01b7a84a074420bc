"""A real JupyterLab driven by a real Chromium, for tests.

    with jupyter_lab(folder) as lab, chromium() as browser:
        notebook = NotebookPage.open(browser, lab, "a.ipynb")
        notebook.run_all()
        notebook.wait_for(".rlnb-job[data-state='running']")

Everything JupyterLab writes goes below `folder`; nothing of the developer's own settings is read.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)")

VIEWPORT = {"width": 1280, "height": 800}

_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# The news toast would cover the page, and asking for it would need the network.
_OVERRIDES = {
    "@jupyterlab/apputils-extension:notification": {
        "checkForUpdates": False,
        "fetchNews": "false",
        "doNotDisturbMode": True,
    }
}


@dataclass
class Lab:
    """A running JupyterLab.

    Attributes:
        url: its address without a slash at the end.
        token: what it asks for.
        root: the folder it serves.
        process: the server.
        log: file of its output.
    """

    url: str
    token: str
    root: Path
    process: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """Ends the server and its kernels without warning."""
        with contextlib.suppress(psutil.NoSuchProcess):
            server = psutil.Process(self.process.pid)
            # Kernels have sessions of their own, so the server's process group does not hold them.
            for process in [server, *server.children(recursive=True)]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        self.process.wait(20)

    def kernels(self) -> list[psutil.Process]:
        """Returns the processes of its kernels."""
        below = psutil.Process(self.process.pid).children(recursive=True)
        return [process for process in below if "ipykernel_launcher" in process.cmdline()]


@contextlib.contextmanager
def jupyter_lab(folder: Path, *, env: Mapping[str, str] | None = None) -> Iterator[Lab]:
    """Starts JupyterLab on a free loopback port; it serves `folder / "root"`.

    Args:
        folder: an empty folder for root, settings and log.
        env: further environment variables, which kernels inherit.
    """
    root, home, config = folder / "root", folder / "home", folder / "config"
    for path in (root, home, config / "labconfig"):
        path.mkdir(parents=True, exist_ok=True)
    (config / "labconfig" / "default_setting_overrides.json").write_text(json.dumps(_OVERRIDES))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token, log = "test-token", folder / "lab.log"
    settings = {
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(config),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "IPYTHONDIR": str(folder / "ipython"),
        "MPLCONFIGDIR": str(folder / "matplotlib"),
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", "--allow-root"]
    command += [f"--ServerApp.root_dir={root}", "--LabApp.expose_app_in_browser=True"]
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command,
            env={**os.environ, **settings, **(env or {})},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    lab = Lab(f"http://127.0.0.1:{port}", token, root, process, log)
    try:
        _await_server(lab)
        yield lab
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                lab.kill()


def _await_server(lab: Lab, *, timeout: float = 90.0) -> None:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        assert lab.process.poll() is None, lab.log.read_text()
        try:
            with urllib.request.urlopen(f"{lab.url}/api", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"JupyterLab did not answer within {timeout:.0f} s:\n{lab.log.read_text()}")


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Yields a Playwright browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def write_notebook(path: Path, *cells: str) -> None:
    """Writes a notebook of code cells."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)


# JupyterLab itself leaves these uncaught: the requests that it had sent to a kernel which is restarted or whose
# page is reloaded before the answer came.
_ABANDONED = re.compile(r"Canceled future for \w+ message before replies were done")


class NotebookPage:
    """A notebook open in JupyterLab in one page.

    Attributes:
        page: Playwright's page.
        errors: uncaught JavaScript errors so far, without JupyterLab's own about abandoned requests.
    """

    def __init__(self, page: Any, lab: Lab, name: str) -> None:
        self.page, self.lab, self.name = page, lab, name
        self.errors: list[str] = []
        page.on("pageerror", self._note)

    def _note(self, error: Any) -> None:
        if not _ABANDONED.search(str(error)):
            self.errors.append(str(error))

    @classmethod
    def open(cls, browser: Any, lab: Lab, name: str) -> NotebookPage:
        """Opens `name` (below the lab's root) in a new page and waits for its kernel."""
        notebook = cls(browser.new_page(viewport=VIEWPORT, device_scale_factor=1), lab, name)
        notebook.load(reset=True)
        if notebook.page.locator("#jp-left-stack").is_visible():
            notebook.command("application:toggle-left-area")
        return notebook

    def load(self, *, reset: bool = False) -> None:
        """Loads the page (again)."""
        query = f"token={self.lab.token}" + ("&reset" if reset else "")
        self.page.goto(f"{self.lab.url}/lab/tree/{self.name}?{query}")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
        # Before the session is there, running a cell asks which kernel to use.
        session = "window.jupyterapp?.shell.currentWidget?.context?.sessionContext"
        self.page.wait_for_function(
            f"{session}?.isReady && ['idle', 'busy'].includes({session}.session?.kernel?.status)",
            timeout=90_000,
        )

    def command(self, name: str, args: dict[str, Any] | None = None) -> None:
        """Runs a command of JupyterLab without waiting for what it starts."""
        self.page.evaluate(
            "([name, args]) => { window.jupyterapp.commands.execute(name, args); }", [name, args or {}]
        )

    def run_all(self) -> None:
        """Starts all cells."""
        self.command("notebook:run-all-cells")

    def restart_and_run_all(self) -> None:
        """Restarts the kernel and starts all cells, saying yes to the question."""
        self.command("notebook:restart-run-all")
        self.page.locator(".jp-Dialog .jp-mod-accept").click(timeout=20_000)

    def restart(self) -> None:
        """Restarts the kernel, saying yes to the question."""
        self.command("kernelmenu:restart")
        self.page.locator(".jp-Dialog .jp-mod-accept").click(timeout=20_000)

    def run_cell(self, number: int) -> None:
        """Starts one cell, counted from 0."""
        self.cell(number).locator(".jp-InputArea-editor").click()
        self.command("notebook:run-cell")

    def cell(self, number: int) -> Any:
        """Returns the locator of a cell, counted from 0."""
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(number)

    def save(self) -> dict[str, Any]:
        """Saves and returns the notebook's JSON."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
        content: dict[str, Any] = json.loads((self.lab.root / self.name).read_text())
        return content

    def theme(self, name: str) -> None:
        """Changes the theme, e.g. "JupyterLab Dark", and waits until it is drawn."""
        self.command("apputils:change-theme", {"theme": name})
        self.page.wait_for_function(
            "name => document.body.dataset.jpThemeName === name", arg=name, timeout=30_000
        )
        self.page.wait_for_selector("#jupyterlab-splash", state="detached", timeout=30_000)

    def wait_for(self, selector: str, *, timeout: float = 30.0) -> Any:
        """Waits until `selector` is visible; returns its locator."""
        locator = self.page.locator(selector).first
        locator.wait_for(timeout=1000 * timeout)
        return locator

    def wait_until(self, script: str, *, timeout: float = 30.0) -> Any:
        """Waits until a JavaScript expression is true; returns its value."""
        return self.page.wait_for_function(script, timeout=1000 * timeout).json_value()

    def screenshot(self, path: Path) -> None:
        """Writes what the page shows."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path)
