"""Questions in several languages, of documents that are in these: what something is, or does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asked_files import index_asked

from benchmarks.answers import passages_of
from graphrag_pipeline.core.text import asked_in
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.evidence.definitions import _introduces
from graphrag_pipeline.query.question import AnalysedQuestion

GERMAN = (
    "# Handbuch\n\n## Netz\n\nUnter bojed ist das Paket libboje installiert, um die Boote der "
    "Fischer zu verwalten. Der Dienst bojed meldet den Stand der Flut an alle, die im Hafen sind."
    "\n\nHAK steht für Hafenamt Kelmouth. Auf der Karte stehen HAK und die anderen Ämter."
    "\n\n## Filter »Welle« angewandt\n\nDieses Menü liegt unter Filter, Verzerren, Welle.\n\n"
    "### Welle\n\nMit diesem Filter zeichnen Sie die Bewegung des Wassers, wie sie am Kai ist.\n\n"
    "Als dies geschrieben wurde (03/2016), war das Paket 516394; die Flotte enthält Boote. "
    "Die Flotte enthält zur Zeit mehr als 340 neue Boote, und nicht alle davon fahren noch.\n"
)
FILES = {
    "en/index.md": "# Modules\n\n## mod_tide\n\nProvides a table of the tides to those who ask, "
    "and which of these is the highest of the year.\n",
    "pt/novidades.md": "# Novidades\n\n## mod_tide\n\nO mod_tide adiciona as opções de uma tabela "
    "para a diretiva que simplifica os cenários comuns de uma maré, e também para as outras.\n",
    "de/neues.md": "# Neues\n\n## mod_fog\n\nEin Modul, das den Nebel im Hafen meldet, wenn er so "
    "dicht ist, dass die Boote nicht mehr aus der Bucht fahren, und das sie dann auch warnt.\n",
    "de/handbuch.md": GERMAN,
    "es/marea.md": "# marea(1)\n\n## Nombre\n\nmarea - lee el nivel del agua y lo escribe en la "
    "salida\n\n## Opciones\n\n-k, --keep: conserva los permisos de los ficheros que escribe\n\n"
    "-n, --name: cambia el nombre de los ficheros\n\n## Autor\n\nEscrito por Rosa Lund.\n",
    "es/boya.md": "# boya(1)\n\n## Nombre\n\nboya - mueve las boyas del puerto\n\n## Descripción\n"
    "\nEl programa conserva los permisos que tienen los ficheros de la boya en el puerto, y los "
    "permisos de los demás. A veces es como la orden marea, aunque para las boyas.\n",
    "de/boje.md": "# Seezeichen\n\nIst die Boje gesetzt, klicken Sie auf die Boje, um sie auf der "
    "Karte zu sehen.\n\n## Von der Boje\n\nEine Boje mit der Boje.\n\n## Boje\n\nSie ist eine "
    "Tonne an einer Kette, die auf dem Wasser schwimmt.\n",
    "es/faro.md": "# El faro\n\nNo cambia el faro azul, en sí mismo, cuando llega la noche a la "
    "costa.\n\nEl faro azul es una torre de piedra que guía los barcos hasta el puerto.\n",
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    yield from index_asked(FILES, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What is mod_tide?", "Provides a table of the tides"),
        ("O que é mod_tide?", "adiciona as opções de uma tabela"),
        # What only another language tells is told all the same.
        ("What is mod_fog?", "den Nebel im Hafen meldet"),
        ("Was macht bojed?", "meldet den Stand der Flut"),
        ("Wofür steht HAK?", "Hafenamt Kelmouth"),
        ("Was bewirkt der Filter Welle?", "die Bewegung des Wassers"),
        ("Wie viele Boote enthält die Flotte?", "mehr als 340 neue Boote"),
        ("¿Qué hace la orden marea?", "lee el nivel del agua"),
        ("¿Para qué sirve marea?", "lee el nivel del agua"),
        ("Was ist eine Boje?", "eine Tonne an einer Kette"),
        ("¿Qué es el faro azul?", "una torre de piedra"),
        ("¿Qué opción de marea conserva los permisos?", "--keep"),
    ],
)
def test_what_the_language_of_the_question_tells_comes_first(
    asked: QueryEngine, question: str, told: str
) -> None:
    first, *_ = passages_of(asked.answer(question, "auto").text)
    assert told in first


@pytest.mark.parametrize(
    "question",
    [
        "What does the pump do?",
        "Was macht die pump?",
        "Que fait la pump ?",
        "¿Qué hace la pump?",
        "Cosa fa la pump?",
        "O que faz a pump?",
        "Wat doet de pump?",
        "Что делает pump?",
    ],
)
def test_what_something_does_is_asked_in_these_languages(question: str) -> None:
    analysed = AnalysedQuestion(question)
    assert analysed.asks_does
    assert analysed.subject.endswith("pump")


def test_what_one_of_many_does_somewhere_is_not_asked_of_it() -> None:
    assert not AnalysedQuestion("What did the harbour master do on Monday?").subject


@pytest.mark.parametrize(("language", "counts"), [("pt", True), ("de", False)])
def test_what_stands_beside_a_name_is_read_in_the_language_of_the_question(
    language: str, counts: bool
) -> None:
    text = "na ilha chamam baleeira, um barco de madeira"
    with asked_in(language):
        assert bool(_introduces("baleeira")(text, text)) == counts
