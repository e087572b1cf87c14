"""A filter on a server is the library's, whoever asks and however often a connection breaks."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import everbloom
import everbloom.redis
import numpy as np
import pytest
from everbloom.redis import ExistsError, Filter, NotFoundError, ServerError, UsageError

from test_interrupts import lets_others_run
from test_one_file import server  # noqa: F401  the fixture


@pytest.fixture
def url(server):  # noqa: F811
    server("FLUSHALL")
    return f"redis://127.0.0.1:{server.port}"


@pytest.mark.parametrize("goal", [
    {"memory": "64KiB", "fpr": "1%"},
    {"spec": "scalable", "expect": 1000, "fpr": "1%", "seed": 7},
    {"spec": "stable", "memory": "2KiB", "fpr": "5%"},
    {"window": 500, "fpr": "1%", "shards": None},
    {"window": "300000d", "expect": 2000, "fpr": "1%"},
], ids=str)
def test_verdicts_and_bytes_are_those_of_a_filter_of_its_own(url, goal):
    seen = Filter("clicks", url, **{"shards": 5, **goal})
    twin = seen.copy()
    drawn = np.random.default_rng(5)
    for size in (1, 700, 2000, 70_000):
        keys = drawn.integers(0, 3000, size)
        assert (seen.add_many(keys) == twin.add_many(keys)).all()
        asked = drawn.integers(0, 6000, 1000)
        assert (seen.contains_many(asked) == twin.contains_many(asked)).all()
    assert seen.add("a") == twin.add("a")
    assert "a" in seen
    assert seen.spec == twin.spec and seen.kind == twin.kind and seen.parameters == twin.parameters and seen.seed == twin.seed
    if goal.get("window") != "300000d":  # which has a clock beside it
        assert seen.copy().to_bytes() == twin.to_bytes()
    status = seen.status()
    assert status.arrivals == twin.status().arrivals == seen.info()["observed"]
    assert status.fill == twin.status().fill and status.promise in ("kept", "broken")


def test_importances_go_with_the_keys(url):
    seen = Filter("weighed", url, "ibf", memory="2KiB", fpr="5%", importance=10, shards=3)
    twin = seen.copy()
    keys, weights = np.arange(5000) % 900, np.arange(5000) % 11
    assert (seen.add_many(keys, importance=weights) == twin.add_many(keys, importance=weights)).all()
    assert seen.importance_max == twin.importance_max == 10 and seen.add("x", importance=3) == twin.add("x", importance=3)
    with pytest.raises(everbloom.ParameterError):
        seen.add("x", importance=11)
    with pytest.raises(everbloom.ParameterError):
        seen.add_many(["x", "y"], importance=[1])


def test_everybody_who_names_it_shares_it(url, monkeypatch):
    first = Filter("shared", url, expect=1000, fpr="0.1%")
    second = Filter("shared", url)
    monkeypatch.setenv("EVERBLOOM_REDIS", url)
    third = Filter("shared", expect=1000, fpr="0.1%")
    assert first.add("a") and not second.add("a") and not third.add(b"a")
    second.update(["b", "c"], range(3))
    assert first.contains_many(["b", "c", 2, 3]).tolist() == [True, True, True, False]
    assert list(third.unseen(["c", "d", "d", "e"])) == ["d", "e"]
    assert list(third.unseen([{"id": "e"}, {"id": "f"}], key=lambda row: row["id"])) == [{"id": "f"}]
    assert first.hashes(["a"]) is not None and second.contains_many(first.hashes(["a", "z"])).tolist() == [True, False]
    info = first.info()
    assert info["shards"] == 64 and sum(info["nodes"].values()) == 64 and info["distinct"] == 9 and info["forgotten"] == 0
    assert "shared" in repr(first) and first.never_forgets and first.promise.fpr <= 0.001
    out = np.zeros(2, bool)
    assert first.add_many(["a", "new"], out=out) is out and out.tolist() == [False, True]
    Filter.delete("shared", url)
    with pytest.raises(NotFoundError):
        second.add("z")
    with pytest.raises(NotFoundError) as gone:
        Filter("shared", url)
    assert "memory=" in gone.value.remedy and isinstance(gone.value, LookupError)


def test_what_was_loaded_counts_towards_the_promise(url):
    own = everbloom.Filter("blocked:shards=4", expect=1000, fpr="1%")
    own.update(range(900))
    there = Filter.load("counted", own, f"{url}/?protocol=resp3")
    info = there.info()
    assert info["observed"] == 900 and 800 < info["distinct"] <= 900 and there.status().promise == "kept"
    there.update(range(900, 2500))
    assert there.status().promise == "broken" and there.info()["observed"] == 2500


def test_a_filter_goes_there_and_back(url):
    own = everbloom.Filter("blocked:shards=4", expect=1000, fpr="1%")
    own.update(range(500))
    there = Filter.load("moved", own, url)
    assert there.contains_many(range(500)).all() and there.copy().to_bytes() == own.to_bytes()
    with pytest.raises(ExistsError):
        Filter.load("moved", own, url)
    own.add("later")
    assert "later" in Filter.load("moved", own, url, replace=True)


def test_mistakes_are_told_with_a_remedy(url):
    Filter("taken", url, expect=1000)
    with pytest.raises(ExistsError) as other:
        Filter("taken", url, expect=5000)
    assert "another name" in other.value.remedy
    for wrong in ("localhost:6379", "http://h", "redis//h", "rediss://me:secret@h:1"):
        with pytest.raises(UsageError) as told:
            Filter("x", wrong, expect=10)
        assert told.value.remedy and "secret" not in str(told.value)
    with pytest.raises(UsageError):
        Filter("a b", url, expect=10)
    before = time.monotonic()
    with pytest.raises(ServerError) as told:
        Filter("x", "redis://me:secret@127.0.0.1:1", expect=10, patience=1)
    assert time.monotonic() - before < 30 and told.value.remedy and "secret" not in str(told.value)
    assert isinstance(told.value, ConnectionError) and isinstance(told.value, everbloom.Error)
    again = pickle.loads(pickle.dumps(told.value))
    assert (str(again), again.remedy) == (str(told.value), told.value.remedy)
    with pytest.raises(TypeError):
        Filter("x", url, exspect=10)
    with pytest.raises(TypeError):
        Filter("x", url, expect=10, patience=object())
    with pytest.raises(everbloom.ParameterError):
        Filter("x", url, expect=10, stream="zipf:1")
    with pytest.raises(everbloom.SpecError):
        Filter("x", url, "blom", expect=10)
    with pytest.raises(everbloom.ParameterError) as split:
        Filter("x", url, window=500, shards=8)
    assert "one key" in split.value.remedy
    with pytest.raises(TypeError):
        Filter("taken", url).add(1.5)
    with pytest.raises(TypeError):
        Filter("taken", url).add_many("a text is one key")


def test_a_broken_connection_counts_nothing_twice(url, server):  # noqa: F811
    seen = Filter("cut", url, "exact", shards=3)
    for start in range(0, 50_000, 10_000):
        assert seen.add_many(range(start, start + 10_000)).all()
        server("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert seen.info()["distinct"] == seen.info()["observed"] == 50_000


def test_the_same_call_again_gets_the_answers_that_it_should_have_had(url, server):  # noqa: F811
    seen = Filter("frozen", url, "exact", shards=3, patience=1)
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(ServerError):
            seen.add_many(range(1000))
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    assert seen.add_many(range(1000)).all()
    # With other keys, what was cut off counts first.
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(ServerError):
            seen.add_many(range(1000, 2000))
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    assert not seen.add(1500) and seen.add(2000)
    assert seen.info()["distinct"] == 2001 and seen.forgotten == 0


def test_a_long_call_again_gets_the_answers_of_all_its_batches(url, server):  # noqa: F811
    seen = Filter("long", url, "exact", shards=3, patience=1)

    def keys(stop_at=None):
        for key in range(200_000):
            if key == stop_at:  # in the third batch
                os.kill(server.process.pid, signal.SIGSTOP)
            yield key

    try:
        with pytest.raises(ServerError):
            seen.add_many(keys(stop_at=150_000))
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    assert seen.add("another")
    assert seen.add_many(keys()).all()
    assert not seen.add_many(keys()).any()
    assert seen.info()["distinct"] == 200_001


PROGRAM = """
import os, signal, subprocess, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from everbloom.redis import Filter

