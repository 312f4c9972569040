"""A folder that somebody else made gives citerec no code: nothing planted in it runs, whatever is started there."""

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import jupyter_client
import pytest

CITEREC = Path(sys.executable).with_name("citerec")
PATIENCE = 60  # seconds for a server to answer on a busy machine
CONFIGURATION = (
    "voila.py",
    "jupyter_config.py",
    "jupyter_server_config.py",
    "jupyter_lab_config.py",
    "jupyter_notebook_config.py",
    ".jupyter/jupyter_config.py",
    ".jupyter/jupyter_server_config.py",
    "etc/jupyter/jupyter_server_config.py",
    "ipython_config.py",
    "ipython_kernel_config.py",
    ".ipython/profile_default/ipython_config.py",
    ".ipython/profile_default/startup/00.py",
    "profile_default/ipython_config.py",
    "profile_default/startup/00.py",
)
MODULES = (
    "sitecustomize usercustomize citerec numpy torch scipy pandas ipykernel ipykernel_launcher ipywidgets IPython "
    "jupyterlab jupyter_server nbformat tornado zmq uvicorn fastapi mcp pydantic multiprocessing pickle signal "
    "tempfile logging asyncio json matplotlib dspy litellm"
).split()


def plant(folder: Path, ran: Path) -> None:
    """Fill a folder with files that leave a mark when they run."""

    def trace(name):
        return f"open({str(ran / name.replace('/', '_'))!r}, 'w').close()\n"

    for name in (*CONFIGURATION, *(f"{module}.py" for module in MODULES)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(trace(name))
    for name in ("python3", "citerec"):
        kernel = folder / "kernels" / name / "kernel.json"
        kernel.parent.mkdir(parents=True)
        command = ["/bin/sh", "-c", f"touch {ran}/kernel.json", "{connection_file}"]
        kernel.write_text(json.dumps({"argv": command, "display_name": "Python 3", "language": "python"}))
    settings = {name: {"token": "planted"} for name in ("ServerApp", "IdentityProvider", "Voila")}
    for name in ("voila.json", "jupyter_config.json", "jupyter_server_config.json", "jupyter_lab_config.json"):
        (folder / name).write_text(json.dumps(settings))
    template = folder / "voila/templates/citerec/index.html.j2"
    template.parent.mkdir(parents=True)
    template.write_text("planted {{ planted.page }}")
    server = folder / "node_modules/pyright/langserver.index.js"
    server.parent.mkdir(parents=True)
    server.write_text(f"require('fs').writeFileSync('{ran}/node', '')")
    (folder / "matplotlibrc").write_text("backend: module://planted\ntext.usetex: True\ntext.latex.preamble: planted\n"
                                       "figure.hooks: webbrowser:open\n")
    (folder / ".env").write_text("CITEREC_CORPUS=corpus\nOPENAI_API_KEY=sk-planted\nLITELLM_MODE=DEV\nHTTPS_PROXY=x\n")
    cell = {"cell_type": "code", "id": "a", "metadata": {"trusted": True}, "execution_count": None, "outputs": []}
    cell["source"] = trace("citerec.ipynb")
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "citerec.ipynb").write_text(json.dumps(notebook))


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A planted folder, where its marks would lie, and a home of its own for what citerec and Jupyter keep."""
    folder, ran = tmp_path / "clone", tmp_path / "ran"
    folder.mkdir()
    ran.mkdir()
    plant(folder, ran)
    for name in ("XDG_DATA_HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "home" / name))
    for name in ("PYTHONPATH", "OPENAI_API_KEY", "HTTPS_PROXY", "LITELLM_MODE"):
        monkeypatch.delenv(name, raising=False)
    prefix = Path(jupyter_client.__file__).parents[4]  # of an environment below this one, too
    share = f"{prefix / 'share/jupyter'}{os.pathsep}"  # an empty place is the current folder
    monkeypatch.setenv("JUPYTER_PATH", share)
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(prefix / "etc/jupyter"))  # names the extensions, Voilà's among them
    return folder, ran


def free_port() -> int:
    """Ask the system for a port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def started(folder: Path, *command: str, says: str):
    """Run a command in the folder until it has said something; gives what it said."""
    log = folder.parent / "log"
    with (
        log.open("w") as out,
        subprocess.Popen([CITEREC, *command], cwd=folder, stdin=subprocess.PIPE, stdout=out, stderr=out) as server,
    ):
        try:
            deadline = time.monotonic() + PATIENCE
            while not (found := re.search(says, log.read_text())):
                assert server.poll() is None and time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
            yield found
        finally:
            server.terminate()
            server.wait(PATIENCE)


