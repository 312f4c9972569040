"""The app in a real browser, by keyboard: search, questions, drafts and corpora in JupyterLab, and the page by Voilà.

The recommendations have tests of their own. Pictures are kept in build/screenshots, or where CITEREC_SCREENSHOTS says.
Without a browser, JupyterLab or Voilà the tests are skipped; in CI a missing browser is a failure.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from conftest import ROOT, python
from playwright.sync_api import Browser, Page, expect, sync_playwright
from test_jupyterlab import BROWSER, FLAGS, LIMIT, SECOND, free_port, jupyterlab, run_all_cells

from citerec.testing.fake_openalex import OpenAlexServer
from citerec.testing.pdfs import write_paper

psutil = pytest.importorskip("psutil")
pytest.importorskip("jupyterlab")
pytestmark = [
    pytest.mark.skipif(not BROWSER and not os.environ.get("CI"), reason="no browser: install chromium to run this"),
    pytest.mark.xdist_group("browser"),  # one after the other, in one worker
]
PICTURES = Path(os.environ.get("CITEREC_SCREENSHOTS") or ROOT / "build" / "screenshots")
LOOPBACK = {"127.0.0.1", "localhost", ""}
BIB = "@article{{kim{0}, title={{Maps of Unseen Rivers {0}}}, author={{Kim, Ann}}, year={{20{0}}}}}\n"

# Elements of the app that can be scrolled sideways. A field for text may: its text is longer than the field.
WIDE = """() => [...document.querySelectorAll(".widget-vbox, .widget-vbox *")]
    .filter(e => e.scrollWidth > e.clientWidth + 1 && !["INPUT", "SELECT"].includes(e.tagName) &&
                 ["auto", "scroll"].includes(getComputedStyle(e).overflowX))
    .map(e => `${e.tagName} ${e.className}: ${e.scrollWidth} > ${e.clientWidth}`)"""

# Texts of the app whose contrast with what lies behind them is below 4.5, with opacity and half-transparent colours.
PALE = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = colour => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; };
  const over = (top, below, a) => [0, 1, 2].map(i => top[i] * a + below[i] * (1 - a));
  const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b; };
  const behind = e => { if (!e) return [255, 255, 255];
    const c = rgba(getComputedStyle(e).backgroundColor); return over(c, behind(e.parentElement), c[3]); };
  const pale = new Set();
  for (const e of document.querySelectorAll(".widget-vbox *")) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility() || e.disabled || e.tagName === "STYLE") continue;
    let opacity = 1;
    for (let p = e; p; p = p.parentElement) opacity *= getComputedStyle(p).opacity;
    const ground = behind(e), ink = rgba(getComputedStyle(e).color);
    const [a, b] = [light(over(ink, ground, ink[3] * opacity)), light(ground)];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) pale.add(`${e.tagName} ${e.className} ${e.textContent.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return [...pale];
}"""


def picture(page: Page, name: str) -> None:
    """Keep a picture of the page."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png")


@pytest.fixture(scope="module")
def browser():
    """The browser."""
    assert BROWSER, "CI needs chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS.split())
        yield browser
        browser.close()


@contextmanager
def browser_page(browser: Browser, width: int = 1280):
    """A page that reaches this machine alone; at the end, nothing else was asked."""
    outside = []
    page = browser.new_page(viewport={"width": width, "height": 1200})
    page.set_default_timeout(LIMIT)

    def pass_on(route):
        if urlsplit(route.request.url).hostname in LOOPBACK:
            return route.continue_()
        outside.append(route.request.url)
        return route.abort()

    page.route(lambda address: not address.startswith(("data:", "blob:")), pass_on)
    page.on("websocket", lambda socket: socket.url.startswith("ws://127.0.0.1") or outside.append(socket.url))
    yield page
    page.close()
    assert not outside


def servers() -> list:
    """The processes that this one has started, without the browser."""
    children = psutil.Process().children(recursive=True)
    return [child for child in children if not re.search("chrom|node", child.name())]


@contextmanager
def nothing_left():
    """The processes that are put into the list have ended afterwards."""
    started, before = [], servers()
    try:
        yield started
    finally:
        _, alive = psutil.wait_procs(set(started) - set(before), timeout=60)
        for process in alive:
            process.kill()
    assert not alive, alive


@pytest.fixture(scope="module")
def openalex():
    """OpenAlex on this machine."""
    with OpenAlexServer(works=600) as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory, openalex):
    """The folder in which the app works, with a PDF and a bibliography; the user's own data is not touched."""
    place = tmp_path_factory.mktemp("app") / "work"
    place.mkdir()
    data = str(place.parent / "data")
    # writes the notebook; JupyterLab only says its version
    python("-m", "citerec", "app", "--version", cwd=place, XDG_DATA_HOME=data)
    says = "Our maps are drawn by walking the banks. The maps help boats to turn in time."
    write_paper(place / "rivers.pdf", "Maps of Unseen Rivers", "Ann Kim", [("Abstract", says), ("1 Maps", says)])
    (place / "mine.bib").write_text(BIB.format(21))
    own = {"XDG_DATA_HOME": data, "CITEREC_LIBRARY": str(place.parent / "library.db")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**own, "CITEREC_OPENALEX_URL": openalex.url}.items():
            patch.setenv(name, value)
        yield place


