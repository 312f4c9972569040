"""`citerec lsp` as an editor uses it: a real process, asked by the client of pygls."""

import asyncio
import sys
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient

BIB = ("@article{adam,\n title={Adam: A Method for Stochastic Optimization},\n author={Kingma, Diederik P. and Ba, "
       "Jimmy},\n year={2014}}\n@book{maps,\n title={A History of Maps},\n author={Post, Ann},\n year={2001}}\n")
TEX = ("\\documentclass{article}\r\n\\begin{document}\r\n\U0001d4b3 is trained with Adam \\cite{admm}.\r\n\r\n"
       "The transformer relies on self-attention only .\r\n\r\nOlder work [CITATION].\r\n"
       "\\bibliography{refs}\r\n\\end{document}\r\n")
MARKDOWN = "---\nbibliography: refs.bib\n---\n\n# Models\n\nAll of them are trained with Adam [@adam].\n\nThe rest .\n"
TYPST = "= Models\n\nAll of them are trained with Adam @adam.\n\n#bibliography(\"refs.bib\")\n"


class Editor:
    """An editor with one folder: it types, asks, and keeps what the server sends."""

    def __init__(self, folder: Path):
        self.folder, self.told, self.edits, self.said, self.versions = folder, {}, [], [], {}
        self.client = client = LanguageClient("test", "1")
        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda p: self.told.__setitem__(p.uri, p.diagnostics))
        client.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)(lambda p: None)
        client.feature(types.PROGRESS)(lambda p: self.said.append(p.value))
        client.feature(types.WINDOW_SHOW_MESSAGE)(lambda p: self.said.append(p.message))

        @client.feature(types.WORKSPACE_APPLY_EDIT)
        def apply(params):
            self.edits.append(params.edit)
            return types.ApplyWorkspaceEditResult(True)

    async def start(self, port=None, **options):
        if port: await self.client.start_tcp("127.0.0.1", port)
        else: await self.client.start_io(sys.executable, "-m", "citerec", "lsp", cwd=self.folder)
        self.process = self.client._server
        window = types.WindowClientCapabilities(work_done_progress=True)
        self.can = (await self.client.initialize_async(types.InitializeParams(
            types.ClientCapabilities(window=window), root_uri=self.folder.as_uri(),
            initialization_options={"corpus": "sample", **options}))).capabilities
        self.client.initialized(types.InitializedParams())

    async def until(self, met):
        """Wait for something the server sends."""
        for _ in range(2400):
            if found := met(): return found
            await asyncio.sleep(.05)
        raise AssertionError("the server has not sent it")

    async def open(self, name, text, language, checked=True):
        path = self.folder / name
        path.write_bytes(text.encode())
        uri, before = path.as_uri(), len(self.ends())
        self.versions[uri] = 1
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(
            types.TextDocumentItem(uri, language, 1, text)))
        if checked: await self.until(lambda: len(self.ends()) > before)
        return uri

    def ends(self):
        return [one for one in self.said if isinstance(one, dict) and one["kind"] == "end"]

    def type(self, uri, line, column, text, until=None):
        self.versions[uri] += 1
        span = types.Range(types.Position(line, column), types.Position(*(until or (line, column))))
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(self.versions[uri], uri),
            [types.TextDocumentContentChangePartial(span, text)]))

    async def listed(self, uri, line, column):
        """The whole list: while it is not ranked yet, the server is asked again, as an editor does at each letter."""
        async def ask():
            return (await self.client.text_document_completion_async(types.CompletionParams(
                types.TextDocumentIdentifier(uri), types.Position(line, column)))).items
        for _ in range(400):
            items = await ask()
            if any(one.command for one in items): return items
            await asyncio.sleep(.05)
        raise AssertionError(f"nothing of the corpus is listed: {[one.label for one in items]}")

    def codes(self, uri):
        return [(d.code, d.range.start.line, d.range.start.character) for d in self.told.get(uri, ())]

    async def leave(self):
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()


def at(uri, line, column):
    return types.TextDocumentIdentifier(uri), types.Position(line, column)


