"""A reader's first minute: nbs/app.ipynb in JupyterLab in a real browser, a paragraph, a click, five cards.

CITEREC_SCREENSHOT names a file for a picture of the end. Without a browser the test is skipped, in CI it fails.
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import ROOT
from nbdev.clean import _pre_save_hook_src, clean_jupyter
from playwright.sync_api import Page, expect, sync_playwright

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# No sandbox, since CI runs as root; no errands of the browser's own.
FLAGS = "--no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking"
SECOND = 1000  # playwright counts milliseconds
LIMIT = 120 * SECOND  # for one step of a busy machine
expect.set_options(timeout=LIMIT)
TEXT = (
    "Recurrent networks are slow to train, so we rely on self-attention only, in an encoder and a decoder, "
    "to translate between languages."
)


def free_port() -> int:
    """Ask the system for a port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def jupyterlab(folder, root):
    """Serve `root` with a JupyterLab whose settings live in `folder`; gives its address and token."""
    port, token = free_port(), secrets.token_hex(16)
    places = {f"JUPYTER_{name}_DIR": str(folder / name) for name in ("CONFIG", "RUNTIME", "DATA")}
    places |= {f"JUPYTERLAB_{name}_DIR": str(folder / name) for name in ("SETTINGS", "WORKSPACES")}
    news = folder / "SETTINGS/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    news.parent.mkdir(parents=True)
    news.write_text('{"fetchNews": "false"}')
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": root,
        "IdentityProvider.token": token,
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.expose_app_in_browser": True,
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--{name}={value}" for name, value in options.items()]
    log = folder / "jupyterlab.log"
    with log.open("w") as out:
        server = subprocess.Popen(command, env={**os.environ, **places}, stdout=out, stderr=out)
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api/status?token={token}", timeout=5).close()
                break
            except OSError:
                assert server.poll() is None, log.read_text()
                time.sleep(0.5)
        else:
            pytest.fail(f"JupyterLab did not start:\n{log.read_text()}")
        yield f"http://127.0.0.1:{port}", token
    finally:
        server.terminate()
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:  # a busy machine; what the tests are about was seen
            server.kill()
            server.wait()


@contextmanager
def browser_page(shot: str | None):
    """Open a page in the browser; at the end, well or badly, take the picture."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS.split())
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        try:
            yield page
        finally:
            if shot:
                page.screenshot(path=shot)
            browser.close()


def run_all_cells(page: Page) -> None:
    """Wait until the kernel is ready, then choose Run > Run All Cells."""
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=LIMIT)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()


def test_saving_leaves_the_committed_notebook(tmp_path, monkeypatch):
    """What JupyterLab adds to the committed notebook when it opens it is not saved, by the hook of nbdev."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    shutil.copy(ROOT / "settings.ini", tmp_path)
    notebook = Path(shutil.copy(ROOT / "nbs" / "app.ipynb", tmp_path))
    committed = json.loads(notebook.read_text(encoding="utf-8"))
    opened = json.loads(notebook.read_text(encoding="utf-8"))
    opened["metadata"]["kernelspec"]["display_name"] = "Python 3 (ipykernel)"
    opened["metadata"]["language_info"] = {"name": "python", "version": "3.13.0"}
    clean_jupyter(path=str(notebook), model={"type": "notebook", "content": opened})
    assert opened == committed


@pytest.mark.xdist_group("browser")  # one after the other, in one worker
@pytest.mark.skipif(not BROWSER and not os.environ.get("CI"), reason="no browser: install chromium to run this test")
def test_opening_leaves_the_committed_notebook(tmp_path, monkeypatch):
    """Opened and saved in JupyterLab, the file of the committed notebook stays, where nbdev's hook is installed."""
    assert BROWSER, "CI needs chromium"
    clone = tmp_path / "clone"
    (clone / "nbs").mkdir(parents=True)
    shutil.copy(ROOT / "settings.ini", clone)
    notebook = Path(shutil.copy(ROOT / "nbs" / "app.ipynb", clone / "nbs"))
    (tmp_path / "CONFIG").mkdir()
    (tmp_path / "CONFIG" / "jupyter_server_config.py").write_text(_pre_save_hook_src)
    monkeypatch.chdir(clone)
    before = notebook.read_bytes()
    with jupyterlab(tmp_path, clone) as (address, token), browser_page(None) as page:
        page.goto(f"{address}/lab/tree/nbs/app.ipynb?token={token}&reset")
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=LIMIT)
        opened = notebook.stat().st_mtime_ns
        assert notebook.read_bytes() == before
        page.keyboard.press("Control+s")
        expect(page.get_by_text("Saving completed")).to_be_visible()
        assert notebook.stat().st_mtime_ns > opened
        assert notebook.read_bytes() == before
        expect(page.locator(".jp-mod-dirty")).to_have_count(0)


