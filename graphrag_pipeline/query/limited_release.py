"""A release as if it held some documents only: those that a filter matches and labels open.

Every method honours that, for every method reads a release by SQL and by searches, and both show
what rests on these documents alone. For a caller with labels that is an index of its own
(:mod:`~graphrag_pipeline.query.labelled_index`), in which the other documents leave no trace.

A filter hides nothing from who may see everything: there ``limited_release.sql`` says what becomes
of each table. What rests on these documents alone stays as it is. A report that rests on others,
too, is left out, and one of sentences of these documents takes its place. A search by vectors
or words finds only what is whole, for what else is embedded says things of other documents. How
rare a word is in a full-text search is counted over all documents.
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from graphrag_pipeline.core.errors import AccessError, InputError
from graphrag_pipeline.store.bare_names import DOCUMENTS

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from graphrag_pipeline.core.settings import Settings

Where = Mapping[str, tuple[str, ...]]
"""Keys of metadata, or ``title`` and ``uri``, and for each the values of which one must be met."""

_MOST_KEYS, _MOST_VALUES = 20, 1000
_WIDER, _WIDEST = 4, 64
"""The best of all rows are looked through for those wanted, at first four times as many."""
_FEW = 1000
"""So many rows, and no more, are searched by name where they are not among these."""
_NUMBERS = itertools.count()
_VIEWS = (
    "resolved_claims",
    "resolved_entity_mentions",
    "resolved_relationship_mentions",
    "communities",
    "community_members",
    "community_reports",
    "hirag_communities",
    "hirag_community_members",
    "hirag_community_reports",
    "attributed_members",
    "attributed_entities",
    "attributed_communities",
    "facts",
    "entity_names",
    "edges",
)
_VISIBLE_VIEWS = ("entity_names", "edges")
"""Those of them that an index gets when it is published."""
_VIEW_SQL = """
SELECT sql FROM duckdb_views() WHERE database_name = 'published' AND view_name = ?
"""
# A value of metadata may be a list, which readers join by commas: then one of it is enough.
_MATCHING = """
CREATE TABLE kept_documents AS
SELECT id FROM (
    SELECT id, title, uri, {values} FROM published.documents)
WHERE {conditions}
"""
_OPENED = """
id IN (SELECT document_id FROM published.document_labels
       GROUP BY document_id HAVING bool_and(list_has_any(labels, $labels)))
"""
_KNOWN_LABELS = "SELECT DISTINCT unnest(labels) FROM published.document_labels"
_N_KEPT = """
SELECT (SELECT count(*) FROM kept_documents) = (SELECT count(*) FROM published.documents),
       (SELECT count(*) FROM kept_documents)
"""
_VALUES = """
CASE json_type(metadata, $key{n}) WHEN 'ARRAY' THEN json_extract(metadata, $key{n})::VARCHAR[]
ELSE list_append(string_split(json_extract_string(metadata, $key{n}), ', '),
                 json_extract_string(metadata, $key{n})) END AS values{n}
