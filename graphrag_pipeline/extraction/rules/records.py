"""Mentions in records: a record's title, related to what each of its fields names.

Works on the blocks that the reader of records leaves: lines of the kinds ``title``, ``field``,
``key`` and ``value``. Keys are looked up when all records are known, by the graph.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphrag_pipeline.core.lazy import LazyModule
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import (
    SEPARATOR,
    column_of,
    field_head,
    field_words,
    names_nothing,
    relation_of,
)
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.extraction.mentions import (
    ENTITY_MENTIONS,
    RELATIONSHIP_MENTIONS,
    Extraction,
)
from graphrag_pipeline.extraction.rules.cjk import find_cjk
from graphrag_pipeline.extraction.rules.entity_types import (
    CONCEPT,
    EVENT,
    GEO,
    ORGANIZATION,
    OTHER,
    PERSON,
    WORK,
    ends_as_firm,
    is_listed_given,
    is_surname,
)
from graphrag_pipeline.extraction.rules.names import find_names
from graphrag_pipeline.extraction.rules.sentences import sentence_spans
from graphrag_pipeline.extraction.rules.tokens import read_tokens
from graphrag_pipeline.extraction.rules.uncased import find_uncased
from graphrag_pipeline.extraction.rules.words import usually_lower

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LazyModule("polars")

RECORD_KINDS = ("title", "field", "key", "value", "fact")
"""The kinds of blocks that are lines of a record; a fact is a field of what a document is about."""
_NAMING = ("field", "fact")

_WORDS = word_lists("nlp_records.txt")
_TYPES = (
    ("person", PERSON),
    ("place", GEO),
    ("organisation", ORGANIZATION),
    ("event", EVENT),
    ("work", WORK),
)
_RECORDS_OF = tuple((f"of_{name}", kind) for name, kind in _TYPES if f"of_{name}" in _WORDS)
_DESCRIPTION = 400
_SHORTEST_WORD = 3
_MOST_PIECES = 32
_BETWEEN = pattern_of(r"\s*[;|]\s*")
_COMMA = pattern_of(r"\s*,\s*(?:and\s+)?|\s+(?:and|&)\s+")
_RAW_WORD = pattern_of(r"[^\W\d_]+")

Piece = tuple[int, int, str, str]
"""A name in a value: its span in the value, its title and its type."""


def extract_records(chunks: pl.DataFrame) -> Extraction:
    """Return the mentions in the lines of records that chunks hold.

    Chunks have ``id``, ``text``, ``blocks``, ``subject`` (what their record is called, null where
    it has no name), ``is_first`` and ``is_last`` (whether they begin and end where their document
    does). A line that is cut off at the edge of a chunk is left to the chunk that has it whole.
    """
    lines = _lines(chunks).filter(~_adds_up(pl.col("subject")))
    names = _names(lines.filter(pl.col("kind").is_in(["title", *_NAMING])))
    subjects = _subjects(lines, names)
    fields = names.filter(pl.col("kind").is_in(_NAMING))
    told = (
        _with_subject(fields)
        .with_columns(
            description=pl.concat_str(
                "subject", pl.lit(" — "), "column", pl.lit(SEPARATOR), "title"
            )
        )
        .with_columns(weight=pl.lit(1.0))
    )
    relationships = told.filter(pl.col("subject").is_not_null() & ~pl.col("is_subject")).select(
        chunk_id="id",
        source="subject",
        target="title",
        description="description",
        weight="weight",
        start_char="line_start",
        end_char="line_end",
        type="relation",
    )
    own = pl.concat_str("column", pl.lit(SEPARATOR), "title")
    entities = told.select(
        chunk_id="id",
        title="title",
        type="type",
        description=pl.when("is_subject").then(own).otherwise(pl.coalesce("description", own)),
        start_char="start",
        end_char="end",
    )
    return Extraction(
        pl.concat([subjects, entities]).cast(pl.Schema(ENTITY_MENTIONS)),
        relationships.cast(pl.Schema(RELATIONSHIP_MENTIONS)),
    )


def prose_of(chunks: pl.DataFrame) -> pl.DataFrame:
    """Return chunks without the lines of records: blank lines of the same length stand for them.

    Chunks that hold nothing else are left out.
    """
    is_record = pl.col("blocks").list.eval(pl.element().struct["kind"].is_in(RECORD_KINDS))
    holds_record = chunks.select(is_record.list.any().fill_null(value=False)).to_series()
    if not holds_record.any():
        return chunks
    records = chunks.filter(holds_record)
    records = records.filter(_holds_prose(records))
    texts = [
        _blanked(text, blocks) for text, blocks in records.select("text", "blocks").iter_rows()
    ]
    records = records.with_columns(text=pl.Series(texts, dtype=pl.String))
    return pl.concat([chunks.filter(~holds_record), records])


def _holds_prose(chunks: pl.DataFrame) -> pl.Series:
    """Return which chunks hold anything beside the lines of records."""
    lines = (
        chunks.select("text", "blocks", chunk=pl.int_range(pl.len()))
        .explode("blocks")
        .unnest("blocks")
        .filter(pl.col("kind").is_in(RECORD_KINDS))
    )
    place = pl.col("end").shift(1, fill_value=0).over("chunk")
    before = pl.col("text").str.slice(place, pl.col("start") - place)
    after = pl.col("text").last().str.slice(pl.col("end").last())
    is_prose = (
        lines.with_columns(is_prose=before.str.contains(r"\S"))
        .group_by("chunk", maintain_order=True)
        .agg(pl.col("is_prose").any() | after.str.contains(r"\S"))
    )
    return is_prose["is_prose"]


def _blanked(text: str, blocks: list[dict[str, object]]) -> str:
    parts: list[str] = []
    place = 0
    for block in blocks:
        start, end = int(str(block["start"])), int(str(block["end"]))
        if block["kind"] in RECORD_KINDS:
            parts += [text[place:start], "\n" * (end - start)]
            place = end
    return "".join([*parts, text[place:]])


def _lines(chunks: pl.DataFrame) -> pl.DataFrame:
    """Return the whole lines of records in chunks: id, subject, kind, start, end, line."""
    length = pl.col("text").str.len_chars()
    is_whole = (pl.col("is_first") | (pl.col("start") > 0)) & (
        pl.col("is_last") | (pl.col("end") < length)
    )
    return (
        chunks.select("id", "text", "subject", "is_first", "is_last", "blocks")
        .explode("blocks")
        .unnest("blocks")
        .filter(pl.col("kind").is_in(RECORD_KINDS))
        .with_columns(opens=pl.col("is_first") & (pl.col("start").min().over("id") == 0))
        .filter(is_whole)
        .select(
            "id",
            "subject",
            "opens",
            "kind",
            "start",
            "end",
            line=pl.col("text").str.slice(pl.col("start"), pl.col("end") - pl.col("start")),
        )
    )


def _adds_up(subject: pl.Expr) -> pl.Expr:
    """Whether a record is called as a row that adds up the others of its table, in any case."""
    bare = subject.str.strip_chars(" *:.").str.to_lowercase().str.replace_all(r"\s+", "_")
    return bare.is_in(sorted(_WORDS["total"])).fill_null(value=False)


def _names(lines: pl.DataFrame) -> pl.DataFrame:
    """Return what lines name: a row for each name, with its column, title, type and span."""
    parts = pl.col("line").str.splitn(SEPARATOR, 2).struct
    lines = lines.with_columns(path=parts["field_0"], value=parts["field_1"]).drop_nulls("value")
    distinct = lines.select("kind", "path", "value").unique(maintain_order=True)
    pieces = [
        [dict(zip(("from", "to", "title", "type"), piece, strict=True)) for piece in found]
        for found in (names_in_field(*row) for row in distinct.iter_rows())
    ]
    shape = pl.Struct({"from": pl.Int64, "to": pl.Int64, "title": pl.String, "type": pl.String})
    distinct = distinct.with_columns(
        pl.Series("piece", pieces, dtype=pl.List(shape)),
        column=pl.Series([column_of(path) for path in distinct["path"]], dtype=pl.String),
        relation=pl.Series([relation_of(path) for path in distinct["path"]], dtype=pl.String),
    )
    value_start = pl.col("start") + pl.col("path").str.len_chars().cast(pl.Int64) + len(SEPARATOR)
    return (
        lines.join(distinct, ["kind", "path", "value"], how="left", maintain_order="left")
        .explode("piece")
        .drop_nulls("piece")
        .unnest("piece")
        .select(
            "id",
            "subject",
            "opens",
            "kind",
            "column",
            "relation",
            "title",
            "type",
            start=value_start + pl.col("from"),
            end=value_start + pl.col("to"),
            line_start="start",
            line_end="end",
        )
    )


def _with_subject(fields: pl.DataFrame) -> pl.DataFrame:
    """Give names the subject they are related to: their record's, else its first name."""
    first = pl.col("title").first().over("id")
    takes_first = pl.col("subject").is_null() & pl.col("opens")
    return fields.with_columns(
        subject=pl.when(takes_first).then(first).otherwise("subject"),
        is_subject=takes_first & (pl.int_range(pl.len()).over("id") == 0),
    )


