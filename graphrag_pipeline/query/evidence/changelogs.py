"""Changelogs: the version that a change stands below, what a version changed, when it came out.

"Which version added grouped targets?" is answered by the head far above the line that tells of
them, which says neither *added* nor *version*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prose import readable, readable_list
from graphrag_pipeline.core.text import fold, terms
from graphrag_pipeline.query.evidence.latest import (
    VERSION,
    asks_for_latest,
    asks_for_version,
    version_of,
)
from graphrag_pipeline.query.evidence.units import HEADING
from graphrag_pipeline.query.evidence.widening import RankedPassage
from graphrag_pipeline.query.operators.chunks import cite_text, documents_of
from graphrag_pipeline.query.operators.scoring import relevance
from graphrag_pipeline.query.question import AnalysedQuestion, bare_word, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.sentences import Sentence
    from graphrag_pipeline.query.release import Release

_CHANGED, _BRINGS_IN, _CAME_OUT, _WHAT_CHANGED, _DRAFT = (
    pattern_of(words_pattern(section))
    for section in ("changed", "brings_in", "came_out", "what_changed", "draft")
)
_OF_VERSIONS = words_pattern("edition")
_WHICH = pattern_of(rf"(?:{words_pattern('which')})\s+(?:\S+\s+){{0,2}}?(?:{_OF_VERSIONS})")
_WHAT = pattern_of(rf"{words_pattern('what')}|{words_pattern('which')}")
_ASKED = pattern_of(rf"{_WHICH.pattern}|{_CHANGED.pattern}|{_CAME_OUT.pattern}|{_OF_VERSIONS}")
_OF_HEADS = pattern_of(rf"{words_pattern('of_versions')}|{words_pattern('date_words')}")
_SINCE = pattern_of(words_pattern("since"))
# Lines that may be heads: short, no items, and apart from what is above them.
_LINE = pattern_of(
    r"(?:\A|(?<=\n\n)|(?<=[^\w\n]\n))(?! ?[-*•+>|] |\s{2,})[^\n]{0,70}?\d[^\n]{0,60}"
    r"(?=\n(?:\s|[-*•+=~_#]|\Z)|\Z)"
)
_NUMBERS = pattern_of(r"(?:versions?|release)\s+(\d+)(?:\s+(?:and|to)\s+(\d+))?\b")
_WORD = pattern_of(r"[^\W\d_][^\s\d]*")
# 2.9. Deletions
_SECTION = pattern_of(r"(?:\d+\.)+\s")
# What may date a version below its head, alone on its line.
_DATED = pattern_of(r"\s*[=~*-]*\s*(\W*\w[^\n]{0,20}?\b(?:19|20)\d\d\b[^\n]{0,20})(?=\n)")
_MOST_OTHER_WORDS = 2
_ITEM = pattern_of(r"\S(?:[^\n]|\n(?!\s*\n|\s*[-*•+] ))*")
_RUN_IN = pattern_of(r"\*\*[^*\n]{1,60}\*\*:?|[^.\n]{1,60}\n[=~*-]{3,}|[^.\n]{1,60}:")
_UNDERLINE = pattern_of(r"(?:^|\n)\s*[=~*_-]{3,}[ \t]*(?=\n|$)")
_APART = pattern_of(r"[-_.]")
_LONGEST, _MOST_VERSIONS, _MOST_TITLED = 1_200, 2, 50
_ALIKE, _SAYS_AS_MUCH = 0.98, 0.8
_TITLED = """
SELECT id FROM (
    SELECT id, len(list_intersect(
        string_split_regex(
            lower(concat_ws(' ', title, regexp_extract(uri, '[^/]*/[^/]*$'))), '[^\\w]|_'),
        $words::JSON::VARCHAR[])) AS n
    FROM documents)
