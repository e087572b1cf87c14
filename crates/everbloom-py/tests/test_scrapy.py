"""The duplicate filter of Scrapy: its settings, its state, its log and its stats."""

from __future__ import annotations

import gc
import logging
import tracemalloc

import pytest

pytest.importorskip("scrapy")

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import Scheduler
from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.request import RequestFingerprinter
from scrapy.utils.test import get_crawler

import everbloom
from everbloom.scrapy import DupeFilter


def crawler_with(**settings):
    usual = {"DUPEFILTER_CLASS": DupeFilter, "EVERBLOOM_MEMORY": "64KiB"}
    crawler = get_crawler(Spider, settings_dict=usual | settings)
    crawler.spider = crawler._create_spider("pages")
    return crawler


def filter_with(**settings) -> DupeFilter:
    dupes = build_from_crawler(DupeFilter, crawler_with(**settings))
    dupes.open()
    return dupes


def requests(start: int, end: int):
    return [Request(f"http://example.com/{number}") for number in range(start, end)]


def seen(dupes: DupeFilter, asked) -> list[bool]:
    return [dupes.request_seen(request) for request in asked]


def test_a_request_is_seen_the_second_time():
    dupes = filter_with()
    assert seen(dupes, requests(0, 3)) == [False] * 3
    assert seen(dupes, requests(0, 4)) == [True] * 3 + [False]
    # The same page, by Scrapy's fingerprint.
    assert not dupes.request_seen(Request("http://example.com/?a=1&b=2"))
    assert dupes.request_seen(Request("http://example.com/?b=2&a=1"))


def test_the_scheduler_takes_it():
    scheduler = Scheduler.from_crawler(crawler_with())
    assert isinstance(scheduler.df, DupeFilter)


def test_verdicts_are_those_of_scrapys_own_filter():
    dupes, own = filter_with(), RFPDupeFilter()
    asked = [Request(f"http://example.com/{number * number % 101}") for number in range(500)]
    assert seen(dupes, asked) == [own.request_seen(request) for request in asked]


def test_state_is_kept_in_the_folder_of_the_job(tmp_path):
    job = str(tmp_path / "job")
    dupes = filter_with(JOBDIR=job)
    seen(dupes, requests(0, 10))
    dupes.close("finished")
    again = filter_with(JOBDIR=job)
    assert seen(again, requests(0, 11)) == [True] * 10 + [False]
    # The command line and the library read the same file.
    key = RequestFingerprinter().fingerprint(requests(3, 4)[0])
    assert key in everbloom.Filter.load(tmp_path / "job" / "requests.ebf")


def test_state_elsewhere_needs_no_job(tmp_path):
    state = tmp_path / "deep" / "pages.ebf"
    dupes = filter_with(EVERBLOOM_STATE=str(state))
    seen(dupes, requests(0, 2))
    dupes.close("finished")
    assert seen(filter_with(EVERBLOOM_STATE=str(state)), requests(1, 3)) == [True, False]


def test_state_is_saved_as_the_crawl_goes(tmp_path):
    dupes = filter_with(JOBDIR=str(tmp_path), EVERBLOOM_SAVE_SECONDS=0)
    seen(dupes, requests(0, 5))
    assert everbloom.Filter.load(tmp_path / "requests.ebf").arrivals == 5
    slow = filter_with(JOBDIR=str(tmp_path / "slow"))
    seen(slow, requests(0, 5))
    assert everbloom.Filter.load(tmp_path / "slow" / "requests.ebf").arrivals == 0


def test_a_state_that_cannot_be_saved_is_told_and_the_crawl_goes_on(tmp_path, caplog):
    folder = tmp_path / "state"
    crawler = crawler_with(EVERBLOOM_STATE=str(folder / "pages.ebf"), EVERBLOOM_SAVE_SECONDS=0)
    dupes = DupeFilter.from_crawler(crawler)
    (folder / "pages.ebf").unlink()
    folder.rmdir()
    assert seen(dupes, requests(0, 2)) == [False, False]
    assert "cannot be saved" in caplog.text and "EVERBLOOM_STATE" in caplog.text
    assert crawler.stats.get_value("everbloom/save_errors") == 2


