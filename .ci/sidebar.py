"""Writes the chapters into the sidebar of the docs, from the numbers of the notebooks and the wings of the house."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WINGS = ["Ground", "Markup", "Sources", "Indexes", "Corpus and ranking", "Language model and agents", "Answering",
         "Writing", "Evaluation", "Front ends"]  # by the first digit of the number
ELSEWHERE = {"88_results"}  # listed among "About"
LAST = ["as_module.ipynb", "app.ipynb"]  # pages without a number, after the front ends


def section(name: str, pages: list[str]) -> list[str]:
    """One section of the sidebar, as lines of YAML."""
    return [f'          - section: "{name}"', "            contents:", *(f"              - {page}" for page in pages)]


def main() -> None:
    """Put each chapter under its wing; doubles for tests and the lab have sections of their own."""
    nbs = ROOT / "nbs"
    chapters = [path.name for path in sorted(nbs.glob("[0-9][0-9]_*.ipynb")) if path.stem not in ELSEWHERE]
    lines = []
    for digit, wing in enumerate(WINGS):
        pages = [page for page in chapters if page[0] == str(digit)]
        lines += section(f"{digit} · {wing}", pages + (LAST if wing == "Front ends" else []))
    for folder in ("testing", "lab"):
        pages = [f"{folder}/{path.name}" for path in sorted((nbs / folder).glob("*.ipynb"))]
        lines += section(folder.capitalize(), pages)
    file = nbs / "_quarto.yml"
    head, start, rest = file.read_text(encoding="utf-8").partition('      - section: "Chapters"\n        contents:\n')
    end = "\nmetadata-files:"
    file.write_text(head + start + "\n".join(lines) + "\n" + end + rest.partition(end)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
