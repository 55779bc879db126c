"""The panel in JupyterLab and the page on its own, in a real browser with real key strokes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from browser import Page, find_browser, until
from review_packets import HOSTILE, written

from auditlib.review.decisions import read_decisions

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


@pytest.fixture
def downloads(tmp_path):
    folder = tmp_path / "downloads"
    folder.mkdir()
    return folder


@pytest.fixture
def page(downloads):
    tab = Page(BROWSER, downloads)
    yield tab
    tab.close()


@pytest.fixture
def lab(tmp_path):
    """JupyterLab over a folder of its own, as ``(address, folder)``."""
    folder = tmp_path / "lab"
    folder.mkdir()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = os.environ | {"JUPYTER_CONFIG_DIR": str(tmp_path / "config"), "JUPYTER_RUNTIME_DIR": str(tmp_path / "run"),
                        "JUPYTERLAB_SETTINGS_DIR": str(tmp_path / "set"), "IPYTHONDIR": str(tmp_path / "ipython"),
                        "JUPYTERLAB_WORKSPACES_DIR": str(tmp_path / "spaces")}  # fmt: skip
    log = open(tmp_path / "lab.log", "w")  # noqa: SIM115 - open while the server runs
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
               "--IdentityProvider.token=", "--ServerApp.password=", f"--ServerApp.root_dir={folder}",
               "--LabApp.expose_app_in_browser=True", "--LabApp.news_url=None",
               "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]  # fmt: skip
    server = subprocess.Popen(command, stdout=log, stderr=log, env=env)
    try:
        until(lambda: _listens(port), "JupyterLab", 90)
        yield f"http://127.0.0.1:{port}", folder
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
        log.close()


def _listens(port: int) -> bool:
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def _labels(file: Path) -> list[tuple[str, str]]:
    import pandas as pd

    table = pd.read_csv(file, dtype=str, keep_default_na=False)
    return list(zip(table["row"], table["label"]))


def test_panel_in_jupyterlab(lab, page, tmp_path):
    """Keys label, move and take back; a restarted kernel goes on; hostile text stays text."""
    address, folder = lab
    made = written(tmp_path / "review")
    order = made.of("ann")["row"].tolist()
    code = (
        f"from auditlib.review.panel import open_panel\npanel = open_panel({str(tmp_path / 'review')!r}, 'ann')\npanel"
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, folder / "r.ipynb")
    file = tmp_path / "review" / "decisions_ann.csv"
    where = "document.querySelector('.audit-review .audit-state')?.textContent ?? ''"

    def on(place: int, decided: int) -> None:
        page.wait(f"({where}).startsWith('{place} of {len(order)} ({order[place - 1]}), {decided} decided')")

    page.go(f"{address}/lab/tree/r.ipynb")
    page.wait("window.jupyterapp?.shell.currentWidget?.sessionContext?.isReady === true")
    page.value("jupyterapp.commands.execute('notebook:run-all-cells')")
    on(1, 0)
    page.wait("document.activeElement.classList.contains('audit-review')")
    for step, key in enumerate("142", 1):
        page.press(key)
        on(step + 1, step)
    assert dict(_labels(file)) == dict(zip(order, ("key_error", "no_issue", "ambiguous")))
    assert page.value("document.querySelectorAll('.jp-MarkdownCell').length") == 0, "number keys reach the notebook"
    page.press("u")
    on(3, 2)
    page.press("ArrowLeft")
    on(2, 2)
    page.press("5")
    on(3, 2)
    assert dict(_labels(file)) == dict(zip(order, ("key_error", "cannot_tell")))
    page.value("document.querySelector('.audit-review textarea').focus()")
    page.press("1")
    page.value("document.querySelector('.audit-review textarea').blur()")
    until(lambda: '"1"' in file.read_text(), "the note", 30)
    assert dict(_labels(file))[order[2]] == "", "typing a number into the note labels nothing"

    page.value("jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    page.wait("jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'")
    page.value("jupyterapp.commands.execute('notebook:run-all-cells')")
    on(3, 2)
    hostile = made.rows.loc[made.rows["question"].eq(HOSTILE), "row"].iloc[0]
    if hostile in order:
        for place in range(3, order.index(hostile) + 1):
            page.press("ArrowRight")
            on(place + 1, 2)
        for place in range(3, order.index(hostile) + 1, -1):
            page.press("ArrowLeft")
            on(place - 1, 2)
        assert "<script>alert(1)</script>" in page.value("document.querySelector('.audit-review').textContent")
        assert page.value("document.querySelectorAll('.audit-review .audit-text script').length") == 0
    assert page.value("document.querySelector('.audit-review img').naturalWidth") == 8
    assert len(read_decisions([file], made).table) == 2


def test_page_on_its_own(page, downloads, tmp_path):
    """The page works from a file, keeps decisions over a reload, and hands over a CSV that reads back."""
    made = written(tmp_path)
    order = made.of("bob")["row"].tolist()
    address = (tmp_path / "packet_bob.html").as_uri()
    place = "document.getElementById('place')?.textContent ?? ''"
    page.go(address)
    page.wait(f"({place}).startsWith('1 of')")
    for i, key in enumerate("4u1" + "4" * (len(order) - 2)):
        page.press(key)
        assert f"{[1, 0, 1][i] if i < 3 else i - 1} decided" in page.value(place)
    page.value("window.stale = true")
    page.call("Page.reload")
    page.wait("window.stale === undefined && document.readyState === 'complete'")
    page.wait(f"({place}).includes('{len(order) - 1} decided')")
    page.value("document.getElementById('note').focus()")
    page.call("Input.insertText", text='=1+1, "quoted"')
    page.value("document.getElementById('save').click()")
    until(lambda: (downloads / "decisions_bob.csv").exists(), "the download", 30)
    found = read_decisions([downloads / "decisions_bob.csv"], made)
    said = dict(zip(found.table["row"], found.table["label"]))
    assert said == {r: "key_error" if r == order[0] else "no_issue" for r in order[:-1]}
    assert found.unlabelled[["row", "note"]].to_numpy().tolist() == [[order[-1], '=1+1, "quoted"']]
    assert page.value("document.querySelector('#item img').naturalWidth") == 8
    loaded = page.value("JSON.stringify(performance.getEntriesByType('resource').map((e) => e.name))")
    assert all(n.startswith(("data:", "blob:")) for n in json.loads(loaded))
