"""Texts are found by the stems of their own language; English ones as they always were."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from test_vectors import CountingEmbedder, rows

from graphrag_pipeline import Index
from graphrag_pipeline.core import languages, text
from graphrag_pipeline.core.languages import LANGUAGES, language_asked, language_of
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.core.text import asked_in, asked_terms, own_terms, stored_terms, terms
from graphrag_pipeline.llm.embedders import HashingEmbedder
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.question import AnalysedQuestion, without_asking
from graphrag_pipeline.store import vector_store
from graphrag_pipeline.store.vector_store import VectorStore

# Of each language: a word, and a passage that has it in another form.
PASSAGES = {
    "da": ("bil", "Bilerne blev standset i foråret, fordi isen "
        "havde ødelagt vejen, og ingen kunne se."),
    "de": ("Brücke", "Die Brücken wurden im Frühjahr gesperrt, "
        "weil das Eis sie beschädigt hatte."),
    "es": ("puente", "Los puentes fueron cerrados en primavera "
        "porque el hielo los había dañado."),
    "fi": ("silta", "Sillat suljettiin keväällä, koska jää oli "
        "vaurioittanut niitä, ja ne ovat nyt kiinni."),
    "fr": ("pont", "Les ponts ont été fermés au printemps "
        "parce que la glace les avait abîmés."),
    "hu": ("hidak", "A hidakat tavasszal lezárták, mert a "
        "jég megrongálta őket, és nem lehet átkelni."),
    "it": ("ponte", "I ponti sono stati chiusi in "
        "primavera perché il ghiaccio li aveva danneggiati."),
    "nl": ("brug", "De bruggen werden in het voorjaar "
        "gesloten omdat het ijs ze had beschadigd."),
    "no": ("bil", "Bilene ble stanset om våren fordi isen "
        "hadde ødelagt veien, og ingen kunne se."),
    "pt": ("ponte", "As pontes foram fechadas na primavera "
        "porque o gelo as tinha danificado."),
    "ro": ("poduri", "Podurile au fost închise în "
        "primăvară pentru că gheața le-a deteriorat."),
    "ru": ("мост", "Мосты были закрыты весной, потому что лёд "
        "их повредил, и никто не мог проехать."),
    "sv": ("bil", "Bilarna stannade på våren eftersom isen "
        "hade skadat vägen och ingen kunde se."),
    "tr": ("köprü", "Köprüler ilkbaharda kapatıldı çünkü buz onlara "
        "zarar vermişti ve daha açık değil."),
}  # fmt: skip
ENGLISH = "The bridges were closed in spring because the ice had damaged them."
BOTH = {
    "bruecke.txt": "Nachrichten aus Kelmfurt. Die Brücken am Hafen wurden im Frühjahr gesperrt, "
    "weil das Eis sie beschädigt hatte. Der Bürgermeister Imre Tolliver hat das gesagt.",
    "haus.txt": "Nachrichten aus Kelmfurt. Die Häuser am Markt wurden im Herbst verkauft, und der "
    "Käufer ist nicht bekannt. Das Rathaus hat dazu nichts gesagt.",
    "bridge.txt": "News from Halden. The harbour masters closed their crossings in spring, and the "
    "council was not told of it. Imre Tolliver had asked for them.",
    "mill.txt": "News from Halden. The mills at the river were sold, nobody knows who has them.",
}


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_a_passage_is_told_and_found_by_another_form_of_its_words(
    language: str, tmp_path: Path
) -> None:
    word, passage = PASSAGES[language]
    assert language_of(passage) == language
    store = VectorStore(tmp_path)
    others = {"en": ENGLISH, "name": "Charles de la Tour van den Berg"}
    store.sync("chunks", rows({"own": passage, **others}), CountingEmbedder())
    hits = store.at({"chunks": store.version("chunks")}).fulltext("chunks", word, 3)
    assert hits["id"].to_pylist()[:1] == ["own"]


@pytest.mark.parametrize(
    "passage",
    [
        ENGLISH,
        "Rio de Janeiro, La Paz, Los Angeles, Den Haag",
        "In this book the forms der, das, und and ein are what you have to know of it.",
        "def f(d, e, l, n):\n    return [l.append(e) for e in d if e in n]",
        "Мости були закриті навесні, бо лід їх пошкодив, і ніхто не міг проїхати.",
        "東京都は日本の首都である。",
        "",
    ],
)
def test_what_is_english_or_unknown_has_the_terms_it_always_had(passage: str) -> None:
    assert language_of(passage) == ""
    assert stored_terms([passage]) == own_terms([passage]) == [" ".join(terms(passage))]


def test_a_question_of_english_texts_is_analysed_as_it_always_was() -> None:
    question = "Wer hat die Brücken in Bridgetown and its bridges gesehen?"
    looked_for = asked_terms(question, {"": 9})
    assert [term for (term,) in looked_for.elements()] == terms(question)


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Was ist mit der Brücke?", "de"),
        ("What is the news of Die Brücke?", ""),
        ("Brücke Kelmfurt", "de"),
    ],
)
def test_a_question_is_in_the_language_of_its_function_words_else_of_most_texts(
    question: str, language: str
) -> None:
    assert language_asked(question, {"": 3, "de": 5}) == language


def test_a_language_that_no_text_is_in_is_not_asked_in() -> None:
    assert language_asked("Was ist mit der Brücke?", {"": 3}) == ""


def test_forms_of_a_word_count_together_however_few_texts_are_in_a_language(
    tmp_path: Path,
) -> None:
    german = "Die Brücken wurden hier für den Verkehr {} gesperrt und nicht mehr geöffnet. "
    texts = {f"de{n}": german.format(f"w{n} w{n + 1}") + f"Brücken w{n}" for n in range(30)}
    store = VectorStore(tmp_path)
    store.sync("chunks", rows({**texts, "few": "w1 brücken " + "w x y z " * 9}), CountingEmbedder())
    found = store.at({"chunks": store.version("chunks")}).fulltext("chunks", "Brücken w1", 3)
    assert found["id"].to_pylist()[0] == "de1"


def test_stems_are_the_same_in_every_thread() -> None:
    words = [f"{stem}{end}" for stem in ("haus", "brück", "wagen") for end in ("es", "en", "ern")]

    def stems(_: int) -> list[str]:
        return [languages.stem(word, "de") for word in words * 50]

    with ThreadPoolExecutor(4) as pool:
        assert len({tuple(stems) for stems in pool.map(stems, range(8))}) == 1


def test_vectors_of_a_german_text_are_near_to_a_question_in_other_forms() -> None:
    embedder = HashingEmbedder()
    (stored,) = embedder.embed([PASSAGES["de"][1]])
    with asked_in("de"):
        (asked,) = embedder.embed(["gesperrte Brücke beschädigen"])
    (as_english,) = embedder.embed(["gesperrte Brücke beschädigen"])
    assert stored @ asked > 0.3 > stored @ as_english


def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let terms be made as by a program that knows no language."""
    for module in (text, vector_store):
        monkeypatch.setattr(module, "language_of", lambda _: "")


