"""Drives the interactive notebook without a browser: runs its cells and uses the widgets that they made."""

import time
from pathlib import Path

import ipywidgets as widgets
from execnb.nbio import read_nb
from execnb.shell import CaptureShell
from fastcore.xtras import working_directory
from ipywidgets.widgets.widget import _instances

TIME_LIMIT = 300  # seconds after which a click counts as lost


def find(kind: type, shows: str) -> widgets.Widget:
    """Find the widget of a kind whose label or placeholder holds a text."""
    texts = ("description", "placeholder")
    for widget in list(_instances.values()):
        if isinstance(widget, kind) and any(shows in str(getattr(widget, text, "")) for text in texts):
            return widget
    raise LookupError(f"no {kind.__name__} shows {shows!r}")


def html() -> str:
    """Join what all HTML widgets show."""
    return "\n".join(widget.value for widget in list(_instances.values()) if isinstance(widget, widgets.HTML))


def click_recommend(root: Path, text: str) -> str:
    """Run nbs/app.ipynb, put a text in, click the button, and give the HTML once cards are shown."""
    notebook = root / "nbs" / "app.ipynb"
    shell = CaptureShell(notebook)
    with working_directory(notebook.parent):
        shell.run_all(read_nb(notebook), exc_stop=True)
    find(widgets.Textarea, "Paste").value = text
    find(widgets.Button, "Recommend").click()
    deadline = time.monotonic() + TIME_LIMIT
    while "citerec-card" not in html() and time.monotonic() < deadline:
        time.sleep(0.1)
    return html()
