"""A duplicate filter for Scrapy in fixed memory.

One line in a project's settings::

    DUPEFILTER_CLASS = "everbloom.scrapy.DupeFilter"

Scrapy's own filter keeps about 100 bytes of every URL and grows for as long as a crawl runs. This one takes
``EVERBLOOM_MEMORY`` and no more. It may take a new page for one that was seen, and then that page is lost: at most as often
as ``EVERBLOOM_FPR`` says. How many pages that may have cost is in the log and in the stats when the crawl ends.

=========================  ====================  =============================================================
setting                    usually
=========================  ====================  =============================================================
EVERBLOOM_MEMORY           "64MiB"
EVERBLOOM_FPR              1e-4                  one new page in 10,000 is lost
EVERBLOOM_EXPECT           None                  how many pages there are
EVERBLOOM_FILTER           "auto"                the spec of a filter
EVERBLOOM_SEED             0
EVERBLOOM_WINDOW           None                  "7d", or a number of requests: crawl again after that
EVERBLOOM_IMPORTANCE       None                  "depth", "priority", or the path of a function of a request
EVERBLOOM_IMPORTANCE_MAX   16, 100, 1            the largest importance: of "depth", "priority", a function
EVERBLOOM_STATE            JOBDIR/requests.ebf   where the filter is saved
EVERBLOOM_SAVE_SECONDS     60                    how often
=========================  ====================  =============================================================
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from scrapy import signals
from scrapy.dupefilters import BaseDupeFilter
from scrapy.utils.job import job_dir
from scrapy.utils.misc import load_object
from scrapy.utils.request import RequestFingerprinter, referer_str

from ._errors import Error, ParameterError, SpecError
from ._everbloom import Filter, Status, plan

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from scrapy.statscollectors import StatsCollector
    from scrapy.utils.request import RequestFingerprinterProtocol
    from typing_extensions import Self

__all__ = ["DupeFilter"]

_log = logging.getLogger(__name__)

# The keywords of a filter, and the settings that give them.
_KEYWORDS = {
    "memory": "EVERBLOOM_MEMORY",
    "fpr": "EVERBLOOM_FPR",
    "expect": "EVERBLOOM_EXPECT",
    "window": "EVERBLOOM_WINDOW",
    "seed": "EVERBLOOM_SEED",
    "importance": "EVERBLOOM_IMPORTANCE_MAX",
}
_USUAL = {"EVERBLOOM_MEMORY": "64MiB", "EVERBLOOM_FPR": 1e-4}

# Fingerprints that are read from an old requests.seen at a time.
_BATCH = 1 << 16


class DupeFilter(BaseDupeFilter):
    """Scrapy's duplicate filter in fixed memory; see the module for its settings."""

    def __init__(
        self,
        settings: BaseSettings,
        *,
        fingerprinter: RequestFingerprinterProtocol | None = None,
        stats: StatsCollector | None = None,
    ) -> None:
        self.fingerprinter = fingerprinter or RequestFingerprinter()
        self.stats = stats
        self.debug = settings.getbool("DUPEFILTER_DEBUG")
        self.logdupes = True
        # Scrapy's own name: its users look for these lines there.
        self.logger = logging.getLogger("scrapy.dupefilters")

        job = job_dir(settings)
        own = settings.get("EVERBLOOM_STATE")
        self.state = Path(own) if own else Path(job, "requests.ebf") if job else None
        self._old_state = Path(job, "requests.seen") if job else None
        self._save_seconds = _number(settings, "EVERBLOOM_SAVE_SECONDS", 60)
        self._importance, importance_max = _importance(settings)
        self._spec = settings.get("EVERBLOOM_FILTER") or "auto"
        self._goal = _goal(settings, importance_max)
        self._new = 0
        self._saved_at = time.monotonic()
        self.seen = self._ready()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.settings, fingerprinter=crawler.request_fingerprinter, stats=crawler.stats)

    @classmethod
    def from_spider(cls, spider: Spider) -> Self:
        """What the scheduler of scrapy-redis calls. It neither opens nor closes a filter, so the spider's end does that."""
        dupes = cls.from_crawler(spider.crawler)
        dupes.open()
        spider.crawler.signals.connect(dupes._spider_closed, signal=signals.spider_closed)
        return dupes

    def _spider_closed(self, reason: str) -> None:
        self.close(reason)

    def open(self) -> None:
        # One that was saved takes less until more pages come.
        size = max(self.seen.memory_bytes, plan(self.seen.spec).memory_bytes)
        _log.info("Duplicate filter '%s' takes %s: %s", self.seen.spec, _size(size), _in_words(self.seen))

    def request_seen(self, request: Request) -> bool:
        key = self.fingerprinter.fingerprint(request)
        importance = None if self._importance is None else self._importance(request)
        new = self.seen.add(key, importance=importance)
        self._new += new
        if self.state is not None and time.monotonic() - self._saved_at >= self._save_seconds:
            self._save()
        return not new

    def close(self, reason: str) -> None:
        if self.state is not None:
            self._save()
        status = self.seen.status()
        rate = self._rate(status)
        # Of every page that was taken for new there were rate / (1 - rate) that were not.
        lost = self._new * rate / (1 - rate) if rate < 1 else math.inf
        if self.stats is not None:
            self.stats.set_value("everbloom/spec", self.seen.spec)
            self.stats.set_value("everbloom/memory_bytes", self.seen.memory_bytes)
            self.stats.set_value("everbloom/arrivals", status.arrivals)
            self.stats.set_value("everbloom/estimated_fpr", status.estimated_fpr)
            self.stats.set_value("everbloom/expected_lost", lost)
        _log.info("%s requests were new; at most %.3g pages are expected to be lost", f"{self._new:,}", lost)
        if status.promise == "broken":
            remedy = "give EVERBLOOM_MEMORY more, or say with EVERBLOOM_EXPECT how many pages there are"
            _log.warning("The duplicate filter holds more than it was planned for: now %.2g of new pages are lost; %s", rate, remedy)

    def _rate(self, status: Status) -> float:
        """The highest rate at which new pages were lost."""
        promise = self.seen.promise
        if promise.exact_until is not None and status.arrivals <= promise.exact_until:
            return status.estimated_fpr
        # The promise is a bound. Once a filter is fuller than it was planned for, its cells know better.
        return max(promise.fpr, status.estimated_fpr) if status.promise == "broken" else promise.fpr

    def clear(self) -> None:
        """Forgets every request: what the scheduler of scrapy-redis calls to begin anew."""
        self.seen.clear()
        if self.state is not None:
            self._save()

    def log(self, request: Request, spider: Spider) -> None:
        if self.debug:
            message = "Filtered duplicate request: %(request)s (referer: %(referer)s)"
            self.logger.debug(message, {"request": request, "referer": referer_str(request)}, extra={"spider": spider})
        elif self.logdupes:
            message = (
                "Filtered duplicate request: %(request)s"
                " - no more duplicates will be shown"
                " (see DUPEFILTER_DEBUG to show all duplicates)"
            )
            self.logger.debug(message, {"request": request}, extra={"spider": spider})
            self.logdupes = False
        assert spider.crawler.stats is not None
        spider.crawler.stats.inc_value("dupefilter/filtered")

    def _ready(self) -> Filter:
        """The filter that was saved, or one as the settings want it."""
        if self.state is not None and self.state.exists():
            return self._resumed(self.state)
        seen = _planned(self._spec, self._goal).build()
        if self._old_state is not None and self._old_state.exists():
            _take_over(self._old_state, seen)
        if self.state is not None:
            # Now rather than in an hour it turns out whether the file can be written.
            self.state.parent.mkdir(parents=True, exist_ok=True)
            seen.save(self.state)
        return seen

    def _resumed(self, state: Path) -> Filter:
        try:
            seen = Filter.load(state)
        except Error as error:
            remedy = f"put a copy of {state} back, or delete it: then pages that were seen are fetched again"
            problem = str(error).removesuffix(error.remedy).rstrip("; ")
            _log.error("The requests that were seen cannot be read: %s: %s; %s", state, problem, remedy)
            raise type(error)(f"{state}: {problem}; {remedy}", remedy, **error._fields) from error
        self._warn_of_other_settings(seen, state)
        _log.info("Resuming with %s requests that were seen, from %s", f"{seen.arrivals:,}", state)
        return seen

    def _warn_of_other_settings(self, seen: Filter, state: Path) -> None:
        wanted = _planned(self._spec, self._goal)
        differs = (wanted.spec, wanted.seed) != (seen.spec, seen.seed)
        if differs or float(self._goal.get("importance") or 1) != seen.importance_max:
            remedy = "delete the file to begin anew with the settings"
            _log.warning(
                "The settings want the filter '%s' (seed %s), but %s has '%s' (seed %s), which is used; %s",
                wanted.spec, wanted.seed, state, seen.spec, seen.seed, remedy,
            )  # fmt: skip
        if self._importance is not None:
            self._importance = _clipped(self._importance, seen.importance_max)

    def _save(self) -> None:
        assert self.state is not None
        try:
            self.seen.save(self.state)
        except OSError as error:
            # The crawl is worth more than the file: it goes on, and the next time may succeed.
            _log.error("The requests that were seen cannot be saved: %s; make room, or name another EVERBLOOM_STATE", error)
            if self.stats is not None:
                self.stats.inc_value("everbloom/save_errors")
        self._saved_at = time.monotonic()


