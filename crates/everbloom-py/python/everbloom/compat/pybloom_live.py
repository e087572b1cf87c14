"""``pybloom_live.BloomFilter`` and ``ScalableBloomFilter`` over filters of everbloom.

>>> from everbloom.compat.pybloom_live import BloomFilter, ScalableBloomFilter
>>> bloom = BloomFilter(capacity=1000, error_rate=0.001)
>>> bloom.add("hello"), bloom.add("hello")
(False, True)
>>> "hello" in bloom, len(bloom)
(True, 1)

As in pybloom_live, ``add`` is True if the key was there before, and a key that is no ``str`` is its ``str()``.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any, BinaryIO
from zlib import crc32

from .._everbloom import Filter
from ._framed import HEADER_BYTES, framed, length_of, unframed

__all__ = ["BloomFilter", "ScalableBloomFilter"]

# A name, the scale, the count and the number of parts of a scalable filter, and their checksum.
_NUMBERS, _CHECK = Struct("<8sQQQ"), Struct("<I")


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(key)


class BloomFilter:
    """A Bloom filter of a known capacity."""

    _NAME = b"EBcBloom"

    def __init__(self, capacity: int, error_rate: float = 0.001) -> None:
        if not 0 < error_rate < 1:
            raise ValueError("Error_Rate must be between 0 and 1.")
        if not capacity > 0:
            raise ValueError("Capacity must be > 0")
        self._set(capacity, error_rate, 0, Filter("bloom", expect=capacity, fpr=error_rate))

    def _set(self, capacity: int, error_rate: float, count: int, cells: Filter) -> None:
        self.capacity, self.error_rate, self.count, self._cells = capacity, error_rate, count, cells

    @property
    def num_bits(self) -> int:
        return int(self._cells.parameters["num_bits"])

    @property
    def num_slices(self) -> int:
        return int(self._cells.parameters["num_hashes"])

    @property
    def bits_per_slice(self) -> int:
        return self.num_bits // self.num_slices

    def __contains__(self, key: Any) -> bool:
        return _key(key) in self._cells

    def __len__(self) -> int:
        """The number of keys that were added."""
        return self.count

    def add(self, key: Any, skip_check: bool = False) -> bool:
        """Adds a key; True if it was there already."""
        if self.count > self.capacity:
            raise IndexError("BloomFilter is at capacity")
        new = self._cells.add(_key(key))
        if not new and not skip_check:
            return True
        self.count += 1
        return False

    def copy(self) -> BloomFilter:
        return self._like(self._cells.copy(), self.count)

    def _like(self, cells: Filter, count: int) -> BloomFilter:
        other = BloomFilter.__new__(BloomFilter)
        other._set(self.capacity, self.error_rate, count, cells)
        return other

    def union(self, other: BloomFilter) -> BloomFilter:
        self._check(other, "Unioning filters requires both filters to have both the same capacity and error rate")
        return self._counted(self._cells | other._cells)

    def intersection(self, other: BloomFilter) -> BloomFilter:
        self._check(other, "Intersecting filters requires both filters to have equal capacity and error rate")
        return self._counted(self._cells & other._cells)

    def __or__(self, other: BloomFilter) -> BloomFilter:
        return self.union(other)

    def __and__(self, other: BloomFilter) -> BloomFilter:
        return self.intersection(other)

    def _check(self, other: BloomFilter, message: str) -> None:
        if self.capacity != other.capacity or self.error_rate != other.error_rate:
            raise ValueError(message)

    def _counted(self, cells: Filter) -> BloomFilter:
        # Nobody counted the keys of both: the cells tell how many there are.
        return self._like(cells, min(round(cells.status().estimated_items or 0), self.capacity))

    def tofile(self, f: BinaryIO) -> None:
        f.write(framed(self._NAME, self.capacity, self.error_rate, self.count, self._cells))

    @classmethod
    def fromfile(cls, f: BinaryIO, n: int = -1) -> BloomFilter:
        """Reads a filter that tofile wrote; if n > 0, so many bytes and no more."""
        if 0 < n < HEADER_BYTES:
            raise ValueError("n too small!")
        header = f.read(HEADER_BYTES)
        length = n - HEADER_BYTES if n > 0 else length_of(cls._NAME, header)
        read = cls.__new__(cls)
        read._set(*unframed(cls._NAME, header + f.read(length)))
        return read


class ScalableBloomFilter:
    """A filter that grows as keys come and keeps its rate."""

    SMALL_SET_GROWTH = 2
    LARGE_SET_GROWTH = 4

    _NAME = b"EBcScala"

    def __init__(self, initial_capacity: int = 100, error_rate: float = 0.001, mode: int = LARGE_SET_GROWTH) -> None:
        if not error_rate or error_rate < 0:
            raise ValueError("Error_Rate must be a decimal less than 0.")
        self.scale = mode
        self.ratio = 0.9
        self.initial_capacity = initial_capacity
        self.error_rate = error_rate
        self.count = 0
        self._parts = [self._empty()]

    def _empty(self) -> Filter:
        parameters = f"initial_items={self.initial_capacity},growth={self.scale},tightening={self.ratio}"
        return Filter(f"scalable:{parameters}", fpr=self.error_rate)

    def __contains__(self, key: Any) -> bool:
        own = _key(key)
        return any(own in part for part in self._parts)

    def __len__(self) -> int:
        """The number of keys that were added."""
        return self.count

    def add(self, key: Any) -> bool:
        """Adds a key; True if it was there already."""
        own = _key(key)
        if any(own in part for part in self._parts[1:]) or not self._parts[0].add(own):
            return True
        self.count += 1
        return False

    @property
    def capacity(self) -> int:
        """How many keys fit without another stage."""
        return sum(self._stages())

    def _stages(self) -> Iterator[int]:
        stage, total = self.initial_capacity, 0
        while total < self.count:
            yield stage
            total += stage
            stage *= self.scale

    def union(self, other: ScalableBloomFilter) -> ScalableBloomFilter:
        """A filter with the keys of both. Its rate is at most the sum of theirs."""
        mine = (self.scale, self.initial_capacity, self.error_rate)
        if mine != (other.scale, other.initial_capacity, other.error_rate):
            raise ValueError(
                "Unioning two scalable bloom filters requires "
                "both filters to have both the same mode, initial capacity and error rate"
            )
        both = ScalableBloomFilter(self.initial_capacity, self.error_rate, self.scale)
        both.count = self.count + other.count
        both._parts = [part.copy() for part in (*self._parts, *other._parts)]
        return both

    def __or__(self, other: ScalableBloomFilter) -> ScalableBloomFilter:
        return self.union(other)

    def tofile(self, f: BinaryIO) -> None:
        numbers = _NUMBERS.pack(self._NAME, self.scale, self.count, len(self._parts))
        f.write(numbers + _CHECK.pack(crc32(numbers)))
        for part in self._parts:
            f.write(framed(self._NAME, self.initial_capacity, self.error_rate, self.count, part))

    @classmethod
    def fromfile(cls, f: BinaryIO) -> ScalableBloomFilter:
        header = f.read(_NUMBERS.size + _CHECK.size)
        if len(header) < _NUMBERS.size + _CHECK.size:
            raise ValueError(f"Invalid data: too short for a header, {len(header)} bytes; read them whole")
        name, scale, count, parts = _NUMBERS.unpack_from(header)
        if name != cls._NAME:
            raise ValueError("Invalid data: everbloom did not write this; add the keys to a new filter and save that")
        if _CHECK.unpack_from(header, _NUMBERS.size) != (crc32(header[: _NUMBERS.size]),):
            raise ValueError("Invalid data: the header is damaged; take another copy, or add the keys to a new filter")
        read = cls.__new__(cls)
        read.scale, read.count, read.ratio, read._parts = scale, count, 0.9, []
        for _ in range(parts):
            header = f.read(HEADER_BYTES)
            body = f.read(length_of(cls._NAME, header))
            read.initial_capacity, read.error_rate, _, part = unframed(cls._NAME, header + body)
            read._parts.append(part)
        if not read._parts:
            raise ValueError("Invalid data: everbloom did not write this; add the keys to a new filter and save that")
        return read