@pytest.fixture(scope="module")
def page(folder, browser):
    """The app in JupyterLab after Run All Cells; all tests of this module use it one after the other."""
    written = (folder / "citerec.ipynb").read_bytes()
    with (
        nothing_left() as started,
        jupyterlab(folder.parent, folder) as (address, token),
        browser_page(browser) as page,
    ):
        page.goto(f"{address}/doc/tree/citerec.ipynb?token={token}&reset")
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
        expect(page.locator(".jp-mod-dirty")).to_have_count(0)
        page.keyboard.press("Control+s")
        expect(page.get_by_text("Saving completed")).to_be_visible()
        assert (folder / "citerec.ipynb").read_bytes() == written, "opening and saving has changed the notebook"
        run_all_cells(page)
        page.get_by_role("button", name="Recommend", exact=True).wait_for()
        expect(page.locator(".citerec-ready")).to_have_count(5)
        started += servers()
        yield page
        picture(page, "end")


def view(page: Page, name: str) -> None:
    """Choose a view by keyboard."""
    press(page, name)


def press(page: Page, name: str | re.Pattern) -> None:
    """Press Enter on a button of this name."""
    button = page.get_by_role("button", name=name, exact=True).locator("visible=true").first
    expect(button).to_be_enabled()
    button.focus()
    page.keyboard.press("Enter")


def write(page: Page, placeholder: str, text: str, key: str = "Enter") -> None:
    """Write into the visible field with a placeholder, and press a key."""
    field = page.get_by_placeholder(placeholder).locator("visible=true")
    field.focus()
    page.keyboard.press("Control+a")
    page.keyboard.type(text)
    page.keyboard.press(key)


def shows(page: Page, text: str) -> None:
    """Wait until a text can be seen."""
    expect(page.get_by_text(text).locator("visible=true").first).to_be_visible()


def test_search(page):
    """Enter sends the text, then searches; a limit is a button that removes it, and is not named a second time."""
    view(page, "Search papers")
    page.evaluate("""window.heard = []
        for (const type of ["keypress", "change"]) document.addEventListener(type, () => heard.push(type), true)""")
    asked = "attention papers by Vaswani before 2018"
    write(page, "Search: papers by", asked)
    assert page.evaluate("heard.indexOf('change')") == len(asked), "the press of Enter has overtaken the text"
    shows(page, "Attention Is All You Need")
    expect(page.get_by_text("Limits:").locator("visible=true")).to_have_count(0)
    press(page, "by Vaswani ✕")
    expect(page.get_by_role("button", name="by Vaswani ✕")).to_have_count(0)
    expect(page.locator(".citerec-card:visible").nth(1)).to_be_visible()
    press(page, "until 2017 ✕")
    expect(page.get_by_role("button", name="until 2017 ✕")).to_have_count(0)
    picture(page, "search")


DROP = """content => {
  const given = new DataTransfer(), shown = (view) => view.querySelector(".widget-upload")?.checkVisibility();
  given.items.add(new File([Uint8Array.from(content)], "dropped.pdf"));
  given.items.add(new File(["no PDF"], "notes.docx"));
  const view = [...document.querySelectorAll(".citerec-view")].find(shown);
  for (const type of ["dragover", "drop"])
    view.dispatchEvent(new DragEvent(type, { dataTransfer: given, bubbles: true, cancelable: true }));
}"""


def ask(page: Page, question: str, answer: str) -> None:
    """Ask, and wait until a new answer with this text is whole."""
    page.evaluate("document.querySelectorAll('.widget-html-content > *').forEach(e => e.classList.add('old'))")
    write(page, "Ask: How does", question)
    expect(page.locator(".widget-html-content > :not(.old)", has_text=answer).first).to_be_visible()
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()


