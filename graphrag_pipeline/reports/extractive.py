"""Community reports without a model: the community's most central sentences, with their places."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from typing import Any

import duckdb
import polars as pl

from graphrag_pipeline.core.prose import REPEATED_IN, SPEAKER, Prose, n_spoken, read_prose
from graphrag_pipeline.core.settings import ReportSettings, fingerprint
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.reports.contexts import Context
from graphrag_pipeline.reports.evidence import Evidence, read_evidence
from graphrag_pipeline.reports.text import Finding, ReportText, WrittenReports
from graphrag_pipeline.store.frames import put_rows
from graphrag_pipeline.store.hierarchy import GRAPH, Hierarchy
from graphrag_pipeline.store.index_store import IndexStore

EXTRACTIVE_VERSION = "15"
_READER = "extractive:reader"
_TITLES_SHOWN = 3
# Of so many sentences of a community, the best by score, it is asked what they read as.
_READ = 160
_CANDIDATES = 40
_SUB_FINDINGS = 3
_MOST_EVIDENCE = 100_000
_WORTH = {int(Prose.FRAGMENT): 0.1, int(Prose.ITEM): 0.6, int(Prose.SENTENCE): 1.0}
# A sentence that leans on the one before it says less when it stands alone.
_LEANING = 0.4
# The share of a sentence's words that an earlier one has, from which it says nothing new.
_SAID = 0.75
# Sentences shorter than so many characters are not better for being short.
_SHORT = 120
# A sentence that begins or ends at the edge of its chunk is likely only half a sentence.
_CUT_OFF = 0.3
# One that stands in many documents in the same words (``REPEATED_IN``) is about none of them.
_REPEATED = 0.1
# Scores are compared to so many digits after the point.
_DIGITS = 9

_TITLES = """
SELECT id, title FROM {entities} WHERE id IN (
    SELECT unnest([source_id, target_id]) FROM {relationships} r
    SEMI JOIN told ON told.relationship_id = r.id)
"""
_TOLD = """
SELECT community_id, relationship_id, source_id, target_id, weight
FROM told JOIN {relationships} r ON r.id = relationship_id ORDER BY ALL
"""
_FINDINGS = """
SELECT community_id, size, findings FROM {reports} r SEMI JOIN below USING (community_id)
JOIN (SELECT id AS community_id, size FROM {communities}) USING (community_id)
"""


@dataclass(frozen=True, kw_only=True)
class ReportSentence:
    """A sentence of a community's evidence, and where it stands in its document."""

    text: str
    chunk_id: str | None
    start_char: int | None
    end_char: int | None
    entities: frozenset[str]
    score: float
    heading: str = ""
    """What a report that it is taken from calls it."""


class ExtractiveWriter:
    """Writes reports from the evidence of a community's relationships; it cannot fail."""

    name = "extractive"
    is_model = False

    def __init__(self, settings: ReportSettings) -> None:
        self._max_findings = settings.max_findings

    @property
    def version(self) -> str:
        """A hash of all that decides a report besides its context."""
        return fingerprint(EXTRACTIVE_VERSION, self._max_findings)

    def write(
        self,
        store: IndexStore,
        contexts: Sequence[Context],
        hierarchy: Hierarchy = GRAPH,
        evidence: Evidence | None = None,
    ) -> WrittenReports:
        """Write a report for each context, from ``evidence`` where that was read before."""
        with store.read() as con:
            material = _read_material(con, contexts, hierarchy, evidence)
        reader = store.recall(_READER)
        if not isinstance(reader, _Reader):
            reader = _Reader()
            store.remember(_READER, reader)
        return WrittenReports(self._written(material, contexts, reader))

    def write_from(
        self,
        con: duckdb.DuckDBPyConnection,
        contexts: Sequence[Context],
        hierarchy: Hierarchy = GRAPH,
    ) -> Mapping[str, ReportText]:
        """Return a report for each context, by community, from tables that are open."""
        return self._written(_read_material(con, contexts, hierarchy), contexts, _Reader())

    def _written(
        self, material: _Material, contexts: Sequence[Context], reader: _Reader
    ) -> Mapping[str, ReportText]:
        sentences = _sentences(material, contexts, reader)
        titles = dict(material.titles.iter_rows())
        return {
            community: write_extractive(
                title,
                n_entities,
                n_relationships,
                weight,
                sentences[community],
                titles,
                self._max_findings,
            )
            for community, title, n_entities, n_relationships, weight in (
                material.communities.iter_rows()
            )
        }


