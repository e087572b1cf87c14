"""The classes of other packages over our filters: their habits, and that nothing is lost or crashes."""

from __future__ import annotations

import gc
import io
import math
import pickle
import weakref
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

import everbloom
from everbloom.compat import abloom, pybloom_live, rbloom


def stable(obj) -> int:
    return int.from_bytes(sha256(pickle.dumps(obj)).digest()[:16], "big") - 2**127


def too_many(found: int, asked: int, rate: float) -> bool:
    """More false positives than four standard deviations above what the rate allows."""
    return found > asked * rate + 4 * math.sqrt(asked * rate * (1 - rate))


# Whatever Python hashes, equal objects being equal keys.
objects = st.one_of(st.text(), st.binary(), st.integers(), st.floats(allow_nan=False), st.none(), st.tuples(st.integers(), st.text()))
texts = st.text(st.characters(exclude_categories=["Cs"]))
MAKERS = {
    "rbloom": lambda: rbloom.Bloom(1000, 1e-6),
    "rbloom stable": lambda: rbloom.Bloom(1000, 1e-6, stable),
    "abloom": lambda: abloom.BloomFilter(1000, 1e-6),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@given(items=st.lists(objects), others=st.lists(objects))
def test_what_was_added_is_found(make, items, others):
    one, other, both = make(), make(), make()
    for item in items:
        one.add(item)
    other.update(iter(others))
    both.update(items)
    both.update(others)
    assert all(item in one for item in items)
    assert one | other == both
    assert bool(one) == bool(items)
    one |= other
    assert one == both


@given(items=st.lists(st.one_of(texts, st.binary(), st.integers(), st.floats(allow_nan=False))))
def test_bytes_keep_what_was_added(items):
    bloom = abloom.BloomFilter(1000, 1e-6, serializable=True)
    bloom.update(items)
    for again in (abloom.BloomFilter.from_bytes(bloom.to_bytes()), pickle.loads(pickle.dumps(bloom)), bloom.copy()):
        assert again == bloom and all(item in again for item in items)


@pytest.mark.parametrize("cls", [pybloom_live.BloomFilter, pybloom_live.ScalableBloomFilter])
@given(items=st.lists(st.one_of(texts, st.integers(), st.binary()), max_size=300))
def test_pybloom_counts_what_is_new_and_keeps_it(cls, items):
    bloom, seen = cls(1000, 1e-9), set()
    for item in items:
        key = item if isinstance(item, str) else str(item)
        assert bloom.add(item) == (key in seen)
        seen.add(key)
    assert len(bloom) == bloom.count == len(seen)
    file = io.BytesIO()
    bloom.tofile(file)
    file.seek(0)
    for again in (cls.fromfile(file), pickle.loads(pickle.dumps(bloom)), bloom.union(cls(1000, 1e-9))):
        assert all(item in again for item in items)


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.01, 0.001])
@pytest.mark.parametrize(
    "make",
    [rbloom.Bloom, pybloom_live.BloomFilter, pybloom_live.ScalableBloomFilter, abloom.BloomFilter],
    ids=["rbloom", "pybloom_live", "scalable", "abloom"],
)
def test_the_rate_is_kept(make, rate):
    items = 5000
    bloom = make(items, rate)
    for item in range(items):
        bloom.add(f"in {item}")
    asked = 20_000
    found = sum(f"out {item}" in bloom for item in range(asked))
    # The bits that rbloom takes are a little too few for what was asked for, since the best number of hashes is not a
    # whole one. The other three round up.
    allowed = rbloom_rate(items, rate) if make is rbloom.Bloom else rate
    assert not too_many(found, asked, allowed)


def rbloom_rate(items: int, rate: float) -> float:
    """The exact rate of a classic filter with the bits and hashes that the class took."""
    parameters = rbloom.Bloom(items, rate)._cells.parameters
    bits, hashes = parameters["num_bits"], parameters["num_hashes"]
    return (-math.expm1(hashes * items * math.log1p(-1 / bits))) ** hashes