def test_ask(page, folder):
    """A PDF is added, asked, rated, and deleted after a second press; the question is kept once, with its time."""
    view(page, "Ask papers")
    with page.expect_file_chooser() as chooser:
        press(page, re.compile("Add PDFs"))
    chooser.value.set_files(folder / "rivers.pdf")
    press(page, "Delete")
    press(page, "Keep it")
    earlier = page.locator(".widget-vbox select:visible").last  # the first is that of the corpora
    for _ in range(2):
        ask(page, "How are the maps of rivers drawn?", "walking the banks")
        expect(earlier.locator("option")).to_have_count(2)
    press(page, "★★★★")
    picture(page, "ask")
    assert re.search(r"\d{4}-\d\d-\d\d\s\d\d:\d\d", earlier.locator("option").nth(1).inner_text())
    press(page, "The corpus")
    expect(page.get_by_role("button", name="Delete", exact=True).locator("visible=true")).to_have_count(0)
    ask(page, "How does the Transformer relate positions?", "to relate positions of a sequence")
    press(page, "My PDFs")
    press(page, "Delete")
    press(page, "Delete it")
    expect(page.get_by_role("button", name="Delete it").locator("visible=true")).to_have_count(0)
    earlier.select_option(index=1)
    shows(page, "walking the banks")
    page.evaluate(DROP, [*(folder / "rivers.pdf").read_bytes()])
    shows(page, "is added.")
    shows(page, "notes.docx is left out")


def test_draft(page):
    """The example draft is checked, audited, filled; a citation is written, taken back, refused after an edit."""
    view(page, "Draft")
    press(page, "Example draft")
    shows(page, "A citation is still to come")
    press(page, "Check the bibliography")
    shows(page, "srivastava2014")
    press(page, "What would fit")
    shows(page, "Attention Is All You Need")
    expect(page.get_by_role("button", name="What would fit", exact=True)).to_be_focused()
    picture(page, "draft")
    draft = Path(page.get_by_placeholder("Draft:").input_value())
    before = draft.read_text()
    press(page, "Cite here")
    shows(page, "+The Transformer relates all positions")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Write this change")).to_be_focused()
    expect(page.get_by_role("button", name="Write this change")).to_be_in_viewport()
    assert draft.read_text() == before
    picture(page, "draft-change")
    press(page, "Write this change")
    shows(page, "Written: references.bib, example.tex.")
    assert r"\cite{?}" not in draft.read_text()
    expect(page.get_by_role("button", name="Undo", exact=True)).to_be_focused()
    shows(page, "Line 5")  # the next place is still there, and nothing was asked again
    picture(page, "draft-written")
    page.keyboard.press("Enter")
    shows(page, "Taken back: the citation of")
    assert draft.read_text() == before
    press(page, "Cite here")
    shows(page, "+The Transformer relates all positions")
    draft.write_text(before + "% edited meanwhile\n")
    press(page, "Write this change")
    shows(page, "has changed since it was read")
    assert "cite{?}" in draft.read_text()


def test_corpus(page, folder, openalex):
    """A build is stopped and continued, a corpus is chosen for all views, and updated."""
    view(page, "Corpus")
    shows(page, "citations")
    press(page, "New corpus")
    write(page, "part of its name", "topic mod")
    press(page, "+ Topic Modeling")
    expect(page.get_by_label("Topics", exact=True).locator("visible=true")).to_have_value("T10028")
    write(page, "a new folder for the corpus", "data/works", "Tab")
    openalex.delay = 3600  # seconds an answer takes: the build is still at work when it is stopped
    press(page, "Build")
    press(page, "Stop")
    shows(page, "Stopped.")
    expect(page.get_by_role("button", name="Build", exact=True)).to_be_focused()
    assert not (folder / "data" / "works" / "manifest.json").exists()
    picture(page, "stopped")
    openalex.delay = 0
    press(page, "Build")
    shows(page, "Done:")
    expect(page.get_by_role("button", name="Build", exact=True)).to_be_focused()
    source = page.get_by_role("combobox", name="Source", exact=True)
    source.select_option(label="A bibliography: .bib, .ris, .json")
    write(page, "library.bib", "mine.bib", "Tab")
    write(page, "a new folder for the corpus", "data/mine", "Tab")
    press(page, "Build")
    expect(page.get_by_role("combobox", name="Corpus", exact=True).locator("option:checked")).to_have_text(
        re.compile("data/mine")
    )
    with (folder / "mine.bib").open("a") as entries:
        entries.write(BIB.format(22))
    press(page, "Update")
    shows(page, "2021 to 2022")
    picture(page, "corpus")
    view(page, "Search papers")
    write(page, "Search: papers by", "unseen rivers")
    shows(page, "Maps of Unseen Rivers 22")
    view(page, "Corpus")
    page.get_by_role("combobox", name="Corpus", exact=True).select_option(label="The sample that comes with citerec")
    shows(page, "2,460")


VIEWS = ("Recommendations", "Search papers", "Ask papers", "Draft", "Corpus")


def test_narrow(page):
    """At 400 pixels nothing can be scrolled sideways."""
    size = page.viewport_size
    page.set_viewport_size({"width": 400, "height": 900})
    for name in VIEWS:
        view(page, name)
        picture(page, f"narrow-{name.split()[0].lower()}")
        assert not page.evaluate(WIDE), name
    page.set_viewport_size(size)


