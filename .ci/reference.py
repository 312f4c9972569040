"""Writes the reference: pages by task and by wing, made from docstrings, parameter comments and the shell's parser.

Usage: python .ci/reference.py folder
"""

import argparse
import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from sidebar import WINGS

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the package that stands here

from citerec.answering.recommender import documented  # noqa: E402
from citerec.frontends.cli import make_parser  # noqa: E402
from citerec.ground.settings import HARMLESS, Settings, comments_beside  # noqa: E402

SECTIONS = {"Parameters": "parameter", "Returns": "result"}
LONGEST_VALUE = 120  # characters of a constant that is shown


class Page(NamedTuple):
    """A page of the reference by task."""

    title: str
    subtitle: str
    intro: str
    names: tuple[str, ...]  # `module:name`, for a class with the methods that are meant; `*`: all, `* but`: all others


PAGES = {
    "recommend": Page(
        "Recommend",
        "Load a corpus, ask for papers to cite, take the answer with you",
        "`citerec.load()` opens a corpus, `rec.recommend(text)` gives a list of papers to cite. The list draws itself, "
        "and can be written as a bibliography. The guide [In Python, the shell and Jupyter](guide_use.ipynb) shows "
        "them at work.",
        (
            "answering.recommender:load",
            "answering.recommender:Recommender * but search asearch similar ask aask stream_ask astream_ask "
            "astream_from parse",
            "answering.recommender:Recommendations *",
            "ground.schema:Recommendation",
            "answering.pipeline:AgentEvent",
        ),
    ),
    "ask": Page(
        "Search and ask",
        "Find papers by plain words, and answer questions from them",
        "`rec.search` finds papers by a description, `rec.ask` answers a question from papers. The guide "
        "[Search and ask](guide_ask.ipynb) shows both.",
        (
            "answering.recommender:Recommender search asearch similar ask aask stream_ask astream_ask "
            "astream_from parse",
            "answering.filters:parse_query",
            "answering.search:SearchResults *",
            "answering.search:SearchResult",
            "answering.answers:Answer *",
            "ground.schema:SearchFilter",
            "ground.schema:ParsedQuery",
        ),
    ),
    "drafts": Page(
        "Drafts and bibliographies",
        "Find what a draft lacks, cite in it, check its bibliography",
        "`Draft` reads LaTeX, Markdown, notebooks, Typst or text with its bibliography. `Bibliography` reads .bib, "
        ".ris and CSL-JSON. "
        "The guides [Your LaTeX or Markdown draft](guide_draft.ipynb) and [Zotero and BibTeX](guide_zotero.ipynb) show "
        "them.",
        (
            "writing.draft:Draft *",
            "writing.draft:Filled",
            "writing.gaps:Gap",
            "writing.insertion:fixes",
            "writing.draft:cited_by_others",
            "writing.comparing:HowCited",
            "writing.bibliography:Bibliography *",
            "writing.remarks:Report *",
            "writing.draft:full_check",
            "writing.draft:checked_fixes",
            "writing.remarks:Checked *",
            "writing.remarks:Remark",
            "sources.registers:ReferenceLookUp *",
            "sources.registers:RegisterAnswer",
        ),
    ),
    "corpora": Page(
        "Corpora",
        "Build, update, open and look into a corpus",
        "`citerec.build` makes a corpus from a service, a file or a list of papers, `citerec.update` adds what is new. "
        "The guide [Your own corpus](guide_corpus.ipynb) shows how.",
        (
            "ranking.catalogue:build",
            "ranking.packs:update",
            "ranking.packs:pack",
            "ranking.packs:get",
            "ranking.corpus:Corpus *",
            "ground.schema:Paper *",
            "sources.source:Source *",
            "sources.source:ListSource *",
        ),
    ),
    "library": Page(
        "Your own PDFs",
        "A library of your PDFs, the questions you asked, and the answers",
        "A `Library` is one file with the text of your PDFs. The guide [Ask your PDFs](guide_pdfs.ipynb) shows it.",
        ("answering.library:Library *", "answering.library:OwnAnswer", "answering.library:AddReport *"),
    ),
    "evaluation": Page(
        "Evaluate, fit and optimise",
        "Measure systems on known citations, fit the ranker, improve the prompts",
        "Queries are texts whose citations are known. `experiment` answers them with each citing document hidden, and "
        "compares. The guide [Evaluate and tune](guide_evaluate.ipynb) shows the way.",
        (
            "evaluation.benchmark:make_queries",
            "evaluation.benchmark:read_queries",
            "evaluation.systems:make_system",
            "evaluation.experiment:experiment",
            "evaluation.experiment:Experiment *",
            "evaluation.metrics:score_run",
            "evaluation.fitting:fit_corpus",
            "evaluation.fitting:FitReport",
            "evaluation.optimising:optimise",
        ),
    ),
}


