"""Scanned pages become text by tesseract: once, within limits, and not at all without it."""

import io
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.pdfgen.canvas import Canvas

from graphrag_pipeline.ingest.reading import ReadingOptions, read_file
from graphrag_pipeline.ingest.reading.model import OcrOptions

Command = Callable[[str], Path]


def scan(*pages: str) -> bytes:
    """Return a PDF whose pages are pictures of words."""
    font = ImageFont.load_default(size=40)
    pictures = []
    for words in pages:
        picture = Image.new("L", (900, 200), 255)
        ImageDraw.Draw(picture).text((40, 60), words, fill=0, font=font)
        pictures.append(picture)
    buffer = io.BytesIO()
    pictures[0].save(buffer, "PDF", resolution=150, save_all=True, append_images=pictures[1:])
    return buffer.getvalue()


def mixed(*pages: str | None) -> bytes:
    """Return a PDF of pages with text, and of pictures where there is None."""
    file = io.BytesIO()
    canvas = Canvas(file)
    for words in pages:
        if words is None:
            canvas.drawInlineImage(Image.new("L", (40, 40), 200), 100, 400, 300, 300)
        else:
            canvas.drawString(100, 700, words)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


@pytest.fixture
def tesseract(tmp_path, monkeypatch) -> Command:
    """Put a command in tesseract's place: an image on its input, text on its output, 0 or 1."""

    def install(script: str) -> Path:
        calls = tmp_path / "calls"
        command = tmp_path / "bin" / "tesseract"
        command.parent.mkdir(exist_ok=True)
        command.write_text(
            '#!/bin/sh\n[ "$1" = --version ] && { echo "tesseract 9.9"; exit 0; }\n'
            f'echo "$@" >> {calls}\nhead -c 2 >> {calls}\n{script}\n'
        )
        command.chmod(command.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{command.parent}:/usr/bin:/bin")
        return calls

    return install


def read(data: bytes, cache: Path, **options):
    return read_file(Path("a.pdf"), ReadingOptions(ocr=OcrOptions(cache, **options)), data=data)


def test_pages_are_recognised_once_however_often_the_file_is_read(tesseract, tmp_path):
    calls = tesseract("echo Ishmael sails.")
    data = scan("one", "two")
    first, again = read(data, tmp_path / "ocr"), read(data, tmp_path / "ocr")
    assert first == again
    assert first.documents[0].text == "Ishmael sails.\n\nIshmael sails."
    assert calls.read_text() == "stdin stdout -l eng\nP5" * 2
    read(data, tmp_path / "ocr", languages="deu")
    assert calls.read_text().count("-l deu") == 2


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo Failed loading language >&2; exit 1", "ended with 1: Failed loading language"),
        ("exec sleep 30", "more than 0.3 seconds"),
        ("exit 0", "OCR found no text"),
    ],
)
def test_a_scan_that_cannot_be_recognised_says_why(tesseract, tmp_path, script, why):
    tesseract(script)
    result = read(scan("one"), tmp_path / "ocr", seconds=0.3)
    assert result.documents == []
    assert why in result.quarantined[0].reason


def test_a_scan_says_what_to_install_and_what_to_set(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    refused = read(scan("one"), tmp_path / "ocr").quarantined[0]
    assert "apt install tesseract-ocr" in refused.reason
    without = read_file(Path("a.pdf"), ReadingOptions(), data=scan("one")).quarantined[0]
    assert "input.ocr" in without.reason


def test_an_image_has_no_more_pixels_than_allowed(tesseract, tmp_path):
    tesseract(f"cat > {tmp_path}/image; echo x")
    read(scan("one"), tmp_path / "ocr", most_pixels=10_000)
    assert (tmp_path / "image").stat().st_size < 11_000


@pytest.mark.parametrize(
    ("script", "text", "unread"),
    [
        ("echo The seal was broken.", "First.\n\nThe seal was broken.\n\nLast.", []),
        ("exit 1", "First.\n\nLast.", ["page 2"]),
        ("exit 0", "First.\n\nLast.", ["page 2"]),
    ],
)
def test_of_a_pdf_with_text_only_scanned_pages_are_recognised_and_it_may_fail(
    tesseract, tmp_path, script, text, unread
):
    calls = tesseract(script)
    result = read(mixed("First.", None, "Last."), tmp_path / "ocr")
    assert [document.text for document in result.documents] == [text]
    assert [refused.key for refused in result.quarantined] == unread
    assert calls.read_text().count("stdin stdout") == 1


@pytest.mark.skipif(not shutil.which("tesseract"), reason="tesseract is not installed")
def test_tesseract_reads_a_scan(tmp_path):
    document = read(scan("Ishmael sails"), tmp_path / "ocr").documents[0]
    assert document.text == "Ishmael sails"