@pytest.mark.xdist_group("browser")  # one after the other, in one worker
@pytest.mark.skipif(not BROWSER and not os.environ.get("CI"), reason="no browser: install chromium to run this test")
def test_citing_in_a_markdown_cell(tmp_path, monkeypatch):
    """In a Markdown cell, `[@` opens the list of citerec; the paper that is chosen gets its key and its entry."""
    assert BROWSER, "CI needs chromium"
    draft = tmp_path / "draft"
    draft.mkdir()
    (draft / "refs.bib").write_text("@book{maps, title={A History of Maps}, author={Post, Ann}, year={2001}}\n")
    sentence = "The Transformer relates all positions of a sentence by attention alone"
    cells = [{"cell_type": "markdown", "id": "one", "metadata": {}, "source": sentence}]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (draft / "paper.ipynb").write_text(json.dumps(notebook))
    extensions = tmp_path / "path" / "labextensions"
    extensions.mkdir(parents=True)
    (extensions / "citerec").symlink_to(ROOT / "editors" / "jupyterlab")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "path"))
    (tmp_path / "CONFIG").mkdir()
    servers = json.loads((ROOT / "editors" / "jupyterlab" / "citerec.json").read_text())
    (server,) = servers["LanguageServerManager"]["language_servers"].values()
    server["argv"] = [sys.executable, "-m", "citerec", "lsp"]
    (tmp_path / "CONFIG" / "jupyter_server_config.json").write_text(json.dumps(servers))
    with jupyterlab(tmp_path, draft) as (address, token), browser_page(os.environ.get("CITEREC_SCREENSHOT")) as page:
        page.goto(f"{address}/lab/tree/paper.ipynb?token={token}&reset")
        cell = page.locator(".jp-MarkdownCell").first
        cell.wait_for(timeout=LIMIT)
        cell.dblclick()
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+End")
        page.keyboard.type(" [@")
        paper = page.locator(".jp-Completer-item", has_text="Attention Is All You Need")
        expect(paper.first).to_be_visible()
        paper.first.click()
        expect(cell.locator(".cm-content")).to_contain_text("[@vaswani2017attention")
        for _ in range(600):
            if "@inproceedings{vaswani2017attention," in (draft / "refs.bib").read_text(): break
            time.sleep(0.1)
        assert "@inproceedings{vaswani2017attention," in (draft / "refs.bib").read_text()


@pytest.mark.xdist_group("browser")  # one after the other, in one worker
@pytest.mark.skipif(not BROWSER and not os.environ.get("CI"), reason="no browser: install chromium to run this test")
def test_reader_gets_five_cards(tmp_path):
    """Run all, type, click, read five cards, open a justification; and nothing outside this machine is asked."""
    assert BROWSER, "CI needs chromium"
    copy = tmp_path / "copy"  # JupyterLab writes what it runs
    shutil.copytree(ROOT / "nbs", copy / "nbs", symlinks=True, ignore=shutil.ignore_patterns(".*"))
    with jupyterlab(tmp_path, copy) as (address, token), browser_page(os.environ.get("CITEREC_SCREENSHOT")) as page:
        outside = []
        inside = (address, address.replace("http", "ws"), "data:", "blob:")
        page.on("request", lambda request: None if request.url.startswith(inside) else outside.append(request.url))
        page.goto(f"{address}/lab/tree/nbs/app.ipynb?token={token}&reset")
        page.locator(".jp-Notebook").wait_for(timeout=LIMIT)
        run_all_cells(page)

        button = page.get_by_role("button", name="Recommend", exact=True)
        button.wait_for(timeout=LIMIT)
        box = page.get_by_placeholder("Paste")
        box.fill(TEXT)
        box.press("Tab")
        button.click()

        cards = page.locator(".citerec-card")
        expect(cards.nth(4)).to_be_visible(timeout=180 * SECOND)
        first_five = [card.inner_text() for card in cards.all()[:5]]
        assert all(len(text.split()) > 5 for text in first_five)
        assert any("Attention Is All You Need" in text for text in first_five[:3])
        why = cards.first.locator("details.citerec-why")
        why.locator("summary").click()
        expect(why).to_have_attribute("open", "")
        assert len(why.inner_text().split()) > 5
        cards.first.scroll_into_view_if_needed()
    assert not outside
