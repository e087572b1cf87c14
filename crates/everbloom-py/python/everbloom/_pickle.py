"""How pickles of filters are read back."""

from __future__ import annotations

from typing import Any

from ._everbloom import Filter, Scheme, View


def restored(kind: type[Filter], buffer: Any, scheme: bytes | None = None) -> Filter:
    """The filter in a pickle."""
    known = None if scheme is None else Scheme.from_bytes(scheme)
    return kind.from_bytes(buffer, scheme=known)


def reopened(path: str) -> View:
    """The view of a file, mapped again."""
    return View.open(path)