def cell(text: Any) -> str:
    """Give a text as it may stand in a cell of a table; links stay links."""
    plain = re.sub(r"\s+", " ", str(text)).strip()
    if "`" not in plain: plain = re.sub(r"(?<![\w-])--[a-z][a-z-]*", r"`\g<0>`", plain)  # an option is code
    words = re.split(r"(`[^`]*`)", plain)  # every second piece is code, which only a table's bar would end
    words[::2] = [re.sub(r"([|<>*_$\[\]#~^@\\])", r"\\\1", w).replace("...", "…").replace("--", "\\-\\-")
                  for w in words[::2]]
    plain = "".join(w.replace("|", "\\|") if n % 2 else w for n, w in enumerate(words))
    link = re.compile(r"\\\[(.+?)\\\]\((https://[^)\s]+)\)")
    return link.sub(lambda match: f"[{match[1]}]({match[2].replace(chr(92), '')})", plain)


def code(text: Any) -> str:
    """Give a text as code that may stand in a cell of a table."""
    plain = re.sub(r"\s+", " ", str(text)).strip()
    return f"`{plain}`".replace("|", "\\|") if plain else ""


def sections(doc: str) -> tuple[str, dict[str, list[tuple[str, str]]]]:
    """Split a docstring in numpydoc's layout into its text and, by section, pairs of a head and its meaning."""
    parts = re.split(r"^(\w+)\n-+\n", doc, flags=re.MULTILINE)
    found = {}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        entries = re.findall(r"^(\S.*)\n?((?:^    .*\n?)*)", body, flags=re.MULTILINE)
        found[name] = [(head, inspect.cleandoc(meaning)) for head, meaning in entries]
    return parts[0].strip(), found


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Give a table in Markdown."""
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def parameters(entries: list[tuple[str, str]]) -> str:
    """Give the table of parameters: name, type, default, meaning."""
    rows = []
    for head, meaning in entries:
        name, _, kind = head.partition(" : ")
        kind, _, default = kind.partition("default ")
        kind = re.sub(r"Annotated\[(\w+), (?:[^\[\]]|\[[^\[\]]*\])*\]", r"\1", kind)  # without its checks
        rows.append((code(name), code(kind.strip(", ")), code(default), cell(meaning)))
    return table(("parameter", "type", "default", "meaning"), rows)


def signature(name: str, value: Any) -> str:
    """Give a call with the names and defaults of its parameters, one a line where it is long."""
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):  # exceptions and protocols take what Python gives them
        return ""
    shown, kinds = [], {p.kind for p in found}
    for p in found:
        if p.name in ("self", "cls") or p.name.startswith("_"):  # pydantic adds private ones
            continue
        if p.kind is p.KEYWORD_ONLY and p.VAR_POSITIONAL not in kinds and "*" not in shown:
            shown.append("*")
        default = "" if p.default is p.empty else f"={plain(p.default)}"
        shown.append({p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name + default)
    line = f"{name}({', '.join(shown)})"
    if len(line) > 76:
        lines, now = [], "   "
        for each in shown:
            if len(now) + len(each) > 72:
                lines, now = [*lines, now], "   "
            now += f" {each},"
        line = "\n".join([f"{name}(", *lines, now, ")"])
    return f"```python\n{line}\n```"


def plain(value: Any) -> str:
    """Give a value as one would type it, cut where it is long, without addresses in memory."""
    text = re.sub(r"\s+", " ", re.sub(r" at 0x[0-9a-f]+|<(\w+)\.\w+: (['\w]+)>", r"\2", repr(value)))
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def source_link(value: Any) -> str:
    """Give the link to the lines in which something is written."""
    try:
        path = Path(inspect.getsourcefile(value) or "").resolve().relative_to(ROOT)
        line = inspect.getsourcelines(value)[1]
    except (TypeError, ValueError, OSError):
        return ""
    return f"[source](https://github.com/citerec/citerec/blob/main/{path}#L{line}){{.citerec-source}}"


def entry(name: str, value: Any, anchor: str, level: int) -> str:
    """Describe one function, class, method or constant."""
    head = f"{'#' * level} `{name}` {{#{anchor}}}"
    if isinstance(value, property):
        return "\n\n".join([head, f"*Property.* {cell(value.__doc__ or '')}"])
    if not callable(value) or type(value).__module__ == "typing" or not hasattr(value, "__name__"):
        return "\n\n".join([head, f"```python\n{name} = {plain(value)}\n```"])
    if (getattr(value, "__module__", None) or "").startswith("citerec"):
        documented(value)
    text, found = sections(inspect.cleandoc(value.__doc__ or ""))
    parts = [head, source_link(value), signature(name, value), cell(text)]
    if found.get("Parameters"):
        parts.append(parameters(found["Parameters"]))
    for kind, meaning in found.get("Returns", []):
        parts.append(f"Returns {code(kind)}{': ' + cell(meaning) if meaning else ''}")
    return "\n\n".join(part for part in parts if part)


def methods(value: type, chosen: str = "*") -> dict[str, Any]:
    """Give the public methods and properties that citerec adds to a class."""
    found, others = {}, [base for base in value.__mro__ if not base.__module__.startswith("citerec")]
    for name, member in inspect.getmembers_static(value):
        function = getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)
        ours = inspect.isfunction(function) and function.__module__.startswith("citerec")
        if not name.startswith("_") and ours and not any(name in vars(base) for base in others):
            reached = property(function) if isinstance(member, property) or hasattr(member, "func") else function
            found[name] = reached
    found = dict(sorted(found.items(), key=lambda each: (each[0][1:], 1) if each[0][1:] in found else (each[0], 0)))
    but, named = chosen.startswith("* but "), set(chosen.split())
    return found if chosen == "*" else {name: each for name, each in found.items() if (name in named) != but}


def described(name: str, value: Any, anchor: str, level: int, chosen: str = "") -> list[str]:
    """Describe something, and the chosen methods of a class below it."""
    parts = [entry(name, value, anchor, level)]
    if inspect.isclass(value) and chosen:
        for key, method in methods(value, chosen).items():
            parts.append(entry(f"{name}.{key}", method, f"{anchor}.{key}", level + 1))
    return parts


def page(title: str, subtitle: str, parts: list[str]) -> str:
    """Put a page together."""
    return "\n\n".join([f'---\ntitle: "{title}"\ndescription: "{subtitle}"\ntoc-depth: 3\n---', *parts]) + "\n"


def task_page(spec: Page) -> str:
    """Write one page by task."""
    parts = [spec.intro]
    for line in spec.names:
        where, _, chosen = line.partition(" ")
        module, name = where.split(":")
        value = getattr(importlib.import_module(f"citerec.{module}"), name)
        parts += described(name, value, name, 2, chosen)
    return page(spec.title, spec.subtitle, parts)


def commands(parser: argparse.ArgumentParser, level: int = 2) -> list[str]:
    """Describe a command and those below it."""
    rows, below = [], []
    for action in parser._actions:  # argparse has no public list of options
        if isinstance(action, argparse._SubParsersAction):
            below += [action.choices[choice.dest] for choice in action._choices_actions]
        elif action.help != argparse.SUPPRESS:
            names = ", ".join(action.option_strings) or str(action.metavar or action.dest)
            value = f" {action.metavar}" if action.option_strings and isinstance(action.metavar, str) else ""
            meaning = parser._get_formatter()._expand_help(action) if action.help else ""
            rows.append((code(names + value), cell(meaning)))
    text = re.sub(r"\s+", " ", parser.description or "").strip()
    anchor = parser.prog.replace(" ", "-")
    parts = [f"{'#' * level} `{parser.prog}` {{#{anchor}}}"] if level > 1 else []
    parts += [cell(text), table(("option", "meaning"), rows)] if level > 1 or not below else []
    for each in below:
        parts += commands(each, min(level + 1, 3) if level > 1 else 2)
    return parts


def shell_page() -> str:
    """Write the page of the shell: every command with all of its options."""
    intro = "Every command has `--help`. It ends with 0 if all went well, with 1 if it found faults, as `citerec draft "
    intro += "check` does, and with 2 if it could not work."
    return page("Shell commands", "Every command, with all of its options", [intro, *commands(make_parser(), 1)])


def settings_page() -> str:
    """Write the page of settings and errors."""
    meanings, rows = comments_beside(Settings), []
    for name, field in Settings.model_fields.items():
        variables = [str(one) for one in getattr(field.validation_alias, "choices", []) if str(one).isupper()]
        names = "<br>".join(map(code, [name, *(variables or [f"CITEREC_{name.upper()}"])]))
        default = "" if "SecretStr" in str(field.annotation) else plain(field.default)
        rows.append((names, code(default), cell(meanings.get(name, ""))))
    parts = [
        "A setting is an argument of `citerec.load`, a variable of the environment, or a line of a `.env` file, "
        "which has to be trusted first (`citerec trust`), but for these numbers: "
        f"{', '.join(code(name) for name in Settings.model_fields if name in HARMLESS)}. "
        "A preset sets several of them at once.",
        "## `Settings` {#Settings}",
        '```python\nciterec.load(k=5, llm="offline")  # or CITEREC_K=5 in the environment\n```',
        table(("setting and variable", "default", "meaning"), rows),
        "## Errors {#errors}\n\nEvery error that a user can meet says what is wrong and what to do.",
    ]
    errors = importlib.import_module("citerec.ground.errors")
    for name in errors.__all__:
        if inspect.isclass(value := getattr(errors, name)):
            parts += described(name, value, name, 3, "*")
    return page("Settings and errors", "Every setting with its variable, its default and its meaning", parts)


def wing_pages() -> dict[str, str]:
    """Write, for each wing, every public name of its modules and every public method."""
    found: dict[str, list[str]] = {}
    titles = {str(digit): wing for digit, wing in enumerate(WINGS)} | {"testing": "Testing"}
    nbs = ROOT / "nbs"
    for notebook in [*sorted(nbs.glob("[0-9]*.ipynb")), *sorted(nbs.glob("testing/*.ipynb"))]:
        named = re.search(r"#\| default_exp ([\w.]+)", notebook.read_text(encoding="utf-8"))
        if not named:
            continue
        module = importlib.import_module(f"citerec.{named[1]}".removesuffix(".__init__"))
        parts = found.setdefault(notebook.name[0] if notebook.parent == nbs else "testing", [])
        first = (module.__doc__ or "").strip().partition("\n")[0]
        head = f"## {module.__name__} {{#{module.__name__}}}"
        parts.append(f"{head}\n\n{cell(first)} ([chapter]({notebook.relative_to(nbs)}))")
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if getattr(value, "__module__", module.__name__) in (module.__name__, None) or not callable(value):
                parts += described(name, value, f"{module.__name__}.{name}", 3, "*")
    intro = "Every public name of these modules, for those who build on them. The chapters explain and test them."
    return {
        f"modules_{wing}": page(f"Modules: {titles[wing]}", f"Every public name of wing {wing}", [intro, *parts])
        for wing, parts in found.items()
    }


def write(folder: Path) -> list[str]:
    """Write all pages into a folder, and name them."""
    pages = {f"reference_{name}": task_page(spec) for name, spec in PAGES.items()}
    pages |= {"reference_shell": shell_page(), "reference_settings": settings_page(), **wing_pages()}
    for name, text in pages.items():
        (folder / f"{name}.qmd").write_text(text, encoding="utf-8")
    return [f"{name}.qmd" for name in pages]


if __name__ == "__main__":
    write(Path(sys.argv[1]))
