"""Entities and relationships from a model's answer in tuple format (paper, A.1 and E.1).

The format asked for is ``("entity"<|>title<|>type<|>description)`` and
``("relationship"<|>source<|>target<|>description)``, records parted by ``##``, the end marked by
``<|COMPLETE|>``. Models keep to it loosely, so a record is known by how it begins and
reaches to where the next one does; parentheses, quotes and ``##`` help but are not needed. What
cannot be read is left out. All of it takes time linear in the answer's length.

A relationship may have a strength, as a last field: see :mod:`.strength`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.extraction.model.tuple_fields import (
    ANY_QUOTE,
    BAR,
    COMPLETE,
    DELIMITERS,
    FULL,
    QUOTES,
    clean,
    record_end,
    split_fields,
)
from graphrag_pipeline.extraction.rules.entity_types import OTHER

TUPLES_VERSION: Final = "2"
"""Part of the extraction's version: another parser may find other records in the same answer."""

MAX_TITLE_CHARS: Final = 300
MAX_TYPE_CHARS: Final = 60

_HEAD_DELIMITER = (
    rf"(?:(?P<full>{FULL}|</?{BAR}|{BAR}>)|(?P<bar>{BAR})|(?P<comma>[,，;](?=[ \t]{{0,3}}"
    rf"[{QUOTES}])))"
)
_ENTITY, _RELATIONSHIP = "entity", "relationship"
_KINDS = "entit(?:y|ies)|relation(?:ship)?s?"
_KIND = pattern_of(_KINDS, re.IGNORECASE)
_HEAD = pattern_of(
    rf"(?P<kind>{_KINDS})(?P<close>{ANY_QUOTE}{{0,3}})[ \t]{{0,3}}"
    rf"{_HEAD_DELIMITER}",
    re.IGNORECASE,
)
_OTHER_HEAD = pattern_of(
    rf"\([ \t]{{0,3}}[{QUOTES}](?P<kind>[^{QUOTES}<>|()\n]{{1,60}})[{QUOTES}]{FULL}"
)
# What may stand before a record's first word: the end of what came before, then decoration.
_BEFORE_HEAD = pattern_of(
    rf"(?P<before>[\n#):：\]}}]|COMPLETE{BAR}>)(?P<mark>[ \t>•*`_-]*(?:\d{{1,3}}[.):][ \t`*]*)?)"
    rf"(?P<open>[(\[{{（][ \t]{{0,3}})?(?P<quote>{ANY_QUOTE}{{0,3}})\Z",
    re.IGNORECASE,
)
_LOOK_BACK = 40
_LABEL = pattern_of(rf"\n[^\n{BAR[1:-1]}]*\Z")
_NUMBER = r"[-−]?[0-9]{1,9}(?:[.,][0-9]{1,9})?(?: ?/ ?[0-9]{1,4})?"
_BARE_NUMBER = pattern_of(rf"\W{{0,3}}{_NUMBER}\W{{0,8}}")
_STRENGTH = pattern_of(
    rf"\W{{0,3}}(?:(?:[^\W\d]{{1,20}}\W{{1,3}}){{0,3}}{_NUMBER}|[^\W\d]{{1,20}})\W{{0,8}}"
)
_BEGINS_ANEW = pattern_of(rf"\s*(?:##|[(（]|{COMPLETE.pattern})", re.IGNORECASE)
_TEMPLATE = pattern_of(r"<[\w -]*>|\{+[\w -]*\}+")


@dataclass(frozen=True)
class ParsedEntity:
    """An entity as the model named it; ``type`` is upper case, OTHER where it gave none."""

    title: str
    type: str
    description: str


@dataclass(frozen=True)
class ParsedRelationship:
    """A relationship; its ends need not be among the entities: that is for the caller to settle."""

    source: str
    target: str
    description: str
    strength: float | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ParsedExtraction:
    """Records read from one answer, in its order; ``completed`` if it said that it was finished."""

    entities: tuple[ParsedEntity, ...]
    relationships: tuple[ParsedRelationship, ...]
    completed: bool

    @property
    def answered(self) -> bool:
        """Whether this was an answer at all: some record, or the marker that there are none.

        A refusal, an empty answer and mere prose are none, and the chunk counts as failed.
        """
        return self.completed or bool(self.entities or self.relationships)


