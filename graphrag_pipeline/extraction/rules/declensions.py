"""Russian and Ukrainian names of places as sentences have them: в Москве, из Нижнего Новгорода."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

# By its last letters: how many of these an ending takes the place of, and the endings.
_ENDINGS: tuple[tuple[str, int, str], ...] = (
    ("ия", 1, "я и ю ей"),
    ("ія", 1, "я ї ю єю"),
    ("а", 1, "а ы и і е у ой ою"),
    ("я", 1, "я и і е ю ей ею"),
    ("ье", 1, "е я ю ем"),
    ("ець", 3, "ець ця цю цем ці"),
    ("ец", 2, "ец ца цу цом це"),
    ("ль", 1, "ь и я ю ем е ью"),
    ("ь", 1, "ь и і я ю ем ём е ью"),
    ("ий", 2, "ий его ого ему ому им ем ом"),
    ("ый", 2, "ый ого ому ым ом"),
    ("ой", 2, "ой ого ому ым ом"),
    ("ые", 2, "ые ых ым ыми"),
    ("ие", 2, "ие их им ими"),
    ("ей", 1, "й я ю ем е"),
    ("ай", 1, "й я ю ем е"),
    ("ы", 1, "ы ов ам ах ами"),
    ("ки", 1, "и ам ах ами"),
    ("жи", 1, "и ей ам ах ами"),
    ("щи", 1, "и ам ах ами"),
    ("и", 0, ""),
    ("ів", 2, "ів ова ову овом ові"),
    ("їв", 2, "їв єва єву євом єві"),
    ("о", 1, "о а у ом е"),
    ("е", 0, ""),
    ("у", 0, ""),
    ("э", 0, ""),
)
_OF_CONSONANT = (0, " а у ом ем е і ом")


def declensions(name: str) -> Iterator[str]:
    """Yield the forms of a name, the name itself among them; some that nobody says, too.

    >>> sorted(declensions("Пермь"))[:3]
    ['Перме', 'Пермем', 'Перми']
    """
    words = name.split("_")
    forms = {" ".join(parts) for parts in product(*map(_forms, words))} | {" ".join(words)}
    yield from forms | {form.replace("ё", "е") for form in forms}


def _forms(word: str) -> list[str]:
    n_taken, endings = next(
        ((n, endings) for last, n, endings in _ENDINGS if word.endswith(last)), _OF_CONSONANT
    )
    stem = word[: len(word) - n_taken]
    return [stem + ending for ending in endings.split(" ")]