WHERE n > 0 ORDER BY n DESC, id LIMIT $most
"""
_REMEMBERED = 16


class _Version(NamedTuple):
    """A version of a changelog: its number, where its head begins and ends, and its changes end."""

    number: str
    start: int
    body: int
    end: int


def told_by_changelog(
    index: Release, question: AnalysedQuestion, sentences: Sequence[Sentence]
) -> list[RankedPassage]:
    """Return what changelogs tell: of a version its date or its changes, of a change its version.

    Only of the documents that say most of what the question names beside these.
    """
    asked = question.folded
    number = next(_numbers_in(asked), "")
    is_of_change = _CHANGED.search(asked) is not None
    asks_which = _WHICH.search(asked) is not None
    asks_when = question.asks_for == "time"
    asks_latest = asks_for_version(question) and asks_for_latest(question)
    asks_version = asks_which or (asks_when and is_of_change)
    asks_changes = _WHAT_CHANGED.search(asked) or (is_of_change and _WHAT.match(asked))
    asks_date = asks_when and _CAME_OUT.search(asked)
    if not (asks_latest or asks_version or (number and (asks_changes or asks_date))):
        return []
    logs = _changelogs(index, question, sentences)
    if asks_version and not asks_latest:
        return _version_of_change(index, question, sentences, logs)
    logs = _named(question, logs)
    if asks_latest:
        return _latest(index, logs)
    for document in logs:
        own = [v for v in _versions(document["text"]) if _is_number(v.number, number)]
        own = [version for version in own if version.number == number] or own
        if own and asks_date:
            released = (v for v in own if not _DRAFT.search(fold(_shown(document["text"], v))))
            return [_head(index, document, next(released, own[0]))]
        if own:
            bare = question.without(_WHAT_CHANGED).without(VERSION)
            return _changes(index, document, own[:_MOST_VERSIONS], bare)
    return []


def _changelogs(
    index: Release, question: AnalysedQuestion, sentences: Sequence[Sentence]
) -> list[Mapping[str, Any]]:
    """Return the changelogs that are read, and those whose title or file a question names."""
    words = [word for word in map(bare_word, question.folded.split()) if len(word) > 1]
    titled = index.rows(_TITLED, words=words, most=_MOST_TITLED)
    ids = [*(s.document_id for s in sentences), *(row["id"] for row in titled)]
    documents = documents_of(index, list(dict.fromkeys(ids)))
    return [document for document in documents if _versions(document["text"])]


def _named(
    question: AnalysedQuestion, logs: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the changelogs that a question names most, all where it names none."""
    asked = frozenset(question.without(_ASKED).terms)
    said = [len(asked & _names(document)) for document in logs]
    return [log for log, n in zip(logs, said, strict=True) if n == max(said)]


def _names(document: Mapping[str, Any]) -> frozenset[str]:
    """Return the words by which a changelog may be called: of its title, file and first head."""
    first = _versions(document["text"])[0]
    file = _APART.sub(" ", " ".join(PurePosixPath(document["uri"] or "").parts[-2:]))
    head = document["text"][first.start : first.body]
    return frozenset(terms(f"{document['title']} {file} {head}"))


def _latest(index: Release, logs: Sequence[Mapping[str, Any]]) -> list[RankedPassage]:
    """Return the head of the newest version of the only changelog, or of those of one thing."""
    found = [(document, version) for document in logs for version in _versions(document["text"])]
    common = frozenset.intersection(*map(_names, logs)) if logs else frozenset[str]()
    if not common:
        return []
    newest = max(found, key=lambda row: version_of(row[1].number) or ((), ""))
    return [_head(index, *newest)]


def _version_of_change(
    index: Release,
    question: AnalysedQuestion,
    sentences: Sequence[Sentence],
    logs: Sequence[Mapping[str, Any]],
) -> list[RankedPassage]:
    """Return the change that says most to a question, if no other text says more, and its version.

    Of some that say as much the one of the oldest version; of a list none but its items.
    """
    every = {document["id"]: document for document in logs}
    own = [document["id"] for document in _named(question, logs)]
    names = frozenset[str]().union(*(_names(every[key]) for key in own))
    rest = question.without(_WHICH).without(_BRINGS_IN).split()
    rest = [word for word in rest if not terms(word) or not names.issuperset(terms(word))]
    bare = AnalysedQuestion(" ".join(rest))
    wanted = frozenset(bare.without(_CHANGED).terms)
    sentences = [sentence for sentence in sentences if not sentence.announces]
    quotes = [sentence.quote for sentence in sentences]
    scores = relevance(index, bare, quotes, sharing=True)
    found: list[tuple[float, _Version, Sentence]] = []
    beside = 0.0
    for sentence, score in zip(sentences, scores, strict=True):
        if sentence.document_id in own and _says_half(sentence.quote, wanted):
            text = every[sentence.document_id]["text"]
            above = [v for v in _versions(text) if v.body <= sentence.start < v.end]
            found += [(score, version, sentence) for version in above]
        elif sentence.document_id not in every:
            beside = max(beside, score)
    best = max((score for score, *_ in found), default=0.0)
    if not best or best < _SAYS_AS_MUCH * beside:
        return []
    alike = [row for row in found if row[0] >= _ALIKE * best]
    _, version, sentence = min(alike, key=lambda row: version_of(row[1].number) or ((), ""))
    head = _shown(every[sentence.document_id]["text"], version)
    (said,) = readable([sentence.unnumbered])
    return [RankedPassage(f"{head}: {said}", 1.0, sentence.citation)]


