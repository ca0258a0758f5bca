"""Packed files: what is in an archive are documents of their own, within bounds."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest
from bombs import zipped
from index_process import by_model, update_tables
from llm_helpers import stage_of
from model_server import ModelServer
from read_files import only, read, reason
from test_llm_pipeline import mind

from graphrag_pipeline.ingest.reading import packed
from graphrag_pipeline.planning.plan import plan_run

NOTE = "# Quay 4\n\nSee [the crane](cranes/Crane%207.md). Hester Quill keeps it."
FILES = {
    "Harbour/Quay 4.md": NOTE,
    "Harbour/cranes/Crane 7.md": "Crane 7 was built by Oden Works.",
    "boats.csv": "id,name,port\n7,Frida,Tarnfjord\n8,Alma,Solna\n",
}


def tarred(parts: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in parts.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def gzipped(name: str, text: str) -> bytes:
    buffer = io.BytesIO()
    with gzip.GzipFile(name, "wb", fileobj=buffer) as file:
        file.write(text.encode())
    return buffer.getvalue()


SOUND = {
    ".zip": zipped(FILES),
    ".tar": tarred(FILES),
    ".tgz": gzip.compress(tarred(FILES)),
    ".gz": gzipped("note.md", NOTE),
    ".tbz2": bz2.compress(tarred(FILES)),
    ".txz": lzma.compress(tarred(FILES)),
    ".bz2": bz2.compress(NOTE.encode()),
    ".xz": lzma.compress(NOTE.encode()),
}


@pytest.mark.parametrize(
    ("name", "data"),
    [(f"a{suffix}", SOUND[suffix]) for suffix in (".zip", ".tar", ".tgz", ".tbz2", ".txz")]
    + [("a.tar.gz", SOUND[".tgz"]), ("a.tar.xz", SOUND[".txz"])],
)
def test_files_of_an_archive_are_documents_by_their_paths(name: str, data: bytes) -> None:
    result = read(name, data)
    assert result.quarantined == []
    titles = {document.key: document.title for document in result.documents}
    assert titles == {
        "Harbour/Quay 4.md": "Quay 4",
        "Harbour/cranes/Crane 7.md": "Crane 7",
        "boats.csv/7": "Frida",
        "boats.csv/8": "Alma",
    }
    assert result.documents[0].text == NOTE


def test_a_packed_file_is_that_file() -> None:
    table = read("boats.csv.gz", gzip.compress(FILES["boats.csv"].encode()))
    assert [document.key for document in table.documents] == ["7", "8"]
    assert only(read("a.gz", SOUND[".gz"])).text == NOTE
    assert only(read("note.md.bz2", SOUND[".bz2"])).text == NOTE
    assert only(read("a.zip", zipped({"note.md.xz": SOUND[".xz"]}))).text == NOTE
    changes = only(read("changelog.Debian.gz", gzip.compress(b"pump (2.1)\n\n  * Turn left.")))
    assert (changes.title, changes.text[:10]) == ("Changelog", "pump (2.1)")
    assert "'.png' are not read" in reason(read("a.png.gz", gzip.compress(b"\x89PNG ")))


def test_what_is_wrong_with_one_file_is_said_of_it_alone() -> None:
    files = {"good.txt": "Hester sails.", "logo.png": "x", "../../etc/out.txt": "a", "b.txt": ""}
    result = read("a.zip", zipped(files))
    assert [document.key for document in result.documents] == ["good.txt"]
    why = {refusal.key: refusal.reason for refusal in result.quarantined}
    assert why["../../etc/out.txt"] == "its name leads out of the archive"
    assert why["b.txt"] == "the file is empty"
    assert "'.png' are not read" in why["logo.png"]
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as archive:
        archive.writestr("good.txt", "Hester sails.")
        archive.writestr("bad.txt", "Bo Li stays.")
    result = read("a.zip", stored.getvalue().replace(b"Bo Li", b"Bo Lo", 1))
    assert [document.text for document in result.documents] == ["Hester sails."]
    assert "damaged in the archive" in result.quarantined[0].reason


def encrypted(data: bytes, *names: str) -> bytes:
    """Return an archive that says of parts that they are encrypted."""
    changed = bytearray(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in names:
            start = archive.getinfo(name).header_offset
            changed[start + 6] |= 1
            central = data.index(b"PK\x01\x02")
            while not data[central + 46 :].startswith(name.encode()):
                central = data.index(b"PK\x01\x02", central + 4)
            changed[central + 8] |= 1
    return bytes(changed)


def test_an_encrypted_archive_is_one_line() -> None:
    data = zipped({"a.txt": "Hester sails.", "b.txt": "Bo Li stays."})
    assert "with its password" in reason(read("a.zip", encrypted(data, "a.txt", "b.txt")))
    result = read("a.zip", encrypted(data, "a.txt"))
    assert [document.key for document in result.documents] == ["b.txt"]
    assert [refusal.key for refusal in result.quarantined] == ["a.txt"]


def test_what_an_archive_unpacks_to_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = bytes(60_000_000)
    assert "a bomb" in reason(read("a.zip", zipped({"a.txt": zeros})))
    for suffix, packing in {"gz": gzip, "bz2": bz2, "xz": lzma}.items():
        assert "a bomb" in reason(read(f"a.txt.{suffix}", packing.compress(zeros)))
        cut_off = read(f"a.txt.{suffix}", packing.compress(NOTE.encode())[:-9])
        assert "damaged" in reason(cut_off)
    some = {f"{n}.txt": "Hester sails." * 40 for n in range(5)}
    assert "more than 4 times" in reason(read("a.zip", zipped(some), max_file_bytes=600))
    assert "unpacks to more" in reason(
        read("a.txt.gz", gzip.compress(b"Hester sails." * 90), max_file_bytes=1000)
    )
    monkeypatch.setattr(packed, "_MOST_FILES", 4)
    assert "more than 4 files" in reason(read("a.zip", zipped(some)))
    # The bounds hold for all archives in it together.
    inner = zipped({"a.txt": "a", "b.txt": "b"})
    result = read("a.zip", zipped({"1.zip": inner, "2.zip": inner}))
    assert [document.key for document in result.documents] == ["1.zip/a.txt", "1.zip/b.txt"]
    assert "more than 4 files" in result.quarantined[0].reason


def test_archives_in_archives_are_read_to_a_depth() -> None:
    data = zipped({"a.txt": "Hester sails."})
    for _ in range(3):
        data = zipped({"in.zip": data, "by.txt": "Bo Li stays."})
    result = read("a.zip", data)
    assert "in.zip/in.zip/in.zip/a.txt" in [document.key for document in result.documents]
    result = read("a.zip", zipped({"in.zip": data}))
    assert "in more than 3 archives" in result.quarantined[0].reason
    assert len(result.documents) == 3


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tgz", "a.txt.gz", "a.bz2", "a.xz"])
def test_a_file_that_is_no_archive_says_so(name: str) -> None:
    assert "damaged" in reason(read(name, b"Hester sails to Ardglen and back again."))


def test_what_is_left_out_of_folders_is_left_out_of_archives() -> None:
    left = {"__MACOSX/._a.txt": "x", ".git/HEAD.txt": "x", "node_modules/x/readme.md": "x"}
    assert only(read("a.zip", zipped({"a.txt": "Hester sails.", **left}))).key == "a.txt"


def test_names_are_read_in_the_codes_they_are_written_in() -> None:
    data = zipped({"Møller.txt": "Hester sails."})
    # Some programs write UTF-8 without saying so.
    unsaid = data.replace(b"\x00\x08", b"\x00\x00")
    with zipfile.ZipFile(io.BytesIO(unsaid)) as archive:
        assert archive.namelist() != ["Møller.txt"]
    assert only(read("a.zip", unsaid)).key == "Møller.txt"


def test_a_changed_file_of_an_archive_costs_only_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    said = {f"{n}.txt": f"Alice Smith met Bob Jones at quarry {n}." for n in range(4)}
    with ModelServer(mind) as server:
        engine = by_model(tmp_path, server.base_url)
        engine.inbox.mkdir(exist_ok=True)
        (engine.inbox / "a.zip").write_bytes(zipped(said))
        update_tables(engine)
        assert engine.rows("SELECT uri FROM documents WHERE uri LIKE '%3.txt'") == [
            ("documents/a.zip#3.txt",)
        ]
        server.forget()
        changed = {**said, "2.txt": "Hugo White left the quarry."}
        (engine.inbox / "a.zip").write_bytes(zipped(changed))
        assert plan_run(engine.workspace, engine.inbox).to_extract == 1
        update_tables(engine)
        asked = [r for r in server.asked() if stage_of(r.messages) == "extract"]
    assert asked
    assert all("Hugo White" in str(request.messages) for request in asked)
