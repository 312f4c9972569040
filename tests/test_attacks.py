"""The attacks of `attacks.py` in a short form: a few of all cases each time, the same ones."""

import os
import sys
import urllib.request

import pytest
from attacks import SECRET, TEXT, listener, variables
from conftest import python

from citerec.testing.chat import ChatServer

DRAFT = f"{TEXT} {SECRET}"


def citerec(folder, *arguments, **env):
    """Run the command in a process that finds no cache of an earlier run."""
    caches = {name: str(folder) for name in ("HOME", "XDG_CACHE_HOME", "HF_HOME")}
    return python("-m", "citerec.cli", *arguments, **caches, **env)


def listed(output):
    """Count the first lines of recommendations."""
    return sum(line.startswith((" 1. ", " 2. ", " 3. ")) for line in output.splitlines())


def test_variables_of_other_software_cause_no_contact(tmp_path):
    """With every tracing, proxy and hub variable set, an offline run contacts nobody."""
    with listener() as (place, heard):
        done = citerec(tmp_path, "recommend", DRAFT, "--k", "3", **variables(place))
        assert (heard, done.stderr) == ([], "")
        assert listed(done.stdout) == 3


def test_the_listener_hears():
    """What a variable does cause to be sent is heard: a request through the proxy that it names."""
    with listener() as (place, heard):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": variables(place)["http_proxy"]}))
        with pytest.raises(OSError):
            opener.open("http://papers.example/", timeout=5)
        assert b"papers.example" in heard[0]


def test_a_draft_reaches_the_named_service_only(tmp_path):
    """With a language model the draft goes to its address, past every proxy and trace, and to no other."""
    with listener() as (place, heard), ChatServer(lambda body: '{"fits": "yes"}') as service:
        env = variables(place) | {"CITEREC_LLM_API_KEY": "sk-planted"}
        env |= {"CITEREC_LLM_TIMEOUT": "10", "CITEREC_LLM_CACHE": "off"}
        done = citerec(tmp_path, "recommend", DRAFT, "--k", "3", "--base-url", service.url, "--model", "m", **env)
        assert listed(done.stdout) == 3
        assert heard == []
        assert any(SECRET in str(request) for request in service.requests)


def test_no_text_stays_on_disk(tmp_path):
    """A run writes the draft into no file, with a language model neither."""
    with ChatServer(lambda body: '{"fits": "yes"}') as service:
        options = ("--k", "3", "--base-url", service.url, "--model", "m")
        citerec(tmp_path, "recommend", DRAFT, *options, CITEREC_LLM_TIMEOUT="10")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "corpus.db" for path in files)
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


def test_agents_out_of_time_leave_an_answer(tmp_path):
    """Threads that are left behind in the middle of their work do not abort the process after its answer."""
    done = citerec(tmp_path, "recommend", TEXT, "--k", "3", CITEREC_AGENT_TIMEOUT="0.001")
    assert "failed (no answer within 0.001 s)" in done.stdout and listed(done.stdout) == 3
    assert done.stderr == ""


def test_damaged_files_are_noticed(tmp_path):
    """A damaged file gives the same answer, or an answer that says what is missing; never silently another one."""
    paths = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    done = python("-c", DAMAGE, str(tmp_path), XDG_CACHE_HOME=str(tmp_path / "cache"), PYTHONPATH=paths)
    outcomes = [line.split("|")[2] for line in done.stdout.splitlines()]
    assert len(outcomes) > 30
    assert not [line for line in done.stdout.splitlines() if line.split("|")[2] != line.split("|")[2].lower()]
    assert {"same answer", "other answer, said", "repaired"} <= {*outcomes}  # a small corpus does not ask its index


DAMAGE = """
import shutil, sys
from pathlib import Path
from attacks import damage_cases
from citerec.data.sample import open_corpus
work = Path(sys.argv[1])
with open_corpus("sample") as sample: shutil.copytree(sample.folder, work / "original")
for case in damage_cases(work / "original", work, every=17, repair=8): print(*case, sep="|")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kills_lose_nothing(tmp_path):
    """Killed at a file event and run again, each command ends as if it had not been killed."""
    done = python("-c", KILLS, str(tmp_path), PYTHONPATH=os.pathsep.join([os.path.dirname(__file__), *sys.path]))
    outcomes = [line.split("|") for line in done.stdout.splitlines()]
    assert {name for name, *_ in outcomes} == {"build", "update", "fit", "evaluate"}
    assert [case for case in outcomes if case[2] != "same result"] == []


KILLS = """
import sys
from pathlib import Path
from attacks import kill_cases
for case in kill_cases(Path(sys.argv[1]), wanted=3): print(*case, sep="|", flush=True)
"""
