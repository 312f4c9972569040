"""Writes the chapters into the sidebar of _quarto.yml, from the numbers of the notebooks and the wings of the house."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WINGS = ["Ground", "Reading", "Sources", "Indexes", "Corpus and ranking", "Language model and agents",
         "Pipeline, search, answers", "Writing", "Evaluation", "Front ends"]  # by the first digit of the number
ELSEWHERE = {"88_results"}  # listed among "About"


def module_of(notebook: Path) -> str:
    """Read which module a notebook exports to; empty if to none."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    found = (re.match(r"#\| default_exp (\S+)", "".join(cell["source"])) for cell in cells)
    return next((match[1] for match in found if match), "")


def section(name: str, pages: list[str]) -> list[str]:
    """One section of the sidebar, as lines of YAML."""
    return [f'          - section: "{name}"', "            contents:", *(f"              - {page}" for page in pages)]


def main() -> None:
    """Put each chapter under its wing; doubles for tests and the lab have sections of their own."""
    numbered = sorted((ROOT / "nbs").glob("[0-9][0-9]*.ipynb"))
    chapters = [path for path in numbered if path.stem not in ELSEWHERE]
    testing = [path.name for path in chapters if module_of(path).startswith("testing.")]
    lines = []
    for digit, wing in enumerate(WINGS):
        pages = [path.name for path in chapters if path.name[0] == str(digit) and path.name not in testing]
        lines += section(f"{digit} · {wing}", pages + ["app.ipynb"] * (wing == "Front ends"))
    lines += section("Testing", testing)
    lines += section("Lab", [f"lab/{path.name}" for path in sorted((ROOT / "nbs" / "lab").glob("*.ipynb"))])
    file = ROOT / "_quarto.yml"
    head, start, rest = file.read_text(encoding="utf-8").partition('      - section: "Chapters"\n        contents:\n')
    end = '          - section: "All names by module"\n'
    file.write_text(head + start + "\n".join(lines) + "\n" + end + rest.partition(end)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
