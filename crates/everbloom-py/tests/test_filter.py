"""A filter as a set: keys, verdicts, batches against one by one, set operators, errors."""

import array
import copy
import datetime
import gc
import threading
import uuid
import weakref

import everbloom
import numpy as np
import pyarrow as pa
import pytest
from everbloom import Filter
from hypothesis import given
from hypothesis import strategies as st

KINDS = sorted(everbloom.kinds())
# Kinds that need nothing but a size; a scheme is needed for the others.
PLAIN = [kind for kind in KINDS if kind not in ("popularity",)]

keys = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.binary(max_size=20),
    st.uuids(),
    st.tuples(st.integers(0, 9), st.text("ab", max_size=3)),
)


def as_bytes(key):
    """What a key is: the twin of the rules in `keys.rs`."""
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, bytes):
        return key
    if isinstance(key, uuid.UUID):
        return key.bytes
    if isinstance(key, tuple):
        return b"".join(len(part).to_bytes(8, "little") + part for part in map(as_bytes, key))
    return (key % 2**64).to_bytes(8, "little")


@given(st.lists(keys, max_size=200))
def test_it_is_a_set_of_the_bytes_of_its_keys(arrivals):
    seen, exact = Filter("exact"), set()
    for key in arrivals:
        assert seen.add(key) == (as_bytes(key) not in exact)
        exact.add(as_bytes(key))
    assert all(key in seen and as_bytes(key) in seen for key in arrivals)


@pytest.mark.parametrize("spec", PLAIN)
@given(st.lists(st.one_of(st.integers(0, 50), st.text("ab", max_size=4)), max_size=120))
def test_a_batch_is_judged_as_its_keys_are_one_by_one(spec, arrivals):
    goal = {"expect": 40} if everbloom.kinds()[spec].never_forgets else {"memory": "1KiB"}
    one, many, lazy = (Filter(spec, fpr=0.05, **goal) for _ in range(3))
    verdicts = [one.add(key) for key in arrivals]
    assert many.add_many(arrivals).tolist() == verdicts
    assert one.to_bytes() == many.to_bytes()
    assert one.contains_many(arrivals).tolist() == [key in one for key in arrivals]
    kept = [key for key, new in zip(arrivals, verdicts) if new]
    assert list(lazy.unseen(arrivals)) == kept


@pytest.mark.parametrize("chunks", [0, 1, 100, 65_535, 65_536, 65_537, 140_000])
def test_every_sort_of_column_is_the_same_keys(chunks):
    numbers = np.random.default_rng(3).integers(0, 30_000, chunks)
    columns = [
        numbers,
        numbers.astype("u8"),
        numbers.astype("i4"),
        numbers.astype(">i8"),
        np.repeat(numbers, 2)[::2],
        numbers.tolist(),
        tuple(numbers.tolist()),
        (int(number) for number in numbers),
        array.array("q", numbers.tolist()),
        memoryview(numbers),
        pa.array(numbers),
        pa.chunked_array([numbers[:100], numbers[100:]], type=pa.int64()),
        pa.array(numbers.tolist(), pa.int32()),
        numbers.astype(object),
    ]
    wanted = Filter("exact").add_many(numbers.tolist())
    assert wanted.dtype == np.bool_ and len(wanted) == chunks
    for column in columns:
        seen = Filter("exact")
        assert np.array_equal(seen.add_many(column), wanted)
    texts = [f"é{number}" for number in numbers]
    wanted = Filter("exact").add_many(texts)
    for column in [
        np.array(texts),
        np.array([text.encode() for text in texts]),
        pa.array(texts, pa.string()),
        pa.array(texts, pa.large_string()),
        pa.array(texts, pa.string_view()),
        pa.array([text.encode() for text in texts], pa.binary()),
        pa.array(texts, pa.string()).dictionary_encode(),
    ]:
        seen = Filter("exact")
        assert np.array_equal(seen.add_many(column), wanted), type(column)
        assert seen.contains_many(column).all()


