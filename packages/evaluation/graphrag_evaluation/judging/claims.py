"""Claims that answers make, found by a model, and how many different things they say.

After GraphRAG's second experiment (Edge et al., 2024, 4.2): comprehensiveness is the number of an
answer's claims, duplicates removed, and diversity the number of their clusters, by complete linkage
over 1 - ROUGE-L, at several thresholds (after Padmakumar and He, 2024). The claims are found as
Claimify finds them (Metropolitansky and Larson, 2025): sentence by sentence, seen within the
answer, in the steps select, disambiguate and decompose. There each step is a call for each
sentence; here one call takes all steps for up to ``SENTENCES`` of them, numbered so that none is
passed over, with the sentences before them: as a rule one call an answer, where Claimify makes a
hundred. The prompt is our own wording.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import duckdb
import numpy as np
import polars as pl

from graphrag_evaluation.inquiring import Asked, Reader, Wording, ask_each
from graphrag_evaluation.metrics.answers import (
    UNSPACED,
    bare,
    normalized,
    rouge_l_of_words,
    sentence_texts,
)
from graphrag_evaluation.metrics.clusters import complete_linkage
from graphrag_evaluation.step_models import ROLE
from graphrag_evaluation.store import EvaluationStore
from graphrag_pipeline.core.identity import make_id
from graphrag_pipeline.core.progress import Listener, report
from graphrag_pipeline.core.prompting import load_prompt, prompt_version
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.llm.configured import answered_by, model_prices, prompts_folder
from graphrag_pipeline.llm.errors import ModelOutputError
from graphrag_pipeline.llm.parsing import parse_json_object
from graphrag_pipeline.llm.pricing import StagePlan
from graphrag_pipeline.llm.schemas import INTEGER, closed, listed, text
from graphrag_pipeline.store.frames import drop_rows, put_rows
from graphrag_pipeline.store.index_store import insert

SENTENCES: Final = 40
"""So many sentences are asked about at once."""
CLAIMS: Final = "claims"
"""Name of the score that counts an answer's claims."""
CLUSTERS: Final = "claim_clusters@{:g}"
"""Name of the score that counts their clusters at a threshold."""

_VERSION = "1"
_WORD = re.compile(r"[^\W_]+")
_BEFORE = 5
_MOST = 1000
_LONGEST = 1000
_CLAIMS_OF_A_SENTENCE = 20
_CLAIM_TOKENS_PER_TOKEN = 1.2
_OF_A_SENTENCE = closed(number=INTEGER, claims=listed(text(_LONGEST), _CLAIMS_OF_A_SENTENCE))
_WORDING = Wording(
    name=CLAIMS,
    prompt="eval_claims",
    json_schema=closed(sentences=listed(_OF_A_SENTENCE, SENTENCES)),
)
_MISSING = """
SELECT answer_id, question, text FROM answers SEMI JOIN asked USING (answer_id)
LEFT JOIN claim_extractions e USING (answer_id)
WHERE e.extractor IS DISTINCT FROM $extractor ORDER BY answer_id
"""
_OUTDATED = f"""
DELETE FROM scores WHERE answer_id IN (SELECT answer_id FROM examined)
  AND model = $model
  AND (metric = '{CLAIMS}' OR starts_with(metric, '{CLUSTERS.partition("{")[0]}'))
"""
_UNSCORED = """
SELECT x.answer_id, c.claims, s.metrics
FROM (SELECT DISTINCT answer_id FROM experiment_answers WHERE experiment = $experiment) x
SEMI JOIN claim_extractions USING (answer_id)
LEFT JOIN (SELECT answer_id, list(claim ORDER BY position) AS claims FROM claims
           GROUP BY answer_id) c USING (answer_id)
LEFT JOIN (SELECT answer_id, list(metric) AS metrics FROM scores
           WHERE question_set = $set AND model = $model GROUP BY answer_id) s USING (answer_id)
WHERE NOT list_has_all(coalesce(s.metrics, []), $wanted) ORDER BY x.answer_id
"""


@dataclass(frozen=True)
class Unexamined:
    """An answer whose claims are to be asked for."""

    answer_id: str
    question: str
    text: str