def get(address: str, **more) -> str:
    """Ask a server, as soon as it listens."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(urllib.request.Request(address, **more), timeout=PATIENCE) as answer:
                lines = []
                for line in answer:  # Voilà sends a page without an end where it fails
                    lines.append(line.decode())
                    assert time.monotonic() < deadline, "".join(lines[-20:])
                return "".join(lines)
        except urllib.error.URLError as fault:
            assert isinstance(fault.reason, ConnectionError) and time.monotonic() < deadline, fault
            time.sleep(0.05)


def test_app(place):
    """`citerec app`: neither the server nor a kernel that is started on the notebook runs what lies there."""
    folder, ran = place
    port = free_port()
    says = r"(http://127\S+?)/lab\S*\?token=(\w{48})"
    with started(folder, "app", "--no-browser", "--allow-root", f"--ServerApp.port={port}", says=says) as found:
        address, token = found[1], found[2]
        assert token != "planted"
        loaded = "voila.server_extension | extension was successfully loaded" in (folder.parent / "log").read_text()
        assert loaded or not importlib.util.find_spec("voila")
        headers = {"Authorization": f"token {token}"}
        shown = json.loads(get(f"{address}/api/contents/citerec.ipynb", headers=headers))
        assert not shown["content"]["cells"][0]["metadata"]["trusted"]  # JupyterLab runs no script of its outputs
        asked = {"path": "citerec.ipynb", "type": "notebook", "name": "", "kernel": {"name": "python3"}}
        session = json.loads(get(f"{address}/api/sessions", headers=headers, data=json.dumps(asked).encode()))
        kernel = session["kernel"]["id"]
        client = jupyter_client.BlockingKernelClient()
        client.load_connection_file(str(Path(os.environ["JUPYTER_RUNTIME_DIR"]) / f"kernel-{kernel}.json"))
        client.start_channels()
        try:
            client.wait_for_ready(PATIENCE)
            here = []
            code = "import os, citerec.frontends.views, numpy, matplotlib.pyplot; print(os.getcwd(), *os.listdir())"
            done = client.execute_interactive(
                code, timeout=PATIENCE, output_hook=lambda said: here.append(said["content"].get("text", ""))
            )
            assert done["content"]["status"] == "ok", done
            assert str(folder) in "".join(here) and ".env" in "".join(here)  # the files of the folder are at hand
        finally:
            client.stop_channels()
    assert os.listdir(ran) == []


def test_page(place):
    """`citerec app --page` shows citerec's own page, with Voilà's own template and its own token."""
    pytest.importorskip("voila")
    folder, ran = place
    with started(
        folder, "app", "--page", "--no-browser", f"--port={free_port()}", says=r"(http://127\S+)\?token=(\w{48})"
    ) as found:
        assert found[2] != "planted"
        page = get(found[0])
    assert "planted" not in page
    assert "application/vnd.jupyter.widget-view+json" in page  # the app was made
    assert os.listdir(ran) == []


def test_serve(place):
    """`citerec serve` with two processes answers from the sample, not from what .env names."""
    folder, ran = place
    says = r"(http://127\S+)/docs +2,460 papers"
    with started(folder, "serve", "--workers", "2", "--port", str(free_port()), says=says) as found:
        assert json.loads(get(f"{found[1]}/api/health"))
        assert "CITEREC_CORPUS and OPENAI_API_KEY" in (folder.parent / "log").read_text()
    assert os.listdir(ran) == []


def test_mcp(place):
    """`citerec mcp` answers an assistant."""
    folder, ran = place
    hello = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    done = subprocess.run(
        [CITEREC, "mcp"], input=json.dumps(asked) + "\n", cwd=folder, capture_output=True, text=True, timeout=PATIENCE
    )
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "citerec"
    assert "CITEREC_CORPUS and OPENAI_API_KEY" in done.stderr
    assert os.listdir(ran) == []


def test_libraries(place):
    """No library that citerec loads puts the folder's .env into the environment, where keys and proxies would act."""
    pytest.importorskip("dspy")
    folder, ran = place
    code = (
        "import os; from citerec.agents.picker import load_dspy; load_dspy()\n"
        "import citerec.answering.pipeline, litellm\n"
        "print(os.environ.get('OPENAI_API_KEY'), os.environ.get('HTTPS_PROXY'))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=folder, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout.split() == ["None", "None"], done.stderr
    assert os.listdir(ran) == []


def test_plot(place):
    """A plot of `citerec evaluate` is drawn without the module and the TeX code that a matplotlibrc names."""
    folder, ran = place
    code = (
        "from types import SimpleNamespace as N; from pathlib import Path\n"
        "from citerec.frontends.cli import _save_plot\n"
        "def plot():\n"
        "    import matplotlib.pyplot as p; figure, axes = p.subplots(); axes.set_title('t')\n"
        "    assert not axes.title.get_usetex(); return figure\n"
        "_save_plot(N(plot=plot), Path('drawn.png'))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=folder, capture_output=True, text=True)
    assert (folder / "drawn.png").exists(), done.stderr
    assert os.listdir(ran) == []


def test_plot_in_python(place):
    """`found.plot()` in Python neither: no function of a matplotlibrc is called with the figure, and no TeX runs."""
    folder, ran = place
    code = (
        "from types import SimpleNamespace as N; from citerec.answering.recommender import plotted\n"
        "figure = plotted([N(year=2000 + i, citation_count=i, rank=i, title='t', confidence=.5) for i in range(3)])\n"
        "figure.savefig('drawn.png'); print([text.get_usetex() for text in figure.axes[0].texts])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=folder, capture_output=True, text=True,
                          env=os.environ | {"MPLBACKEND": "agg"})
    assert (folder / "drawn.png").exists(), done.stderr
    assert "True" not in done.stdout and os.listdir(ran) == []