def _goal(settings: BaseSettings, importance_max: float | None) -> dict[str, Any]:
    """The keywords of the filter that the settings want."""
    names = {keyword: name for keyword, name in _KEYWORDS.items() if keyword not in ("importance", "seed")}
    # An empty setting takes a usual one back, as EVERBLOOM_MEMORY="" for what EVERBLOOM_EXPECT pages need. A rate is always
    # asked for.
    given = {keyword: settings.get(name, _USUAL.get(name)) for keyword, name in names.items()}
    goal = {keyword: None if value == "" else value for keyword, value in given.items()}
    if goal["fpr"] is None:
        goal["fpr"] = _USUAL["EVERBLOOM_FPR"]
    goal["seed"] = int(_number(settings, "EVERBLOOM_SEED", 0))
    goal["importance"] = importance_max
    # The command line knows texts only.
    if isinstance(goal["memory"], str) and goal["memory"].isdecimal():
        goal["memory"] = int(goal["memory"])
    return goal


def _told(error: Error) -> Error:
    """The error, which is logged as well: Scrapy shows it in the middle of others, or not at all."""
    _log.error("%s", error)
    return error


def _number(settings: BaseSettings, name: str, usual: float) -> float:
    given = settings.get(name, usual)
    try:
        number = float(given)
        if math.isfinite(number) and number >= 0:
            return number
    except (TypeError, ValueError):
        pass
    remedy = f"write {usual:g}"
    raise _told(ParameterError(f"{name}: {given!r} is no number from 0 on; {remedy}", remedy, name=name, given=str(given), needed="a number"))


