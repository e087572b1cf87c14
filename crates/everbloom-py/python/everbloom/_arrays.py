"""What a batch is made of: NumPy arrays and other buffers in the few shapes that the library reads."""

from __future__ import annotations

import array
import sys
from collections.abc import Mapping
from typing import Any

_INTEGERS = frozenset("bBhHiIlLqQnN?")
# The years 1 to 9999, in seconds since 1970.
_FIRST, _BEYOND = -62_135_596_800, 253_402_300_800


def numpy() -> Any:
    """NumPy, which results are made of, or how to get it."""
    try:
        import numpy
    except ImportError:
        raise ImportError("batches of verdicts are NumPy arrays: pip install numpy, or call add and 'in' key by key") from None
    return numpy


def source(keys: Any) -> tuple[str, Any, int]:
    """How to read a batch: ``("ints" | "bytes" | "text", memoryview, width)`` or ``("objects", iterable, 0)``."""
    if isinstance(keys, (str, bytes, bytearray)):
        raise TypeError(f"a {type(keys).__name__} is one key, and this takes many; write add(key) or [key]")
    if isinstance(keys, memoryview):
        if keys.format in ("B", "b", "c"):
            raise TypeError("a memoryview of bytes is one key, and this takes many; write add(key) or [key]")
        return _buffer(keys)
    if isinstance(keys, array.array):
        return ("objects", keys, 0) if keys.typecode in ("u", "w") else _buffer(memoryview(keys))
    np = sys.modules.get("numpy")
    if np is not None and not isinstance(keys, Mapping):
        if isinstance(keys, np.ndarray):
            return _numpy(np, keys)
        if hasattr(keys, "__array__") and not isinstance(keys, np.generic):
            return _numpy(np, np.asarray(keys))
    kind = type(keys)
    if not (hasattr(kind, "__iter__") or hasattr(kind, "__getitem__") and hasattr(kind, "__len__")):
        raise TypeError(f"this takes many keys, in a list, an array or a column, not {kind.__name__}; write add(key) or [key] for one")
    return "objects", keys, 0


def _unmasked(np: Any, values: Any, what: str) -> None:
    """Refuses masked values: what lies under a mask is nothing that anybody meant."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise TypeError(f"{what} have masked values; give those that are there, as values.compressed(), or others, as values.filled(0)")


def _buffer(view: memoryview) -> tuple[str, Any, int]:
    if view.ndim != 1:
        raise TypeError(f"keys must be one column, not a buffer of {view.ndim} dimensions")
    if view.format.lstrip("@=<") not in _INTEGERS:
        raise TypeError(f"keys must be integers, not elements of format '{view.format}'; give a list of str or bytes")
    return "ints", view.cast("B") if view.format == "?" else view, 0


def _numpy(np: Any, keys: Any) -> tuple[str, Any, int]:
    _unmasked(np, keys, "keys")
    if keys.ndim == 0:
        raise TypeError("keys must be one column, not a single value; write add(key) or [key]")
    if keys.ndim != 1:
        raise TypeError(f"keys must be one column, not an array of {keys.ndim} dimensions; give keys[:, 0] or keys.ravel()")
    kind = keys.dtype.kind
    if keys.size == 0:
        return "objects", [], 0
    if kind not in "iubSUOT":
        raise TypeError(
            f"keys must be integers, text or bytes, not {keys.dtype}; write keys.astype(str), or keys.view('i8') for their bits"
        )
    if kind in "SU" and keys.dtype.itemsize == 0:
        return "objects", keys.tolist(), 0
    if kind == "b":
        return "ints", memoryview(keys.view("u1")), 0
    if kind in "iu":
        return "ints", memoryview(_native(keys)), 0
    if kind == "S":
        return "bytes", memoryview(np.ascontiguousarray(keys).view("u1")), keys.dtype.itemsize
    if kind == "U":
        return "text", memoryview(np.ascontiguousarray(_native(keys)).view("u4")), keys.dtype.itemsize // 4
    return "objects", keys.tolist(), 0


def _native(values: Any) -> Any:
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def numbers(values: Any) -> Any:
    """Importances as doubles, in a buffer where there is one."""
    np = sys.modules.get("numpy")
    if np is None:
        return values
    if isinstance(values, np.ndarray) or hasattr(values, "__array__"):
        _unmasked(np, values, "importances")
        plain = np.ascontiguousarray(values)
        if plain.ndim != 1 or plain.dtype.kind not in "iubf":
            raise TypeError(f"importances must be one column of numbers, not {plain.ndim} dimensions of {plain.dtype}")
        return memoryview(plain.astype("f8"))
    return values


def times(values: Any) -> Any:
    """Times as whole microseconds since 1970, in a buffer where there is one, or as they are."""
    np = sys.modules.get("numpy")
    if np is None:
        return values
    if isinstance(values, np.ndarray) or hasattr(values, "__array__"):
        _unmasked(np, values, "times")
        plain = np.asarray(values)
        if plain.ndim == 0:
            return times(plain.reshape(1))
        if plain.ndim != 1:
            raise TypeError(f"times must be one column, not {plain.ndim} dimensions")
        if plain.dtype.kind == "M":
            if np.isnat(plain).any():
                raise ValueError("a time is missing (NaT); give one for every key")
            return memoryview(np.ascontiguousarray(plain.astype("M8[us]")).view("i8"))
        if plain.dtype.kind in "iuf":
            seconds = plain.astype("f8")
            if not ((seconds >= _FIRST) & (seconds < _BEYOND)).all():
                raise ValueError("a time is no number of seconds since 1970, before the year 10000; divide milliseconds by 1000")
            return memoryview(np.round(seconds * 1e6).astype("i8"))
        return plain.tolist()
    return values


def result(verdicts: bytes, kind: str) -> Any:
    """An array over what the library answered."""
    np = numpy()
    return np.frombuffer(bytearray(verdicts), dtype=kind)


def room(out: Any, count: int | None) -> memoryview:
    """The bytes of an array of ``bool`` that takes the verdicts."""
    np = numpy()
    if not isinstance(out, np.ndarray) or out.dtype != np.bool_ or out.ndim != 1:
        raise TypeError("out must be a NumPy array of bool with one dimension; write numpy.empty(len(keys), bool)")
    if not out.flags.writeable:
        raise ValueError("out is read-only; write numpy.empty(len(keys), bool)")
    if count is not None and len(out) != count:
        raise ValueError(f"out has {len(out)} places for {count} keys; write numpy.empty(len(keys), bool)")
    return memoryview(out.view("u1"))