@dataclass(frozen=True)
class _Material:
    """Material of the reports on some communities.

    ``communities``: (id, title, size, n_relationships, weight); ``titles``: (entity id, title);
    ``told``: (community_id, relationship_id, source_id, target_id, weight) of their contexts;
    ``sentences``: the instances behind these relationships; ``findings`` by sub-community, with
    its size.
    """

    communities: pl.DataFrame
    titles: pl.DataFrame
    told: pl.DataFrame
    sentences: pl.DataFrame
    findings: Mapping[str, tuple[int, Sequence[Mapping[str, Any]]]]


class _Reader:
    """Reads sentences as :func:`read_prose` and :func:`n_spoken` do.

    Those of the time before it still knows: what a community is told of is mostly what those within
    it were told of.
    """

    def __init__(self) -> None:
        self._known = _read_texts(pl.Series("text", [], pl.String))

    def read(self, texts: pl.Series) -> pl.DataFrame:
        """Return (text, plain, grade, leans, n_spoken) of different texts."""
        asked = texts.to_frame("text")
        known = self._known.join(asked, "text", "semi")
        new = asked.join(known, "text", "anti")["text"]
        self._known = pl.concat([known, _read_texts(new)]) if len(new) else known
        return self._known


def _read_texts(texts: pl.Series) -> pl.DataFrame:
    spoken = pl.Series("n_spoken", n_spoken(texts.to_list()), pl.Int32)
    return pl.DataFrame(read_prose(texts.to_list())).with_columns(spoken, text=texts)


def write_extractive(
    title: str,
    n_entities: int,
    n_relationships: int,
    evidence: float,
    sentences: Iterable[ReportSentence],
    entity_titles: dict[str, str],
    max_findings: int,
) -> ReportText:
    """Write a report from ranked evidence.

    Sentences are taken greedily by score, and by how many entities they tell of that none before
    did, so that the findings do not repeat each other. The rating is
    10 ln(1 + ``evidence``) / ln(1 + 100 000), at most 10, where ``evidence`` is the number of
    instances in the text of the community's relationships. It depends on the community alone, so
    that what else is in the corpus changes no rating: 10 instances rate 2, 1000 rate 6.
    """
    selection = select_sentences(list(sentences), max_findings)
    findings = tuple(_finding(sentence, entity_titles) for sentence in selection)
    rating = round(min(10.0, 10 * math.log1p(evidence) / math.log1p(_MOST_EVIDENCE)), 1)
    return ReportText(
        title=title,
        summary=_summary(title, n_entities, n_relationships, findings),
        rating=rating,
        rating_explanation=f"{evidence:g} supporting instances in the text.",
        findings=findings,
    )


def select_sentences(sentences: Sequence[ReportSentence], most: int) -> list[ReportSentence]:
    """Choose up to ``most`` sentences, best first, each as new as it can be.

    One that says in most of its words, and no new number, what an earlier one said is left out.
    """
    covered: set[str] = set()
    chosen: list[frozenset[str]] = []
    ranked = sorted(sentences, key=_rank)
    # What a sentence is worth falls as others are chosen: only the first is looked at again.
    candidates = [(-_worth(sentence, covered), place) for place, sentence in enumerate(ranked)]
    heapify(candidates)
    selection: list[ReportSentence] = []
    while candidates and len(selection) < most:
        worth, place = candidates[0]
        best = ranked[place]
        now = -_worth(best, covered)
        if now != worth:
            heapreplace(candidates, (now, place))
            continue
        heappop(candidates)
        words = frozenset(terms(best.text) or [best.text])
        if any(_is_said(words, earlier) for earlier in chosen):
            continue
        selection.append(best)
        chosen.append(words)
        covered |= best.entities
    return selection


def _worth(sentence: ReportSentence, covered: set[str]) -> float:
    return round(sentence.score * _novelty(sentence, covered), _DIGITS)


def _is_said(words: frozenset[str], earlier: frozenset[str]) -> bool:
    """Whether an earlier sentence has most of these words, and all that hold a number."""
    new = words - earlier
    if len(new) > (1 - _SAID) * len(words):
        return False
    return not any(character.isdigit() for word in new for character in word)


