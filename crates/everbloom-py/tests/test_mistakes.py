"""What users and hostile files do: an exception that says what to write, or the right answer; never a crash or a hang."""

import gc
import itertools
import os
import subprocess
import sys
import threading

import everbloom
import numpy as np
import pyarrow as pa
import pytest
from everbloom import Filter, View


@pytest.mark.parametrize("now", [1.8e12, 1.8e15, -1e12, float("nan"), float("inf")])
def test_milliseconds_are_not_taken_for_seconds(now):
    hour = Filter(window="1h", expect="10k", fpr="0.1%")
    for call in (
        lambda: hour.add("x", at=now),
        lambda: hour.add_many(["x"], at=now),
        lambda: hour.add_many(["x"], at=[now]),
        lambda: hour.add_many(["x"], at=np.array([now])),
    ):
        with pytest.raises(ValueError, match="divide milliseconds by 1000"):
            call()
    assert hour.arrivals == 0 and hour.add("x", at=1.8e9) and not hour.add("x", at=1.8e9 + 600)


def test_what_is_masked_is_no_key():
    seen = Filter("ranked", memory="4KiB", fpr=0.01, importance=10)
    masked = np.ma.array([1, 2, 1], mask=[0, 1, 0])
    with pytest.raises(TypeError, match="compressed"):
        seen.add_many(masked)
    with pytest.raises(TypeError, match="masked"):
        seen.add_many([1, 2, 3], importance=masked)
    with pytest.raises(TypeError, match="masked"):
        Filter(window="1h", expect=1000).add_many([1, 2, 3], at=masked)
    assert seen.arrivals == 0
    assert seen.add_many(np.ma.array([1, 2, 1])).tolist() == [True, True, False]


@pytest.mark.parametrize("name, values", [("importance", [1, 2, 3]), ("at", [1.0, 2.0, 3.0])])
def test_as_many_values_as_keys_come_even_of_an_iterator(name, values):
    seen = Filter(window="1h", expect=1000) if name == "at" else Filter("ranked", memory="4KiB", fpr=0.01, importance=10)
    with pytest.raises(everbloom.ParameterError, match="3 values long"):
        seen.add_many((key for key in "ab"), **{name: values})
    with pytest.raises(everbloom.ParameterError, match="3 values long"):
        seen.add_many((key for key in "abcd"), **{name: values})
    with pytest.raises(everbloom.ParameterError, match="3 values long"):
        seen.add_many(["a", "b"], **{name: itertools.repeat(1.0)})
    assert len(seen.add_many((key for key in "xyz"), **{name: values})) == 3


