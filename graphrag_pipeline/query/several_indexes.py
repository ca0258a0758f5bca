"""One question to several indexes: each is asked, and the ranks of what they find are fused.

What one index does not hold cannot be asked of it, so an index for each clearance keeps documents
apart. Whoever has several clearances asks several indexes at once. Scores of two indexes cannot be
compared, ranks can: reciprocal rank fusion (Cormack, Clarke and Buettcher, 2009).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.llm.configured import (
    calls_place,
    counted_client,
    model_options,
    prompts_folder,
)
from graphrag_pipeline.llm.running import run_calls
from graphrag_pipeline.query.answering import evidence_text
from graphrag_pipeline.query.ask import Ask
from graphrag_pipeline.query.citations import citations_of, distinct
from graphrag_pipeline.query.evidence.passages import find_evidence
from graphrag_pipeline.query.evidence.widening import RankedPassage
from graphrag_pipeline.query.results import Answer, Citation, Kind, Record, Retrieval, section_of
from graphrag_pipeline.query.writer import NOTHING_RELEVANT
from graphrag_pipeline.query.writing.asking import Asking
from graphrag_pipeline.query.writing.references import (
    Reference,
    ReferenceFilter,
    Shown,
    resolve,
)
from graphrag_pipeline.query.writing.single import from_records
from graphrag_pipeline.reports.references import check_references

if TYPE_CHECKING:
    from graphrag_pipeline.query.engine import QueryEngine
    from graphrag_pipeline.query.release import Release

T = TypeVar("T")

RRF_K = 60
_PROMPT = "local_answer"


@dataclass(frozen=True, kw_only=True)
class PlacedCitation(Citation):
    """A citation, and the collection whose document it is of."""

    collection: str


@dataclass(frozen=True)
class _Part:
    """The result of one collection: ``records`` are its own, by what the fused list calls each."""

    name: str
    index: Release
    retrieval: Retrieval
    records: Mapping[Reference, Record]


@dataclass(frozen=True)
class _Fused:
    """The results of all collections; ``failures`` says which gave nothing, and why."""

    ask: Ask
    parts: Sequence[_Part]
    records: Sequence[Record]
    failures: Sequence[str]
    seconds: float

    def retrieval(self) -> Retrieval:
        """Return it as one retrieval; an index's own words carry its name."""
        cited = {
            part.name: distinct(part.index, citations_of(part.index, [*part.records.values()]))
            for part in self.parts
        }
        return Retrieval(
            method=self.ask.method,
            query=self.ask.question,
            records=tuple(self.records),
            citations=_placed(_interleaved(cited)),
            timings={"total": self.seconds},
            parameters=self.parts[0].retrieval.parameters,
            release=self.release,
            steps=tuple(f"{p.name}: {step}" for p in self.parts for step in p.retrieval.steps),
        )

    @property
    def release(self) -> str:
        """The releases that were asked."""
        return ", ".join(f"{part.name} {part.retrieval.release}" for part in self.parts)

    def spending(self, *more: Mapping[str, Any]) -> dict[str, Any]:
        """Return what all took, by the names of an answer's fields."""
        spent = [*(part.index.trace.spending() for part in self.parts), *more]
        total: dict[str, Any] = {
            name: None if None in (values := [s[name] for s in spent]) else sum(values)
            for name in spent[0]
            if name != "calls"
        }
        return {**total, "calls": dict(sum((Counter(s["calls"]) for s in spent), Counter()))}


def retrieve_across(
    engines: Mapping[str, QueryEngine],
    question: str | Ask,
    method: str = "",
    **parameters: Any,
) -> Retrieval:
    """Return what several open indexes have on a question, by the names they are given here.

    Each record says in its attribute ``collection`` where it is from, and so do citations. All
    together take no more tokens than the method allows one index. An index in which nothing can be
    asked so, as no document matches ``where``, is left out. Raises what
    :meth:`QueryEngine.retrieve` does where all are, and InputError where there is none.
    """
    ask = _by_first(engines, Ask.of(question, method, **parameters))
    return _found(engines, ask).retrieval()


