"""The language of a document stands in a column, and one that rules cannot read is told of."""

from __future__ import annotations

import pytest

from benchmarks.language_names import languages, read_texts
from graphrag_pipeline import Index
from graphrag_pipeline.core.languages import language_of_document
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.releases.silent_languages import silent_lines

CODE = """This is how it is done and what to be aware of when it is not.

```
total = 0
for each in those:
    total = total + each if each > 0 else total
    if total > 10:
        break
return total
```
"""
GEORGIAN = "ქალაქი თბილისი არის საქართველოს დედაქალაქი. ნინო აბაშიძე ცხოვრობს აქ."


@pytest.mark.parametrize("language", languages())
def test_the_language_of_most_texts_is_told_and_none_is_told_wrong(language: str) -> None:
    told = [language_of_document(text.text) for text in read_texts(language)]
    assert set(told) <= {language, ""}
    assert told.count(language) >= 7


@pytest.mark.parametrize(
    "text", ["", "x = f(y, z)", "Rio de Janeiro, La Paz, Los Angeles, Den Haag", "1,2,3\n4,5,6"]
)
def test_of_code_names_and_numbers_no_language_is_told(text: str) -> None:
    assert language_of_document(text) == ""


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Lista de la compra\n- leche\n- dos kilos de patatas\n- una docena de huevos", ""),
        ("Reunión del lunes\n- llamar a Marta\n- pagar la luz", ""),
        ("Indkøbsliste\n- mælk\n- brød og ost\n- et kilo kartofler", ""),
        ("Lista della spesa\n- due chili di patate\n- una dozzina di uova", "it"),
    ],
)
def test_of_a_list_in_words_of_two_languages_neither_is_told(text: str, language: str) -> None:
    assert language_of_document(text) == language


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("languages")
    (folder / "documents").mkdir()
    texts = {"ka": GEORGIAN, "zh": next(read_texts("zh")).text, "de": next(read_texts("de")).text}
    for name, text in texts.items():
        (folder / "documents" / f"{name}.txt").write_text(text)
    (folder / "documents" / "en.md").write_text(CODE)
    made = Index(Settings(home=str(folder / "home")))
    made.update(folder / "documents")
    return made


def test_documents_have_their_language(index: Index) -> None:
    _, rows = index.sql("SELECT parse_filename(uri, true), language FROM documents")
    assert sorted(map(tuple, rows)) == [
        ("de", "de"),
        ("en", "en"),
        ("ka", "ka"),
        ("zh", "zh"),
    ]


def test_a_language_that_rules_cannot_read_is_told_of_with_what_to_do(index: Index) -> None:
    assert index.sql("SELECT count(*) FROM extractions WHERE n_entities = 0")[1] == [(2,)]
    silent = index.status()["silent_languages"]
    assert silent == [{"language": "ka", "chunks": 1, "silent": 1}]
    (line,) = silent_lines(silent)
    assert "1 of 1 chunk in Georgian" in line
    assert 'profile = "local"' in line
