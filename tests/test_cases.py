"Small inputs that other tools stumbled over, as shell commands: what is not known is neither written nor said."

from pathlib import Path

import pytest

from citerec.frontends.cli import main

MAP = "@article{map, title={A map of rivers}, author={Lee, Bo}, year={2001}, journal={J}}\n"
TEX = "\\documentclass{article}\n\\begin{document}\nRivers bend %s.\n\\bibliography{refs}\n\\end{document}\n"
BIBLATEX = "\\usepackage{biblatex}\n\\addbibresource{refs.bib}\n\\begin{document}\nAs in \\cite{%s}.\n\\end{document}\n"
CHECK, AUDIT = ["check", "a.tex", "--only", "missing,unread,syntax"], ["audit", "refs.bib"]
COPY = ["cite", "a.tex", "3", "k", "--also", "lib.bib", "--dry-run"]
NONE = "nothing found"


def tex(text: str, bib: str = MAP) -> dict[str, str]:
    "A draft in LaTeX with its bibliography."
    return {"a.tex": TEX % text, "refs.bib": bib}


def copied(entry: str, name: str = "lib.bib") -> tuple[dict[str, str], list[str]]:
    "A draft with a slot and another library, and the command that cites the entry `k` of it."
    return tex(r"\cite{?}") | {name: entry}, [name if part == "lib.bib" else part for part in COPY]