"""
_COLUMNS = ("title", "uri")
_BARE_DOCUMENTS = f"""
CREATE OR REPLACE VIEW documents AS FROM {DOCUMENTS} SEMI JOIN kept_documents USING (id)
"""
_WHOLE = {
    "chunks": "SELECT id FROM chunks",
    "entities": "SELECT id FROM entities ANTI JOIN mixed_entities USING (id)",
    "relationships": """
        SELECT id FROM relationships SEMI JOIN (FROM counted_relationships WHERE is_whole) w
        USING (id) ANTI JOIN mixed_entities s ON s.id = source_id
        ANTI JOIN mixed_entities t ON t.id = target_id""",
    "community_reports": "SELECT id FROM community_reports",
    "facts": "SELECT id FROM facts",
    "entity_titles": "SELECT id FROM entities ANTI JOIN mixed_entities USING (id)",
    "raptor_nodes": "SELECT id FROM raptor_nodes",
    "hirag_entities": "SELECT id FROM hirag_entities",
    "attributed_communities": """
        SELECT id FROM attributed_communities WHERE full_content IS NOT NULL""",
}
"""The rows of each vector table that a search may find."""


Labels = frozenset[str] | None
"""What somebody may see by: None is everything."""


class DocumentPlace:
    """The database that holds a limited release, for as long as anybody refers to it.

    ``bare``: documents are shown, and met, by their bare names, too.
    ``is_all`` says that all documents are kept: then it holds nothing, and the release is as it is.
    ``is_index``: it is an index of its own, in which nothing is of other documents.
    Raises InputError where no document matches the filter, AccessError where labels open none.
    """

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        where: Where,
        labels: Labels,
        settings: Settings,
        *,
        bare: bool = False,
    ) -> None:
        self.name = f"limited_{next(_NUMBERS)}"
        self.is_index = labels is not None
        own = con.cursor()
        try:
            own.execute(f"ATTACH ':memory:' AS {self.name}")
            weakref.finalize(self, _drop, con, self.name)
            own.execute(f"USE {self.name}")
            _keep_documents(own, where, labels, bare=bare)
            self.is_all, n_kept = own.execute(_N_KEPT).fetchall()[0]
            if not n_kept:
                raise _nothing_kept(where, labels)
            if not self.is_all:
                self._fill(own, settings, bare=bare)
        finally:
            own.close()

    def _fill(self, con: duckdb.DuckDBPyConnection, settings: Settings, *, bare: bool) -> None:
        # They load Polars, which a question of all documents does without.
        from graphrag_pipeline.query.labelled_index import make_index
        from graphrag_pipeline.query.limited_reports import write_stand_ins

        if self.is_index:
            make_index(con, settings, DOCUMENTS if bare else "published.documents")
            _take_views(con, _VISIBLE_VIEWS)
            return
        con.execute(
            files("graphrag_pipeline.query").joinpath("limited_release.sql").read_text("utf-8")
        )
        if bare:
            con.execute(_BARE_DOCUMENTS)
        _take_views(con, _VIEWS)
        write_stand_ins(con, settings.reports)


def _take_views(con: duckdb.DuckDBPyConnection, views: Sequence[str]) -> None:
    for view in views:
        row = con.execute(_VIEW_SQL, [view]).fetchone()
        if row:
            con.execute(row[0])


def checked_labels(labels: Collection[str] | None) -> Labels:
    """Return labels as they are compared; raises InputError for what is none."""
    if labels is None:
        return None
    if isinstance(labels, str) or not all(isinstance(label, str) and label for label in labels):
        raise InputError(f"labels = {labels!r}: must be a list of labels, each a text")
    return frozenset(labels)


def known_labels(con: duckdb.DuckDBPyConnection, labels: frozenset[str]) -> frozenset[str]:
    """Return those of some labels that some document of a release has."""
    return labels & {label for (label,) in con.execute(_KNOWN_LABELS).fetchall()}


def checked_where(where: object) -> Where:
    """Return a filter as it is applied; raises InputError for what is none."""
    if not isinstance(where, Mapping):
        raise InputError('where must be a mapping of metadata to values, such as {"year": "2020"}')
    checked: dict[str, tuple[str, ...]] = {}
    for key, value in where.items():
        values = value if isinstance(value, list | tuple | set | frozenset) else [value]
        if not isinstance(key, str) or not key or not values or len(values) > _MOST_VALUES:
            raise InputError(
                f"where: {key!r} must be a name of metadata with 1 to {_MOST_VALUES:,} values"
            )
        checked[key] = tuple(sorted({_as_text(key, each) for each in values}))
    if len(checked) > _MOST_KEYS:
        raise InputError(f"where has {len(checked)} keys: at most {_MOST_KEYS} are possible")
    return dict(sorted(checked.items()))


def described(where: Where) -> str:
    """Return a filter in words, on one line."""
    parts = (f"{key} = {' or '.join(map(repr, values))}" for key, values in where.items())
    return " and ".join(parts)


def whole_ids(table: str) -> str:
    """Return the query for the rows of a vector table that a limited search may find."""
    return _WHOLE[table]


def found_within(
    search: Callable[[int, Sequence[str] | None], pa.Table], ids: frozenset[str], k: int
) -> pa.Table:
    """Return the first ``k`` hits of a search that have one of these ids.

    ``search`` takes how many hits to return, and the only ids to look at, or None for all.
    """
    import pyarrow as pa

    n_asked = _WIDER * k
    while True:
        if n_asked > _WIDEST * k and len(ids) <= _FEW:
            return search(k, sorted(ids))
        hits = search(n_asked, None)
        within = hits.filter(pa.array([key in ids for key in hits["id"].to_pylist()], pa.bool_()))
        if len(within) >= k or len(hits) < n_asked:
            return within.slice(0, k)
        n_asked *= _WIDER


def _as_text(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise InputError(f"where: a value of {key!r} must be text, a number, true or false")
    return str(value)


def _nothing_kept(where: Where, labels: Labels) -> InputError | AccessError:
    if where:
        return InputError(f"no document has {described(where)}: change the filter")
    return AccessError(
        f"no document is open to {labelled(labels or frozenset())}: use other labels"
    )


def labelled(labels: frozenset[str]) -> str:
    """Return labels in words."""
    if not labels:
        return "somebody without a label"
    return f"the label{'s' * (len(labels) > 1)} {', '.join(sorted(labels))}"


def _keep_documents(
    con: duckdb.DuckDBPyConnection, where: Where, labels: Labels, *, bare: bool
) -> None:
    parameters: dict[str, object] = {}
    values, conditions = ["NULL AS nothing"], ["true"]
    if labels is not None:
        parameters["labels"] = sorted(labels)
        conditions.append(_OPENED)
    for n, (key, wanted) in enumerate(where.items()):
        parameters[f"wanted{n}"] = list(wanted)
        if key in _COLUMNS:
            matches = f"list_contains($wanted{n}, {key})"
            by_name = f"id IN (SELECT id FROM {DOCUMENTS} WHERE {matches})"
            conditions.append(f"({matches} OR {by_name})" if bare else matches)
            continue
        parameters[f"key{n}"] = "/" + key.replace("~", "~0").replace("/", "~1")
        values.append(_VALUES.format(n=n))
        conditions.append(f"list_has_any(values{n}, $wanted{n})")
    sql = _MATCHING.format(values=", ".join(values), conditions=" AND ".join(conditions))
    con.execute(sql, parameters)


def _drop(con: duckdb.DuckDBPyConnection, name: str) -> None:
    import duckdb

    with contextlib.suppress(duckdb.Error):
        own = con.cursor()
        own.execute(f"DETACH {name}")
        own.close()
