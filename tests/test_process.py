"""What only a fresh process, a wheel or a command line can show."""

import ast
import json
import re
import shutil
import sys
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from conftest import CONFIG, ROOT, python, run

HEAVY = {"torch", "transformers", "sentence_transformers", "langgraph", "openai", "pandas", "numpy", "pydantic"}
DATA_PACKAGES = dict(pair.split("=") for pair in CONFIG.data_packages.split())
CITEREC = Path(sys.executable).with_name("citerec")


def test_import_is_light():
    """`import citerec` loads neither the heavy packages nor any module of its own."""
    done = python("-c", "import citerec, json, sys; print(json.dumps([dir(citerec), [*sys.modules]]))")
    names, modules = json.loads(done.stdout)
    assert {"load", "Recommender", "Recommendations", "Corpus"} <= {*names}
    assert not HEAVY & {*modules}
    assert not [name for name in modules if name.startswith("citerec.")]


def test_help_without_docstrings():
    """The help is the same where Python drops docstrings; it loads nothing heavy."""
    script = "import sys, citerec.frontends.cli; citerec.frontends.cli.make_parser().parse_args(sys.argv[1:])"
    asked = [run(sys.executable, *flags, "-c", script, "recommend", "--help") for flags in ([], ["-OO"])]
    assert asked[0].stdout == asked[1].stdout
    assert "--known ID" in asked[0].stdout
    code = "import json, sys, citerec.frontends.cli as c; c.make_parser(); print(json.dumps([*sys.modules]))"
    seen = python("-c", code).stdout
    assert not HEAVY & {*json.loads(seen)}


def plain(name: str) -> str:
    """Write a distribution's name as the package index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_requirements_are_complete():
    """What a module imports stands in settings.ini; no import rests on what another package happens to bring."""
    names = [name for name in CONFIG.d if name.endswith("_requirements") and name != "dev_requirements"]
    extras = (CONFIG.d[name] for name in names)
    lines = " ".join([CONFIG.requirements, *extras]).split()
    named = {plain(match[0]) for line in lines if (match := re.match(r"[\w.-]+", line))}
    own, bring = {*sys.stdlib_module_names, CONFIG.lib_name}, packages_distributions()
    missing = []
    for path in sorted(p for p in CONFIG.lib_path.rglob("*.py") if p.parent.name != "lab"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                modules = [node.module or ""]
            for package in {module.split(".")[0] for module in modules} - own:
                if not {plain(name) for name in bring.get(package, [])} & named:
                    missing.append(f"{path.relative_to(ROOT)}:{node.lineno} {package}")
    assert not missing


@pytest.fixture(scope="module")
def long_draft(tmp_path_factory):
    """A file with far more text than a paragraph."""
    path = tmp_path_factory.mktemp("draft") / "long.md"
    path.write_text("attention " * 20_000, encoding="utf-8")
    return path


TEXT = "We drop recurrence and rely on self-attention only."
BAD = {
    "unknown option": ["recommend", TEXT, "--nonsense"],
    "no text": ["recommend"],
    "greeting": ["recommend", "hello"],
    "k = 0": ["recommend", TEXT, "--k", "0"],
    "years in the wrong order": ["recommend", TEXT, "--year-min", "2020", "--year-max", "2010"],
    "missing corpus": ["info", "no/such/corpus"],
    "missing corpus to search": ["recommend", TEXT, "--corpus", "no/such/corpus"],
    "missing draft": ["recommend", "--file", "no/such/draft.md"],
    "unknown preset": ["recommend", TEXT, "--preset", "nonsense"],
    "missing source": ["build", "corpus", "--source", "no/such/source"],
}


def check_refusal(done):
    """One clear line on stderr, exit code 2, no traceback."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(arguments, tmp_path):
    """What cannot be done is said in one line, and nothing is left half-written."""
    check_refusal(run(CITEREC, *arguments, cwd=tmp_path))
    assert not any(tmp_path.iterdir())


def test_too_long_a_draft_is_refused(long_draft, tmp_path):
    """200,000 characters are no paragraph."""
    check_refusal(run(CITEREC, "recommend", "--file", long_draft, cwd=tmp_path))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this tree, built in a copy so that no build folder is left behind."""
    copy, out = tmp_path_factory.mktemp("copy") / "citerec", tmp_path_factory.mktemp("wheel")
    copy.mkdir()
    for name in ("citerec", "editors/jupyterlab", *DATA_PACKAGES.values()):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("settings.ini", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    python("-c", f"from setuptools.build_meta import build_wheel; build_wheel({str(out)!r})", cwd=copy)
    return next(out.glob("*.whl"))


def test_wheel_is_complete(wheel):
    """The wheel holds every module, the sample, the command and the metadata, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        names = {*archive.namelist()}
        entry_points = archive.read(f"{wheel.stem.rsplit('-', 3)[0]}.dist-info/entry_points.txt").decode()
    modules = {path.relative_to(ROOT).as_posix() for path in CONFIG.lib_path.rglob("*.py")}
    lab = {name for name in modules if name.startswith("citerec/lab/")}  # stays in the repository
    data = set()
    for package, folder in DATA_PACKAGES.items():
        files = [path for path in (ROOT / folder).rglob("*") if path.is_file() and path.name != ".lock"]
        data |= {f"{package.replace('.', '/')}/{path.relative_to(ROOT / folder).as_posix()}" for path in files}
    assert (modules - lab) | data <= names
    assert lab and not lab & names
    assert {"citerec/sample/papers.jsonl", "citerec/sample/edges.jsonl"} <= data
    folders = {"citerec", *(f"citerec-{CONFIG.version}.{kind}" for kind in ("dist-info", "data"))}
    assert {name.split("/")[0] for name in names} == folders
    assert any(name.endswith("labextensions/citerec/static/citerec.js") for name in names)
    assert "citerec = citerec.frontends.cli:main" in entry_points


def test_wheel_finds_its_sample(wheel, tmp_path):
    """A package that was unpacked elsewhere loads the sample that came with it."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = f"import citerec; print(citerec.__file__, len(citerec.load().recommend({TEXT!r}, k=3)))"
    done = python("-c", code, cwd=tmp_path, PYTHONPATH=str(tmp_path / "site"), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.stdout.split() == [str(tmp_path / "site/citerec/__init__.py"), "3"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell, and a folder that can be deleted while it is used")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed):
    """A standard stream that is closed leads nowhere: the command does its work without a word about it."""
    done = run("sh", "-c", f'"{CITEREC}" info {closed}; echo "$?"')
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell, and a folder that can be deleted while it is used")
@pytest.mark.parametrize("command", ["info", "app", "trust"])
def test_deleted_folder(tmp_path, command):
    """A command in a folder that was deleted says so."""
    done = run("sh", "-c", f'mkdir gone && cd gone && rmdir ../gone && "{CITEREC}" {command}', cwd=tmp_path)
    check_refusal(done)
    assert "The current folder no longer exists" in done.stderr