def test_a_finaliser_may_use_the_filter_whose_error_is_being_made():
    # In a process of its own: what is held to is that it ends at all.
    program = """
import everbloom, gc
seen, timed = everbloom.Filter("bloom", expect=1000), everbloom.Filter(window="1h", expect=1000)
class Circle:
    def __init__(self):
        self.me = self
    def __del__(self):
        seen.add("from a finaliser")
        timed.add("from a finaliser")
gc.set_threshold(1, 1, 1)
calls = [lambda: seen.discard("x"), lambda: seen.remove("x"), lambda: seen.count("x"), lambda: seen.add("x", at=5),
         lambda: seen.add("x", importance=7), lambda: seen.advance(), lambda: timed.add("x", at=1e15), lambda: repr(seen),
         lambda: seen.never_forgets, lambda: seen.parameters, lambda: seen.promise, lambda: timed.window,
         lambda: seen.update([1, None]), lambda: seen.add_many([1], at=[1]), lambda: seen | timed]
for _ in range(30):
    for call in calls:
        Circle()
        try:
            call()
        except everbloom.Error:
            pass
        except TypeError:
            pass
assert "from a finaliser" in seen
print("done")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout == "done\n", ran.stderr


def test_only_regular_files_are_replaced(tmp_path):
    seen = Filter("bloom", expect=100)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for call in (seen.save, Filter.load, View.open, everbloom.Scheme.load):
        with pytest.raises(OSError, match="no regular file"):
            call(pipe)
        with pytest.raises(IsADirectoryError):
            call(tmp_path)
    assert pipe.is_fifo() and sorted(path.name for path in tmp_path.iterdir()) == ["pipe"]


def test_a_link_stays_one_even_to_what_is_not_there_yet(tmp_path):
    seen = Filter("bloom", expect=100)
    (tmp_path / "folder").mkdir()
    link, again = tmp_path / "link", tmp_path / "folder" / "again"
    link.symlink_to("folder/again")
    again.symlink_to("../target")
    for _ in range(2):
        seen.add("key")
        seen.save(link)
        assert link.is_symlink() and again.is_symlink() and Filter.load(tmp_path / "target") == seen
    circle = tmp_path / "circle"
    circle.symlink_to("circle")
    with pytest.raises(OSError):
        seen.save(circle)
    assert circle.is_symlink()


def test_names_of_files_are_what_python_takes(tmp_path):
    seen = Filter("blocked", expect=100)
    for path in (tmp_path / "a.ebf", str(tmp_path / "b.ebf"), os.fsencode(tmp_path / "c\udcff.ebf")):
        seen.save(path)
        assert Filter.load(path) == seen and View.open(path).spec == seen.spec
    for wrong in (None, 3, 1.5, [], "\0"):
        with pytest.raises((TypeError, ValueError, OSError)):
            seen.save(wrong)
    assert len(list(tmp_path.iterdir())) == 3


def column(kind, offsets, data=b"hello"):
    kinds = {"string": (pa.string(), "i4"), "large": (pa.large_string(), "i8"), "binary": (pa.binary(), "i4")}
    arrow, width = kinds[kind]
    return pa.Array.from_buffers(arrow, len(offsets) - 1, [None, pa.py_buffer(np.array(offsets, width)), pa.py_buffer(data)])


@pytest.mark.parametrize("kind", ["string", "large", "binary"])
@pytest.mark.parametrize("offsets", [[0, -5, 3], [4, 2, 5], [-1, 0, 1], [0, 3, 1]], ids=repr)
def test_columns_whose_offsets_lie_are_refused(kind, offsets):
    seen = Filter("exact")
    for call in (seen.update, seen.add_many, seen.contains_many, seen.hashes):
        # Some are refused where the column is taken over, others by us.
        with pytest.raises(ValueError, match="damaged|Negative offsets"):
            call(column(kind, offsets))
    assert seen.arrivals == 0


def test_dictionaries_and_views_that_lie_are_refused():
    seen = Filter("exact")
    for index in ([0, 9], [0, -1]):
        with pytest.raises(ValueError, match="damaged"):
            seen.update(pa.DictionaryArray.from_arrays(pa.array(index, pa.int8()), pa.array(["a"]), safe=False))
    long = pa.array(["a text of more than twelve bytes"], pa.string_view())
    views = np.frombuffer(long.buffers()[1], "u4").copy()
    for place, wrong in ((2, 7), (2, 2**31), (3, 100), (3, 2**32 - 1), (0, 2**31)):
        lie = views.copy()
        lie[place] = wrong
        buffers = [None, pa.py_buffer(lie), *long.buffers()[2:]]
        with pytest.raises(ValueError, match="damaged"):
            seen.update(pa.Array.from_buffers(pa.string_view(), 1, buffers))
    assert seen.arrivals == 0 and seen.add_many(long).all()


def test_one_where_many_are_meant_says_what_to_write():
    seen = Filter("exact")
    for wrong in (5, 1.5, None, object(), np.array(3), np.int64(3)):
        with pytest.raises(TypeError, match=r"\[key\]"):
            seen.add_many(wrong)
    with pytest.raises(TypeError, match="Int64"):
        seen.add_many(pa.array([1.0, None]))


def test_a_filter_is_no_base_class():
    # A copy, a pickle or a union of one could not keep what was added to it.
    with pytest.raises(TypeError):
        type("Mine", (Filter,), {})


def test_single_keys_beside_batches_in_other_threads():
    # Single keys go without the filter's own lock when no batch is at work: all of them must be there in the end.
    seen, start = Filter("blocked", expect=2_000_000, fpr=1e-4), threading.Barrier(6)

    def one_by_one(first):
        start.wait()
        for key in range(first, first + 50_000):
            seen.add(key)
            assert key in seen

    def by_the_batch(first):
        start.wait()
        for part in range(first, first + 500_000, 25_000):
            seen.update(np.arange(part, part + 25_000))
            seen.contains_many(np.arange(part, part + 1000))
            seen.update(seen.copy())

    one = [threading.Thread(target=one_by_one, args=(10_000_000 * number,)) for number in range(3)]
    many = [threading.Thread(target=by_the_batch, args=(10_000_000 * number,)) for number in range(3, 6)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in one + many:
            thread.start()
        for thread in one + many:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    for number in range(6):
        length = 50_000 if number < 3 else 500_000
        assert seen.contains_many(np.arange(10_000_000 * number, 10_000_000 * number + length)).all()


def test_nothing_is_kept_alive():
    gc.collect()
    seen = Filter("bloom", expect=100)
    before = sys.getrefcount(seen)
    for _ in range(10):
        seen.add_many(["a"])
        seen.contains_many(np.arange(3))
        "a" in seen  # noqa: B015
    assert sys.getrefcount(seen) == before