# the kind: what it is, the files, the command, its exit code, what is said, and what is not
CASES = [
    # a guess, then written
    (
        "broken notebook",
        {"n.ipynb": '{"cells": [', "refs.bib": MAP},
        ["cite", "n.ipynb", "cell 1:1", "map"],
        2,
        ["no whole notebook"],
        [],
    ),
    (
        "code of a notebook",
        {"n.ipynb": '{"cells": [{"cell_type": "code", "source": "x = \'@no1\'"}, {"cell_type": "markdown", "source": '
                    '["Rivers bend [CITATION]."]}], "nbformat": 4}', "refs.bib": MAP},
        ["cite", "n.ipynb", "cell 2:1", "map", "--bib", "refs.bib", "--dry-run"],
        0,
        ['"Rivers bend [@map]."'],
        [],
    ),
    ("web page", {"n.html": "<p>Rivers [@map].</p>"}, ["cite", "n.html", "1", "map"], 2, ["Markdown (.md"], []),
    ("no suffix", {"draft": "Rivers bend \\cite{map}."}, ["fill", "draft"], 2, ["--as latex"], []),
    ("copy of an editor", {"a.tex~": TEX % r"\cite{?}"}, ["fill", "a.tex~"], 2, ["--as latex"], []),
    (
        "bib nearby",
        {"a.tex": "Rivers bend in many ways.\n", "cv.bib": MAP},
        ["cite", "a.tex", "1", "1706.03762"],
        2,
        ["--bib cv.bib"],
        [],
    ),
    (
        "key nearby",
        {"a.tex": "Rivers bend in many ways.\n", "cv.bib": MAP},
        ["cite", "a.tex", "1", "map"],
        2,
        ["--bib cv.bib"],
        [],
    ),
    (
        "bib above",
        {"b/a.tex": "A \\cite{map} bends.\n", "cv.bib": MAP},
        ["cite", "b/a.tex", "1", "1706.03762"],
        2,
        ["names no bibliography"],
        [],
    ),
    (
        "no such bib",
        tex("bend"),
        ["cite", "a.tex", "3", "map", "--bib", "gone.bib"],
        2,
        ["no bibliography gone.bib"],
        [],
    ),
    # an all-clear that was not earned
    (
        "quote open",
        tex("bend", '@misc{a, title = "Open {brace", year=2001}\n' + MAP),
        AUDIT,
        1,
        ["refs.bib:1:1: error"],
        [],
    ),
    ("field twice", tex("bend", "@misc{a, title={One}, title={Two}}"), AUDIT, 1, ["given twice"], []),
    ("no comma", tex("bend", "@misc{a\n title={One}, year=2001}"), AUDIT, 1, ["no comma after the key"], []),
    ("field comma", tex("bend", "@misc{a, title={One} year=2001}"), AUDIT, 1, ["no comma after title"], []),
    ("no key", tex("bend", "@misc{, title={One}, year=2001}"), AUDIT, 1, ["no key"], []),
    ("key of two words", tex("bend", "@misc{a b, title={One}, year=2001}"), AUDIT, 1, ["is no key"], []),
    (
        "not closed",
        tex("bend", "@misc{a, title={One}, year=2001\n" + MAP),
        AUDIT,
        1,
        ["not closed", "repaired"],
        [NONE],
    ),
    ("no such string", tex("bend", MAP.replace("{J}", "jmlrr")), AUDIT, 1, ["not defined"], []),
    (
        "check says it",
        tex(r"\cite{map}", "@misc{a, title={One}, year=2001\n" + MAP),
        CHECK,
        1,
        ["refs.bib:1:1: error", "Read: 1 file of LaTeX", "2 entries of refs.bib"],
        [],
    ),
    (
        "in the draft",
        {
            "a.tex": "\\begin{filecontents}{r.bib}\n@misc{a title={One}}\n\\end{filecontents}\n"
            "\\bibliography{r}\nRivers \\cite{a}."
        },
        CHECK,
        1,
        ["a.tex:2:1: error"],
        [],
    ),
    (
        "closed by none",
        {"refs.ris": "TY  - JOUR\nTI  - Rivers\nAU  - Lee, Bo\nPY  - 2001\n"},
        ["audit", "refs.ris"],
        1,
        ["not closed"],
        [NONE],
    ),
    ("names by semicolons", tex("bend", MAP.replace("Lee, Bo", "Lee, Bo; Roe, Al")), AUDIT, 1, ["semicolons"], []),
    ("fields of CSL", tex("bend", MAP.replace("journal=", "container-title=")), AUDIT, 1, ["no field of BibTeX"], []),
    (
        "chapter lost",
        tex(r"bend. \input{gone} Rivers \cite{map}"),
        ["check", "a.tex", "--only", "slot"],
        1,
        ["nothing found in what was read", "\\input{gone}"],
        [],
    ),
    *[
        (
            f"{end} is not read",
            {f"a.{end}": "Text cite:[no]."},
            ["check", f"a.{end}", "--only", "missing"],
            2,
            ["Save the draft"],
            [NONE],
        )
        for end in ("adoc", "org", "rst", "rtf")
    ],
    ("Word file", {"a.docx": "PK"}, ["cite", "a.docx", "1", "map"], 2, ["nothing is written", "`citerec check"], []),
    (
        "Typst",
        {"a.typ": "= A <a>\nRivers @map bend in @a, see @no.\n#bibliography(\"r.bib\")", "r.bib": MAP},
        ["check", "a.typ", "--only", "missing"],
        1,
        ["a.typ:2:30: error", "“no”", "1 file of Typst"],
        ["“a”", "“map”"],
    ),
    # one cause, one remark
    (
        "no bibliography",
        {"a.tex": "A \\cite{x}, \\cite{y}, \\cite{z}.", "cv.bib": MAP},
        CHECK,
        1,
        ["1 error", "near it: cv.bib", "--bib FILE"],
        ["No entry has the key"],
    ),
    (
        "the same in Markdown",
        {"a.md": "A [@x; @y], so @z.", "cv.bib": MAP},
        ["audit", "a.md"],
        1,
        ["1 error", "near it: cv.bib"],
        ["No entry has the key", "is not cited"],
    ),
    (
        "named by the user",
        {"a.tex": "A \\cite{x}, \\cite{map}.", "cv.bib": MAP},
        [*CHECK, "--bib", "cv.bib"],
        1,
        ["No entry has the key “x”"],
        ["“map”", "names no bibliography"],
    ),
    (
        "lost bibliography",
        {"a.tex": "A \\cite{x}, \\cite{y}.\\bibliography{gone}"},
        CHECK,
        1,
        ["1 error", "gone"],
        ["“x”"],
    ),
    (
        "a chapter",
        {
            "main.tex": "\\documentclass{book}\\begin{document}\\input{one}\\bibliography{refs}\\end{document}",
            "one.tex": "A \\cite{map}, \\cite{no}.",
            "refs.bib": MAP,
            "cv.bib": "",
        },
        ["check", "one.tex", "--only", "missing"],
        1,
        ["No entry has the key “no”"],
        ["“map”"],
    ),
    (
        "alias",
        {"a.tex": BIBLATEX % "old", "refs.bib": MAP.replace("title", "ids={old, o:2}, title")},
        CHECK,
        0,
        [NONE],
        [],
    ),
    (
        "identifiers",
        {
            "a.md": "Nets [@doi:10.1038/nature14539; @arxiv:1609.08144; @tag:x]. See @url:https://ex.org/x.\n\n"
            "[@tag:x]: doi:10.1016/j.media.2017.07.005\n"
        },
        ["check", "a.md", "--only", "missing"],
        0,
        [NONE, "identifiers"],
        [],
    ),
    (
        "MyST",
        {"a.md": "Nets [@doi:10.1000/x] and {cite}`10.1000/y`."},
        ["check", "a.md", "--only", "missing"],
        0,
        [NONE],
        [],
    ),
    (
        "filecontents",
        {
            "a.tex": "\\begin{filecontents}[force]{\\jobname.bib}\n" + MAP + "\\end{filecontents}\n"
            "\\addbibresource{\\jobname.bib}\n\\begin{document}\n\\cite{map} \\cite{no}\n\\end{document}"
        },
        CHECK,
        1,
        ["“no”"],
        ["“map”", "was not read"],
    ),
    (
        "macro in a path",
        {"a.tex": "\\newcommand{\\d}{lib}\nA \\cite{map} \\cite{no}.\n\\bibliography{\\d/r}", "lib/r.bib": MAP},
        CHECK,
        1,
        ["“no”"],
        ["“map”", "was not read"],
    ),
    (
        "amsrefs",
        {
            "a.tex": "\\usepackage{amsrefs}\nA \\cite{a}*{p.~3}, \\citelist{\\cite{b}\\cite{no}}.\n\\begin{biblist}\n"
            "\\bib{a}{book}{title={T}, date={2001}}\n\\bib{b}{book}{title={U}, date={2002}}\n\\end{biblist}"
        },
        CHECK,
        1,
        ["1 error", "“no”"],
        ["is not closed"],
    ),
    (
        "YAML",
        {"a.md": "---\nreferences:\n- id: inside\n  title: In YAML\n  type: book\n  issued: 2001\n---\n\nA [@inside]."},
        ["check", "a.md", "--only", "missing"],
        0,
        [NONE, "1 entry of a.md"],
        [],
    ),
    # biblatex is no BibTeX
    (
        "parent",
        *copied(
            "@proceedings{p, title={Tenth}, year={2010}}\n@inproceedings{k, title={Child}, author={Roe, Al},"
            " crossref={p}}"
        ),
        0,
        ["booktitle = {Tenth}", "year = {2010}"],
        ["crossref"],
    ),
    (
        "data",
        *copied("@book{k, title={Book}, author={Zed, Z.}, date={2001}, xdata={d}}\n@xdata{d, publisher={Pub}}"),
        0,
        ["publisher = {Pub}"],
        ["xdata"],
    ),
    (
        "grandparent",
        *copied(
            "@xdata{x, location={Rome}}\n@collection{p, title={Whole}, date={1999}, xdata={x}}\n"
            "@incollection{k, title={Part}, author={Roe, Al}, crossref={p}}"
        ),
        0,
        ["location = {Rome}", "booktitle = {Whole}", "date = {1999}"],
        [],
    ),
    (
        "untitled",
        *copied("@misc{k, howpublished={A letter}, author={Doe, J.}, year=2001}"),
        0,
        [r"\cite{k}", "k has no title"],
        [],
    ),
    ("set", *copied(MAP.replace("map", "m1") + "@set{k, entryset={m1}}"), 0, ["@set{k", "@article{m1"], ["has no"]),
    (
        "related",
        *copied(
            "@book{k, title={Reprint}, author={Doe, J.}, year=2001, related={o}, relatedtype={reprintof}}\n"
            "@book{o, title={First}, author={Doe, J.}, year=1951}"
        ),
        0,
        ["@book{k", "@book{o"],
        [],
    ),
    ("data are no work", *copied("@xdata{k, publisher={P}}"), 2, ["data for other entries"], []),
    (
        "dates",
        tex(
            "bend",
            '@preamble{"\\newcommand{\\noop}[1]{}"}\n'
            + "".join(
                f"@book{{b{n}, title={{Book {n}}}, author={{Doe, J.}}, {date}, publisher={{P}}}}\n"
                for n, date in enumerate(
                    ["year={{\\noop{2003}}2007}", "date={199X}", "date={-0876}", "date={1984~}", "date={2001/..}"]
                )
            ),
        ),
        AUDIT,
        0,
        [NONE],
        [],
    ),
    ("extended name", tex("bend", MAP.replace("Lee, Bo", "family=Lee, given=Bo, prefix=van")), AUDIT, 0, [NONE], []),
    ("annotation", tex("bend", MAP.replace("year=", "author+an={1=student}, year=")), AUDIT, 0, [NONE], []),
    # markup of another format
    (
        "tags of CSL",
        *copied(
            '[{"id": "k", "type": "book", "title": "Uptake of CO<sub>2</sub> <i>in vivo</i> &amp; <span '
            'class=\\"nocase\\">eLife</span>", "author": [{"family": "Kim"}], "issued": {"date-parts":'
            " [[2014]]}}]",
            "lib.json",
        ),
        0,
        [r"in vivo \&"],
        ["<sub>", "<i>", "<span", "&amp;"],
    ),
    (
        "tags of RIS",
        *copied("TY  - JOUR\nID  - k\nTI  - A <b>bold</b> map &lt; all\nAU  - Kim, A\nPY  - 2001\nER  - \n", "lib.ris"),
        0,
        ["bold"],
        ["<b>", "&lt;"],
    ),
    ("entity in BibTeX", tex("bend", MAP.replace("map of", "map &amp; plan of")), AUDIT, 1, ["markup of HTML"], []),
    (
        "formula of MathML",
        *copied(
            '[{"id": "k", "type": "book", "title": "On <mml:math><mml:mi>x</mml:mi></mml:math> and <scp>dna</scp>"}]',
            "lib.json",
        ),
        0,
        ["On x and"],
        ["mml:", "<scp>"],
    ),
    # dead and live text
    ("dead branch", tex(r"\iffalse \iftrue\cite{no}\fi \cite{no} \else \cite{map}\fi"), CHECK, 0, [NONE], []),
    ("live branch", tex(r"\iftrue \cite{no} \else \cite{other}\fi"), CHECK, 1, ["“no”"], ["“other”"]),
    ("constant", tex(r"\ifnum1>2 \cite{no}\else\cite{map}\fi"), CHECK, 0, [NONE], ["“map”"]),
    (
        "comment",
        tex("\\begin{comment}\\cite{no}\\end{comment}\\verb|\\cite{no}| % \\cite{no}\n\\cite{map}"),
        CHECK,
        0,
        [NONE, "1 citation"],
        [],
    ),
    (
        "code",
        {
            "a.md": "---\nbibliography: refs.bib\n---\nA `[@no]` [@map].\n\n```\n[@no]\n```\n\n<!-- @no1 -->\n",
            "refs.bib": MAP,
        },
        ["check", "a.md", "--only", "missing"],
        0,
        [NONE],
        [],
    ),
    ("options", tex(r"\cite*[see][{p. [3]}]{map} and \citep[{\cite{no}}][]{map}"), CHECK, 1, ["“no”"], ["“map”"]),
    ("negated", tex(r"\unless\iftrue\cite{no}\else\cite{map}\fi \ifodd2 \cite{no}\fi"), CHECK, 0, [NONE], []),
    ("lengths", tex(r"\ifdim1pt<2.5pt \cite{map}\else\cite{no}\fi"), CHECK, 0, [NONE], []),
    (
        "words behind ??",
        tex(r"\cite{?? the survey}"),
        ["check", "a.tex", "--only", "missing,slot"],
        1,
        ["[slot]"],
        ["[missing]"],
    ),
    (
        "preformatted",
        {"a.md": "A [@map].\n\n<pre>@no x</pre>\n\n---\nbibliography: refs.bib\n---\n", "refs.bib": MAP},
        ["check", "a.md", "--only", "missing", "--bib", "refs.bib"],
        0,
        [NONE],
        [],
    ),
    # small ones
    (
        "words to do",
        tex(r"\cite{TODO: find a paper} and \citep{citation-needed}"),
        ["check", "a.tex", "--only", "missing,slot"],
        1,
        ["2 warnings", "[slot]"],
        ["[missing]"],
    ),
    (
        "key with =",
        {
            "a.md": "---\nbibliography: refs.bib\n---\nSee @{https://ex.org/a?b=c&d=5} and [@doe2020????].\n",
            "refs.bib": "@misc{https://ex.org/a?b=c&d=5, title={A}}\n@misc{doe2020????, title={B}}",
        },
        ["check", "a.md", "--only", "missing"],
        1,
        ["1 error", "{doe2020????}"],
        ["ex.org"],
    ),
    (
        "list of CSL-JSON cut off",
        {"library.json": '[{"id": "a", "type": "book", "title": "A"},'},
        ["audit", "library.json"],
        1,
        ["no JSON from here on"],
        ["nothing found"],
    ),
    (
        "two lists of CSL-JSON",
        {"library.json": '[{"id": "a", "type": "book", "title": "A"}]\n[{"id": "b", "type": "book", "title": "B"}]'},
        ["audit", "library.json"],
        1,
        ["library.json:2:", "no JSON from here on"],
        ["nothing found"],
    ),
]


