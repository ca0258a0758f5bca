"""The page on architecture names files that exist, and says truly how long they are."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
ROW = re.compile(r"^\| `([\w/.]+)` \| (\d+) \|", re.MULTILINE)
FILE = re.compile(r"`([\w/]+\.(?:py|sql))`")


def place(file: str) -> Path:
    """Return where a file named on the page is: in the package, or at the top."""
    inside = ROOT / "graphrag_pipeline" / file
    return inside if inside.is_file() else ROOT / file


def lines(file: str) -> int:
    return place(file).read_text().count("\n")


def test_every_file_on_the_page_exists() -> None:
    files = FILE.findall(PAGE.read_text())
    assert len(files) > 20
    assert [file for file in files if not place(file).is_file()] == []


def test_the_spine_says_how_long_its_files_are() -> None:
    spine = ROW.findall(PAGE.read_text())
    assert len(spine) == 10
    wrong = {
        file: lines(file) for file, said in spine if abs(lines(file) - int(said)) > 0.1 * int(said)
    }
    assert not wrong, "run python tests/test_architecture.py to write the numbers anew"


def write() -> None:
    """Write the numbers of lines as they are."""
    text = PAGE.read_text()
    PAGE.write_text(ROW.sub(lambda row: f"| `{row[1]}` | {lines(row[1])} |", text))


if __name__ == "__main__":
    write()
    sys.stdout.write(f"written to {PAGE}\n")
