"""Real crawls of generated pages on loopback, beside Scrapy's own filter, stopped and resumed."""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path

import pytest

pytest.importorskip("scrapy")

from scrapy import Request
from scrapy.utils.request import RequestFingerprinter

import everbloom
from site_of_pages import EVERBLOOM, Crawl, Site

PAGES = 5000 if os.environ.get("EVERBLOOM_FULL") else 400


@pytest.fixture
def site():
    with Site(PAGES) as site:
        yield site


def is_seen(site: Site, state: Path):
    """Asks a saved state for pages by their path."""
    seen, fingerprinter = everbloom.Filter.load(state), RequestFingerprinter()
    return lambda path: fingerprinter.fingerprint(Request(site.root + path)) in seen


def test_the_same_pages_as_with_scrapys_own_filter(site, tmp_path):
    with Crawl(site, tmp_path / "own") as crawl:
        assert crawl.end() == 0, crawl.text()
        own = crawl.stats()
    every = site.take_asked()
    assert len(every) == PAGES

    # As small as the rate allows, so that the promise is put to the test.
    rate = 0.01
    goal = EVERBLOOM | {"EVERBLOOM_FILTER": "bloom", "EVERBLOOM_MEMORY": "", "EVERBLOOM_EXPECT": PAGES, "EVERBLOOM_FPR": rate}
    with Crawl(site, tmp_path / "ours", **goal) as crawl:
        assert crawl.end() == 0, crawl.text()
        ours, log = crawl.stats(), crawl.text()
    asked = site.take_asked()
    lost = PAGES - len(asked)
    # A binomial's four standard deviations above its mean.
    assert lost <= PAGES * rate + 4 * math.sqrt(PAGES * rate * (1 - rate)), f"{lost} of {PAGES} pages are lost"
    assert max(asked[path] for path in asked if path != "/page/0") == 1
    assert lost <= ours["everbloom/expected_lost"] + 4 * math.sqrt(ours["everbloom/expected_lost"])
    assert "at most 1 new page in 10" in log

    # With the usual memory nothing is lost of so few: 5,000 pages in room for tens of millions.
    with Crawl(site, tmp_path / "usual", **EVERBLOOM) as crawl:
        assert crawl.end() == 0, crawl.text()
        usual = crawl.stats()
    assert site.take_asked() == every
    assert usual["dupefilter/filtered"] == own["dupefilter/filtered"]
    assert usual["response_received_count"] == own["response_received_count"]
    assert usual["everbloom/arrivals"] >= usual["dupefilter/filtered"]
    assert usual["everbloom/memory_bytes"] <= 64 << 20


def test_interrupted_twice_and_resumed_every_page_comes_once(site, tmp_path):
    job = EVERBLOOM | {"JOBDIR": "job", "EVERBLOOM_MEMORY": "1MiB"}
    asked = site.asked
    for share in (0.2, 0.5):
        with Crawl(site, tmp_path, **job) as crawl:
            crawl.until(lambda: len(asked) > share * PAGES)
            assert crawl.send(signal.SIGINT) == 0, crawl.text()
    assert len(asked) < PAGES, "the crawl was stopped too late to be resumed"
    with Crawl(site, tmp_path, **job) as crawl:
        assert crawl.end() == 0, crawl.text()
        log, stats = crawl.text(), crawl.stats()
    assert "Resuming with" in log
    # 1 in 10,000 may be lost; with a hundred times the memory that 5,000 pages need, none is.
    assert len(asked) == PAGES
    assert [path for path, times in asked.items() if times > 1 and path != "/page/0"] == []
    assert stats["everbloom/memory_bytes"] <= 1 << 20


def test_killed_and_resumed_what_was_saved_is_not_fetched_again(site, tmp_path):
    job = EVERBLOOM | {"JOBDIR": "job", "EVERBLOOM_MEMORY": "1MiB", "EVERBLOOM_SAVE_SECONDS": 0.2}
    state = tmp_path / "job" / "requests.ebf"
    with Crawl(site, tmp_path, **job) as crawl:
        crawl.until(lambda: len(site.asked) > 0.5 * PAGES)
        crawl.send(signal.SIGKILL)
    before = site.take_asked()
    seen = is_seen(site, state)
    saved = {path for path in before if seen(path)}
    assert len(saved) > 0.1 * PAGES, "hardly anything was saved before the crawl was killed"
    with Crawl(site, tmp_path, **job) as crawl:
        assert crawl.end() == 0, crawl.text()
        log = crawl.text()
    assert "Resuming with" in log
    assert set(site.take_asked()) & saved <= {"/page/0"}
    # Without the state the same crawl would fetch them again: it is the filter that kept it from that.
    state.unlink()
    with Crawl(site, tmp_path, **job) as crawl:
        crawl.until(lambda: len(set(site.asked) & saved) > 10)


def test_a_damaged_state_stops_the_crawl_and_says_what_to_do(site, tmp_path):
    job = EVERBLOOM | {"JOBDIR": "job", "EVERBLOOM_MEMORY": "64KiB"}
    with Crawl(site, tmp_path, **job) as crawl:
        crawl.until(lambda: len(site.asked) > 3)
        assert crawl.send(signal.SIGINT) == 0, crawl.text()
    state = tmp_path / "job" / "requests.ebf"
    whole = state.read_bytes()
    state.write_bytes(whole[: len(whole) // 2])
    site.take_asked()
    with Crawl(site, tmp_path, **job) as crawl:
        assert crawl.end() != 0
        log = crawl.text()
    assert not site.asked, "the crawl went on"
    assert "requests.ebf" in log and "delete it" in log
    assert state.read_bytes() == whole[: len(whole) // 2], "the damaged file was replaced"
