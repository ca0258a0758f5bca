"""What the tests of readers share: a file's content in, its documents or the reason out."""

from pathlib import Path

from graphrag_pipeline.ingest.reading import ReadDocument, ReadingOptions, ReadResult, read_file


def read(name: str, content: str | bytes, **options) -> ReadResult:
    data = content.encode() if isinstance(content, str) else content
    return read_file(Path(name), ReadingOptions(**options), data=data)


def only(result: ReadResult) -> ReadDocument:
    assert result.quarantined == []
    assert len(result.documents) == 1
    return result.documents[0]


def reason(result: ReadResult) -> str:
    assert result.documents == []
    assert [refused.key for refused in result.quarantined] == [""]
    return result.quarantined[0].reason
