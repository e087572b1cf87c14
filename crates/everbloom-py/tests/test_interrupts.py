"""Long batches let Ctrl-C through and other threads run; what came before an interruption is kept."""

import subprocess
import sys
import threading
import time

import everbloom
import numpy as np
import pyarrow as pa
import pytest

# Each is endless, or nearly so: without the interruption it would never come back.
ENDLESS = {
    "add_many of an array": "seen.add_many(np.broadcast_to(np.int64(7), 2**40))",
    "update with an array": "seen.update(np.broadcast_to(np.int64(7), 2**40))",
    "contains_many of an array": "(seen.update([7]), seen.contains_many(np.broadcast_to(np.int64(7), 2**40)))",
    "update with a generator": "seen.update(number for number in itertools.count())",
    "update with an iterator in C": "seen.update(itertools.count())",
    "add_many of an iterator in C": "seen.add_many(itertools.count())",
    "hashes": "(seen.update([7]), seen.hashes(np.broadcast_to(np.int64(7), 2**40)))",
    "unseen": "collections.deque(seen.unseen(itertools.count()), maxlen=0)",
    "endless importances": "(seen.update([7]), seen.add_many((7 for _ in range(9)), importance=itertools.repeat(1.0)))",
    "a column": "seen.update(column)",
}

PROGRAM = """
import collections, itertools, os, signal, subprocess
# Ctrl-C may be ignored by who started the tests.
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np, pyarrow as pa, everbloom

part = pa.array([7] * 65536)
column = pa.chunked_array([part] * 100_000)
seen = everbloom.Filter("blocked", expect=10_000_000, fpr=0.01)
# From outside, as a terminal does it: that needs none of this process' threads.
subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -INT {os.getpid()}"])
try:
    CALL
except KeyboardInterrupt:
    count = seen.arrivals
    first = [7] if 7 in seen and 6 not in seen else range(min(count, 100_000))
    print("interrupted", count, bool(seen.contains_many(first).all()))
"""


@pytest.mark.parametrize("call", ENDLESS.values(), ids=ENDLESS)
def test_a_batch_is_interrupted_and_keeps_what_came_before(call):
    program = [sys.executable, "-c", PROGRAM.replace("CALL", call)]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    word, count, kept = ran.stdout.split() if ran.stdout else ("", "0", "")
    assert (word, kept) == ("interrupted", "True") and int(count) > 0, ran.stdout + ran.stderr


def lets_others_run(call):
    """Whether another thread runs while one that is not made to give the lock up makes the call, a hundred times if need be."""
    ran, stop = 0, threading.Event()

    def count():
        nonlocal ran
        while not stop.is_set():
            ran += 1
            # Gives Python's lock up.
            time.sleep(0)

    before = sys.getswitchinterval()
    # Nobody is made to give the lock up before an hour is over: the other thread runs only if this one does so itself.
    sys.setswitchinterval(3600)
    other = threading.Thread(target=count)
    other.start()
    try:
        start = ran
        sum(range(10_000_000))
        assert ran == start, "the lock was given up without a call"
        for _ in range(100):
            start = ran
            call()
            if ran > start:
                return True
        return False
    finally:
        stop.set()
        sys.setswitchinterval(before)
        other.join()


@pytest.mark.parametrize("what", ["filter", "view", "column"])
def test_other_threads_run_while_a_batch_is_asked(what):
    seen = everbloom.Filter("blocked", expect=1000)
    asked = everbloom.View(seen.to_bytes()) if what == "view" else seen
    keys = pa.array(range(500_000)) if what == "column" else np.arange(500_000)
    assert lets_others_run(lambda: asked.contains_many(keys))
