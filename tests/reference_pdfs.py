"""Sets the lists of `reference_lists.py` as PDFs, as journals and conferences do, and reads them again.

Columns, fonts, sizes, hyphens, ligatures, running heads, line numbers, appendices and second lists vary by the seed.
"""

import random
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from fpdf import FPDF

from citerec.markup.formats import Entry
from citerec.markup.sections import reference_list

FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
FACES = {"stix": ("STIXGeneral", "STIXGeneralItalic", "STIXGeneralBol"),
         "serif": ("DejaVuSerif", "DejaVuSerif-Italic", "DejaVuSerif-Bold"),
         "sans": ("DejaVuSans", "DejaVuSans-Oblique", "DejaVuSans-Bold")}
WIDTH, HEIGHT, FOOT = 612, 792, 72  # points
LIGATURES = {"ffi": "ﬃ", "ffl": "ﬄ", "fi": "ﬁ", "fl": "ﬂ"}
PROSE = """A parser reads a sentence and then the next one [1]. Whether a map is right is known once somebody has walked
along the river, as earlier work says [2, 3]. We compare both on the data of others and find that neither is enough.
The results in the table agree with this, and the difference is larger where the river is wide."""


@dataclass(frozen=True)
class Layout:
    """How a paper is set."""
    columns: int
    face: str
    size: float
    hang: float  # points by which the lines of a reference are indented after the first
    hyphens: bool
    ligatures: bool
    line_numbers: bool
    gap: float  # points between references
    head: str  # above every page
    appendix: bool
    heading: str

    @property
    def width(self) -> float: return (WIDTH - 144 - 22 * (self.columns - 1)) / self.columns


def layout_of(seed: int, style: str, label: str, held_out: bool) -> Layout:
    dice = random.Random(f"{style} {seed}")
    hang = 0.0 if not label and style in ("APA", "ACL") and seed == 1 else dice.choice([10.0, 12.0, 15.0])
    return Layout(columns=dice.choice([1, 2]) if seed == 2 else 1 + seed, face=dice.choice(["serif", "sans"])
                  if held_out else "stix",
                  size=dice.choice([7.5, 8.5, 11]) if held_out else dice.choice([9, 10]), hang=hang,
                  hyphens=dice.random() < .8,
                  ligatures=dice.random() < .6, line_numbers=seed != 1 and dice.random() < .35, gap=0 if hang
                  and dice.random() < .4 else dice.choice([3, 5]) if hang else 6,
                  head=dice.choice(["", "Kim and Moe: Maps of Unseen Rivers",
                                    "IEEE TRANSACTIONS ON MAPS, VOL. 3, NO. 2, MAY 2021"]),
                  appendix=dice.random() < .5,
                  heading=dice.choice(["References", "REFERENCES", "7 References", "Bibliography"]))


Run = tuple[str, str]  # a font ("", "I", "B") and a text


