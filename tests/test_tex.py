"Records that somebody else made, exported and compiled by a real TeX: nothing is read, written or run."
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from draft_attacks import cited

from citerec.ground.schema import Paper
from citerec.markup.references import FORMS, markdown_text, to_bibtex, written

SECRET = "planted-words-that-nobody-may-see"
NEEDED = shutil.which("pdflatex") and shutil.which("bibtex")
BIBLATEX = r"\usepackage[backend=bibtex,style=authoryear,doi=true,url=true]{biblatex}\addbibresource{refs.bib}"
ALL = os.environ.get("CITEREC_TEST_TEX") == "all"  # every style, and not only two
STYLES = ["plain", "apalike", "plainnat", "biblatex", "biber"] if ALL else ["plain", "biber"]
BIBER = BIBLATEX.replace("backend=bibtex", "backend=biber")


def commands(folder: Path) -> list[str]:
    "Ways in which LaTeX reads, writes and runs, and ways of hiding them."
    secret, mark = folder / "secret.txt", folder / "home" / "mark"
    tilde = r"\begingroup\lccode`\~=`\\\lowercase{\endgroup~input}"
    return [rf"\input{{{secret}}}", rf"\immediate\write18{{touch {mark}}}", rf'\input{{|"cat {secret}"}}',
            rf"\newwrite\f\immediate\openout\f={mark} \immediate\write\f{{x}}", rf"\mathrm{{\input{{{secret}}}}}",
            rf"x^^5cinput{{{secret}}}", rf"x_^^5c^^69nput{{{secret}}}", rf"\csname input\endcsname{{{secret}}}",
            rf"\def\a{{\input{{{secret}}}}}\a", rf"\let\a\input \a{{{secret}}}", r"\catcode`\@=11 \@@input secret",
            rf"\newread\r\openin\r={secret} \read\r to\a \a", rf"\text{{$\input{{{secret}}}$}}", r"\frac{1}", r"\left(",
            f"{tilde}{{{secret}}}", r"\{", r"\hat", "a}b{c", "a%b", "#1&2",
            rf"\href{{run:{mark}}}{{x}}", rf"\includegraphics{{{secret}}}", rf"\verbatiminput{{{secret}}}", "\\", "x^",
            rf"\scantokens{{\input{{{secret}}}}}", rf"\directlua{{os.execute('touch {mark}')}}", r"\end{document}"]


def hostile(folder: Path) -> list[Paper]:
    "Records in which each text is such a command, inside a formula and outside."
    out = []
    for n, command in enumerate(commands(folder)):
        other = f"}}}},\n note = {{${command}$}}}}\n@preamble{{\"{command}\"}}"
        for form in (f"${command}$", command, f"}} }} {command}", other):
            own = f"@misc{{a, execute = {{{command}}}, options = {{{command}}}, note = {{x}}}}"
            out.append(Paper(paper_id=f"p{len(out)}", title=f"Attention {form}", authors=[f"A {form} B", f"{form}"],
                             venue=[f"Journal {form}", f"Proceedings {form}", form][n % 3], year=1990 + n,
                             bibkey=f"k{len(out)}{form}", doi=f"10.1/{form}", bibtex=own if n % 2 else None))
    return out


def seen(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(p.relative_to(folder)): (p.stat().st_size, p.stat().st_mtime_ns) for p in folder.rglob("*")}


def text_of(pdf: Path) -> str:
    import pypdfium2
    with pypdfium2.PdfDocument(pdf) as document: return " ".join(p.get_textpage().get_text_bounded() for p in document)


HEAD = r"\documentclass{article}\usepackage[utf8]{inputenc}\usepackage[T1]{fontenc}\usepackage{amsmath,amssymb,url}"


def checked(folder: Path, bibliography: str) -> None:
    "Compile `paper.tex` in a folder `paper`: what TeX writes, says and shows is the paper and nothing else."
    place, home = folder / "paper", folder / "home"
    (folder / "secret.txt").write_text(SECRET)
    (place / "secret.tex").write_text(SECRET)
    before = seen(folder)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "openin_any": "a", "openout_any": "a"}
    tex = ["pdflatex", "-shell-escape", "-interaction=nonstopmode", "paper.tex"]
    for step in (tex, [bibliography, "paper"], tex):
        subprocess.run(step, cwd=place, env=env, capture_output=True, timeout=100, check=False)
    told = "\n".join(p.read_text("utf-8", "replace") for p in place.iterdir() if p.suffix in (".log", ".bbl", ".aux"))
    after = seen(folder)
    made = {name for name in after if after[name] != before.get(name) and name not in ("paper", "home")}
    allowed = {f"paper/paper.{end}" for end in "aux bbl blg log pdf tex out run.xml bcf".split()}
    left = {n for n in made if not re.match(r"home/(\.texlive|\.cache|par-|\.texmf)", n)}
    assert left <= allowed | {"paper/paper-blx.bib"}
    assert SECRET not in told
    pdf = place / "paper.pdf"
    assert pdf.is_file() and not re.findall(r"(?m)^! .*", told), re.findall(r"(?m)^! .*", told)
    shown = text_of(pdf)
    assert SECRET not in shown and "THE-LAST-WORDS" in shown.replace("\n", " ")


@pytest.mark.skipif(not NEEDED, reason="there is no TeX")
@pytest.mark.parametrize("style", STYLES)
def test_nothing_is_obeyed(tmp_path, style):
    if style == "biber" and not shutil.which("biber"): pytest.skip("there is no biber")
    for name in ("paper", "home"): (tmp_path / name).mkdir()
    (tmp_path / "paper" / "refs.bib").write_text(to_bibtex(hostile(tmp_path)), encoding="utf-8")
    natbib = r"\usepackage{natbib}" if style == "plainnat" else ""
    head, tail = (natbib, rf"\bibliographystyle{{{style}}}\bibliography{{refs}}")
    if "bib" in style: head, tail = (BIBER if style == "biber" else BIBLATEX), r"\printbibliography"
    (tmp_path / "paper" / "paper.tex").write_text(
        rf"{HEAD}{head}\begin{{document}}\nocite{{*}}Words that stay.{tail} THE-LAST-WORDS\end{{document}}")
    checked(tmp_path, "biber" if style == "biber" else "bibtex")


@pytest.mark.skipif(not NEEDED, reason="there is no TeX")
def test_nothing_that_is_cited_is_obeyed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in ("paper", "home"): (tmp_path / name).mkdir()
    (tmp_path / "paper" / "refs.bib").write_text("")
    tail = "\\bibliographystyle{plain}\\bibliography{refs}\nTHE-LAST-WORDS\n\\end{document}\n"
    records = hostile(tmp_path)[:: 1 if ALL else 14]
    cited(tmp_path, records, tmp_path / "paper" / "paper.tex", HEAD + "\n\\begin{document}\n\n", r"\cite{?}", tail)
    checked(tmp_path, "bibtex")


def test_every_form_is_quoted(tmp_path):
    papers = hostile(tmp_path)
    for form in FORMS:
        text = written(papers if ALL or form in ("bibtex", "ris", "csl", "markdown") else papers[::20], form)
        assert not [c for c in text if c != "\n" and not c.isprintable()], form
    assert "\n@preamble" not in to_bibtex(papers) and "^^" not in to_bibtex(papers)
    assert len(re.findall(r"(?m)^@\w+\{", to_bibtex(papers))) == len(papers)
    assert re.findall(r"(?m)^(TY|ER)  - ", written(papers, "ris")) == ["TY", "ER"] * len(papers)
    assert "`" not in markdown_text("`r system('id')`")