def whole(text, edits):
    """A text after edits of the editor, whose columns are units of UTF-16."""
    def offset(place):
        lines = text.encode("utf-16-le").decode("utf-16-le").splitlines(keepends=True)
        units = "".join(lines[place.line : place.line + 1]).encode("utf-16-le")[: 2 * place.character]
        return sum(map(len, lines[: place.line])) + len(units.decode("utf-16-le"))
    for edit in sorted(edits, key=lambda e: (-e.range.start.line, -e.range.start.character)):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


async def use(folder: Path) -> None:
    """What a person does in an editor, from the first key to the last."""
    (folder / "refs.bib").write_text(BIB)
    editor = Editor(folder)
    await editor.start()
    assert editor.can.position_encoding == "utf-16"
    client, bib = editor.client, (folder / "refs.bib").as_uri()

    # LaTeX: what is wrong is told with its place, in units of UTF-16 and with lines that end in CRLF
    tex = await editor.open("paper.tex", TEX, "latex")
    assert {("missing", 2, 30), ("slot", 6, 11)} <= set(editor.codes(tex)), editor.codes(tex)
    assert "unused" in {code for code, *_ in editor.codes(bib)}

    # the key that is meant
    wrong = [d for d in editor.told[tex] if d.code == "missing"]
    actions = await client.text_document_code_action_async(types.CodeActionParams(
        types.TextDocumentIdentifier(tex), wrong[0].range, types.CodeActionContext(wrong)))
    fix = next(a for a in actions if a.title == "Write adam")
    assert whole(TEX, fix.edit.changes[tex]) == TEX.replace("admm", "adam")
    editor.type(tex, 2, 30, "adam", (2, 34))
    await editor.until(lambda: "missing" not in {code for code, *_ in editor.codes(tex)})

    # one of three at a slot: both files change
    slot = [d for d in editor.told[tex] if d.code == "slot"]
    actions = await client.text_document_code_action_async(types.CodeActionParams(
        types.TextDocumentIdentifier(tex), slot[0].range, types.CodeActionContext(slot)))
    assert [a.title[:5] for a in actions] == ["Cite "] * 3

    # a paper that the bibliography lacks, by meaning: the key into the text, the entry into the bibliography
    for n, character in enumerate("\\cite{"): editor.type(tex, 4, 46 + n, character)
    items = await editor.listed(tex, 4, 52)
    assert [one.label for one in items[:2]] == ["adam", "maps"]
    attention = next(one for one in items if "Attention Is All You Need" in one.detail)
    assert attention.text_edit.range == types.Range(types.Position(4, 52), types.Position(4, 52))
    assert "%" in attention.detail and "not in your bibliography" in attention.detail
    assert [one.sort_text for one in items] == sorted(one.sort_text for one in items)
    for n, character in enumerate("kaiser"): editor.type(tex, 4, 52 + n, character)
    narrowed = await editor.listed(tex, 4, 58)
    assert {"Attention Is All You Need"} <= {one.detail.partition(" · ")[0] for one in narrowed}
    assert all("kaiser" in one.filter_text.casefold() for one in narrowed) and len(narrowed) < len(items)
    editor.type(tex, 4, 52, attention.label + "}", (4, 58))
    await client.workspace_execute_command_async(types.ExecuteCommandParams(
        attention.command.command, attention.command.arguments))
    assert [*editor.edits[-1].changes] == [bib]
    added = whole(BIB, editor.edits[-1].changes[bib])
    assert added.startswith(BIB) and f"{{{attention.label}," in added

    # the bibliography is open and not saved: what it says counts
    editor.versions[bib] = 1
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(bib, "bibtex", 1, added)))
    hover = await client.text_document_hover_async(types.HoverParams(*at(tex, 4, 55)))
    assert "Vaswani" in hover.contents.value and "Reference: **" in hover.contents.value
    found = await client.text_document_definition_async(types.DefinitionParams(*at(tex, 2, 33)))
    assert [(one.uri, one.range.start.line) for one in found] == [(bib, 0)]
    found = await client.text_document_references_async(types.ReferenceParams(
        types.ReferenceContext(True), *at(bib, 0, 11)))
    assert [(one.uri, one.range.start.line) for one in found] == [(bib, 0), (tex, 2)]
    edit = await client.text_document_rename_async(types.RenameParams(*at(tex, 2, 33), "kingma2015"))
    assert {uri: [e.new_text for e in edits] for uri, edits in edit.changes.items()} == {
        bib: ["kingma2015"], tex: ["kingma2015"]}

    # Markdown, Typst, and a text that is in no file
    note = await editor.open("note.md", MARKDOWN, "markdown")
    for n, character in enumerate("[@"): editor.type(note, 8, 9 + n, character)
    assert {"adam", "maps"} <= {one.label for one in await editor.listed(note, 8, 11)}
    paper = await editor.open("paper.typ", TYPST, "typst")
    hover = await client.text_document_hover_async(types.HoverParams(*at(paper, 2, 36)))
    assert "Kingma" in hover.contents.value
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(
        "untitled:Untitled-1", "markdown", 1, "All models are trained with Adam [CITATION].\n")))
    await editor.until(lambda: ("slot", 0, 33) in editor.codes("untitled:Untitled-1"))

    # broken messages are answered with errors, and the next request as usual
    for broken in ('{"jsonrpc":"2.0","id":"a","method":"textDocument/hover","params":{"nonsense":1}}',
                   '{"jsonrpc":"2.0","id":"b","method":"no/such","params":{}}', '{"jsonrpc":', '[]'):
        editor.process.stdin.write(f"Content-Length: {len(broken)}\r\n\r\n{broken}".encode())
    assert await client.text_document_hover_async(types.HoverParams(*at(tex, 2, 33)))
    await editor.leave()
    assert (folder / "refs.bib").read_text() == BIB and (folder / "paper.tex").read_bytes() == TEX.encode()