class Setter:
    """Sets lines in columns on pages."""

    def __init__(self, layout: Layout):
        self.layout, self.pdf = layout, FPDF(unit="pt", format=(WIDTH, HEIGHT))
        self.pdf.set_auto_page_break(False)
        for font, name in zip(("", "I", "B"), FACES[layout.face], strict=True): self.pdf.add_font("face", font,
                                                                                                  FONTS / f"{name}.ttf")
        self.column, self.y, self.number = layout.columns, 0.0, 0
        self.advance()

    def advance(self) -> None:
        self.column += 1
        if self.column >= self.layout.columns:
            self.pdf.add_page()
            self.column = 0
            page = self.pdf.page_no()
            if self.layout.head and page > 1: self.put(72, 48, self.layout.head, 8)
            self.put(300, HEIGHT - 40, str(page), 9)
        self.y = 84.0 if self.pdf.page_no() > 1 or self.column else 130.0

    def put(self, x: float, y: float, text: str, size: float, font: str = "") -> None:
        self.pdf.set_font("face", font, size)
        self.pdf.text(x, y, text)

    @property
    def left(self) -> float: return 72 + self.column * (self.layout.width + 22)

    def room(self, leading: float) -> None:
        if self.y + leading > HEIGHT - FOOT: self.advance()

    def measure(self, run: Run, size: float) -> float:
        self.pdf.set_font("face", run[0], size)
        return float(self.pdf.get_string_width(run[1]))

    def line(self, words: Sequence[Run], indent: float, size: float, justified: bool) -> None:
        """Set one line; a line that is not the last of its paragraph is as wide as the column."""
        leading = size * 1.2
        self.room(leading)
        widths = [self.measure(word, size) for word in words]
        space = self.measure(("", " "), size)
        if justified and len(words) > 1: space = max(space * .8,
                                                     (self.layout.width - indent - sum(widths)) / (len(words) - 1))
        x = self.left + indent
        for word, width in zip(words, widths, strict=True):
            self.put(x, self.y, word[1], size, word[0])
            x += width + space
        if self.layout.line_numbers:
            self.number += 1
            self.put(48 if not self.column else WIDTH - 56, self.y, f"{self.number:03}", 6)
        self.y += leading

    def broken(self, word: str, room: float, size: float, font: str) -> tuple[str, str] | None:
        """A word in two parts where the first fits: an address after one of its signs, a word with a hyphen."""
        address = "/" in word and ("." in word or ":" in word)
        plain = self.layout.hyphens and re.fullmatch(r"[^\W\d_]{7,}[.,:;]?", word)
        if address: places = [m.end() for m in re.finditer(r"[/._-]", word) if 3 < m.end() < len(word) - 1]
        elif plain:
            syllables = re.finditer(r"[aeiou][^aeiou\W](?=[^\W\d_]{3})", word)
            places = [m.end() for m in syllables if m.end() > 2]
        elif "-" in word.strip("-"): places = [m.end() for m in re.finditer("-", word) if m.end() < len(word)]
        else: return None
        for at in reversed(places):
            head = word[:at] + ("" if address or word[at - 1] == "-" else "-")
            if self.measure((font, head), size) <= room: return head, word[at:]
        return None

    def paragraph(self, runs: Sequence[Run], first: float, others: float, size: float) -> None:
        words = [(font, word) for font, text in runs for word in text.split()]
        line, used, indent = list[Run](), 0.0, first
        space = self.measure(("", " "), size)
        while words:
            font, word = words.pop(0)
            width, room = self.measure((font, word), size), self.layout.width - indent - used - (space if line else 0)
            if width <= room:
                used += width + (space if line else 0)
                line.append((font, word))
                continue
            if parts := self.broken(word, room, size, font):
                line.append((font, parts[0]))
                words.insert(0, (font, parts[1]))
            elif not line: line.append((font, word))
            else: words.insert(0, (font, word))
            self.line(line, indent, size, True)
            line, used, indent = [], 0.0, others
        if line: self.line(line, indent, size, False)

    def heading(self, text: str) -> None:
        self.room(60)
        self.y += 12
        self.put(self.left, self.y, text, 12, "B")
        self.y += 18

    def label(self, text: str, size: float) -> None:
        self.room(size * 1.2)
        self.put(self.left + max(0, self.layout.hang + 6 - self.measure(("", text), size) - 4), self.y, text, size)


def runs_of(text: str) -> Iterator[Run]:
    """The runs of a text in which \1 toggles italics and \2 bold letters."""
    font = ""
    for piece in re.split("([\1\2])", text):
        if piece == "\1": font = "" if font == "I" else "I"
        elif piece == "\2": font = "" if font == "B" else "B"
        elif piece: yield font, piece


def ligated(text: str) -> str:
    for plain, sign in LIGATURES.items(): text = text.replace(plain, sign)
    return text


def set_paper(layout: Layout, texts: Sequence[str], label: str, dice: random.Random) -> bytes:
    """A paper whose references are given."""
    setter = Setter(layout)
    setter.put(72, 84, "Maps of Unseen Rivers", 17, "B")
    setter.put(72, 108, "Ann Kim and Bo Moe", 11)
    number = "7" if layout.heading[0] == "7" else ""
    for section in ("1 Introduction", "2 Methods", "3 Results", "4 Discussion", "5 Limits", "6 Conclusion"):
        setter.heading(section if number else section[2:])
        for _ in range(dice.randrange(1,
                                      4)): setter.paragraph([("",
                                                              ". ".join(dice.sample(PROSE.rstrip(".").split(". "), 3))
                                                              + ".")], 0, 0, layout.size)
    setter.heading(layout.heading)
    for n, text in enumerate(texts, 1):
        text = ligated(text) if layout.ligatures else text
        if label:
            setter.label(label.replace("1", str(n)), layout.size)
            setter.paragraph([*runs_of(text)], layout.hang + 8, layout.hang + 8, layout.size)
        else: setter.paragraph([*runs_of(text)], 0, layout.hang, layout.size)
        setter.y += layout.gap
    if layout.appendix:
        setter.heading("A Proofs")
        for _ in range(3): setter.paragraph([("", PROSE)], 0, 0, layout.size)
    return bytes(setter.pdf.output())


def listed(listing, keep: str = "") -> tuple[list[str], list[Entry]]:
    """The texts and the entries of a list that was set as a PDF."""
    layout = layout_of(listing.seed, listing.style, listing.label, listing.held_out)
    made = set_paper(layout, listing.texts, listing.label, random.Random(listing.seed))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(keep or folder) / f"{listing.style}-{listing.seed}.pdf"
        path.write_bytes(made)
        found = reference_list(path)
    return [r.text for r in found], [r.entry for r in found]
