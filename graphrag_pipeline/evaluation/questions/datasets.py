"""Question files: our own formats, and those of the data sets that the papers use.

Ours is an object a question, as JSON lines, a JSON list or CSV: ``question``, ``answers`` (or
``answer``), ``passages`` (texts, or objects with ``title`` and ``text``), ``type``, ``persona`` and
``task``, of which only the first is needed; or plain text, a question a line. In CSV a cell that
begins with a bracket is JSON.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.files import write_beside
from graphrag_pipeline.evaluation.metrics.answers import NO_ANSWER
from graphrag_pipeline.evaluation.questions.question import Passage, Question

_ID_ALIASES = "id_aliases.json"
_LINES = (".jsonl", ".ndjson")
_QUESTION = ("question", "question_text", "query")

Entry = Mapping[str, Any]
Reader = Callable[[Entry], Iterable[Question]]


class _UnreadableError(Exception):
    """An entry that is no question of its format; the message says what is missing."""


def read_questions(path: Path, format: str = "") -> list[Question]:
    """Return the questions of a file, in order.

    One asked twice counts once, with all its answers and passages: QMSum and SQuALITY ask the same
    of every meeting and story, so take a file for each document there, as the papers do.
    ``format`` is one of ``FORMATS``; without it each entry's fields tell it. A byte-order mark is
    skipped.

    Raises
    ------
    InputError
        If the file cannot be read or holds no question, or an entry is none: which one, and why.
    """
    if format and format not in FORMATS:
        raise InputError(f"no format {format!r} of questions: choose one of {', '.join(FORMATS)}")
    text = _text_of(path)
    is_plain = path.suffix.lower() == ".txt" and not format
    questions = _plain(text) if is_plain else _structured(path, text, format)
    distinct: dict[str, Question] = {}
    for question in questions:
        earlier = distinct.get(question.text)
        distinct[question.text] = _merge(earlier, question) if earlier else question
    if not distinct:
        raise InputError(f"{path} holds no question")
    return list(distinct.values())


def write_questions(path: Path, questions: Iterable[Question]) -> None:
    """Write questions as JSON lines, as :func:`read_questions` reads them."""
    lines = (json.dumps(_as_object(question), ensure_ascii=False) for question in questions)
    write_beside(path, "".join(f"{line}\n" for line in lines).encode())


def _as_object(question: Question) -> dict[str, Any]:
    values = {
        "question": question.text,
        "answers": list(question.answers),
        "passages": [{"title": p.title, "text": p.text} for p in question.passages],
        "type": question.type,
        "persona": question.persona,
        "task": question.task,
    }
    return {name: value for name, value in values.items() if value}


def _merge(earlier: Question, again: Question) -> Question:
    answers = tuple(dict.fromkeys([*earlier.answers, *again.answers]))
    return replace(
        earlier,
        answers=answers,
        passages=tuple(dict.fromkeys([*earlier.passages, *again.passages])),
    )


def _plain(text: str) -> Iterator[Question]:
    return (Question(line) for line in map(_clean, text.splitlines()) if line)


def _structured(path: Path, text: str, format: str) -> Iterator[Question]:
    aliases = _id_aliases(path.with_name(_ID_ALIASES))
    for place, entry in _entries(path, text):
        try:
            if not isinstance(entry, Mapping):
                raise _UnreadableError("an object with a question was expected")
            read = FORMATS[format or _format_of(entry)]
            yield from read({**entry, "answer_aliases": _all_aliases(entry, aliases)})
        except _UnreadableError as error:
            raise InputError(f"{path}, {place}: {error}") from None


def _own(entry: Entry) -> Iterator[Question]:
    """Our format; ``question_text``, ``query`` and ``question_type`` are understood, too."""
    answers = entry["answers"] if entry.get("answers") else entry.get("answer")
    yield Question(
        text=_question(entry, *_QUESTION),
        answers=_answers(answers, entry),
        passages=tuple(map(_passage, _list(entry, "passages"))),
        type=_clean(entry.get("type") or entry.get("question_type")),
        persona=_clean(entry.get("persona")),
        task=_clean(entry.get("task")),
    )


def _musique(entry: Entry) -> Iterator[Question]:
    """MuSiQue: the supporting paragraphs are the passages, the number of hops is the type."""
    question = _question(entry, "question")
    if entry.get("answerable") is False:
        yield Question(question, NO_ANSWER, type="unanswerable")
        return
    paragraphs = [_object(paragraph, "paragraphs") for paragraph in _list(entry, "paragraphs")]
    yield Question(
        question,
        _answers(entry.get("answer"), entry),
        tuple(
            Passage(_clean(p.get("title")), _clean(p.get("paragraph_text")))
            for p in paragraphs
            if p.get("is_supporting")
        ),
        _clean(entry.get("id")).partition("__")[0],
    )


def _hotpotqa(entry: Entry) -> Iterator[Question]:
    """HotpotQA and 2WikiMultiHopQA: one passage a title, from its first supporting sentence to
    its last, so that it stands in the paragraph as it is."""
    context = dict(_pairs(entry, "context", "title", "sentences"))
    facts: dict[str, list[int]] = {}
    for title, number in _pairs(entry, "supporting_facts", "title", "sent_id"):
        if not isinstance(number, int):
            raise _UnreadableError("supporting_facts must hold pairs of title and number")
        facts.setdefault(title, []).append(number)
    yield Question(
        _question(entry, "question"),
        _answers(entry.get("answer"), entry),
        tuple(
            Passage(_clean(title), _span(context.get(title, ()), of)) for title, of in facts.items()
        ),
        _clean(entry.get("type")),
    )


def _span(sentences: Sequence[Any], numbers: Sequence[int]) -> str:
    existing = [number for number in numbers if 0 <= number < len(sentences)]
    return (
        _clean(" ".join(map(str, sentences[min(existing) : max(existing) + 1]))) if existing else ""
    )


def _multihop_rag(entry: Entry) -> Iterator[Question]:
    """MultiHop-RAG: evidence gives the passages; a null query has no answer, as it should say."""
    evidence = [_object(item, "evidence_list") for item in _list(entry, "evidence_list")]
    answers = _answers(entry.get("answer"), entry)
    kind = _clean(entry.get("question_type"))
    yield Question(
        _question(entry, "query"),
        tuple(dict.fromkeys([*answers, *NO_ANSWER])) if kind == "null_query" else answers,
        tuple(Passage(_clean(e.get("title")), _clean(e.get("fact"))) for e in evidence),
        kind,
    )


def _qmsum(entry: Entry) -> Iterator[Question]:
    """QMSum: a meeting with its questions; the reference summaries are the answers."""
    for kind in ("general", "specific"):
        for item in _list(entry, f"{kind}_query_list"):
            query = _object(item, f"{kind}_query_list")
            answers = _answers(query.get("answer"), query)
            yield Question(_question(query, "query"), answers, type=kind)


def _squality(entry: Entry) -> Iterator[Question]:
    """SQuALITY: a story with its questions; the reference summaries are the answers."""
    for item in _list(entry, "questions"):
        query = _object(item, "questions")
        responses = [_object(r, "responses") for r in _list(query, "responses")]
        answers = _answers([r.get("response_text") for r in responses], query)
        yield Question(_question(query, "question_text"), answers)


FORMATS: Mapping[str, Reader] = {
    "own": _own,
    "musique": _musique,
    "hotpotqa": _hotpotqa,
    "2wikimultihopqa": _hotpotqa,
    "multihop-rag": _multihop_rag,
    "qmsum": _qmsum,
    "squality": _squality,
}
"""The formats of questions by name."""


def _format_of(entry: Entry) -> str:
    if "general_query_list" in entry or "specific_query_list" in entry:
        return "qmsum"
    if "questions" in entry and not any(name in entry for name in _QUESTION):
        return "squality"
    if "evidence_list" in entry:
        return "multihop-rag"
    if "supporting_facts" in entry and "context" in entry:
        return "2wikimultihopqa" if "evidences" in entry else "hotpotqa"
    return "musique" if "paragraphs" in entry else "own"


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start}): save it as UTF-8") from None


def _entries(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Yield each entry with its place: in a list by number, in lines by the line's."""
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        yield from _table(path, text)
        return
    try:
        whole = None if suffix in _LINES else json.loads(text)
    except (ValueError, RecursionError) as error:
        if not str(error).startswith("Extra data"):
            raise InputError(f"{path} is not valid JSON: {error}") from None
        whole = None
    if whole is None:
        yield from _lines(path, text)
        return
    if isinstance(whole, Mapping) and isinstance(whole.get("data"), list):
        whole = whole["data"]
    for number, entry in enumerate(whole if isinstance(whole, list) else [whole], 1):
        yield f"entry {number}", entry