def test_a_state_that_never_can_be_saved_stops_at_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        filter_with(EVERBLOOM_STATE=str(tmp_path / "file" / "pages.ebf"))


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "not a filter"])
def test_a_damaged_state_stops_with_the_remedy(tmp_path, damage, caplog):
    dupes = filter_with(JOBDIR=str(tmp_path))
    seen(dupes, requests(0, 10))
    dupes.close("finished")
    state = tmp_path / "requests.ebf"
    whole = bytearray(state.read_bytes())
    changed = bytes(whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:])
    state.write_bytes({"cut": whole[:-1], "changed": changed, "empty": b"", "not a filter": b"GIF89a" * 50}[damage])
    with pytest.raises(everbloom.Error) as raised:
        filter_with(JOBDIR=str(tmp_path))
    assert "delete it" in raised.value.remedy and str(state) in str(raised.value)
    assert "delete it" in caplog.text


def test_the_saved_state_wins_over_other_settings(tmp_path, caplog):
    job = {"JOBDIR": str(tmp_path)}
    dupes = filter_with(**job)
    seen(dupes, requests(0, 5))
    dupes.close("finished")
    caplog.set_level(logging.WARNING)
    again = filter_with(**job)
    assert not caplog.records, "nothing differs"
    assert again.seen.spec == dupes.seen.spec
    for other in ({"EVERBLOOM_MEMORY": "128KiB"}, {"EVERBLOOM_SEED": 3}, {"EVERBLOOM_FPR": 0.01}):
        caplog.clear()
        again = filter_with(**job, **other)
        assert again.seen.spec == dupes.seen.spec and again.seen.seed == 0
        assert "which is used" in caplog.text and "delete the file" in caplog.text
        assert seen(again, requests(0, 5)) == [True] * 5


def scrapys_state(folder, numbers) -> bytes:
    """What Scrapy's own filter writes."""
    own = RFPDupeFilter(str(folder))
    for request in requests(*numbers):
        own.request_seen(request)
    own.close("finished")
    return (folder / "requests.seen").read_bytes()


@pytest.mark.parametrize("cut", [0, 1, 21])
def test_scrapys_own_state_is_taken_over_once(tmp_path, cut, caplog):
    caplog.set_level(logging.INFO)
    whole = scrapys_state(tmp_path, (0, 20))
    (tmp_path / "requests.seen").write_bytes(whole[: len(whole) - cut])
    dupes = filter_with(JOBDIR=str(tmp_path))
    assert ("Took over 20" if cut == 0 else "Took over 19") in caplog.text
    assert seen(dupes, requests(0, 19)) == [True] * 19
    dupes.close("finished")
    # What Scrapy's own filter writes later is not read again.
    caplog.clear()
    scrapys_state(tmp_path, (50, 51))
    assert seen(filter_with(JOBDIR=str(tmp_path)), requests(50, 51)) == [False]
    assert "Took over" not in caplog.text


def test_the_state_of_older_versions_of_scrapy_is_taken_over(tmp_path, caplog):
    fingerprinter = RequestFingerprinter()
    lines = [fingerprinter.fingerprint(request).hex() for request in requests(0, 20)]
    # One line is damaged, and the last was being written when the crawl was stopped.
    text = "\n".join([*lines[:10], "zz", *lines[10:]])
    (tmp_path / "requests.seen").write_text(text)
    dupes = filter_with(JOBDIR=str(tmp_path))
    assert seen(dupes, requests(0, 20)) == [True] * 19 + [False]
    assert "2 lines" in caplog.text


def test_an_empty_state_of_scrapy_is_nothing(tmp_path):
    (tmp_path / "requests.seen").write_bytes(b"")
    assert seen(filter_with(JOBDIR=str(tmp_path)), requests(0, 1)) == [False]


def test_stats_and_log_say_what_the_promise_may_cost(caplog):
    caplog.set_level(logging.INFO)
    crawler = crawler_with(EVERBLOOM_FPR="0.1%", EVERBLOOM_EXPECT="1000", EVERBLOOM_FILTER="bloom")
    dupes = DupeFilter.from_crawler(crawler)
    dupes.open()
    assert "at most 1 new page in 1" in caplog.text
    new = seen(dupes, requests(0, 999)).count(False)
    seen(dupes, requests(0, 999))
    dupes.close("finished")
    stats = crawler.stats.get_stats()
    assert stats["everbloom/spec"] == dupes.seen.spec
    assert stats["everbloom/memory_bytes"] == dupes.seen.memory_bytes <= 64 << 10
    assert stats["everbloom/arrivals"] == 2 * 999
    assert 0 < stats["everbloom/estimated_fpr"] <= 0.001
    rate = dupes.seen.promise.fpr
    assert stats["everbloom/expected_lost"] == pytest.approx(new * rate / (1 - rate))
    assert "expected to be lost" in caplog.text


