"""Runs every test: the notebooks by nbdev_test, then tests/, and closes with one line `N passed, N failed`.

Usage: python tests/run.py
"""

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
CORES = os.cpu_count() or 1
WORKERS = min(4, CORES)  # each needs up to 1 GB: some notebooks load torch
KEYS = ("OPENAI_API_KEY", "CITEREC_OPENAI_API_KEY", "CITEREC_LLM_API_KEY")  # left out: no test spends money
ENV = {name: value for name, value in os.environ.items() if name not in KEYS}
ENV |= {"XDG_DATA_HOME": tempfile.mkdtemp(prefix="citerec-data-")}  # no test writes to the user's own data
ENV |= {"OMP_NUM_THREADS": str(max(1, CORES // WORKERS)), "PYTHONUNBUFFERED": "1", "RUST_BACKTRACE": "0"}


def stream(*command: str | Path) -> tuple[int, list[str]]:
    """Run a command, show what it prints as it comes, and give its exit code and its lines."""
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=ROOT, env=ENV, text=True, stdin=none, stdout=pipe, stderr=subprocess.STDOUT)
    assert process.stdout
    lines = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line.rstrip("\n"))
    return process.wait(), lines


def count_notebooks(lines: list[str]) -> Counter:
    """Count notebooks in what nbdev_test printed; one that started but did not complete died with its worker."""

    def named(before: str) -> set[str]:  # two workers may write on one line
        return {Path(name).name for name in re.findall(before + r"(.+?\.ipynb)", "\n".join(lines))}

    failed = named("\t")
    passed = named("- Completed ") - failed
    return Counter(passed=len(passed), failed=len((named("Starting ") | failed) - passed))


def count_junit(report: Path) -> Counter:
    """Count tests in pytest's report."""
    if not report.is_file():
        return Counter()
    suite = ElementTree.parse(report).getroot()[0]
    number = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    failed = number["failures"] + number["errors"]
    return Counter(passed=number["tests"] - failed - number["skipped"], failed=failed, skipped=number["skipped"])


def settle(name: str, code: int, counts: Counter) -> Counter:
    """Make a run that broke down, or that ran nothing, a failure."""
    if counts["failed"] == 0 and (code != 0 or counts["passed"] == 0):
        print(f"{name} ended with exit code {code} and {counts['passed']} passed tests: that is a failure")
        counts["failed"] = 1
    print(f"--- {name}: {', '.join(f'{n} {kind}' for kind, n in counts.items())}", flush=True)
    return counts


def main() -> int:
    """Run both parts and close with the sum."""
    nbdev_test = Path(sys.executable).with_name("nbdev_test")
    code, lines = stream(nbdev_test, "--do_print", "--timing", "--n_workers", str(WORKERS))
    total = settle("nbdev_test", code, count_notebooks(lines))
    names = {line.strip().split("/")[-1] for line in lines if line.startswith("\t")}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        spread = ("-n", str(WORKERS), "--dist", "loadgroup")
        code, _ = stream(sys.executable, "-m", "pytest", "tests", "-ra", *spread, f"--junitxml={report}")
        total += settle("tests/", code, count_junit(report))
    for name in sorted(names):  # its traceback stands far above
        print(f"FAILED {name}")
    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    print(f"{total['passed']} passed, {total['failed']} failed{skipped}", flush=True)
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
