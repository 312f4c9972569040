"""Print how the notebooks are built, and fail where a rule of the house is broken.

    python .ci/house.py [--all]      --all also prints every cell that is long, and every display without an output
"""
import ast
import json
import re
import sys
from collections import Counter
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
LONG = 40  # lines of an exported cell; how many lines stand in longer ones is printed, not judged
LARGEST = .30  # of the lines, in one folder of the package
PICTURES = 15  # notebooks with one
WIDTH = 120  # columns
NOT_SHOWN = re.compile(r"#\| (export|exporti|hide|slow|default_exp|eval: *false)")
# calls whose value nobody looks at
QUIET = tuple("""test_ assert cleanup close write mkdir touch unlink clear append check put save kill rmtree
copytree extend remove wait send_signal terminate main update setdefault absorb print""".split())
SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
PICTURE = re.compile(r"!\[.*\]\(|<img |<svg |```\{?mermaid")


def source(cell: dict) -> str:
    return "".join(cell["source"])


def is_exported(cell: dict) -> bool:
    return cell["cell_type"] == "code" and bool(re.match(r"#\| exporti?\b", source(cell)))


def lines_of(cell: dict) -> int:
    return sum(bool(line.strip()) and not line.startswith("#|") for line in source(cell).splitlines())


def shows(cell: dict) -> bool:
    """Whether a cell ends in a value, a picture or something printed."""
    text = source(cell)
    if cell["cell_type"] != "code" or NOT_SHOWN.match(text): return False
    try: body = ast.parse(text).body
    except SyntaxError: return False
    if not body: return False
    if any(ast.unparse(n.func) in ("print", "plt.show") for n in body_calls(body)): return True
    last = body[-1]
    if not isinstance(last, ast.Expr) or text.rstrip().endswith(";"): return False
    called = last.value.func if isinstance(last.value, ast.Call) else None
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    return not isinstance(last.value, ast.Constant) and not name.startswith(QUIET)


def body_calls(body: list) -> list:
    """Calls at the top level of a cell, not inside functions and classes."""
    out, left = [], [n for n in body if not isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    while left:
        node = left.pop()
        if isinstance(node, ast.Call): out.append(node)
        left += [n for n in ast.iter_child_nodes(node) if not isinstance(n, SCOPES)]
    return out


def main() -> int:
    paths = sorted((ROOT / "nbs").glob("*.ipynb"))
    notebooks = {p.stem: json.loads(p.read_text(encoding="utf-8"))["cells"] for p in paths}
    home = {}
    for name, cells in notebooks.items():
        for cell in cells:
            if module := re.match(r"#\| default_exp (\S+)", source(cell)): home[module[1]] = name
    faults, everything = [], "--all" in sys.argv

    numbers = Counter(name.partition("_")[0] for name in notebooks if name[:2].isdigit())  # an annex has a letter
    faults += [f"the number {number} is used {n} times" for number, n in numbers.items() if n > 1]
    for name in home.values():
        text = "\n".join(source(c) for c in notebooks[name] if is_exported(c))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("citerec"):
                wanted = [(node.module or "").removeprefix("citerec").lstrip(".")]
                wanted = wanted if wanted[0] in home else [f"{wanted[0]}.{a.name}".lstrip(".") for a in node.names]
                for other in wanted:
                    if other in home and other != "__init__" and home[other] >= name:
                        faults.append(f"{name} imports {other} of {home[other]}")

    folders: Counter[str] = Counter()
    for path in (ROOT / "citerec").rglob("*.py"):
        if path.name == "_modidx.py": continue
        where = path.relative_to(ROOT / "citerec").parts
        folders[where[0] if len(where) > 1 else "."] += len(path.read_text(encoding="utf-8").splitlines())
    folder, most = folders.most_common(1)[0]
    share = most / folders.total()
    print(f"largest folder: {folder} with {share:.0%} of {folders.total()} lines")
    if share >= LARGEST: faults.append(f"{folder} holds {share:.0%} of the lines")

    cells = [(name, c) for name, own in notebooks.items() for c in own]
    exported = [(name, c["id"], lines_of(c)) for name, c in cells if is_exported(c)]
    sizes = [n for *_, n in exported]
    long = sum(n for n in sizes if n > LONG) / sum(sizes)
    print(f"exported cells: {len(sizes)}, median {median(sizes):g} lines, longest {max(sizes)}, "
          f"{long:.1%} of the lines in cells over {LONG}")
    faults += [f"{name} {c['id']} ends with an empty line" for name, c in cells if source(c) != source(c).rstrip()]
    shown = [(name, c) for name, c in cells if shows(c) and name != "app"]  # a widget is saved by no notebook
    blank = [(name, c["id"]) for name, c in shown if not c["outputs"]]
    print(f"display cells: {len(shown)}, without a saved output: {len(blank)}")
    if blank: faults.append(f"{len(blank)} display cells have no saved output")
    images = {"image/png", "image/svg+xml"}
    drawn = {name for name, c in cells for o in c.get("outputs", []) if images & set(o.get("data", {}))}
    drawn |= {name for name, c in cells if c["cell_type"] == "markdown" and PICTURE.search(source(c))}
    print(f"notebooks with a picture: {len(drawn)}: {', '.join(sorted(drawn))}")
    if len(drawn) < PICTURES: faults.append(f"{len(drawn)} notebooks have a picture")
    code = [(name, c["id"], line) for name, c in cells if c["cell_type"] == "code" for line in source(c).splitlines()]
    wide = [(name, cell, len(line)) for name, cell, line in code if len(line) > WIDTH]
    print(f"code lines over {WIDTH} columns: {len(wide)}")
    if everything:
        for name, cell, n in sorted(exported, key=lambda e: -e[2]):
            if n > LONG: print(f"  {n} lines: {name} {cell}")
        for name, cell in blank: print(f"  no output: {name} {cell}")
        for name, n in Counter(name for name, *_ in wide).most_common(): print(f"  {n} wide lines: {name}")
    for fault in faults: print(f"BROKEN: {fault}")
    return bool(faults)


if __name__ == "__main__": sys.exit(main())
