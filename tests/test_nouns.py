# ruff: noqa: E501
"""Terms of languages without a grammar here are nouns: no verbs, no adjectives, no months."""

from __future__ import annotations

import polars as pl
import pytest

from graphrag_pipeline.extraction.rules.nlp import NlpOptions, extract_nlp

# Of each language: a text, terms that it is about, and words that are none.
TEXTS = {
    "de": (
        "Ian führte das Projekt, und Bruce führte es weiter. Bdale führte das Projekt nach ihm. Die "
        "neue Version ist da, die neue Satzung auch, und das neue Haus steht. Joel starb im Juli, Frans "
        "starb im Juli und Peter starb auch im Juli. Neue Pakete sind in der Version.",
        {"Projekt", "Version", "Pakete"},
        {"führte", "neue", "starb", "Juli", "Neue Pakete", "Neue"},
    ),
    "fr": (
        "Elle dirigeait le projet avec lui. Il a dirigé le projet, elle a dirigé la revue, et Paul a "
        "dirigé le projet. Les nouvelles versions sont là, les nouvelles règles aussi, et les nouvelles "
        "salles. En avril, puis en avril et encore en avril, le logiciel libre a gagné : un logiciel "
        "libre pour les écoles. Pour créer, il faut de quoi créer et le temps de créer.",
        {"projet", "logiciel libre"},
        {"dirigé", "nouvelles", "avril", "créer", "encore"},
    ),
    "es": (
        "El proyecto murió en abril. La versión murió, y el sistema murió también en abril. Ella lideró "
        "el proyecto, lideró la versión y lideró el sistema en abril. Una nueva versión es una nueva "
        "idea y una nueva casa. Ana Ruiz Gil y Luis Mora Sanz hicieron el proyecto.",
        {"proyecto", "versión", "Ana Ruiz Gil", "Luis Mora Sanz"},
        {"murió", "lideró", "nueva", "abril"},
    ),
    "it": (
        "Il progetto muore, la rivista muore e il gruppo muore. Ha guidato il progetto, poi ha guidato "
        "la rivista e ha guidato il progetto. La nuova guida è una nuova cosa per il nuovo progetto, "
        "con la nuova sede. A luglio, dal luglio al luglio.",
        {"progetto"},
        {"muore", "guidato", "nuova", "luglio"},
    ),
    "pt": (
        "Ele liderou o projeto, ela liderou a revista e nós dissemos que ele liderou o projeto. O "
        "projeto novo tem uma nova sede, uma nova equipa e uma nova casa. Em março, desde março até "
        "março, o sistema operativo foi feito. Um sistema operativo para trabalhar, de trabalhar e trabalhar.",
        {"projeto", "sistema operativo"},
        {"liderou", "nova", "março", "trabalhar"},
    ),
    "nl": (
        "De hond loopt naar de haven. De hond loopt weer, en de hond loopt niet meer. De nieuwe haven "
        "is groot, het nieuwe dok is groot en de nieuwe sluis is ook groot bij de haven.",
        {"hond", "haven"},
        {"loopt", "hond loopt", "nieuwe", "groot"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("language", sorted(TEXTS))
def test_terms_are_nouns_and_neither_verbs_nor_adjectives_nor_months(language: str) -> None:
    text, terms, others = TEXTS[language]
    chunks = pl.DataFrame({"id": ["1"], "text": [text]})
    titles = set(extract_nlp(chunks, NlpOptions()).entities["title"])
    assert terms <= titles
    assert not titles & others
