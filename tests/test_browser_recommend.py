"""The view of recommendations in JupyterLab in a real browser: the main path by keyboard, and what is kept.

CITEREC_SCREENSHOTS names a folder for pictures. Without a browser the tests are skipped, in CI they fail.
"""

import base64
import json
import os
import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import bibtexparser
import pytest
import rispy
from conftest import ROOT
from playwright.sync_api import Page, expect, sync_playwright
from test_jupyterlab import BROWSER, FLAGS, LIMIT, SECOND, jupyterlab, run_all_cells

from citerec.answering.cards import list_as_html
from citerec.ground.schema import CitationPath, GroundedPaper, PipelineState, Recommendation, ScoredPaper

pytestmark = [
    pytest.mark.skipif(not BROWSER and not os.environ.get("CI"), reason="no browser: install chromium to run this"),
    pytest.mark.xdist_group("browser"),  # one after the other, in one worker
]
TEXT = (
    "Recurrent networks are slow to train, so our Transformer relies on self-attention only. "
    "Very deep networks of this kind train well because of residual connections. "
    "We first predict masked words in plain text and then adapt the model to each task."
)
BYTES = 300_000  # bytes of a saved notebook with an answer


def picture(page: Page, name: str) -> None:
    """Keep a picture where pictures are wanted."""
    if folder := os.environ.get("CITEREC_SCREENSHOTS"):
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


@contextmanager
def opened_app(tmp_path: Path, width: int = 1280):
    """Open the app in a fresh JupyterLab; gives its page, the notebook's file, and the requests to other machines."""
    assert BROWSER, "CI needs chromium"
    copy, outside = tmp_path / "copy", []
    copy.mkdir()
    shutil.copy(ROOT / "nbs" / "app.ipynb", copy)
    with jupyterlab(tmp_path, copy) as (address, token), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS.split())
        context = browser.new_context(viewport={"width": width, "height": 1400})
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        context.set_default_timeout(LIMIT)
        page = context.new_page()
        inside = (address, address.replace("http", "ws"), "data:", "blob:")
        page.on("request", lambda request: None if request.url.startswith(inside) else outside.append(request.url))
        page.goto(f"{address}/lab/tree/app.ipynb?token={token}&reset")
        page.locator(".jp-Notebook").wait_for()
        run_all_cells(page)
        page.get_by_role("button", name="Recommend", exact=True).wait_for()
        expect(page.locator(".citerec-ready")).to_have_count(5)
        try:
            yield page, copy / "app.ipynb", outside
        finally:
            picture(page, "end")
            browser.close()


def press(page: Page, name: str, key: str = "Enter") -> None:
    """Focus the first button of a name in the first card, and press a key on it."""
    page.locator(".citerec-card").first.get_by_role("button", name=name, exact=True).focus()
    page.keyboard.press(key)


def ask(page: Page, text: str) -> None:
    """Type a text and press Ctrl+Enter; returns when the answer is there."""
    page.get_by_placeholder("Paste a sentence").fill(text)
    page.get_by_placeholder("Paste a sentence").press("Control+Enter")
    page.locator(".citerec-card").first.wait_for(timeout=180 * SECOND)
    expect(page.get_by_role("button", name="Recommend", exact=True)).to_be_enabled()


