"""Every error that names an extra of citerec names one that exists, and that brings what is missing."""

import ast
import re
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = {"acl_anthology": "acl-anthology", "python_multipart": "python-multipart", "sklearn": "scikit-learn",
                 "sentence_transformers": "sentence-transformers"}  # where an import differs
NAMED = re.compile(r"citerec\[([\w-]+)\]")


def read_extras() -> dict[str, set[str]]:
    """Extra -> the distributions that it brings by itself."""
    config = ConfigParser(delimiters=["="])
    config.read(ROOT / "settings.ini", encoding="utf-8")
    told = config["DEFAULT"]
    ending = "_requirements"
    return {key.removesuffix(ending): {re.split(r"[\[<>=!~;]", one)[0].lower() for one in told[key].split()}
            for key in told if key.endswith(ending)}


def brought(extra: str, package: str) -> bool:
    """Whether an extra brings what is imported under a name, by itself or by another extra that it names."""
    own = EXTRAS[extra] | {one for name in EXTRAS[extra] for one in EXTRAS.get(name, ())}
    return DISTRIBUTIONS.get(package, package).lower() in own


EXTRAS = read_extras()
MODULES = sorted((ROOT / "citerec").rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
FUNCTIONS = [(path, node) for path, tree in TREES.items() for node in ast.walk(tree)
             if isinstance(node, ast.FunctionDef)]
KNOWN = {"fastapi", "uvicorn", "python_multipart", "mcp", "jupyterlab", "voila", "pygls", "lsprotocol"}


def words_of(node: ast.AST) -> str:
    """All text in a piece of code."""
    return " ".join(one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str))


def said_by(path: Path, function: ast.FunctionDef) -> str:
    """All text in a function, and in the constants of its module that it names."""
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    named = [node.value for node in TREES[path].body if isinstance(node, ast.Assign)
             and any(getattr(target, "id", "") in used for target in node.targets)]
    return " ".join(map(words_of, [function, *named]))


def failing_imports(function: ast.FunctionDef) -> set[str]:
    """The packages whose missing a function catches."""
    caught = [node for node in ast.walk(function) if isinstance(node, ast.Try)
              and any(one.type is not None and "ImportError" in ast.dump(one.type) for one in node.handlers)]
    return {alias.name.split(".")[0] for node in caught for part in node.body for one in ast.walk(part)
            if isinstance(one, ast.Import) for alias in one.names} | {
            one.module.split(".")[0] for node in caught for part in node.body for one in ast.walk(part)
            if isinstance(one, ast.ImportFrom) and one.module and not one.level}


def test_named_extras_exist():
    named = {extra for tree in TREES.values() for extra in NAMED.findall(words_of(tree))}
    assert named and named <= EXTRAS.keys()


def test_errors_of_missing_packages():
    """Where an import fails and an extra is named, the extra brings that package."""
    checked = set()
    for path, function in FUNCTIONS:
        for extra in NAMED.findall(said_by(path, function)):
            for package in failing_imports(function) - {"citerec"}:
                assert brought(extra, package), f"{path.name}, {function.name}: {extra} does not bring {package}"
                checked.add((extra, package))
    assert {("cluster", "distributed"), ("dspy", "dspy"), ("arxiv", "arxiv")} <= checked


def test_commands_check_what_an_extra_brings():
    checked = set()
    for path, function in FUNCTIONS:
        texts = [one.value for one in ast.walk(function)
                 if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)
                 and getattr(node.func, "id", "") == "check_installed"]
        for call in calls:
            extra = call.args[1].value
            packages = [call.args[0].value] if isinstance(call.args[0], ast.Constant) else [
                text for text in texts if re.fullmatch(r"[a-z_]+", text) and text in KNOWN]
            assert packages, f"{path.name}, {function.name}"
            for package in packages:
                assert brought(extra, package), f"{path.name}, {function.name}: {extra} does not bring {package}"
                checked.add((extra, package))
    assert {("app", "jupyterlab"), ("app", "voila"), ("server", "fastapi"), ("server", "mcp"),
            ("editor", "pygls")} <= checked


@pytest.mark.parametrize("kind", ["models", "cross_encoder"])
def test_models_name_the_extra_that_brings_their_package(kind):
    if kind == "models":
        from citerec.indexes.models import MODEL_CARDS as cards
    else:
        from citerec.ranking.choosing import PACKAGED as cards
    named = [card for card in cards.values() if card.extra]
    for card in named:
        assert card.extra in EXTRAS
        assert card.package.replace("_", "-") in EXTRAS[card.extra]
    assert named