def answer_across(
    engines: Mapping[str, QueryEngine],
    question: str | Ask,
    method: str = "",
    **options: Any,
) -> Answer:
    """Return one answer from several open indexes; see :func:`retrieve_across`.

    Citations are :class:`PlacedCitation`. Where a model writes, by the settings of the first, it is
    shown the fused records in one call, whatever the method.
    """
    ask = Ask.of(question, method, **options)
    return run_calls(lambda: aanswer_across(engines, ask))


async def aretrieve_across(engines: Mapping[str, QueryEngine], ask: Ask) -> Retrieval:
    """Return :func:`retrieve_across` without blocking the event loop."""
    return await asyncio.to_thread(retrieve_across, engines, ask)


async def aanswer_across(engines: Mapping[str, QueryEngine], ask: Ask) -> Answer:
    """Return :func:`answer_across` without blocking the event loop, on which the call is made."""
    start = time.perf_counter()
    ask = _by_first(engines, ask)
    if ask.follow_ups:
        raise InputError("follow_ups are suggested by one collection: leave them out")
    for engine in engines.values():
        engine.check(ask.method, ask.parameters, ask.answer_style, ask.response_format)
    fused = await asyncio.to_thread(_found, engines, ask)
    if next(iter(engines.values())).writes:
        answer = await _written(fused)
    else:
        answer = await asyncio.to_thread(_extracted, fused)
    total = time.perf_counter() - start
    timings = {"retrieve": fused.seconds, "answer": total - fused.seconds, "total": total}
    return replace(answer, timings=timings)


def _by_first(engines: Mapping[str, QueryEngine], ask: Ask) -> Ask:
    """Return a question with a method, as the settings of the first have it."""
    first = next(iter(engines.values()), None)
    return ask.by(first.index.settings) if first else ask


def _found(engines: Mapping[str, QueryEngine], ask: Ask) -> _Fused:
    start = time.perf_counter()
    parts: dict[str, tuple[Release, Retrieval]] = {}
    errors: dict[str, InputError] = {}
    for name, engine in engines.items():
        try:
            parts[name] = engine.retrieve_on(ask)
        except InputError as error:
            errors[name] = error
    if not parts:
        raise next(iter(errors.values()), InputError("no collection to ask: name at least one"))
    retrievals = {name: retrieval for name, (_, retrieval) in parts.items()}
    records = _fuse({name: r.records for name, r in retrievals.items()}, _room(retrievals))
    own: dict[str, dict[Reference, Record]] = {name: {} for name in parts}
    for record in records:
        own[record.attributes["collection"]][section_of(record.kind), record.number] = record
    return _Fused(
        ask,
        [_Part(name, *part, own[name]) for name, part in parts.items()],
        records,
        [f"{name}: {error}" for name, error in errors.items()],
        time.perf_counter() - start,
    )


def _room(retrievals: Mapping[str, Retrieval]) -> int:
    """Return how many tokens there is room for: the method's budget, or what one index gave."""
    budgets = [r.parameters.get("max_context_tokens") for r in retrievals.values()]
    given = [sum(record.n_tokens for record in r.records) for r in retrievals.values()]
    return max([*given, *(budget for budget in budgets if isinstance(budget, int))])


