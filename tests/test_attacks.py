"""The attacks of `attacks.py` in a short form: a few of all cases each time, the same ones."""

import configparser
import contextlib
import importlib.util
import json
import os
import re
import sqlite3
import sys
import urllib.request

import pytest
from attacks import SECRET, TEXT, build, listener, records, variables
from conftest import CONFIG, ROOT, python
from packaging.requirements import Requirement

from citerec.ground.errors import CiterecError
from citerec.testing.chat import ChatServer, Reply

DRAFT = f"{TEXT} {SECRET}"
needs_dspy = pytest.mark.skipif(not importlib.util.find_spec("dspy"), reason="needs the extra dspy")
needs_dask = pytest.mark.skipif(not importlib.util.find_spec("distributed"), reason="needs the extra cluster")


def citerec(folder, *arguments, **env):
    """Run the command in a process that finds no cache of an earlier run."""
    caches = {name: str(folder) for name in ("HOME", "XDG_CACHE_HOME", "HF_HOME")}
    return python("-m", "citerec", *arguments, **caches, **env)


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
    assert {"refused", "other answer, said", "repaired"} <= {*outcomes}


DAMAGE = """
import shutil, sys
from pathlib import Path
from attacks import damage_cases
from citerec.ranking.sample import open_corpus
work = Path(sys.argv[1])
with open_corpus("sample") as sample: shutil.copytree(sample.folder, work / "original")
for case in damage_cases(work / "original", work, every=6, repair=8): print(*case, sep="|")
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_asking_after_a_fork_says_why_not(tmp_path):
    """Whatever is asked in a forked process, the answer is the same sentence, and none waits for a thread."""
    done = python("-W", "error::RuntimeWarning", "-c", FORKED, str(tmp_path / "library.db"))
    assert done.stdout.split() == ["True"] * 6, done.stdout
    assert done.stderr == ""


FORKED = """
import asyncio, os, sys
import citerec
rec = citerec.load()
rec.ask("What is attention?")
library = citerec.Library.open(sys.argv[1])
library.ask("Which river?")
asks = [lambda: rec.ask("What?"), lambda: asyncio.run(rec.aask("What?")), lambda: rec.search("attention"),
        lambda: rec.recommend("We use attention."), lambda: next(rec.stream_recommend("We use attention.")),
        lambda: library.ask("Which river?")]
