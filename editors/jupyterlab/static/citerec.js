// Completion by meaning in JupyterLab: Markdown cells of notebooks, and files of text.
// The language server is started by jupyter-lsp, a part of JupyterLab, and asked over its web socket.
(() => {
  "use strict";
  const LANGUAGES = { tex: "latex", bib: "bibtex", md: "markdown", markdown: "markdown", qmd: "quarto", typ: "typst" };
  const IN_CITATION = /(?:\\[A-Za-z]*[cC]ite[A-Za-z]*\*?[^{}]*\{[^{}]*|@[\w:.+/-]*|cite[a-z:]*\}`[^`]*|cite\(\s*<[^<>]*)$/;

  const TURNS = 5;  // times that an empty list is asked for

  /** Whether the cursor of an editor stands in a citation that is being typed. */
  function inCitation(editor) {
    const { line, column } = editor.getCursorPosition();
    return IN_CITATION.test((editor.getLine(line) || "").slice(0, column));
  }

  /** Modules that JupyterLab shares, by name. */
  let shared = {};
  async function use(name) {
    const [version] = Object.values(shared[name] || {});
    if (!version) throw new Error(`JupyterLab does not share ${name}`);
    return (await version.get())();
  }

  /** A conversation with the language server; it begins again where it was cut off. */
  class Conversation {
    constructor(url, root, applied) {
      Object.assign(this, { url, root, applied, waiting: new Map(), texts: new Map(), asked: 0, name: Math.random() });
    }

    connected() {
      this.opening ??= new Promise((resolve, reject) => {
        const socket = new WebSocket(this.url);
        socket.onmessage = (event) => this.hear(JSON.parse(event.data));
        socket.onerror = () => reject(new Error("The language server of citerec does not answer."));
        socket.onclose = () => {
          for (const answer of this.waiting.values()) answer({});
          this.waiting.clear();
          this.texts.clear();
          this.opening = undefined;
        };
        socket.onopen = async () => {
          this.socket = socket;
          await this.ask("initialize", { processId: null, rootUri: this.root,
            initializationOptions: { patience: 5 }, capabilities: {
            workspace: { applyEdit: true, workspaceEdit: { documentChanges: true } },
            textDocument: { completion: { completionItem: { documentationFormat: ["plaintext"] } } },
            notebookDocument: { synchronization: {} } } });
          this.tell("initialized", {});
          resolve();
        };
      });
      return this.opening;
    }

    send(message) { this.socket.send(JSON.stringify({ jsonrpc: "2.0", ...message })); }
    tell(method, params) { this.send({ method, params }); }
    ask(method, params) {
      const id = `citerec-${this.name}-${++this.asked}`;  // other clients share this server
      return new Promise((resolve) => {
        this.waiting.set(id, (message) => resolve(message.result));
        this.send({ id, method, params });
      });
    }

    async hear(message) {
      if (message.method === "workspace/applyEdit") {
        this.send({ id: message.id, result: { applied: await this.applied(message.params.edit) } });
      } else if (message.method && message.id !== undefined) {
        this.send({ id: message.id, result: message.method === "workspace/configuration" ? [] : null });
      } else if (this.waiting.has(message.id)) {
        this.waiting.get(message.id)(message);
        this.waiting.delete(message.id);
      }
    }

    /** Tell the server what a file of text says now. */
    file(uri, languageId, text) {
      const known = this.texts.get(uri);
      if (known?.text === text) return;
      const version = (known?.version ?? 0) + 1;
      if (known) this.tell("textDocument/didChange", { textDocument: { uri, version }, contentChanges: [{ text }] });
      else this.tell("textDocument/didOpen", { textDocument: { uri, languageId, version, text } });
      this.texts.set(uri, { text, version });
    }

    /** Tell the server what the cells of a notebook say now: [{uri, languageId, text}]. */
    notebook(uri, cells) {
      const known = this.texts.get(uri);
      const version = (known?.version ?? 0) + 1, notebookDocument = { uri, version };
      const same = known && known.cells.length === cells.length && cells.every((c, n) => c.uri === known.cells[n].uri);
      if (same) {
        const textContent = cells.filter((c, n) => c.text !== known.cells[n].text)
          .map((c) => ({ document: { uri: c.uri, version }, changes: [{ text: c.text }] }));
        if (!textContent.length) return;
        this.tell("notebookDocument/didChange", { notebookDocument, change: { cells: { textContent } } });
      } else {
        if (known) {
          const cellTextDocuments = known.cells.map((c) => ({ uri: c.uri }));
          this.tell("notebookDocument/didClose", { notebookDocument: { uri }, cellTextDocuments });
        }
        this.tell("notebookDocument/didOpen", {
          notebookDocument: { ...notebookDocument, notebookType: "jupyter-notebook",
                              cells: cells.map((c) => ({ kind: c.languageId === "markdown" ? 1 : 2, document: c.uri })) },
          cellTextDocuments: cells.map(({ uri, languageId, text }) => ({ uri, languageId, version, text })) });
      }
      this.texts.set(uri, { cells, version });
    }
  }

  /** The offset of a place of the protocol. */
  function offsetOf(text, { line, character }) {
    const lines = text.split("\n");
    return lines.slice(0, line).reduce((sum, one) => sum + one.length + 1, 0) + Math.min(character, (lines[line] || "").length);
  }

  /** The place of an offset; both count in units of UTF-16. */
  function placeOf(text, offset) {
    const lines = text.slice(0, offset).split("\n");
    return { line: lines.length - 1, character: lines[lines.length - 1].length };
  }

  /** A text after the edits of the protocol. */
  function edited(text, edits) {
    const placed = edits.map((e) => [offsetOf(text, e.range.start), offsetOf(text, e.range.end), e.newText]);
    return placed.sort((a, b) => b[0] - a[0]).reduce((now, [from, to, by]) => now.slice(0, from) + by + now.slice(to), text);
  }

  /** A provider of completions; `root` is the address of the folder that JupyterLab shows. */
  class Papers {
    constructor(conversation, root, contents) {
      Object.assign(this, { conversation, root, contents, identifier: "citerec", rank: 900, renderer: null, offered: new Map() });
    }

    address(path) { return `${this.root}/${this.contents.localPath(path).split("/").map(encodeURIComponent).join("/")}`; }

    async isApplicable({ widget, editor }) {
      const path = widget.context?.path || "";
      return Boolean(editor) && !widget.content?.activeCell && path.split(".").pop() in LANGUAGES;
    }

    /** Tell the server the text in which one types; its address. */
    told({ widget }, text) {
      const uri = this.address(widget.context.path);
      const active = widget.content?.activeCell;
      if (!active) {
        this.conversation.file(uri, LANGUAGES[widget.context.path.split(".").pop()], text);
        return uri;
      }
      const cells = widget.content.widgets.map(({ model }) => ({
        uri: `${uri}#${model.id}`, languageId: model.type === "markdown" ? "markdown" : "python",
        text: model.sharedModel.getSource() }));
      this.conversation.notebook(uri, cells);
      return `${uri}#${active.model.id}`;
    }

    async fetch(request, context) {
      try {
        return await this.found(request, context);
      } catch (error) {
        console.error("citerec:", error);
        return { start: request.offset, end: request.offset, items: [] };
      }
    }

    async found({ text, offset }, context) {
      const none = { start: offset, end: offset, items: [] };
      if (!IN_CITATION.test(text.slice(Math.max(0, offset - 1000), offset))) return none;
      await this.conversation.connected();
      const uri = this.told(context, text);
      let found = [];
      for (let turn = 0; turn < TURNS && !found.length; turn++) {  // the server may still be loading its corpus
        const answer = await this.conversation.ask("textDocument/completion",
          { textDocument: { uri }, position: placeOf(text, offset), context: { triggerKind: 1 } });
        found = answer?.items || [];
        if (!answer?.isIncomplete) break;
      }
      if (!found.length) return none;
      found.sort((a, b) => (a.sortText || a.label).localeCompare(b.sortText || b.label));
      const { range } = found[0].textEdit || { range: { start: placeOf(text, offset), end: placeOf(text, offset) } };
      const items = found.map((one) => {
        const insertText = one.textEdit?.newText ?? one.insertText ?? one.label;
        this.offered.set(insertText, one);
        const said = one.documentation?.value ?? one.documentation;
        return { label: `${one.label} · ${one.detail || ""}`, insertText, documentation: said, type: "paper" };
      });
      return { start: offsetOf(text, range.start), end: offsetOf(text, range.end), items };
    }

    shouldShowContinuousHint(visible, changed, context) {
      if (visible || !context?.editor) return false;
      const typed = (changed.sourceChange || []).map((one) => one.insert || "").join("");
      return typed !== "" && inCitation(context.editor);
    }

    /** A paper was chosen: its entry is added where the bibliography lacks it. */
    chosen(insertText) {
      const { command } = this.offered.get(insertText) || {};
      this.offered.clear();
      if (command) {
        this.conversation.ask("workspace/executeCommand", { command: command.command, arguments: command.arguments });
      }
    }

    /** Write edits into files of the folder that JupyterLab shows. */
    async applied(edit) {
      const changes = (edit.documentChanges || []).filter((one) => one.edits).map((one) => [one.textDocument.uri, one.edits]);
      changes.push(...Object.entries(edit.changes || {}));
      const inside = ([uri]) => uri.startsWith(`${this.root}/`) && !uri.includes("#") && !uri.endsWith(".ipynb");
      if (!changes.every(inside)) return false;
      for (const [uri, edits] of changes) {
        const path = decodeURIComponent(uri.slice(this.root.length + 1));
        const file = await this.contents.get(path, { content: true, format: "text", type: "file" }).catch(() => ({ content: "" }));
        await this.contents.save(path, { type: "file", format: "text", content: edited(file.content, edits) });
      }
      return true;
    }
  }

  async function extension() {
    const { Completer, CompleterModel, CompletionHandler, ICompletionProviderManager } = await use("@jupyterlab/completer");
    const { ICommandPalette } = await use("@jupyterlab/apputils");
    const { PageConfig } = await use("@jupyterlab/coreutils");
    const { INotebookTracker } = await use("@jupyterlab/notebook");
    const { Widget } = await use("@lumino/widgets");
    return {
      id: "citerec:completer",
      description: "Papers to cite, by the sentence in which one types.",
      autoStart: true,
      requires: [ICompletionProviderManager],
      optional: [INotebookTracker, ICommandPalette],
      activate: (app, manager, notebooks, palette) => {
        const { wsUrl, token, appendToken } = app.serviceManager.serverSettings;
        const url = `${wsUrl}lsp/ws/citerec${appendToken && token ? `?token=${encodeURIComponent(token)}` : ""}`;
        const root = PageConfig.getOption("rootUri").replace(/\/$/, "");
        const conversation = new Conversation(url, root, (edit) => papers.applied(edit));
        const papers = new Papers(conversation, root, app.serviceManager.contents);
        manager.registerProvider(papers);
        manager.selected.connect((_, { insertText }) => papers.chosen(insertText));
        const panel = () => notebooks?.currentWidget;
        const cell = () => panel()?.content.activeCell;
        const isMarkdown = () => cell()?.model.type === "markdown" && Boolean(cell().editor);
        // JupyterLab asks the kernel in every cell; in Markdown a list of its own asks citerec alone.
        const completer = new Completer({ model: new CompleterModel() });
        completer.hide();
        Widget.attach(completer, document.body);
        completer.selected.connect((_, insertText) => papers.chosen(insertText));
        const context = () => ({ widget: panel(), editor: cell()?.editor });
        const handler = new CompletionHandler({ completer, reconciliator: {
          fetch: async (request) => {
            const list = await papers.fetch(request, context());
            return list.items.length ? list : null;
          },
          fetchInline: () => [],
          shouldShowContinuousHint: async (visible, changed) => papers.shouldShowContinuousHint(visible, changed, context()),
        } });
        handler.autoCompletion = true;
        document.addEventListener("focusin", () => {  // a cell gets its editor when it is first edited
          const editor = isMarkdown() && cell().editor.hasFocus() ? cell().editor : null;
          if (editor !== handler.editor) handler.editor = editor;
        });
        app.commands.addCommand("citerec:papers", {
          label: "Papers for the citation in which the cursor stands", isEnabled: isMarkdown,
          execute: () => handler.invoke() });
        app.commands.addKeyBinding({ command: "citerec:papers", keys: ["Ctrl Space"],
                                     selector: ".jp-Notebook.jp-mod-editMode .jp-MarkdownCell" });
        app.commands.addCommand("citerec:choose", { label: "Choose the paper", execute: () => completer.selectActive() });
        app.commands.addKeyBinding({ command: "citerec:choose", keys: ["Enter"],
                                     selector: ".jp-Notebook .jp-MarkdownCell .jp-mod-completer-active" });
        app.commands.addCommand("citerec:cite-here", {
          label: "Cite here: papers for this sentence", isEnabled: isMarkdown,
          execute: () => {
            const { editor } = cell();
            editor.replaceSelection("[@]");
            const { line, column } = editor.getCursorPosition();
            editor.setCursorPosition({ line, column: column - 1 });
            editor.focus();
            handler.invoke();
          } });
        palette?.addItem({ command: "citerec:cite-here", category: "citerec" });
      },
    };
  }

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB.citerec = {
    init: (scope) => { shared = scope; },
    get: async () => { const plugin = await extension(); return () => ({ __esModule: true, default: plugin }); },
  };
})();