@pytest.fixture
def own_data(tmp_path, monkeypatch):
    """A folder for what the user's data folder would hold."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "citerec"


def test_main_path_by_keyboard(tmp_path, own_data):
    """Ask, copy, select, export, group, leave out, ask again from the history; all without a mouse."""
    with opened_app(tmp_path) as (page, notebook, outside):
        ask(page, TEXT)
        first = page.locator(".citerec-card").first
        assert "Attention Is All You Need" in first.inner_text()
        press(page, "Copy \\cite")
        expect(first.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == r"\cite{vaswani2017attention}"
        press(page, "Copy BibTeX", "Space")
        page.wait_for_function("async () => (await navigator.clipboard.readText()).startsWith('@')")
        assert len(bibtexparser.parse_string(page.evaluate("navigator.clipboard.readText()")).entries) == 1

        press(page, "Similar")
        expect(first.locator("[data-slot]").get_by_text("is searched for")).to_be_visible()
        why = first.locator("details.citerec-why > summary").first
        why.focus()
        page.keyboard.press("Enter")
        expect(first.get_by_text("Near in meaning")).to_be_visible()
        picture(page, "card")

        first.get_by_role("checkbox").focus()
        for key in ("Space", "ArrowDown", "Space", "Tab", "Enter"):  # this card and the next, then "Export selected"
            page.keyboard.press(key)
        expect(page.get_by_label("Export as")).to_be_focused()
        content = page.locator(".citerec-export textarea")
        expect(content).to_have_value(re.compile(r"@[\s\S]*@"))
        assert len(bibtexparser.parse_string(content.input_value()).entries) == 2
        cells = page.locator(".jp-Cell").count()
        for key in ("d", "d", "ArrowDown"):  # commands of JupyterLab, but not in the app
            page.keyboard.press(key)
        expect(page.get_by_label("Export as")).to_be_focused()
        assert page.locator(".jp-Cell").count() == cells
        expect(content).to_have_value(re.compile("TY  -"))
        assert len(rispy.loads(content.input_value())) == 2
        page.get_by_label("Export as").select_option("CSL-JSON")
        expect(page.get_by_role("link", name="Save as citerec.json")).to_be_visible()
        saved = page.get_by_role("link", name="Save as citerec.json").get_attribute("href")
        assert len(json.loads(base64.b64decode(saved.partition(",")[2]))) == 2

        page.get_by_label("Groups").select_option("sentence")
        expect(page.locator(".citerec-group").first).to_contain_text("Recurrent networks")
        page.get_by_label("Groups").select_option("none")
        page.get_by_label("Order").select_option("year")
        expect(page.locator(".citerec-group")).to_have_count(0)
        page.get_by_label("Order").select_option("rank")
        sentence = page.locator(".citerec-sentence").nth(1)
        sentence.focus()
        page.keyboard.press("Enter")
        title = first.locator(".citerec-title").first
        expect(title).to_contain_text("Residual")
        expect(page.locator(".citerec-sentence[aria-pressed=true]")).to_have_count(1)
        page.keyboard.press("Enter")
        expect(title).to_contain_text("Attention Is All You Need")

        page.get_by_role("button", name="Compact", exact=True).click()
        tenth = page.locator(".citerec-card").nth(9)
        expect(tenth).to_be_visible()
        heights = "[...document.querySelectorAll('.citerec-card')].map(card => card.getBoundingClientRect().height)"
        page.wait_for_function(f"() => 0 < {heights}[9] && {heights}[9] < 60")  # the list may be drawn once more
        page.get_by_placeholder("Paste a sentence").focus()
        ticked = page.locator("[data-act=select]:checked")
        before = ticked.count()
        for key in ("Escape", "5", "6", "7"):  # three keys select three papers
            page.keyboard.press(key)
        expect(ticked).to_have_count(before + 3)
        page.keyboard.press("o")
        expect(page.locator(".citerec-open")).to_have_count(1)
        page.get_by_role("button", name="Compact", exact=True).click()
        press(page, "Leave out")
        expect(title).not_to_contain_text("Attention Is All You Need")
        expect(title).to_be_visible()
        page.get_by_role("button", name="History").focus()
        page.keyboard.press("Enter")
        expect(page.locator("option", has_text="Recurrent networks")).to_have_count(2)
        expect(page.locator("option", has_text="(without ")).to_have_count(1)
        page.get_by_role("button", name="Ask again").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Recommend", exact=True)).to_be_enabled()
        expect(title).not_to_contain_text("Attention Is All You Need")
        assert not (own_data / "recent.jsonl").exists()  # nobody asked for it to be kept
    assert not outside


def test_answer_stays_in_the_notebook(tmp_path, own_data):
    """A saved notebook is small, and shows the answer when it is reopened without a kernel; buttons do not."""
    with opened_app(tmp_path) as (page, notebook, outside):
        ask(page, TEXT)
        page.get_by_role("menuitem", name="File", exact=True).click()
        page.get_by_text("Save Notebook", exact=True).first.click()
        expect(page.get_by_text("Saving completed")).to_be_visible()
        assert notebook.stat().st_size < BYTES
        assert "citerec-card" in notebook.read_text()
        page.get_by_role("menuitem", name="Kernel", exact=True).click()
        page.get_by_text("Shut Down Kernel", exact=True).first.click()
        page.wait_for_timeout(2000)
        page.reload()
        card = page.locator(".citerec-card").first
        expect(card).to_be_visible()
        expect(card).to_contain_text("Attention Is All You Need")
        expect(page.locator("button.citerec-act")).to_have_count(0)
        expect(page.get_by_text("Error displaying widget")).to_have_count(0)
        picture(page, "reopened")
    assert not outside


def test_narrow_page(tmp_path, own_data):
    """At 400 pixels nothing of the app is wider than its cell."""
    with opened_app(tmp_path, 400) as (page, _, _):
        page.keyboard.press("Control+b")  # folds the list of files
        ask(page, TEXT)
        page.wait_for_timeout(500)
        wide = page.evaluate("""() => [...document.querySelectorAll(".citerec-view, .citerec-view *")]
            .filter(e => e.scrollWidth > e.clientWidth + 1)
            .filter(e => ["auto", "scroll"].includes(getComputedStyle(e).overflowX))
            .map(e => e.className + " " + e.tagName)""")
        picture(page, "narrow")
        assert not wide


WORST = (
    '</p></div></style><script>window.bad = 1</script><img src=x onerror="window.bad = 1"> $x^2$ \\frac{a}{b} 🦜 אבג '
)


@pytest.mark.parametrize("width", [400, 1100])
def test_hostile_card(width):
    """A card with hostile and very long fields runs nothing, stays low and fits its page, folded and unfolded."""
    assert BROWSER, "CI needs chromium"
    title, text = (WORST * 60)[:5000], "It is slow. " * 3000
    path = CitationPath(relation="context", via_ids=["b"], via_titles=[title], count=1, of=9, sentence=WORST * 50)
    other = path.model_copy(update={"relation": "reference", "sentence": ""})
    found = Recommendation(
        rank=1,
        paper_id="W1",
        title=title,
        authors=[f"{WORST} {i}" for i in range(3000)],
        venue=WORST * 50,
        year=2020,
        justification=WORST * 50,
        supporting_snippet=text[:900],
        claim=WORST * 20,
        confidence=0.5,
        paths=(path, other),
        signals={"dense": 0.5},
        flags=(WORST * 9,),
        yours=WORST,
    )
    scored = ScoredPaper(paper_id="W1", title="T", abstract=text, similarity_score=0.5)
    state = PipelineState(user_text="x", grounded_candidates=(GroundedPaper(paper=scored, rerank_score=1),))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS.split())
        page = browser.new_page(viewport={"width": width, "height": 1000})
        page.set_content(list_as_html([found], state))
        card = page.locator(".citerec-card")
        folded = card.bounding_box()["height"]
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        unfolded = card.bounding_box()["height"]
        picture(page, f"hostile{width}")
        assert page.evaluate("window.bad") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        browser.close()
    assert folded < (1500 if width < 1000 else 700), folded
    assert unfolded < (4000 if width < 1000 else 2200), unfolded