if child := os.fork(): sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
for ask in asks:
    try: ask()
    except citerec.ground.errors.CiterecError as e: print("was forked" in str(e), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("reply", [
    Reply("A word.", trickle=0.05), Reply("A word.", wait=60), Reply(endless=b" ", trickle=0.05)
])
def test_a_service_that_drips_is_given_up(reply):
    """The time limit that a user sets holds for a model on this machine, however it stalls."""
    from citerec.agents.client import LLM, Prompt
    from citerec.ground.settings import load_settings

    with ChatServer(lambda body: reply) as service:
        llm = LLM(load_settings("compatible", llm_base_url=service.url, llm_model="m", llm_timeout=1, llm_cache="off"))
        assert llm.seconds < 1
        (answer,) = llm.ask([Prompt("answer", "Say a word.", "")])
    assert "no answer within 0.75 s" in str(answer.error) and "CITEREC_LLM_TIMEOUT" in str(answer.error)


def test_planted_files_of_answers_and_questions(tmp_path):
    """Views, triggers and huge values in a cache of answers or a library do nothing; a file of another mode neither."""
    from citerec.agents.client import AnswerCache
    from citerec.answering.library import Library

    endless = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT"
    view = f"CREATE VIEW {{}} AS {endless} max(x) AS id, 'a' AS fingerprint, 'm' AS model, x AS answer FROM t"
    trigger = f"CREATE TRIGGER act AFTER INSERT ON {{}} BEGIN DELETE FROM {{}} WHERE 1 IN ({endless} 2 FROM t); END"
    for number, sql in enumerate(("DROP TABLE {}; " + view, trigger, "CREATE VIRTUAL TABLE more USING fts5(text)")):
        for name, table in (("answers.db", "answers"), ("library.db", "queries")):
            path = tmp_path / f"{number}{name}"
            if table == "answers":
                AnswerCache(str(path)).put("a", "m", "said")
                assert AnswerCache(str(path)).get("a") == "said"
            else:
                Library.open(path).close()
            with contextlib.closing(sqlite3.connect(path)) as db:
                db.executescript(sql.replace("{}", table))
            if table == "answers":
                AnswerCache(str(path)).put("a", "m", "more")
                assert AnswerCache(str(path)).get("a") is None
            else:
                with pytest.raises(CiterecError, match="a library"):
                    Library.open(path)
    shared = tmp_path / "shared.db"
    AnswerCache(str(shared)).put("a", "m", "said")
    shared.chmod(0o666)
    assert os.name != "posix" or AnswerCache(str(shared)).get("a") is None


@needs_dask
def test_processes_of_dask_refuse_strangers():
    """Neither clear text, nor TLS without a certificate, nor with an own one reaches scheduler, nannies or workers."""
    done = python("-c", STRANGERS)
    assert set(done.stdout.split()) == {"refused"}, done.stdout
    assert len(done.stdout.split()) >= 9


STRANGERS = """
import asyncio, ssl
import distributed
from citerec.ground.running import workers_of
careless = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
careless.check_hostname, careless.verify_mode = False, ssl.CERT_NONE
ways = [("tcp", {}), ("tls", dict(ssl_context=careless, require_encryption=True)),
        ("tls", distributed.Security.temporary().get_connection_args("client"))]
async def call(address, keys):
    async with asyncio.timeout(20), distributed.core.rpc(address, timeout=9, connection_args=keys) as there:
        return await there.identity()
if __name__ == "__main__":
    with workers_of("dask") as workers:
        about = workers.scheduler_info(n_workers=-1)["workers"]
        for port in [workers.scheduler.address, *about, *(one["nanny"] for one in about.values())]:
            for scheme, keys in ways:
                try: print("reached", asyncio.run(call(scheme + port[port.index(":"):], keys)))
                except OSError: print("refused")
"""


@needs_dspy
def test_dspy_keeps_and_loads_nothing(tmp_path):
    """DSPy makes no folder, opens no cache that lies there, and loads neither diskcache nor litellm."""
    planted = tmp_path / ".dspy_cache" / "000" / "cache.db"
    planted.parent.mkdir(parents=True)
    planted.write_bytes(b"no database")
    said = "[[ ## answer ## ]]\nblue\n\n[[ ## completed ## ]]"
    with listener() as (place, heard), ChatServer(lambda body: said) as service:
        done = python("-c", DSPY, service.url, HOME=str(tmp_path), **variables(place))
    assert done.stdout.split() == ["blue", "False", "False", "[]", "True"], done.stdout
    assert heard == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [planted]


DSPY = """
import os, sys
from citerec.agents.picker import Engine, language_model, load_dspy
from citerec.agents.client import LLM
from citerec.ground.settings import load_settings
dspy = load_dspy()
choices = dict(llm_base_url=sys.argv[1], llm_model="m", llm_cache="off")
with dspy.context(lm=language_model(Engine(LLM(load_settings("compatible", **choices))))):
    print(dspy.Predict("question -> answer")(question="Which colour?").answer)
print(dspy.cache.enable_disk_cache, dspy.cache.enable_memory_cache)
print([name for name in ("diskcache", "litellm") if name in sys.modules], os.environ["LITELLM_LOCAL_MODEL_COST_MAP"])
"""


@needs_dspy
@pytest.mark.parametrize("planted", [
    {"lm": {"model": "openai/gpt-4o", "api_base": "http://PLACE/v1", "api_key": "planted"}},
    {"lm": {"model": "openai/gpt-4o", "model_type": "chat", "engine": "litellm", "kwargs": {"api_base": "http://PLACE"}}},
    {"lm": {"model": "citerec/model"}, "callbacks": ["http://PLACE"], "config": {"api_base": "http://PLACE/v1"}},
])
def test_a_learned_program_of_a_stranger_asks_nobody_else(planted):
    """A learned program that names a model, an address or a key of its own is answered by the user's model alone."""
    from citerec.agents.client import LLM
    from citerec.agents.picker import make_module, pick_with
    from citerec.agents.prompts import Program
    from citerec.ground.settings import load_settings

    papers = [("Attention is all you need", "We drop recurrence."), ("Rivers", "We map rivers.")]
    said = "[[ ## reasoning ## ]]\nIt fits.\n\n[[ ## selected_title ## ]]\nRivers\n\n[[ ## completed ## ]]"
    with listener() as (place, heard), ChatServer(lambda body: said) as service:
        part = json.loads(json.dumps(planted).replace("PLACE", place))
        state = {name: {**own, **part} for name, own in make_module("simple").dump_state().items()}
        program = Program(number=1, run="r", step=1, model="m", prompt_model="m", optimiser="bootstrap",
                          made="2026-01-01", libraries={}, data="d", before={}, after={}, accepted=True, state=state)
        llm = LLM(load_settings("compatible", llm_base_url=service.url, llm_model="m", llm_cache="off", llm_timeout=10))
        pick, _ = pick_with("We map rivers [CITATION].", papers, llm, program)
        asked = len(service.requests)
    assert heard == []
    assert pick.problem or (asked, pick.title) == (1, "Rivers")


def test_bad_releases_of_litellm_are_never_installed():
    """The extra asks for a release after the two that stole secrets, and names them."""
    read = configparser.ConfigParser(delimiters=["="])
    read.read(ROOT / "settings.ini", encoding="utf-8")
    lines = read["DEFAULT"]["dspy_requirements"].split()
    litellm = next(one for one in map(Requirement, lines) if one.name == "litellm").specifier
    assert [version for version in ("1.82.6", "1.82.7", "1.82.8") if version in litellm] == []
    assert {"!=1.82.7", "!=1.82.8"} <= {str(one) for one in litellm} and "1.83.0" in litellm


def test_a_build_keeps_what_lies_in_its_folder(tmp_path):
    """A folder that holds files of the user is refused or kept, also where they look like parts of a corpus."""
    source = records(tmp_path / "records", papers=12)
    for number, names in enumerate((["thesis.tex", "vectors/photo.jpg"], ["pages/1.md"], ["corpus.db"], ["lexical"])):
        folder = tmp_path / f"mine{number}"
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("mine")
        with contextlib.suppress(CiterecError):
            build(source, folder)
        assert [name for name in names if (folder / name).read_text() != "mine"] == []


def test_every_test_that_a_page_names_exists():
    """Each sentence of "Opening other people's files" names a test, and the test is there."""
    page = (CONFIG.nbs_path / "guide_safety.ipynb").read_text(encoding="utf-8")
    named = re.findall(r"`tests/(\w+\.py)(?:::(\w+))?`", page)
    rows = re.findall(r"\| [^|]+\. \| ([^|]*) \|", page)
    assert len(named) == len(rows) > 20
    files = {file: (ROOT / "tests" / file).read_text(encoding="utf-8") if (ROOT / "tests" / file).is_file() else ""
             for file, _ in named}
    missing = {f"{file}::{test}" for file, test in named if f"def {test or 'test_'}" not in files[file]}
    assert not missing
