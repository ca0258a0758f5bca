"""The key-less extractor: names and noun phrases by rule, related where they share a sentence."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphrag_pipeline.core.lazy import LazyModule
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.records import field_words
from graphrag_pipeline.core.text import normalize_title
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
    has_organisation_word,
    may_be_given,
)
from graphrag_pipeline.extraction.rules.given_names import full_names
from graphrag_pipeline.extraction.rules.letters import letter_parts, without
from graphrag_pipeline.extraction.rules.links import (
    LINKS_TO,
    blank_addresses,
    related_by_links,
    shown,
)
from graphrag_pipeline.extraction.rules.log_lines import blank_heads
from graphrag_pipeline.extraction.rules.names import Mention, find_names, outside
from graphrag_pipeline.extraction.rules.noun_phrases import find_noun_phrases
from graphrag_pipeline.extraction.rules.numbers import blank_formulas
from graphrag_pipeline.extraction.rules.records import type_of_name
from graphrag_pipeline.extraction.rules.repeated_terms import find_repeated_terms
from graphrag_pipeline.extraction.rules.sentences import Span, sentence_spans
from graphrag_pipeline.extraction.rules.tokens import Tokens, read_tokens
from graphrag_pipeline.extraction.rules.uncased import find_uncased, is_cyrillic
from graphrag_pipeline.extraction.rules.words import Lexicon, usually_lower

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LazyModule("polars")

NLP_VERSION = "34"
_DESCRIPTION = 400
_CARRIED = 6
_SLICE = 200  # chunks
_SUBJECTS = frozenset((PERSON, ORGANIZATION, GEO, EVENT, WORK, OTHER))
_TOTAL = "|".join(
    re.escape(words).replace("_", " ") for words in sorted(word_lists("nlp_records.txt")["total"])
)
_ROW = pattern_of(rf"(?![ |*_]*(?:{_TOTAL})[ *_:.]*(?:\||$))[^\n]*[^\W_][^\n]*", re.I | re.M)
"""One that adds up the others names nothing."""
_HEAD = pattern_of(r"[^\n]*\n[|: +-]*--[|: +-]*(?:\n|$)")
_SHORT = 3  # letters of a nickname, whatever word it is besides
_AUTHOR = r"[^\W\d_a-z][^\W_]*(?:[ .'’-]{1,2}[^\W\d_]+){0,3}"
_MESSAGE = pattern_of(
    r"^\[(?:\d{4}-\d\d-\d\d(?: \d\d:\d\d)?|\d\d:\d\d|undated)\] (?P<author>[^:：\n]{1,80}?)"
    r"(?: to (?P<recipients>[^:\n]{1,300}))?(?::(?=\s)|：)",
    re.MULTILINE,
)
_LABEL = pattern_of(
    r"\n[ \t>*_:-]{0,9}(?P<label>[^\W\d_]+(?:[ /-]{1,3}[^\W\d_]+){0,3})"
    r"[*_]{0,2}:(?=[ \t*_\n]|$)"
)
_LABELS = frozenset((word,) for words in word_lists("nlp_records.txt").values() for word in words)
_LISTED = pattern_of(rf"(?:(?<=\] )|(?<=, )|(?<= to )){_AUTHOR}(?=,|$| and \d)")
_PRONOUN = pattern_of(r"(He|She|It|They|His|Her|Its|Their)\b")


_Named = tuple[str, Mention]
"""The title of a mention, which of a given name is the full one, and the mention."""

Block = tuple[int, int, str]
"""Characters [start, end) of a text, and what they are: heading, code, table or list."""


@dataclass(frozen=True)
class NlpOptions:
    """Options that say what to look for.

    ``window`` bounds the pairs of a crowded sentence: above ``max_mentions_for_all_pairs``
    mentions, each is related only to the ``window`` that follow it.
    """

    noun_phrases: bool = True
    dates: bool = True
    max_title_words: int = 6
    max_mentions_for_all_pairs: int = 12
    window: int = 4


def extract_nlp(chunks: pl.DataFrame, options: NlpOptions) -> Extraction:
    """Return the mentions in chunks, each chunk read on its own.

    Columns: ``id``, ``text``, and where there are any ``blocks``, what is no running prose
    (lists of structs of ``start``, ``end`` and ``kind``), and ``title``, what the document is
    called: it is related to what the document links to.
    """
    lexicons: dict[str, Lexicon] = {}
    entities = [pl.DataFrame(schema=ENTITY_MENTIONS)]
    relationships = [pl.DataFrame(schema=RELATIONSHIP_MENTIONS)]
    # A row of Python objects takes several times the memory of a row of columns.
    for part in chunks.iter_slices(_SLICE):
        read = [
            (chunk_id, _read(text, blocks, options, lexicons), title)
            for (chunk_id, text, blocks), title in zip(
                _with_blocks(part), _titles(part), strict=True
            )
        ]
        named = [(key, *row) for key, reading, _ in read for row in reading.entities()]
        related = [
            (key, *row, "") for key, reading, _ in read for row in reading.relationships(options)
        ]
        for key, reading, title in read:
            linked = list(reading.linked(title))
            named += [(key, *row) for row in reading.linked_entities(title, linked)]
            related += [(key, *row) for row in linked]
        entities.append(_frame(named, ENTITY_MENTIONS))
        relationships.append(_frame(related, RELATIONSHIP_MENTIONS))
    return Extraction(pl.concat(entities), pl.concat(relationships))


def _frame(rows: Sequence[tuple[object, ...]], schema: Mapping[str, type]) -> pl.DataFrame:
    """Return rows as a frame, made column by column, which takes half the time."""
    return pl.DataFrame(dict(zip(schema, zip(*rows, strict=True), strict=False)), schema=schema)


def _titles(chunks: pl.DataFrame) -> Iterator[str]:
    given = chunks["title"] if "title" in chunks.columns else [""] * len(chunks)
    return (" ".join((title or "").split()) for title in given)


def chunk_names(chunks: pl.DataFrame) -> pl.DataFrame:
    """Return the names in chunks (see :func:`extract_nlp`): rows of (chunk_id, title)."""
    lexicons: dict[str, Lexicon] = {}
    rows = [
        (chunk_id, name)
        for chunk_id, text, blocks in _with_blocks(chunks)
        for name in names_in(text, blocks, lexicons)
    ]
    return pl.DataFrame(rows, schema={"chunk_id": pl.String, "title": pl.String}, orient="row")


def _with_blocks(chunks: pl.DataFrame) -> Iterator[tuple[str, str, Sequence[Block]]]:
    columns = ["id", "text", *(["blocks"] if "blocks" in chunks.columns else [])]
    for chunk_id, text, *blocks in chunks.select(columns).iter_rows():
        given = blocks[0] or () if blocks else ()
        yield chunk_id, text or "", [(b["start"], b["end"], b["kind"]) for b in given]


def names_in(
    text: str, blocks: Sequence[Block] = (), lexicons: dict[str, Lexicon] | None = None
) -> list[str]:
    """Return the names in a text, each once, in order: what :func:`extract_nlp` would find.

    ``lexicons`` is a cache, filled as needed.
    """
    lexicons = {} if lexicons is None else lexicons
    reading = _read(text, blocks, NlpOptions(noun_phrases=False, dates=False), lexicons)
    names = [name for mentions in reading.mentions.values() for name in mentions.values()]
    return list(dict.fromkeys(title for title, _ in names))


@dataclass(frozen=True)
class _Reading:
    sentences: list[Span]
    mentions: dict[int, dict[str, _Named]]
    topics: dict[int, _Named]
    written: str
    """The text with the addresses of its links and the heads of a log, blank in what was read."""
    excerpts: dict[int, str] = field(default_factory=dict)

    def entities(self) -> Iterator[tuple[str, str, str, int, int]]:
        for number, mentions in self.mentions.items():
            for title, mention in mentions.values():
                said = self.excerpt(number, mention.start)
                yield title, mention.type, said, mention.start, mention.end

    def relationships(self, options: NlpOptions) -> Iterator[tuple[str, str, str, float, int, int]]:
        for number, in_sentence in self.mentions.items():
            start, end = self.sentences[number]
            mentions = list(in_sentence.values())
            pairs = [*_pairs(mentions, options), *self._carried(number, mentions)]
            for (source, first), (target, second) in pairs:
                around = first.start if first.sentence == number else second.start
                yield source, target, self.excerpt(number, around), 1.0, start, end

    def _carried(self, number: int, mentions: list[_Named]) -> Iterator[tuple[_Named, _Named]]:
        """Relate who a sentence's opening pronoun stands for to what the sentence names."""
        topic = self.topics.get(number)
        if topic is None:
            return
        if normalize_title(topic[0]) in self.mentions[number]:
            return
        for target in mentions[:_CARRIED]:
            yield topic, target

    def linked(self, title: str) -> Iterator[tuple[str, str, str, float, int, int, str]]:
        """Relate what the document is about to what it links to, by the sentence of the link."""
        if "](" not in self.written:
            return
        numbers = {span: number for number, span in enumerate(self.sentences)}
        for (start, _, target), span in related_by_links(self.written, title, self.sentences):
            said = self.excerpt(numbers[span], start)
            yield title, target, said, 1.0, *span, LINKS_TO

    def linked_entities(
        self, title: str, linked: Sequence[tuple[str, str, str, float, int, int, str]]
    ) -> Iterator[tuple[str, str, str, int | None, int | None]]:
        """Return what links relate and no sentence of the chunk names, but as a concept.

        Concepts of one chunk are no nodes, and a document is one: the gearbox, in gearbox.rst.
        """
        if not linked:
            return
        named = (row for mentions in self.mentions.values() for row in mentions.items())
        names = {name for name, (_, mention) in named if mention.type != CONCEPT}
        for about in [title] + [row[1] for row in linked]:
            if (name := normalize_title(about)) not in names:
                names.add(name)
                said, start, end = next(row[2:3] + row[4:6] for row in linked if about in row[:2])
                yield about, type_of_name(about), said, start, end

    def excerpt(self, number: int, around: int) -> str:
        start, end = self.sentences[number]
        if end - start > _DESCRIPTION:
            start = max(start, min(around - _DESCRIPTION // 4, end - _DESCRIPTION))
            return shown(self.written[start : start + _DESCRIPTION])
        if number not in self.excerpts:
            self.excerpts[number] = shown(self.written[start:end])
        return self.excerpts[number]


def _pairs(mentions: list[_Named], options: NlpOptions) -> Iterator[tuple[_Named, _Named]]:
    count = len(mentions)
    reach = count if count <= options.max_mentions_for_all_pairs else options.window
    for index, source in enumerate(mentions):
        for target in mentions[index + 1 : index + 1 + reach]:
            yield source, target


def _read(
    text: str, blocks: Sequence[Block], options: NlpOptions, lexicons: dict[str, Lexicon]
) -> _Reading:
    written, text = text, blank_heads(blank_formulas(blank_addresses(text)))
    formulas, correspondents = letter_parts(text)
    text = without(text, formulas) if formulas else text
    sentences = _with_addresses(_sentences(text, blocks), text, written)
    tokens = read_tokens(text, sentences, lexicons)
    mentions = find_names(text, tokens, sentences, dates=options.dates)
    mentions += outside(_terms(tokens, options), [b for b in blocks if b[2] == "table"])
    uncased = _uncased_mentions(text, sentences, blocks, options)
    mentions = _apart(mentions, [m for m in uncased if is_cyrillic(text[m.start])]) + uncased
    mentions = outside(mentions, list(_labels(text)))
    mentions = _with_people(text, sentences, mentions, correspondents)
    mentions.sort(key=lambda mention: (mention.start, -mention.end))
    by_sentence = _by_sentence(text, mentions)
    return _Reading(sentences, by_sentence, _topics(text, sentences, by_sentence), written)


def _sentences(text: str, blocks: Sequence[Block]) -> list[Span]:
    """Return the spans of the sentences: none in code, none over the edge of a block."""
    if not blocks:
        return sentence_spans(text)
    spans: list[Span] = []
    place = 0
    for start, end, kind in blocks:
        spans += _sentences_within(text, place, start)
        if kind == "table":
            spans += _rows(text, start, end)
        elif kind != "code":
            spans += _sentences_within(text, start, end)
        place = end
    return spans + _sentences_within(text, place, len(text))


def _with_addresses(sentences: list[Span], text: str, written: str) -> list[Span]:
    """Return sentences with the address of a link that ends one, which the text has blank."""
    if text == written:
        return sentences
    spans: list[Span] = []
    for start, end in sentences:
        after = end
        while after < len(text) and text[after] != written[after]:
            after += 1
        spans.append((start, after))
    return spans


def _rows(text: str, start: int, end: int) -> list[Span]:
    """Return the rows of a table, but for a head that a line of dashes tells from them."""
    head = _HEAD.match(text, start, end)
    rows = _ROW.finditer(text, head.end() if head else start, end)
    return [match.span() for match in rows]


def _sentences_within(text: str, start: int, end: int) -> list[Span]:
    return [(start + a, start + b) for a, b in sentence_spans(text[start:end])]


def _apart(mentions: list[Mention], others: list[Mention]) -> list[Mention]:
    """Return the mentions that share no character with any of the others, which are in order."""
    if not others:
        return mentions
    ends = [other.end for other in others]
    apart: list[Mention] = []
    for mention in mentions:
        after = bisect_right(ends, mention.start)
        if after == len(others) or others[after].start >= mention.end:
            apart.append(mention)
    return apart


def _topics(
    text: str, sentences: list[Span], mentions: dict[int, dict[str, _Named]]
) -> dict[int, _Named]:
    """Return, for sentences that open with a pronoun, the name it most likely stands for.

    He and she stand for the last sentence subject that is a person or of unknown type, it and
    they for the last subject of any type; a subject is the first name of a sentence.
    """
    topics: dict[int, _Named] = {}
    subject: _Named | None = None
    for number, (start, end) in enumerate(sentences):
        pronoun = _PRONOUN.match(text, start, end)
        if pronoun is None:
            subjects = (m for m in mentions.get(number, {}).values() if m[1].type in _SUBJECTS)
            subject = next(subjects, subject)
        elif subject is not None and (
            pronoun[1] in ("It", "Its", "They", "Their") or subject[1].type in (PERSON, OTHER)
        ):
            topics[number] = subject
    return topics


def _terms(tokens: Tokens, options: NlpOptions) -> list[Mention]:
    if not options.noun_phrases:
        return []
    if tokens.language == "en":
        return find_noun_phrases(tokens, options.max_title_words)
    return find_repeated_terms(tokens, options.max_title_words)


def _uncased_mentions(
    text: str, sentences: list[Span], blocks: Sequence[Block], options: NlpOptions
) -> list[Mention]:
    found = (*find_cjk(text), *find_uncased(text))
    wanted = [name for name in found if options.noun_phrases or name[2] != CONCEPT]
    mentions = _in_sentences(wanted, sentences)
    return outside(mentions, [b for b in blocks if b[2] == "code"]) if mentions else mentions


def _with_people(
    text: str, sentences: list[Span], mentions: list[Mention], correspondents: list[Span]
) -> list[Mention]:
    """Return mentions in which those who wrote messages or letters, and to whom, are people."""
    names = {*correspondents, *(_authors(text) if "] " in text else ())}
    if not names:
        return mentions
    people = [
        (start, end, PERSON)
        for start, end in sorted(names)
        if text[start:end].strip() and _may_be_person(text[start:end])
    ]
    return [*outside(mentions, people), *_in_sentences(people, sentences)]


def _in_sentences(names: Sequence[Block], sentences: list[Span]) -> list[Mention]:
    starts = [start for start, _ in sentences]
    return [Mention(*name, bisect_right(starts, name[0]) - 1) for name in names]


def _authors(text: str) -> Iterator[Span]:
    for match in _MESSAGE.finditer(text):
        for group in ("author", "recipients"):
            if match[group]:
                yield from (name.span() for name in _LISTED.finditer(text, *match.span(group)))


def _labels(text: str) -> Iterator[Block]:
    """Yield the words at the beginnings of lines that say what follows: Ort: Rathaus.

    Of several, capitals make a name: Harbour Museum.
    """
    if ":" in text:
        for match in _LABEL.finditer(f"\n{text}"):
            is_name = any(word[0].isupper() for word in match["label"].split()[1:])
            if not is_name and field_words(match["label"])[-1:] in _LABELS:
                yield match.start("label") - 1, match.end("label") - 1, "label"


def _may_be_person(name: str) -> bool:
    """Whether whoever writes a message by this name may be somebody, and no firm or program."""
    words = name.split()
    is_written_so = not any(len(word) > 1 and word[-1].isupper() for word in words)
    is_common = any(len(word) > _SHORT and usually_lower(word.lower()) for word in words)
    is_named = type_of_name(name) in (PERSON, OTHER)
    is_sure = may_be_given(words[0]) or not (is_common or has_organisation_word(words))
    return is_written_so and is_named and is_sure


def _by_sentence(text: str, mentions: list[Mention]) -> dict[int, dict[str, _Named]]:
    """Return the first mention of each name in each sentence, by the sentence and the name."""
    names = [" ".join(text[mention.start : mention.end].split()) for mention in mentions]
    kinds = [mention.type for mention in mentions]
    people = full_names(dict(zip(names, kinds, strict=True)))
    keys = {name: normalize_title(name) for name in {*names, *people.values()}}
    by_sentence: dict[int, dict[str, _Named]] = {}
    for name, kind, mention in zip(names, kinds, mentions, strict=True):
        title = people.get(name, name) if kind == PERSON else name
        named = by_sentence.setdefault(mention.sentence, {}) if keys[title] else {}
        named.setdefault(keys[title], (title, mention))
    return dict(sorted(by_sentence.items()))
