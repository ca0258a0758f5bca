"""Scanned pages become text by tesseract, where it is installed: one process for each page."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from graphrag_pipeline.core.hardening.files import write_beside
from graphrag_pipeline.ingest.reading.model import OcrOptions, Unreadable

MISSING = (
    "the PDF has pages without a text layer, and tesseract, which would read them, is not "
    "installed (Debian: apt install tesseract-ocr)"
)
_FORM = "1"
_SAVED_EVERY = 10


def tesseract_version() -> str:
    """Return the first line of `tesseract --version`; "" where there is none."""
    command = shutil.which("tesseract")
    return _version(command) if command else ""


@functools.cache
def _version(command: str) -> str:
    try:
        told = subprocess.run(
            [command, "--version"], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return (told.stdout or told.stderr).partition("\n")[0].strip()


def recognised(
    data: bytes, pages: Sequence[int], image: Callable[[int], bytes], options: OcrOptions
) -> dict[int, str]:
    """Return the text of some pages of a file by their numbers; those that failed are not in it.

    ``image`` renders a page as an image that tesseract reads. What was recognised of a file before
    by the same tesseract is taken from the cache. Raises Unreadable if there is no tesseract, or if
    none of the pages could be read.
    """
    version = tesseract_version()
    if not version:
        raise Unreadable(MISSING)
    cache = _cache_file(data, version, options)
    texts = _cached(cache)
    problem = ""
    todo = [number for number in pages if number not in texts]
    for count, number in enumerate(todo, 1):
        try:
            texts[number] = _page(image(number), options)
        except Unreadable as error:
            problem = f"page {number + 1}: {error}"
        if count % _SAVED_EVERY == 0 or count == len(todo):
            text = json.dumps({str(n): text for n, text in texts.items()}, ensure_ascii=False)
            write_beside(cache, text.encode())
    if problem and not any(texts.values()):
        raise Unreadable(f"the PDF has no text layer, and OCR failed ({problem})")
    return texts


def text_file(data: bytes, options: OcrOptions) -> Path:
    """Return where the texts of a file's pages are kept, as this tesseract reads them."""
    return _cache_file(data, tesseract_version(), options)


def _cache_file(data: bytes, version: str, options: OcrOptions) -> Path:
    how = f"{_FORM}\n{version}\n{options.languages}\n{options.most_pixels}\n"
    return options.cache / f"{hashlib.sha256(how.encode() + data).hexdigest()}.json"


def _cached(file: Path) -> dict[int, str]:
    try:
        pages = json.loads(file.read_bytes())
        return {int(number): str(text) for number, text in pages.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def _page(image: bytes, options: OcrOptions) -> str:
    """Return the text of one image. Raises Unreadable with what tesseract says."""
    command = ["tesseract", "stdin", "stdout", "-l", options.languages]
    try:
        done = subprocess.run(
            command,
            input=image,
            capture_output=True,
            timeout=options.seconds,
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unreadable(f"OCR took more than {options.seconds:g} seconds") from None
    except OSError as error:
        raise Unreadable(f"tesseract cannot be started ({error})") from None
    if done.returncode:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())[:200]
        raise Unreadable(f"tesseract ended with {done.returncode}: {said}")
    return done.stdout.decode("utf-8", "replace").replace("\f", "")
