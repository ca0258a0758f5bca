"""Places and tracks of maps: GPX, as devices write it, and KML, as Google Earth does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading import versions
from graphrag_pipeline.ingest.reading.model import (
    SMALL_RECORDS,
    FileFormat,
    ReadingOptions,
    ReadResult,
    Scalar,
)
from graphrag_pipeline.ingest.reading.records import filled, read_records
from graphrag_pipeline.ingest.reading.xml_tree import XmlElement, elements_in, root_of, said_of

_OF_GPX = ("wpt", "rte", "trk")
_POINTS = ("rtept", "trkpt")
_POINT = pattern_of(r"(-?[\d.]{1,20}),(-?[\d.]{1,20})(?:,(-?[\d.]{1,20}))?")
_TOLD = {"desc": "description", "cmt": "comment", "type": "type", "sym": "symbol", "time": "time"}


def read_places(path: Path, data: bytes, options: ReadingOptions) -> ReadResult:
    """Read each place, route and track as a record, a track with the times of its first and last.

    Raises Unreadable where there is none.
    """
    root = root_of(data)
    places = _of_kml(root, ()) if root.name == "kml" else _of_gpx(root)
    about = {
        "map": said_of(root, "metadata", "name"),
        "author": said_of(root, "metadata", "author", "name"),
        "about": said_of(root, "metadata", "desc"),
    }
    none = "the file has no places: no wpt, rte or trk of GPX, no Placemark of KML"
    return read_records(path, map(filled, places), options, about, none=none)


def _of_gpx(root: XmlElement) -> Iterator[dict[str, Scalar]]:
    for element in elements_in(root, _OF_GPX):
        points = list(elements_in(element, _POINTS))
        times = [time for point in points if (time := said_of(point, "time"))]
        first = points[0] if points else element
        yield {
            "name": said_of(element, "name"),
            **{name: said_of(element, tag) for tag, name in _TOLD.items()},
            **({"begins": times[0], "ends": times[-1]} if times else {}),
            "latitude": first.attributes.get("lat", ""),
            "longitude": first.attributes.get("lon", ""),
            "elevation": said_of(first, "ele"),
        }


def _of_kml(element: XmlElement, folders: tuple[str, ...]) -> Iterator[dict[str, Scalar]]:
    """Yield the places below an element, each with the folders that it is in."""
    for each in elements_in(element, ("Placemark", "Folder", "Document")):
        if each.name == "Placemark":
            yield _placemark(each, folders)
        else:
            name = said_of(each, "name")
            yield from _of_kml(each, (*folders, name) if name else folders)


def _placemark(element: XmlElement, folders: tuple[str, ...]) -> dict[str, Scalar]:
    coordinates = (said_of(each) for each in elements_in(element, ("coordinates",)))
    point = _POINT.match(next(coordinates, ""))
    longitude, latitude, elevation = point.groups("") if point else ("", "", "")
    more = {
        each.attributes.get("name", ""): said_of(each, "value") or said_of(each)
        for each in elements_in(element, ("Data", "SimpleData"))
    }
    return {
        "name": said_of(element, "name"),
        "description": said_of(element, "description"),
        "address": said_of(element, "address"),
        "begins": said_of(element, "TimeStamp", "when") or said_of(element, "TimeSpan", "begin"),
        "ends": said_of(element, "TimeSpan", "end"),
        **{name: value for name, value in more.items() if name},
        "folder": " / ".join(folders),
        "latitude": latitude,
        "longitude": longitude,
        "elevation": elevation if elevation.strip("0.") else "",
    }


MAP = FileFormat(read_places, versions.of("maps", "HTML", "records"), SMALL_RECORDS)
