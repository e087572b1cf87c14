"""A filter's bytes behind a few numbers that the filter itself does not know."""

from __future__ import annotations

from struct import Struct

from .._everbloom import Filter

# A name of eight bytes, capacity, rate, count, length of the filter's bytes.
_HEADER = Struct("<8sQdQQ")


def framed(name: bytes, capacity: int, rate: float, count: int, cells: Filter) -> bytes:
    """The numbers, then the filter."""
    body = cells.to_bytes()
    return _HEADER.pack(name, capacity, rate, count, len(body)) + body


def length_of(name: bytes, header: bytes) -> int:
    """How many bytes follow a header."""
    return int(_read(name, header)[-1])


def unframed(name: bytes, data: bytes) -> tuple[int, float, int, Filter]:
    """What `framed` was given."""
    capacity, rate, count, length = _read(name, data)
    if len(data) != _HEADER.size + length:
        raise ValueError(f"Invalid data: expected {_HEADER.size + length} bytes, got {len(data)}; read them whole")
    if not 0 < rate < 1 or capacity < 1:
        raise ValueError("Invalid data: the capacity or the rate is out of range")
    return capacity, rate, count, Filter.from_bytes(data[_HEADER.size :])


HEADER_BYTES = _HEADER.size


def _read(name: bytes, data: bytes) -> tuple[int, float, int, int]:
    if len(data) < _HEADER.size:
        raise ValueError(f"Invalid data: too short for a header, {len(data)} bytes; read them whole")
    found, capacity, rate, count, length = _HEADER.unpack_from(data)
    if found != name:
        raise ValueError("Invalid data: everbloom did not write this; add the keys to a new filter and save that")
    return capacity, rate, count, length
