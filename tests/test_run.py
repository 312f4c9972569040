"""The runner of all tests counts right: what cannot be counted on is a failure."""

from collections import Counter

import pytest
from conftest import ROOT, python
from run import count_junit, count_notebooks, settle

BOTH = ["Starting /n/a.ipynb", "- Completed /n/a.ipynb", "Starting /n/b.ipynb"]
REPORT = '<testsuites><testsuite tests="9" failures="2" errors="1" skipped="1"/></testsuites>'


@pytest.mark.parametrize(
    ("lines", "passed", "failed"),
    [
        ([*BOTH, "- Completed /n/b.ipynb"], 2, 0),
        ([*BOTH, "- Completed /n/b.ipynb", "nbdev Tests Failed On The Following Notebooks:", "\tb.ipynb"], 1, 1),
        (["Starting /n/a.ipynb- Completed /n/b.ipynb", "", "- Completed /n/a.ipynb"], 2, 0),  # two wrote at once
        (BOTH, 1, 1),  # b died with its process
        (["No files were eligible for testing"], 0, 0),
    ],
)
def test_notebooks_are_counted(lines, passed, failed):
    """Passed, failed, died, none."""
    counts = count_notebooks(lines)
    assert (counts["passed"], counts["failed"]) == (passed, failed)


def test_report_is_counted(tmp_path):
    """Errors are failures; no report means nothing ran."""
    report = tmp_path / "report.xml"
    assert count_junit(report) == Counter()
    report.write_text(REPORT)
    assert count_junit(report) == Counter(passed=5, failed=3, skipped=1)


@pytest.mark.parametrize(
    ("code", "passed", "failed", "settled"),
    [(0, 3, 0, 0), (1, 3, 2, 2), (1, 3, 0, 1), (0, 0, 0, 1)],
    ids=["all well", "some failed", "broke down", "nothing ran"],
)
def test_break_downs_are_failures(code, passed, failed, settled):
    """A bad exit code, or no test at all, is a failure even where none was counted."""
    assert settle("it", code, Counter(passed=passed, failed=failed))["failed"] == settled


@pytest.mark.parametrize(("wanted", "file"), [("integration", "test_process"), ("not integration", "test_compose")])
def test_integration_is_a_marker(wanted, file):
    """The marker parts the tests of the whole system from the others."""
    both = [ROOT / "tests" / f"{name}.py" for name in ("test_compose", "test_process")]
    chosen = python("-m", "pytest", "--collect-only", "-q", "--strict-markers", "-m", wanted, *both).stdout
    assert {line.partition("::")[0] for line in chosen.splitlines() if "::" in line} == {f"tests/{file}.py"}
