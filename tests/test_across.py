"""One question to several indexes: what each has on it, fused by rank."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from model_server import ModelServer

from graphrag_pipeline import Index
from graphrag_pipeline.core.errors import InputError
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query import Answer, QueryEngine, answer_across, retrieve_across
from graphrag_pipeline.query.several_indexes import PlacedCitation

TEXTS = {
    "mill": {
        "mill": "Alba Crane repaired Halden Mill in 1931. The council praised Halden Mill. "
        "Alba Crane sold flour.",
    },
    "court": {
        "case": "Dorian Feld sued Alba Crane over Halden Mill. Judge Imre Tolliver heard the case. "
        "Alba Crane paid a fine.",
        "deed": "Imre Tolliver bought a farm by deed. The deed named Marek Vale.",
    },
}
QUESTION = "What did Alba Crane do with Halden Mill?"
METHODS = ("bm25", "basic", "local", "ppr", "hybrid", "global")


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Index]:
    made = {}
    for name, texts in TEXTS.items():
        folder = tmp_path_factory.mktemp(name)
        (folder / "documents").mkdir()
        for title, text in texts.items():
            (folder / "documents" / f"{title}.md").write_text(text)
        access = {"mode": "separate", "labels": [name]}
        values = {"home": str(folder / "home"), "embeddings": {"dimensions": 64}, "access": access}
        made[name] = Index(Settings.exactly(values))
        made[name].update(folder / "documents")
    return made


@pytest.fixture(scope="module")
def engines(indexes: dict[str, Index]) -> Iterator[dict[str, QueryEngine]]:
    with indexes["mill"].open() as mill, indexes["court"].open() as court:
        yield {"mill": mill, "court": court}


def placed(answer: Answer) -> list[PlacedCitation]:
    return [citation for citation in answer.citations if isinstance(citation, PlacedCitation)]


@pytest.mark.parametrize("method", METHODS)
def test_each_index_has_its_best_among_the_first(engines, method):
    found = retrieve_across(engines, QUESTION, method)
    kinds = {record.kind for record in found.records}
    for kind in kinds:
        of_kind = [record for record in found.records if record.kind == kind]
        own = {name: [r for r in of_kind if r.attributes["collection"] == name] for name in TEXTS}
        alone = {
            name: [r.id for r in engine.retrieve(QUESTION, method).records if r.kind == kind]
            for name, engine in engines.items()
        }
        for name, records in own.items():
            assert [r.id for r in records] == alone[name][: len(records)]
        assert [r.score for r in of_kind] == sorted((r.score for r in of_kind), reverse=True)
    assert {record.attributes["collection"] for record in found.records} == set(TEXTS)


def test_the_best_of_each_share_the_budget_of_one(engines):
    whole = retrieve_across(engines, QUESTION, "local")
    tight = retrieve_across(engines, QUESTION, "local", max_context_tokens=120)
    assert sum(record.n_tokens for record in tight.records) <= 120
    assert {record.attributes["collection"] for record in tight.records} == set(TEXTS)
    assert len(tight.records) < len(whole.records)


def test_numbers_and_citations_are_of_one_list(engines):
    answer = answer_across(engines, QUESTION, "bm25", sentences=4)
    assert [citation.number for citation in answer.citations] == [1, 2, 3, 4][
        : len(answer.citations)
    ]
    by_collection = {citation.collection: citation for citation in placed(answer)}
    assert set(by_collection) == {"mill", "court"}
    for name, citation in by_collection.items():
        (row,) = engines[name].index.rows(
            "SELECT text FROM documents WHERE id = $id", id=citation.document_id
        )
        assert row["text"][citation.start_char : citation.end_char] == citation.text
    assert "repaired Halden Mill" in answer.text
    assert "sued Alba Crane" in answer.text
    chunks = [r.number for r in answer.retrieval.records if r.kind == "chunk"]
    assert chunks == list(range(1, len(chunks) + 1))
    assert answer.release.startswith("mill 20")
    assert answer.model_calls == 0


def test_one_index_in_which_nothing_matches_is_left_out_and_said(engines):
    answer = answer_across(engines, "Who named Marek Vale?", "bm25", where={"title": "Deed"})
    assert {citation.collection for citation in placed(answer)} == {"court"}
    (failure,) = answer.failures
    assert failure.startswith("mill: no document has title = 'Deed': change the filter")
    with pytest.raises(InputError, match="no document has title = 'none'"):
        answer_across(engines, QUESTION, "bm25", where={"title": "none"})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"method": "nonsense"}, "unknown method"),
        ({"top_k": 0}, "top_k"),
        ({"follow_ups": 2}, "follow_ups are suggested by one collection"),
        ({"method": "drift"}, "needs a language model"),
    ],
)
def test_what_cannot_be_asked_is_one_line(engines, options, why):
    with pytest.raises(InputError, match=why):
        answer_across(engines, QUESTION, **{"method": "bm25", **options})
    with pytest.raises(InputError, match="no collection to ask"):
        retrieve_across({}, QUESTION)


def test_a_model_writes_one_answer_and_its_references_lead_to_each_index(indexes):
    said: list[str] = []

    def play(messages) -> str:
        said.append(json.dumps(messages))
        return "She repaired it [Data: Sources (1)] and was sued [Data: Sources (2, 99)]."

    with ModelServer(play) as server:
        llm = {"base_url": server.base_url, "model": "m"}
        settings = {
            name: index.settings.model_copy(
                update={
                    "query": index.settings.query.model_copy(update={"answers": "llm"}),
                    "llm": index.settings.llm.model_copy(update=llm),
                }
            )
            for name, index in indexes.items()
        }
        with (
            QueryEngine(settings=settings["mill"]) as mill,
            QueryEngine(settings=settings["court"]) as court,
        ):
            answer = answer_across({"mill": mill, "court": court}, QUESTION, "bm25")
    assert answer.generated
    assert len(said) == 1
    assert answer.model_calls == 1
    assert answer.references_removed == 1
    assert "99" not in answer.text
    assert [c.collection for c in placed(answer)] == ["mill", "court"]
    assert [c.references for c in placed(answer)] == [("Sources (1)",), ("Sources (2)",)]
