"""Follows every link of the docs site that stays inside it: pages, their parts, pictures, styles, scripts.

Usage: python .ci/check_links.py [folder]
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

from nbdev.config import get_config

ROOT = Path(__file__).resolve().parent.parent
CONFIG = get_config(path=ROOT)
PUBLIC = f"{CONFIG.doc_host}{CONFIG.doc_baseurl}/"


class Page(HTMLParser):
    """One page: where it leads, and what can be pointed at in it."""

    def __init__(self, path: Path):
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            if name in ("id", "name") and value:
                self.ids.add(value)


def broken(site: Path) -> tuple[int, list[str]]:
    """Count the links inside the site and list those that lead nowhere."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    count, bad = 0, []
    for path, page in pages.items():
        for link in page.links:
            inside = link.removeprefix(PUBLIC)
            if "//" in inside.partition("?")[0] or inside.startswith(("mailto:", "data:", "javascript:")):
                continue  # outside
            count += 1
            where, part = urldefrag(unquote(inside.partition("?")[0] if "#" not in inside else inside))
            base = site if link.startswith(PUBLIC) else path.parent
            target = base / where if where else path
            target = target / "index.html" if target.is_dir() else target
            target = target.resolve()
            if not target.is_file() or (part and target in pages and part not in pages[target].ids):
                bad.append(f"{path.relative_to(site)}: {link}")
    return count, bad


def main(site: Path) -> int:
    """Print what is broken; a site without links is broken as a whole."""
    count, bad = broken(site.resolve())
    print(*bad, f"{count} links inside the site, {len(bad)} broken", sep="\n")
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else CONFIG.doc_path))
