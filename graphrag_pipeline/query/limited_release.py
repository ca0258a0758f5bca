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
import functools
import itertools
import json
import re
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from graphrag_pipeline.core.errors import AccessError, InputError
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import fold
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.store.bare_names import DOCUMENTS

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from graphrag_pipeline.core.settings import Settings

Where = Mapping[str, tuple[str, ...]]
"""Keys of metadata, or ``title`` and ``uri``, and for each the values of which one must be met.

In a value a ``*`` stands for anything, in any case but of a ``uri``, which may be a folder, or a
file of many records. ``label`` is metadata, too, or a label that opens the document. Metadata is
met in any case but that of labels, and a year or a month by the days in it. A key that
ends with ``>`` or ``<`` asks for values that are at least, or at most, a number or a date.
"""

_MOST_KEYS, _MOST_VALUES = 20, 1000
_MOST_STARS = 5
_MOST_NAMED = 5
_MONTH_AND_DAY = r"-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01])%s)?"
_NUMBER_OR_DATE = pattern_of(rf"-?\d+(?:\.\d+)?|\d{{4}}{_MONTH_AND_DAY % '(?:[T ][0-9:.]+)?'}")
_YEAR_OR_LONGER = pattern_of(rf"[12]\d{{3}}(?:{_MONTH_AND_DAY % ''})?")
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
    "homonyms",
    "edges",
)
_VISIBLE_VIEWS = ("entity_names", "homonyms", "edges")
"""Those of them that an index gets when it is published."""
_VIEW_SQL = """
SELECT sql FROM duckdb_views() WHERE database_name = 'published' AND view_name = ?
"""
# A value of metadata may be a list, which readers join by commas: then one of it is enough.
_MATCHING = """
SELECT id FROM (
    SELECT id, title, uri, source, {values} FROM published.documents)
WHERE {conditions} {newest}
"""
# Documents are versions of one where their titles, and the folders they lie in, differ in numbers,
# months and words as "draft" alone. What has no date stays.
_OF_NEWEST = """
QUALIFY (values{n}[1] < max(values{n}[1]) FILTER ({is_date}) OVER (PARTITION BY {title}, {folder})
         AND {is_date}) IS NOT TRUE
"""
_IS_DATE = r"regexp_matches(values{n}[1], '^\d{{4}}(-|$)')"
_FOLDER = "regexp_extract(uri, '^(.*)/', 1)"
_UNVERSIONED = r"""
list_filter(
    string_split(regexp_replace(strip_accents(lower({text})), '[\p{{P}}\p{{Z}}]+', ' ', 'g'), ' '),
    lambda w: NOT regexp_full_match(w, $versions))
"""
_OPENED = """
id IN (SELECT document_id FROM published.document_labels
       GROUP BY document_id HAVING bool_and(list_has_any(labels, ${labels}::JSON::VARCHAR[])))
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
_DATES_NAMED = r"""
regexp_extract_all(title || ' ' || uri,
    '(?:^|[^0-9.,-])((?:19|20)\d\d(?:-\d\d){{0,2}})(?:[^0-9]|$)', 1) AS values{n}
"""
_COLUMNS = {"title": ("title",), "uri": ("uri", "source")}
"""The columns that are met by name, each with those that a pattern of it is compared with."""
_LABEL = "label"
NEWEST = "newest-by"
"""Asks for the newest, by the dates of a key of metadata, of documents that are versions of one."""
NAMED = "date in its name"
"""Stands for a key of metadata: years and days in the title of a document, and in its path."""
_AS_WRITTEN = "list_has_any(values{n}, $wanted{n}::JSON::VARCHAR[])"
_IN_ANY_CASE = """
list_has_any(list_transform(values{n}, lambda v: lower(v)),
             list_transform($wanted{n}::JSON::VARCHAR[], lambda w: lower(w)))
"""
_LIKE = r"{column} {like} p ESCAPE '\'"
_NAMED_SO = "len(list_filter($patterns{n}::JSON::VARCHAR[], lambda p: {alike})) > 0"
_VALUE_NAMED_SO = f"len(list_filter(values{{n}}, lambda v: {_NAMED_SO})) > 0"
# The beginning of a date is compared, so that a day holds all its hours.
_COMPARED = """
len(list_filter(values{n}, lambda v: len(list_filter($wanted{n}::JSON::VARCHAR[], lambda w:
    coalesce(try_cast(v AS DOUBLE) {sign} try_cast(w AS DOUBLE),
             regexp_matches(v, '^\\d{{4}}(-|$)') AND regexp_matches(w, '^\\d{{4}}(-|$)')
             AND left(v, length(w)) {sign} left(w, length(v))))) > 0)) > 0
