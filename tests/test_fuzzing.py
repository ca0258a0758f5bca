"""Damaged files of every kind give documents or a reason: never an error, a crash or no end.

``make test`` tries a few hundred with fixed seeds. Each nightly test takes FUZZ_SECONDS (60), at
least FUZZ_FILES (0) files, and the seed FUZZ_SEED (the day). What was once found is kept in
``data/fuzz``, under a name that says what it broke.
"""

from __future__ import annotations

import hashlib
import io
import os
import random
import re
import time
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from test_formats import SOUND as OFFICE
from test_old_office import SOUND as OLDER
from test_packed import SOUND as PACKED
from test_reading import SOUND as TEXTS

from graphrag_pipeline.ingest.reading import ReadingOptions, separate, supported_suffixes
from graphrag_pipeline.ingest.reading.formats import format_of
from graphrag_pipeline.ingest.reading.separate import Readers, ReadingLimits

SOUND = {
    **TEXTS,
    **OFFICE,
    **PACKED,
    **OLDER,
    ".tsv": b"id\ttext\na\tone\n",
    ".txt": "Zwölf\r\nWörter".encode(),
}
KEPT = sorted((Path(__file__).parent / "data" / "fuzz").iterdir())
ROUNDS = 12
SECONDS, MEGABYTES = 20, 1_500
HINTS = (b"\x00", b"\xff" * 4, b"\x7f\xff\xff\xff", b"<", b"&#x110000;", b'"', b"\n", b"--B\n")

