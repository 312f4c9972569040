// Starts `citerec lsp` and hands it the drafts that are open. All knowledge is in the server.
import { ExtensionContext, Uri, commands, env, window, workspace } from "vscode";
import { LanguageClient, LanguageClientOptions, ServerOptions } from "vscode-languageclient/node";

const LANGUAGES = ["latex", "tex", "bibtex", "markdown", "quarto", "myst", "typst"];
const INSTALL = "https://github.com/citerec/citerec#readme";

const PATIENCE = 2; // seconds for which a list waits until it is ranked: an open list is not asked for again

let client: LanguageClient | undefined;

/** What the server is told at its start: only what the user has set. */
function options(): Record<string, string> {
  const settings = workspace.getConfiguration("citerec");
  const said = ["corpus", "registry", "venue"].map((name): [string, string] => [name, settings.get<string>(name, "")]);
  return Object.fromEntries(said.filter(([, value]) => value !== ""));
}

/** Start the server, or say how to install it where its command is not found. */
async function start(): Promise<void> {
  const [command, ...args] = workspace.getConfiguration("citerec").get<string[]>("command", ["citerec", "lsp"]);
  const server: ServerOptions = { command, args };
  const selected: LanguageClientOptions = {
    documentSelector: [
      ...LANGUAGES.flatMap((language) => [{ scheme: "file", language }, { scheme: "untitled", language }]),
      { notebook: "jupyter-notebook", language: "markdown" },
    ],
    initializationOptions: { ...options(), patience: PATIENCE },
    synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.{bib,yml}") },
    outputChannelName: "citerec",
  };
  client = new LanguageClient("citerec", "citerec", server, selected);
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const settings = "Open the settings", install = "How to install";
    const chosen = await window.showErrorMessage(
      `citerec could not start "${[command, ...args].join(" ")}" (${error instanceof Error ? error.message : error}). ` +
        "Install it with its editor extra, or name its command in the settings.", settings, install);
    if (chosen === settings) await commands.executeCommand("workbench.action.openSettings", "citerec.command");
    if (chosen === install) await env.openExternal(Uri.parse(INSTALL));
  }
}

/** End the server, where one runs. */
async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  if (running?.needsStop()) await running.stop();
}

export async function activate(context: ExtensionContext): Promise<void> {
  const again = async (): Promise<void> => { await stop(); await start(); };
  context.subscriptions.push(
    commands.registerCommand("citerec.restart", again),
    commands.registerCommand("citerec.log", () => client?.outputChannel.show()),
    workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("citerec") ? again() : undefined),
  );
  await start();
}

export const deactivate = stop;
