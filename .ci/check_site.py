"""Looks at the built docs as readers do: names, prose, folding, edit links; in a browser search, contrast and widths.

Usage: python .ci/check_site.py [folder]
"""

import contextlib
import functools
import http.server
import importlib
import inspect
import json
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import reference
from nbdev.config import get_config

ROOT = Path(__file__).resolve().parent.parent
CONFIG = get_config(path=ROOT)
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

SEARCHES = {  # what people type -> the page that they look for
    "recommend": "reference_recommend.html",
    "bibtex": "guide_zotero.html",
    "draft": "guide_draft.html",
    "missing citations": "guide_draft.html",
    "confidence": "guide_faq.html",
    "export": "guide_start.html",
    "cite key": "guide_faq.html",
    "privacy": "privacy.html",
    "pdf": "guide_pdfs.html",
    "ask": "guide_ask.html",
    "corpus": "guide_corpus.html",
    "own corpus": "guide_corpus.html",
    "openalex": "guide_corpus.html",
    "ollama": "guide_model.html",
    "key": "guide_faq.html",
    "server": "guide_service.html",
    "evaluate": "guide_evaluate.html",
    "zotero": "guide_zotero.html",
    "install": "guide_start.html",
    "install the app": "guide_start.html",
    "exclude what I already cite": "guide_faq.html",
    "filter by year": "guide_faq.html",
    "many sentences at once": "guide_faq.html",
    "default corpus": "guide_faq.html",
    "memory": "guide_faq.html",
    "delete everything": "guide_faq.html",
    "german text": "guide_faq.html",
    "apa": "guide_faq.html",
    "percentage": "guide_faq.html",
    "overleaf": "guide_editors.html",
    "undo a citation": "guide_draft.html",
}
FONTS = re.compile(r"fonts\.(?:googleapis|gstatic)\.com")  # of others: who reads the docs is not told to them
LEAST_CONTRAST = 4.5
LEAST_PROSE = 60  # characters outside of headings, code and tables
COLUMN, PHONE = 1280, 400  # widths of a window, in pixels
UNFOLDED = re.compile(r"(results|design|tour|index|guide_\w+)\.html")


class Page(HTMLParser):
    """One page: its prose, its parts by id, its code cells and whether they fold, and its links."""

    def __init__(self, path: Path):
        super().__init__()
        self.open: list[tuple[str, str]] = []  # tags and classes
        self.prose, self.all, self.part = "", "", ""
        self.parts: dict[str, str] = {}  # id -> the text below it, up to the next one
        self.loose = 0  # code cells that do not fold
        self.links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        if known.get("id") and re.fullmatch(r"section|h[1-6]", tag):
            self.part = known["id"]
        self.links += [known["href"]] if "href" in known else []
        classes = known.get("class", "")
        self.loose += "cell-code" in classes.split() and "code-fold" not in " ".join(each for _, each in self.open)
        if tag not in ("br", "hr", "img", "input", "link", "meta", "col", "wbr", "source"):
            self.open.append((tag, classes))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, text: str) -> None:
        tags = {tag for tag, _ in self.open}
        self.all += text
        self.parts[self.part] = self.parts.get(self.part, "") + text
        if "main" in tags and {"p", "li"} & tags and not {"pre", "table", "script", "style"} & tags:
            self.prose += text


def names() -> Iterator[tuple[str, str, Any]]:
    """Give every public name and method: the pages on which it has to stand, its anchor, and what it is."""
    package = importlib.import_module("citerec")
    for name in package.__all__:
        value = getattr(package, name)
        yield "reference_", name, value
        for key, method in reference.methods(value).items() if inspect.isclass(value) else ():
            yield "reference_", f"{name}.{key}", method
    for path in sorted((ROOT / "citerec").rglob("*.py")):
        dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        module = None if "_modidx" in dotted or ".lab." in dotted else importlib.import_module(dotted)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if getattr(value, "__module__", dotted) not in (dotted, None):
                continue
            yield "modules_", f"{dotted}.{name}", value
            for key, method in reference.methods(value).items() if inspect.isclass(value) else ():
                yield "modules_", f"{dotted}.{name}.{key}", method


def undocumented(pages: dict[str, Page]) -> tuple[int, list[str]]:
    """Count the public names, and list those without an entry, or whose entry lacks a parameter."""
    parts: dict[str, dict[str, str]] = {"reference_": {}, "modules_": {}}
    for name, page in pages.items():
        for kind, found in parts.items():
            found.update(page.parts if name.startswith(kind) else {})
    count, bad = 0, []
    for kind, anchor, value in names():
        count += 1
        text = parts[kind].get(anchor)
        if text is None:
            bad.append(f"{anchor}: no entry on a {kind} page")
        elif inspect.isfunction(value):
            wanted = [p for p in inspect.signature(value).parameters if p not in ("self", "cls")]
            bad += [f"{anchor}: no parameter {p}" for p in wanted if not re.search(rf"\b{re.escape(p)}\b", text)]
    return count, bad


def unlike(pages: dict[str, Page]) -> Iterator[str]:
    """Say which pages lack prose, the version or an edit link that leads somewhere, and which code does not fold."""
    edit = f"{CONFIG.git_url}/edit/{CONFIG.branch}/"
    for name, page in pages.items():
        if len(page.prose.strip()) < LEAST_PROSE:
            yield f"{name}: no prose"
        if f"citerec {CONFIG.version}" not in page.all:
            yield f"{name}: no version"
        edits = [link.removeprefix(edit) for link in page.links if link.startswith(edit)]
        if not edits or not all((ROOT / path).is_file() for path in edits):
            yield f"{name}: no edit link that leads somewhere ({edits})"
        if UNFOLDED.fullmatch(name) and page.loose:
            yield f"{name}: {page.loose} blocks of code do not fold"