def _rank(sentence: ReportSentence) -> tuple[float, str, str, int]:
    """Return a total order: sums of scores differ in their last digits from run to run."""
    place = sentence.start_char or 0
    return (-round(sentence.score, _DIGITS), sentence.text, sentence.chunk_id or "", place)


def _novelty(sentence: ReportSentence, covered: set[str]) -> float:
    if not sentence.entities:
        return 0.5
    return 0.1 + len(sentence.entities - covered) / len(sentence.entities)


def _finding(sentence: ReportSentence, titles: dict[str, str]) -> Finding:
    names = sorted({titles[e] for e in sentence.entities if e in titles})
    return Finding(
        sentence.heading or " – ".join(names[:_TITLES_SHOWN]) or "Evidence",
        sentence.text,
        sentence.chunk_id,
        sentence.start_char,
        sentence.end_char,
    )


def _summary(title: str, n_entities: int, n_relationships: int, findings: Sequence[Finding]) -> str:
    size = f"{n_entities} entities and {n_relationships} relationships around {title}."
    return " ".join(finding.explanation for finding in findings[:2]) or size


def _read_material(
    con: duckdb.DuckDBPyConnection,
    contexts: Sequence[Context],
    hierarchy: Hierarchy,
    evidence: Evidence | None = None,
) -> _Material:
    evidence = evidence or read_evidence(con, contexts, hierarchy)
    pairs = [(c.community_id, relationship) for c in contexts for relationship in c.relationships]
    put_rows(con, "told", _strings(pairs, "community_id", "relationship_id"))
    below = {child for context in contexts for child in context.sub_reports}
    put_rows(con, "below", _strings([(child,) for child in sorted(below)], "community_id"))
    sql = hierarchy.sql
    reported = [context.community_id for context in contexts]
    return _Material(
        evidence.communities.filter(pl.col("id").is_in(reported)),
        con.sql(sql(_TITLES)).pl(),
        con.sql(sql(_TOLD)).pl(),
        evidence.sentences,
        {row[0]: row[1:] for row in con.execute(sql(_FINDINGS)).fetchall()},
    )


def _strings(rows: Sequence[tuple[str, ...]], *names: str) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _sentences(
    material: _Material, contexts: Sequence[Context], reader: _Reader
) -> dict[str, list[ReportSentence]]:
    """Return each context's best sentences, scored by the relationships they support.

    A relationship counts by the logarithm of its weight and by how many of the community's
    relationships meet at its ends; a sentence counts for more with each name of the title that it
    says, for less if it is long, cut off by its chunk, leans on the sentence before it, is spoken
    to a listener (``n_spoken``), or stands in three documents or more in the same words. Code and
    tables are never quoted, headings and other fragments only where there is no whole sentence. The
    findings of its sub-reports follow.
    """
    ranking = (
        _worthy(_ranked(_scored(material.told).join(material.sentences, "relationship_id")), reader)
        .join(material.communities.select(community_id="id", title="title"), "community_id")
        .with_columns(score=pl.col("score") * (1 + _n_named()))
        .sort(*_IN_ORDER)
        .group_by("community_id", maintain_order=True)
        .head(_CANDIDATES)
    )
    sentences_of: dict[str, list[ReportSentence]] = {
        context.community_id: [] for context in contexts
    }
    columns = ("community_id", "text", "chunk_id", "start_char", "end_char", "entities", "score")
    for community, text, chunk, start, end, entities, score in ranking.select(columns).iter_rows():
        sentences_of[community].append(
            ReportSentence(
                text=text,
                chunk_id=chunk,
                start_char=start,
                end_char=end,
                entities=frozenset(entities),
                score=score,
            )
        )
    _add_findings(sentences_of, material, contexts)
    return sentences_of


_IN_ORDER = (
    pl.col("community_id"),
    -pl.col("score").round(_DIGITS),
    pl.col("text"),
    pl.col("chunk_id"),
    pl.col("start_char"),
    pl.col("end_char"),
)


def _n_named() -> pl.Expr:
    """Return how many of the names in a title a text says, but for whoever says it."""
    names = pl.col("title").str.to_lowercase().str.split(", ")
    parts = [names.list.get(place, null_on_oob=True) for place in range(_TITLES_SHOWN)]
    text = pl.col("text").str.replace(SPEAKER, "").str.to_lowercase()
    said = [text.str.contains(part.fill_null("\0"), literal=True) for part in parts]
    return pl.sum_horizontal(said)