def test_a_day_in_an_editor(tmp_path):
    asyncio.run(asyncio.wait_for(use(tmp_path), 150))


async def stand_beside(folder: Path) -> None:
    """Two servers at once, of which one is killed and started again; a large file; a server that listens."""
    homes = [folder / name for name in ("one", "two")]
    for home in homes:
        home.mkdir()
        (home / "refs.bib").write_text(BIB)
    one, two = map(Editor, homes)
    await asyncio.gather(one.start(), two.start(venue="neurips"))
    large = "\\documentclass{article}\n\\begin{document}\n" + "Some words of prose that say nothing.\n\n" * 130_000
    opened = await one.open("large.tex", f"{large}Adam is used .\n\\bibliography{{refs}}\n\\end{{document}}\n", "latex",
                            checked=False)
    line = large.count("\n")
    for n, character in enumerate("\\cite{"): one.type(opened, line, 13 + n, character)
    asked = types.CompletionParams(types.TextDocumentIdentifier(opened), types.Position(line, 19))
    assert (await one.client.text_document_completion_async(asked)).is_incomplete  # answered before the text is read
    note = await two.open("note.md", MARKDOWN, "markdown", checked=False)
    two.process.kill()
    two = Editor(homes[1])
    await two.start()
    note = await two.open("note.md", MARKDOWN, "markdown")
    assert "adam" in {item.label for item in await two.listed(note, 6, 37)}
    one.process.kill()  # it reads the large file for minutes
    await two.leave()

    listening = await asyncio.create_subprocess_exec(sys.executable, "-m", "citerec", "lsp", "--tcp", "0", cwd=folder,
                                                     stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    said = (await listening.stderr.readline()).decode()
    three = Editor(homes[1])
    await three.start(int(said.rpartition(":")[2].strip(" .\n")))
    note = await three.open("note.md", MARKDOWN, "markdown")
    await three.client.shutdown_async(None)
    three.client.exit(None)
    assert (await listening.communicate())[0] == b""


def test_servers_beside_each_other(tmp_path):
    asyncio.run(asyncio.wait_for(stand_beside(tmp_path), 200))