def test_narrow_integers_are_the_same_keys():
    seen = Filter("exact")
    seen.update([1, 2, 255, -1])
    for kind in ("i1", "i2", "i4", "i8"):
        assert seen.contains_many(np.array([1, 2, -1], kind)).all()
    assert seen.contains_many(np.array([1, 2, 255], "u1")).all()
    assert seen.contains_many(np.array([True])).all()
    assert seen.contains_many(pa.array([True, None])).tolist() == [True, False]


def test_nulls_are_new_and_not_remembered():
    seen = Filter("exact")
    for column in (pa.array(["a", None, "a", None]), pa.array([7, None, 7, None]), pa.array(["b", None, "b", None]).dictionary_encode()):
        assert seen.add_many(column).tolist() == [True, True, False, True]
        assert seen.contains_many(column).tolist() == [True, False, True, False]
        assert seen.contains_many(seen.hashes(column)).tolist() == [True, False, True, False]
    assert seen.status().arrivals == 6
    assert seen.add_many(pa.nulls(3)).all() and seen.arrivals == 6


@pytest.mark.parametrize(
    "wrong",
    [1.5, None, [], {}, {1}, object(), 2**64, -(2**63) - 1, "\ud800", ("a", None), 1j, range(3), np.float64(1)],
    ids=repr,
)
def test_what_is_no_key_is_refused_and_says_what_to_write(wrong):
    seen = Filter("bloom", expect=100)
    for call in (seen.add, seen.__contains__):
        with pytest.raises(TypeError, match="[;:] |surrogates|below 2"):
            call(wrong)
    with pytest.raises(TypeError, match="^key 2: "):
        seen.update(["a", "b", wrong, "c"])
    assert "b" in seen and "c" not in seen


