"""Passages with what stands around them, as long as an answer is to be.

A sentence that leans on the one before it brings that. One that says nothing of the kind asked for,
such as a number, brings those after it up to the first that does, if that is near. The best one
brings the whole of a list of short items that it announces. Passages that so meet are one. An
answer is long enough with ``CHARS_EACH`` characters for each passage that may be in it: from there
on a passage is shown only if it says a word of the question that none before it says. If there are
fewer passages than there may be, each brings the sentences of its paragraph that follow it, up to
that length. What begins within a message of a chat stands with who says it and when.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.prose import Prose, grade_of, readable_list
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.query.evidence.announcements import LIST_ITEM
from graphrag_pipeline.query.evidence.code_lines import without_comment_marks
from graphrag_pipeline.query.evidence.run_in_heads import heads_of
from graphrag_pipeline.query.results import Citation

if TYPE_CHECKING:
    from graphrag_pipeline.query.evidence.answer_kinds import AskedFor
    from graphrag_pipeline.query.evidence.sentences import Sentence, Window
    from graphrag_pipeline.query.question import AnalysedQuestion

CHARS_EACH = 65
_MOST_LEANED = 2
_MOST_AFTER = 2
_MOST_TO_WANTED, _CHARS_TO_WANTED = 4, 250
_LONGEST_JOINED, _LONGEST_ITEM = 1_200, 100
# A line without an end before a paragraph, and options below each other: as one text they are told
# apart by a colon.
_HEADING = pattern_of(
    r"\A(?:(?:--?[^\W\d_][^\n]*\n)*[^\n]*[^\W_][)>\]]?(?=\n\n)|#{1,6} [^\n]*[^\W_][*_)]*(?=\n))"
)


@dataclass(frozen=True)
class RankedPassage:
    """A statement that bears on a question, and the place it is taken from or rests on.

    ``heading`` is the title of the report that a finding comes from; ``theme`` its community, where
    the question asks for themes.
    """

    text: str
    score: float
    citation: Citation
    heading: str = ""
    theme: str = ""


@dataclass(frozen=True)
class _Placed:
    """A passage, and the characters of its document that it takes; a record's line takes none."""

    passage: RankedPassage
    window: Window
    start: int = 0
    end: int = 0

    @property
    def n_chars(self) -> int:
        return self.end - self.start or len(self.passage.text)

    def meets(self, document: str, start: int, end: int) -> bool:
        is_same = self.passage.citation.document_id == document
        return is_same and self.start < end and start < self.end

    def spanning(self, start: int, end: int) -> _Placed:
        return replace(self, start=start, end=end)

    def shown(self, head: str) -> RankedPassage:
        if not self.end:
            return self.passage
        citation = self.window.cite(self.start, self.end)
        is_said = set(terms(citation.text)).issuperset(terms(head))
        said_by = self.window.said_by(self.start) or ("" if is_said else f"{head}: ")
        return replace(self.passage, text=f"{said_by}{citation.text}", citation=citation)


def widened(
    question: AnalysedQuestion,
    passages: Sequence[RankedPassage],
    sentences: Sequence[Sentence],
    wanted: AskedFor | None,
    most: int,
    context: int,
) -> list[RankedPassage]:
    """Give each sentence the neighbours it needs; those that so meet are one of ``most`` passages.

    A record's line, which stands with the record's title, needs none. There are no more once an
    answer is as long as ``CHARS_EACH`` allows; of a shorter one with fewer passages, each brings
    what its document goes on with. The head stands before what a paragraph runs in from it.
    """
    placed: list[_Placed] = []
    longest = CHARS_EACH * most
    asked, said = frozenset(question.terms), set()
    for passage, sentence, first in zip(passages, sentences, _firsts(sentences), strict=True):
        if len(placed) == most:
            break
        words = asked.intersection(terms(passage.text))
        if not context and _n_chars(placed) >= longest and words <= said:
            continue
        said |= words
        if passage.text != passage.citation.text:
            placed.append(_Placed(passage, sentence.window))
            continue
        start, end = _reach(sentence, first, context)
        end = max(end, _end_of_wanted(sentence, wanted), 0 if placed else _end_of_list(sentence))
        document = passage.citation.document_id
        met = [n for n, earlier in enumerate(placed) if earlier.meets(document, start, end)]
        if met:
            start, end = min(start, placed[met[0]].start), max(end, placed[met[0]].end)
        if not sentence.window.holds(start, end) or (met and end - start > _LONGEST_JOINED):
            continue
        place = slice(met[0], met[0] + 1) if met else slice(len(placed), None)
        placed[place] = [_Placed(passage, sentence.window, start, end)]
    if len(placed) < most:
        placed = _going_on(placed, longest)
    heads = heads_of(question, [(one.window, one.start) for one in placed])
    shown = [one.shown(head) for one, head in zip(placed, heads, strict=True)]
    bare = [without_comment_marks(passage.text) for passage in shown]
    plain = [readable_list(_HEADING.sub(r"\g<0>:", text)) for text in bare]
    return [replace(p, text=text) for p, text in zip(shown, plain, strict=True)]