class TestRbloom:
    def test_sizes_are_those_of_rbloom(self):
        assert repr(rbloom.Bloom(27_000, 0.0317)) == "<Bloom size_in_bits=193960 approx_items=0.0>"

    def test_a_circle_with_its_hash_function_is_collected(self):
        def function(obj):
            return stable(obj)

        watched = weakref.ref(function)
        function.bloom = rbloom.Bloom(1000, 0.1, hash_func=function)
        del function
        gc.collect()
        assert watched() is None

    def test_sets_and_iterables(self):
        bloom = rbloom.Bloom(1000, 1e-6)
        bloom.update("ab", ["cd"], iter(["ef"]))
        assert "a" in bloom and "cd" in bloom and "ef" in bloom
        assert bloom.issuperset(["a", "cd"]) and not bloom.issuperset(["a", "z"])
        assert bloom.issubset(["a", "b", "cd", "ef", "more"]) and not bloom.issubset(["a"])
        assert "cd" not in bloom.intersection("ab") and "cd" in bloom
        assert "new" in bloom.union(["new"]) and "new" not in bloom
        # Two keys may share a bit, so that of another key's bits a few may stay: no key does, but the filter need not be empty.
        bloom.intersection_update(["nothing of it"])
        assert "a" not in bloom and "cd" not in bloom and bloom.approx_items < 1
        bloom.intersection_update([])
        assert not bloom

    def test_what_does_not_belong_together(self):
        bloom = rbloom.Bloom(1000, 0.01)
        with pytest.raises(ValueError, match="size"):
            bloom == rbloom.Bloom(2000, 0.01)
        with pytest.raises(ValueError, match="hash function"):
            bloom |= rbloom.Bloom(1000, 0.01, stable)
        with pytest.raises(TypeError):
            bloom | {"a"}
        with pytest.raises(TypeError):
            bloom.add([])
        assert bloom != "a"

    @pytest.mark.parametrize("wrong", [(0, 0.1), (10, 0), (10, 1), (-1, 0.1), (10, float("nan"))])
    def test_wrong_numbers(self, wrong):
        with pytest.raises((ValueError, OverflowError)):
            rbloom.Bloom(*wrong)

    def test_the_builtin_hash_is_not_saved(self, tmp_path):
        bloom = rbloom.Bloom(1000, 0.01)
        for save in (bloom.save_bytes, lambda: bloom.save(tmp_path / "file")):
            with pytest.raises(ValueError, match="built-in hash"):
                save()
        with pytest.raises(ValueError, match="built-in hash"):
            rbloom.Bloom.load_bytes(b"", hash)
        with pytest.raises(TypeError):
            rbloom.Bloom(10, 0.1, hash_func=3)

    def test_a_hash_that_is_too_large(self):
        with pytest.raises(OverflowError):
            rbloom.Bloom(10, 0.1, hash_func=lambda _: 2**127).add("a")
        with pytest.raises(TypeError):
            rbloom.Bloom(10, 0.1, hash_func=lambda _: "text").add("a")

    def test_files(self, tmp_path):
        bloom = rbloom.Bloom(1000, 0.01, stable)
        bloom.update(range(100))
        for path in (tmp_path / "one", str(tmp_path / "two"), bytes(tmp_path / "three")):
            bloom.save(path)
            assert rbloom.Bloom.load(path, stable) == bloom
        whole = bloom.save_bytes()
        for end in range(len(whole)):
            with pytest.raises(everbloom.Error):
                rbloom.Bloom.load_bytes(whole[:end], stable)


class TestPybloom:
    def test_add_says_whether_the_key_was_there(self):
        bloom = pybloom_live.BloomFilter(100, 0.001)
        assert bloom.add("a") is False and bloom.add("a") is True
        assert bloom.add("a", skip_check=True) is False and len(bloom) == 2

    def test_a_full_filter_refuses(self):
        bloom = pybloom_live.BloomFilter(10, 0.001)
        with pytest.raises(IndexError):
            for number in range(100):
                bloom.add(number)
        assert bloom.count == 11

    def test_any_object_is_its_text(self):
        bloom = pybloom_live.BloomFilter(10, 0.001)
        bloom.add(1.5)
        assert "1.5" in bloom and 1.5 in bloom

    def test_a_scalable_one_grows(self):
        bloom = pybloom_live.ScalableBloomFilter(mode=pybloom_live.ScalableBloomFilter.SMALL_SET_GROWTH)
        assert bloom.capacity == 0
        for number in range(10_000):
            bloom.add(number)
        assert bloom.capacity >= len(bloom) and all(number in bloom for number in range(10_000))

    @pytest.mark.parametrize("cls", [pybloom_live.BloomFilter, pybloom_live.ScalableBloomFilter])
    def test_a_union_has_the_keys_of_both(self, cls):
        one, other = cls(1000, 1e-6), cls(1000, 1e-6)
        for number in range(300):
            one.add(f"one {number}")
            other.add(f"other {number}")
        for both in (one | other, other | one):
            assert all(f"one {number}" in both and f"other {number}" in both for number in range(300))
            assert both.add("other 7") and both.add("one 7") and not both.add("new")
        assert "other 7" not in one and "new" not in one

    @pytest.mark.parametrize("cls", [pybloom_live.BloomFilter, pybloom_live.ScalableBloomFilter])
    def test_files_cut_anywhere(self, cls):
        bloom = cls(10, 0.01)
        bloom.add("a")
        file = io.BytesIO()
        bloom.tofile(file)
        whole = file.getvalue()
        for end in range(len(whole)):
            with pytest.raises(ValueError):
                cls.fromfile(io.BytesIO(whole[:end]))
        with pytest.raises(ValueError, match="everbloom did not write"):
            cls.fromfile(io.BytesIO(b"\x01" + bytes(200)))

    def test_several_in_one_file(self):
        file = io.BytesIO()
        for key in "ab":
            bloom = pybloom_live.BloomFilter(10, 0.001)
            bloom.add(key)
            bloom.tofile(file)
        file.seek(0)
        assert "a" in pybloom_live.BloomFilter.fromfile(file) and "b" in pybloom_live.BloomFilter.fromfile(file)

    @pytest.mark.parametrize("wrong", [(0,), (-1,), (10, 0), (10, 1)])
    def test_wrong_numbers(self, wrong):
        with pytest.raises(ValueError):
            pybloom_live.BloomFilter(*wrong)


