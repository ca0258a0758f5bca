"""Fields that documents of a release are narrowed by: folders, kinds of files, labels, metadata.

Each field says the key of ``where`` that it is asked for by. The values are those of the documents
that a caller sees, with how many have each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.query.limited_release import matching, pointer

if TYPE_CHECKING:
    from graphrag_pipeline.query.limited_release import Where
    from graphrag_pipeline.query.release import Release

MOST_FIELDS = 20
MOST_VALUES = 100
"""Of a field, those that most documents have; others are found by a part of them."""
_MOST_CHARACTERS = 200
_FEW = 12
"""A field of more values, each in one document alone, names documents and no kind of them."""
_IDS_OF_MAIL = frozenset(("message_id", "in_reply_to"))
"""Nobody knows a message by these; they can be asked for all the same."""

_SPLIT = """
list_distinct(CASE {type} WHEN 'ARRAY' THEN {value}::VARCHAR[]
              ELSE string_split({value}->>'$', ', ') END)
"""
_IS_VALUE = f"value <> '' AND length(value) <= {_MOST_CHARACTERS}"
_KEYS = f"""
WITH counted AS MATERIALIZED (
    SELECT key, value, count(*) AS n FROM (
        SELECT d.id, e.key, unnest({_SPLIT.format(type="e.type", value="e.value")}) AS value
        FROM documents d, json_each(d.metadata) e WHERE e.type NOT IN ('NULL', 'OBJECT'))
    WHERE {_IS_VALUE} AND NOT regexp_matches(key, '=|[<>]$')
    GROUP BY ALL
), keys AS (
    SELECT key, count(*) AS n_values, max(n) AS most, sum(n) AS total,
           bool_and(regexp_matches(value, '^\\d{{4}}-\\d{{2}}')) AS is_date,
           bool_and(try_cast(value AS DOUBLE) IS NOT NULL) AS is_number,
           left(min(value), 10) AS first_day, left(max(value), 10) AS last_day,
           min(try_cast(value AS DOUBLE)) AS least, max(try_cast(value AS DOUBLE)) AS greatest
    FROM counted GROUP BY key
), best AS (
    FROM counted QUALIFY row_number() OVER (PARTITION BY key ORDER BY n DESC, value) <= $most
)
SELECT keys.*, value, n FROM keys JOIN best USING (key) ORDER BY total DESC, key, n DESC, value
"""
_VALUES = f"""
SELECT value, count(*) AS n FROM (
    SELECT id, unnest({_SPLIT.format(type="json_type(found)", value="found")}) AS value
    FROM (SELECT id, json_extract(metadata, $pointer) AS found FROM documents)
    WHERE json_type(found) NOT IN ('NULL', 'OBJECT'))
WHERE {_IS_VALUE} AND contains(lower(value), lower($q))
GROUP BY ALL ORDER BY n DESC, value LIMIT $most
"""
# What all documents lie in narrows nothing; "https:" and "https:/" are no places.
_FOLDERS = """
SELECT folder AS value, count(*) AS n FROM (
    SELECT unnest(list_transform(range(1, len(parts)), lambda n: array_to_string(parts[:n], '/')))
        AS folder
    FROM (SELECT string_split(source, '/') AS parts FROM documents))
WHERE folder <> '' AND NOT regexp_matches(folder, '^[a-z]+:/?$')
GROUP BY ALL HAVING n < (SELECT count(*) FROM documents)
ORDER BY n DESC, value LIMIT $most
"""
_ENDINGS = """
SELECT '*' || ending AS value, count(*) AS n
FROM (SELECT regexp_extract(source, '[^/]\\.([^./?#]{1,10})$', 1) AS name,
             '.' || name AS ending FROM documents WHERE name <> '')
GROUP BY ALL ORDER BY n DESC, value LIMIT $most
"""
_LABELS = """
SELECT label AS value, count(*) AS n FROM (
    SELECT document_id, label FROM (
        SELECT document_id, labels, unnest($known::JSON::VARCHAR[]) AS label
        FROM published.document_labels)
    GROUP BY ALL HAVING bool_and(list_contains(labels, label)))
SEMI JOIN documents d ON d.id = document_id
GROUP BY ALL ORDER BY n DESC, value LIMIT $most
"""
_ALL_LABELS = "SELECT DISTINCT unnest(labels) AS label FROM published.document_labels"


def fields_of(index: Release) -> dict[str, Any]:
    """Return what documents of a release can be narrowed by; made once for all who see the same.

    ``kind`` is folders, endings, labels, values, or of a range days or numbers, which have
    ``least`` and ``greatest`` in place of values.
    """
    fields = index.once("fields", _made)
    return {"fields": fields, "total": index.facts.counts["n_documents"], "release": index.facts.id}


def values_of(index: Release, key: str, q: str) -> dict[str, Any]:
    """Return the values of a key of metadata that have ``q`` in them, in any case."""
    rows = index.rows(_VALUES, pointer=pointer(key), q=q, most=MOST_VALUES)
    return {"values": [_value(row) for row in rows], "release": index.facts.id}


def condition_of(index: Release, where: Where) -> tuple[str, Mapping[str, object]]:
    """Return the SQL condition that a filter puts on ``documents``, and its parameters."""
    if not where:
        return "true", {}
    ids, parameters = matching(where, index.labels, bare=index.bare)
    return f"id IN ({ids})", parameters


def _made(index: Release) -> list[dict[str, Any]]:
    most = MOST_VALUES + 1
    places = {
        ("uri", "folders"): index.rows(_FOLDERS, most=most),
        ("uri", "endings"): index.rows(_ENDINGS, most=most),
        ("label", "labels"): _labels(index, most),
    }
    fields = [_field(key, kind, rows) for (key, kind), rows in places.items() if len(rows) > 1]
    by_key = groupby(index.rows(_KEYS, most=most), key=lambda row: row["key"])
    keys = ([*rows] for _, rows in by_key)
    return fields + [_of_key(rows) for rows in islice(filter(_narrows, keys), MOST_FIELDS)]


def _of_key(rows: list[dict[str, Any]]) -> dict[str, Any]:
    about = rows[0]
    if about["is_date"]:
        return _range(about["key"], "days", about["first_day"], about["last_day"])
    if about["is_number"] and about["n_values"] > _FEW:
        return _range(about["key"], "numbers", about["least"], about["greatest"])
    return _field(about["key"], "values", rows)


def _labels(index: Release, most: int) -> list[dict[str, Any]]:
    """Return the labels that open documents; who has labels is told of no others."""
    if index.access[0] != "filtered" or not index.has_table("document_labels"):
        return []
    own = index.labels
    known = [row["label"] for row in index.rows(_ALL_LABELS)] if own is None else own
    return index.rows(_LABELS, known=sorted(known), most=most)


def _narrows(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a key tells documents apart, and not each from every other."""
    row = rows[0]
    if row["key"] in _IDS_OF_MAIL:
        return False
    is_range = row["is_date"] or row["is_number"]
    return row["n_values"] > 1 and (is_range or row["most"] > 1 or row["n_values"] <= _FEW)


def _field(key: str, kind: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    values = [_value(row) for row in rows[:MOST_VALUES]]
    return {"key": key, "kind": kind, "values": values, "has_more": len(rows) > MOST_VALUES}


def _range(key: str, kind: str, least: object, greatest: object) -> dict[str, Any]:
    return {"key": key, "kind": kind, "least": least, "greatest": greatest}


def _value(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"value": row["value"], "documents": row["n"]}
