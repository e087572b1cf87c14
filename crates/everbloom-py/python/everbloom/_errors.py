"""What can go wrong. Every error says what was given, what is needed and, as ``remedy``, what would work."""

from __future__ import annotations

from typing import Any

__all__ = [
    "CorruptError", "Error", "ExistsError", "InfeasibleError", "MismatchError", "NotFoundError", "ParameterError",
    "SchemeError", "SecretKeyError", "ServerError", "SpecError", "UnsupportedError", "UsageError", "VersionError",
]


class Error(Exception):
    """The base of all errors of this package.

    >>> import everbloom
    >>> try:
    ...     everbloom.Filter("blom", expect=1000)
    ... except everbloom.Error as error:
    ...     print(error.remedy)
    did you mean 'bloom'?
    """

    remedy: str
    """What to do instead."""

    def __init__(self, message: str = "", remedy: str = "", **fields: Any) -> None:
        super().__init__(message)
        self.remedy = remedy
        self._fields = fields
        for name, value in fields.items():
            setattr(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), str(self), self.remedy, self._fields)


def _restored(kind: type[Error], message: str, remedy: str, fields: dict[str, Any]) -> Error:
    return kind(message, remedy, **fields)


class ParameterError(Error, ValueError):
    """A value outside what a filter can work with: ``name``, ``given``, ``needed``."""

    name: str
    given: str
    needed: str


class InfeasibleError(Error, ValueError):
    """A goal that no filter can reach: ``wanted``, ``reason``."""

    wanted: str
    reason: str


class SpecError(Error, ValueError):
    """A spec that cannot be read, or names what does not exist: ``spec``, ``problem``."""

    spec: str
    problem: str


class MismatchError(Error, ValueError):
    """Two filters that do not belong together: ``what`` differs, ``left`` and ``right``."""

    what: str
    left: str
    right: str


class UnsupportedError(Error, TypeError):
    """Something that this kind of filter cannot do: ``kind``, ``operation``."""

    kind: str
    operation: str


class CorruptError(Error, ValueError):
    """Bytes that are not a whole, undamaged filter: ``problem``."""

    problem: str


class VersionError(Error, ValueError):
    """A filter that a later version wrote: ``found``, ``supported``."""

    found: int
    supported: int


class SecretKeyError(Error, ValueError):
    """The filter was built with a secret that was not given, or with another one."""


class SchemeError(Error, ValueError):
    """The filter was built with a scheme that was not given, or with another one: ``needed``, ``given``."""

    needed: str
    given: str


class ServerError(Error, ConnectionError):
    """Servers that cannot be reached, refuse to let us in, lack the module, or forgot this process."""


class UsageError(Error, ValueError):
    """An address or a name for servers that is none, or a filter that was opened before a fork."""


class NotFoundError(Error, LookupError):
    """There is no filter of this name on the servers."""


class ExistsError(Error, ValueError):
    """There is another filter of this name on the servers."""
