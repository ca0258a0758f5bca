"""References to records in what a model writes: ``[Data: Entities (5, 7); Reports (1, +more)]``.

The numbers are human-readable ids (paper, E.2 to E.4). A model invents some; those that were not in
its context are taken out and counted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from graphrag_pipeline.core.patterns import pattern_of

KINDS: Final = ("Reports", "Entities", "Relationships", "Claims", "Summaries", "Sources")
"""The names of the sections of a context, which are those of the records in it."""

_NAMES = {
    "report": "Reports",
    "reports": "Reports",
    "entity": "Entities",
    "entities": "Entities",
    "relationship": "Relationships",
    "relationships": "Relationships",
    "relation": "Relationships",
    "relations": "Relationships",
    "claim": "Claims",
    "claims": "Claims",
    "covariate": "Claims",
    "covariates": "Claims",
    "summary": "Summaries",
    "summaries": "Summaries",
    "source": "Sources",
    "sources": "Sources",
}
_FILLERS = frozenset(
    [
        "data",
        "record",
        "records",
        "reference",
        "references",
        "ref",
        "refs",
        "id",
        "ids",
        "and",
        "no",
    ]
)
_MORE = frozenset(["more"])
_BRACKETS = pattern_of(r"[ \t]?[\[【]([^\[\]【】]+)[\]】]")
_CUT_OFF = pattern_of(r"[ \t]?[\[【]\s*data\s*[:：]([^\[\]【】]*)\Z", re.IGNORECASE)
_PARENTHESES = pattern_of(
    r"[ \t]?\(([^()]{0,20}\bdata\s?:(?:[^()]|\([^()]{0,500}\)){1,1000})\)", re.I
)
_MARKED = pattern_of(r"\s*(?:data|records?|references?|refs?)\s*[:：]", re.IGNORECASE)
# Letters and digits in one, such as the hash of a fence, are one id, which is of no record.
_HASH = r"(?<![0-9A-Za-z])(?=[0-9a-f]*[a-f])(?=[a-f]*[0-9])[0-9a-f]+(?![0-9A-Za-z])"
_TOKEN = pattern_of(rf"{_HASH}|[^\W\d_]+|[0-9]+")
_MAX_DIGITS = 15


@dataclass(frozen=True)
class CheckedText:
    """A text whose references all resolve.

    ``cited`` has each (kind, number) once, in order; ``n_removed`` counts the numbers that were
    taken out.
    """

    text: str
    cited: tuple[tuple[str, int], ...]
    n_removed: int


@dataclass
class _Reference:
    """One bracket: numbers by kind, in order, and what did not resolve."""

    numbers: dict[str, list[int]] = field(default_factory=dict)
    more: set[str] = field(default_factory=set)
    n_removed: int = 0

    def render(self) -> str:
        parts = [
            f"{kind} ({', '.join([*map(str, numbers), *(['+more'] if kind in self.more else [])])})"
            for kind, numbers in self.numbers.items()
        ]
        return f"[Data: {'; '.join(parts)}]" if parts else ""


def check_references(text: str, allowed: Mapping[str, Collection[int]]) -> CheckedText:
    """Rewrite the references of a text in one form, without numbers that are not ``allowed``.

    ``allowed`` has the numbers that were in the model's context by kind of record (``KINDS``). A
    reference of which nothing is left goes altogether. Brackets that are no reference stay.
    """
    allowed_ids = {_NAMES.get(kind.lower(), kind): frozenset(of) for kind, of in allowed.items()}
    references: dict[tuple[str, int], None] = {}
    n_removed = 0

    def rewrite(match: re.Match[str]) -> str:
        nonlocal n_removed
        reference = _read(match[1], allowed_ids)
        if reference is None:
            return match[0]
        n_removed += reference.n_removed
        references.update(
            dict.fromkeys((kind, n) for kind, of in reference.numbers.items() for n in of)
        )
        rendered = reference.render()
        return (match[0][: match[0][0].isspace()] + rendered) if rendered else ""

    # The last number of a reference that was cut off may itself be cut: none of it is kept.
    if cut := _CUT_OFF.search(text):
        n_removed += sum(map(_is_id, _TOKEN.findall(cut[1])))
        text = text[: cut.start()]
    checked = _PARENTHESES.sub(rewrite, _BRACKETS.sub(rewrite, text))
    return CheckedText(checked, tuple(references), n_removed)


def _read(inside: str, allowed_ids: Mapping[str, frozenset[int]]) -> _Reference | None:
    """Return the reference in a pair of brackets, or None where they hold something else."""
    tokens = _TOKEN.findall(inside)
    if not _is_reference(inside, tokens):
        return None
    reference = _Reference()
    pairs: set[tuple[str, str]] = set()
    for kind, token in _labelled(tokens):
        if token == "more":
            reference.more.add(kind)
        elif (kind, token) not in pairs:
            pairs.add((kind, token))
            _take(reference, kind, token, allowed_ids)
    return reference


def _is_reference(inside: str, tokens: Iterable[str]) -> bool:
    """Tell ``[Data: ...]``, or a bracket of nothing but kinds and numbers, from other brackets."""
    words = [token.lower() for token in tokens if not _is_id(token)]
    if _MARKED.match(inside):
        return True
    has_name = any(word in _NAMES for word in words)
    return (
        has_name
        and any(map(_is_id, tokens))
        and all(word in _NAMES or word in _FILLERS or word in _MORE for word in words)
    )


def _is_id(token: str) -> bool:
    return any(map(str.isdecimal, token))


def _labelled(tokens: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Return each number, and each "more", with the kind that was last named before it."""
    kind = ""
    for token in tokens:
        word = token.lower()
        if _is_id(token) or word in _MORE:
            yield kind, word
        elif word not in _FILLERS:
            kind = _NAMES.get(word, token)


def _take(
    reference: _Reference, kind: str, digits: str, allowed_ids: Mapping[str, frozenset[int]]
) -> None:
    if (
        digits.isdecimal()
        and len(digits) <= _MAX_DIGITS
        and int(digits) in allowed_ids.get(kind, frozenset())
    ):
        reference.numbers.setdefault(kind, []).append(int(digits))
    else:
        reference.n_removed += 1
