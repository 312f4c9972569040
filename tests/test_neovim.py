"""Neovim with the file of editors/neovim, and no window: lists, hover, fixes, undo, in four kinds of texts.

Without Neovim the test is skipped, in CI it fails.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

NEOVIM = shutil.which("nvim")
KEY = "vaswani2017attention"
SENTENCE = "The Transformer relates all positions of a sentence by attention alone"
ENTRY = """@inproceedings{he2016,
  title = {Deep Residual Learning for Image Recognition},
  author = {He, Kaiming and Zhang, Xiangyu and Ren, Shaoqing and Sun, Jian},
  booktitle = {CVPR}, year = {2006}}
"""
DRAFTS = {  # name -> a text with a bar where one types
    "paper.tex": f"\\section{{Über 𝒳}}\n𝒳. {SENTENCE} \\cite{{|}}.\n\\bibliography{{refs}}\n",
    "paper.md": f"---\nbibliography: refs.bib\n---\n# Über 𝒳\n\n𝒳. {SENTENCE} [@|].\n",
    "paper.typ": f'= Über 𝒳\n𝒳. {SENTENCE} #cite(<|>).\n#bibliography("refs.bib")\n',
}


def test_neovim(tmp_path: Path) -> None:
    """A paper is chosen in each kind of text and taken back; hover, remarks and fixes are there; no file changes."""
    if not NEOVIM:
        if os.environ.get("CI"): pytest.fail("Neovim is not installed")
        pytest.skip("Neovim is not installed")
    texts, plan = {}, []
    for name, marked in DRAFTS.items():
        folder = tmp_path / Path(name).suffix[1:]
        folder.mkdir()
        file, bib, at = folder / name, folder / "refs.bib", marked.index("|")
        texts |= {file: marked.replace("|", ""), bib: ENTRY}
        begun = marked.rfind("\n", 0, at) + 1
        plan.append({"file": str(file), "line": marked[:at].count("\n") + 1, "column": len(marked[begun:at].encode()),
                     "key": KEY, "bibliography": str(bib), "code": "slot"})
    plan.append({"file": str(tmp_path / "tex" / "refs.bib"), "line": 4,
                 "column": ENTRY.splitlines()[3].index("2006"), "code": "field"})
    for file, text in texts.items(): file.write_text(text, encoding="utf-8")
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    command = [sys.executable, "-m", "citerec", "lsp"]
    settings = "vim.g.citerec = { cmd = vim.fn.json_decode([==[" + json.dumps(command) + "]==]) }"
    places = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("CONFIG", "CACHE", "STATE", "DATA")}
    env = {**os.environ, **places, "PLAN": str(tmp_path / "plan.json"), "SEEN": str(tmp_path / "seen.json")}
    run = [NEOVIM, "--headless", "-n", "--cmd", f"lua {settings}", "-u", str(ROOT / "editors/neovim/citerec.lua"),
           "-c", f"luafile {ROOT / 'tests/neovim_session.lua'}", "-c", "qa!"]
    done = subprocess.run(run, env=env, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert (tmp_path / "seen.json").is_file(), done.stderr
    seen = json.loads((tmp_path / "seen.json").read_text(encoding="utf-8"))
    for told, step in zip(seen[:3], plan[:3], strict=True):
        assert told["chosen"] and "Attention Is All You Need" in told["chosen"]["detail"], told
        assert KEY in told["line"] and any(f"{{{KEY}," in line for line in told["added"]), told
        assert told["undone"], told
        assert "Attention Is All You Need" in told["hover"], told
        assert step["code"] in told["codes"] and len(told["fixes"]) >= 3, told
    assert "Deep Residual Learning" in seen[3]["hover"] and "field" in seen[3]["codes"], seen[3]
    assert any("2016" in fix for fix in seen[3]["fixes"]), seen[3]
    for file, text in texts.items(): assert file.read_text(encoding="utf-8") == text
