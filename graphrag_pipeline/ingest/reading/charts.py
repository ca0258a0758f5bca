"""Charts of office files: a title, and a table of the numbers that are drawn."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from xml.etree import ElementTree

_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_TEXT = "{http://schemas.openxmlformats.org/drawingml/2006/main}t"
_MOST_POINTS = 1_000
_LONGEST = 10  # digits
_CATEGORIES, _VALUES = ("cat", "xVal"), ("val", "yVal")


def chart_markup(xml: bytes) -> Iterator[str]:
    """Yield the markup of a chart's title, and of a table with a row for each of its categories.

    The XML has no document type: that is refused before. Of very many points none are told, and
    nothing of a chart that is damaged.
    """
    try:
        chart = ElementTree.fromstring(xml).find(f"{_CHART}chart")
    except ElementTree.ParseError:
        return
    if chart is None:
        return
    words = "".join(text.text or "" for text in chart.iterfind(f"{_CHART}title//{_TEXT}"))
    if words.strip():
        yield f"<p>{html.escape(words)}</p>"
    series = list(chart.iter(f"{_CHART}ser"))
    names = [_first(one, "tx").get(0, "") for one in series]
    categories = next(filter(None, (_first(one, *_CATEGORIES) for one in series)), {})
    columns = [_first(one, *_VALUES) for one in series]
    places = sorted({place for column in columns for place in column})
    if not 0 < len(places) <= _MOST_POINTS:
        return
    head = "".join(f"<th>{html.escape(name)}</th>" for name in ["", *names])
    rows = (
        _row([categories.get(place, ""), *(column.get(place, "") for column in columns)])
        for place in places
    )
    yield f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"


def _first(series: ElementTree.Element, *tags: str) -> dict[int, str]:
    """Return the points of the first of these parts that a series has, by their places."""
    for tag in tags:
        part = series.find(f"{_CHART}{tag}")
        if part is not None:
            points = [*part.iter(f"{_CHART}pt")]
            return {
                int(place): point.findtext(f"{_CHART}v") or ""
                for point in points
                if (place := point.get("idx", "")).isdecimal() and len(place) < _LONGEST
            }
    return {}