@dataclass(frozen=True)
class _Piece:
    """Sentences that are asked about at once, and those before them."""

    question: str
    before: tuple[str, ...]
    sentences: tuple[str, ...]

    @property
    def values(self) -> dict[str, str]:
        """The values that the prompt is filled with."""
        numbered = [f"{n}. {sentence}" for n, sentence in enumerate(self.sentences, 1)]
        return {
            "question": self.question,
            "context": "\n".join(self.before) or "(nothing)",
            "text": "\n".join(numbered),
        }


def extractor_of(settings: Settings, answered: Sequence[object] = ()) -> str:
    """Return a hash of what decides which claims are found in an answer: model and prompt.

    ``answered`` is what decides the model's answers, where that is more than the settings say.
    """
    prompt = prompt_version(_WORDING.prompt, folder=prompts_folder(settings))
    return make_id(
        "claims", _VERSION, prompt, *map(repr, answered or answered_by(settings.llm_for(ROLE)))
    )


def unexamined_answers(
    con: duckdb.DuckDBPyConnection, answer_ids: Iterable[str], extractor: str
) -> list[Unexamined]:
    """Return those of some answers that there are and this extractor has not examined."""
    put_rows(con, "asked", pl.DataFrame({"answer_id": list(answer_ids)}, {"answer_id": pl.String}))
    try:
        return [
            Unexamined(*row) for row in con.execute(_MISSING, {"extractor": extractor}).fetchall()
        ]
    finally:
        drop_rows(con, "asked")


def plan_claims(settings: Settings, answers: Sequence[Unexamined]) -> StagePlan:
    """Return what examining these answers would take, retries left out."""
    prompt = load_prompt(_WORDING.prompt, prompts_folder(settings))
    pieces = {piece for answer in answers for piece in _pieces(answer)}
    talks = [message["content"] for piece in pieces for message in prompt.render(**piece.values)]
    claim_tokens = sum(count_tokens(["\n".join(piece.sentences) for piece in pieces]))
    read, output = sum(count_tokens(talks)), round(claim_tokens * _CLAIM_TOKENS_PER_TOKEN)
    cost = model_prices(settings, ROLE).cost(settings.llm.model, read, output)
    return StagePlan(
        stage=CLAIMS,
        model=settings.llm.model,
        calls=len(pieces),
        cached=0,
        prompt_tokens=read,
        completion_tokens=output,
        cost=cost,
    )


def examine(
    settings: Settings,
    store: EvaluationStore,
    unexamined: Sequence[Unexamined],
    progress: Listener = report,
    *,
    extractor: str = "",
    model: str = "",
) -> Asked:
    """Ask for the claims of answers and keep them in ``claims``, duplicates removed.

    The scores of claims that ``model`` had found are outdated; those of other models stay. The same
    answer to the same question is asked about once. An answer some part of which cannot be
    read is left out, and told. Raises the model's error when no further call can succeed; what was
    answered until then is kept.
    """
    if not unexamined:
        return Asked()
    claims: dict[tuple[str, str], list[str]] = {}
    answers = {(answer.question, answer.text): answer for answer in unexamined}

    async def ask(reader: Reader, answer: Unexamined) -> None:
        parts = [await reader.read(piece.values, parse_claims) for piece in _pieces(answer)]
        claims[answer.question, answer.text] = distinct([claim for part in parts for claim in part])

    asked = Asked()
    try:
        asked = ask_each(settings, _WORDING, list(answers.values()), ask, progress)
    finally:
        claims_of = {
            answer.answer_id: claims[answer.question, answer.text]
            for answer in unexamined
            if (answer.question, answer.text) in claims
        }
        _keep(store, claims_of, extractor or extractor_of(settings), model)
    return Asked(len(claims_of), asked.failures)


def score_claims(
    store: EvaluationStore, experiment: str, thresholds: Sequence[float], model: str = ""
) -> int:
    """Write how many claims the examined answers make and how many clusters these form.

    The scores are those of ``model``, by which the experiment goes from now on. Returns the number
    of scores written; those there are stay.
    """
    names = [CLAIMS, *map(CLUSTERS.format, thresholds)]
    with store.transaction() as con:
        row = con.execute(
            "SELECT question_set FROM experiments WHERE experiment = ?", [experiment]
        ).fetchone()
        parameters = {
            "experiment": experiment,
            "set": row[0] if row else "",
            "wanted": names,
            "model": model,
        }
        due_rows = con.execute(_UNSCORED, parameters).fetchall()
        rows = [
            (answer_id, parameters["set"], name, float(value), model)
            for answer_id, claims, has in due_rows
            for name, value in zip(names, _counts(claims or [], thresholds), strict=True)
            if name not in (has or ())
        ]
        if rows:
            con.executemany("INSERT INTO scores VALUES (?, ?, ?, ?, ?)", rows)
        con.executemany(
            "INSERT OR REPLACE INTO experiment_models VALUES (?, ?, ?)",
            [(experiment, name, model) for name in names],
        )
    return len(rows)


