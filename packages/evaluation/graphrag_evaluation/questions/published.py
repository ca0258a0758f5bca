"""Questions of the data sets that the papers use, from an entry of their files as published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphrag_evaluation.metrics.answers import NO_ANSWER
from graphrag_evaluation.questions.fields import (
    Entry,
    UnreadableEntryError,
    answers_of,
    clean,
    list_of,
    object_of,
    pairs_of,
    question_text,
)
from graphrag_evaluation.questions.question import Passage, Question


def musique(entry: Entry) -> Iterator[Question]:
    """MuSiQue: the supporting paragraphs are the passages, the number of hops is the type."""
    question = question_text(entry, "question")
    if entry.get("answerable") is False:
        yield Question(question, NO_ANSWER, type="unanswerable")
        return
    paragraphs = [object_of(paragraph, "paragraphs") for paragraph in list_of(entry, "paragraphs")]
    yield Question(
        question,
        answers_of(entry.get("answer"), entry),
        tuple(
            Passage(clean(p.get("title")), clean(p.get("paragraph_text")))
            for p in paragraphs
            if p.get("is_supporting")
        ),
        clean(entry.get("id")).partition("__")[0],
    )


def hotpotqa(entry: Entry) -> Iterator[Question]:
    """HotpotQA and 2WikiMultiHopQA: one passage a title, from its first supporting sentence to
    its last, so that it stands in the paragraph as it is."""
    context = dict(pairs_of(entry, "context", "title", "sentences"))
    facts: dict[str, list[int]] = {}
    for title, number in pairs_of(entry, "supporting_facts", "title", "sent_id"):
        if not isinstance(number, int):
            raise UnreadableEntryError("supporting_facts must hold pairs of title and number")
        facts.setdefault(title, []).append(number)
    yield Question(
        question_text(entry, "question"),
        answers_of(entry.get("answer"), entry),
        tuple(
            Passage(clean(title), _span(context.get(title, ()), of)) for title, of in facts.items()
        ),
        clean(entry.get("type")),
    )


def _span(sentences: Sequence[Any], numbers: Sequence[int]) -> str:
    existing = [number for number in numbers if 0 <= number < len(sentences)]
    return (
        clean(" ".join(map(str, sentences[min(existing) : max(existing) + 1]))) if existing else ""
    )


def multihop_rag(entry: Entry) -> Iterator[Question]:
    """MultiHop-RAG: evidence gives the passages; a null query has no answer, as it should say."""
    evidence = [object_of(item, "evidence_list") for item in list_of(entry, "evidence_list")]
    answers = answers_of(entry.get("answer"), entry)
    kind = clean(entry.get("question_type"))
    yield Question(
        question_text(entry, "query"),
        tuple(dict.fromkeys([*answers, *NO_ANSWER])) if kind == "null_query" else answers,
        tuple(Passage(clean(e.get("title")), clean(e.get("fact"))) for e in evidence),
        kind,
    )


def qmsum(entry: Entry) -> Iterator[Question]:
    """QMSum: a meeting with its questions; the reference summaries are the answers."""
    for kind in ("general", "specific"):
        for item in list_of(entry, f"{kind}_query_list"):
            query = object_of(item, f"{kind}_query_list")
            answers = answers_of(query.get("answer"), query)
            yield Question(question_text(query, "query"), answers, type=kind)


def squality(entry: Entry) -> Iterator[Question]:
    """SQuALITY: a story with its questions; the reference summaries are the answers."""
    for item in list_of(entry, "questions"):
        query = object_of(item, "questions")
        responses = [object_of(r, "responses") for r in list_of(query, "responses")]
        answers = answers_of([r.get("response_text") for r in responses], query)
        yield Question(question_text(query, "question_text"), answers)


def odsum(entry: Entry) -> Iterator[Question]:
    """ODSum, raw or with its articles: all summaries are references, meetings the gold passages."""
    query = question_text(entry, "query", "Query", "question_text")
    responses = [object_of(r, "responses") for r in list_of(entry, "responses")]
    summaries = [entry.get(name) for name in ("answer", "Summary", *_SUMMARIES)]
    answers = answers_of(
        [*filter(None, summaries), *(r.get("response_text") for r in responses)], entry
    )
    meetings = [Passage(f"{clean(name)}.txt") for name in list_of(entry, "meetings_list")]
    story = [Passage(title)] if (title := clean(entry.get("title"))) else []
    yield Question(query, answers, tuple([*meetings, *story]))


_SUMMARIES = ("Summary_1", "Summary_2", "Summary_3", "Summary_4")


def narrativeqa(entry: Entry) -> Iterator[Question]:
    """NarrativeQA, as its table or as objects: both annotators' answers; the set is the type."""
    if isinstance(asked := entry.get("question"), str):
        answers = [entry.get("answer1"), entry.get("answer2")]
        yield Question(clean(asked), answers_of(answers, entry), type=clean(entry.get("set")))
        return
    said = [object_of(answer, "answers") for answer in list_of(entry, "answers")]
    question = question_text(object_of(asked, "question"), "text")
    yield Question(question, answers_of([answer.get("text") for answer in said], entry))


def ultradomain(entry: Entry) -> Iterator[Question]:
    """UltraDomain: a question on a book or paper; the domain is the type."""
    yield Question(
        question_text(entry, "input"),
        answers_of(entry.get("answers"), entry),
        type=clean(entry.get("label")),
    )


def rag_qa_arena(entry: Entry) -> Iterator[Question]:
    """RAG-QA Arena (LFRQA): its long answer, and the passages it cites by their numbers."""
    gold = tuple(Passage(clean(number)) for number in list_of(entry, "gold_doc_ids"))
    domain = clean(entry.get("qid")).partition("-")[0]
    answers = answers_of(entry.get("answer"), entry)
    yield Question(question_text(entry, "question"), answers, gold, domain)
