"""What notebooks show: a table, and a small drawing where there is something to draw. No scripts, nothing to load."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 420, 150, 44, 22


def _rate(rate: float | None) -> str:
    if rate is None:
        return "depends on the stream"
    percent = 100.0 * rate
    return "0 %" if percent == 0 else f"{percent:.3g} %"


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _size(bits: float) -> str:
    size = bits / 8
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:.4g} {unit}"
        size /= 1024
    return ""


def _promise(promise: Any) -> str:
    if promise.always:
        return f"at most {_rate(promise.fpr)} false positives, always"
    if promise.until_items is not None:
        return f"at most {_rate(promise.fpr)} false positives until {_count(promise.until_items)} items"
    return "none"


def _table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    # A spec is one long word, which may be broken behind each parameter.
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value).replace(",", ",<wbr/>")}</td></tr>'
        for name, value in rows
    )
    return f'<table><caption style="text-align:left;font-weight:bold;padding:0.5em">{escape(title)}</caption>{cells}</table>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-size="10" fill="currentColor">{escape(text)}</text>'


def _short(number: float) -> str:
    for unit in ("", "k", "M", "G", "T"):
        if number < 999.5 or unit == "T":
            return f"{float(f'{number:.2g}'):g}{unit}"
        number /= 1000
    return ""


def _by_lag(rates: Sequence[Any]) -> str:
    """Misses by lag, on an axis of magnitudes."""
    points = [(rate.at, rate.predicted_fnr) for rate in rates if rate.at > 0 and math.isfinite(rate.at)]
    if len(points) < 2:
        return ""
    least, most = math.log10(points[0][0]), math.log10(points[-1][0])
    top = max(max(rate for _, rate in points), 1e-9)
    width, height = _WIDTH - _LEFT - 8, _HEIGHT - _BOTTOM - 14

    def place(lag: float, rate: float) -> str:
        x = _LEFT + width * (math.log10(lag) - least) / max(most - least, 1e-9)
        return f"{x:.1f},{14 + height * (1 - rate / top):.1f}"

    line = " ".join(place(lag, rate) for lag, rate in points)
    axis = f'<path d="M{_LEFT},14 V{14 + height} H{_WIDTH - 8}" stroke="currentColor" stroke-opacity="0.4" fill="none"/>'
    labels = (
        _text(_LEFT - 4, 20, _rate(top), "end")
        + _text(_LEFT - 4, 14 + height, "0 %", "end")
        + _text(_LEFT, _HEIGHT - 8, _short(points[0][0]), "start")
        + _text(_WIDTH - 8, _HEIGHT - 8, _short(points[-1][0]), "end")
        + _text(_LEFT + width / 2, _HEIGHT - 8, "arrivals since the key was last seen", "middle")
        + _text(_LEFT + 6, 10, "repeats that are missed", "start")
    )
    curve = f'<polyline points="{line}" fill="none" stroke="#3b7dd8" stroke-width="2"/>'
    return _svg(_HEIGHT, axis + curve + labels, "repeats that are missed, by the arrivals since the key was last seen")


def _bar(share: float, label: str) -> str:
    """How full something is."""
    width = _WIDTH - 16
    full = max(0.0, min(1.0, share)) * width
    return _svg(
        34,
        f'<rect x="8" y="4" width="{width}" height="12" fill="currentColor" fill-opacity="0.12"/>'
        f'<rect x="8" y="4" width="{full:.1f}" height="12" fill="#3b7dd8"/>' + _text(8, 29, label, "start"),
        label,
    )


def _bars(rows: Sequence[tuple[str, float]]) -> str:
    """Rates beside each other."""
    most = max((rate for _, rate in rows), default=0.0) or 1.0
    parts = []
    for index, (name, rate) in enumerate(rows):
        y = 4 + 20 * index
        parts.append(f'<rect x="90" y="{y}" width="{max(1.0, rate / most * (_WIDTH - 190)):.1f}" height="12" fill="#3b7dd8"/>')
        parts.append(_text(84, y + 10, name, "end"))
        parts.append(_text(94 + rate / most * (_WIDTH - 190), y + 10, _rate(rate), "start"))
    return _svg(20 * len(rows) + 8, "".join(parts), "rates of false positives")


def _svg(height: int, content: str, label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        f'role="img" aria-label="{escape(label)}" style="display:block;margin:8px 0">{content}</svg>'
    )


def _forecast_rows(forecast: Any) -> list[tuple[str, str]]:
    return [
        ("false positives expected", _rate(forecast.predicted_fpr)),
        ("repeats missed, expected", _rate(forecast.predicted_fnr)),
        ("by", forecast.method),
    ]


def plan(plan: Any) -> str:
    """A plan, its promise and its forecast."""
    rows = [
        ("filter", plan.spec),
        ("memory", _size(plan.memory_bits)),
        ("promise", _promise(plan.promise)),
        *_forecast_rows(plan.forecast),
        ("why", plan.reason),
        *(("note", note) for note in plan.notes),
    ]
    drawing = _by_lag(plan.forecast.by_lag) if plan.forecast.predicted_fnr > 0 else ""
    return f"<div>{_table('Plan', rows)}{drawing}</div>"


def forecast(forecast: Any) -> str:
    """A forecast, and misses by lag."""
    rows = _forecast_rows(forecast)
    rows.append(("in the last tenth", f"{_rate(forecast.late_fpr)} false positives, {_rate(forecast.late_fnr)} missed"))
    return f"<div>{_table('Forecast', rows)}{_by_lag(forecast.by_lag)}</div>"


def filter(filter: Any) -> str:
    """A filter, and how full it is."""
    status = filter.status()
    items = "" if status.estimated_items is None else f", about {_count(status.estimated_items)} distinct"
    rows = [
        ("filter", filter.spec),
        ("memory", _size(filter.memory_bits)),
        ("promise", f"{_promise(filter.promise)}; {status.promise}"),
        ("arrivals", f"{_count(status.arrivals)}{items}"),
        ("false positives now", _rate(status.estimated_fpr)),
    ]
    return f"<div>{_table('Filter', rows)}{_bar(status.fill, f'{100 * status.fill:.1f} % of the cells in use')}</div>"


def tuned(tuned: Any) -> str:
    """What tuning came to: the contenders' rates beside each other."""
    rows = [
        ("winner", tuned.winner.kind),
        ("false positives", f"{_rate(tuned.winner.fpr)}, with a standard filter {_rate(tuned.standard.fpr)}"),
        ("judged on", f"{_count(tuned.holdout_queries)} negative queries of the second half"),
        ("tune again at", _rate(tuned.retune_fpr)),
        *(("note", note) for note in tuned.notes),
    ]
    return f"<div>{_table('Tuning', rows)}{_bars([(one.kind, one.fpr) for one in tuned.contenders])}</div>"