@pytest.mark.parametrize(
    "wrong",
    ["text", b"bytes", bytearray(3), memoryview(b"abc"), np.zeros(3), np.zeros((2, 2), int), np.array(1), 7, None,
     pa.array([1.5]), pa.table({"a": [1]}), np.array(["2020-01-01"], "M8[D]"), memoryview(np.zeros((2, 2)))],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_batch_is_refused(wrong):
    seen = Filter("bloom", expect=100)
    for call in (seen.update, seen.add_many, seen.contains_many, seen.hashes):
        with pytest.raises(TypeError):
            call(wrong)
    assert seen.arrivals == 0


def test_a_generator_that_raises_half_way_leaves_what_came_before():
    def broken():
        yield from range(70_000)
        raise LookupError("mine")

    seen = Filter("exact")
    with pytest.raises(LookupError, match="mine") as caught:
        seen.update(broken())
    assert any("key 70000" in note for note in caught.value.__notes__)
    assert seen.arrivals == 70_000
    out = np.zeros(3, bool)
    with pytest.raises(TypeError, match="key 1"):
        seen.add_many(["new", None, "x"], out=out)
    assert out.tolist() == [True, False, False]


class Liar:
    """Says another length than it has."""

    def __init__(self, length, items):
        self.length, self.items = length, items

    def __len__(self):
        return self.length

    def __iter__(self):
        return iter(self.items)


@pytest.mark.parametrize("length", [0, 1, 2**62])
def test_lengths_that_lie_do_no_harm(length):
    seen = Filter("exact")
    assert seen.add_many(Liar(length, "abca")).tolist() == [True, True, True, False]
    with pytest.raises(ValueError):
        seen.add_many(Liar(length, "abcd"), importance=[1.0] * 3)


class Capsule:
    def __init__(self, answer):
        self.answer = answer

    def __arrow_c_array__(self, requested_schema=None):
        return self.answer


@pytest.mark.parametrize("answer", [None, (), (1, 2), ("a", "b"), pa.array([1]).__arrow_c_array__()[::-1]], ids=repr)
def test_capsules_that_lie_are_refused(answer):
    with pytest.raises(Exception) as caught:
        Filter("exact").update(Capsule(answer))
    assert isinstance(caught.value, Exception)


def test_out_takes_the_verdicts():
    seen, out = Filter("exact"), np.zeros(3, bool)
    assert seen.add_many(["a", "b", "a"], out=out) is out and out.tolist() == [True, True, False]
    assert seen.contains_many(["z", "b", "a"], out=out).tolist() == [False, True, True]
    for wrong in (np.zeros(2, bool), np.zeros(3, int), np.zeros((3, 1), bool), [False] * 3):
        with pytest.raises((TypeError, ValueError)):
            seen.add_many(["x", "y", "z"], out=wrong)
    out.flags.writeable = False
    with pytest.raises(ValueError):
        seen.contains_many(["x", "y", "z"], out=out)
    assert "x" not in seen
    strided = np.zeros(6, bool)
    seen.contains_many(["a", "x", "b"], out=strided[::2])
    assert strided.tolist() == [True, False, False, False, True, False]


def test_sets():
    one, other = Filter("bloom", expect=1000), Filter("bloom", expect=1000)
    assert one == other and not one and one <= other and not one < other
    one.update(range(0, 300))
    other.update(range(200, 500))
    both, shared = one | other, one & other
    assert all(key in both for key in range(500)) and all(key in shared for key in range(200, 300))
    assert one.issubset(both) and both.issuperset(other) and one < both and both > one and not both <= one
    assert both == one.union(other) and shared == one.intersection(other) and one != other
    kept = one
    one |= other
    assert one is kept and one == both
    one &= other
    assert one == other.intersection(both)
    one.intersection_update(shared)
    one |= one
    assert one == shared.copy()
    one.update(other, ["more"])
    assert "more" in one and other < one
    with pytest.raises(TypeError):
        one | {1}
    with pytest.raises(TypeError):
        one < 3
    assert one != 3
    with pytest.raises(everbloom.MismatchError) as caught:
        one | Filter("bloom", expect=1000, seed=1)
    assert caught.value.remedy and caught.value.what == "how they hash"
    with pytest.raises(everbloom.UnsupportedError):
        stable = Filter("stable", memory="1KiB", fpr=0.01)
        stable |= Filter("stable", memory="1KiB", fpr=0.01)
    with pytest.raises(TypeError):
        hash(one)


@pytest.mark.parametrize("spec", ["bloom", "blocked", "exact"])
@given(st.sets(st.integers(0, 300)), st.sets(st.integers(0, 300)))
def test_subsets_are_what_sets_say(spec, some, others):
    one, other = Filter(spec, expect=2000, fpr=1e-6), Filter(spec, expect=2000, fpr=1e-6)
    one.update(sorted(some))
    other.update(sorted(others, reverse=True))
    if some <= others:
        assert one <= other and one.issubset(other) and other >= one
    if others - some:
        # Cells of 300 keys cover a key at a rate of 1e-6 or less: none is covered by these.
        assert not other <= one and other != one
    assert (one == other) == (some == others)


def test_removing_and_counting():
    counting = Filter("counting", expect=1000)
    counting.update(["a", "b"])
    counting.remove("a")
    assert "a" not in counting and counting.discard("b") and not counting.discard("b")
    with pytest.raises(KeyError):
        counting.remove("b")
    counting.update("abc"[i] for i in range(3))
    assert counting.remove_many(["a", "z", "c"]).tolist() == [True, False, True]
    spectral = Filter("spectral", expect=1000)
    spectral.update(["a"] * 5 + ["b"])
    assert spectral.count("a") == 5 and spectral.count_many(["b", "a", "z"]).tolist() == [1, 5, 0]
    assert spectral.count_many(["b"]).dtype == np.uint64
    for call in (lambda: Filter("bloom", expect=9).remove("a"), lambda: Filter("bloom", expect=9).count("a")):
        with pytest.raises(everbloom.UnsupportedError, match="these can: ") as caught:
            call()
        assert isinstance(caught.value, TypeError) and caught.value.kind == "bloom"


def test_windows_of_arrivals_and_of_time():
    recent = Filter(window=1000, fpr=0.01)
    recent.update(range(5000))
    assert recent.contains_many(range(4000, 5000)).all() and 17 not in recent
    assert recent.window.planned_arrivals == 1000 and recent.window.seconds is None
    hour = Filter(window="1h", expect="10k", fpr="0.1%")
    assert hour.add("x", at=0) and not hour.add("x", at=3500.0) and hour.add("x", at=20_000)
    assert hour.add("y", at=datetime.datetime.fromtimestamp(20_001)) and not hour.add("y", at=np.datetime64(20_002, "s"))
    assert hour.add("z", at=19_000) and hour.window.late == 1 and hour.window.seconds == 3600
    copied = Filter.from_bytes(hour.to_bytes())
    assert copied.window.late == 1 and not copied.add("z", at=20_100) and copied.add("z", at=40_000)
    assert not hour.add("z", at=20_100), "the copy has a clock of its own"
    many = Filter(window=datetime.timedelta(hours=1), expect=1000)
    times = np.array([0, 10, 3000, 90_000], "M8[s]")
    assert many.add_many(["a", "a", "a", "a"], at=times).tolist() == [True, False, False, True]
    assert many.add_many(["a", "b"], at=90_010).tolist() == [False, True]
    now = Filter(window="24h", memory="64KiB")
    assert now.add("a") and not now.add("a") and now.add_many(["a", "b"]).tolist() == [False, True]
    now.clear()
    assert now.add("a", at=5)
    for wrong in (float("nan"), float("inf"), "noon", 1e300, None and 0, [1]):
        with pytest.raises((ValueError, TypeError)):
            if wrong is None:
                raise ValueError
            now.add("a", at=wrong)
    with pytest.raises(everbloom.ParameterError, match="no window of time"):
        recent.add("a", at=1.0)
    with pytest.raises(everbloom.ParameterError, match="2 values"):
        many.add_many(["a", "b", "c"], at=[1, 2])
    recent.advance(3)
    with pytest.raises(everbloom.UnsupportedError):
        Filter("bloom", expect=9).advance()


def test_importances():
    seen = Filter("ranked", memory="4KiB", fpr=0.01, importance=10)
    assert seen.importance_max == 10
    important = np.arange(50_000) % 2 == 0
    seen.add_many(np.arange(50_000), importance=np.where(important, 10, 0))
    late = np.arange(40_000, 50_000)
    found = seen.contains_many(late)
    assert found[important[late]].mean() > 2 * found[~important[late]].mean()
    again = Filter.from_bytes(seen.to_bytes())
    assert again.importance_max == 10 and again.add("k", importance=7.5)
    for wrong in (11, -1, float("nan")):
        with pytest.raises(everbloom.ParameterError):
            seen.add("k2", importance=wrong)
    with pytest.raises(everbloom.ParameterError):
        seen.add_many(["a", "b"], importance=[1, 11])
    with pytest.raises(everbloom.ParameterError):
        seen.add_many(["a", "b"], importance=[1])
    assert "a" not in seen
    sampled = Filter(memory="64KiB", importance=[1, 2, 3])
    assert sampled.importance_max == 3


def test_hashes_are_asked_of_many_filters():
    days = [Filter("bloom", expect=1000, seed=5) for _ in range(3)]
    hashes = days[0].hashes(np.arange(100))
    days[1].update(hashes)
    assert len(hashes) == 100 and [bool(day.contains_many(hashes).all()) for day in days] == [False, True, False]
    with pytest.raises(everbloom.MismatchError):
        Filter("bloom", expect=1000).update(hashes)


@pytest.mark.parametrize("spec", [spec for spec in PLAIN if spec != "stacked"])
def test_arrivals_are_known_at_once(spec):
    kind = everbloom.kinds()[spec]
    goal = {"expect": 2000} if kind.never_forgets else {"memory": "16KiB"}
    for shards in ["", ":shards=4"] if "be split into shards" in kind.abilities else [""]:
        seen = Filter(spec + shards, fpr=0.05, **goal)
        seen.update(range(300), range(300))
        assert seen.arrivals == seen.status().arrivals > 0 and seen
        seen.clear()
        assert seen.arrivals == 0 and not seen


def test_parts_of_a_filter():
    seen = Filter("bloom", expect=1000, fpr=0.01, seed=3)
    assert seen.spec == f"bloom:num_bits={seen.parameters['num_bits']},num_hashes={seen.parameters['num_hashes']}"
    assert seen.kind == "bloom" and seen.seed == 3 and seen.never_forgets and seen.memory_bits >= 9585
    assert seen.promise.until_items == 1000 and seen.promise.fpr <= 0.01 and not seen.promise.always
    seen.update(range(1000))
    status = seen.status()
    assert status.arrivals == seen.arrivals == 1000 and 0.4 < status.fill < 0.6 and status.promise == "kept"
    assert abs(status.estimated_items - 1000) < 100
    seen.update(range(5000))
    assert seen.status().promise == "broken" and "bloom" in repr(seen)
    twin = copy.deepcopy(seen)
    seen.clear()
    assert not seen and twin and copy.copy(twin) == twin and twin.__sizeof__() > 1000
    held = weakref.ref(seen)
    del seen
    gc.collect()
    assert held() is None


@pytest.mark.parametrize(
    ("goal", "error", "words"),
    [
        ({"spec": "blom", "expect": 9}, everbloom.SpecError, "bloom"),
        ({"spec": "bloom:num_bit=3"}, everbloom.SpecError, "num_bits"),
        ({"memory": "64 apples"}, everbloom.ParameterError, "64 apples"),
        ({"memory": 0}, everbloom.ParameterError, "memory"),
        ({"memory": 2**80}, everbloom.ParameterError, "memory"),
        ({"memory": "1MiB", "fpr": 2}, everbloom.ParameterError, "fpr is"),
        ({"memory": "1MiB", "fnr": 2}, everbloom.ParameterError, "fnr is"),
        ({"expect": 0}, everbloom.ParameterError, "expect is"),
        ({"expect": 0.5}, everbloom.ParameterError, "expect is"),
        ({}, everbloom.ParameterError, "expect"),
        ({"memory": "1KiB", "secret": b"short"}, everbloom.ParameterError, "16 bytes"),
        ({"memory": "1KiB", "seed": -1}, everbloom.ParameterError, "seed is"),
        ({"window": "5M", "memory": "1MiB"}, everbloom.ParameterError, "arrivals"),
        ({"window": datetime.timedelta(0), "memory": "1MiB"}, everbloom.ParameterError, "window"),
        ({"spec": "bloom", "expect": 1e9, "memory": "1KiB", "fpr": 0.01}, everbloom.InfeasibleError, "1KiB"),
        ({"memory": 1.5}, TypeError, "64MiB"),
        ({"memory": True}, TypeError, "64MiB"),
        ({"memroy": "1MiB"}, TypeError, "memory"),
        ({"memory": "1MiB", "stream": "zipf:1"}, everbloom.ParameterError, "expect"),
        ({"memory": "1MiB", "expect": 1000, "stream": "zip"}, everbloom.ParameterError, "zipf"),
        ({"memory": "1MiB", "stream": range(100)}, everbloom.InfeasibleError, "repeats"),
        ({"memory": "1PiB"}, (MemoryError, everbloom.Error), "PiB"),
    ],
    ids=repr,
)
def test_errors_say_what_would_work(goal, error, words):
    with pytest.raises(error, match=words) as caught:
        Filter(**goal)
    if isinstance(caught.value, everbloom.Error):
        assert caught.value.remedy and caught.value.remedy in str(caught.value)
        assert "expected_items" not in str(caught.value) and "target_" not in str(caught.value)


def test_secrets():
    secret = bytes(range(16))
    seen = Filter("bloom", expect=100, secret=secret)
    seen.add("a")
    assert seen.seed is None and "a" in Filter.from_bytes(seen.to_bytes(), secret=secret)
    for wrong in (None, bytes(16)):
        with pytest.raises(everbloom.SecretKeyError, match="secret="):
            Filter.from_bytes(seen.to_bytes(), secret=wrong)


def test_sixteen_threads_add_at_once():
    seen, other = Filter("exact"), Filter("exact")
    new = [0] * 16

    def work(number):
        block = np.arange(40_000) + number * 20_000
        for start in range(0, 40_000, 1000):
            new[number] += int(seen.add_many(block[start : start + 1000]).sum())
        new[number] += sum(seen.add(("t", key)) for key in range(500))
        list(seen.unseen(range(0, 1000, 7)))
        (seen if number % 2 else other).update(other if number % 2 else seen)
        seen.status(), seen.copy(), seen.to_bytes(), seen == other

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert seen.contains_many(np.arange(340_000)).all() and all(("t", key) in seen for key in range(500))
    assert seen.status().estimated_items == 340_500
    # Each key was called new once, by whichever thread came first, but for those that a merge brought.
    assert sum(new) <= 340_500
