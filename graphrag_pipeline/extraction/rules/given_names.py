"""People whom a text goes on to call by their given names: Ann Lee, then Ann."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.extraction.rules.entity_types import (
    OTHER,
    PERSON,
    is_common,
    may_be_given,
)

_AFTER_MC = pattern_of(r"(?<=\bMc)[^\W\d_]")


def full_names(types: Mapping[str, str]) -> dict[str, str]:
    """Return for each given name of a text the one person's full name that begins with it.

    ``types`` are those of the names. A name that several bear, as a given or a last name, is
    left out; also those of unknown type may bear it. The full name is in capitals only where the
    given name is, too.
    """
    alone = [name for name, kind in types.items() if kind == PERSON and " " not in name]
    if not alone:
        return {}
    kinds = {name: kind for name, kind in types.items() if kind in (PERSON, OTHER)}
    bearers: dict[str, dict[str, str]] = defaultdict(dict)
    last = set()
    for name in kinds:
        first, *more = name.split()
        if more:
            last.add(more[-1].casefold())
            same = bearers[first.casefold()]
            written = same.get(normalize_title(name), name)
            # A speaker's name in capitals is written otherwise in running text.
            same[normalize_title(name)] = name if written.isupper() else written
    found = {}
    for name in alone:
        fulls = list(bearers.get(name.casefold(), {}).values())
        if len(fulls) != 1 or name.casefold() in last:
            continue
        (full,) = fulls
        if kinds[full] == PERSON and not (is_common(name) and not may_be_given(name)):
            found[name] = _written(full) if full.isupper() and not name.isupper() else full
    return found


def _written(full: str) -> str:
    """Return a name in capitals as it is written otherwise: Ann McBride, Sean O'Brien."""
    return _AFTER_MC.sub(lambda match: match[0].upper(), full.title())