LARGEST = 60_000  # bytes of a file from outside
SEED = int(os.environ.get("FUZZ_SEED", time.time() // 86_400))

Change = Callable[[random.Random, bytearray], None]
Faults = dict[Path, str]


def flip(luck: random.Random, data: bytearray) -> None:
    for _ in range(luck.randint(1, 8)):
        data[luck.randrange(len(data))] ^= 1 << luck.randrange(8)


def cut(luck: random.Random, data: bytearray) -> None:
    del data[luck.randrange(len(data)) :]


def splice(luck: random.Random, data: bytearray) -> None:
    start, end = sorted(luck.choices(range(len(data) + 1), k=2))
    place = luck.randrange(len(data) + 1)
    data[place:place] = data[start:end] * luck.choice((1, 2, 50))


def hint(luck: random.Random, data: bytearray) -> None:
    place = luck.randrange(len(data) + 1)
    data[place : place + luck.choice((0, 4))] = luck.choice(HINTS) * luck.choice((1, 1, 300))


def lengths(luck: random.Random, data: bytearray) -> None:
    """Write a large or a negative number of two to eight bytes over what may be a length."""
    width = luck.choice((2, 4, 8))
    if len(data) > width:
        place = luck.randrange(len(data) - width)
        number = luck.choice((0, 1, (1 << 8 * width - 1) - 1, (1 << 8 * width) - 1))
        data[place : place + width] = number.to_bytes(width, luck.choice(("little", "big")))


def digits(luck: random.Random, data: bytearray) -> None:
    """Write another number over one that is written out, as those of a PDF are."""
    places = [n for n, byte in enumerate(data) if 48 <= byte <= 57]
    if places:
        place = luck.choice(places)
        data[place : place + 1] = luck.choice((b"0", b"-1", b"9" * 9, b"9" * 30))


def swap(luck: random.Random, data: bytearray) -> None:
    """Let two blocks change places, as a disk that mixes up its sectors would."""
    size = luck.choice((8, 64, 512))
    places = range(0, max(len(data) - size, 0) + 1, size)
    one, other = sorted(luck.choices(places, k=2))
    if one + size <= other:
        first, second = data[one : one + size], data[other : other + size]
        data[one : one + size], data[other : other + size] = second, first


def sizes(luck: random.Random, data: bytearray) -> None:
    """Have an archive say of one of its parts that it is of another size."""
    heads = [match.start() for match in re.finditer(rb"PK\x01\x02|PK\x03\x04", data)]
    if heads:
        head = luck.choice(heads)
        place = head + (20 if data[head + 2] == 1 else 18) + luck.choice((0, 4))
        number = luck.choice((0, 10, 1 << 30, (1 << 32) - 1))
        data[place : place + 4] = number.to_bytes(4, "little")


CHANGES: tuple[Change, ...] = (flip, cut, splice, hint, lengths, digits, swap, sizes)


def changed(luck: random.Random, data: bytes) -> bytes:
    """Return a file with one to three changes; of an archive often of what is in its parts."""
    parts = parts_of(data)
    if parts and luck.random() < 0.7:
        return with_changed_parts(luck, parts)
    damaged = bytearray(data)
    for _ in range(luck.randint(1, 3)):
        if damaged:
            luck.choice(CHANGES)(luck, damaged)
    return bytes(damaged[:200_000])


def parts_of(data: bytes) -> dict[str, bytes]:
    """Return the parts of a sound archive; none of what is no archive, or no longer."""
    if not data.startswith(b"PK"):
        return {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # zipfile raises what it meets
        return {}


def with_changed_parts(luck: random.Random, parts: dict[str, bytes]) -> bytes:
    """Return a sound archive of which one part is changed, swapped for another, or gone."""
    name, other = luck.choices(sorted(parts), k=2)
    what = luck.random()
    if what < 0.15:
        parts[name], parts[other] = parts[other], parts[name]
    elif what < 0.3:
        del parts[name]
    elif parts[name]:
        damaged = bytearray(parts[name])
        luck.choice(CHANGES)(luck, damaged)
        parts[name] = bytes(damaged)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    return written.getvalue()


class Oracle:
    """Reads damaged files, all in the process of their own, and says what must not have been."""

    def __init__(self, folder: Path) -> None:
        self._deaths = folder / "deaths.json"
        self._readers = Readers(ReadingOptions(), ReadingLimits(MEGABYTES, SECONDS), self._deaths)

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, *error: object) -> None:
        self._readers.__exit__(None, None, None)

    def fault(self, suffix: str, data: bytes) -> str:
        """Return what is wrong with how a file was read, or ""."""
        begin = time.process_time()
        key = hashlib.sha256(data).hexdigest()
        result = self._readers.read(Path(f"a{suffix}"), data, key)
        if not (result.documents or result.quarantined):
            return "neither a document nor a reason"
        if time.process_time() - begin > SECONDS:
            return "took too long"
        for refused in result.quarantined:
            if not refused.reason or "input.reader_" in refused.reason:
                return f"died: {refused.reason}"
        for document in result.documents:
            if not (document.text and document.title):
                return "a document without text or title"
            f"{document.key}{document.title}{document.text}".encode()
        return ""


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    with Oracle(tmp_path_factory.mktemp("read")) as reading:
        yield reading


@pytest.mark.parametrize("suffix", sorted(SOUND))
def test_a_damaged_file_gives_documents_or_a_reason(suffix, oracle, tmp_path):
    luck = random.Random(zlib.crc32(suffix.encode()))
    for _ in range(ROUNDS):
        data = changed(luck, SOUND[suffix])
        assert oracle.fault(suffix, data) == "", keep(suffix, data, tmp_path)


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.name)
def test_what_once_broke_a_reader_breaks_it_no_more(kept, oracle):
    assert oracle.fault(kept.suffix, kept.read_bytes()) == ""


def faults_of(samples: Sequence[tuple[str, bytes]], luck: random.Random, folder: Path) -> Faults:
    """Damage files for a while, at least so many; return those that were not read as they must."""
    end = time.monotonic() + float(os.environ.get("FUZZ_SECONDS", "60"))
    number, faults = 0, Faults()
    with Oracle(folder) as oracle:
        while time.monotonic() < end or number < int(os.environ.get("FUZZ_FILES", "0")):
            suffix, data = luck.choice(samples)
            for _ in range(luck.randint(1, 3)):
                data = changed(luck, data)
            number += 1
            if problem := oracle.fault(suffix, data):
                faults[keep(suffix, data, folder)] = problem
    print(f"{number} damaged files, {len(faults)} faults")
    return faults


@pytest.fixture
def all_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of all kinds are read in a process of their own, with its limits."""
    monkeypatch.setattr(separate, "_is_safe", lambda suffix, data: False)


@pytest.mark.nightly
@pytest.mark.slow
def test_many_damaged_files_of_every_kind_give_documents_or_a_reason(
    tmp_path: Path, all_apart: None
) -> None:
    assert faults_of([*SOUND.items()], random.Random(SEED), tmp_path) == {}, f"FUZZ_SEED={SEED}"


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.shared_data
def test_many_damaged_files_from_outside_give_documents_or_a_reason(
    tmp_path: Path, all_apart: None, shared_data: Path
) -> None:
    samples = [
        (path.suffix.lower(), path.read_bytes())
        for path in sorted((shared_data / "outside").rglob("*"))
        if path.suffix.lower() in supported_suffixes() and 0 < path.stat().st_size < LARGEST
    ]
    assert len({suffix for suffix, _ in samples}) > 10
    assert faults_of(samples, random.Random(SEED), tmp_path) == {}, f"FUZZ_SEED={SEED}"


def keep(suffix: str, data: bytes, folder: Path) -> Path:
    """Write a file that broke a reader to where it can be looked at."""
    path = folder / f"{hashlib.sha256(data).hexdigest()[:12]}{suffix}"
    path.write_bytes(data)
    return path


def test_files_of_every_packed_kind_are_damaged():
    packed = {suffix for suffix in supported_suffixes() if not format_of(suffix).safe_bytes}
    assert SOUND.keys() >= packed - {".xlsm", ".docm", ".pptm", ".ppsx"}