def _lines(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield f"line {number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}, line {number}: not valid JSON: {error}") from None


def _table(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise InputError(f"{path}, line {rows.line_num}: {error}") from None
        if row is None:
            return
        place = f"line {rows.line_num}"
        yield place, {name: _cell(path, place, cell) for name, cell in row.items() if name}


def _cell(path: Path, place: str, cell: str | None) -> Any:
    if not cell or cell[0] not in "[{":
        return cell
    try:
        return json.loads(cell)
    except ValueError as error:
        raise InputError(f"{path}, {place}: a cell is not valid JSON: {error}") from None


def _question(entry: Entry, *names: str) -> str:
    for name in names:
        if isinstance(value := entry.get(name), str) and (text := _clean(value)):
            return text
    raise _UnreadableError(f"no question: a text was expected in the field {' or '.join(names)}")


def _answers(answer: Any, entry: Entry) -> tuple[str, ...]:
    """Return answers and aliases: texts, numbers, and yes or no for a truth value."""
    values = answer if isinstance(answer, list) else [answer]
    every = [*values, *_list(entry, "answer_aliases")]
    if any(isinstance(value, Mapping | list) for value in every):
        raise _UnreadableError("answers must be a text or a list of texts")
    plain = ("yes" if value is True else "no" if value is False else value for value in every)
    return tuple(dict.fromkeys(filter(None, map(_clean, plain))))


def _passage(value: Any) -> Passage:
    if isinstance(value, str):
        passage = Passage(text=_clean(value))
    else:
        values = _object(value, "passages")
        passage = Passage(_clean(values.get("title")), _clean(values.get("text")))
    if not passage.title and not passage.text:
        raise _UnreadableError("a passage needs a title or a text")
    return passage


def _list(entry: Entry, name: str) -> list[Any]:
    value = entry.get(name) or []
    if not isinstance(value, list):
        raise _UnreadableError(f"{name} must be a list")
    return value


def _object(value: Any, name: str) -> Entry:
    if not isinstance(value, Mapping):
        raise _UnreadableError(f"{name} must hold objects")
    return value


def _pairs(entry: Entry, name: str, first: str, second: str) -> list[tuple[str, Any]]:
    """Return pairs that are stored as a list of pairs, or as an object of two lists."""
    value = entry.get(name) or []
    if isinstance(value, Mapping):
        value = list(zip(_list(value, first), _list(value, second), strict=False))
    if not isinstance(value, list) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str)
        for pair in value
    ):
        raise _UnreadableError(f"{name} must hold pairs of {first} and {second}")
    return [(pair[0], pair[1]) for pair in value]


def _all_aliases(entry: Entry, by_id: Mapping[str, list[str]]) -> Any:
    """Return an entry's aliases, with those that 2WikiMultiHopQA keeps in a file of their own."""
    own = entry.get("answer_aliases") or []
    more = by_id.get(str(entry.get("answer_id") or ""), [])
    return [*own, *more] if isinstance(own, list) else own


def _id_aliases(path: Path) -> dict[str, list[str]]:
    if not path.is_file():
        return {}
    aliases = {}
    for place, entry in _lines(path, _text_of(path)):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("aliases"), list):
            raise InputError(f"{path}, {place}: an object with Q_id and aliases was expected")
        aliases[str(entry.get("Q_id"))] = entry["aliases"]
    return aliases


def _clean(value: Any) -> str:
    """Return a value as text on one line that can be stored: no half characters, no NUL."""
    if value is None or isinstance(value, Mapping | list):
        return ""
    text = str(value).encode("utf-8", "replace").decode().replace("\0", "")
    return " ".join(text.split())
