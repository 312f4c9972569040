"""The docs site builds, none of its links is broken, and no notebook keeps what does not belong into it."""

import json

import pytest
from conftest import NOTEBOOKS, ROOT, python


def test_site_is_whole(tmp_path):
    """Every page that the notebooks make is there, and every link inside the site leads somewhere."""
    python(ROOT / ".ci/build_docs.py", tmp_path / "site")
    assert len([*(tmp_path / "site").glob("*.html")]) == len(NOTEBOOKS)
    python(ROOT / ".ci/check_links.py", tmp_path / "site")


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
