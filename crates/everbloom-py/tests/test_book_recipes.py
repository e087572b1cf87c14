"""The recipes of the book, and its page on Scrapy."""

import os
import re
from pathlib import Path

import pytest

import everbloom

BOOK = Path(os.environ.get("EVERBLOOM_ROOT") or Path(__file__).parents[3]) / "book/src"


def run_blocks(page: str, least: int) -> dict:
    """Runs the blocks of a page, one after another, and gives what they defined."""
    if not BOOK.exists():
        pytest.skip("SKIPPED: the book is not here")
    blocks = re.findall(r"```python\n(.*?)```", (BOOK / page).read_text(), re.DOTALL)
    assert len(blocks) >= least
    names = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    return names


def test_the_recipes_run(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    recipes = run_blocks("python-recipes.md", 2)
    committed = []
    recipes["save"](everbloom.Filter("bloom", expect=10), 7, committed.append)
    assert committed == [7] and (tmp_path / "seen-7.ebf").exists()

    # What Spark does with the recipe: partitions of batches, one row of bytes from each.
    def partition(start):
        return [pa.record_batch({"id": range(at, at + 500)}) for at in (start, start + 500)]

    parts = [row.column("filter")[0].as_py() for start in (0, 1000) for row in recipes["fill"](partition(start))]
    known = recipes["merged"](parts)
    kept = [batch.num_rows for batch in recipes["keep"](known)(partition(1500))]
    # The first half is known; of the second at most 0.5 on average, and four standard deviations of 0.7 above that.
    assert kept[0] == 500 and kept[1] <= 3


def test_the_settings_of_scrapy_on_the_page_are_those_of_the_module():
    module = pytest.importorskip("everbloom.scrapy")
    page = (BOOK / "scrapy.md").read_text() if BOOK.exists() else pytest.skip("SKIPPED: the book is not here")
    in_page = set(re.findall(r"^\| `(EVERBLOOM_\w+)`", page, re.MULTILINE))
    in_code = set(re.findall(r"\"(EVERBLOOM_\w+)\"", Path(module.__file__).read_text()))
    in_docstring = set(re.findall(r"^(EVERBLOOM_\w+)", module.__doc__, re.MULTILINE))
    assert in_page == in_code == in_docstring