def put_files(folder, files):
    "Write the files of a case."
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize("files, command, code, said, unsaid", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_case(files, command, code, said, unsaid, tmp_path, monkeypatch, capsys):
    "A command says what it should, and changes no file that it does not name."
    put_files(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    found = main(["draft", *command])
    told = "\n".join(capsys.readouterr())
    assert (found, [w for w in said if w not in told], [w for w in unsaid if w in told]) == (code, [], []), told
    assert {p.relative_to(tmp_path).as_posix(): p.read_text() for p in tmp_path.rglob("*") if p.is_file()} == files


def test_unknown_source(tmp_path: Path, capsys):
    "A source that does not exist is told as one, with those that read the file."
    (tmp_path / "a.json").write_text('[{"id": "a", "type": "book", "title": "T"}]')
    assert main(["build", str(tmp_path / "x"), "--source", "csl", "--file", str(tmp_path / "a.json")]) == 2
    said = capsys.readouterr().err
    assert "no source 'csl'" in said and "--source bib" in said


def test_only_costs_what_it_needs(tmp_path: Path, monkeypatch, capsys):
    "Sentences are not judged where nobody asks for gaps."
    (tmp_path / "a.tex").write_text(TEX % r"\cite{map}")
    (tmp_path / "refs.bib").write_text(MAP)
    monkeypatch.setattr("citerec.writing.draft.find_gaps", lambda *_: pytest.fail("gaps were looked for"))
    assert main(["draft", "check", str(tmp_path / "a.tex"), "--only=slot,missing"]) == 0
