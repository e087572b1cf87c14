"""Membership filters that know what matters.

Say how much memory there is and what matters; the filter says which errors there will be, and keeps that promise on an
endless stream.

>>> import everbloom
>>> seen = everbloom.Filter(memory="64MiB", fpr="0.1%")
>>> seen.add("alice"), seen.add("alice"), "bob" in seen
(True, False, False)
"""

from ._errors import (
    CorruptError, Error, InfeasibleError, MismatchError, ParameterError, SchemeError, SecretKeyError, SpecError,
    UnsupportedError, VersionError,
)
from ._everbloom import (
    Audit, Contender, Filter, Forecast, Hashes, Interval, Kind, LagInterval, Plan, Promise, RateAt, Scheme, Status,
    Stream, Tuned, View, WindowStats, __version__, kinds, plan, tune,
)
from ._unseen import unseen

__all__ = [
    "Audit", "Contender", "CorruptError", "Error", "Filter", "Forecast", "Hashes", "InfeasibleError", "Interval",
    "Kind", "LagInterval", "MismatchError", "ParameterError", "Plan", "Promise", "RateAt", "Scheme", "SchemeError",
    "SecretKeyError", "SpecError", "Status", "Stream", "Tuned", "UnsupportedError", "VersionError", "View",
    "WindowStats", "__version__", "kinds", "plan", "tune", "unseen",
]
