"""What several tests share: the repository, its notebooks and settings, and a process of their own."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from nbdev.config import get_config
from nbdev.doclinks import nbglob

ROOT = Path(__file__).resolve().parent.parent
CONFIG = get_config(path=ROOT)
NOTEBOOKS = sorted(Path(path) for path in nbglob(CONFIG.nbs_path))
TIME_LIMIT = 900  # seconds after which a process counts as hung
for name in ("OPENAI_API_KEY", "CITEREC_OPENAI_API_KEY", "CITEREC_LLM_API_KEY"):
    os.environ.pop(name, None)  # no test spends money
os.environ.setdefault("XDG_DATA_HOME", tempfile.mkdtemp(prefix="citerec-data-"))  # nor writes to the user's own data

INTEGRATION = {  # they start browsers, servers or processes, build corpora, or try all cases of a draft
    "test_attacks", "test_browser", "test_browser_recommend", "test_cases", "test_doubles", "test_draft_attacks",
    "test_editor",
    "test_foreign_corpora", "test_foreign_folder", "test_hostile_corpora", "test_hostile_pdfs", "test_jupyterlab",
    "test_modules", "test_no_network", "test_packs", "test_process", "test_qdrant_server", "test_tex",
}


def pytest_configure(config):
    """Register the marker, so that a misspelled one is not taken for it."""
    config.addinivalue_line("markers", "integration: runs the whole system, and takes minutes")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests of the whole system: `pytest tests -m "not integration"` runs the others."""
    for item in items:
        if item.path.stem in INTEGRATION:
            item.add_marker("integration")


def run(*command, cwd=ROOT, **env) -> subprocess.CompletedProcess:
    """Run a command in a process that shares nothing with this one."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
    )


def python(*arguments, **kwargs) -> subprocess.CompletedProcess:
    """Run this Python in a process of its own; a failure shows what the process wrote."""
    safe = ("-P",) if "-c" in arguments else ()  # what lies in the working folder is not imported
    done = run(sys.executable, *safe, *arguments, **kwargs)
    if done.returncode:
        pytest.fail(f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}", pytrace=False)
    return done
