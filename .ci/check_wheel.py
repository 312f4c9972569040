"""Check the package as people get it: `python .ci/check_wheel.py`.

Builds the source archive and the wheel, checks what a package index would show, installs the wheel into an empty
environment, and asks it a question there without a network. The installation must be light: no torch, and at most
MOST_MB on disk.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_MB = 650  # of the environment, with the wheel and all that it needs
HEAVY = {"torch", "transformers", "sentence-transformers"}  # packages that only an extra may bring
QUESTION = "We drop recurrence and rely on self-attention only."
ANSWER = "Attention Is All You Need"


def run(*command: object, **options: object) -> str:
    """Run a command and return what it prints; what goes wrong is shown."""
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, **options)  # type: ignore
    if done.returncode: sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return str(done.stdout)


def megabytes(folder: Path) -> float:
    """The size of a folder on disk, without links."""
    return sum(p.lstat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink()) / 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as d:
        work, python = Path(d), Path(d) / "venv" / "bin" / "python"
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", work / "dist", ROOT)
        run(sys.executable, "-m", "twine", "check", "--strict", *(work / "dist").iterdir())
        run(sys.executable, "-m", "venv", work / "venv")
        bare = megabytes(work / "venv")
        (wheel,) = (work / "dist").glob("*.whl")
        run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel)
        lab = work / "venv" / "share" / "jupyter" / "labextensions" / "citerec" / "package.json"
        if not lab.is_file(): sys.exit("the installation lacks the extension of JupyterLab")
        packages = {p["name"].lower() for p in json.loads(run(python, "-m", "pip", "list", "--format", "json"))}
        size = megabytes(work / "venv") - bare
        alone = ["unshare", "--net"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        home = {**os.environ, "HOME": d, "XDG_CACHE_HOME": f"{d}/cache", "XDG_DATA_HOME": f"{d}/data"}
        answer = run(*alone, work / "venv" / "bin" / "citerec", "recommend", QUESTION, env=home, cwd=d)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.0f} MB; installed: {len(packages)} packages, {size:.0f} MB")
        if ANSWER not in answer: sys.exit(f"the installed wheel does not answer:\n{answer[-2000:]}")
        if packages & HEAVY: sys.exit(f"the installation brings {', '.join(sorted(packages & HEAVY))}")
        if size > MOST_MB: sys.exit(f"the installation takes {size:.0f} MB, more than {MOST_MB}")


if __name__ == "__main__":
    main()
