"""PDFs that somebody made to do harm: each is to be read or refused within limits, and by a process of its own.

`python tests/hostile_pdfs.py [name ...]` makes all (or some), reads each in a fresh process, and prints a table.
`python tests/hostile_pdfs.py --service` uploads them to a service, and times the questions of others meanwhile.
"""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

CASES: dict[str, Callable[[], bytes | list[bytes] | None]] = {}  # name -> what makes the file
PLACES: dict[str, Callable[[Path], object]] = {}  # name -> what puts something that is no usual file at a path
SAID = "Nobody should wait long for a paper like this one."  # the text that a page has besides what is hostile


def case(make: Callable) -> Callable:
    CASES[make.__name__] = make
    return make


def place(make: Callable) -> Callable:
    PLACES[make.__name__] = make
    return make


# --- The parts of a file ------------------------------------------------------------------------------------------


def stream(body: bytes, about: str = "") -> bytes:
    return b"<<%s/Length %d>>stream\n" % (about.encode(), len(body)) + body + b"\nendstream"


def drawn(text: str = SAID, more: bytes = b"") -> bytes:
    return b"BT /F0 10 Tf 72 700 Td (" + text.encode("latin-1") + b") Tj ET\n" + more


def file_of(objects: dict[int, bytes], trailer: str = "/Root 1 0 R") -> bytes:
    """A file of numbered objects, with a table of where they are."""
    out, starts = bytearray(b"%PDF-1.7\n"), {}
    for number, body in objects.items():
        starts[number] = len(out)
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    rows = "".join(f"{n} 1\n{start:010} 00000 n \n" for n, start in starts.items())
    table = f"xref\n0 1\n0000000000 65535 f \n{rows}trailer<</Size {max(objects) + 1}{trailer}>>\n"
    return bytes(out) + f"{table}startxref\n{len(out)}\n%%EOF\n".encode()


def paper(content: bytes = b"", *, about: str = "", resources: str = "", page: str = "", catalog: str = "",
          pages: str = "", more: dict[int, bytes] | None = None, trailer: str = "/Root 1 0 R",
          box: str = "0 0 612 792") -> bytes:
    """A paper of one page; what is given is added to its parts."""
    return file_of({
        1: f"<</Type/Catalog/Pages 2 0 R{catalog}>>".encode(),
        2: (pages or "<</Type/Pages/Kids[3 0 R]/Count 1>>").encode(),
        3: f"<</Type/Page/Parent 2 0 R/MediaBox[{box}]/Contents 4 0 R{page}"
           f"/Resources<</Font<</F0 5 0 R>>{resources}>>>>".encode(),
        4: stream(content or drawn(), about),
        5: b"<</Type/Font/Subtype/Type1/BaseFont/Times-Roman/Encoding/WinAnsiEncoding>>",
        **(more or {}),
    }, trailer)


