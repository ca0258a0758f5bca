"""Lines of code that hold a name of code which a question asks for, as evidence.

What defines the name stands with the first sentence of its comment, the one that follows, as in
Python, or the one above it, and with those that say something else of the question. It comes first,
but where a question asks who uses the name. Each other line stands for itself; those that import
the name say little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.query.evidence.sentences import Sentence
from graphrag_pipeline.query.evidence.units import DEFINITION, OPTION, Unit
from graphrag_pipeline.query.names_of_code import defined, names_of_code, written
from graphrag_pipeline.query.question import AnalysedQuestion, words_pattern

_COMMENT_ABOVE = pattern_of(r"\s*(?://|/\*|\*|#|--|%|;;|@\w)")
_QUOTED = pattern_of(r"\s*[rRuU]?(\"{3}|'{3})((?s:.*?))(?:\1|\Z)")
_SENTENCE = pattern_of(r"(?:[^.\n]|\.(?!\s|$)|\n(?!\s*\n))+\.?", re.M)
_ANNOTATION = pattern_of(r"^[ \t]*@\w[^\n]*", re.M)
_IN_BRACKETS = pattern_of(r"(?<=[(\[])\s+|,?\s+(?=[)\]])")
_IMPORTS = pattern_of(r"(?:from|import|use|using|require|include|#\s*include)\b")
_STATEMENT = pattern_of(
    r"\s*(?:if|elif|else|for|while|until|unless|switch|match|case|when|try|catch|return|yield|await|"
    r"new|throw|raise|assert|not|and|or|defer|go|do|delete|del|print|echo)\b"
)
_USES = pattern_of(words_pattern("uses_of_code"))
_SLASHES = pattern_of(r"^[ \t]*//[/!]?(?:[ \t]+|$)", re.M)
_STARS = pattern_of(r"^[ \t]*(?:/\*+|\*+(?!/))(?:[ \t]+|$)|[ \t]*\*/", re.M)
_MARK = pattern_of(r"[ \t]*(#|;;|--|%)(?:[ \t]+|$)")
_MOST_LINES, _LONGEST, _MOST_SAID = 20, 900, 3


def by_code_lines(question: AnalysedQuestion, units: Sequence[Unit]) -> list[Unit]:
    """Return units; in place of code with a name that is asked, its lines."""
    names = question.read(names_of_code)
    of_code = {unit.document_id for unit in units if unit.kind == "code"} if names else ()
    if not of_code:
        return list(units)
    named, defines = re.compile(written(names)), re.compile(defined(names))
    asks_uses = _USES.search(question.folded) is not None
    asked = frozenset(question.terms).difference(terms(" ".join(names)))
    cut: list[Unit] = []
    read: set[tuple[str, int]] = set()
    for unit in units:
        document, sentence, is_code = unit.document_id, unit.sentence, unit.kind == "code"
        is_named = document in of_code and named.search(sentence.first)
        lines = list(_lines(sentence, named, defines, asked)) if is_named else []
        if not (is_code and lines):
            cut.append(unit)
        for start, end, told in lines:
            if (document, start) not in read and (told or is_code):
                read.add((document, start))
                part = sentence.part(start, end)
                kind = _kind(part.quote, told, asks_uses)
                cut.append(Unit(part._replace(first=told or part.quote), kind))
    return cut


def _kind(text: str, told: str, asks_uses: bool) -> str:
    if asks_uses:
        return "code" if told else OPTION
    if told:
        return DEFINITION
    return "code" if _IMPORTS.match(text) else OPTION


def _lines(
    sentence: Sentence, named: re.Pattern[str], defines: re.Pattern[str], asked: Set[str]
) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, told) of the lines with a name that a sentence reaches into.

    ``told`` is what a definition says, "" of all other lines. Lines that programs have written,
    which are far longer, are left out.
    """
    offset, text = sentence.window.row["window_start"], sentence.window.row["text"]
    place = text.rfind("\n", 0, sentence.start - offset) + 1
    while place < sentence.end - offset:
        stop = text.find("\n", place)
        stop = stop if stop >= 0 else len(text)
        line = text[place:stop]
        if named.search(line) and len(line) <= _LONGEST:
            begin, end, told = stop - len(line.lstrip()), place + len(line.rstrip()), ""
            if defines.match(line) and not _STATEMENT.match(line):
                begin, end, told = _definition(text, begin, asked, is_cut=offset > 0)
            yield offset + begin, offset + end, told
        place = stop + 1


def _definition(text: str, start: int, asked: Set[str], *, is_cut: bool) -> tuple[int, int, str]:
    """Return the span of a definition that begins at a place, with its comment, and what it says.

    That is its head, to where its brackets close, and of the comment the first sentence and those
    that have terms which are asked.
    """
    end, n_open = start, 0
    for line in text[start : start + _LONGEST].split("\n")[:_MOST_LINES]:
        end += len(line) + 1
        n_open += sum(map(line.count, "([")) - sum(map(line.count, ")]"))
        if n_open <= 0:
            break
    end = start + len(text[start : end - 1].rstrip())
    head = " ".join(_IN_BRACKETS.sub("", text[start:end]).split()).rstrip("{:; ")
    if quoted := _QUOTED.match(text, end):
        begin, end, comment = start, quoted.end(), quoted[2]
    else:
        begin = _comment_above(text, start, is_cut=is_cut)
        comment = without_comment_marks(text[begin:start])
    sentences = [" ".join(s.split()) for s in _SENTENCE.findall(_ANNOTATION.sub("", comment))]
    first, *others = [*filter(None, sentences), ""]
    said = [first, *(s for s in others if not asked.isdisjoint(terms(s)))][:_MOST_SAID]
    return begin, end, " — ".join(filter(None, (head, " ".join(said))))


def _comment_above(text: str, start: int, *, is_cut: bool) -> int:
    """Return where the comment begins that ends above a place; the place, where there is none.

    Nor one of which the beginning is missing: ``is_cut`` says that more stands before the text.
    """
    first, begin = start, text.rfind("\n", 0, start) + 1
    while begin:
        above = text.rfind("\n", 0, begin - 1) + 1
        if not above and is_cut:
            return start
        if _COMMENT_ABOVE.match(text, above, begin):
            first = above
        elif first < start or text[above:begin].strip():
            return first
        begin = above
    return first


def without_comment_marks(text: str) -> str:
    r"""Return a text of a comment without the marks that its lines begin with.

    >>> without_comment_marks("// Joins all paths.\n// Empty ones are left out.")
    'Joins all paths.\nEmpty ones are left out.'
    """
    text = _SLASHES.sub("", text)
    if "*/" in text:
        text = _STARS.sub("", text)
    lines = text.split("\n")
    marks = {mark[1] if (mark := _MARK.match(line)) else "" for line in lines[1:]}
    if len(marks) != 1 or not marks.pop():
        return text
    return "\n".join(_MARK.sub("", line, count=1) for line in lines)
