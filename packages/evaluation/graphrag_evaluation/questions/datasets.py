"""Question files: our own formats, and those of the data sets that the papers use.

Ours is an object a question, as JSON lines, a JSON list or CSV: ``question``, ``answers`` (or
``answer``), ``passages`` (texts, or objects with ``title`` and ``text``), ``assertions`` (texts, or
objects with ``statement`` and ``sources``), ``type``, ``persona``, ``task``, and ``document`` (uri,
title or file name of the one it is about), of which only the first is needed; or plain text, a
question a line. In CSV a cell that begins with a bracket is JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from graphrag_evaluation.questions.documents import (
    document_of,
    file_name,
    text_and_name,
)
from graphrag_evaluation.questions.entries import entries, file_type, question_files, text_of
from graphrag_evaluation.questions.fields import (
    Entry,
    UnreadableEntryError,
    answers_of,
    assertion_of,
    clean,
    list_of,
    passage_of,
    question_text,
)
from graphrag_evaluation.questions.natural_questions import nq
from graphrag_evaluation.questions.novelqa import novelqa, novelqa_generative
from graphrag_evaluation.questions.published import (
    hotpotqa,
    multihop_rag,
    musique,
    narrativeqa,
    odsum,
    qmsum,
    rag_qa_arena,
    squality,
    ultradomain,
)
from graphrag_evaluation.questions.question import Question
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.hardening.files import write_beside

_ID_ALIASES = "id_aliases.json"
_MAY_BE_GOLD = re.compile(r"answer|gold|reference|target|^summary|^response", re.I)
_SAYS_OF_IT = re.compile(r"(id|ids|type|kind|able|start|date|aliases)$", re.I)
_QUESTION = ("question", "question_text", "query")

Reader = Callable[[Entry], Iterable[Question]]


def read_questions(path: Path, format: str = "") -> list[Question]:
    """Return the questions of a file, or of the .json files in a folder, in order.

    One asked twice of the same document counts once, with all its answers and passages. Of data
    sets that ask each document apart every question names its own: by title in Natural Questions,
    by the id of the story in SQuALITY, by the file of questions in NovelQA and QMSum.
    ``format`` is one of ``FORMATS``; without it each entry's fields tell it. A byte-order mark is
    skipped.

    Raises
    ------
    InputError
        If the file cannot be read or holds no question, or an entry is none: which one, and why.
    """
    if format and format not in FORMATS:
        raise InputError(f"no format {format!r} of questions: choose one of {', '.join(FORMATS)}")
    is_plain = file_type(path) == ".txt" and not format
    each = (_plain(f) if is_plain else _structured(f, format) for f in question_files(path))
    distinct: dict[str, Question] = {}
    for question in chain.from_iterable(each):
        earlier = distinct.get(question.id)
        distinct[question.id] = _merge(earlier, question) if earlier else question
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
        "document": question.document,
        "assertions": [
            {"statement": a.statement, "sources": list(a.sources)} for a in question.assertions
        ],
    }
    return {name: value for name, value in values.items() if value}


def _merge(earlier: Question, again: Question) -> Question:
    answers = tuple(dict.fromkeys([*earlier.answers, *again.answers]))
    return replace(
        earlier,
        answers=answers,
        passages=tuple(dict.fromkeys([*earlier.passages, *again.passages])),
        assertions=tuple(dict.fromkeys([*earlier.assertions, *again.assertions])),
    )


def _plain(path: Path) -> Iterator[Question]:
    return (Question(line) for line in map(clean, text_of(path).splitlines()) if line)


def _structured(path: Path, format: str) -> Iterator[Question]:
    aliases = _id_aliases(path.with_name(_ID_ALIASES))
    for place, entry in entries(path):
        try:
            if not isinstance(entry, Mapping):
                raise UnreadableEntryError("an object with a question was expected")
            name = format or _format_of(entry)
            whole = {**entry, "answer_aliases": _all_aliases(entry, aliases)}
            about = document_of(name, entry, path, place)
            for question in FORMATS[name](whole):
                yield replace(question, document=question.document or about, place=place)
        except UnreadableEntryError as error:
            is_told = format or not isinstance(entry, Mapping) or _format_of(entry) != "own"
            raise InputError(f"{path}, {place}: {error}{'' if is_told else _KNOWN}") from None


def _own(entry: Entry) -> Iterator[Question]:
    """Our format; ``question_text``, ``query`` and ``question_type`` are understood, too."""
    answers = entry["answers"] if entry.get("answers") else entry.get("answer")
    if not answers and (gold := _other_answers(entry)):
        raise UnreadableEntryError(
            f"it may have its answers in {' and '.join(gold)}: call the field answers"
        )
    yield Question(
        text=question_text(entry, *_QUESTION),
        answers=answers_of(answers, entry),
        passages=tuple(map(passage_of, list_of(entry, "passages"))),
        type=clean(entry.get("type") or entry.get("question_type")),
        persona=clean(entry.get("persona")),
        task=clean(entry.get("task")),
        assertions=tuple(map(assertion_of, list_of(entry, "assertions"))),
        document=clean(entry.get("document")),
    )


def _other_answers(entry: Entry) -> list[str]:
    """Return the fields that may hold answers under a name that is not ours."""
    fields = (name for name in entry if name not in ("answer", "answers"))
    likely = (n for n in fields if _MAY_BE_GOLD.search(n) and not _SAYS_OF_IT.search(n))
    return [name for name in likely if entry[name] and isinstance(entry[name], str | list)]


def write_documents(path: Path, folder: Path, format: str = "") -> list[Path]:
    """Write the documents that a file of questions holds into a folder; return the files.

    They are those of Natural Questions, QMSum and SQuALITY, named as the questions name them, so
    that ``eval run --per-document`` finds them once the folder is indexed. One that is there with
    the same text is left alone. Raises InputError where an entry holds none, and where two that
    differ would have the same name.
    """
    written: dict[Path, str] = {}
    for place, entry in entries(path):
        if not isinstance(entry, Mapping):
            raise InputError(f"{path}, {place}: an object with a document was expected")
        try:
            name, text = text_and_name(format or _format_of(entry), entry, path, place)
        except UnreadableEntryError as error:
            raise InputError(f"{path}, {place}: {error}") from None
        file = folder / f"{file_name(name)}.txt"
        if written.setdefault(file, text) != text:
            raise InputError(f"{path}, {place}: another document is called {name!r}, too")
    for file, text in written.items():
        if not file.is_file() or file.read_text("utf-8") != text:
            write_beside(file, text.encode())
    return list(written)


FORMATS: Mapping[str, Reader] = {
    "own": _own,
    "musique": musique,
    "hotpotqa": hotpotqa,
    "2wikimultihopqa": hotpotqa,
    "multihop-rag": multihop_rag,
    "qmsum": qmsum,
    "squality": squality,
    "nq": nq,
    "novelqa": novelqa,
    "novelqa-generative": novelqa_generative,
    "odsum": odsum,
    "narrativeqa": narrativeqa,
    "ultradomain": ultradomain,
    "rag-qa-arena": rag_qa_arena,
}
"""The formats of questions by name."""

_KNOWN = f"; or name the format, of which there are {', '.join(FORMATS)}"


_SIGNS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("nq", ("document_text", "annotations")),
    ("nq", ("document_tokens", "annotations")),
    ("novelqa", ("Question", "Aspect")),
    ("odsum", ("meetings_list",)),
    ("odsum", ("Query", "Article")),
    ("odsum", ("question_text", "responses")),
    ("qmsum", ("general_query_list",)),
    ("qmsum", ("specific_query_list",)),
    ("multihop-rag", ("evidence_list",)),
    ("2wikimultihopqa", ("supporting_facts", "context", "evidences")),
    ("hotpotqa", ("supporting_facts", "context")),
    ("musique", ("paragraphs",)),
    ("narrativeqa", ("question", "answer1", "answer2")),
    ("narrativeqa", ("document", "question", "answers")),
    ("ultradomain", ("input", "answers", "context")),
    ("rag-qa-arena", ("question", "answer", "gold_doc_ids")),
)
"""The fields by which an entry's format is known; the first that an entry has all of."""


def _format_of(entry: Entry) -> str:
    if "questions" in entry and not any(name in entry for name in _QUESTION):
        return "squality"
    if isinstance(entry.get("document"), str) and isinstance(entry.get("question"), str):
        return "own"
    has = (name for name, fields in _SIGNS if all(field in entry for field in fields))
    return next(has, "own")


def _all_aliases(entry: Entry, by_id: Mapping[str, list[str]]) -> Any:
    """Return an entry's aliases, with those that 2WikiMultiHopQA keeps in a file of their own."""
    own = entry.get("answer_aliases") or []
    more = by_id.get(str(entry.get("answer_id") or ""), [])
    return [*own, *more] if isinstance(own, list) else own


def _id_aliases(path: Path) -> dict[str, list[str]]:
    if not path.is_file():
        return {}
    aliases = {}
    for place, entry in entries(path):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("aliases"), list):
            raise InputError(f"{path}, {place}: an object with Q_id and aliases was expected")
        aliases[str(entry.get("Q_id"))] = entry["aliases"]
    return aliases
