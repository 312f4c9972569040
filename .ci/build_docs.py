"""Builds the docs site from the notebooks, a page of each: with Quarto where it is installed, else with smalldocs.

Usage: python .ci/build_docs.py [folder [quarto|smalldocs]]
"""

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbdev.serve
import reference
import yaml
from execnb.nbio import mk_cell
from nbdev.config import get_config
from nbdev.doclinks import nbglob
from nbdev.process import Processor
from nbdev.processors import FilterDefaults, exec_show_docs
from nbdev.quarto import refresh_quarto_yml

ROOT = Path(__file__).resolve().parent.parent


EXPORTS = {"export", "exports", "exporti"}


class RunExported(exec_show_docs):
    """Runs the exported cells and those that draw the reference.

    nbdev would also run every test cell in which something is imported, without the cells that it builds on.
    """

    def __call__(self, cell):
        draws = cell.source.lstrip().startswith(("show_doc(", "#| echo", "#| output"))
        if draws or EXPORTS & {*(cell.directives_ or {})}:
            super().__call__(cell)
            for node in ast.parse(cell.source).body:  # annotations may need what only type checkers import
                if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                    self.k.run_cell("\n".join(map(ast.unparse, node.body)))


class KeepIntroduction(Processor):
    """Parts the title from the text below it: nbdev drops what else stands in the title's cell."""

    def begin(self):
        first = self.nb.cells[0]
        title = re.match(r"# .*\n*(> .*)?", first.source)
        if title and (text := first.source[title.end() :].strip()):
            first.source = title[0]
            self.nb.cells.insert(1, mk_cell(text, "markdown"))


class Processors(FilterDefaults):
    """nbdev's own processors, but for the one that runs cells."""

    def base_procs(self):
        own = [RunExported if proc is exec_show_docs else proc for proc in super().base_procs()]
        return [KeepIntroduction, *own]


def page_name(notebook: Path) -> str:
    """Read from a processed notebook how nbdev calls its page: `00_schema.ipynb` becomes `schema.html`."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"]).strip()
        if cell["cell_type"] == "raw" and source.startswith("---"):
            return (yaml.safe_load(source.strip("-")) or {}).get("output-file", f"{notebook.stem}.html")
    return f"{notebook.stem}.html"


def rename_pages(site: Path, processed: Path) -> None:
    """Do what smalldocs leaves out: give the pages nbdev's names, and follow them in every link and index."""
    names = {f"{notebook.stem}.html": page_name(notebook) for notebook in processed.glob("*.ipynb")}
    names = {old: new for old, new in names.items() if old != new}
    for old, new in names.items():
        (site / old).rename(site / new)
    if not names:
        return
    pattern = re.compile(rf"(?<![\w.-])({'|'.join(map(re.escape, names))})\b")
    for path in site.rglob("*"):
        if path.suffix in {".html", ".json", ".xml"}:
            text = path.read_text(encoding="utf-8")
            path.write_text(pattern.sub(lambda match: names[match[0]], text), encoding="utf-8")


def mend_code_links(site: Path, public: str) -> None:
    """Lead nbdev's links to what has no place of its own, methods and private names, to the class or the page."""
    pages = {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}

    def to_place(match: re.Match) -> str:
        page, name = match[1], match[2]
        places = (place for place in (name, name.partition(".")[0]) if f'id="{place}"' in pages.get(page, ""))
        return f"{public}{page}#{next(places, '')}".removesuffix("#")

    pattern = re.compile(rf"{re.escape(public)}([\w./]+\.html)#([\w.]+)")
    for name, text in pages.items():
        (site / name).write_text(pattern.sub(to_place, text), encoding="utf-8")


def fold_code(processed: Path) -> None:
    """Let readers fold the code: that of the results is folded at first, that of tour and guides is open."""
    folds = {"88_results": "true", "diary": "true", "design": "true"} | dict.fromkeys(["tour", "index"], "show")
    for notebook in processed.rglob("*.ipynb"):
        fold = folds.get(notebook.stem, "show" if notebook.stem.startswith("guide_") else "")
        nb = json.loads(notebook.read_text(encoding="utf-8"))
        for cell in nb["cells"] if fold else ():
            if cell["cell_type"] == "code" and "echo: false" not in (source := "".join(cell["source"])):
                cell["source"] = f"#| code-fold: {fold}\n{source}"
        if fold:
            notebook.write_text(json.dumps(nb), encoding="utf-8")