def test_while_the_filter_is_exact_nothing_is_lost(caplog):
    caplog.set_level(logging.INFO)
    crawler = crawler_with(EVERBLOOM_MEMORY="1MiB")
    dupes = DupeFilter.from_crawler(crawler)
    dupes.open()
    exact = dupes.seen.promise.exact_until
    assert exact and f"no page is lost while there are {exact:,} at most" in caplog.text
    seen(dupes, requests(0, 500))
    dupes.close("finished")
    # Two hashes of 64 bits may still be the same.
    assert crawler.stats.get_value("everbloom/expected_lost") <= 500 * 500 / 2**64 * 2**16


def test_more_pages_than_planned_for_are_told(caplog):
    crawler = crawler_with(EVERBLOOM_MEMORY="", EVERBLOOM_FPR="1%", EVERBLOOM_EXPECT=100, EVERBLOOM_FILTER="bloom")
    dupes = DupeFilter.from_crawler(crawler)
    seen(dupes, requests(0, 1000))
    dupes.close("finished")
    assert "EVERBLOOM_EXPECT" in caplog.text
    lost = crawler.stats.get_value("everbloom/expected_lost")
    assert lost > 1000 * 0.01 / 0.99


@pytest.mark.parametrize("debug", [False, True])
def test_duplicates_are_logged_as_by_scrapy(debug, caplog):
    caplog.set_level(logging.DEBUG, logger="scrapy.dupefilters")
    crawler = crawler_with(DUPEFILTER_DEBUG=debug)
    dupes = DupeFilter.from_crawler(crawler)
    own = RFPDupeFilter(debug=debug)
    request = Request("http://example.com/1", headers={"Referer": "http://example.com/0"})
    texts = []
    for filter_ in (dupes, own):
        caplog.clear()
        for _ in range(3):
            filter_.log(request, crawler.spider)
        texts.append([(record.name, record.levelno, record.getMessage()) for record in caplog.records])
    assert texts[0] == texts[1]
    assert len(texts[0]) == (3 if debug else 1)
    assert crawler.stats.get_value("dupefilter/filtered") == 6


def test_a_window_of_requests_lets_pages_come_again():
    dupes = filter_with(EVERBLOOM_WINDOW=100, EVERBLOOM_MEMORY="256KiB")
    assert seen(dupes, requests(0, 10)) == [False] * 10
    assert seen(dupes, requests(0, 10)) == [True] * 10
    seen(dupes, requests(1000, 3000))
    assert seen(dupes, requests(0, 10)) == [False] * 10


def test_a_window_of_time_is_kept_over_a_stop(tmp_path):
    job = {"JOBDIR": str(tmp_path), "EVERBLOOM_WINDOW": "7d", "EVERBLOOM_EXPECT": "1e5", "EVERBLOOM_MEMORY": "1MiB"}
    dupes = filter_with(**job)
    assert seen(dupes, requests(0, 3)) == [False] * 3
    dupes.close("finished")
    again = filter_with(**job)
    assert again.seen.window.seconds == 7 * 86400
    assert seen(again, requests(0, 4)) == [True] * 3 + [False]
    # Eight days later.
    import time

    assert again.seen.add(RequestFingerprinter().fingerprint(requests(0, 1)[0]), at=time.time() + 8 * 86400)


def importance_of(request):
    return request.meta["worth"]


@pytest.mark.parametrize(
    ("settings", "most", "request_", "expected"),
    [
        ({"EVERBLOOM_IMPORTANCE": "depth"}, 16, Request("http://a"), 16),
        ({"EVERBLOOM_IMPORTANCE": "depth"}, 16, Request("http://a", meta={"depth": 3}), 13),
        ({"EVERBLOOM_IMPORTANCE": "depth"}, 16, Request("http://a", meta={"depth": 300}), 0),
        ({"EVERBLOOM_IMPORTANCE": "depth", "EVERBLOOM_IMPORTANCE_MAX": 4}, 4, Request("http://a", meta={"depth": 1}), 3),
        ({"EVERBLOOM_IMPORTANCE": "priority"}, 100, Request("http://a", priority=7), 7),
        ({"EVERBLOOM_IMPORTANCE": "priority"}, 100, Request("http://a", priority=-7), 0),
        ({"EVERBLOOM_IMPORTANCE": f"{__name__}.importance_of"}, 1, Request("http://a", meta={"worth": 0.25}), 0.25),
        # What is no number counts as much as can be: nothing is lost by a mistake in the function.
        ({"EVERBLOOM_IMPORTANCE": f"{__name__}.importance_of"}, 1, Request("http://a", meta={"worth": None}), 1),
        ({"EVERBLOOM_IMPORTANCE": f"{__name__}.importance_of"}, 1, Request("http://a", meta={"worth": float("nan")}), 1),
        ({"EVERBLOOM_IMPORTANCE": f"{__name__}.importance_of"}, 1, Request("http://a"), 1),
    ],
)
def test_importance(settings, most, request_, expected):
    dupes = filter_with(**settings)
    assert dupes.seen.importance_max == most
    assert dupes._importance(request_) == expected
    assert not dupes.request_seen(request_)


