"""``abloom.BloomFilter`` over a filter of everbloom.

>>> from everbloom.compat.abloom import BloomFilter
>>> bloom = BloomFilter(1000, 0.01)
>>> bloom.add("hello"), bloom.add("hello")
(True, False)
>>> "hello" in bloom, "world" in bloom
(True, False)

As in abloom, ``add`` is True if the item is new; any object that can be hashed is an item, and with ``serializable=True``
bytes, str, int and float are, which hash alike in every process.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from .._errors import Error
from .._everbloom import Filter
from ._framed import framed, unframed

__all__ = ["BloomFilter"]

_NAME = b"EBabloom"


class BloomFilter:
    """A Bloom filter of blocks of 512 bits."""

    __slots__ = ("__weakref__", "_capacity", "_cells", "_fp_rate", "_free_threading", "_key", "_serializable")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, capacity: int, fp_rate: float = 0.01, serializable: bool = False, free_threading: bool = False
    ) -> None:
        if (items := operator.index(capacity)) < 1:
            raise ValueError("Capacity must be greater than 0")
        if not 0 < fp_rate < 1:
            raise ValueError("False positive rate must be between 0.0 and 1.0")
        try:
            cells = Filter("blocked", expect=items, fpr=float(fp_rate))
        except Error as error:
            raise ValueError(f"Capacity too large, or false positive rate too low: {error}") from error
        self._set(items, float(fp_rate), bool(serializable), bool(free_threading), cells)

    def _set(self, capacity: int, fp_rate: float, serializable: bool, free_threading: bool, cells: Filter) -> None:
        self._capacity, self._fp_rate, self._cells = capacity, fp_rate, cells
        self._serializable, self._free_threading = serializable, free_threading
        self._key = _stable if serializable else hash

    @property
    def capacity(self) -> int:
        """Expected number of items."""
        return self._capacity

    @property
    def fp_rate(self) -> float:
        """Target false positive rate."""
        return self._fp_rate

    @property
    def k(self) -> int:
        """Bits that an item sets."""
        return 8

    @property
    def byte_count(self) -> int:
        """Memory in bytes."""
        return self.bit_count // 8

    @property
    def bit_count(self) -> int:
        """Memory in bits."""
        return int(self._cells.parameters["num_bits"])

    @property
    def serializable(self) -> bool:
        """Whether items hash alike in every process."""
        return self._serializable

    @property
    def free_threading(self) -> bool:
        """What was asked for; every filter of everbloom may be used from several threads."""
        return self._free_threading

    def add(self, item: Any) -> bool:
        """Adds an item; True if it is new."""
        return self._cells.add(self._key(item))

    def update(self, items: Iterable[Any]) -> None:
        """Adds every item of an iterable."""
        self._cells.update(map(self._key, items))

    def __contains__(self, item: Any) -> bool:
        return self._key(item) in self._cells

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BloomFilter):
            return NotImplemented
        return self._settings() == other._settings() and self._cells == other._cells

    def __bool__(self) -> bool:
        return self._cells.status().fill > 0

    def __or__(self, other: BloomFilter) -> BloomFilter:
        if not isinstance(other, BloomFilter):
            return NotImplemented
        both = self.copy()
        both |= other
        return both

    def __ior__(self, other: BloomFilter) -> BloomFilter:
        if not isinstance(other, BloomFilter):
            return NotImplemented
        if self._settings() != other._settings():
            raise ValueError("BloomFilters must have the same capacity, fp_rate, serializable and free_threading setting")
        self._cells |= other._cells
        return self

    def _settings(self) -> tuple[int, float, bool, bool]:
        return self._capacity, self._fp_rate, self._serializable, self._free_threading

    def copy(self) -> BloomFilter:
        other = BloomFilter.__new__(BloomFilter)
        other._set(self._capacity, self._fp_rate, self._serializable, self._free_threading, self._cells.copy())
        return other

    def clear(self) -> None:
        """Forgets every item."""
        self._cells.clear()

    def to_bytes(self) -> bytes:
        if not self._serializable:
            raise ValueError("to_bytes() requires serializable=True")
        return framed(_NAME, self._capacity, self._fp_rate, int(self._free_threading), self._cells)

    @classmethod
    def from_bytes(cls, data: bytes) -> BloomFilter:
        if not isinstance(data, bytes):
            raise TypeError("from_bytes() requires bytes")
        capacity, fp_rate, free_threading, cells = unframed(_NAME, data)
        read = cls.__new__(cls)
        read._set(capacity, fp_rate, True, bool(free_threading), cells)
        return read

    def __reduce__(self) -> tuple[Any, ...]:
        # What the built-in hash made of the items means nothing to another process.
        return BloomFilter.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        return f"<BloomFilter capacity={self._capacity} fp_rate={self._fp_rate!r} serializable={self._serializable}>"


def _stable(item: Any) -> int | bytes | str:
    if isinstance(item, (str, bytes)):
        return item
    if isinstance(item, (int, float)):
        # Equal numbers have equal hashes, which no process salts.
        return hash(item)
    raise TypeError("Only bytes, str, int, and float are supported in serializable mode")
