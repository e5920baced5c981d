"""The code and the commands in the documentation run, and print what the page shows beneath them.

`SUPERARM_UPDATE_DOCS=1 pytest tests/test_docs.py` writes what is printed now into the pages.
"""

import contextlib
import io
import os
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from superarm.cli import main

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<shown>.*?)```\n)?", re.DOTALL)
CONSOLE = re.compile(
    r"```console\n\$ (?P<command>(?:[^\n]*\\\n)*[^\n]*)\n(?P<shown>.*?)```", re.DOTALL
)
SECONDS = re.compile(r",[0-9.]+$", re.MULTILINE)  # the last column: no two runs take the same time
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [page for page in PAGES if "```python\n" in page.read_text(encoding="utf-8")]


def test_there_is_code_to_run():
    assert ROOT / "README.md" in WITH_CODE
    assert len(WITH_CODE) > 3


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_code_of_a_page_runs_and_prints_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    scope = {"__name__": "page"}

    def run(match):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(match["code"], str(page), "exec"), scope)
        if match["shown"] is None:
            return match[0]
        start, end = match.start("shown") - match.start(), match.end("shown") - match.start()
        return match[0][:start] + printed.getvalue() + match[0][end:]

    now = BLOCK.sub(run, text)
    if os.environ.get("SUPERARM_UPDATE_DOCS"):
        page.write_text(now, encoding="utf-8")
    else:
        assert now == text


def test_commands_print_what_a_page_shows(monkeypatch):
    monkeypatch.chdir(ROOT)
    shown = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")

        def run(match):
            words = shlex.split(match["command"].replace("\\\n", ""))
            assert words[0] == "superarm"
            result = CliRunner().invoke(main, words[1:])
            assert result.exit_code == 0
            if SECONDS.sub("", result.stdout) == SECONDS.sub("", match["shown"]):
                return match[0]
            return match[0].replace(match["shown"], result.stdout)

        now = CONSOLE.sub(run, text)
        shown += len(CONSOLE.findall(text))
        if os.environ.get("SUPERARM_UPDATE_DOCS"):
            page.write_text(now, encoding="utf-8")
        else:
            assert now == text
    assert shown
