"""Relevance labels by a model: how good retrieval is where no gold passages are known.

After benchmark-qed's retrieval scores. A model says of each of the first chunks that any condition
retrieved whether it bears on the question. ``precision@k`` is the share of a condition's first k
chunks that do. Relevant chunks that say nearly the same are one cluster, over all conditions;
``cluster_recall@k`` is the share of a question's clusters that the first k chunks hold one of. What
no condition retrieved is not labelled, so recall is that of what could be found by any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import duckdb
import numpy as np
import polars as pl

from graphrag_evaluation.inquiring import (
    REASONING,
    Asked,
    EvaluationInquiry,
    QuestionForm,
    ask_inquiries,
    made_by,
    plan_missing,
    plan_unseen,
    put_marks,
)
from graphrag_evaluation.metrics.clusters import complete_linkage
from graphrag_evaluation.metrics.retrieval import chunks_of
from graphrag_evaluation.running import opened
from graphrag_evaluation.step_models import model_label
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.core.identity import content_hash, make_id
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.llm.embedders import HashingEmbedder
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object, parse_yes_no
from graphrag_pipeline.llm.schemas import BOOLEAN, closed
from graphrag_pipeline.store.frames import put_rows, streamed

if TYPE_CHECKING:
    from graphrag_evaluation.experiment import Experiment
    from graphrag_evaluation.questions.question import Question
    from graphrag_evaluation.running import Workload
    from graphrag_evaluation.steps import Relevance
    from graphrag_pipeline.llm.pricing import StagePlan

PRECISION: Final = "precision@{}"
RECALL: Final = "cluster_recall@{}"
NEAR: Final = 0.5
"""Chunks whose words' vectors all have this cosine or more with each other are one cluster."""
_CHUNK_TOKENS = 600
_RETRIEVED = """
SELECT a.answer_id, a.question, a.document, a.chunk_ids[:$depth] AS chunk_ids
FROM (SELECT DISTINCT answer_id FROM experiment_answers WHERE experiment = $experiment) x
JOIN answers a USING (answer_id) WHERE len(a.chunk_ids) > 0 ORDER BY ALL
"""
_KEPT = "SELECT grading_id, value FROM gradings SEMI JOIN asked USING (grading_id)"


def parse_label(text: str) -> Mapping[str, Any]:
    """Return 1 or 0 and the reason. Raises ModelOutputError."""
    parsed = parse_json_object(text)
    label = parsed.get("relevant")
    if not isinstance(label, bool):
        label = parse_yes_no(str(label))
    if label is None:
        raise ModelOutputError('the answer must be a JSON object with "relevant": true or false')
    return {"value": float(label), "reason": str(parsed.get("reasoning") or "")}


FORM = QuestionForm(
    name="relevance",
    prompt="label_passage",
    table="gradings",
    key="grading_id",
    parse=parse_label,
    json_schema=closed(reasoning=REASONING, relevant=BOOLEAN),
    answer_tokens=50,
)


@dataclass(frozen=True)
class _Retrieved:
    """The first chunks of an answer, best first: the ids of their labels.

    ``question`` is its text, and the document it is about.
    """

    answer_id: str
    question: tuple[str, str]
    labels: tuple[str, ...]


def plan(
    store: EvaluationStore,
    experiment: Experiment,
    settings: Settings,
    workloads: Sequence[Workload],
    questions: Sequence[Question],
) -> list[StagePlan]:
    """Return the calls that the labels that are missing take, at most."""
    if (step := experiment.relevance) is None:
        return []
    asking = step.settings(settings)
    if any(workload.unanswered for workload in workloads):
        answers = sum(len(w.answer_ids) for w in workloads if w.condition.given is None)
        return [plan_unseen(asking, FORM, answers * max(step.at), _CHUNK_TOKENS)]
    _, inquiries = _inquiries(store, experiment, step, settings)
    with store.read() as con:
        return [plan_missing(con, asking, FORM, list(inquiries.values()))]


def run(store: EvaluationStore, experiment: Experiment, settings: Settings) -> Asked:
    """Label the retrieved chunks that were not labelled yet, and score the answers' retrieval."""
    if (step := experiment.relevance) is None:
        return Asked()
    retrieved, inquiries = _inquiries(store, experiment, step, settings)
    asking = step.settings(settings)
    asked = ask_inquiries(asking, store, FORM, list(inquiries.values()))
    with store.transaction() as con:
        put_rows(con, "marked", _scores(con, retrieved, inquiries, step.at))
        put_marks(con, experiment.name, model_label(step, asking))
    return asked


