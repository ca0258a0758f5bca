"""Files that may do harm are read by a process of their own, and the rest of the batch is kept."""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from bombs import BOMBS, dictionary_column, long_header, pdf
from test_formats import SOUND
from test_old_office import SOUND as OLDER
from test_packed import SOUND as PACKED
from test_reading import SOUND as MORE_SOUND

from conftest import Engine
from graphrag_pipeline.core.settings import InputSettings, Settings
from graphrag_pipeline.ingest.documents import read_within
from graphrag_pipeline.ingest.reading import ReadingOptions, ReadResult, read_file
from graphrag_pipeline.ingest.reading.answers import read_answer, write_answer
from graphrag_pipeline.ingest.reading.formats import format_of, supported_suffixes
from graphrag_pipeline.ingest.reading.separate import Readers, ReadingLimits
from graphrag_pipeline.pipeline.stages import ingest
from graphrag_pipeline.planning.pending import pending_batches
from graphrag_pipeline.planning.status import summarise

only_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
PARQUET = dictionary_column(10_000_000, 1_000, is_said=False)
UNTIL = "it is not read again until it, or the setting, changes"


def read(readers: Readers, name: str, data: bytes) -> ReadResult:
    return readers.read(Path(name), data, hashlib.sha256(data).hexdigest())


def readers_in(folder: Path, megabytes: float = 700, seconds: float = 60) -> Readers:
    return Readers(ReadingOptions(), ReadingLimits(megabytes, seconds), folder / "deaths.json")


def child_of(readers: Readers) -> int:
    assert readers._child is not None
    return readers._child._process.pid


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_what_is_attached_to_mail_is_read_apart(tmp_path):
    mail = b"From: a@x.org\nSubject: S\nMIME-Version: 1.0\nContent-Type: %s\n\n%s"
    plain = mail % (b"text/plain", b"Hester sails.")
    attached = b"--b\nContent-Type: application/x\nContent-Disposition: attachment; "
    attached += b'filename="a.parquet"\nContent-Transfer-Encoding: base64\n\n'
    attached += base64.encodebytes(PARQUET) + b"--b--\n"
    with readers_in(tmp_path) as readers:
        assert read(readers, "a.eml", plain).documents
        assert readers._child is None
        assert not read(
            readers, "b.eml", mail % (b"multipart/mixed; boundary=b", attached)
        ).documents
        assert child_of(readers)


@pytest.mark.parametrize("name", ["a.txt", "a.log", "Inbox"])
def test_a_mailbox_that_holds_files_is_read_apart_whatever_it_is_called(name, tmp_path):
    mail = b"From - Mon Mar  4 09:12:07 2024\nFrom: a@x.org\nSubject: S\n\nHester sails.\n"
    attached = b"Content-Disposition: attachment; filename=a.parquet\n"
    with readers_in(tmp_path) as readers:
        assert read(readers, name, mail.replace(b"Subject", attached + b"Subject")).quarantined
        assert child_of(readers)


def test_a_file_gives_the_same_in_the_process_of_its_own(tmp_path):
    files = {
        f"a.md{suffix}": data for suffix, data in {**SOUND, **MORE_SOUND, **PACKED, **OLDER}.items()
    }
    files["long.csv"] = b"id,text\n" + b"".join(b'%d,"a, b"\n' % n for n in range(5_000))
    files["refused.pdf"] = b"no pdf"
    packed = {suffix for suffix in supported_suffixes() if not format_of(suffix).safe_bytes}
    assert {Path(name).suffix for name in files} >= packed - {".xlsm", ".docm", ".pptm", ".ppsx"}
    with readers_in(tmp_path, 2_000) as readers:
        for name, data in files.items():
            expected = read_file(Path(name), ReadingOptions(), data=data)
            assert read(readers, name, data) == expected, name
            assert read_answer(write_answer(expected)) == expected, name
        process = child_of(readers)
        assert is_running(process) or sys.platform != "linux"
    assert not is_running(process)
    assert not (tmp_path / "deaths.json").exists()


def test_no_process_is_started_for_small_texts(tmp_path):
    with readers_in(tmp_path) as readers:
        assert read(readers, "a.txt", b"a" * 100_000).documents
        assert read(readers, "a.csv", b"id,text\n1,b").documents
        assert readers._child is None


@only_linux
@pytest.mark.parametrize(
    ("name", "data"),
    [("a.parquet", PARQUET), ("a.csv", long_header(40_000, 2_000))],
    ids=("a.parquet", "a.csv"),
)
def test_what_takes_too_much_memory_is_refused_and_not_tried_a_third_time(tmp_path, name, data):
    with readers_in(tmp_path, 400) as readers:
        before = read(readers, "a.odt", SOUND[".odt"])
        (refused,) = read(readers, name, data).quarantined
        assert "400 MB of memory (input.reader_mb)" in refused.reason
        assert refused.reason.endswith(UNTIL)
        assert read(readers, "a.odt", SOUND[".odt"]) == before
    with readers_in(tmp_path, 400) as readers:
        assert read(readers, name, data).quarantined == [refused]
        assert readers._child is None


