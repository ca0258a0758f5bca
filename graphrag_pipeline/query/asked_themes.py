"""Questions for what documents say as a whole: their themes, or the things of a kind in them."""

from __future__ import annotations

from functools import cache

from graphrag_pipeline.core.languages import function_words
from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import fold, terms
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.query.question import AnalysedQuestion, words_pattern

_ABOUT_ANY_CORPUS = frozenset(
    terms(
        "main top key major central important overall general theme topic subject idea trend "
        "insight overview summary summarize describe document text corpus collection dataset data "
        "report article story book novel play poem handbook manual discuss cover mention "
        "tell say find give list"
    )
)
"""Words that ask for what documents say as a whole: finding them in a text means nothing."""
_QUOTED = pattern_of(r"[\"“«„][^\"”»“]{4,}[\"”»“]")
_ANY = pattern_of(rf"(?:{words_pattern('one')})\s")
_AROUND = "?.,;:!()\"'¿¡"
_TYPES = {
    "person": ("PERSON",),
    "place": ("GEO", "LOCATION"),
    "organisation": ("ORGANIZATION",),
    "event": ("EVENT",),
}


def asks_for_themes(question: str) -> bool:
    """Whether a question asks what the documents say as a whole, and names nothing particular."""
    asked = AnalysedQuestion.of(question)
    is_of_all = asked.asks_for not in ("place", "time") and not _QUOTED.search(question)
    # "What is a here document?" asks for what one is.
    is_of_all = is_of_all and not _ANY.match(asked.subject)
    return is_of_all and not asked.read(particulars)


def particulars(question: str) -> str:
    """Return a question without the words that ask for themes; "" where it has no others."""
    words = question.split()
    asked = {plain for word in words if (plain := fold(word).strip(_AROUND))}
    if any(asked & own and asked <= own | others for own, others in _about_any_elsewhere()):
        return ""
    return " ".join(word for word in words if not _ABOUT_ANY_CORPUS.issuperset(terms(word)))


@cache
def _about_any_elsewhere() -> list[tuple[frozenset[str], frozenset[str]]]:
    """Return the like of ``_ABOUT_ANY_CORPUS`` for other languages, each with function words."""
    return [
        (frozenset(map(fold, words)), frozenset(map(fold, function_words(name[-2:]))))
        for name, words in word_lists("questions.txt").items()
        if name.startswith("themes_")
    ]


def asked_types(question: str) -> tuple[str, ...]:
    """Return the types of entities that a question asks for without saying more of them.

    >>> asked_types("Who are the main people, and which places are described?")
    ('PERSON', 'GEO', 'LOCATION')
    >>> asked_types("Which people of Tarn keep bees?")
    ()
    """
    words = {plain for word in question.split() if (plain := fold(word).strip(_AROUND))}
    kinds = {kind: _folded(f"asked_{kind}") for kind in _TYPES}
    asked = tuple(t for kind, types in _TYPES.items() if words & kinds[kind] for t in types)
    if not asked:
        return ()
    rest = words.difference(_folded("of_kinds"), *kinds.values())
    is_bare = _ABOUT_ANY_CORPUS.issuperset(terms(" ".join(rest))) or any(
        rest <= own | others for own, others in _about_any_elsewhere()
    )
    return asked if is_bare else ()


@cache
def _folded(section: str) -> frozenset[str]:
    return frozenset(map(fold, word_lists("questions.txt")[section]))
