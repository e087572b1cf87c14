"""The Python blocks of the book's page, from top to bottom."""

import os
import re
from pathlib import Path

import pytest

PAGE = Path(os.environ.get("EVERBLOOM_ROOT") or Path(__file__).parents[3]) / "book/src/python.md"


def test_the_page_runs(tmp_path, monkeypatch):
    if not PAGE.exists():
        pytest.skip("SKIPPED: the book is not here")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 6
    names = {}
    for block in blocks:
        exec(compile(block, "python.md", "exec"), names)