@pytest.mark.parametrize("theme", ["JupyterLab Dark", "JupyterLab Light"])
def test_contrast(page, theme):
    """All texts can be read in a dark and in a light theme."""
    page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
    expect(page.locator(f"body[data-jp-theme-name='{theme}']")).to_be_attached()
    for name in VIEWS:
        view(page, name)
        picture(page, f"{theme.split()[1].lower()}-{name.split()[0].lower()}")
        assert not page.evaluate(PALE), name


@contextmanager
def served_page(folder: Path):
    """`citerec app --page` in a folder; gives the address without and with its token."""
    log = folder.parent / "voila.log"
    command = [sys.executable, "-m", "citerec", "app", "--page", "--no-browser", f"--port={free_port()}"]
    with log.open("w") as out, subprocess.Popen(command, cwd=folder, stdout=out, stderr=out) as server:
        try:
            for _ in range(1200):
                if found := re.search(r"(http://127\S+)\?token=(\w+)", log.read_text()):
                    break
                assert server.poll() is None, log.read_text()
                time.sleep(0.1)
            else:
                pytest.fail(log.read_text())
            yield found[1], found[0]
        finally:
            server.terminate()
            server.wait(60)


def saved_with(page: Page, notebook: Path, texts: list[str]) -> None:
    """Save the notebook until its file holds these texts."""
    deadline = time.monotonic() + LIMIT / SECOND
    while missing := [text for text in texts if text not in notebook.read_text(encoding="utf-8")]:
        assert time.monotonic() < deadline, missing
        page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
        page.wait_for_timeout(500)


def end_kernels(address: str, token: str) -> None:
    """End all kernels of a server."""
    authorised = {"Authorization": f"token {token}"}
    with urlopen(Request(f"{address}/api/kernels", headers=authorised)) as answer:
        kernels = json.load(answer)
    for kernel in kernels:
        urlopen(Request(f"{address}/api/kernels/{kernel['id']}", headers=authorised, method="DELETE")).close()


def test_reopened(folder, browser, tmp_path):
    """The last answers of search, ask and draft are in the saved notebook, and show without their kernel."""
    work = tmp_path / "work"
    work.mkdir()
    notebook = Path(shutil.copy(folder / "citerec.ipynb", work))
    with jupyterlab(tmp_path, work) as (address, token), browser_page(browser) as page:
        here = f"{address}/doc/tree/citerec.ipynb?token={token}&reset"
        page.goto(here)
        run_all_cells(page)
        page.get_by_role("button", name="Recommend", exact=True).wait_for()
        expect(page.locator(".citerec-ready")).to_have_count(5)
        view(page, "Search papers")
        write(page, "Search: papers by", "attention papers by Vaswani before 2018")
        shows(page, "Attention Is All You Need")
        view(page, "Ask papers")
        press(page, "The corpus")
        ask(page, "How does the Transformer relate positions?", "to relate positions of a sequence")
        view(page, "Draft")
        press(page, "Example draft")
        shows(page, "A citation is still to come")
        answers = ["attention papers by Vaswani", "the Transformer relate positions?", "A citation is still to come"]
        saved_with(page, notebook, answers)
        page.goto("about:blank")
        end_kernels(address, token)
        page.goto(here)
        for answer in answers:
            shows(page, answer)
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()  # now the widgets are known to be lost
        expect(page.get_by_text("Loading widget").locator("visible=true")).to_have_count(0)
        expect(page.get_by_text("This is a copy of the last answer").locator("visible=true")).to_have_count(3)
        errors = page.get_by_text(re.compile("Error displaying|model not found", re.IGNORECASE))
        expect(errors.locator("visible=true")).to_have_count(0)
        picture(page, "reopened-views")


def test_page(folder, browser):
    """The page shows the app without code, to those who have the token, and leaves no process behind."""
    pytest.importorskip("voila")
    with nothing_left() as started, served_page(folder) as (address, full_address), browser_page(browser, 400) as page:
        page.goto(address)
        assert "login" in page.url and page.get_by_role("button", name="Recommend", exact=True).count() == 0
        page.goto(full_address)
        expect(page.get_by_role("button", name="Recommend", exact=True)).to_be_enabled()
        assert "import app" not in page.content()
        press(page, "A claim")
        press(page, "Recommend")
        shows(page, "Deep Residual Learning")
        page.reload()  # with a new kernel
        expect(page.get_by_placeholder("Paste a sentence")).to_have_value(re.compile("Residual connections"))
        expect(page.get_by_role("heading", name="citerec", exact=True)).to_be_visible()
        expect(page.get_by_text(re.compile(r"the cell|Shift\+Enter")).locator("visible=true")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert not page.evaluate(WIDE)
        view(page, "Corpus")
        shows(page, "citations")
        picture(page, "page")
        started += servers()