def _says_half(text: str, words: frozenset[str]) -> bool:
    return 2 * len(words.intersection(terms(text))) >= len(words)


def _head(index: Release, document: Mapping[str, Any], version: _Version) -> RankedPassage:
    citation = cite_text(index, document, version.start, version.body)
    return RankedPassage(_shown(document["text"], version), 1.0, citation)


def _changes(
    index: Release,
    document: Mapping[str, Any],
    versions: Sequence[_Version],
    bare: AnalysedQuestion,
) -> list[RankedPassage]:
    """Return what versions changed: all that says the rest of a question, from the beginning."""
    text, names = document["text"], _names(document)
    all_words, nouns = (frozenset(q.terms) - names for q in (bare, bare.without(_CHANGED)))
    wanted = (all_words, nouns) if nouns else (all_words,)
    told: list[RankedPassage] = []
    for version in versions:
        items = [item[0] for item in _ITEM.finditer(text[version.body : version.end])]
        of_words = [_saying(items, words) for words in wanted]
        said = _UNDERLINE.sub("", "\n".join(next(filter(None, of_words), [])))
        if len(said) > _LONGEST:
            said = said[: max(said.rfind("\n", 0, _LONGEST), 0) or _LONGEST]
        end = min(version.end, version.body + _LONGEST)
        if said:
            said = readable_list(HEADING.sub(r"\1:", said))
            shown = f"{_shown(text, version)}:\n{said}"
            told.append(RankedPassage(shown, 1.0, cite_text(index, document, version.start, end)))
    return told


def _saying(items: Sequence[str], words: frozenset[str]) -> list[str]:
    """Return the changes that say some words, and those below a heading that does."""
    told: list[str] = []
    is_below = False
    for item in items:
        says = words <= {*terms(item)}
        if HEADING.match(item) or _RUN_IN.fullmatch(item):
            is_below = says
        if says or is_below:
            told.append(item)
    return told


def _shown(text: str, version: _Version) -> str:
    """Return the head of a version, with what dates it, in one line."""
    lines = (line.strip("#=*_~- \t\n:?") for line in text[version.start : version.body].split("\n"))
    return ", ".join(readable([line for line in lines if line]))


def _is_number(number: str, asked: str) -> bool:
    """Whether a number is the asked one, or one of its patches."""
    return number == asked or number.startswith((f"{asked}.", f"{asked}-", f"{asked}~"))


def _numbers_in(text: str) -> Iterator[str]:
    return (found[1] + (found[2] or "") for found in VERSION.finditer(text))


@lru_cache(_REMEMBERED)
def _versions(text: str) -> list[_Version]:
    """Return the versions of a text that is a changelog: several, or one that it begins with."""
    heads: list[tuple[str, int, int]] = []
    for line in _LINE.finditer(text):
        if number := _number_of(line[0]):
            dated = _DATED.match(text, line.end())
            heads.append((number, line.start(), dated.end() if dated else line.end()))
    is_log = len({number for number, *_ in heads}) > 1
    if not (is_log or (heads and not text[: heads[0][1]].strip())):
        return []
    ends = [*(start for _, start, _ in heads[1:]), len(text)]
    return [_Version(*head, end) for head, end in zip(heads, ends, strict=True)]


def _number_of(line: str) -> str:
    """Return the number of the version that a line is the head of; "" where it is none.

    >>> _number_of("Changes between 3.0.0 and 3.0.1 [14 Dec 2021]"), _number_of("See 3.0 for more.")
    ('3.0.1', '')
    """
    bare = fold(line.strip("#=*_~ \t"))
    if bare.endswith((".", ",", ";")) or _SINCE.search(bare) or _SECTION.match(bare):
        return ""
    numbers = [*_numbers_in(bare)] or [
        number for found in _NUMBERS.findall(bare) for number in found if number
    ]
    others = _WORD.findall(_OF_HEADS.sub(" ", VERSION.sub(" ", bare)))
    most = 0 if bare[:1].isdigit() else _MOST_OTHER_WORDS
    return numbers[-1] if numbers and len(others) <= most else ""