def tidy_signatures(processed: Path) -> None:
    """Take out of signatures what nbdev writes into them: links, shown as Markdown, and pydantic's own parameters."""
    link = re.compile(r"\[(`[^`]+`)\]\([^)\s]+\)")
    private = re.compile(r"__pydantic_self__,\s*|\b_\w+:[^=]*=[^,\s]+,\s*")
    signature = re.compile(r"^```python\ndef .*?^```", re.DOTALL | re.MULTILINE)

    def tidied(match: re.Match) -> str:
        text = link.sub(r"\1", match[0])
        return private.sub("", text) if "__pydantic_self__" in text else text

    for notebook in processed.rglob("*.ipynb"):
        nb = json.loads(notebook.read_text(encoding="utf-8"))
        for output in [output for cell in nb["cells"] for output in cell.get("outputs", ())]:
            if "text/markdown" in (data := output.get("data", {})):
                data["text/markdown"] = signature.sub(tidied, "".join(data["text/markdown"]))
        notebook.write_text(json.dumps(nb), encoding="utf-8")


def complete(config_file: Path, reference_pages: list[str], version: str, address: str) -> None:
    """List the pages of the reference, and name the version at the foot of every page, the repository at its head."""
    config = yaml.safe_load(config_file.read_text(encoding="utf-8"))
    version_link = f"[citerec {version}]({address}/releases)"
    config["website"]["page-footer"] = {"left": version_link, "right": "Apache-2.0", "border": True}
    sidebar = config["website"]["sidebar"]["contents"]
    sections = {entry["section"]: entry for entry in sidebar if isinstance(entry, dict)}
    tasks = [page for page in reference_pages if page.startswith("reference_")]
    sidebar.insert(sidebar.index(sections["About"]), {"section": "Reference", "contents": tasks})
    modules = [page for page in reference_pages if page not in tasks]
    sections["Chapters"]["contents"].append({"section": "All names by module", "contents": modules})
    config["website"]["navbar"]["right"] = [{"icon": "github", "text": "GitHub", "href": address}]
    config_file.write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True), encoding="utf-8")


# guides before the reference before what is told about citerec before the chapters, of weight 1, before what is for few
WEIGHTS = dict(guide_faq=6.5, guide_=6, tour=4, index=4, reference_=3, privacy=3, results=2, design=2, deviations=2,
               modules_=0.4, lab=0.4, testing=0.4)


def improve_search(site: Path) -> None:
    """Say how much each page matters to a reader, and let the site search by words instead of by letters."""
    index = json.loads((site / "search.json").read_text(encoding="utf-8"))
    for part in index:
        part["weight"] = next((w for name, w in WEIGHTS.items() if part["href"].startswith(name)), 1)
    (site / "search.json").write_text(json.dumps(index, ensure_ascii=False), encoding="utf-8")
    for script in site.rglob("fuse.min.js"):  # both builders search with it
        shutil.copy(ROOT / ".ci" / "search.js", script)


def drop_fonts(site: Path) -> None:
    """Let no page ask another server for a font: the themes name one of Google, and fonts of the system after it."""
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"@import\s+url\([^)]*fonts\.googleapis\.com[^)]*\);?", "", text), encoding="utf-8")


def mend_edit_links(site: Path, address: str) -> None:
    """Lead "Edit this page" to what a page is made from: a generated page to the script that writes it."""
    for path in [*site.glob("reference_*.html"), *site.glob("modules_*.html")]:
        text = path.read_text(encoding="utf-8")
        pattern = rf"{re.escape(address)}/(edit|blob)/main/nbs/\w+\.qmd"
        path.write_text(re.sub(pattern, rf"{address}/\1/main/.ci/reference.py", text), encoding="utf-8")


def main(folder: Path, builder: str) -> None:
    """Let nbdev process the notebooks, add the reference, render all, and put the site in its place."""
    config = get_config(path=ROOT)
    refresh_quarto_yml()
    nbdev.serve.FilterDefaults = Processors
    processed = nbdev.serve.proc_nbs(n_workers=0, force=True)
    site = processed / config.doc_path.name
    pages = reference.write(processed)
    fold_code(processed)
    tidy_signatures(processed)
    complete(processed / "_quarto.yml", pages, config.version, config.git_url)
    if builder == "quarto":
        subprocess.run(["quarto", "render", processed, "--no-cache"], check=True)
    else:
        subprocess.run([Path(sys.executable).with_name("smalldocs"), "render", processed], check=True)
        rename_pages(site, processed)
    mend_code_links(site, f"{config.doc_host}{config.doc_baseurl}/")
    mend_edit_links(site, config.git_url)
    improve_search(site)
    drop_fonts(site)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.move(site, folder)
    if any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):  # the app as it is, not as it was
        subprocess.run([sys.executable, ROOT / ".ci" / "app_picture.py", folder / "images" / "app.png"], check=True)
    chapters = [page for page in folder.rglob("*.html") if not page.name.startswith(("reference_", "modules_"))]
    print(f"{len([*folder.rglob('*.html')])} pages in {folder}")
    if len(chapters) != len(notebooks := nbglob(config.nbs_path)):
        raise SystemExit(f"{len(notebooks)} notebooks have made {len(chapters)} pages")


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(Path(given.get(1, ROOT / "_docs")), given.get(2, "quarto" if shutil.which("quarto") else "smalldocs"))
