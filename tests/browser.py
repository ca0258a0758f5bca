"""A headless Chromium for tests of pages; they are skipped where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Without a graphics card: WebGL by software, and all else without it, in half the time.
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-gpu",
]
_DRAWN_BY_SOFTWARE = "GPU stall due to ReadPixels"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def complaints_of(page: Any) -> list[str]:
    """Return what a page says in its console from now on, but for what drawing by software says."""
    complaints: list[str] = []

    def hear(message: Any) -> None:
        if _DRAWN_BY_SOFTWARE not in message.text:
            complaints.append(message.text)

    page.on("console", hear)
    return complaints


@contextmanager
def chromium() -> Iterator[Any]:
    """Start Chromium (``CHROMIUM`` names its program) and close it; a Playwright ``Browser``."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip("no chromium here: install it, or name its program in CHROMIUM")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started
