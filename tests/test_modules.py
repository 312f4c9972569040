"""Checks that each module stands on its own: `nbdev_test` runs its functions where its notebook's other names are."""

import builtins
import dis
import importlib
import re
from types import CodeType

import pytest
from conftest import ROOT

MODULES = sorted(path for path in (ROOT / "citerec").rglob("*.py") if path.name != "_modidx.py")


def global_names(code: CodeType) -> set[str]:
    """Collect the global names that a piece of code, or anything defined inside it, reads."""
    read = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    return read.union(*(global_names(part) for part in code.co_consts if isinstance(part, CodeType)))


def missing_names(source: str, known: set[str]) -> set[str]:
    """Find the names that a module's code reads and neither the module nor Python has."""
    return global_names(compile(source, "module", "exec")) - known - set(dir(builtins))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT / "citerec")))
def test_module_needs_no_notebook(path):
    """A function may use only what its module defines or imports."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    assert missing_names(path.read_text(encoding="utf-8"), {*vars(module)}) == set()


def test_a_name_of_the_notebook_is_found():
    """A name that only the notebook has is missing from the module."""
    source = "def f(x): return [helper(y) for y in x]\nclass A:\n    def g(self): return lambda: len(other)"
    assert missing_names(source, {"f", "A"}) == {"helper", "other"}


def test_the_package_needs_no_lab():
    """The lab stays in the repository, so no module of the wheel may import it."""
    outside = [path for path in MODULES if path.parent.name != "lab"]
    assert len(outside) < len(MODULES)
    imported = re.compile(r"^\s*(from|import) citerec\.lab", re.MULTILINE)
    assert [path.name for path in outside if imported.search(path.read_text(encoding="utf-8"))] == []