class TestAbloom:
    def test_equal_numbers_are_one_item(self):
        bloom = abloom.BloomFilter(1000, 0.001, serializable=True)
        assert bloom.add(1) and not bloom.add(1.0) and not bloom.add(True)
        assert bloom.add(2**200) and 2**200 in bloom
        with pytest.raises(TypeError):
            bloom.add((1, 2))

    def test_only_a_serializable_one_has_bytes(self):
        with pytest.raises(ValueError, match="serializable"):
            abloom.BloomFilter(10).to_bytes()
        with pytest.raises(ValueError, match="serializable"):
            pickle.dumps(abloom.BloomFilter(10))

    def test_bytes_cut_anywhere(self):
        whole = abloom.BloomFilter(10, serializable=True).to_bytes()
        for end in range(len(whole)):
            with pytest.raises(ValueError):
                abloom.BloomFilter.from_bytes(whole[:end])
        for at in range(len(whole)):
            with pytest.raises(ValueError):
                abloom.BloomFilter.from_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(TypeError):
            abloom.BloomFilter.from_bytes("text")
        with pytest.raises(ValueError):
            abloom.BloomFilter.from_bytes(b"ABLO" + bytes(100))

    def test_attributes_cannot_be_set(self):
        bloom = abloom.BloomFilter(1000)
        assert (bloom.capacity, bloom.fp_rate, bloom.k, bloom.serializable, bloom.free_threading) == (1000, 0.01, 8, False, False)
        assert bloom.bit_count == 8 * bloom.byte_count and bloom.byte_count % 64 == 0
        for name in ("capacity", "fp_rate", "k", "byte_count", "bit_count", "serializable"):
            with pytest.raises(AttributeError):
                setattr(bloom, name, 1)

    def test_what_does_not_belong_together(self):
        with pytest.raises(ValueError):
            abloom.BloomFilter(10) | abloom.BloomFilter(20)
        with pytest.raises(TypeError):
            abloom.BloomFilter(10) | {1}

    @pytest.mark.parametrize("wrong", [(0,), (-1,), (10, 0.0), (10, 1.0)])
    def test_wrong_numbers(self, wrong):
        with pytest.raises(ValueError):
            abloom.BloomFilter(*wrong)


def test_files_of_scalable_filters_are_checked_to_the_byte():
    one, other = (pybloom_live.ScalableBloomFilter(10, 0.01) for _ in range(2))
    one.add("a")
    other.add("b")
    file = io.BytesIO()
    one.union(other).tofile(file)
    whole = file.getvalue()
    read = pybloom_live.ScalableBloomFilter.fromfile(io.BytesIO(whole))
    assert "a" in read and "b" in read and len(read) == 2
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        with pytest.raises(ValueError):
            pybloom_live.ScalableBloomFilter.fromfile(io.BytesIO(damaged))
        with pytest.raises(ValueError):
            pybloom_live.ScalableBloomFilter.fromfile(io.BytesIO(whole[:at]))


def test_rblooms_class_reads_its_own_kind_only():
    with pytest.raises(ValueError, match="another kind"):
        rbloom.Bloom.load_bytes(everbloom.Filter(memory="1KiB").to_bytes(), lambda key: key)