CONTRAST = """() => {
  const parse = (c) => {
    const n = (c.match(/[\\d.]+/g) || []).map(Number), unit = c.startsWith("color(") ? 255 : 1;
    return [n[0] * unit, n[1] * unit, n[2] * unit, n[3] ?? 1];
  };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const linear = (v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = (c) => [0, 1, 2].map((i) => linear(c[i] / 255))
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const grounds = new Map();
  const ground = (e) => {
    if (!e) return [255, 255, 255, 1];
    if (!grounds.has(e)) {
      const own = parse(getComputedStyle(e).backgroundColor);
      grounds.set(e, own[3] >= 1 ? own : over(own, ground(e.parentElement)));
    }
    return grounds.get(e);
  };
  const bad = new Map(), seen = new Set(), walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(e)) continue;
    seen.add(e);
    if (!e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || e.closest("svg")) continue;
    const back = ground(e), ink = over(parse(getComputedStyle(e).color), back);
    const [a, b] = [light(back), light(ink)].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
    const place = `${e.tagName.toLowerCase()}.${[...e.classList].join(".")}`;
    if (ratio < LEAST) bad.set(place, `${place} ${ratio.toFixed(2)}: ${walker.currentNode.data.trim().slice(0, 30)}`);
  }
  return [...bad.values()];
}""".replace("LEAST", str(LEAST_CONTRAST))
WIDE = """() => [...document.querySelectorAll("main pre.sourceCode, main table")].filter((e) => {
  const wide = e.checkVisibility() && e.scrollWidth > e.clientWidth + 1;
  return wide && !(e.tagName === "TABLE" && getComputedStyle(e).overflowX === "auto");
}).map((e) => `${e.tagName} ${e.scrollWidth} > ${e.clientWidth}: ${e.textContent.trim().slice(0, 40)}`)
  .concat(document.documentElement.scrollWidth > innerWidth ? [`page ${document.documentElement.scrollWidth}`] : [])"""


@contextlib.contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve the site on this machine: a browser reads no search index from a file."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def searched(page: Any, address: str) -> Iterator[str]:
    """Type what people look for, and say where the first result is another page than theirs."""
    page.goto(f"{address}/index.html")
    box = page.locator("#quarto-search input")
    for word, wanted in SEARCHES.items():
        box.fill("")
        page.evaluate("document.querySelector('.smalldocs-search-results').replaceChildren()")
        box.press_sequentially(word)
        first = page.locator(f".smalldocs-search-results.show .search-result[href*='{wanted}']").first
        with contextlib.suppress(Exception):  # playwright's own error of a wait: the page is not among the results
            first.wait_for(timeout=3000)
        found = page.locator(".smalldocs-search-results .search-result")
        links = [each.get_attribute("href") for each in found.all()[:3]]
        if not links or not re.search(rf"(^|/){re.escape(wanted)}", links[0]):
            yield f"search for {word!r}: {links}, not {wanted}"
    yield from (f"search results: {fault}" for fault in page.evaluate(CONTRAST))


def seen(site: Path, pages: list[str]) -> Iterator[str]:
    """Open every page in a browser, light and dark, wide and narrow, and say what cannot be read."""
    from playwright.sync_api import sync_playwright

    with served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": COLUMN, "height": 900})
        page.route(re.compile(r"^(?!http://127\.0\.0\.1)"), lambda route: route.abort())
        yield from searched(page, address)
        for name in (name for name in pages if not re.match("modules_[1-9]", name)):  # these look as the first one
            page.set_viewport_size({"width": COLUMN, "height": 900})
            page.goto(f"{address}/{name}", wait_until="load")
            page.add_style_tag(content="* { transition: none !important }")
            page.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
            yield from (f"{name}: {fault}" for fault in page.evaluate(WIDE))
            yield from (f"{name}: contrast of {fault}" for fault in page.evaluate(CONTRAST))
            page.evaluate("window.smalldocsToggleScheme && window.smalldocsToggleScheme()")
            page.wait_for_function("getComputedStyle(document.body).backgroundColor !== 'rgb(255, 255, 255)'")
            page.wait_for_function("document.documentElement.classList.contains('quarto-dark')")
            yield from (f"{name}: contrast in the dark of {fault}" for fault in page.evaluate(CONTRAST))
            page.set_viewport_size({"width": PHONE, "height": 900})
            yield from (f"{name} at {PHONE} px: {fault}" for fault in page.evaluate(WIDE))
            page.evaluate("window.smalldocsToggleScheme && window.smalldocsToggleScheme()")
        browser.close()


def main(site: Path) -> int:
    """Print what readers would stumble over."""
    pages = {path.name: Page(path) for path in sorted(site.glob("*.html"))}
    count, bad = undocumented(pages)
    bad += unlike(pages)
    bad += [f"{path.relative_to(site)}: a font from elsewhere" for kind in ("html", "css", "js")
            for path in site.rglob(f"*.{kind}") if FONTS.search(path.read_text(encoding="utf-8"))]
    if BROWSER:
        bad += seen(site, list(pages))
    else:
        print("No browser is installed: search, contrast and widths were not looked at.")
    entries = len(json.loads((site / "search.json").read_text(encoding="utf-8")))
    print(*bad, f"{len(pages)} pages, {count} public names, {entries} places to find, {len(bad)} faults", sep="\n")
    return 1 if bad or not pages else 0


if __name__ == "__main__":
    sys.exit(main((Path(sys.argv[1]) if len(sys.argv) > 1 else CONFIG.doc_path).resolve()))
