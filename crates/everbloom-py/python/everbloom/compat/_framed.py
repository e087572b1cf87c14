"""A filter's bytes behind a few numbers that the filter itself does not know."""

from __future__ import annotations

from struct import Struct
from zlib import crc32

from .._everbloom import Filter

# A name of eight bytes, capacity, rate, count, length of the filter's bytes; then a checksum of all that. The filter's
# bytes have their own.
_NUMBERS = Struct("<8sQdQQ")
_CHECK = Struct("<I")
HEADER_BYTES = _NUMBERS.size + _CHECK.size


def framed(name: bytes, capacity: int, rate: float, count: int, cells: Filter) -> bytes:
    """The numbers, then the filter."""
    body = cells.to_bytes()
    numbers = _NUMBERS.pack(name, capacity, rate, count, len(body))
    return numbers + _CHECK.pack(crc32(numbers)) + body


def length_of(name: bytes, header: bytes) -> int:
    """How many bytes follow a header."""
    return int(_read(name, header)[-1])


def unframed(name: bytes, data: bytes) -> tuple[int, float, int, Filter]:
    """What `framed` was given."""
    capacity, rate, count, length = _read(name, data)
    if len(data) != HEADER_BYTES + length:
        raise ValueError(f"Invalid data: expected {HEADER_BYTES + length} bytes, got {len(data)}; read them whole")
    return capacity, rate, count, Filter.from_bytes(data[HEADER_BYTES:])


def _read(name: bytes, data: bytes) -> tuple[int, float, int, int]:
    if len(data) < HEADER_BYTES:
        raise ValueError(f"Invalid data: too short for a header, {len(data)} bytes; read them whole")
    found, capacity, rate, count, length = _NUMBERS.unpack_from(data)
    if found != name:
        raise ValueError("Invalid data: everbloom did not write this; add the keys to a new filter and save that")
    if _CHECK.unpack_from(data, _NUMBERS.size) != (crc32(data[: _NUMBERS.size]),):
        raise ValueError("Invalid data: the header is damaged; take another copy, or add the keys to a new filter")
    return capacity, rate, count, length