def _fuse(found: Mapping[str, Sequence[Record]], most: int) -> list[Record]:
    """Return the records of several indexes in ``most`` tokens, of each kind the best by rank.

    Where not all fit, each kind has its share. They are numbered anew, as two indexes give one
    number to two things; a report's own references are taken out.
    """
    total = sum(record.n_tokens for records in found.values() for record in records)
    share = min(1.0, most / max(1, total))
    kinds: dict[Kind, None] = dict.fromkeys(
        record.kind for records in found.values() for record in records
    )
    fused: list[Record] = []
    n_of_section: Counter[str] = Counter()
    for kind in kinds:
        of_kind = {n: [r for r in records if r.kind == kind] for n, records in found.items()}
        room = share * sum(r.n_tokens for records in of_kind.values() for r in records)
        for name, rank, record in _ranked(of_kind):
            room -= record.n_tokens
            if room < 0:
                break
            section = section_of(kind)
            n_of_section[section] += 1
            fused.append(
                replace(
                    record,
                    number=n_of_section[section],
                    text=_without_references(record),
                    score=1 / (RRF_K + rank),
                    attributes={**record.attributes, "collection": name},
                )
            )
    return fused


def _without_references(record: Record) -> str:
    is_report = section_of(record.kind) == section_of("report")
    return check_references(record.text, {}).text if is_report else record.text


def _ranked(lists: Mapping[str, Sequence[T]]) -> list[tuple[str, int, T]]:
    """Return (name, rank, item) by reciprocal rank: all firsts, then all seconds, and so on."""
    ranks = ((name, n, item) for name, items in lists.items() for n, item in enumerate(items, 1))
    return sorted(ranks, key=lambda ranked: -1 / (RRF_K + ranked[1]))


def _interleaved(lists: Mapping[str, Sequence[T]]) -> list[tuple[str, T]]:
    return [(name, item) for name, _, item in _ranked(lists)]


def _placed(citations: Iterable[tuple[str, Citation]]) -> tuple[PlacedCitation, ...]:
    """Return citations with their collections, numbered anew from 1."""
    names = [field.name for field in fields(Citation) if field.name != "number"]
    return tuple(
        PlacedCitation(
            number=number, collection=name, **{each: getattr(citation, each) for each in names}
        )
        for number, (name, citation) in enumerate(citations, 1)
    )


def _extracted(fused: _Fused) -> Answer:
    ask = fused.ask
    passages: dict[str, list[RankedPassage]] = {}
    for part in fused.parts:
        records = [*part.records.values()]
        with part.index.trace.counting_embeddings(part.index.settings):
            passages[part.name] = find_evidence(
                part.index, ask.question, records, ask.sentences, ask.context
            )
    ranking = _interleaved(passages)[: ask.sentences]
    citations = _placed((name, passage.citation) for name, passage in ranking)
    return _answer(fused, evidence_text([passage for _, passage in ranking], citations), citations)


async def _written(fused: _Fused) -> Answer:
    first = fused.parts[0].index
    settings = first.settings
    final = from_records(fused.records, _PROMPT)
    if final is None:
        return _answer(fused, NOTHING_RELEVANT, ())
    async with counted_client(
        model_options(settings, "answers"), calls_place(settings, first.home)
    ) as client:
        asking = Asking(first, client, fused.ask, prompts=prompts_folder(settings))
        references = ReferenceFilter(Shown(fused.records))
        text = references.take(await asking.text(final)) + references.finish()
        checks = asking.checked(text, final.shown, references.n_removed)
    cited = await asyncio.to_thread(_resolved, fused, list(references.cited))
    return replace(
        _answer(fused, text, _placed(_interleaved(cited)), asking.trace.spending()),
        generated=True,
        **checks,
    )


def _resolved(fused: _Fused, references: Sequence[Reference]) -> dict[str, Sequence[Citation]]:
    """Return the places that references rest on, by collection."""
    return {
        part.name: resolve(
            part.index,
            Shown(part.records.values()),
            [reference for reference in references if reference in part.records],
        )
        for part in fused.parts
    }


def _answer(
    fused: _Fused,
    text: str,
    citations: tuple[PlacedCitation, ...],
    *spent: Mapping[str, Any],
) -> Answer:
    return Answer(
        query=fused.ask.question,
        method=fused.ask.method,
        text=text,
        citations=citations,
        retrieval=fused.retrieval(),
        generated=False,
        timings={},
        release=fused.release,
        failures=tuple(fused.failures),
        **fused.spending(*spent),
    )