seen = Filter("waiting", sys.argv[1], expect=1000)
subprocess.Popen(["sh", "-c", f"kill -STOP {sys.argv[2]}; sleep 0.3; kill -INT {os.getpid()}"])
try:
    while True:
        seen.add_many(range(1000))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_waiting_for_a_server_is_interrupted(url, server):  # noqa: F811
    program = [sys.executable, "-c", PROGRAM, url, str(server.process.pid)]
    try:
        ran = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    assert ran.stdout == "interrupted\n", ran.stderr


def test_other_threads_run_while_a_server_is_asked(url):
    seen = Filter("busy", url, expect=1000)
    assert lets_others_run(lambda: seen.add_many(range(1000)))


def test_threads_share_one_filter(url):
    seen = Filter("threads", url, "exact", shards=4)
    new = []

    def work():
        new.append(int(sum(seen.add_many(range(start, start + 500)).sum() for start in range(0, 5000, 500))))

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sum(new) == 5000


FORK = """
import os, sys
from everbloom.redis import Filter, UsageError

seen = Filter("forked", sys.argv[1], expect=1000)
if os.fork() == 0:
    try:
        seen.add("a")
    except UsageError as error:
        print(error.remedy, flush=True)
    os._exit(0)
os.wait()
"""


def test_a_fork_must_open_its_own(url):
    ran = subprocess.run([sys.executable, "-c", FORK, url], capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout == "open it in each process\n", ran.stdout + ran.stderr
