"""nearby.py: text of the entities around those that a question names."""

from dataclasses import dataclass

from graphrag_pipeline.query import Method, operators
from graphrag_pipeline.query.methods.method import number


@dataclass(frozen=True)
class NearbyParameters:
    """Text of the entities within ``hops`` steps of those named in the question."""

    hops: int = number(1)
    max_context_tokens: int = number(4000)


def nearby(index, question, p):
    named = operators.entities_named_in(index, question, 5)
    return around(index, named, p)


def around(index, named, p):
    near = operators.neighbours(index, named, hops=p.hops)
    chunks = operators.chunks_of(index, named | near, limit=50)
    return operators.fill(index, operators.chunk_records(index, chunks), p.max_context_tokens)


NEARBY = Method(
    name="nearby",
    summary="text around the entities named",
    parameters=NearbyParameters,
    retrieve=nearby,
    prompt="basic_answer",
)