def zeros(megabytes: int, byte: bytes = b"\0") -> bytes:
    """The same byte many times, compressed: blocks that end at a byte can be repeated as they are."""
    packer = zlib.compressobj(9)
    first = packer.compress(byte * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(byte * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + block * (megabytes - 1) + b"\x03\x00"


def form(draws: str, others: str) -> bytes:
    return stream(draws.encode(), f"/Type/XObject/Subtype/Form/BBox[0 0 612 792]/Resources<</XObject<<{others}>>>>")


def chain(depth: int, times: int) -> bytes:
    """Forms, each of which draws the next one several times."""
    forms = {n: form(f"/X{n + 1} Do " * times, f"/X{n + 1} {n + 1} 0 R") for n in range(10, 10 + depth)}
    forms[10 + depth] = form("BT ET", "")
    return paper(drawn(more=b"/X10 Do"), resources="/XObject<</X10 10 0 R>>", more=forms)


# --- Content that draws itself ------------------------------------------------------------------------------------


@case
def form_draws_itself():
    return paper(drawn(more=b"/X Do"), resources="/XObject<</X 10 0 R>>", more={10: form("/X Do /X Do", "/X 10 0 R")})


@case
def forms_draw_each_other():
    forms = {10: form("/Y Do /Y Do", "/Y 11 0 R"), 11: form("/X Do /X Do", "/X 10 0 R")}
    return paper(drawn(more=b"/X Do"), resources="/XObject<</X 10 0 R>>", more=forms)


@case
def forms_double_28_times(): return chain(28, 2)


@case
def forms_of_100_in_5_levels(): return chain(5, 100)


@case
def pattern_paints_itself():
    pattern = stream(b"/Pattern cs /P scn 0 0 100 100 re f",
                     "/Type/Pattern/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 9 9]/XStep 1/YStep 1"
                     "/Resources<</Pattern<</P 10 0 R>>>>")
    return paper(drawn(more=b"/Pattern cs /P scn 0 0 500 500 re f"), resources="/Pattern<</P 10 0 R>>",
                 more={10: pattern})


@case
def mask_masks_itself():
    state = b"<</SMask<</S/Luminosity/G 11 0 R>>>>"
    group = stream(b"/G gs /X Do", "/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Group<</S/Transparency>>"
                   "/Resources<</ExtGState<</G 10 0 R>>/XObject<</X 11 0 R>>>>")
    return paper(drawn(more=b"/G gs /X Do"), resources="/ExtGState<</G 10 0 R>>/XObject<</X 11 0 R>>",
                 more={10: state, 11: group})


@case
def letters_draw_themselves():
    font = (b"<</Type/Font/Subtype/Type3/FontBBox[0 0 9 9]/FontMatrix[1 0 0 1 0 0]/FirstChar 97/LastChar 97/Widths[9]"
            b"/CharProcs<</a 11 0 R>>/Encoding<</Differences[97/a]>>/Resources<</Font<</T 10 0 R>>>>>>")
    return paper(drawn(more=b"BT /T 10 Tf (aaaa) Tj ET"), resources="/XObject<<>>",
                 more={10: font, 11: stream(b"9 0 d0 BT /T 9 Tf (aaaa) Tj ET")}).replace(
                     b"/F0 5 0 R", b"/F0 5 0 R/T 10 0 R")


# --- Content that grows -------------------------------------------------------------------------------------------


@case
def flate_4_gb(): return paper(zeros(4096, b" "), about="/Filter/FlateDecode")


@case
def flate_in_flate():
    return paper(zlib.compress(zeros(4096, b" "), 9), about="/Filter[/FlateDecode/FlateDecode]")


@case
def flate_in_flate_in_flate():
    packed = zlib.compress(zlib.compress(zeros(8192, b" "), 9), 9)
    return paper(packed, about="/Filter[/FlateDecode/FlateDecode/FlateDecode]")


@case
def flate_900_mb_with_text():
    return paper(zlib.compress(drawn())[:-4] + zeros(900, b" ")[2:], about="/Filter/FlateDecode")


@case
def run_length(): return paper(zlib.compress(b"\x81 " * 2**25, 9), about="/Filter[/FlateDecode/RunLengthDecode]")


@case
def lzw(): return paper(zlib.compress(bytes.fromhex("800b6050") * 2**22), about="/Filter[/FlateDecode/LZWDecode]")


@case
def thousand_filters(): return paper(drawn().hex().encode(), about=f"/Filter[{'/ASCIIHexDecode' * 1000}]")


@case
def predictor():
    return paper(zeros(1500), about="/Filter/FlateDecode/DecodeParms<</Predictor 12/Columns 2147483647/Colors 32>>")


@case
def contents_100_000_times():
    return paper(drawn(), page=f"/Contents[{'10 0 R ' * 100_000}]", more={10: stream(drawn() * 100)}).replace(
        b"/Contents 4 0 R", b"")


@case
def flate_in_letters():
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Times-Roman/ToUnicode 11 0 R>>"
    return paper(more={5: font, 11: stream(zeros(3000, b"<"), "/Filter/FlateDecode")})


@case
def flate_in_font_file():
    font = b"<</Type/Font/Subtype/TrueType/BaseFont/X/FontDescriptor 11 0 R/FirstChar 0/LastChar 0/Widths[1]>>"
    return paper(more={5: font, 11: b"<</Type/FontDescriptor/FontName/X/Flags 4/FontFile2 12 0 R>>",
                       12: stream(zeros(3000), "/Filter/FlateDecode/Length1 2147483647")})


@case
def flate_in_object_stream():
    return paper(more={11: stream(zeros(3000, b"0"), "/Type/ObjStm/N 1000000/First 9000000/Filter/FlateDecode")},
                 trailer="/Root 1 0 R/Info 12 0 R") + b"12 0 obj 11 0 R endobj"


@case
def inline_image():
    return paper(drawn(more=b"BI /W 60000 /H 60000 /BPC 8 /CS /RGB /F /Fl ID " + zeros(3000) + b" EI"))


@case
def inline_images_100_000():
    return paper(drawn(more=b"BI /W 9999 /H 9999 /BPC 8 /CS /G /F /CCF ID x EI\n" * 100_000))


def image(filters: str, body: bytes, more: str = "") -> bytes:
    about = f"/Type/XObject/Subtype/Image/Width 65000/Height 65000/BitsPerComponent 8/ColorSpace/DeviceRGB{more}"
    picture = stream(body, f"{about}/Filter{filters}")
    return paper(b"/I Do " * 100, resources="/XObject<</I 10 0 R>>", more={10: picture})


@case
def image_jbig2():
    page = bytes.fromhex("00000000 30 00 01 00000013") + bytes.fromhex("0000ffff 0000ffff 00000000 00000000 00 0000")
    return image("/JBIG2Decode", page)


@case
def image_jpx():
    size = bytes.fromhex("ff4f ff51 002f 0000" + "7fffffff 7fffffff 00000000 00000000" * 2 + "0003")
    return image("/JPXDecode", size + b"\x07\x01\x01" * 3)


@case
def image_jpeg():
    return image("/DCTDecode", bytes.fromhex("ffd8 ffc0 0011 08 ffff ffff 03 011100 021101 031101 ffda"))


@case
def image_flate(): return image("/FlateDecode", zeros(3000))


# --- Trees of pages -----------------------------------------------------------------------------------------------


@case
def pages_of_itself(): return paper(pages="<</Type/Pages/Kids[2 0 R 2 0 R 3 0 R]/Count 1000000>>")


@case
def page_100_000_times(): return paper(pages=f"<</Type/Pages/Kids[{'3 0 R ' * 100_000}]/Count 100000>>")


@case
def page_2_900_times_dense():
    lines = b"".join(b"BT /F0 9 Tf 72 %d Td (We read line %d of a page that is repeated many times.) Tj ET\n" % (y, y)
                     for y in range(80, 700, 9))
    return paper(lines, pages=f"<</Type/Pages/Kids[{'3 0 R ' * 2900}]/Count 2900>>")


@case
def pages_100_000():
    kids = range(10, 100_010)
    return paper(pages=f"<</Type/Pages/Kids[{''.join(f'{n} 0 R ' for n in kids)}]/Count 100000>>",
                 more={n: b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>" for n in kids})


@case
def pages_50_000_deep():
    nodes = {n: b"<</Type/Pages/Parent %d 0 R/Kids[%d 0 R]/Count 1>>" % (n - 1, n + 1) for n in range(10, 50_010)}
    nodes[50_010] = b"<</Type/Page/Parent 50009 0 R/MediaBox[0 0 612 792]/Contents 4 0 R>>"
    return paper(pages="<</Type/Pages/Kids[10 0 R]/Count 1>>", more=nodes)


@case
def count_of_2_billion(): return paper(pages="<</Type/Pages/Kids[3 0 R]/Count 2147483647>>")


@case
def count_below_zero(): return paper(pages="<</Type/Pages/Kids[3 0 R]/Count -5>>")


@case
def pages_are_the_catalog(): return paper(trailer="/Root 2 0 R")


@case
def parent_is_the_page(): return paper().replace(b"/Parent 2 0 R", b"/Parent 3 0 R").replace(b"/MediaBox", b"/Mediabox")


# --- Much text ----------------------------------------------------------------------------------------------------


@case
def words_200_000():
    return paper(b"".join(b"BT /F0 9 Tf %d %d Td (word%d) Tj ET\n" % (n * 37 % 600, n * 91 % 790, n)
                          for n in range(200_000)))


@case
def words_30_000_in_disorder():
    return paper(b"".join(b"BT /F0 %d Tf %d %d Td (Word%d.) Tj ET\n" % (5 + n % 9, n * 37 % 600, n * 91 % 790, n)
                          for n in range(30_000)))


@case
def words_at_one_place(): return paper(b"BT /F0 9 Tf 72 700 Td (Word) Tj ET\n" * 60_000)


@case
def word_of_5_mb(): return paper(drawn("a" * 5_000_000))


@case
def text_of_8_mb():
    return paper(b"BT /F0 1 Tf 1 TL 9 780 Td\n" + b"(We read one line after another. ) '\n" * 250_000 + b"ET")


@case
def accents_100_000(): return paper(drawn("\xb4a" * 100_000))


@case
def accents_without_letters(): return paper(drawn("\xb4 \xa8 " * 50_000 + SAID))


@case
def spaces_5_mb(): return paper(drawn(SAID + " " * 5_000_000))


@case
def array_of_5_million_gaps(): return paper(drawn(more=b"BT /F0 9 Tf [" + b"(a)-9 " * 2_000_000 + b"] TJ ET"))


@case
def lines_of_numbers(): return lined(lambda n: "1." * 60 + f" {n}")


@case
def lines_of_names(): return lined(lambda n: "A. Bee, " * 40 + "and " * 20)


@case
def lines_of_brackets(): return lined(lambda n: "[" * 60 + "]" * 60)


@case
def lines_of_hyphens(): return lined(lambda n: "a-" * 80)


@case
def lines_in_capitals(): return lined(lambda n: f"REFERENCES AND APPENDIX {n} " * 4)


def lined(text: Callable[[int], str], n: int = 5000) -> bytes:
    """Lines of one kind, in sizes that change, as if each were a heading."""
    rows = b"".join(b"BT /F0 %d Tf 50 %d Td (%s) Tj ET\n" % (6 + i % 7, 9000 - 14 * i, text(i).encode("latin-1"))
                    for i in range(n))
    return paper(rows, box="0 -70000 2000 10000")


@case
def pages_500_of_words():
    page = b"".join(b"BT /F0 9 Tf %d %d Td (Wo%d) Tj ET\n" % (50 + n % 20 * 25, 60 + n // 20 * 9, n)
                    for n in range(1600))
    return paper(page, pages=f"<</Type/Pages/Kids[{'3 0 R ' * 500}]/Count 500>>")


@case
def places_beyond_numbers():
    rows = b"".join(b"BT /F0 %s Tf %s %s Td (Word beyond the page) Tj ET\n" % (a, b, a)
                    for a in (b"1e38", b"-99999999999999999999", b"0", b".0000000000000000001")
                    for b in (b"1e39", b"-1", b"9"))
    return paper(rows + drawn())


@case
def box_without_end(): return paper(box="-1e38 -1e38 1e38 1e38")


@case
def box_of_nothing(): return paper(box="0 0 0 0")


@case
def letters_beyond_unicode():
    table = b"begincmap 1 begincodespacerange <00> <ff> endcodespacerange 2 beginbfrange <00> <7f> <ffffffff> " \
            b"<80> <ff> <d800d800> endbfrange endcmap"
    return paper(more={5: b"<</Type/Font/Subtype/Type1/BaseFont/Times-Roman/ToUnicode 11 0 R>>", 11: stream(table)})


@case
def fonts_100_000():
    names = "".join(f"/G{n} 5 0 R" for n in range(100_000))
    rows = b"".join(b"BT /G%d 9 Tf 72 %d Td (Word %d) Tj ET\n" % (n, n % 700, n) for n in range(20_000))
    return paper(rows).replace(b"/F0 5 0 R", names.encode())


# --- Nesting and references ---------------------------------------------------------------------------------------


@case
def arrays_in_arrays(): return paper(page=f"/X {'[' * 500_000}")


@case
def dicts_in_dicts(): return paper(page="/X " + "<</X " * 300_000)


@case
def strings_in_strings(): return paper(page="/X " + "(" * 1_000_000)


@case
def arrays_in_content(): return paper(drawn(more=b"[" * 1_000_000))


@case
def states_in_states(): return paper(drawn(more=b"q " * 3_000_000))


@case
def marks_in_marks(): return paper(drawn(more=b"/A <</B /C>> BDC " * 400_000))


@case
def clips_200_000(): return paper(drawn(more=b"q 0 0 9 9 re W n 0 0 8 8 re f " * 200_000))


@case
def encoding_of_itself():
    return paper(more={5: b"<</Type/Font/Subtype/Type1/BaseFont/X/Encoding 10 0 R>>",
                       10: b"<</BaseEncoding 10 0 R/Differences[0 10 0 R 10 0 R]>>"})


@case
def font_of_itself():
    return paper(more={5: b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/DescendantFonts[5 0 R]>>"})


@case
def letters_by_a_loop():
    return paper(more={5: b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding 11 0 R/ToUnicode 11 0 R"
                          b"/DescendantFonts[10 0 R]>>",
                       10: b"<</Type/Font/Subtype/CIDFontType2/BaseFont/X/CIDSystemInfo<<>>/CIDToGIDMap 11 0 R>>",
                       11: stream(b"/X usecmap 1 begincidrange <0000> <ffff> 0 endcidrange " * 20_000,
                                  "/Type/CMap/CMapName/X/UseCMap 11 0 R")})


@case
def function_of_itself():
    return paper(drawn(more=b"/S sh"), resources="/Shading<</S<</ShadingType 2/ColorSpace/DeviceGray/Coords[0 0 9 9]"
                 "/Function 10 0 R>>>>", more={10: b"<</FunctionType 3/Domain[0 1]/Functions[10 0 R 10 0 R]/Bounds[.5]"
                                                   b"/Encode[0 1 0 1]>>"})


@case
def colours_of_itself():
    return paper(drawn(more=b"/C cs 1 sc"), resources="/ColorSpace<</C 10 0 R>>",
                 more={10: b"[/Indexed 10 0 R 255 10 0 R]"})


@case
def length_of_itself():
    return paper(more={4: b"<</Length 4 0 R>>stream\n" + drawn() + b"\nendstream"})


@case
def length_below_zero(): return paper(more={4: b"<</Length -1>>stream\n" + drawn() + b"\nendstream"})


@case
def object_4_billion():
    return paper().replace(b"3 0 obj", b"4294967295 0 obj").replace(b"[3 0 R]", b"[4294967295 0 R]")


@case
def size_of_4_billion(): return paper(trailer="/Root 1 0 R/Size 4294967295").replace(b"/Size 6", b"")


@case
def objects_300_000(): return paper(more={n: b"[%d 0 R]" % (n + 1) for n in range(10, 300_000)})


@case
def information_of_itself():
    return paper(more={10: b"<</Title 11 0 R/Author 10 0 R>>", 11: b"11 0 R"}, trailer="/Root 1 0 R/Info 10 0 R")


@case
def title_of_20_mb():
    return paper(more={10: b"<</Title(" + b"T" * 20_000_000 + b")>>"}, trailer="/Root 1 0 R/Info 10 0 R")


@case
def outlines_10_000():
    marks = {n: b"<</Title(x)/Parent 10 0 R/Next %d 0 R/First 10 0 R>>" % (n + 1) for n in range(11, 10_011)}
    return paper(catalog="/Outlines 10 0 R", more={10: b"<</First 11 0 R/Last 11 0 R>>", **marks})


@case
def annotations_100_000():
    link = b"<</Subtype/Link/A<</S/URI/URI(http://x)>>/P 3 0 R>>"
    return paper(page=f"/Annots[{'10 0 R ' * 100_000}]", more={10: link})


@case
def acts_when_opened():
    act = "/OpenAction<</S/JavaScript/JS(while(true){app.launchURL('http://127.0.0.1:9')})/Next<</S/Launch/F(/bin/sh)>>>>"
    return paper(catalog=act)


# --- Tables of objects --------------------------------------------------------------------------------------------


@case
def table_of_itself():
    whole = paper()
    return whole.replace(b"/Root", b"/Prev %d/Root" % int(re.findall(rb"startxref\n(\d+)", whole)[0]))


@case
def tables_100_000():
    whole, at = paper(), 0
    for _ in range(20_000):
        start, tail = len(whole), at or int(re.findall(rb"startxref\n(\d+)", whole)[0])
        whole += b"xref\n0 0\ntrailer<</Root 1 0 R/Size 6/Prev %d>>\n" % tail
        at = start
    return whole + b"startxref\n%d\n%%%%EOF" % at


def xref_stream(about: str, body: bytes = b"") -> bytes:
    whole = paper()
    whole = whole[: whole.index(b"xref\n0 1")]
    table = stream(body, f"/Type/XRef/Root 1 0 R{about}")
    return whole + b"9 0 obj" + table + b"endobj\nstartxref\n%d\n%%%%EOF" % len(whole)


@case
def xref_stream_of_itself():
    whole = xref_stream("/Size 10/W[1 4 2]/Prev 0000000000")
    return whole.replace(b"0000000000", b"%010d" % int(re.findall(rb"startxref\n(\d+)", whole)[0]))


@case
def xref_stream_of_4_billion():
    return xref_stream("/Size 4294967295/W[1 4 2]/Index[0 4294967295]/Filter/FlateDecode", zeros(3000, b"\1"))


@case
def xref_stream_of_wide_fields(): return xref_stream("/Size 10/W[2147483647 2147483647 2147483647]", b"x" * 1000)


@case
def xref_stream_of_objects_in_each_other(): return xref_stream("/Size 10/W[1 1 1]", b"\2\5\0" * 10)


@case
def table_of_nonsense(): return re.sub(rb"\d{10} 00000 n", b"9999999999 00000 n", paper())


@case
def no_table(): return paper().partition(b"xref\n0 1")[0]


@case
def trailers_300_000(): return paper().partition(b"xref\n0 1")[0] + b"trailer<</Root 1 0 R/Prev 9>>\n" * 300_000


@case
def headers_1_million(): return b"1 0 obj\n" * 1_000_000 + paper()


@case
def locked():
    lock = f"/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<{'5a' * 32}>/U<{'a5' * 32}>>>/ID[<00><00>]"
    return paper(trailer=f"/Root 1 0 R{lock}")


@case
def locked_by_a_billion_rounds():
    return paper(trailer=f"/Root 1 0 R/Encrypt<</Filter/Standard/V 5/R 6/Length 256/P -4/O<{'5a' * 48}>/U<{'a5' * 48}>"
                         f"/OE<{'00' * 32}>/UE<{'00' * 32}>/Perms<{'00' * 16}>/StmF/S/StrF/S"
                         "/CF<</S<</CFM/AESV3/Length 2147483647>>>>>>/ID[<00><00>]")


# --- What is no PDF, or no file -----------------------------------------------------------------------------------


@case
def cut_in_half():
    whole = words_30_000_in_disorder()
    return whole[: len(whole) // 2]


@case
def empty(): return b""


@case
def only_a_header(): return b"%PDF-1.7\n"


@case
def a_text(): return SAID.encode() * 100


@case
def a_page_of_html(): return b"<!doctype html><title>404</title>%PD"


@case
def an_archive(): return b"PK\x03\x04" + bytes(5000)


@case
def noise(): return b"%PDF-1.4\n" + bytes(range(256)) * 4000


@place
def a_pipe(path): os.mkfifo(path)


@place
def a_folder(path): path.mkdir()


@place
def a_link_to_zeros(path): path.symlink_to("/dev/zero")


@place
def a_link_to_itself(path): path.symlink_to(path)


@place
def a_link_to_a_pipe(path):
    os.mkfifo(path.with_suffix(".fifo"))
    path.symlink_to(path.with_suffix(".fifo"))


@place
def a_socket(path):
    here = os.getcwd()
    os.chdir(path.parent)
    try: socket.socket(socket.AF_UNIX).bind(path.name)
    finally: os.chdir(here)


@place
def nothing(path): pass


@place
def a_file_of_20_gb(path):
    path.write_bytes(paper())
    os.truncate(path, 20 * 2**30)


def put(name: str, folder: Path) -> Path:
    """Make one of the files."""
    path = folder / f"{name}.pdf"
    if name in PLACES: PLACES[name](path)
    else: path.write_bytes(CASES[name]())
    return path


# --- Reading them -------------------------------------------------------------------------------------------------

READ = """
import json, resource, sys, time
from citerec.markup.sections import read_pdf
begun = time.perf_counter()
try: said = f"read: {read_pdf(sys.argv[1]).pages} pages"
except Exception as e: said = f"{type(e).__name__}: {e}"
peak = [resource.getrusage(who).ru_maxrss // 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps([said, time.perf_counter() - begun, *peak]))
"""


def read(path: Path, patience: float = 60) -> tuple[str, float, int, int]:
    """Read a PDF in a fresh process: what came of it, seconds, and MB that this process and its children took."""
    command = [sys.executable, "-P", "-c", READ, str(path)]
    begun = time.perf_counter()
    try: done = subprocess.run(command, capture_output=True, text=True, timeout=patience)
    except subprocess.TimeoutExpired: return "NO END", patience, -1, -1
    if done.returncode: return f"CRASH {done.returncode} {done.stderr[-80:]!r}", time.perf_counter() - begun, -1, -1
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def read_all(wanted: list[str]) -> int:
    """Print what comes of each file; gives how many go beyond the limits."""
    bad = 0
    for name in wanted:
        with tempfile.TemporaryDirectory() as folder:
            said, seconds, own, child = read(put(name, Path(folder)))
            fault = not said.startswith(("read", "InputError")) or seconds > 21 or max(own, child) > 1024
            bad += fault
            said = said.replace(f"{folder}/", "").replace("\n", " ")[:110]
            took = f"{seconds:6.2f} s {own:5} MB {child:5} MB"
            print(f"{'FAULT' if fault else 'ok':5} {name:32} {took}  {said}", flush=True)
    print(f"{len(wanted)} files, {bad} beyond the limits")
    return bad


# --- A service to which they are sent -----------------------------------------------------------------------------

WORST = """form_draws_itself flate_in_flate page_100_000_times page_2_900_times_dense words_200_000 marks_in_marks
    inline_images_100_000 contents_100_000_times""".split()


def seconds_of(ask: Callable[[int], object], n: int) -> list[float]:
    out = []
    for i in range(n):
        begun = time.perf_counter()
        ask(i)
        out.append(time.perf_counter() - begun)
    return sorted(out)


def serve(wanted: list[str], n: int = 60) -> int:
    """Upload the files, four at a time, to a service, and time the questions of somebody else; gives 1 if too slow."""
    import httpx

    with tempfile.TemporaryDirectory() as folder:
        files = {name: put(name, Path(folder)).read_bytes() for name in wanted if name in CASES}
        command = [sys.executable, "-m", "citerec", "serve", "--llm", "offline", "--port", "0", "--library",
                   f"{folder}/library.db"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            address = process.stdout.readline().split("/docs")[0]
            text = "We drop recurrence and rely on self-attention only, in sentence {}."
            client = httpx.Client(base_url=address, timeout=120)
            def ask(i): assert "event: done" in client.post("/api/recommend", json={"text": text.format(i)}).text
            seconds_of(ask, 3)
            idle, going, told = seconds_of(ask, n), threading.Event(), Counter()
            def send(names):
                while not going.is_set():
                    for name in names:
                        with contextlib.suppress(httpx.TimeoutException):  # this client has no patience
                            answer = httpx.post(f"{address}/api/papers/upload", timeout=30,
                                                files={"files": (f"{name}.pdf", files[name])})
                            told[f"{answer.status_code} {answer.json().get('detail', '')}"[:90]] += 1
                        if going.is_set(): return
            clients = [threading.Thread(target=send, args=([*files][i::4],)) for i in range(4)]
            for one in clients: one.start()
            busy = seconds_of(ask, n)
            going.set()
            for one in clients: one.join()
            after = seconds_of(ask, n)
            process.terminate()
    for said, times in told.items(): print(f"{times} x {said}")
    def p95(times): return times[int(.95 * len(times))]
    for name, times in (("idle", idle), ("with uploads", busy), ("idle again", after)):
        print(f"{name:13} median {times[len(times) // 2]:.2f} s, p95 {p95(times):.2f} s")
    return p95(busy) > 2 * max(p95(idle), p95(after))


def main() -> int:
    wanted = [word for word in sys.argv[1:] if not word.startswith("--")]
    return int(serve(wanted or WORST) if "--service" in sys.argv else read_all(wanted or [*CASES, *PLACES]) > 0)


if __name__ == "__main__": sys.exit(main())
