"""Names of themes, and the sentence shown of each, where no model wrote a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from graphrag_pipeline.core.languages import language_of_document
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prose import Prose, grade_of, n_spoken, without_speaker
from graphrag_pipeline.core.text import fold
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.query.operators.communities import about_communities
from graphrag_pipeline.query.results import Record
from graphrag_pipeline.query.trace import operator

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

SHOWN = 10
"""Of so many themes the best sentence is looked for."""
_NAMES_READ, _NAMES_SOUGHT, _NAMES = 12, 5, 3
_WORTH = {Prose.CODE: 0.1, Prose.FRAGMENT: 0.3, Prose.ITEM: 0.7, Prose.SENTENCE: 1.0}
_LEANS, _ASKS = 0.5, 0.3
_SHORTEST, _LONGEST, _OF_OTHER_LENGTH = 50, 260, 0.6
_IN_ANOTHER_LANGUAGE = 0.1
_WORDS = word_lists("themes.txt")
# What a program calls things: an identifier, the name of a file, a key to press, a number.
_CODE = pattern_of(r"[_/\\=<>{}]|\.[a-z]{1,4}\b|^\W*\w?\W*$|^[A-Z]-\w+$|^\w+-\d+\b")


def is_name(title: str) -> bool:
    """Whether a title can name a theme: no identifier, and no word such as Added or Note alone.

    >>> [is_name(title) for title in ("PKCS3", "ADDED", "Fixed", "int_err", "Port Rowan")]
    [True, False, False, False, True]
    """
    words = fold(title).split()
    return not _CODE.search(title) and not _WORDS["no_name"].issuperset(words)


@operator
def told_well(index: Release, question: str, findings: Sequence[Record]) -> list[Record]:
    """Return findings of themes, one of each theme first, as a person would choose it.

    Of the first ``SHOWN`` themes whose findings are quoted from the text, the finding comes first
    that reads as whole prose in the question's language, names most of what is key to its theme,
    and is neither spoken nor a question; and the theme is called by its key names, if it has any
    that are names. Themes of which only code is quoted come last.
    """
    order = list(dict.fromkeys(f.attributes["community_id"] for f in findings))
    about = about_communities(index, order[:SHOWN], _NAMES_READ)
    by_theme: dict[str, list[Record]] = {key: [] for key in order}
    for finding in findings:
        by_theme[finding.attributes["community_id"]].append(finding)
    language = language_of_document(question)
    rounds: list[tuple[int, bool, int, Record]] = []
    for n, (key, own) in enumerate(by_theme.items()):
        names = [title for _, title in about[key].names if is_name(title)] if key in about else []
        is_code = False
        if names and all(finding.attributes["start_char"] is not None for finding in own):
            own, is_code = best_first(own, names, language)
            own = [replace(finding, title=", ".join(names[:_NAMES])) for finding in own]
        rounds += [(turn, is_code, n, finding) for turn, finding in enumerate(own)]
    return [finding for *_, finding in sorted(rounds, key=lambda r: r[:3])]


def best_first(
    findings: Sequence[Record], names: Sequence[str], language: str
) -> tuple[Sequence[Record], bool]:
    """Return findings, best first, and whether even the best reads as code."""
    texts = [without_speaker(finding.text) for finding in findings]
    folded = [fold(name) for name in names[:_NAMES_SOUGHT]]
    read = list(map(grade_of, texts))
    scores = [
        _worth(text, folded, language) * _WORTH[grade] * (_LEANS if leans else 1.0) / (1 + spoken)
        for text, (grade, leans), spoken in zip(texts, read, n_spoken(texts), strict=True)
    ]
    places = sorted(range(len(texts)), key=lambda place: (-scores[place], place))
    return [findings[place] for place in places], read[places[0]][0] == Prose.CODE


def _worth(text: str, names: Sequence[str], language: str) -> float:
    said = fold(text)
    is_foreign = language and language_of_document(text) not in ("", language)
    n_named = sum(name in said for name in names)
    length = 1.0 if _SHORTEST <= len(text) <= _LONGEST else _OF_OTHER_LENGTH
    told = (1 + n_named) * length * (_ASKS if text.endswith("?") else 1.0)
    return told * (_IN_ANOTHER_LANGUAGE if is_foreign else 1.0)