def joined(pieces: Sequence[str], *, is_cut: bool = False) -> list[str]:
    """Return an answer that was given in pieces, as few texts as hold whole records.

    A piece that begins with a record is a text of its own, and the one before ends with its last
    whole record, as does the last of an answer that ``is_cut``; any other piece goes on in the
    middle of a record.
    """
    texts = [pieces[0]]
    for piece in pieces[1:]:
        if _BEGINS_ANEW.match(piece):
            before, _, last = texts[-1].rpartition("##")
            if not _is_closed(last) or piece.lstrip("# \n").startswith(last.strip()[:-1]):
                texts[-1] = before
            texts.append(piece)
        else:
            texts[-1] += piece
    before, _, last = texts[-1].rpartition("##")
    return [*texts[:-1], before] if is_cut and not _is_closed(last) else texts


def _is_closed(record: str) -> bool:
    return record.rstrip().endswith((")", "）"))


def merged(answers: Sequence[ParsedExtraction]) -> ParsedExtraction:
    """Return what several answers about one text gave; what a later one repeats counts once."""
    entities, relationships = list(answers[0].entities), list(answers[0].relationships)
    known = {_identity(record) for record in (*entities, *relationships)}
    for later in answers[1:]:
        entities += [e for e in later.entities if _identity(e) not in known]
        relationships += [r for r in later.relationships if _identity(r) not in known]
        known |= {_identity(record) for record in (*later.entities, *later.relationships)}
    return ParsedExtraction(
        tuple(entities),
        tuple(relationships),
        any(answer.completed for answer in answers),
    )


def _identity(record: ParsedEntity | ParsedRelationship) -> tuple[frozenset[str], str]:
    return _titles(record), " ".join(record.description.casefold().split())


@dataclass(frozen=True)
class _Head:
    """Head of a record: its ``start``, its ``end``, where the fields begin, and what parts them."""

    start: int
    end: int
    kind: str
    delimiter: str
    opened: bool


def parse_tuples(
    text: str,
    *,
    chunk_text: str | None = None,
    example_titles: Collection[str] = frozenset(),
) -> ParsedExtraction:
    """Read the entities and relationships of an answer, or of several put together.

    ``example_titles`` are the titles in the prompt's examples, as from :func:`example_titles`. A
    record that names one of them is dropped unless the title stands in ``chunk_text``, the text
    that the model was shown. Never raises, whatever the answer.
    """
    leaked = leaked_titles(example_titles, chunk_text)
    entities: list[ParsedEntity] = []
    relationships: list[ParsedRelationship] = []
    heads = _find_heads(text)
    for head, body in zip(heads, _bodies(text, heads), strict=True):
        record = _read(head, body)
        if record is None or _titles(record) & leaked:
            continue
        if isinstance(record, ParsedEntity):
            entities.append(record)
        else:
            relationships.append(record)
    is_finished = COMPLETE.search(text) is not None
    return ParsedExtraction(tuple(entities), tuple(relationships), is_finished)


def example_titles(examples: str) -> frozenset[str]:
    """Return the normalised titles that few-shot examples in tuple format name."""
    parsed = parse_tuples(examples)
    records = (*parsed.entities, *parsed.relationships)
    return frozenset(title for record in records for title in _titles(record))


def leaked_titles(titles: Collection[str], chunk_text: str | None) -> frozenset[str]:
    """Return the normalised form of those example titles that the text does not name."""
    folded = " ".join(unicodedata.normalize("NFKC", chunk_text or "").casefold().split())
    keys = frozenset(map(normalize_title, titles))
    return frozenset(key for key in keys if not _names(folded, key))


def _names(folded: str, key: str) -> bool:
    if not key.isascii() or key not in folded:
        return key in folded
    return re.search(rf"(?<![a-z0-9]){re.escape(key)}(?![a-z0-9])", folded) is not None


def _find_heads(text: str) -> list[_Head]:
    heads = [head for found in _HEAD.finditer(text) if (head := _head(text, found))]
    heads += [head for found in _OTHER_HEAD.finditer(text) if (head := _other_head(text, found))]
    return sorted(heads, key=lambda head: head.start)


