"""The builders of the docs agree, broken links are seen, and a notebook keeps nothing that does not belong into it."""

import html
import json
import re
import shutil
from difflib import SequenceMatcher

import pytest
import yaml
from conftest import NOTEBOOKS, ROOT, python


def words(page) -> list[str]:
    """What a reader reads on a page, without the title, the code's colours and what stands around it."""
    main = re.search(r"<main\b.*?</main>", page.read_text(encoding="utf-8"), re.DOTALL)[0]
    main = re.sub(r"<(script|style|header|nav)\b.*?</\1>|<!--.*?-->", " ", main, flags=re.DOTALL)
    return re.findall(r"\w+", html.unescape(re.sub(r"<[^>]+>", "", main)))


@pytest.mark.skipif(not shutil.which("quarto"), reason="no Quarto: install it to compare the two builders")
def test_both_builders_say_the_same(tmp_path):
    """Quarto and the builder that needs no installation make the same pages with the same words."""
    for builder in ("quarto", "smalldocs"):
        python(ROOT / ".ci/build_docs.py", tmp_path / builder, builder)
    ours, theirs = ({page.name: page for page in (tmp_path / b).glob("*.html")} for b in ("smalldocs", "quarto"))
    assert set(ours) == set(theirs)
    alike = {name: SequenceMatcher(None, words(ours[name]), words(theirs[name]), False).ratio() for name in ours}
    assert not {name: round(ratio, 3) for name, ratio in alike.items() if ratio < 0.95}


def test_every_entry_of_the_sidebar_is_a_page():
    """Plain `quarto render nbs` finds each page that the sidebar names, and the sidebar names each page once."""
    sidebar = yaml.safe_load((ROOT / "nbs/_quarto.yml").read_text(encoding="utf-8"))["website"]["sidebar"]["contents"]

    def entries(contents):
        for entry in contents:
            yield from entries(entry["contents"]) if isinstance(entry, dict) else [entry]

    named = sorted(entries(sidebar))
    assert named == sorted(path.relative_to(ROOT / "nbs").as_posix() for path in NOTEBOOKS)


def test_broken_links_are_seen(tmp_path):
    """The check of links is worth something: it sees a missing page, a missing part and a missing picture."""
    (tmp_path / "index.html").write_text('<a href="none.html"></a><a href="#none"></a><img src="none.png">')
    with pytest.raises(pytest.fail.Exception, match="3 links inside the site, 3 broken"):
        python(ROOT / ".ci/check_links.py", tmp_path)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_reads_as_a_chapter(notebook):
    """A heading with its one-line subtitle first, then why, then how; closed code fences; no widget state."""
    nb = json.loads(notebook.read_text(encoding="utf-8"))
    texts = ["".join(cell["source"]) for cell in nb["cells"] if cell["cell_type"] == "markdown"]
    assert nb["cells"][0]["cell_type"] == "markdown"
    heading, _, rest = texts[0].partition("\n")
    assert heading.startswith("# ") and rest.strip().startswith("> ")
    assert not [text for text in texts if text.count("```") % 2]
    assert "widgets" not in nb["metadata"]