"""
_KEYS = "SELECT DISTINCT unnest(json_keys(metadata)) AS key FROM published.documents ORDER BY key"
_SOME_VALUES = """
SELECT DISTINCT value FROM (SELECT {value} AS value FROM {documents})
WHERE value IS NOT NULL ORDER BY value LIMIT $most
"""
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
                raise _nothing_kept(own, where, labels, bare=bare)
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
        key = key.removesuffix("=").rstrip() if key.rstrip("= ").endswith((">", "<")) else key
        checked[key] = tuple(sorted({_as_text(key, each) for each in values}))
        _check_values(key, checked[key])
    if len(checked) > _MOST_KEYS:
        raise InputError(f"where has {len(checked)} keys: at most {_MOST_KEYS} are possible")
    return dict(sorted(checked.items()))


def where_of(conditions: Sequence[str], called: str = "where") -> dict[str, list[str]]:
    """Return what KEY=VALUE conditions ask for.

    Raises InputError for one that is none; there they are ``called`` so.
    """
    where: dict[str, list[str]] = {}
    for condition in conditions:
        key, equals, value = condition.partition("=")
        if not (key.strip() and equals):
            raise InputError(
                f"{called} {condition!r}: write it as KEY=VALUE, as year=2020 or date>=2020-05"
            )
        where.setdefault(key.strip(), []).append(value.strip())
    return where


def described(where: Where) -> str:
    """Return a filter in words, on one line."""
    if NEWEST in where:
        others = described({key: values for key, values in where.items() if key != NEWEST})
        newest = f"the newest of each, by {where[NEWEST][0]}"
        return f"{others}, {newest}" if others else newest
    parts = (f"{key[:-1].rstrip()} {key[-1]}= " if _is_range(key) else f"{key} = " for key in where)
    values = (" or ".join(map(repr, each)) for each in where.values())
    return " and ".join(map("".join, zip(parts, values, strict=True)))


def whole_ids(table: str) -> str:
    """Return the query for the rows of a vector table that a limited search may find."""
    return _WHOLE[table]


def found_within(search: Callable[..., pa.Table], ids: frozenset[str], k: int) -> pa.Table:
    """Return the first ``k`` hits of a search that have one of these ids.

    ``search`` takes how many hits to return and, as ``among``, the only ids to look at.
    """
    import pyarrow as pa

    n_asked = _WIDER * k
    while True:
        if n_asked > _WIDEST * k and len(ids) <= _FEW:
            return search(k, among=sorted(ids))
        hits = search(n_asked)
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


def _is_range(key: str) -> bool:
    return len(key) > 1 and key[-1] in "<>"


def _check_values(key: str, values: tuple[str, ...]) -> None:
    for value in values:
        if _is_range(key) and not _NUMBER_OR_DATE.fullmatch(value):
            raise InputError(
                f"where: {key}={value} compares nothing: give a number, or a date as 2024-01-31"
            )
        if value.strip("*") and value.count("*") > _MOST_STARS:
            raise InputError(f"where: {value!r} has more than {_MOST_STARS} stars: use fewer")


def _patterns(key: str, values: Sequence[str]) -> list[str]:
    """Return patterns of LIKE for names: with stars, below a folder or in a file, within a time."""
    patterns: list[str] = []
    for value in values:
        literal = re.sub(r"([\\%_])", r"\\\1", value)
        # As a value of metadata, stars alone are a rating.
        if "*" in value and (key in _COLUMNS or value.strip("*")):
            patterns.append(literal.replace("*", "%"))
        elif key == "uri" and value.strip("/"):
            starts = [""] if value.startswith("/") else ["", "%/"]
            ends = ("/%",) if value.endswith("/") else ("", "/%", "#%")
            patterns += [f"{start}{literal.rstrip('/')}{end}" for start in starts for end in ends]
        elif key not in _COLUMNS and _YEAR_OR_LONGER.fullmatch(value):
            patterns += [f"{literal}{sign}%" for sign in "-T "]
    return patterns


def _nothing_kept(
    con: duckdb.DuckDBPyConnection, where: Where, labels: Labels, *, bare: bool
) -> InputError | AccessError:
    if where:
        # Who may not see everything is told nothing of what there is.
        there = "" if labels is not None else _what_there_is(con, where, bare=bare)
        return InputError(f"no document has {described(where)}: change the filter{there}")
    return AccessError(
        f"no document is open to {labelled(labels or frozenset())}: use other labels"
    )


def _what_there_is(con: duckdb.DuckDBPyConnection, where: Where, *, bare: bool) -> str:
    """Return what the first key that no document meets could be asked for, in words.

    Or which keys there are; or that each is met, but all of them by none.
    """
    for key, values in where.items():
        matched, wanted = matching({key: values}, None, bare=bare)
        if not con.execute(f"{matched} LIMIT 1", wanted).fetchall():
            break
    else:
        return "; each condition is met by some, and all of them by none"
    key = key[:-1].rstrip() if _is_range(key) else key
    keys = [*_COLUMNS, *(name for (name,) in con.execute(_KEYS).fetchall())]
    if key not in keys:
        return f"; documents have {', '.join(keys[:_MOST_KEYS])}"
    documents = DOCUMENTS if bare else "published.documents"
    parameters: dict[str, object] = {"most": _MOST_NAMED + 1}
    value = key
    if key not in _COLUMNS:
        parameters["key"] = pointer(key)
        value = "json_extract_string(metadata, $key)"
    sql = _SOME_VALUES.format(value=value, documents=documents)
    values = [repr(each) for (each,) in con.execute(sql, parameters).fetchall()]
    more = ", ..." if len(values) > _MOST_NAMED else ""
    return f"; there is {key} = {', '.join(values[:_MOST_NAMED])}{more}"


def labelled(labels: frozenset[str]) -> str:
    """Return labels in words."""
    if not labels:
        return "somebody without a label"
    return f"the label{'s' * (len(labels) > 1)} {', '.join(sorted(labels))}"


def _keep_documents(
    con: duckdb.DuckDBPyConnection, where: Where, labels: Labels, *, bare: bool
) -> None:
    sql, parameters = matching(where, labels, bare=bare)
    con.execute(f"CREATE TABLE kept_documents AS {sql}", parameters)


def matching(where: Where, labels: Labels, *, bare: bool) -> tuple[str, dict[str, str]]:
    """Return the query for the ids of published documents that a filter and labels match.

    And its parameters, by name: ``labels``, ``wanted0``, ``key0`` and so on; lists are JSON.
    """
    parameters: dict[str, str] = {}
    values, conditions, newest = ["NULL AS nothing"], ["true"], ""
    if labels is not None:
        parameters["labels"] = json.dumps(sorted(labels))
        conditions.append(_OPENED.format(labels="labels"))
    for n, (key, wanted) in enumerate(where.items()):
        parameters[f"wanted{n}"] = json.dumps(wanted)
        if key in _COLUMNS:
            conditions.append(_named(n, key, wanted, parameters, bare=bare))
            continue
        compared = _COMPARED.format(n=n, sign=f"{key[-1]}=") if _is_range(key) else ""
        of_key = wanted[0] if key == NEWEST else key[:-1].rstrip() if compared else key
        if of_key == NAMED:
            values.append(_DATES_NAMED.format(n=n))
        else:
            parameters[f"key{n}"] = pointer(of_key)
            values.append(_VALUES.format(n=n))
        if key == NEWEST:
            newest = _of_newest(n)
            parameters["versions"] = _version_words()
            del parameters[f"wanted{n}"]
            continue
        is_as_written = _AS_WRITTEN if key == _LABEL else _IN_ANY_CASE
        condition = compared or is_as_written.format(n=n)
        if not compared and key != _LABEL and (patterns := _patterns(key, wanted)):
            parameters[f"patterns{n}"] = json.dumps(patterns)
            alike = _LIKE.format(column="v", like="ILIKE")
            condition = f"({condition} OR {_VALUE_NAMED_SO.format(n=n, alike=alike)})"
        if key == _LABEL:
            # Whom else a document is open to is nobody's business.
            known = wanted if labels is None else labels.intersection(wanted)
            parameters[f"opening{n}"] = json.dumps(sorted(known))
            condition = f"({condition} OR {_OPENED.format(labels=f'opening{n}')})"
        conditions.append(condition)
    sql = _MATCHING.format(
        values=", ".join(values), conditions=" AND ".join(conditions), newest=newest
    )
    return sql, parameters


def _of_newest(n: int) -> str:
    return _OF_NEWEST.format(
        n=n,
        is_date=_IS_DATE.format(n=n),
        title=_UNVERSIONED.format(text="title"),
        folder=_UNVERSIONED.format(text=_FOLDER),
    )


@functools.cache
def _version_words() -> str:
    """Return the pattern of a word of a title that tells one version of it from another."""
    lists = word_lists("questions.txt")
    sections = ["version_words", *(f"month_{month}" for month in range(1, 13))]
    words = sorted({fold(word) for section in sections for word in lists[section]})
    return rf"(?:{'|'.join(words)})?\p{{N}}*(?:st|nd|rd|th)?"


def _named(
    n: int, key: str, wanted: Sequence[str], parameters: dict[str, str], *, bare: bool
) -> str:
    exact = named = f"list_contains($wanted{n}::JSON::VARCHAR[], {key})"
    if patterns := _patterns(key, wanted):
        parameters[f"patterns{n}"] = json.dumps(patterns)
        like = "LIKE" if key == "uri" else "ILIKE"
        alike = " OR ".join(_LIKE.format(column=column, like=like) for column in _COLUMNS[key])
        named = f"({exact} OR {_NAMED_SO.format(n=n, alike=alike)})"
    # By a pattern, a path of this machine could be guessed letter by letter.
    by_name = f"id IN (SELECT id FROM {DOCUMENTS} WHERE {named})"
    return f"({exact} OR {by_name})" if bare else named


def pointer(key: str) -> str:
    """Return the JSON pointer to a key of metadata."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


def _drop(con: duckdb.DuckDBPyConnection, name: str) -> None:
    import duckdb

    with contextlib.suppress(duckdb.Error):
        own = con.cursor()
        own.execute(f"DETACH {name}")
        own.close()