def test_what_takes_too_long_is_refused_at_once(tmp_path):
    page = b"BT /F 9 Tf 9 9 Td" + b" (many words) Tj" * 20_000 + b" ET"
    slow = pdf(zlib.compress(page), pages=300)
    before = os.times().children_user
    with readers_in(tmp_path, 2_000, seconds=1) as readers:
        (refused,) = read(readers, "a.pdf", slow).quarantined
    assert "more than 1 seconds of the processor (input.reader_seconds)" in refused.reason
    assert os.times().children_user - before < 4


def test_a_process_that_was_killed_by_chance_costs_nothing(tmp_path):
    with readers_in(tmp_path) as readers:
        expected = read(readers, "a.odt", SOUND[".odt"])
        for _ in range(3):
            process = child_of(readers)
            os.kill(process, signal.SIGKILL)
            until(lambda process=process: not is_running(process))
            assert read(readers, "a.ods", SOUND[".ods"]).documents
            (tmp_path / "deaths.json").unlink()
        assert read(readers, "a.odt", SOUND[".odt"]) == expected


@only_linux
def test_the_process_ends_with_the_one_that_started_it(tmp_path):
    program = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from graphrag_pipeline.ingest.reading import ReadingOptions
from graphrag_pipeline.ingest.reading.separate import ReadingLimits, Readers
readers = Readers(ReadingOptions(), ReadingLimits(700, 60), Path({str(tmp_path / "d.json")!r}))
readers.read(Path("a.pdf"), b"no pdf", "")
print(readers._child._process.pid, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        process = int(parent.stdout.readline())
        assert is_running(process)
        parent.kill()
    until(lambda: not is_running(process))


@only_linux
def test_a_bomb_in_a_folder_costs_only_itself_and_only_once(engine: Engine):
    engine.settings = Settings(home=str(engine.workspace.home), input=InputSettings(reader_mb=500))
    engine.write({"a.txt": "Alice Smith met Bob Jones.", "z.txt": "Carol White met Dan Green."})
    (engine.inbox / "bomb.parquet").write_bytes(PARQUET)
    (batch,) = engine.cut()
    ingest(engine.workspace, "documents", batch.key)
    assert engine.rows("SELECT count(*) FROM staging.documents") == [(2,)]
    (bad,) = summarise(engine.workspace)["quarantined"]
    assert bad["uri"].endswith("bomb.parquet")
    assert "500 MB of memory (input.reader_mb)" in bad["reason"]
    assert ingest(engine.workspace, "documents", batch.key).done_before
    engine.settings = Settings(home=str(engine.workspace.home), input=InputSettings(reader_mb=501))
    assert pending_batches(engine.workspace) == [batch.key]


@pytest.mark.parametrize(
    "name",
    [
        "dictionary.parquet",
        "zeros.docx",
        "nested.docx",
        "laughs.docx",
        "laughs.epub",
        "laughs.odt",
        "laughs.xlsx",
        "laughs.html",
        "near.xlsx",
        "strings.xlsx",
        "rows.ods",
        "path.json",
        "columns.csv",
        "header.csv",
        "deep.json",
        "deep.jsonl",
        "deep.html",
        "deep.md",
        "include.rst",
        "deep.ipynb",
        "parts.eml",
    ],
)
def test_what_unpacks_to_very_much_is_refused_before_it_does(name):
    data = BOMBS[name]()
    before = time.process_time()
    result = read_file(Path(name), ReadingOptions(max_file_bytes=5_000_000), data=data)
    assert time.process_time() - before < 5
    assert sum(len(document.text) for document in result.documents) < 1_000_000
    assert not any("root:" in document.text for document in result.documents)


def test_a_part_of_an_archive_is_not_unpacked_further_than_it_says():
    parts = BOMBS["understated.odt"]()
    before = time.process_time()
    assert read_file(Path("a.odt"), ReadingOptions(), data=parts).quarantined
    assert time.process_time() - before < 1


def test_a_file_of_just_the_largest_size_is_read_and_hashed(tmp_path: Path) -> None:
    options, limits = ReadingOptions(max_file_bytes=100), ReadingLimits(700, 60)
    with Readers(options, limits, tmp_path / "deaths.json") as readers:
        for size, is_read in ((100, True), (101, False)):
            path = tmp_path / f"{size}.txt"
            path.write_bytes(b"x" * size)
            result, sha256 = read_within(path, tmp_path, readers)
            assert (len(result.documents) == 1, sha256 is not None) == (is_read, is_read)
