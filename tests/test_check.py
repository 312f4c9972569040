"The check of references, drafts and bibliographies in a shell: what it says, its forms, and its exit codes."

import json
import re
import zipfile
from pathlib import Path
from urllib.parse import unquote

import pytest
from test_cases import CASES, MAP, TEX, put_files

from citerec.frontends.cli import main
from citerec.ground.schema import Paper
from citerec.ground.settings import load_settings
from citerec.sources import registers
from citerec.testing.fake_registers import RegisterServer
from citerec.testing.loopback import Response
from citerec.testing.pdfs import write_paper

SHOWN = [(name, files, command[1:], code, said, unsaid) for name, files, command, code, said, unsaid in CASES
         if command[0] in ("check", "audit") and code != 2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    "A folder with a draft and a bibliography that have something of each kind."
    monkeypatch.chdir(tmp_path)
    (tmp_path / "paper.tex").write_text(TEX % "\U0001d4db \\cite{gone} and \\cite{?} and \\cite{map}")
    (tmp_path / "refs.bib").write_text(MAP + MAP.replace("{map", "{again"))
    return tmp_path


def said_by(capsys, *words: str) -> tuple[int, str]:
    "The exit code of a command, and all that it says."
    code = main([*words])
    return code, "\n".join(capsys.readouterr())


@pytest.mark.parametrize("files, command, code, said, unsaid", [c[1:] for c in SHOWN], ids=[c[0] for c in SHOWN])
def test_cases_of_draft(files, command, code, said, unsaid, tmp_path, monkeypatch, capsys):
    "`citerec check` says of small odd inputs at least what `citerec draft check` and `draft audit` say."
    put_files(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    found, told = said_by(capsys, "check", *command)
    unsaid = unsaid if "--only" in command else []  # the verdicts on references say more
    heading = re.compile(r"\d+ (?:errors?|warnings?)|nothing found.*")  # of the check there are others
    lacks = [w for w in said if w not in told and not heading.fullmatch(w)]
    assert (lacks, [w for w in unsaid if w in told]) == ([], []), told
    assert found == code or (code == 0 and "--only" not in command), told
    assert {p.relative_to(tmp_path).as_posix(): p.read_text() for p in tmp_path.rglob("*") if p.is_file()} == files


def test_exit_codes(folder, capsys):
    "0: nothing to mend; 1: something to mend; 2: used wrongly."
    assert said_by(capsys, "check", "paper.tex", "--only", "missing")[0] == 1
    assert said_by(capsys, "check", "paper.tex", "--only", "missing", "--fail-on", "never")[0] == 0
    assert said_by(capsys, "check", "paper.tex", "--only", "slot", "--fail-on", "error")[0] == 0
    assert said_by(capsys, "check", "paper.tex", "--only", "unused")[0] == 0
    for wrong in (["none.tex"], ["paper.tex", "--only", "typo"], ["paper.tex", "--venue", "moon"], ["."],
                  ["paper.tex", "--accept", "map"], ["paper.tex", "--registry", "none"]):
        assert said_by(capsys, "check", *wrong)[0] == 2, wrong


def test_corpus_is_verified(tmp_path, capsys):
    "A corpus is not checked but verified."
    (tmp_path / "manifest.json").write_text("{}")
    code, told = said_by(capsys, "check", str(tmp_path))
    assert code == 2 and "citerec verify" in told


def test_sarif(folder, capsys):
    "A log of SARIF has what readers need, and tells no folder of this machine."
    code, told = said_by(capsys, "check", "paper.tex", "--only", "missing,slot,duplicate", "--format", "sarif")
    log = json.loads(told)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert (code, log["version"], run["columnKind"]) == (1, "2.1.0", "utf16CodeUnits")
    assert all(rule["help"]["text"] and rule["shortDescription"]["text"] for rule in run["tool"]["driver"]["rules"])
    assert {result["ruleId"] for result in run["results"]} == {"missing", "slot", "duplicate"} == {*rules}
    assert str(folder) not in told
    marks = set()
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"] and result["message"]["text"]
        assert result["level"] in ("error", "warning", "note")
        place = result["locations"][0]["physicalLocation"]
        lines = (folder / unquote(place["artifactLocation"]["uri"])).read_text().splitlines()
        region = place["region"]
        units = lines[region["startLine"] - 1].encode("utf-16-le")
        marked = units[2 * region["startColumn"] - 2 : 2 * region["endColumn"] - 2].decode("utf-16-le")
        assert result["ruleId"] != "missing" or marked == "gone"
        marks.add(result["partialFingerprints"]["citerec/v1"])
    assert len(marks) == len(run["results"])


def test_fingerprints_survive_new_lines(folder, capsys):
    "A result keeps its fingerprint when lines are added above it."
    def marks() -> list[str]:
        told = said_by(capsys, "check", "paper.tex", "--only", "missing,slot", "--format", "sarif")[1]
        return [r["partialFingerprints"]["citerec/v1"] for r in json.loads(told)["runs"][0]["results"]]
    before = marks()
    (folder / "paper.tex").write_text("% new\n\n" + (folder / "paper.tex").read_text())
    assert marks() == before


def test_json(folder, capsys):
    "The JSON has a verdict for each entry, and the remarks as the draft's commands have them."
    (folder / "refs.bib").write_text(MAP + "@misc{b, title={No such thing as <b>bold</b> maps}, author={John Doe}}\n")
    _, told = said_by(capsys, "check", "refs.bib", "--only", "references", "--json")
    about = json.loads(told)
    assert [one["key"] for one in about["references"]] == ["map", "b"]
    for one in about["references"]:
        assert {"key", "verdict", "suspicion", "fields", "record", "looked_in", "reasons"} <= {*one}
        assert one["verdict"] in ("confirmed", "differs", "not found", "cannot be judged")
        assert 0 <= one["suspicion"] <= 1 and all({"name", "date", "covers"} <= {*place} for place in one["looked_in"])
    assert {"remarks", "counts", "exit_code", "accepted", "date", "citerec"} <= {*about}


def test_page(folder, capsys):
    "The page is one file without scripts, says that no model read the draft, and escapes what a bibliography holds."
    entry = "@misc{b<i>, title={Maps <script>alert(1)</script> & more}, author={<img src=x>}}\n"
    (folder / "refs.bib").write_text(entry)
    code, told = said_by(capsys, "check", "paper.tex", "-o", "report.html")
    page = (folder / "report.html").read_text()
    assert code == 1 and told.startswith("report.html: Check of paper.tex")
    assert not re.search(r"<script|<img|<i>|<link|@import|url\(", page)
    assert "No generative model has read" in page and "prefers-color-scheme" in page and "@media print" in page
    assert "<title>Check of paper.tex</title>" in page and str(folder) not in page


def test_accepting(folder, capsys):
    "What is accepted is counted and not told, until the entry changes; a file edited by hand keeps its words."
    kept = folder / ".citerec" / "accepted.toml"
    base = ("check", "paper.tex", "--only", "duplicate")
    assert "[duplicate]" in said_by(capsys, *base)[1]
    assert said_by(capsys, *base, "--accept", "again", "--reason", "Two \"editions\".")[0] == 0
    code, told = said_by(capsys, *base)
    assert (code, "Accepted: 1 duplicate." in told, "[duplicate]" in told) == (0, True, False)
    kept.write_text("# by hand: ä\n" + kept.read_text())
    assert said_by(capsys, *base)[0] == 0
    bib = folder / "refs.bib"
    bib.write_text(bib.read_text().replace("@article{again,", "\n@article{again,\n "))
    assert said_by(capsys, *base)[0] == 0  # spaces are no change
    bib.write_text(bib.read_text().replace("journal={J}", "journal={K}"))
    code, told = said_by(capsys, *base)
    assert code == 1 and "has changed since" in told and "editions" in told
    for broken in ("[[accepted", "accepted = {}", "[[accepted]]\nkey = 'again'\n", "\x00"):
        kept.write_text(broken)
        code, told = said_by(capsys, *base)
        assert (code, "hides nothing" in told, "[duplicate]" in told) == (1, True, True), told
        if broken != "[[accepted]]\nkey = 'again'\n":
            assert said_by(capsys, *base, "--accept", "again", "--reason", "So.")[0] == 2
            assert kept.read_text() == broken


def test_accepted_is_not_followed_out_of_the_folder(folder, capsys):
    "A link in place of the folder or the file is neither read nor written through."
    (folder / "else").mkdir()
    (folder / ".citerec").symlink_to(folder / "else")
    code, _ = said_by(capsys, "check", "paper.tex", "--only", "duplicate", "--accept", "again", "--reason", "So.")
    assert code == 2 and list((folder / "else").iterdir()) == []


def test_only_costs_what_it_needs(folder, monkeypatch, capsys):
    "Neither sentences, nor a corpus, nor verdicts are paid for where nobody asks for them."
    for name in ("find_gaps", "judge_references", "load", "Claims"):
        monkeypatch.setattr(f"citerec.writing.draft.{name}", lambda *_, **__: pytest.fail("this was not asked for"))
    assert said_by(capsys, "check", "paper.tex", "--only=slot,missing,unused,syntax")[0] == 1
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    for name in ("find_gaps", "audit", "Claims"):
        monkeypatch.setattr(f"citerec.writing.draft.{name}", lambda *_, **__: pytest.fail("this was not asked for"))
    said_by(capsys, "check", "paper.tex", "--only=references")


@pytest.fixture
def services(tmp_path, monkeypatch):
    "The six services on this machine, which `--look-up` asks without waiting."
    with RegisterServer({"Crossref": [RIVERS], "DBLP": [RIVERS]}) as server:
        class Quick(registers.ReferenceLookUp):
            def __init__(self, **options):
                super().__init__(cache=tmp_path / "answers.db", settings=load_settings(**server.addresses),
                                 pause=lambda seconds: None, tries=1, **options)
        monkeypatch.setattr(registers, "ReferenceLookUp", Quick)
        yield server


RIVERS = Paper(paper_id="dblp:journals/rivers/Kim20", title="Maps of unseen rivers by listening to their sediment",
               authors=("Ann Kim", "Tomas Reyes"), year=2020, venue="River Letters", doi="10.1000/rivers.7")
LISTED = ("@article{kim, title={Maps of Unseen Rivers by Listening to Their Sediment}, year={2020},\n"
          "  author={Kim, Ann and Reyes, Tomas}, journal={River Letters}, note={NOTE-4471},\n"
          "  abstract={ABSTRACT-4471}, file={/home/ann/FILE-4471.pdf}}\n")
LACKING = ("@article{roe, title={Lakes that Sing to Nobody in the Northern Dark}, author={Roe, Rita and Moe, Mia},\n"
           "  journal={Lake Letters}, year={2019}}\n")


def verdicts_of(capsys, *words: str) -> tuple[dict[str, dict], str]:
    "The verdicts of a check by key, and what it says of what was sent."
    told = said_by(capsys, "check", *words, "--only", "references", "--json")[1]
    about = json.loads(told[: told.rindex("}") + 1])
    return {one["key"]: one for one in about["references"]}, told


def test_look_up(folder, services, capsys):
    "A service confirms a reference that the corpus lacks, and gets entry fields only."
    (folder / "paper.tex").write_text("DRAFT-4471 maps rivers \\cite{kim,roe}.\\bibliography{refs}")
    (folder / "refs.bib").write_text(LISTED + LACKING)
    before, _ = verdicts_of(capsys, "paper.tex")
    assert before["kim"]["verdict"] == "cannot be judged" and services.asked == []
    after, _ = verdicts_of(capsys, "paper.tex", "--look-up")
    assert after["kim"]["verdict"] == "confirmed", after["kim"]
    assert after["kim"]["record"]["source"] in ("Crossref", "DBLP")
    assert {"Crossref", "DBLP", "arXiv", "OpenAlex", "Semantic Scholar"} <= {p["name"] for p in
                                                                            after["roe"]["looked_in"]}
    sent = " ".join(f"{asked.path} {asked.params} {asked.body}" for _, asked in services.asked)
    assert "4471" not in sent and "sediment" in sent.lower()
    words = {*re.findall(r"[a-z]{3,}", f"{LISTED} {LACKING}".lower())}
    for _, asked in services.asked:
        for name in ("query.bibliographic", "q", "query", "search_query", "filter"):
            said = re.findall(r"[a-z]{3,}", re.sub(r"\w+\.\w+:", " ", asked.params.get(name, "").lower()))
            assert {*said} <= words | {"and", "ti", "title", "search", "doi"}, (name, asked.params)


def test_look_up_that_fails(folder, services, capsys):
    "A service that fails is named once, and makes nobody suspicious; where all fail, nothing is judged by them."
    (folder / "refs.bib").write_text(LISTED + LACKING)
    before, _ = verdicts_of(capsys, "refs.bib")
    services.down["DBLP"] = Response(status=503)
    code, told = said_by(capsys, "check", "refs.bib", "--look-up", "--only", "references")
    assert told.count("DBLP was not asked to the end") == 1, told
    assert "the text of the draft was not" in told
    for name in ("Crossref", "arXiv", "OpenAlex", "Semantic Scholar", "DataCite"):
        services.down[name] = Response(status=503)
    (folder / "answers.db").unlink()
    after, _ = verdicts_of(capsys, "refs.bib", "--look-up")
    for key in ("kim", "roe"):
        same = ("verdict", "suspicion", "looked_in", "reasons")
        assert [after[key][name] for name in same] == [before[key][name] for name in same]


PRINTED = ("[1] A. Vaswani, N. Shazeer, and N. Parmar. Attention is all you need. In Proc. NeurIPS, 2017.",
           "[2] J. Doe and F. Author. Deep maps of rivers by attention. Journal of Rivers, 3:1-9, 2035.")


def test_pdf(folder, capsys):
    "The references of a PDF are told by page and number."
    prose = "A reader reads one sentence and then the next one, as earlier work says [1, 2]. " * 60
    parts = [("1 Introduction", prose), ("References", "\n".join(PRINTED))]
    write_paper("paper.pdf", "Maps of Rivers", "Ann Kim", parts)
    code, told = said_by(capsys, "check", "paper.pdf", "--only", "references")
    assert code == 1 and "“2” probably does not exist as written" in told
    assert "It is reference [2] on page 2." in told and "Read: 2 entries of paper.pdf." in told
    about = json.loads(said_by(capsys, "check", "paper.pdf", "--only", "references", "--json")[1])["references"]
    assert [(one["key"], one["verdict"], one["reasons"][-1]) for one in about] == [
        ("1", "differs", "It is reference [1] on page 2."), ("2", "not found", "It is reference [2] on page 2.")]


def test_docx(folder, capsys):
    "The references of a Word file are told by their number."
    texts = [("", "As earlier work says [1, 2], maps help."), ("Heading1", "References"), *(("", t) for t in PRINTED)]
    body = "".join(f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'
                   for style, text in texts)
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    with zipfile.ZipFile("paper.docx", "w") as archive:
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>')
    code, told = said_by(capsys, "check", "paper.docx", "--only", "references")
    assert code == 1 and "paper.docx:2:1: error: “2” probably does not exist as written" in told
    assert "Read: 2 entries of paper.docx." in told and "on page" not in told


def test_fix(folder, capsys):
    "What a sure record corrects is shown, written only with --apply, and taken back to the byte."
    (folder / "paper.tex").write_text("We train with Adam \\citep{adam}.\n\\bibliography{refs}\n")
    (folder / "refs.bib").write_bytes(b"@misc{adam, title={Adam: A Method for Stochastic Optimization},\r\n"
                                      b"  year={2014}, eprint={1412.6980},\r\n"
                                      b"  author={Kingma, Diederik P. and Ba, Jimmy}}\r\n")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    for file in ("paper.tex", "refs.bib"):
        code, told = said_by(capsys, "check", file, "--fix")
        assert code == 1 and "+@inproceedings{adam" in told
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
        assert said_by(capsys, "check", file, "--fix", "--apply")[0] == 0
        assert b"@inproceedings{adam" in (folder / "refs.bib").read_bytes()
        code, told = said_by(capsys, "check", file, "--fix")
        assert code == 0 and "nothing changes" in told
        assert said_by(capsys, "undo", file)[0] == 0
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    assert said_by(capsys, "check", "refs.bib", "--fix", "--venue", "neurips")[0] == 2
    (folder / "more.bib").write_bytes(before["refs.bib"])
    code, told = said_by(capsys, "check", "refs.bib", "more.bib", "--fix")
    assert code == 1 and told.count("+@inproceedings{adam") == 2
    for name in ("refs.ris", "paper.pdf", "paper.docx"):
        code, told = said_by(capsys, "check", name, "--fix")
        assert code == 2 and f"{name} is no BibTeX file, and only those are mended." in told