def relevance_scores(
    first_chunks: Mapping[str, Sequence[str]],
    cluster_of: Mapping[str, int | None],
    depths: Sequence[int],
) -> list[tuple[str, str, float]]:
    """Return (answer_id, metric, value) of the answers to one question.

    ``first_chunks`` are an answer's chunks, best first; ``cluster_of`` says which cluster a chunk
    is of, None for one that is not relevant. A chunk that is not in it has no label: an answer has
    no score at a depth that such a chunk is within. Without a relevant chunk there is no recall.
    """
    clusters = {cluster for cluster in cluster_of.values() if cluster is not None}
    scores: list[tuple[str, str, float]] = []
    for answer_id, chunks in first_chunks.items():
        for k in depths:
            first = chunks[:k]
            if not first or any(chunk not in cluster_of for chunk in first):
                continue
            held = [cluster_of[chunk] for chunk in first]
            n_relevant = sum(cluster is not None for cluster in held)
            scores.append((answer_id, PRECISION.format(k), n_relevant / len(first)))
            if clusters:
                share = len(clusters.intersection(held)) / len(clusters)
                scores.append((answer_id, RECALL.format(k), share))
    return scores


def clusters_of(texts: Sequence[str]) -> list[int]:
    """Return the cluster of each text, by complete linkage of the cosines of hashing vectors."""
    if len(texts) < 2:
        return [0] * len(texts)
    vectors = HashingEmbedder().embed(list(texts))
    distances = np.clip(1.0 - vectors @ vectors.T, 0.0, None).astype(np.float64)
    return complete_linkage(distances, 1 - NEAR)


def _inquiries(
    store: EvaluationStore, experiment: Experiment, step: Relevance, settings: Settings
) -> tuple[list[_Retrieved], dict[str, EvaluationInquiry]]:
    """Return what each answer retrieved, and the label to ask for of each question and chunk."""
    with store.read() as con:
        parameters = {"experiment": experiment.name, "depth": max(step.at)}
        rows = con.execute(_RETRIEVED, parameters).fetchall()
    texts = _texts(experiment, settings, {id for *_, ids in rows for id in ids})
    version = made_by(FORM, step, step.settings(settings))
    retrieved, inquiries = [], {}
    for answer_id, question, document, chunk_ids in rows:
        labels = []
        for chunk_id in chunk_ids:
            text = texts.get(chunk_id, "")
            label = make_id("relevance", question, content_hash(text), version)
            labels.append(label)
            if text:
                inquiries[label] = EvaluationInquiry(
                    id=label,
                    values={"question": question, "context": text},
                    columns={"kind": "relevance", "question": question, "answer_id": "",
                             "subject": chunk_id, "replicate": 0},
                )  # fmt: skip
        retrieved.append(_Retrieved(answer_id, (question, document), tuple(labels)))
    return retrieved, inquiries


def _texts(experiment: Experiment, settings: Settings, ids: set[str]) -> dict[str, str]:
    """Return the texts of chunks, each from a release of the experiment that holds it."""
    texts: dict[str, str] = {}
    for engine in opened(experiment, settings):
        if not (missing := sorted(ids - texts.keys())):
            break
        chunks = chunks_of(engine.index, missing).to_pydict()
        texts |= dict(zip(chunks["chunk_id"], chunks["text"], strict=True))
    return texts


def _scores(
    con: duckdb.DuckDBPyConnection,
    retrieved: Sequence[_Retrieved],
    inquiries: Mapping[str, EvaluationInquiry],
    depths: Sequence[int],
) -> pl.DataFrame:
    """Return (answer_id, metric, value) of all answers by the labels there are."""
    ids = pl.DataFrame({"grading_id": list(inquiries)}, {"grading_id": pl.String})
    with streamed(con, "asked", ids):
        labels = dict(con.execute(_KEPT).fetchall())
    by_question: dict[tuple[str, str], dict[str, Sequence[str]]] = {}
    for item in retrieved:
        by_question.setdefault(item.question, {})[item.answer_id] = item.labels
    scores: list[tuple[str, str, float]] = []
    for first in by_question.values():
        known = dict.fromkeys(id for ids in first.values() for id in ids if id in labels)
        relevant = [id for id in known if labels[id]]
        clusters = clusters_of([inquiries[id].values["context"] for id in relevant])
        cluster_of = {**known, **dict(zip(relevant, clusters, strict=True))}
        scores += relevance_scores(first, cluster_of, depths)
    schema = {"answer_id": pl.String, "metric": pl.String, "value": pl.Float64}
    return pl.DataFrame(scores, schema, orient="row")
