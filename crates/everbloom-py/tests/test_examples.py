"""Every example runs and prints what it should."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from site_of_pages import SETTINGS, Site

EXAMPLES = Path(os.environ.get("EVERBLOOM_ROOT", Path(__file__).parents[3])) / "examples" / "python"


def run(name: str, folder: Path, *arguments: str, status: int = 0) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran.stdout


def test_notebook(tmp_path):
    text = run("notebook.py", tmp_path)
    visitors, distinct = re.search(r"visits by ([\d,]+) visitors; a set counts ([\d,]+)", text).groups()
    visitors, distinct = (int(number.replace(",", "")) for number in (visitors, distinct))
    # At most one in a thousand is taken for another, and four standard deviations.
    assert 0 <= distinct - visitors <= distinct * 0.001 + 4 * (distinct * 0.001) ** 0.5
    assert "True True False" in text and "repeats missed" in text


def test_pandas(tmp_path):
    pytest.importorskip("pandas")
    distinct = len({number * number % 5000 for number in range(50_000)})
    assert run("pandas_rows.py", tmp_path) == f"{distinct} first visits of 50000\n['user0', 'user1']\n"


def test_polars(tmp_path):
    pytest.importorskip("polars")
    # 1 in 10,000 may be missing; of these ids none is.
    assert run("polars_lazy.py", tmp_path) == "55301 first events, the last is 55300\n"


def test_duckdb(tmp_path):
    pytest.importorskip("duckdb")
    assert run("duckdb_function.py", tmp_path) == "55301 ids; 0 the second time\n"


def test_consumer_killed_and_started_again(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    assert run("consumer.py", whole, str(whole)) == "done\n"
    wanted = (whole / "handled").read_text().splitlines()
    assert len(wanted) == len({line.split()[1] for line in wanted}) == 4000, "every key once"
    # Killed in the first part, in the middle of one, right after a save.
    for stop in (500, 3700, 3800, 6000):
        run("consumer.py", killed, str(killed), str(stop), status=9)
    assert run("consumer.py", killed, str(killed)) == "done\n"
    handled = (killed / "handled").read_text().splitlines()
    assert set(handled) == set(wanted), "what was handled again is the same, and nothing is missing"
    assert len(list(killed.glob("*.ebf"))) == 1


def test_shared_map(tmp_path):
    counts = json.loads(run("shared_map.py", tmp_path))
    assert counts[:8] == [1000] * 8 and counts[8] <= 3


def test_crawler(tmp_path):
    pytest.importorskip("scrapy")
    project = shutil.copytree(EXAMPLES / "crawler", tmp_path / "crawler")
    with Site(60) as site:
        own = {name: value for name, value in SETTINGS.items() if name != "ROBOTSTXT_OBEY"}
        options = [part for name, value in own.items() for part in ("-s", f"{name}={value}")]
        command = [sys.executable, "-m", "scrapy", "crawl", "site", "-a", f"start={site.url(0)}", "-O", "pages.jsonl", *options]
        ran = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=600, check=False)
        assert ran.returncode == 0, ran.stderr
    pages = {json.loads(line)["url"] for line in (project / "pages.jsonl").read_text().splitlines()}
    assert pages == {site.url(page) for page in range(60)}
    assert "at most 1 new page in" in ran.stderr and "are expected to be lost" in ran.stderr
