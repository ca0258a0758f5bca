"""Bytes become characters: byte-order mark, then UTF-8, then a guess."""

from __future__ import annotations

import codecs
import re

from graphrag_pipeline.core.patterns import pattern_of
from graphrag_pipeline.ingest.reading.model import Unreadable

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"\x84\x31\x95\x33", "gb18030"),
)
_SIGNATURES = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a zip archive or an Office document"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document"),
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3", "an SQLite database"),
    (b"PAR1", "a parquet file"),
)
_GUESSES = [
    *("gb18030", "big5", "cp932", "euc_jp", "cp949"),
    *("cp1251", "koi8_r", "cp1253", "cp1255", "cp1256", "cp1252"),
]
_SAMPLE_BYTES = 65_536
_CONTROLS = pattern_of("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd\ufffe\uffff]")
_ASCII = pattern_of("[\x00-\x7f]+")
_HIGH_RUNS = pattern_of(rb"[\x80-\xff]+")
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b"))
_CP1252_UNDEFINED = b"\x81\x8d\x8f\x90\x9d"


def decode(data: bytes, encoding: str | None = None) -> str:
    """Return the characters of a text file, without its byte-order mark.

    The mark decides; else `encoding`; else UTF-8 if the bytes are valid UTF-8 or nearly so (a few
    broken bytes in a file become U+FFFD); else Western European text is cp1252 and everything
    else what charset-normalizer finds. Raises Unreadable for binary or undetectable content.
    """
    for signature, kind in _SIGNATURES:
        if data.startswith(signature):
            raise Unreadable(f"the content is {kind}, not text: give the file its right suffix")
    text = _decoded(data, encoding)
    _require_text(text)
    return text


def _decoded(data: bytes, encoding: str | None) -> str:
    for mark, marked_encoding in _MARKS:
        if data.startswith(mark) and not (marked_encoding == "utf-32-le" and len(data) % 4):
            return data[len(mark) :].decode(marked_encoding, "replace")
    if encoding is not None:
        return data.decode(encoding, "replace")
    if (unmarked := _utf16_without_mark(data)) is not None:
        return data.decode(unmarked, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return _guessed(data)


def _utf16_without_mark(data: bytes) -> str | None:
    sample = data[:4096]
    half = len(sample) // 2
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if half >= 4 and even == 0 and odd > 0.7 * half:
        return "utf-16-le"
    if half >= 4 and odd == 0 and even > 0.7 * half:
        return "utf-16-be"
    return None


def _guessed(data: bytes) -> str:
    nearly = data.decode("utf-8", "replace")
    n_unreadable = nearly.count("\ufffd")
    if len(_ASCII.sub("", nearly)) - n_unreadable >= 10 * n_unreadable:
        return nearly
    if _looks_western(data):
        return data.decode("cp1252", "replace")
    sample = data[:_SAMPLE_BYTES]
    if len(sample) - len(sample.translate(None, _CONTROL_BYTES)) > len(sample) // 50:
        raise Unreadable("the content is binary, not text")
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=_GUESSES).best()
    if best is None:
        raise Unreadable("the encoding could not be detected: set `encoding`")
    return data.decode(best.encoding, "replace")


def _looks_western(data: bytes) -> bool:
    """Accents stand alone among ASCII letters, where other scripts are runs of high bytes."""
    sample = data[:_SAMPLE_BYTES]
    runs = _HIGH_RUNS.findall(sample)
    high = sum(map(len, runs))
    letters = sum(map(len, re.findall(rb"[A-Za-z]+", sample)))
    undefined = len(sample) - len(sample.translate(None, _CP1252_UNDEFINED))
    return 10 * undefined <= high and 3 * high <= letters and 2 * high <= 3 * len(runs)


def _require_text(text: str) -> None:
    sample = text[:_SAMPLE_BYTES]
    unwanted = len(_CONTROLS.findall(sample))
    if unwanted >= 3 and 10 * unwanted > len(sample):
        raise Unreadable("the content is binary, not text")