def _planned(spec: str, goal: dict[str, Any]) -> Any:
    try:
        return plan(spec, **goal)
    except Error as error:
        if isinstance(error, ParameterError):
            names = _KEYWORDS.get(error.name.removesuffix("_max"), "EVERBLOOM_FILTER")
        elif isinstance(error, SpecError):
            names = "EVERBLOOM_FILTER"
        else:
            names = ", ".join(name for keyword, name in _KEYWORDS.items() if goal.get(keyword))
        raise _told(type(error)(f"{names}: {error}", error.remedy, **error._fields)) from error


def _importance(settings: BaseSettings) -> tuple[Callable[[Request], float] | None, float | None]:
    """How much a request matters, from 0 to the largest value."""
    name = settings.get("EVERBLOOM_IMPORTANCE")
    if name is None:
        return None, None

    def most(usual: float) -> float:
        return _number(settings, "EVERBLOOM_IMPORTANCE_MAX", usual)

    if name == "depth":
        # Pages near the start matter most.
        deepest = most(16)
        return _clipped(lambda request: deepest - request.meta.get("depth", 0), deepest), deepest
    if name == "priority":
        return _clipped(lambda request: request.priority, most(100)), most(100)
    try:
        function = load_object(name)
    except (ValueError, NameError, ImportError) as error:
        remedy = 'write "depth", "priority", or the path of a function of a request, as "project.crawl.importance"'
        message = f"EVERBLOOM_IMPORTANCE: {name!r} is no function ({error}); {remedy}"
        raise _told(ParameterError(message, remedy, name="EVERBLOOM_IMPORTANCE", given=str(name), needed="a function")) from error
    return _clipped(function, most(1)), most(1)