def _subjects(lines: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Return a mention of each record's title in each chunk that holds lines of it."""
    named = lines.drop_nulls("subject")
    said = pl.col("line").str.replace_all("\n", "; ", literal=True)
    is_said = (pl.col("kind") != "title") & ~pl.col("line").str.ends_with(SEPARATOR)
    told = named.group_by("id", maintain_order=True).agg(
        title=pl.col("subject").first(), said=said.filter(is_said).str.join("; ")
    )
    described = pl.concat_str("title", pl.lit(" — "), "said").str.slice(0, _DESCRIPTION)
    own = names.filter(pl.col("kind") == "title").unique("id", keep="first", maintain_order=True)
    hinted = told.join(_types_of_records(named), "id", how="left", maintain_order="left")
    return hinted.join(
        own.select("id", "type", "start", "end"), "id", how="left", maintain_order="left"
    ).select(
        chunk_id="id",
        title="title",
        type=pl.when(pl.col("type").is_in([OTHER, CONCEPT]))
        .then(pl.coalesce("hint", pl.lit(OTHER)))
        .otherwise(pl.coalesce("type", "hint", pl.lit(OTHER))),
        description=pl.when(pl.col("said") == "").then(pl.lit("")).otherwise(described),
        start_char="start",
        end_char="end",
    )


def _types_of_records(lines: pl.DataFrame) -> pl.DataFrame:
    """Return what the fields of a record say it is: rows of id and ``hint``, null if nothing."""
    fields = (
        lines.filter(pl.col("kind") != "title")
        .select("id", path=pl.col("line").str.split("\n"))
        .explode("path")
        .with_columns(pl.col("path").str.splitn(SEPARATOR, 2).struct["field_0"])
    )
    paths = fields["path"].unique().to_list()
    hints = {"path": paths, "hint": [_hint(path or "") for path in paths]}
    known = pl.DataFrame(hints, schema={"path": pl.String, "hint": pl.String}).drop_nulls()
    return (
        fields.join(known, "path")
        .group_by("id", "hint")
        .len()
        .sort("len", "hint", descending=[True, False])
        .unique("id", keep="first", maintain_order=True)
        .select("id", "hint")
    )


def _hint(path: str) -> str | None:
    words = set(field_words(path.split(".")[0]))
    if words & _WORDS["key"]:
        return None
    return next((kind for section, kind in _RECORDS_OF if words & _WORDS[section]), None)


def names_in_field(kind: str, path: str, value: str) -> list[Piece]:
    """Return the names in the value of a field; a title is one name, whatever it holds."""
    by_field, is_of_firms = _type_by_field(path), field_head(path) in _WORDS["person_or_firm"]
    if kind == "title":
        title = " ".join(value.split())
        type_of_record = _type_of_name(title, by_field, is_of_firms=is_of_firms)
        is_shop = is_of_firms and _is_shop(title)
        return [(0, len(value), title, ORGANIZATION if is_shop else type_of_record)]
    if value.casefold() in _WORDS["unit"] or (kind == "fact" and names_nothing(value)):
        return []
    pieces: list[Piece] = []
    for start, end in list(_pieces(path, value, by_field))[:_MOST_PIECES]:
        title = " ".join(value[start:end].split())
        if title:
            kind_of_name = _type(title, by_field, is_of_firms=is_of_firms)
            pieces.append((start, end, _turned(title, by_field), kind_of_name))
    return pieces


def _type_by_field(path: str) -> str:
    head = field_head(path)
    return next((kind for section, kind in _TYPES if head in _WORDS[section]), "")


def _type(title: str, by_field: str, *, is_of_firms: bool) -> str:
    if is_of_firms and _is_shop(title):
        return ORGANIZATION
    is_word = len(title.split()) == 1 and usually_lower(title.casefold())
    if title.islower() or (is_word and by_field != GEO):
        return CONCEPT
    return _type_of_name(title, by_field, is_of_firms=is_of_firms)


def _type_of_name(title: str, by_field: str, *, is_of_firms: bool) -> str:
    if by_field == PERSON:
        return _type_of_person(title, is_of_firms=is_of_firms)
    return by_field or type_of_name(title)


def _type_of_person(title: str, *, is_of_firms: bool) -> str:
    """Return what is named where a person is, which a firm may be by its own words."""
    by_words = type_of_name(title)
    if by_words == ORGANIZATION or not is_of_firms:
        return ORGANIZATION if by_words == ORGANIZATION else PERSON
    is_shop = ends_as_firm(title) or (title.isupper() and " " not in title)
    is_no_person = by_words in (OTHER, GEO) and _is_firm(title)
    return ORGANIZATION if is_shop or is_no_person else PERSON


def _is_shop(title: str) -> bool:
    """Say whether a name is that of a shop, with that of a branch or alone: no Douglas Adams."""
    first, _, others = title.partition(" ")
    may_be_person = others and (is_listed_given(first) or is_surname(first))
    return first.casefold() in _WORDS["shop"] and not may_be_person


def _is_firm(title: str) -> bool:
    """Say whether a name says what somebody is, deals in, or is of: Café Lumen, City of Bergen."""
    first, *others = title.split()
    if not others:
        return False
    # Mo Abdi, Bo Li: a word of two letters says nothing.
    says_what, says_in = (
        len(word) >= _SHORTEST_WORD and usually_lower(word.casefold()) and not is_surname(word)
        for word in (first, others[-1])
    )
    says_what = says_what and not is_listed_given(first)
    return says_what if "of" in others else says_what or says_in


def type_of_name(title: str) -> str:
    """Return the type that a name's own words give it, OTHER where they say nothing.

    It is read by itself, and where that is not one name as it stands within a sentence, where a
    word that most sentences may begin with is a part of it: Bank of Norland.
    """
    return _type_whole(title) or _type_whole(title, after="with ") or OTHER


def _type_whole(title: str, after: str = "") -> str:
    text = after + title
    sentences = sentence_spans(text)
    found = find_names(text, read_tokens(text, sentences, {}), sentences, dates=False)
    places = [name[:3] for name in found] + find_cjk(text) + find_uncased(text)
    types = Counter(kind for start, end, kind in places if end - start == len(title))
    return types.most_common(1)[0][0] if types else ""


def _pieces(path: str, value: str, by_field: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the names in a value that may list several."""
    if _BETWEEN.search(value):
        yield from _between(value, _BETWEEN)
        return
    listed = list(_between(value, _COMMA))
    is_list = len(listed) > 1 and "," in value
    if by_field == PERSON:
        is_list = len(listed) > 1 and all(" " in value[a:b].strip() for a, b in listed)
    elif not _is_plural(path):
        is_list = False
    yield from listed if is_list else [(0, len(value))]


def _between(value: str, separator: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    place = 0
    for match in separator.finditer(value):
        if match.start() > place:
            yield place, match.start()
        place = match.end()
    if place < len(value):
        yield place, len(value)


def _is_plural(path: str) -> bool:
    words, raw = field_words(path), _RAW_WORD.findall(path)
    return bool(words and raw) and raw[-1].lower() != words[-1]


def _turned(title: str, by_field: str) -> str:
    """Return a person's name in its usual order: ``Brandt, Ida`` is ``Ida Brandt``."""
    family, comma, given = title.partition(", ")
    is_turned = comma and by_field == PERSON and " " not in family and "," not in given
    return f"{given} {family}" if is_turned and given else title