def _head(text: str, found: re.Match[str]) -> _Head | None:
    before = _before(text, found.start())
    if before is None:
        return None
    opened, quoted = before["open"] is not None, bool(before["quote"])
    # A field that happens to end in the word "entity" closes a quote which it did not open.
    if found["close"] and not quoted and not opened:
        return None
    delimiter = next(name for name in DELIMITERS if found[name])
    if delimiter != "full" and not opened:
        return None
    kind = _ENTITY if found["kind"].lower().startswith("entit") else _RELATIONSHIP
    decoration = len(before["mark"]) + len(before["open"] or "") + len(before["quote"])
    return _Head(found.start() - decoration, found.end(), kind, delimiter, opened)


def _other_head(text: str, found: re.Match[str]) -> _Head | None:
    if _KIND.fullmatch(found["kind"]) or _before(text, found.start() + 1) is None:
        return None
    return _Head(found.start(), found.end(), found["kind"], "full", True)


def _before(text: str, end: int) -> re.Match[str] | None:
    """Match what stands before a record's first word, or None if none can begin there."""
    window = text[end - _LOOK_BACK : end] if end > _LOOK_BACK else "\n" + text[:end]
    before = _BEFORE_HEAD.search(window)
    # "Entities:" before a record is a label; a colon further into a line is someone's sentence.
    if before and before["before"] in (":", "：") and not _LABEL.search(window):
        return None
    return before


def _bodies(text: str, heads: Sequence[_Head]) -> Iterator[str]:
    """Return the text of each record's fields, without what follows its end."""
    ends = [*(head.start for head in heads[1:]), len(text)]
    for head, end in zip(heads, ends, strict=False):
        body = text[head.end : end]
        complete = COMPLETE.search(body)
        yield body[: complete.start()] if complete else body


def _read(head: _Head, body: str) -> ParsedEntity | ParsedRelationship | None:
    """Return the record, None where it is of another kind, or lacks fields or a title."""
    fields = split_fields(body, head.delimiter)
    if head.kind not in (_ENTITY, _RELATIONSHIP) or len(fields) < 3:
        return None
    first, second = (clean(body[start:end]) for start, end in fields[:2])
    if head.kind == _ENTITY and _is_title(first):
        description = clean(record_end(body[fields[2][0] :], opened=head.opened))
        return ParsedEntity(first, _type(second), description)
    if head.kind == _RELATIONSHIP and _is_title(first) and _is_title(second):
        text = _description_and_strength(body, fields, head.opened)
        return ParsedRelationship(first, second, *text)
    return None


def _description_and_strength(
    body: str, fields: Sequence[tuple[int, int]], opened: bool
) -> tuple[str, float | None]:
    """Return a relationship's description, which may itself hold a delimiter, and its strength."""
    last = clean(record_end(body[fields[-1][0] :], opened=opened))
    if len(fields) > 3 and _STRENGTH.fullmatch(last):
        return clean(body[fields[2][0] : fields[-2][1]]), _number(last)
    if len(fields) == 3 and _BARE_NUMBER.fullmatch(last):
        return "", _number(last)
    return clean(record_end(body[fields[2][0] :], opened=opened)), None


def _number(strength: str) -> float | None:
    """Return the number of a strength, such as ``strength: 6,5`` or ``8/10``; a word has none."""
    found = re.search(r"[-−]?[0-9]+(?:[.,][0-9]+)?", strength)
    return float(found[0].replace(",", ".").replace("−", "-")) if found else None


def _is_title(title: str) -> bool:
    """Whether it names something: not too long, and no placeholder such as <source>."""
    is_named = any(map(str.isalnum, title)) and len(title) <= MAX_TITLE_CHARS
    return is_named and not _TEMPLATE.fullmatch(title)


def _type(kind: str) -> str:
    plain = kind.strip(" <>[](){}.,;:").upper()
    return plain if plain and len(plain) <= MAX_TYPE_CHARS else OTHER


def _titles(record: ParsedEntity | ParsedRelationship) -> frozenset[str]:
    if isinstance(record, ParsedEntity):
        return frozenset([normalize_title(record.title)])
    return frozenset([normalize_title(record.source), normalize_title(record.target)])
