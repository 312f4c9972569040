"""Run notebooks on the sample corpus and keep what their display cells show.

    python .ci/execute.py [nbs/45_signals.ipynb ...]      without names: all of them
    python .ci/execute.py nbs/lab/diary.ipynb --only c001 c003 c004      these cells alone, slow ones too

What varies from run to run is written in one form: temporary folders, ports, ids of runs, addresses of objects, and
"…" for a time, because a page must not show a figure that nobody measured. Cells
marked `slow` or `eval: false` are not run and keep the output they have. A notebook that raises is left as it was.
"""
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from house import ROOT, shows
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

VARIES = [  # what differs between two runs -> what stands for it
    (r"/(?:private/)?(?:tmp|var/folders/[\w/]+)/tmp[\w.]+", "/tmp/folder"), (re.escape(str(ROOT)), "citerec"),
    (re.escape(str(Path.home())), "~"),
    (r"127\.0\.0\.1:\d{4,5}", "127.0.0.1:8000"), (r"0x[0-9a-f]{8,}", "0x1"), (r"\b[0-9a-f]{32}\b", "0123456789abcdef"),
    (r"\b\d+\.\d+ s\b", "… s"), (r"\b\d+(?:\.\d+)? ms\b", "… ms"), (r"seconds=\d+\.\d+", "seconds=…"),
]
WIDEST = 60_000  # characters of one output; longer ones belong into a shorter repr
LOGGED = '<pre style="white-space:pre;overflow-x:auto'  # what a library logs by way of rich
NOT_RUN = re.compile(r"^#\| *(slow|eval: *false)", re.MULTILINE)


def normal(value: object) -> object:
    """An output with what varies in one form."""
    if isinstance(value, dict): return {k: v if k.startswith("image/") else normal(v) for k, v in value.items()}
    if isinstance(value, list): return [normal(v) for v in value]
    if not isinstance(value, str): return value
    for pattern, said in VARIES: value = re.sub(pattern, said, value)
    return value


def kept(cell: dict) -> list:
    """The outputs of a cell that are worth keeping: none of errors and warnings, none of cells that only test."""
    if not shows(cell): return []
    def fits(output: dict) -> bool: return len(json.dumps(output.get("data", {}).get("text/plain", ""))) < WIDEST
    def logged(output: dict) -> bool: return "".join(output.get("data", {}).get("text/html", "")).startswith(LOGGED)
    shown = ("display_data", "execute_result", "stream")
    outputs = [normal(o) for o in cell.get("outputs", []) if o["output_type"] in shown]
    outputs = [o for o in outputs if o.get("name") != "stderr" and fits(o) and not logged(o)]
    for one, following in zip(outputs, outputs[1:], strict=False):  # what was printed in several pieces is one output
        if one["output_type"] == following["output_type"] == "stream":
            following["text"], one["text"] = one["text"] + following["text"], ""
    outputs = [o for o in outputs if o.get("text", "-")]
    for o in outputs:
        o.pop("execution_count", None)
        if o["output_type"] == "execute_result": o["execution_count"] = None
        o.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
    return outputs


def execute(path: Path, only: list[str]) -> str:
    """Run one notebook, or only some of its cells; gives what went wrong, or nothing."""
    notebook = nbformat.read(path, as_version=4)
    before = {c["id"]: c.get("outputs", []) for c in notebook.cells if c.cell_type == "code"}
    whole = {c["id"]: c.source for c in notebook.cells}
    def skipped(cell: dict) -> bool:
        return cell["id"] not in only if only else bool(NOT_RUN.search(whole[cell["id"]]))
    for cell in notebook.cells:
        if cell.cell_type == "code" and skipped(cell): cell.source = ""
    os.environ["IN_TEST"] = "1"
    os.environ.setdefault("XDG_DATA_HOME", tempfile.mkdtemp(prefix="citerec-data-"))  # not the user's own data
    resources = {"metadata": {"path": str(path.parent)}}
    try: NotebookClient(notebook, timeout=None if only else 600, kernel_name="python3", resources=resources).execute()
    except CellExecutionError as e: return f"{path.name}: {str(e).strip().splitlines()[-1]}"
    written = json.loads(path.read_text(encoding="utf-8"))
    for cell, ran in zip(written["cells"], notebook.cells, strict=True):
        if cell["cell_type"] != "code": continue
        asked = {**cell, "source": NOT_RUN.sub("", whole[cell["id"]]).lstrip(), "outputs": ran.get("outputs", [])}
        cell["outputs"] = before[cell["id"]] if skipped(cell) else kept(asked)
        cell["execution_count"] = None
        for o in cell["outputs"]:
            if "text" in o and isinstance(o["text"], str): o["text"] = o["text"].splitlines(keepends=True)
    content = json.dumps(written, indent=1, ensure_ascii=False, sort_keys=True)  # as nbdev_clean writes it
    path.write_text(content + "\n", encoding="utf-8")
    return ""


def main() -> int:
    names, only = sys.argv[1:], list[str]()
    if "--only" in names: names, only = names[: names.index("--only")], names[names.index("--only") + 1 :]
    paths = [Path(name).resolve() for name in names] or sorted((ROOT / "nbs").glob("*.ipynb"))
    faults = []
    for path in paths:
        print(path.name, flush=True)
        if fault := execute(path, only): faults.append(fault)
    for fault in faults: print(f"FAILED: {fault}")
    return bool(faults)


if __name__ == "__main__": sys.exit(main())