def _n_chars(placed: Sequence[_Placed]) -> int:
    return sum(one.n_chars for one in placed)


def _going_on(placed: Sequence[_Placed], longest: int) -> list[_Placed]:
    """Return passages, in turn with the sentences after them, while all are short enough.

    A passage does not go on with what it says already, as a log does.
    """
    longer = list(placed)
    for n in range(_MOST_AFTER * len(placed)):
        one = longer[n % len(placed)]
        end = one.window.next_end(one.end) if one.end else 0
        if not end or _n_chars(longer) + end - one.end > longest:
            continue
        following = one.window.text(one.end, end).strip()
        document = one.passage.citation.document_id
        if following in one.window.text(one.start, one.end):
            continue
        if not any(other.meets(document, one.end, end) for other in longer):
            longer[n % len(placed)] = one.spanning(one.start, end)
    return longer


def _firsts(sentences: Sequence[Sentence]) -> list[int]:
    """Return the place of the first of each sentence and those that it leans on, one by one."""
    prose = {
        (n, place): grade_of(s.window.text(*s.window.whole[place]))
        for n, s in enumerate(sentences)
        for place in range(s.place - _MOST_LEANED, s.place)
        if s.leans and place in s.window.whole
    }
    firsts: list[int] = []
    for n, sentence in enumerate(sentences):
        first, start, leans = sentence.place, sentence.start, sentence.leans
        while leans and (n, first - 1) in prose:
            begin, end = sentence.window.whole[first - 1]
            reads_as, leans = prose[n, first - 1]
            if reads_as == Prose.CODE or "\n\n" in sentence.window.text(end, start):
                break
            first, start = first - 1, begin
        firsts.append(first)
    return firsts


def _end_of_wanted(sentence: Sentence, wanted: AskedFor | None) -> int:
    """Return the end of the first sentence from one on that holds what is wanted; 0 if far off."""
    if wanted is None or wanted.defines or wanted.holds(sentence):
        return 0
    window, end = sentence.window, sentence.end
    for _ in range(_MOST_TO_WANTED):
        start, end = end, window.next_end(end)
        if not end or end - sentence.end > _CHARS_TO_WANTED:
            return 0
        if wanted.holds(sentence._replace(quote=window.text(start, end))):
            return end
    return 0


def _end_of_list(sentence: Sentence) -> int:
    """Return the end of the list of short items that a sentence announces; 0 if it has none."""
    window, end = sentence.window, sentence.end
    for start, stop in window.whole.values() if sentence.announces else ():
        if start < end:
            continue
        is_next = "\n\n" not in window.text(end, start) and stop - start <= _LONGEST_ITEM
        item = LIST_ITEM.match(window.text(start, stop))
        if not (is_next and item) or stop - sentence.start > _LONGEST_JOINED:
            break
        end = stop
    return end if end > sentence.end else 0


def _reach(sentence: Sentence, first: int, context: int) -> tuple[int, int]:
    """Return the span from the sentence at a place, with ``context`` more on either side."""
    whole, last = sentence.window.whole, sentence.last
    start, end = sentence.start, sentence.end
    for place in range(sentence.place - 1, first - context - 1, -1):
        if place not in whole:
            break
        start = whole[place][0]
    for place in range(last + 1, last + context + 1):
        if place not in whole:
            break
        end = whole[place][1]
    return start, end
