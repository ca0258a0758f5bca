"""Names of bodies in Russian and Ukrainian: by what they are, by their legal form, or by a list.

*Онежское пароходство*, *Министерство обороны*, *ООО «Вектор»*, *газета Карелия*, *Уралмаш*. Of
a name in quotation marks the name alone is one, whatever stands before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.core.word_lists import word_lists
from graphrag_pipeline.extraction.rules.declensions import declensions
from graphrag_pipeline.extraction.rules.entity_types import ORGANIZATION, is_place, may_be_given
from graphrag_pipeline.extraction.rules.scripts import Place

_ADJECTIVE = (
    r"[А-ЯЁІЇЄ][а-яёіїє]+(?:-[А-ЯЁІЇЄа-яёіїє]+)?(?:ий|ый|ой|ая|яя|ое|ее|ого|его|ому|ему|ым|им|ом|ем|ую|юю"
    r"|ой|ей|ые|ие|ых|их|ька|ського|ський|ське)"
)
_SMALL_ADJECTIVE = r"[а-яё]+(?:ск|н)(?:ий|ый|ой|ая|ое|ого|ому|ым|им|ом|ую)"
_SURNAME = pattern_of(r"[^ ]+(?:[оеё]в|[иы]н|ский)(?:а|ой|у|ым|ого)?")
_OF = (
    r"(?!города\b|страны\b|дня\b|года\b)(?:[а-яёіїє]+(?:ого|его|ой|ей|ых|их) )?"
    r"[а-яёіїє]{3,}(?:а|я|ы|и|ов|ев|ей|і|ів)(?<!ся)\b"
)
_NAME = r"[А-ЯЁІЇЄ][А-ЯЁІЇЄа-яёіїє-]+"
_AS_OF = tuple("оуиеэы")
_QUOTED = r"[«„“\"](?P<quoted>[^«»„“”\"\n]{2,80})[»“”\"]"
_NOT_QUOTED = rf"(?P<bare>{_NAME}(?: {_NAME})?)"


def _cues(section: str) -> frozenset[str]:
    return word_lists("nlp_names.txt")[section]


def _forms(section: str) -> str:
    """Return what finds each word of a section in each of its cases, the longest first."""
    forms = {form for word in _cues(section) for form in declensions(word)}
    return "|".join(map(re.escape, sorted(forms, key=lambda form: (-len(form), form))))


@cache
def _bodies() -> re.Pattern[str]:
    whole = f"(?:{_forms('ru_body_of')})"
    capital = "|".join(sorted({form[0].upper() for form in _cues("ru_body_of")}))
    ends = "|".join(sorted(_cues("ru_firm_end")))
    return re.compile(
        rf"(?<!\w)(?:(?P<by_adjective>{_ADJECTIVE}(?: {_ADJECTIVE}| {_SMALL_ADJECTIVE})?"
        rf" (?:{_forms('ru_body')}))"
        rf"|(?P<of>(?={capital})(?i:{whole}) {_OF}(?: и {_OF})?)"
        rf"|(?:{'|'.join(sorted(_cues('ru_legal_form')))}) {_QUOTED}"
        rf"|(?P<known>{_forms('ru_known')})"
        rf"|(?P<by_end>[А-ЯЁІЇЄ][а-яё]+-?(?:{ends})(?:ом|а|у|е|и|ю|ы)?))(?!\w)"
    )


@cache
def _named() -> re.Pattern[str]:
    return re.compile(rf"(?i:(?<!\w)(?:{_forms('ru_body_before')})) (?:{_QUOTED}|{_NOT_QUOTED})")


def russian_bodies(text: str) -> Iterator[Place]:
    """Yield (start, end, type) of the names of bodies; they may overlap, the surer ones first."""
    for match in _bodies().finditer(text):
        yield *match.span("quoted" if match["quoted"] else 0), ORGANIZATION
    for match in _named().finditer(text):
        if match["quoted"]:
            yield *match.span("quoted"), ORGANIZATION
        elif not _is_else(match["bare"]):
            yield *match.span("bare"), ORGANIZATION


def _is_else(name: str) -> bool:
    """Whether a name behind the word for a body is a person's or a place's: компания Иванова.

    A place that stands as it is called is the body's own name: газета Карелия, but газета Карелии.
    """
    first = name.split()[0]
    is_of_place = is_place(name) and name not in _called_so()
    return may_be_given(first) or is_of_place or _SURNAME.fullmatch(first) is not None


@cache
def _called_so() -> frozenset[str]:
    """Return the places that are not said alike as what is of them: Карелия, but not Баку."""
    names = (place.replace("_", " ") for place in _cues("place_declined"))
    return frozenset(name for name in names if not name.endswith(_AS_OF))
