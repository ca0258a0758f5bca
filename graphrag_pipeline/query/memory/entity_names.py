"""The names of entities by hash: found in a question at a cost that depends on the question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import md5
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from graphrag_pipeline.core.arrays import fixed_bytes
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import terms

if TYPE_CHECKING:
    import pyarrow as pa

NAMES_SQL = """
SELECT md5_number_lower(name) AS name, length(name) AS length, encode(id) AS id, is_title,
       row_number() OVER (ORDER BY length(title) DESC, degree DESC, id) AS place
FROM (
    SELECT *, trim(strip_accents(lower(title))) AS name FROM (
        SELECT id, title, degree, length(title) > 1 AS is_title FROM entities UNION ALL
        SELECT canonical_id, unnest([a.title, canonical_title]), 0, false FROM entity_aliases a
        JOIN entities ON canonical_id = entities.id))
ORDER BY ALL
"""
"""What makes the arrays of names: those that another query made are other arrays."""
# Letters of scripts written with spaces: next to one, a name has not ended.
_LETTER = pattern_of(r"[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0003ffff]")


class EntityNames:
    """Titles of entities, and those that entities had before they were merged.

    Names are compared as DuckDB's ``strip_accents(lower(title))`` leaves them. They are known by
    64 bits of their hash, so that no text can be read out of the arrays that this is made of.
    """

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.arrays = arrays
        self._names, self._ids = arrays["names"], arrays["ids"]
        self._lengths, self._is_title = arrays["lengths"], arrays["is_title"]
        self._places = arrays["places"]

    @classmethod
    def read(cls, columns: Callable[[str], pa.Table]) -> EntityNames:
        """Return the names of a release."""
        table = columns(NAMES_SQL)
        return cls(
            {
                "names": table["name"].to_numpy(),
                "ids": fixed_bytes(table["id"].combine_chunks()),
                "lengths": table["length"].to_numpy().astype(np.int32),
                "is_title": table["is_title"].to_numpy(),
                "places": table["place"].to_numpy().astype(np.int32),
            }
        )

    def named_in(self, text: str, *, apart: bool = False) -> list[str]:
        """Return the ids of entities whose whole title stands in a text, longest title first.

        Then by falling degree, then by id. The text is without case and accents; stop words are no
        names, nor is a single sign. ``apart`` leaves out a title that stands only within longer
        ones.
        """
        found: list[tuple[int, str, bytes]] = []
        longest = int(self._lengths.max(initial=0))
        names = _parts(text, longest)
        for name, rows in zip(names, self._rows_of(names), strict=True):
            own = [row for row in rows if self._is_title[row]]
            if own and terms(name):
                found += [(int(self._places[row]), name, self._ids[row]) for row in own]
        ids: list[str] = []
        for _, name, id in sorted(found):
            places = _places_of(name, text) if apart else ()
            if places or not apart:
                ids.append(id.decode())
                text = _without(text, places, len(name))
        return ids

    def titled(self, names: Iterable[str]) -> list[str]:
        """Return the ids of entities that have one of these names or had it, in their order."""
        rows = self._rows_of(list(dict.fromkeys(names)))
        return [key.decode() for each in rows for key in self._ids[each.start : each.stop].tolist()]

    def _rows_of(self, names: list[str]) -> list[range]:
        digests = b"".join(md5(name.encode()).digest()[8:] for name in names)
        keys = np.frombuffer(digests, "<u8")
        starts = np.searchsorted(self._names, keys, "left").tolist()
        stops = np.searchsorted(self._names, keys, "right").tolist()
        return [range(*each) for each in zip(starts, stops, strict=True)]


def _parts(text: str, longest: int) -> list[str]:
    """Return what stands in a text between two places where a name can begin and end, each once.

    Of at most so many signs.
    """
    is_letter = [_LETTER.match(sign) is not None for sign in text]
    starts = [n for n in range(len(text)) if n == 0 or not is_letter[n - 1]]
    stops = [n for n in range(1, len(text) + 1) if n == len(text) or not is_letter[n]]
    parts: dict[str, None] = {}
    first = 0
    for start in starts:
        while first < len(stops) and stops[first] <= start:
            first += 1
        for stop in stops[first:]:
            if stop - start > longest:
                break
            parts[text[start:stop]] = None
    return list(parts)


def _places_of(name: str, text: str) -> list[int]:
    """Return where a name stands in a text as whole words."""
    places: list[int] = []
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        around = text[start - 1 : start] + text[end : end + 1]
        whole = _LETTER.search(around) is None
        places += [start] if whole else []
        start = text.find(name, end if whole else start + 1)
    return places


def _without(text: str, places: Iterable[int], length: int) -> str:
    for place in sorted(places, reverse=True):
        text = f"{text[:place]}\0{text[place + length :]}"
    return text
