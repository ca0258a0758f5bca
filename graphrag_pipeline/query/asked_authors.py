"""Questions of what somebody, or a document of some name, says of something."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.query.question import AnalysedQuestion, words_pattern

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

AUTHORS = ("author", "authors", "creator", "written_by", "byline")
"""Keys of metadata that may hold who wrote a document."""
_SAYING = (*AUTHORS, "from", "sender", "speaker")
_ABOUT = words_pattern("says_about")
_TO = words_pattern("according_to")
_SAYS = words_pattern("says")
_NAME = rf"(?:(?:{words_pattern('articles')})\s+)?(?P<name>[^,;]{{2,80}}?)"
_FORMS = tuple(
    map(
        pattern_of,
        (
            # The annual report says, and no annual reports that.
            rf"(?:{words_pattern('what_says')})\s+{_NAME}\s+(?:{_SAYS})\s+(?!{_SAYS})"
            rf"(?:(?:{_ABOUT})\s+)?(?P<topic>.+)",
            rf"(?:{words_pattern('what_it_says')})\s+{_NAME}\s+(?:{_ABOUT})\s+(?P<topic>.+)",
            rf"(?:{_TO})\s+{_NAME},\s*(?P<topic>.+)",
            rf"(?P<topic>.+?),?\s+(?:{_TO})\s+{_NAME}",
        ),
    )
)
_SAYS_LAST = pattern_of(rf"\s+(?:{_SAYS})$")
_WORD = pattern_of(r"[^\W_]+")
# The title, the name of the file, and who it is by, as far as that is known.
_NAMED = f"""
SELECT id FROM documents WHERE (
    SELECT bool_and(regexp_matches(named, word)) FROM (
        SELECT strip_accents(lower(concat_ws(' ', title, regexp_extract(uri, '[^/]*$'),
            {", ".join(f"json_extract_string(metadata, '/{key}')" for key in _SAYING)}))) AS named
    ), (SELECT unnest($words::JSON::VARCHAR[]) AS word))
"""
_N_DOCUMENTS = "SELECT count(*) AS n FROM documents"
_MOST_OF_ALL = 0.5
"""What more than this share of the documents is named for says nothing of which are meant."""


@dataclass(frozen=True)
class AskedAuthor:
    """The documents by somebody, or of a name, and of what a question asks that they say."""

    name: str
    documents: frozenset[str]
    topic: AnalysedQuestion


def asked_author(index: Release, question: str) -> AskedAuthor | None:
    """Return whose words a question asks for, if there are documents of that name or by them.

    Of "President Adams" those of Adams, where none is called by both.
    """
    text = AnalysedQuestion.of(question).folded.strip(" ?？¿!.")
    form = next(filter(None, (form.fullmatch(text) for form in _FORMS)), None)
    topic = AnalysedQuestion(_SAYS_LAST.sub("", form["topic"])) if form else AnalysedQuestion()
    if form is None or not topic.terms:
        return None
    words = _WORD.findall(form["name"])
    documents = index.once(f"documents named {words}", lambda release: _named(release, words))
    return AskedAuthor(form["name"], documents, topic) if documents else None


def _named(index: Release, words: list[str]) -> frozenset[str]:
    (row,) = index.rows(_N_DOCUMENTS)
    for first in range(len(words)):
        # What is no word by itself names nothing: the end of a name may be what all are called by.
        some = [rf"(^|[^\pL\pN]){re.escape(word)}($|[^\pL\pN])" for word in words[first:]]
        found = {each["id"] for each in index.rows(_NAMED, words=some)} if terms(words[-1]) else ()
        if 0 < len(found) <= _MOST_OF_ALL * row["n"]:
            return frozenset(found)
    return frozenset()
