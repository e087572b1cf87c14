"""Other packages' own tests, taken from the package index, over our classes. Only with `cargo xtask python --full`."""

from __future__ import annotations

import gc
import hashlib
import html
import os
import re
import runpy
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not os.environ.get("EVERBLOOM_FULL"), reason="cargo xtask python --full runs this")


def index_address() -> str:
    """Where pip looks for packages."""
    pip = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    told = os.environ.get("PIP_INDEX_URL") or subprocess.run(pip, capture_output=True, text=True, check=False).stdout.strip()
    return (told or "https://pypi.org/simple").rstrip("/")


def sources(name: str, version: str, folder: Path) -> Path:
    """A source distribution, unpacked. It is fetched as a file: pip would first build it."""
    page = f"{index_address()}/{name}/"
    with urllib.request.urlopen(urllib.request.Request(page, headers={"Accept": "text/html"}), timeout=60) as answer:
        links = re.findall(r'href="([^"]+)"', answer.read().decode())
    wanted = f"{name}-{version}.tar.gz"
    link = next(link for link in map(html.unescape, links) if urllib.parse.urlsplit(link).path.endswith("/" + wanted))
    address, _, digest = urllib.parse.urljoin(page, link).partition("#sha256=")
    with urllib.request.urlopen(address, timeout=60) as answer:
        data = answer.read()
    assert not digest or hashlib.sha256(data).hexdigest() == digest
    (folder / wanted).write_bytes(data)
    with tarfile.open(folder / wanted) as archive:
        archive.extractall(folder, filter="data")
    return folder / f"{name}-{version}"


def test_rblooms_suite(tmp_path, monkeypatch):
    from everbloom.compat import rbloom

    suite = sources("rbloom", "1.5.4", tmp_path) / "tests" / "api_test.py"
    monkeypatch.setitem(sys.modules, "rbloom", rbloom)
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(suite), run_name="suite")
    # One group asks which objects the garbage collector reaches from a filter. From ours it reaches one more, the
    # filter inside; what the group is about, that a circle is collected, must hold.
    reached = gc.get_referents
    monkeypatch.setattr(gc, "get_referents", lambda bloom: [one for one in reached(bloom) if one is bloom.hash_func])
    names["api_suite"]()


def run_pytest(plugin: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs other tests in a process of their own, after the plugin has put our classes in place."""
    (folder / "our_classes.py").write_text(plugin)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "our_classes", "-p", "no:cacheprovider", *arguments]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_pyblooms_suite(tmp_path):
    suite = Path(pytest.importorskip("pybloom_live").__file__).with_name("test_pybloom.py")
    plugin = """
import pybloom_live.pybloom
from everbloom.compat.pybloom_live import BloomFilter, ScalableBloomFilter
pybloom_live.pybloom.BloomFilter, pybloom_live.pybloom.ScalableBloomFilter = BloomFilter, ScalableBloomFilter
"""
    # The twelfth test is of its own hash functions.
    ran = run_pytest(plugin, tmp_path, str(suite), "-k", "not MakeHashFuncs")
    assert ran.returncode == 0 and "11 passed" in ran.stdout, ran.stdout + ran.stderr


def test_scrapys_suite_of_duplicate_filters(tmp_path):
    suite = sources("scrapy", "2.19.0", tmp_path)
    default = """
from scrapy.settings import default_settings
default_settings.DUPEFILTER_CLASS = "everbloom.scrapy.DupeFilter"
"""
    # Two are of the file and of an attribute of Scrapy's own class.
    others = "not test_seenreq_truncated and not test_fingerprints_deprecation"
    tests = ("tests/test_dupefilters.py", "-c", os.devnull, "-k")
    ran = run_pytest(default, suite, *tests, others)
    assert ran.returncode == 0 and "10 passed" in ran.stdout, ran.stdout + ran.stderr

    # Six of those name a class of their own, so ours is not asked. Three of the six derive it from Scrapy's: from ours, too.
    base = default + """
import everbloom.scrapy
import scrapy.dupefilters
scrapy.dupefilters.RFPDupeFilter = everbloom.scrapy.DupeFilter
"""
    ran = run_pytest(base, suite, *tests, "test_df_from_crawler_scheduler or test_log and not deprecation")
    assert ran.returncode == 0 and "4 passed" in ran.stdout, ran.stdout + ran.stderr


# abloom's sources come without the file that its tests take constants and fixtures from: this one has what they name.
ABLOOMS_CONFTEST = """
import abloom, pytest
from everbloom.compat.abloom import BloomFilter

abloom.BloomFilter = BloomFilter
CAPACITY_TINY, CAPACITY_SMALL, CAPACITY_MEDIUM, CAPACITY_LARGE, CAPACITY_HUGE = 1, 100, 1000, 10_000, 1_000_000
FP_RATE_VERY_LOW, FP_RATE_LOW, FP_RATE_STANDARD, FP_RATE_HIGH, FP_RATE_VERY_HIGH = 0.0001, 0.001, 0.01, 0.1, 0.5
ITEM_COUNT_SMALL, ITEM_COUNT_MEDIUM, ITEM_COUNT_LARGE = 100, 500, 5000


def assert_no_false_negatives(bloom, items, message=""):
    assert [item for item in items if item not in bloom] == [], message


def assert_filters_equal(one, other, message=""):
    assert one == other, message


def made(**mode):
    return lambda capacity, fp_rate=FP_RATE_STANDARD, **more: BloomFilter(capacity, fp_rate, **(mode | more))


@pytest.fixture(params=[False, True], ids=["standard", "serializable"])
def bf_factory(request):
    return made(serializable=request.param)


@pytest.fixture
def bf_standard():
    return made()


@pytest.fixture
def bf_serializable():
    return made(serializable=True)


@pytest.fixture
def bf_free_threading():
    return made(free_threading=True)
"""


def test_ablooms_suite(tmp_path):
    pytest.importorskip("abloom")
    suite = sources("abloom", "1.1.0", tmp_path) / "tests"
    (suite / "conftest.py").write_text(ABLOOMS_CONFTEST)
    ran = run_pytest("", suite, str(suite), f"--rootdir={suite}", "--ignore", str(suite / "test_benchmark.py"), "-c", os.devnull)
    counts = dict((word, int(number)) for number, word in re.findall(r"(\d+) (passed|failed|error)", ran.stdout))
    # What fails asks for its own bytes, for attributes that cannot be set, and for its own hashes.
    assert counts.get("passed", 0) >= 481 and "error" not in counts, ran.stdout[-8000:] + ran.stderr
