"""Writes .env.example from the settings: every one with its default and its meaning, first what people change first."""

import inspect
from pathlib import Path
from typing import Any

from pydantic import AliasChoices

from citerec.ground.settings import HARMLESS, Settings, comments_beside

ROOT = Path(__file__).resolve().parent.parent
FIRST = tuple("""corpus k min_confidence device embedding_model reranker llm llm_model llm_base_url llm_budget library
openai_api_key llm_api_key openalex_api_key semantic_scholar_api_key""".split())
HEAD = """\
# Settings of citerec: name, default, meaning. Copy what you change into a file named .env in the folder where you work,
# without the first #. An argument is nearer than an environment variable, and that is nearer than a line of .env.
# Lines marked * are obeyed after `citerec trust`, which you type once in that folder, and again after a change.
"""


def variable(name: str) -> str:
    """Name the environment variable of a field: the name that others use for a key, else ours."""
    alias = Settings.model_fields[name].validation_alias
    return str(alias.choices[2]) if isinstance(alias, AliasChoices) else f"CITEREC_{name.upper()}"


def shown(default: Any) -> str:
    """Write a default as a line of .env has it."""
    return "" if default is None else str(default).lower() if isinstance(default, bool) else str(default)


def main() -> None:
    """Write the file; the comments beside the fields of the class are the meanings, its comments between are groups."""

    def line(name: str) -> str:
        mark, meaning = "" if name in HARMLESS else "* ", meanings[name].replace("None:", "unset:")
        return f"# {mark}{meaning}\n#{variable(name)}={shown(Settings.model_fields[name].default)}\n"

    meanings, (_, *groups) = comments_beside(Settings), inspect.getsource(Settings).split("# ---- ")
    text = HEAD + "\n# ---- What people change first\n" + "".join(map(line, FIRST))
    for group in groups:
        own = [name for name in meanings if f"\n    {name}:" in group and name not in FIRST]
        text += f"\n# ---- {group.splitlines()[0]}\n" + "".join(map(line, own))
    (ROOT / ".env.example").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
