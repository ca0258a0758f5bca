"""The addresses that citations point at."""

from urllib.parse import parse_qs, unquote, urlsplit

from graphrag_server.addresses import citation_address

from graphrag_pipeline.query.citations import cite_report
from graphrag_pipeline.query.results import Citation


def _citation(document_id: str) -> Citation:
    return Citation(
        number=1,
        document_id=document_id,
        document_title="A title",
        uri="a.txt",
        chunk_id="c",
        start_char=3,
        end_char=9,
        text="passage",
    )


def test_a_passage_is_named_by_its_document_and_characters():
    address = citation_address("http://host:1/base/", "handbook", "r1", _citation("d1"))
    assert address == (
        "http://host:1/base/documents/d1?collection=handbook&release=r1&start=3&end=9"
    )


def test_a_citation_without_a_document_is_named_by_its_report():
    citation = cite_report("rep", "A report", "what it says")
    address = citation_address("http://host", "handbook", "r1", citation)
    assert address == "http://host/reports/rep?collection=handbook&release=r1"


def test_no_id_or_name_can_break_out_of_its_part_of_an_address():
    parts = urlsplit(citation_address("http://h", "a&b c#", "r?1", _citation("d/../x?y=1) [z](")))
    assert unquote(parts.path.removeprefix("/documents/")) == "d/../x?y=1) [z]("
    assert parts.path.count("/") == 2
    query = parse_qs(parts.query)
    assert (query["collection"], query["release"]) == (["a&b c#"], ["r?1"])
    assert not set("() []#") & set(parts.geturl())
