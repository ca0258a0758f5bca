"""frequent_words.py: frequent long words of each document, and a method that goes by them."""

from collections import Counter
from dataclasses import dataclass

import polars as pl

from graphrag_pipeline.core.settings import fingerprint
from graphrag_pipeline.core.text import terms
from graphrag_pipeline.query import Method, operators
from graphrag_pipeline.query.methods.method import number
from graphrag_pipeline.store.index_store import get_meta, insert, set_meta
from graphrag_pipeline.structures import Estimate, Outcome, Step, Structure

NAME = "frequent_words"
SCHEMA = """
CREATE TABLE IF NOT EXISTS frequent_words (document_id VARCHAR NOT NULL, word VARCHAR NOT NULL);
COMMENT ON TABLE frequent_words IS 'The most frequent long words of each document.';
COMMENT ON COLUMN frequent_words.document_id IS 'The document; joins documents.id.';
COMMENT ON COLUMN frequent_words.word IS 'A word, as search has it.';
"""


def version(settings):
    return fingerprint("five words of six letters")


def state(con, settings):
    documents = con.execute("SELECT list((id, content_hash) ORDER BY id) FROM documents").fetchone()
    return fingerprint(version(settings), documents)


def is_current(con, settings):
    return get_meta(con, NAME) == state(con, settings)


def update(workspace):
    with workspace.store.transaction() as con:
        if is_current(con, workspace.settings):
            return Outcome({"written": 0})
        documents = con.sql("SELECT id, text FROM documents ORDER BY id").fetchall()
        rows = [(id, word) for id, text in documents for word in frequent(text)]
        con.execute("DELETE FROM frequent_words")
        insert(con, NAME, pl.DataFrame(rows, ["document_id", "word"], orient="row"))
        set_meta(con, NAME, state(con, workspace.settings))
    return Outcome({"written": len(rows)})


def frequent(text):
    return [word for word, _ in Counter(w for w in terms(text) if len(w) > 5).most_common(5)]


WORDS = Structure(
    NAME,
    schema=SCHEMA,
    tables=[NAME],
    meta=[NAME],
    version=version,
    estimate=lambda settings, growth: Estimate(),
    steps=[
        Step(
            key=("structures", NAME),
            about="The most frequent long words of each document.",
            table=NAME,
            update=update,
            is_current=is_current,
            late="frequent words",
            made_from=["documents"],
        )
    ],
)

CHUNKS = """
SELECT c.id, count(*) AS score FROM frequent_words w JOIN chunks c USING (document_id)
WHERE w.word IN (SELECT unnest($words::JSON::VARCHAR[])) GROUP BY c.id ORDER BY score DESC, c.id
"""


@dataclass(frozen=True)
class FrequentParameters:
    """Text of the documents that often say the words of the question."""

    max_context_tokens: int = number(4000)


def by_frequent_words(index, question, p):
    rows = index.rows(CHUNKS, words=terms(question))
    ranking = {row["id"]: float(row["score"]) for row in rows}
    return operators.fill(index, operators.chunk_records(index, ranking), p.max_context_tokens)


FREQUENT = Method(
    name="frequent",
    summary="documents that often say the words",
    parameters=FrequentParameters,
    retrieve=by_frequent_words,
    prompt="basic_answer",
)
