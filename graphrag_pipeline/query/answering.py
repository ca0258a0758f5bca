"""From a retrieval to an answer: without a model, the evidence itself with citations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphrag_pipeline.query.citations import distinct, numbered
from graphrag_pipeline.query.evidence.passages import find_evidence
from graphrag_pipeline.query.evidence.widening import RankedPassage
from graphrag_pipeline.query.results import Answer, Citation, Retrieval

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

NOT_WRITTEN = "No model is configured: this is the evidence found, not a written answer."
NOTHING_FOUND = "Nothing in the index matches the question.\n"


def extractive_answer(
    index: Release, retrieval: Retrieval, *, sentences: int, context: int
) -> Answer:
    """Answer with the ``sentences`` of a retrieval that say most to its question.

    One that leans on the sentence before it brings that; each brings ``context`` more on either
    side. Each point carries a marker such as ``[1]``, the number of its citation. What was
    spent, on embedding the question and the passages, is in the trace of ``index``.
    """
    start = time.perf_counter()
    with index.compared_in(retrieval.query):
        passages = find_evidence(index, retrieval.query, retrieval.records, sentences, context)
    citations = numbered(passage.citation for passage in passages)
    seconds = time.perf_counter() - start
    return Answer(
        query=retrieval.query,
        method=retrieval.method,
        text=evidence_text(passages, citations),
        citations=distinct(index, citations),
        retrieval=retrieval,
        generated=False,
        timings={
            "retrieve": retrieval.timings["total"],
            "answer": seconds,
            "total": retrieval.timings["total"] + seconds,
        },
        release=retrieval.release,
        **index.trace.spending(),
    )


def evidence_text(passages: Sequence[RankedPassage], citations: Sequence[Citation]) -> str:
    """Return passages as an answer, each with the number of its citation, lists line by line."""
    points = [
        f"- {_statement(passage)} [{citation.number}]\n"
        for passage, citation in zip(passages, citations, strict=True)
    ]
    return f"{NOT_WRITTEN}\n\n{''.join(points)}" if points else NOTHING_FOUND


def _statement(passage: RankedPassage) -> str:
    text, heading = passage.text.strip().replace("\n", "\n  "), passage.heading
    return f"{heading}: {text}" if heading and not text.startswith(heading) else text