def test_rows_of_before_get_their_terms_without_being_embedded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, embedder = VectorStore(tmp_path), CountingEmbedder(name="paid")
    wanted_rows = rows({"de": PASSAGES["de"][1], "en": ENGLISH})
    with monkeypatch.context() as before:
        as_before(before)
        store.sync("chunks", wanted_rows, embedder)
    old = store.at({"chunks": store.version("chunks")})
    again = store.sync("chunks", wanted_rows, embedder)
    now = store.at({"chunks": again.version})
    assert (again.embedded, again.reused, len(embedder.texts)) == (0, 2, 2)
    assert now.languages("chunks") == {"": 1, "de": 1}
    assert not len(old.fulltext("chunks", "Brücke", 1))
    assert now.fulltext("chunks", "Brücke", 1)["id"].to_pylist() == ["de"]
    np.testing.assert_array_equal(now.matrix("chunks")[1], old.matrix("chunks")[1])
    assert store.sync("chunks", wanted_rows, embedder).version == again.version


def test_english_rows_of_before_are_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = VectorStore(tmp_path)
    with monkeypatch.context() as before:
        as_before(before)
        first = store.sync("chunks", rows({"en": ENGLISH}), HashingEmbedder())
    assert store.sync("chunks", rows({"en": ENGLISH}), HashingEmbedder()).version == first.version


def settings_of(home: Path) -> Settings:
    rules = [{"match": name, "labels": ["all", name[:1]]} for name in BOTH]
    return Settings(home=str(home), access={"mode": "filtered", "rules": rules})


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """An index of German and English documents: made as before, and again by this program."""
    folder = tmp_path_factory.mktemp("both")
    (folder / "documents").mkdir()
    for name in sorted(BOTH)[:-1]:
        (folder / "documents" / name).write_text(BOTH[name])
    index = Index(settings_of(folder / "home"))
    with pytest.MonkeyPatch.context() as before:
        as_before(before)
        before.setattr(languages, "_TERMS_VERSION", 0)
        index.update(folder / "documents")
        with index.open() as engine:
            assert not engine.index.search_text("chunks", "Brücke", 1).num_rows
    last = sorted(BOTH)[-1]
    (folder / "documents" / last).write_text(BOTH[last])
    index.update(folder / "documents")
    return index


