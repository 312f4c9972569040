"""Runs the cells of every notebook that makes a module against that module, as it is exported.

A notebook without a module runs the same cells in `nbdev_test`.
"""

import importlib
import os
import sys
from pathlib import Path

import pytest
from conftest import CONFIG, NOTEBOOKS, ROOT, python
from execnb.shell import CaptureShell
from fastcore.xtras import working_directory
from nbdev.frontmatter import FrontmatterProc
from nbdev.process import NBProcessor

MAKE_MODULES = [path for path in NOTEBOOKS if "#| default_exp" in path.read_text(encoding="utf-8")]
EXPORTS = {"export", "exports", "exporti"}
SKIPPED = set(CONFIG.tst_flags.split())


@pytest.mark.parametrize("notebook", MAKE_MODULES, ids=lambda path: path.stem)
def test_notebook(notebook):
    """One process a notebook, so that neither os.environ nor sys.modules leak into the next."""
    python(__file__, notebook)


def is_left_out(cell) -> bool:
    """Tell whether a cell is exported, flagged as slow and the like, or no code to run."""
    directives = getattr(cell, "directives_", None) or {}
    if cell.cell_type != "code" or (EXPORTS | SKIPPED) & {*directives} or "nbdev_export(" in cell.source:
        return True
    return directives.get("eval:", [""])[0].lower() == "false"


def exported_names(nb) -> dict:
    """Find the module that a notebook exports and give its names, private ones too."""
    directives = (getattr(cell, "directives_", None) or {} for cell in nb.cells)
    name = next((cell["default_exp"][0] for cell in directives if "default_exp" in cell), None)
    if name is None:
        return {}
    module = importlib.import_module(f"{CONFIG.lib_name}.{name}".removesuffix(".__init__"))
    return {key: value for key, value in vars(module).items() if key == "__version__" or not key.startswith("__")}


def main(notebook: Path) -> int:
    """Run one notebook; the traceback names the cell."""
    os.environ["IN_TEST"] = "1"
    sys.path.insert(0, str(ROOT))
    nb = NBProcessor(notebook, procs=FrontmatterProc, process=True).nb
    if str(getattr(nb, "frontmatter_", {}).get("skip_exec", "")).lower() == "true":
        return 0
    shell = CaptureShell(notebook)
    shell.user_ns.update(exported_names(nb))
    with working_directory(notebook.parent):
        try:
            shell.run_all(nb, exc_stop=True, preproc=is_left_out)
        except Exception:
            print(shell.prettytb(fname=notebook), file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
