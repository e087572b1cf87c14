"""``rbloom.Bloom`` over a filter of everbloom.

>>> from everbloom.compat.rbloom import Bloom
>>> bloom = Bloom(1000, 0.01)
>>> bloom.add("hello")
>>> "hello" in bloom, "world" in bloom
(True, False)

As rbloom does, it takes any object that can be hashed, and refuses to save what was hashed by the built-in ``hash``, which
differs from process to process. ``everbloom.Filter`` needs no function for that: its keys hash alike everywhere.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

from .._everbloom import Filter

__all__ = ["Bloom"]

_Hash = Callable[[Any], int]


@final
class Bloom:
    """A Bloom filter that behaves as a set."""

    __slots__ = ("__weakref__", "_cells", "_hash")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expected_items: int, false_positive_rate: float, hash_func: _Hash | None = None) -> None:
        if not 0 < false_positive_rate < 1:
            raise ValueError("false_positive_rate must be between 0 and 1")
        if (items := operator.index(expected_items)) < 1:
            raise ValueError("expected_items must be greater than 0")
        self._hash = _checked(hash_func)
        bits, hashes = _shape(items, false_positive_rate)
        self._cells = Filter(f"bloom:num_bits={bits},num_hashes={hashes}")

    @classmethod
    def _of(cls, cells: Filter, hash_func: _Hash) -> Bloom:
        bloom = cls.__new__(cls)
        bloom._cells, bloom._hash = cells, hash_func
        return bloom

    @property
    def size_in_bits(self) -> int:
        """Number of bits in the filter."""
        return int(self._cells.parameters["num_bits"])

    @property
    def hash_func(self) -> _Hash:
        """The function that was given."""
        return self._hash

    @property
    def approx_items(self) -> float:
        """Estimated number of items in the filter."""
        return self._cells.status().estimated_items or 0.0

    def add(self, obj: Any, /) -> None:
        self._cells.add(self._key(obj))

    def __contains__(self, obj: Any) -> bool:
        return self._key(obj) in self._cells

    def update(self, *others: Iterable[Any] | Bloom) -> None:
        for other in others:
            self._cells.update(self._compatible(other) if isinstance(other, Bloom) else self._keys(other))

    def intersection_update(self, *others: Iterable[Any] | Bloom) -> None:
        for other in others:
            self._cells &= self._as_cells(other)

    def union(self, *others: Iterable[Any] | Bloom) -> Bloom:
        result = self.copy()
        result.update(*others)
        return result

    def intersection(self, *others: Iterable[Any] | Bloom) -> Bloom:
        result = self.copy()
        result.intersection_update(*others)
        return result

    def issubset(self, other: Iterable[Any] | Bloom, /) -> bool:
        return self._cells <= self._as_cells(other)

    def issuperset(self, other: Iterable[Any] | Bloom, /) -> bool:
        return self._as_cells(other) <= self._cells

    def __or__(self, other: Bloom) -> Bloom:
        return self.union(other) if isinstance(other, Bloom) else NotImplemented

    def __and__(self, other: Bloom) -> Bloom:
        return self.intersection(other) if isinstance(other, Bloom) else NotImplemented

    def __ior__(self, other: Bloom) -> Bloom:
        if not isinstance(other, Bloom):
            return NotImplemented
        self.update(other)
        return self

    def __iand__(self, other: Bloom) -> Bloom:
        if not isinstance(other, Bloom):
            return NotImplemented
        self.intersection_update(other)
        return self

    def __eq__(self, other: object) -> bool:
        return self._cells == self._compatible(other) if isinstance(other, Bloom) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return self._cells != self._compatible(other) if isinstance(other, Bloom) else NotImplemented

    def __le__(self, other: Bloom) -> bool:
        return self._cells <= self._compatible(other) if isinstance(other, Bloom) else NotImplemented

    def __lt__(self, other: Bloom) -> bool:
        return self._cells < self._compatible(other) if isinstance(other, Bloom) else NotImplemented

    def __ge__(self, other: Bloom) -> bool:
        return self._cells >= self._compatible(other) if isinstance(other, Bloom) else NotImplemented

    def __gt__(self, other: Bloom) -> bool:
        return self._cells > self._compatible(other) if isinstance(other, Bloom) else NotImplemented

    def __bool__(self) -> bool:
        # An intersection may be empty though keys came, so the cells are asked.
        return self._cells.status().fill > 0

    def __repr__(self) -> str:
        return f"<Bloom size_in_bits={self.size_in_bits} approx_items={self.approx_items:.1f}>"

    def clear(self) -> None:
        self._cells.clear()

    def copy(self) -> Bloom:
        return self._of(self._cells.copy(), self._hash)

    def save(self, filepath: str | bytes | os.PathLike[Any]) -> None:
        self._check_stable("save")
        self._cells.save(os.fsdecode(filepath))

    def save_bytes(self) -> bytes:
        self._check_stable("save")
        return self._cells.to_bytes()

    @classmethod
    def load(cls, filepath: str | bytes | os.PathLike[Any], hash_func: _Hash) -> Bloom:
        bloom = cls._of(Filter("bloom:num_bits=8,num_hashes=1"), _checked(hash_func))
        bloom._check_stable("load")
        bloom._cells = _bits(Filter.load(os.fsdecode(filepath)))
        return bloom

    @classmethod
    def load_bytes(cls, data: bytes, hash_func: _Hash) -> Bloom:
        bloom = cls._of(Filter("bloom:num_bits=8,num_hashes=1"), _checked(hash_func))
        bloom._check_stable("load")
        bloom._cells = _bits(Filter.from_bytes(data))
        return bloom

    def _check_stable(self, doing: str) -> None:
        if self._hash is hash:
            raise ValueError(f"Cannot {doing} a bloom filter that uses the built-in hash function")

    def _key(self, obj: Any) -> int | bytes:
        number = self._hash(obj)
        return number if self._hash is hash else operator.index(number).to_bytes(16, "little", signed=True)

    def _keys(self, objects: Iterable[Any]) -> Iterator[int | bytes]:
        return map(hash if self._hash is hash else self._key, objects)

    def _compatible(self, other: Bloom) -> Filter:
        if other._cells.spec != self._cells.spec:
            raise ValueError("size and max false positive rate must be the same for both filters")
        if other._hash is not self._hash:
            raise ValueError("Bloom filters must have the same hash function")
        return other._cells

    def _as_cells(self, other: Iterable[Any] | Bloom) -> Filter:
        if isinstance(other, Bloom):
            return self._compatible(other)
        cells = Filter(self._cells.spec)
        cells.update(self._keys(other))
        return cells


def _bits(cells: Filter) -> Filter:
    if cells.kind != "bloom":
        raise ValueError(f"this is a filter of another kind, {cells.kind}; read it with everbloom.Filter")
    return cells


def _checked(hash_func: _Hash | None) -> _Hash:
    if hash_func is None:
        return hash
    if not callable(hash_func):
        raise TypeError("hash_func must be callable")
    return hash_func


def _shape(items: int, rate: float) -> tuple[int, int]:
    """As many bits as rbloom takes, and the better one of the numbers of hashes next to the best."""
    bits = max(8, 8 * math.ceil(int(-items * math.log(rate) / math.log(2) ** 2) / 8))
    best = bits / items * math.log(2)
    whole = [min(max(number, 1), 64) for number in (math.floor(best), math.ceil(best))]
    return bits, min(whole, key=lambda hashes: (-math.expm1(-hashes * items / bits)) ** hashes)
