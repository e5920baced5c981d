"""The code in the documentation runs, and prints what the page shows beneath it.

`SUPERARM_UPDATE_DOCS=1 pytest tests/test_docs.py` writes what is printed now into the pages.
"""

import contextlib
import io
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<shown>.*?)```\n)?", re.DOTALL)
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
