"""Items that a filter has not seen yet, one by one as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ._everbloom import Filter, RedisFilter


def unseen_by(
    seen: Filter,
    items: Iterable[Any],
    key: Callable[[Any], Any] | None,
    importance: Any,
    at: Any,
) -> Iterator[Any]:
    """The items that are new to a filter, which remembers every one."""
    return _plain(seen, iter(items), key) if importance is None and at is None else _full(seen, iter(items), key, importance, at)


def unseen_on_servers(
    seen: RedisFilter, items: Iterable[Any], key: Callable[[Any], Any] | None, importance: Any
) -> Iterator[Any]:
    """The items that are new to a filter on servers, which has its own clock."""
    for item in items:
        weight = importance(item) if callable(importance) else importance
        if seen.add(item if key is None else key(item), importance=weight):
            yield item


def _plain(seen: Filter, items: Iterator[Any], key: Callable[[Any], Any] | None) -> Iterator[Any]:
    add = seen.add
    if key is None:
        for item in items:
            if add(item):
                yield item
    else:
        for item in items:
            if add(key(item)):
                yield item


def _full(seen: Filter, items: Iterator[Any], key: Callable[[Any], Any] | None, importance: Any, at: Any) -> Iterator[Any]:
    for item in items:
        own = item if key is None else key(item)
        weight = importance(item) if callable(importance) else importance
        time = at(item) if callable(at) else at
        if seen.add(own, importance=weight, at=time):
            yield item


def unseen(items: Iterable[Any], *, key: Callable[[Any], Any] | None = None, spec: str = "auto", **goal: Any) -> Iterator[Any]:
    """The items whose key did not come before, one by one as they come, in fixed memory.

    The keywords say what is wanted of the filter, as for :func:`everbloom.plan`.

    >>> from operator import itemgetter
    >>> import everbloom
    >>> rows = [{"id": 1}, {"id": 2}, {"id": 1}]
    >>> list(everbloom.unseen(rows, key=itemgetter("id"), memory="64KiB"))
    [{'id': 1}, {'id': 2}]
    """
    if "memory" not in goal and "expect" not in goal:
        goal["memory"] = "64MiB"
    return Filter(spec, **goal).unseen(items, key=key)
