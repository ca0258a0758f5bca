"""The method that suits the question: without a model by a rule, with one as `selection` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core.text import names_apart
from graphrag_pipeline.query import operators as op
from graphrag_pipeline.query.asked_authors import asked_author
from graphrag_pipeline.query.asked_themes import asked_types, asks_for_themes
from graphrag_pipeline.query.evidence.answer_kinds import asks_limit
from graphrag_pipeline.query.evidence.definitions import definition_pattern
from graphrag_pipeline.query.evidence.divisions import division_pattern
from graphrag_pipeline.query.evidence.series import first_of_series
from graphrag_pipeline.query.methods.chunk_search import BM25, HYBRID
from graphrag_pipeline.query.methods.combined_search import (
    SelectionParameters,
    parameters_of,
    selection_answer,
)
from graphrag_pipeline.query.methods.global_search import GLOBAL
from graphrag_pipeline.query.methods.method import Method
from graphrag_pipeline.query.methods.ppr_search import PPR
from graphrag_pipeline.query.operators.titles import as_asked
from graphrag_pipeline.query.question import AnalysedQuestion
from graphrag_pipeline.query.results import Record

if TYPE_CHECKING:
    from graphrag_pipeline.query.release import Release

_MOST_SHOWN = 3
_MOST_INTRODUCING, _READ_FOR_DEFINITIONS = 6, 500
_LIMIT = "maximum limit"
_MOST_OF_AUTHORS, _READ_OF_AUTHORS = 12, 2000


@dataclass(frozen=True)
class AutoParameters(SelectionParameters):
    """This project's own: the method that suits the question; the answer says which.

    Without a model, a question that asks for themes and names nothing is answered by ``global``, on
    the root communities; any other that names something in the graph by ``ppr``, of these methods
    the one that finds most (benchmarks/methods.py, benchmarks/natures.py). Where there is no graph,
    or the question names nothing in it by a title or as names are written, a walk has nowhere to
    set out from but words, and ``bm25`` ranks these better, or ``hybrid`` where vectors know more
    than words. Who asks what a thing is gets, after what is found, three texts that may say what it
    is, and where the three documents that mention it most first do so. With a model it is
    ``selection``; ``level`` is for that.
    """


def auto(index: Release, question: str, p: AutoParameters) -> list[Record]:
    """Return what the method finds that suits the question, as told by rule."""
    method, why = chosen(index, question)
    index.trace.step(f"{method.name} search (by rule: {why})")
    options = replace(p, level=0) if method is GLOBAL else p
    parameters = parameters_of(index, method, options)
    records = method.retrieve(index, question, parameters)
    more = _introducing(index, question, records) if method is not GLOBAL else []
    return op.fill(index, [*records, *more], parameters.max_context_tokens) if more else records


def _introducing(index: Release, question: str, records: Sequence[Record]) -> list[Record]:
    """Return where what a question asks the nature of may be told, beside what is found.

    Of a division that it calls by number, where that begins, and which of a series it may ask for;
    what those say of something whose words it asks for, and of how many there can be the limit.
    Of the texts that say its name most, those that say "it is a" or the like; and where the
    documents that mention it most do so first.
    """
    found: op.Ranking = dict.fromkeys(first_of_series(index, question), 0.0)
    if division := division_pattern(question):
        near = op.fulltext_search(index, "chunks", question, _READ_FOR_DEFINITIONS)
        found |= op.chunks_having(index, near, division, _MOST_INTRODUCING)
    if author := asked_author(index, question):
        n, name = len(author.documents), author.name
        index.trace.step(f"documents by or called {name} come first: {n} (it asks what they say)")
        near = op.fulltext_search(index, "chunks", author.topic, _READ_OF_AUTHORS)
        found |= op.chunks_of_documents(index, near, author.documents, _MOST_OF_AUTHORS)
    asked = AnalysedQuestion.of(question)
    if asks_limit(asked):
        said = f"{_LIMIT} {asked.without_quantity}"
        found |= op.fulltext_search(index, "chunks", said, _MOST_INTRODUCING)
    if subject := asked.subject:
        near = op.fulltext_search(index, "chunks", subject, _READ_FOR_DEFINITIONS)
        found |= op.chunks_having(index, near, definition_pattern(subject), _MOST_INTRODUCING)
        entities = op.entities_titled(index, list(op.names_known(index, question)))
        found |= op.first_mentions(index, entities, _MOST_INTRODUCING)
    known = {record.id for record in records}
    return op.chunk_records(index, {key: 0.0 for key in found if key not in known})


def chosen(index: Release, question: str) -> tuple[Method[Any], str]:
    """Return the method that suits a question, and why, without a model."""
    if asks_for_themes(question) and index.facts.counts["n_reports"]:
        return GLOBAL, "the question asks for themes"
    if (types := AnalysedQuestion.of(question).read(asked_types)) and op.best_connected(
        index, types, 1
    ):
        return GLOBAL, f"the question asks for things of a kind: {', '.join(types)}"
    plain = BM25 if index.lexical else HYBRID
    if not index.facts.counts["n_relationships"]:
        return plain, "there is no graph"
    titles = as_asked(question, op.titles_in(index, question))
    named = [*titles, *op.names_known(index, question)]
    if named:
        return PPR, f"the question names {', '.join(names_apart(named, _MOST_SHOWN))}"
    return plain, "the question names nothing that is in the graph"


AUTO = Method(
    name="auto",
    summary="the method that suits the question",
    parameters=AutoParameters,
    retrieve=auto,
    prompt="basic_answer",
    answer=selection_answer,
    short_calls=1,
)