def test_an_importance_that_does_not_exist_is_told():
    with pytest.raises(everbloom.ParameterError, match="EVERBLOOM_IMPORTANCE.*depth"):
        filter_with(EVERBLOOM_IMPORTANCE="no.such.function")


@pytest.mark.parametrize(
    ("setting", "value"),
    [("EVERBLOOM_FPR", "200%"), ("EVERBLOOM_MEMORY", "much"), ("EVERBLOOM_WINDOW", "soon"), ("EVERBLOOM_FILTER", "blom"),
     ("EVERBLOOM_FPR", 0), ("EVERBLOOM_FPR", "0"), ("EVERBLOOM_MEMORY", 0), ("EVERBLOOM_EXPECT", 0), ("EVERBLOOM_WINDOW", 0),
     ("EVERBLOOM_SAVE_SECONDS", "abc"), ("EVERBLOOM_SEED", "x"), ("EVERBLOOM_IMPORTANCE_MAX", 0), ("EVERBLOOM_IMPORTANCE_MAX", "most")],
)
def test_a_wrong_setting_is_named_and_logged(setting, value, caplog):
    with pytest.raises(everbloom.Error, match=setting) as raised:
        filter_with(**{setting: value, **({"EVERBLOOM_IMPORTANCE": "depth"} if "IMPORTANCE" in setting else {})})
    assert raised.value.remedy and setting in caplog.text


def test_an_empty_setting_is_the_usual_one():
    usual = filter_with().seen.promise.fpr
    assert filter_with(EVERBLOOM_FPR="").seen.promise.fpr == usual
    assert filter_with(EVERBLOOM_WINDOW="", EVERBLOOM_EXPECT="").seen.promise.fpr == usual


def test_settings_of_the_command_line_are_texts():
    dupes = filter_with(EVERBLOOM_MEMORY="65536", EVERBLOOM_FPR="1e-3", EVERBLOOM_EXPECT="1000", EVERBLOOM_SEED="7")
    assert dupes.seen.memory_bytes <= 65536 and dupes.seen.seed == 7


def test_what_the_scheduler_of_scrapy_redis_calls(tmp_path):
    crawler = crawler_with(EVERBLOOM_STATE=str(tmp_path / "pages.ebf"))
    dupes = DupeFilter.from_spider(crawler.spider)
    seen(dupes, requests(0, 3))
    dupes.clear()
    assert seen(dupes, requests(0, 3)) == [False] * 3
    dupes.clear()
    assert seen(dupes, requests(1, 3)) == [False] * 2
    # It closes no filter: the end of the spider does.
    crawler.signals.send_catch_log(signals.spider_closed, spider=crawler.spider, reason="finished")
    assert crawler.stats.get_value("everbloom/arrivals") == 2
    assert seen(DupeFilter.from_spider(crawler.spider), requests(0, 3)) == [False, True, True]


def growth(dupes, count: int) -> int:
    """By how many bytes Python's memory grows with requests that are seen for the first time."""
    def ask(start: int) -> int:
        for number in range(start, start + count):
            dupes.request_seen(Request(f"http://example.com/page/{number}"))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    # The first requests fill the caches of other modules.
    before = ask(0)
    grown = ask(count) - before
    tracemalloc.stop()
    return grown


def test_memory_is_flat():
    count = 1500
    dupes = filter_with(EVERBLOOM_MEMORY="1MiB")
    before = dupes.seen.memory_bytes
    ours, own = growth(dupes, count), growth(RFPDupeFilter(), count)
    assert dupes.seen.memory_bytes == before <= 1 << 20
    # Scrapy's own keeps the 20 bytes of every fingerprint, and Python's 33 around them.
    assert own >= 53 * count
    assert ours < count, f"{ours} bytes for {count} requests"