def first_found(engine: QueryEngine, question: str, method: str = "bm25") -> str:
    records = engine.retrieve(question, method).records
    return engine.index.rows(
        "SELECT parse_filename(d.uri) AS name FROM chunks c JOIN documents d "
        "ON d.id = c.document_id WHERE c.id = $id",
        id=records[0].id,
    )[0]["name"]


@pytest.mark.parametrize("method", ["bm25", "hybrid", "ppr", "auto"])
def test_each_document_is_found_by_a_question_in_its_language(both: Index, method: str) -> None:
    with both.open() as engine:
        assert first_found(engine, "Ist die Brücke gesperrt?", method) == "bruecke.txt"
        assert first_found(engine, "Brücke", method) == "bruecke.txt"
        assert first_found(engine, "Who has the mill?", method) == "mill.txt"
        assert first_found(engine, "Which crossing did it close?", method) == "bridge.txt"


def test_a_name_is_found_in_texts_of_all_languages(both: Index) -> None:
    with both.open() as engine:
        hits = engine.index.search_text("chunks", "Wer ist Imre Tolliver?", 5)
    assert hits.num_rows == 2


def test_an_answer_quotes_the_sentence_that_has_a_word_in_another_form(both: Index) -> None:
    with both.open() as engine:
        answer = engine.answer("Welches Haus wurde verkauft?", "bm25", sentences=1)
    assert "Die Häuser am Markt wurden im Herbst verkauft" in answer.text


def test_who_sees_some_documents_finds_them_by_the_same_terms(both: Index) -> None:
    with both.open() as engine:
        view = engine.view({"h"})
        assert first_found(view, "Was ist mit dem Haus?") == "haus.txt"
        assert view.index._vectors.languages("chunks") == {"": 0, "de": 1}
        assert engine.view({"m"}).index._vectors.languages("chunks") == {"": 1}


def test_terms_are_those_of_an_index_made_at_once(both: Index, tmp_path: Path) -> None:
    anew = Index(settings_of(tmp_path / "home"))
    anew.update(both.home.parent / "documents")
    columns = ["text", "terms", "content_hash"]

    def stored(index: Index, table: str) -> list[tuple[str, ...]]:
        with index.open() as engine:
            rows = [row for part in engine.index.vectors.scan(table, columns)
                    for row in part.to_pylist()]  # fmt: skip
        return sorted(tuple(row.values()) for row in rows)

    for table in ("chunks", "entities", "relationships", "community_reports"):
        assert stored(both, table) == stored(anew, table)
    assert not both.update(both.home.parent / "documents").is_new


@pytest.mark.parametrize(
    ("question", "terms_of_it"),
    [
        ("KeepAlive 组件有什么作用？", ("keepalive", "组件", "作用")),
        ("誰がダムを建てましたか？", ("ダム", "ムを", "を建", "建て")),
        ("この橋はどう使いますか？", ("この", "の橋", "橋は", "使い")),
        ("다리는 누가 만들었나요?", ("다리", "리는", "만들")),
        ("등대란 무엇입니까?", ("등대",)),
    ],
)
def test_what_a_question_asks_with_is_in_no_pair_of_signs(
    question: str, terms_of_it: tuple[str, ...]
) -> None:
    assert AnalysedQuestion(question).terms == terms_of_it
    assert without_asking("为什么？") == "为什么？"
    assert without_asking("Am I late if I am ill at 4 AM?") == "I late if I ill at 4 AM?"


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Когда открылся мост?", "time"),
        ("Сколько стоит билет?", "number"),
        ("Кто построил маяк?", "person"),
        ("Куда идёт паром?", "place"),
        ("À quelle fréquence passe le bac ?", "number"),
        ("Wie lange dauert die Überfahrt?", "time"),
        ("¿A qué hora sale el barco?", "time"),
        ("Met wie vaart de loods?", "person"),
        ("배는 몇 시에 떠나요?", "time"),
        ("橋の長さはどのくらいですか？", "number"),
    ],
)
def test_words_that_ask_are_known_in_many_languages(question: str, kind: str) -> None:
    assert AnalysedQuestion(question).asks_for == kind


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("À quoi sert le phare ?", "le phare"),
        ("Что такое маяк?", "маяк"),
        ("灯台とは何ですか？", "灯台"),
        ("등대란 무엇인가요?", "등대"),
        ("灯塔是什么？", "灯塔"),
    ],
)
def test_what_something_is_may_be_asked_before_or_behind_it(question: str, subject: str) -> None:
    assert AnalysedQuestion(question).subject == subject
