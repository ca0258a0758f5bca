"""Views of `query` and `compare`: answers with the places they cite, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from graphrag_pipeline.cli import console
from graphrag_pipeline.core.rows import one_line, shortened
from graphrag_pipeline.core.text import counted

if TYPE_CHECKING:
    from graphrag_pipeline.query import Answer, AnswerStream, Citation, Compared, Record

_MOST_CITED = 20
_MOST_IN_A_BLOCK = 5
_MOST_OF_A_KIND = 2
_MOST_FAILURES = 10
_BLOCK_WIDTH = 80
_MOST_OF_A_TITLE = 200


def show_answer(answer: Answer) -> None:
    """Print an answer, the places it cites, what is amiss with it, and what it cost."""
    console.say(answer.text.rstrip())
    _show_follow_ups(answer)
    _show_grounds(answer)


def show_stream(stream: AnswerStream) -> None:
    """Print an answer as it is written, then what :func:`show_answer` prints below it."""
    last = "\n"
    try:
        for piece in stream:
            last = piece[-1:] or last
            console.write(piece)
    finally:
        console.write("" if last == "\n" else "\n")
    _show_follow_ups(stream.answer)
    _show_grounds(stream.answer)


def _show_follow_ups(answer: Answer) -> None:
    if answer.follow_ups:
        console.say("\nTo ask next:")
    for question in answer.follow_ups:
        console.say_whole(f"- {one_line(question)}")


def show_compared(results: Sequence[Compared]) -> None:
    """Print a block for each method: what it answered or found, and what that took."""
    for place, compared in enumerate(results):
        if place:
            console.say()
        width = min(_BLOCK_WIDTH, get_terminal_size().columns)
        console.say(f"── {compared.method} ".ljust(width, "─"), style="bold")
        if compared.retrieval is None:
            console.say(one_line(compared.error), style="yellow")
            continue
        if compared.answer is not None:
            console.say(compared.answer.text.rstrip())
            _show_first_citations(compared.answer.places)
        else:
            _show_first_records(compared.retrieval.records)
        for line in _amiss(compared.answer) if compared.answer else ():
            console.say(line, style="yellow")
        for step in compared.retrieval.steps:
            console.say_whole(one_line(step), style="dim")
        for line in _found(compared):
            console.say_whole(line, style="dim")


def show_sources(citations: Sequence[Citation], numbers: Sequence[int] = ()) -> None:
    """Print the passages that an answer cites, all or those of some numbers."""
    for citation in citations:
        if not numbers or citation.number in numbers:
            _show_citation(citation)
            console.say(citation.text.strip())
            console.say()


def _show_first_citations(citations: Sequence[Citation]) -> None:
    if citations:
        console.say()
    for citation in citations[:_MOST_IN_A_BLOCK]:
        _show_citation(citation)
    console.more(len(citations) - _MOST_IN_A_BLOCK, "; --json gives all")


def _show_first_records(records: Sequence[Record]) -> None:
    kinds = {record.kind: [r for r in records if r.kind == record.kind] for record in records}
    of_each = _MOST_IN_A_BLOCK if len(kinds) < 2 else _MOST_OF_A_KIND
    first_records = [record for of_kind in kinds.values() for record in of_kind[:of_each]]
    for record in first_records:
        line = one_line(f"{record.kind} {record.number} · {record.title}: {record.text}")
        console.say(shortened(line, _BLOCK_WIDTH))
    console.more(len(records) - len(first_records), "; --json gives all")
    if not records:
        console.say("nothing found")


def _found(compared: Compared) -> tuple[str, str]:
    """Return what a method found and what that took, a line each."""
    plural = {"entity": "entities", "summary": "summaries"}
    kinds = ", ".join(counted(n, kind, plural.get(kind, "")) for kind, n in compared.kinds.items())
    seconds = f"{compared.seconds:.2f} s"
    took = [f"{compared.context_tokens:,} tokens of context"]
    took += [_calls(compared.answer)] if compared.answer and compared.answer.model_calls else []
    return kinds or "no records", "; ".join([*took, seconds])


def _show_grounds(answer: Answer) -> None:
    """Print what stands below an answer."""
    if answer.places:
        console.say("\nShown to the model:" if answer.names_no_source else "")
    for citation in answer.places[:_MOST_CITED]:
        _show_citation(citation)
    console.more(len(answer.places) - _MOST_CITED, "; --json gives all")
    if amiss := _amiss(answer):
        console.say()
    for line in amiss:
        console.say(line, style="yellow")
    console.say()
    for step in answer.retrieval.steps:
        console.say_whole(one_line(step), style="dim")
    console.say(f"{answer.method} search, release {answer.release}", style="dim")
    console.say(f"{_calls(answer)}, {_seconds(answer.timings)}", style="dim")


def _show_citation(citation: Citation) -> None:
    place = citation.uri or f"community report {citation.report_id}"
    page = f", page {citation.page:,}" if citation.page else ""
    span = f" {citation.start_char}–{citation.end_char}{page}" if citation.uri else ""
    title = shortened(one_line(citation.document_title), _MOST_OF_A_TITLE)
    title = " · ".join(filter(None, [title, *_referring(citation)]))
    number = f"[{citation.number}]"
    indent = "\n" + " " * (len(number) + 1) if title else ""
    console.say_whole(f"{number} {title}{indent}{one_line(place)}{span}", style="dim")


def _referring(citation: Citation) -> list[str]:
    """Return the references that a place supports, those of one section together."""
    numbers: dict[str, list[str]] = {}
    for reference in citation.references:
        section, _, number = reference.partition(" ")
        numbers.setdefault(section, []).append(number.strip("()"))
    return [f"{section} ({', '.join(of)})" for section, of in numbers.items()]


def _amiss(answer: Answer) -> list[str]:
    """Return lines that say what is wrong with references, and which steps of the model failed.

    What such a step was to give is left out of the answer, or comes by a rule in its place.
    """
    n_failed = answer.failures
    lines = [*answer.doubts]
    if n_failed:
        lines.append(f"{counted(len(n_failed), 'model step')} failed:")
    lines += [f"  {one_line(failure)}" for failure in n_failed[:_MOST_FAILURES]]
    if len(n_failed) > _MOST_FAILURES:
        lines.append(f"  and {len(n_failed) - _MOST_FAILURES:,} more")
    return lines


def _calls(answer: Answer) -> str:
    """Return what the calls of an answer came to, in one line."""
    cost = "unknown cost" if answer.cost is None else f"${answer.cost:.4f}"
    from_cache = f" ({answer.cached_calls:,} more from the cache)" if answer.cached_calls else ""
    parts = [f"{counted(answer.model_calls, 'model call')}{from_cache}", cost]
    if answer.model_calls:
        tokens = f"{answer.prompt_tokens:,} tokens in, {answer.completion_tokens:,} out"
        parts.insert(1, tokens)
    return ", ".join(parts)


def _seconds(timings: Mapping[str, float]) -> str:
    total = f"{timings.get('total', 0.0):.2f} s"
    if not timings.get("first_piece"):
        return total
    retrieval, first = timings["retrieve"], timings["first_piece"]
    return f"{total} (retrieval {retrieval:.2f} s, first words after {first:.2f} s)"
