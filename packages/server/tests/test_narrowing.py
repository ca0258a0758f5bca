"""What documents can be narrowed by, the search among them, and both on the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import browser as browser
from graphrag_server.keys import Keyring, add_key
from graphrag_server.paths import ServerFiles
from http_server import Served, bearer
from test_page import ask, opened

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.index import Index

PAPER = "---\nauthor: {author}\ndate: {date}\nmessage_id: m.{title}\n---\n# {title}\n\n{text}\n"
PAPERS = {
    "reports/mill.md": (
        "Alba Crane",
        "2021-03-01",
        "Halden Mill",
        "Alba Crane mended Halden Mill.",
    ),
    "reports/weir.md": (
        "Alba Crane",
        "2022-03-01",
        "The Weir",
        "Osric Thale saw Halden Mill burn.",
    ),
    "letters/fair.md": ("Osric Thale", "2023-03-01", "The Fair", "Osric Thale opened the Fair."),
    "secret/debts.md": (
        "Osric Thale",
        "2023-04-01",
        "Debts",
        "Alba Crane owed Halden Mill a barge.",
    ),
}
TABLE = "id,name,keeper\n1,Pump One,Alba Crane\n2,Pump Two,Alba Crane\n3,Pump Three,Osric Thale\n"
RULES = [
    {"match": "secret/", "labels": ["hr"]},
    {"match": "letters/", "labels": ["staff", "press"]},
    {"match": "reports/", "labels": ["staff"]},
    {"match": "lists/", "labels": ["staff"]},
]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    place = tmp_path_factory.mktemp("narrowed")
    for name, (author, date, title, text) in PAPERS.items():
        path = place / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PAPER.format(author=author, date=date, title=title, text=text))
    (place / "docs" / "lists").mkdir()
    (place / "docs" / "lists" / "pumps.csv").write_text(TABLE)
    made = Settings.exactly(
        {
            "home": str(place / "project" / "home"),
            "input": {"folder": str(place / "docs")},
            "embeddings": {"dimensions": 32},
            "access": {"mode": "filtered", "rules": RULES},
        }
    )
    Index(made).update(place / "docs")
    return made


@pytest.fixture(scope="module")
def served(settings: Settings) -> Iterator[Served]:
    with Served({"default": settings}) as server:
        yield server


def fields(answer: Any) -> dict[str, dict[str, int] | tuple[Any, Any]]:
    """Return by kind or key what a field offers: values and how many have each, or a range."""
    return {
        field["kind"] if field["key"] in ("uri", "label") else field["key"]: (
            {each["value"]: each["documents"] for each in field["values"]}
            if "values" in field
            else (field["least"], field["greatest"])
        )
        for field in answer.json()["fields"]
    }


def names(answer: Any) -> list[str]:
    return [document["uri"] for document in answer.json()["documents"]]


def test_fields_have_the_values_there_are_and_how_many_documents_have_each(served: Served) -> None:
    told = fields(served.get("/v1/fields"))
    assert told["folders"] == {"lists": 3, "reports": 2, "letters": 1, "secret": 1}
    assert told["endings"] == {"*.md": 4, "*.csv": 3}
    assert told["labels"] == {"staff": 6, "hr": 1, "press": 1}
    assert told["author"] == {"Alba Crane": 2, "Osric Thale": 2}
    assert told["date"] == ("2021-03-01", "2023-04-01")
    assert "message_id" not in told
    found = served.get("/v1/fields/values?key=author&q=THALE").json()["values"]
    assert found == [{"value": "Osric Thale", "documents": 2}]
    assert served.get("/v1/fields/values?key=author&q=100%25").json()["values"] == []


def test_each_value_that_is_offered_finds_as_many_documents_as_it_says(served: Served) -> None:
    offered = served.get("/v1/fields").json()["fields"]
    asked = [
        (f"{field['key']}={value['value']}", value["documents"])
        for field in offered
        for value in field.get("values", ())
    ]
    assert len(asked) > 10
    for condition, n in asked:
        got = served.get("/v1/documents", params={"where": condition}).json()
        assert (got["total"], len(got["documents"])) == (n, n), condition
        key, _, value = condition.partition("=")
        limited = served.post("/v1/retrieve", question="Who?", method="bm25", where={key: value})
        assert limited.json()["steps"][0].startswith(f"limited to {n} document"), condition


def test_a_caller_is_told_of_no_document_and_no_label_that_is_not_his(
    settings: Settings, tmp_path: Path
) -> None:
    ring = Settings(home=str(tmp_path))
    _, key = add_key(
        ring, "anna", collections={"default"}, scopes={"query", "read"}, labels={"staff"}
    )
    with Served({"default": settings}, Keyring(ServerFiles(tmp_path).keys)) as server:

        def got(path: str) -> Any:
            return server.get(path, headers=bearer(key))

        told = fields(got("/v1/fields"))
        assert told["folders"] == {"lists": 3, "reports": 2, "letters": 1}
        assert told["author"] == {"Alba Crane": 2, "Osric Thale": 1}
        assert told["date"] == ("2021-03-01", "2023-03-01")
        # All that she sees is open to her only label, so that it narrows nothing.
        assert "labels" not in told
        assert "secret" not in got("/v1/fields").text
        assert names(got("/v1/documents?where=author=Osric%20Thale")) == ["letters/fair.md"]
        assert names(got("/v1/documents?where=label=hr")) == []
        assert names(got("/v1/documents?where=label=press")) == []
        assert names(got("/v1/documents?q=barge")) == []
        assert server.get("/v1/fields").status_code == 401


def test_documents_are_found_by_title_and_path_before_text_and_page_by_page(
    served: Served,
) -> None:
    assert names(served.get("/v1/documents?q=HALDEN+mill")) == [
        "reports/mill.md",
        *sorted(["reports/weir.md", "secret/debts.md"]),
    ]
    assert names(served.get("/v1/documents?q=secret")) == ["secret/debts.md"]
    first = served.get("/v1/documents?q=halden&most=2").json()
    second = served.get(f"/v1/documents?q=halden&most=2&after={first['next']}").json()
    assert (first["total"], second["total"], second["next"]) == (3, 3, None)
    uris = [each["uri"] for page in (first, second) for each in page["documents"]]
    assert uris == ["reports/mill.md", "reports/weir.md", "secret/debts.md"]
    place = second["documents"][0]
    text = served.get(
        f"/v1/documents/{place['id']}/text?start={place['start_char']}&end={place['end_char']}"
    ).json()["text"]
    assert text == "Halden"
    assert "Halden Mill a barge" in place["excerpt"]
    assert "start_char" not in first["documents"][0]
    narrowed = "/v1/documents?q=halden&where=uri=reports&where=date>=2022"
    assert names(served.get(narrowed)) == ["reports/weir.md"]
    assert served.get("/v1/documents?where=author").status_code == 422
    assert served.get("/v1/documents?where=date>=soon").status_code == 422
    assert served.get("/v1/documents?" + "where=a=b&" * 41).status_code == 422
    assert names(served.get("/v1/documents?q=' OR true --")) == []


# On the page


def choose(page: Any, name: str, value: str) -> None:
    page.select_option(f"#narrow-panel [name='{name}']", value)


@pytest.mark.browser
def test_by_keyboard_a_question_is_narrowed_and_the_next_is_too_until_it_is_taken_back(
    browser: Any, served: Served
) -> None:
    with opened(browser, served) as page:
        page.focus("#question")
        while not page.evaluate("document.activeElement.matches('button.narrow')"):
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("#narrow-panel select:focus")
        page.keyboard.type("reports")
        page.wait_for_selector("#narrow-panel p:has-text('2 documents left.')")
        choose(page, "endings", "*.md")
        choose(page, "author", "Alba Crane")
        page.fill("#narrow-panel [name='date>']", "2022-01-01")
        page.keyboard.press("Enter")
        page.wait_for_selector("#narrow-panel p:has-text('1 document left.')")
        assert page.locator(".turn").count() == 0
        page.keyboard.press("Escape")
        assert page.is_hidden("#narrow-panel")
        assert page.evaluate("document.activeElement.matches('button.narrow')")
        for question in ("Who saw Halden Mill?", "And who mended it?"):
            with page.expect_request("**/v1/query/stream") as sent:
                ask(page, question, "bm25")
            assert json.loads(sent.value.post_data)["where"] == {
                "uri": ["reports/*.md"],
                "author": ["Alba Crane"],
                "date>": ["2022-01-01"],
            }
        said = "Narrowed to folder reports, kind .md, author Alba Crane, date from 2022-01-01"
        assert page.locator(".narrowed-to").all_inner_texts() == [said, said]
        assert {*page.locator(".card .name").all_inner_texts()} == {"The Weir"}
        address = page.url
        for _ in range(4):
            page.click(".narrowed .chip button >> nth=0")
        assert page.is_hidden(".narrowed")
        with page.expect_request("**/v1/query/stream") as sent:
            ask(page, "Who mended Halden Mill?", "bm25")
        assert "where" not in json.loads(sent.value.post_data)
    with opened(browser, served) as page:
        page.goto(address)
        page.wait_for_selector(".turn .took")
        assert page.locator(".narrowed-to").all_inner_texts() == [said]
        assert page.locator(".narrowed .chip").count() == 4


@pytest.mark.browser
def test_a_conversation_that_is_opened_again_goes_on_with_the_same_documents(
    browser: Any, served: Served
) -> None:
    with opened(browser, served) as page:
        page.click("#ask button.narrow")
        choose(page, "folders", "letters")
        ask(page, "Who opened the Fair?")
    with opened(browser, served) as page:
        page.click("#earlier")
        page.click("#panel .rows a:has-text('Who opened the Fair?') >> nth=0")
        page.wait_for_selector(".narrowed-to:has-text('folder letters')")
        page.wait_for_selector(".narrowed .chip:has-text('letters')")
        with page.expect_request("**/v1/query/stream") as sent:
            ask(page, "Where was it?")
        assert json.loads(sent.value.post_data)["where"] == {"uri": ["letters"]}
        page.wait_for_selector(".turn:nth-child(2) .judging")
        page.click("#new")
        assert page.is_hidden(".narrowed")


@pytest.mark.browser
def test_documents_are_looked_for_on_the_page_and_a_link_finds_the_same(
    browser: Any, served: Served
) -> None:
    with opened(browser, served) as page:
        page.click("#to-documents")
        page.wait_for_selector("#listed li >> nth=6")
        page.fill("#find", "halden")
        page.press("#find", "Enter")
        page.wait_for_selector("#listed-facts:text-is('3 documents found')")
        page.click("#documents button.narrow")
        choose(page, "folders", "secret")
        page.wait_for_selector("#listed-facts:text-is('1 document found')")
        page.reload()
        page.wait_for_selector("#listed-facts:text-is('1 document found')")
        assert page.input_value("#find") == "halden"
        page.click("#listed a")
        page.wait_for_selector("mark:text-is('Halden')")
        page.go_back()
        page.click("#to-compare")
        page.wait_for_selector("#compare .narrowed .chip:has-text('secret')")
        page.fill("#compare-question", "Who owed a barge?")
        with page.expect_request("**/v1/compare") as sent:
            page.press("#compare-question", "Enter")
        assert json.loads(sent.value.post_data)["where"] == {"uri": ["secret"]}
        page.wait_for_selector("#compared .narrowed-to")
