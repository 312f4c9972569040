"""`load`, `recommend` and the widget work in a process in which every attempt to reach a network raises.

The guard is a Python audit hook: it sees every connection and every look-up of a name that goes through Python's
sockets, loopback too, whichever library makes it. An attempt that somebody catches is still reported at the end.
"""

import re
import sys

from conftest import ROOT, python

FORBIDDEN = {
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostbyaddr",
    "socket.gethostbyname",
    "socket.sendmsg",
    "socket.sendto",
}
TEXT = "We drop recurrence and convolution and rely on self-attention only to translate between languages."
PARTS = {}


def part(function):
    """Make a function one of the parts that `main` can run under the guard."""
    PARTS[function.__name__] = function
    return function


@part
def recommends():
    """The interface that people import."""
    import citerec

    papers = citerec.load().recommend(TEXT, k=5)
    assert len(papers) == 5 and all(paper.title and paper.justification for paper in papers)


@part
def widget():
    """The interactive notebook, its button clicked."""
    from app_notebook import click_recommend

    assert click_recommend(ROOT, TEXT).count("citerec-card") >= 5


@part
def breaks_the_rule():
    """Reaches for the network and hides that it failed."""
    import contextlib
    import urllib.request

    with contextlib.suppress(OSError):
        urllib.request.urlopen("http://127.0.0.1:9/")


def main(name: str) -> None:
    """Run one part under the guard."""
    attempts = []

    def forbid(event, arguments):
        if event in FORBIDDEN:
            attempts.append(f"{event} {arguments[1:] if event == 'socket.connect' else arguments}")
            raise PermissionError(f"no network here: {attempts[-1]}")

    sys.addaudithook(forbid)
    PARTS[name]()
    print(f"attempts: {attempts}", file=sys.__stdout__, flush=True)  # in one piece: a thread may write at the same time


def attempts_of(name: str, folder) -> str:
    """Run a part in a process of its own, with no cache of an earlier run to lean on."""
    caches = {variable: str(folder) for variable in ("HOME", "XDG_CACHE_HOME", "HF_HOME")}
    said = python(__file__, name, **caches).stdout
    return re.findall(r"attempts: \[.*\]", said)[-1]  # a widget may show something on the same line


def test_recommends_without_network(tmp_path):
    """Neither opening the sample nor recommending reaches for anything."""
    assert attempts_of("recommends", tmp_path) == "attempts: []"


def test_widget_without_network(tmp_path):
    """Nor does the widget."""
    assert attempts_of("widget", tmp_path) == "attempts: []"


def test_guard_bites(tmp_path):
    """The guard sees an attempt even where the caller swallows the error."""
    assert "127.0.0.1" in attempts_of("breaks_the_rule", tmp_path)


if __name__ == "__main__":
    main(sys.argv[1])