def _ranked(instances: pl.DataFrame) -> pl.DataFrame:
    """Return each community's best sentences, the scores of what each supports summed up.

    They are added in the order of the relationships, as sums of fractions depend on it.
    """
    place = ("community_id", "chunk_id", "start_char", "end_char", "text")
    return (
        instances.sort(*place, "relationship_id")
        .group_by(*place, "cut_off", "block", maintain_order=True)
        .agg(
            pl.col("score").sum(),
            pl.col("n_documents").max(),
            pl.col("source_id"),
            pl.col("target_id"),
        )
        .with_columns(
            score=pl.col("score")
            * pl.when("cut_off").then(_CUT_OFF).otherwise(1.0)
            * pl.when(pl.col("n_documents") < REPEATED_IN).then(1.0).otherwise(_REPEATED)
            / pl.max_horizontal(pl.col("text").str.len_chars(), _SHORT).sqrt(),
            entities=pl.concat_list("source_id", "target_id").list.unique(),
        )
        .sort(*_IN_ORDER)
        .group_by("community_id", maintain_order=True)
        .head(_READ)
    )


def _worthy(ranking: pl.DataFrame, reader: _Reader) -> pl.DataFrame:
    """Return what can be quoted, as a reader wants it, its score by what it reads as."""
    prose = reader.read(ranking["text"].unique())
    grade = (
        pl.when(pl.col("block").is_in(["code", "table"]))
        .then(int(Prose.CODE))
        .when(pl.col("block") == "heading")
        .then(pl.min_horizontal("grade", int(Prose.FRAGMENT)))
        .when(pl.col("block") == "list")
        .then(pl.min_horizontal("grade", int(Prose.ITEM)))
        .otherwise("grade")
    )
    graded = ranking.join(prose, "text").with_columns(grade=grade.cast(pl.Int8))
    has_sentences = (pl.col("grade") >= int(Prose.ITEM)).any().over("community_id")
    return graded.filter(
        pl.col("grade") >= pl.when(has_sentences).then(int(Prose.ITEM)).otherwise(1)
    ).with_columns(
        text="plain",
        score=pl.col("score")
        * pl.col("grade").replace_strict(_WORTH, return_dtype=pl.Float64)
        * pl.when("leans").then(_LEANING).otherwise(1.0)
        / (1 + pl.col("n_spoken")),
    )


def _scored(sentences: pl.DataFrame) -> pl.DataFrame:
    ends = pl.concat(
        [
            sentences.select("community_id", entity_id="source_id"),
            sentences.select("community_id", entity_id="target_id"),
        ]
    )
    degrees = ends.group_by("community_id", "entity_id").agg(degree=pl.len())
    return (
        sentences.join(
            degrees, left_on=["community_id", "source_id"], right_on=["community_id", "entity_id"]
        )
        .join(
            degrees,
            left_on=["community_id", "target_id"],
            right_on=["community_id", "entity_id"],
            suffix="_target",
        )
        .select(
            "community_id",
            "relationship_id",
            "source_id",
            "target_id",
            score=pl.col("weight").log1p() * (pl.col("degree") + pl.col("degree_target")),
        )
    )


def _add_findings(
    sentences: dict[str, list[ReportSentence]], material: _Material, contexts: Sequence[Context]
) -> None:
    """Add the findings of sub-reports, first ones first, each sub-community told apart.

    Those of a larger sub-community count for more.
    """
    titles = dict(material.communities.select("id", "title").iter_rows())
    for context in contexts:
        names = titles.get(context.community_id, "").casefold().split(", ")
        own = sentences[context.community_id]
        best = max((sentence.score for sentence in own), default=1.0)
        below = {c: material.findings[c] for c in context.sub_reports if c in material.findings}
        largest = max((size for size, _ in below.values()), default=1)
        for child, (size, findings) in below.items():
            weight = best * math.log1p(size) / math.log1p(largest)
            for place, finding in enumerate(findings[:_SUB_FINDINGS]):
                said = finding["explanation"].casefold()
                n_named = sum(name in said for name in names[:_TITLES_SHOWN])
                own.append(
                    ReportSentence(
                        text=finding["explanation"],
                        chunk_id=finding["chunk_id"],
                        start_char=finding["start_char"],
                        end_char=finding["end_char"],
                        entities=frozenset({child}),
                        score=weight * (1 + n_named) / (1 + place),
                        heading=finding["summary"],
                    )
                )