def distinct(claims: Sequence[str]) -> list[str]:
    """Return the claims that say something, each once whatever its case and punctuation."""
    first: dict[tuple[str, ...], str] = {}
    for claim in claims:
        if key := tuple(_words(normalized(claim))):
            first.setdefault(key, claim)
    return list(first.values())[:_MOST]


def cluster_counts(claims: Sequence[str], thresholds: Sequence[float]) -> list[int]:
    """Return the number of clusters at each threshold, of an answer's distinct claims.

    Two clusters are joined if each claim of the one is nearer than the threshold to each of the
    other (complete linkage), by 1 - ROUGE-L.
    """
    if len(claims) < 2:
        return [len(claims)] * len(thresholds)
    distances = rouge_distances(claims)
    return [len(set(complete_linkage(distances, threshold))) for threshold in thresholds]


def rouge_distances(claims: Sequence[str]) -> np.ndarray:
    """Return 1 - ROUGE-L of each pair of claims, shape (n, n).

    Words are those of rouge-score for Latin text, without stemming; text in scripts that write none
    apart is compared character by character.
    """
    words = [_words(claim) for claim in claims]
    distances = np.zeros((len(words), len(words)))
    for row in range(len(words)):
        for two in range(row):
            distance = 1.0 - rouge_l_of_words(words[row], words[two])
            distances[row, two] = distances[two, row] = distance
    return distances


def parse_claims(text: str) -> list[str]:
    """Return the claims in a model's answer, in order. Raises ModelOutputError."""
    parsed = parse_json_object(text)
    listed = parsed.get("sentences", parsed.get("claims"))
    if not isinstance(listed, list):
        raise ModelOutputError('the answer must be a JSON object with the list "sentences"')
    return [
        claim[:_LONGEST]
        for item in listed
        for entry in _entries(item)
        if isinstance(entry, str) and (claim := " ".join(entry.split()))
    ]


def _entries(item: object) -> Sequence[object]:
    claims = item.get("claims") if isinstance(item, Mapping) else item
    return claims if isinstance(claims, list) else [claims]


def _counts(claims: Sequence[str], thresholds: Sequence[float]) -> list[int]:
    return [len(claims), *cluster_counts(claims, thresholds)]


def _words(claim: str) -> list[str]:
    return _WORD.findall(UNSPACED.sub(r" \g<0> ", claim.lower()))


def _pieces(answer: Unexamined) -> Iterator[_Piece]:
    sentences = sentence_texts(bare(answer.text))
    for first in range(0, len(sentences), SENTENCES):
        before = tuple(sentences[max(0, first - _BEFORE) : first])
        yield _Piece(answer.question, before, tuple(sentences[first : first + SENTENCES]))


def _keep(
    store: EvaluationStore, claims_of: Mapping[str, Sequence[str]], extractor: str, model: str
) -> None:
    """Make these the claims of answers; the model's scores of claims that they had are outdated."""
    if not claims_of:
        return
    examined = pl.DataFrame({"answer_id": list(claims_of)}).with_columns(
        extractor=pl.lit(extractor)
    )
    claims = pl.DataFrame(
        [(id, n, claim) for id, claims in claims_of.items() for n, claim in enumerate(claims)],
        schema={"answer_id": pl.String, "position": pl.Int32, "claim": pl.String},
        orient="row",
    )
    with store.transaction() as con:
        put_rows(con, "examined", examined)
        for table in ("claims", "claim_extractions"):
            con.execute(f"DELETE FROM {table} WHERE answer_id IN (SELECT answer_id FROM examined)")
        con.execute(_OUTDATED, {"model": model})
        drop_rows(con, "examined")
        insert(con, "claims", claims)
        insert(con, "claim_extractions", examined)
