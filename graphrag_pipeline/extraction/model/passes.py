"""Extraction in two passes: few-shot examples for each, made from those for one (HiRAG, 4.1)."""

from __future__ import annotations

import re

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.extraction.model.tuples import parse_tuples

_RECORDS = pattern_of(r"^Records:\n(?P<records>.*?)(?=\n?<\|COMPLETE\|>)", re.DOTALL | re.MULTILINE)
_TYPES = pattern_of(r"^Entity types: .*\n", re.MULTILINE)
_BETWEEN = pattern_of(r"\n##[ \t]*\n")


def entity_examples(examples: str) -> str:
    """Return examples whose records are entities only.

    One that does not list them as those that ship do stays as it is.
    """
    return _RECORDS.sub(lambda found: f"Records:\n{_of_kind(found['records'], 'entity')}", examples)


def relation_examples(examples: str) -> str:
    """Return examples whose records are relationships only, the names of the entities given."""
    return _TYPES.sub("", _RECORDS.sub(_with_names, examples))


def _with_names(found: re.Match[str]) -> str:
    names = "\n".join(entity.title for entity in parse_tuples(found["records"]).entities)
    return f"Entities:\n{names}\nRecords:\n{_of_kind(found['records'], 'relationship')}"


def _of_kind(records: str, kind: str) -> str:
    split = (record.strip() for record in _BETWEEN.split(records))
    return "\n##\n".join(record for record in split if record.startswith(f'("{kind}"'))