def _clipped(function: Callable[[Request], float], most: float) -> Callable[[Request], float]:
    """A value from 0 to the largest one, whatever the function gives: an error would lose the request."""
    told = False

    def importance(request: Request) -> float:
        nonlocal told
        try:
            value = float(function(request))
            if not math.isnan(value):
                return min(max(value, 0.0), most)
            problem: object = "it is not a number"
        except Exception as error:  # noqa: BLE001
            problem = error
        if not told:
            told = True
            _log.error("EVERBLOOM_IMPORTANCE gives no importance for %s, which counts as %s: %s", request, most, problem)
        return most

    return importance


def _take_over(path: Path, seen: Filter) -> None:
    """Remembers the requests in a file of Scrapy's own filter."""
    before = seen.arrivals
    with path.open("rb") as file:
        records = _hex_lines(file, path) if _is_text(file) else _records(file)
        batch: list[bytes] = []
        for record in records:
            batch.append(record)
            if len(batch) == _BATCH:
                seen.update(batch)
                batch.clear()
        seen.update(batch)
    _log.info("Took over %s requests that were seen, from %s", f"{seen.arrivals - before:,}", path)


def _is_text(file: BinaryIO) -> bool:
    """Whether a file has lines of hexadecimal digits, as up to Scrapy 2.18, rather than lengths and bytes.

    A digit as the first byte of a length would be a fingerprint of 12 kB or more.
    """
    first = file.read(1)
    file.seek(0)
    return first >= b"0"


def _records(file: BinaryIO) -> Iterator[bytes]:
    """Two bytes of length, then the fingerprint; the last one may be cut."""
    while len(length := file.read(2)) == 2:
        size = int.from_bytes(length, "big")
        record = file.read(size)
        if len(record) < size:
            return
        yield record


def _hex_lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    skipped = 0
    for line in file:
        # A line without its end was being written when the crawl was stopped.
        text = line.rstrip(b"\r\n")
        try:
            if not line.endswith(b"\n"):
                raise ValueError
            record = bytes.fromhex(text.decode("ascii"))
        except ValueError:
            skipped += 1
            continue
        if record:
            yield record
    if skipped:
        _log.warning("%s has %s lines that are no fingerprints; those requests will be made again", path, f"{skipped:,}")


def _in_words(seen: Filter) -> str:
    promise = seen.promise
    if promise.fpr >= 1:
        return "it promises nothing, any new page may be lost"
    text = f"at most 1 new page in {math.floor(1 / promise.fpr):,} is lost" if promise.fpr > 0 else "no page is lost"
    if promise.exact_until:
        text = f"no page is lost while there are {promise.exact_until:,} at most, then {text}"
    if promise.until_items is not None and not promise.always:
        text += f" until there are {promise.until_items:,}"
    return text if seen.never_forgets else f"{text}; pages that it forgets are fetched again"


def _size(size: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.4g} {unit}"
    return f"{size} bytes"
