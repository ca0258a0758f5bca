"""Two indexes of the same public documents and of different hidden ones, and how views differ.

What a view may tell of a release is named here: :data:`RELEASE_FIELDS`. All that is of the moment
of asking, and of no document, is in :data:`OF_THE_MOMENT`.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag_pipeline import Index
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.query.release import Release

PUBLIC = {
    "mill.md": "Alba Crane met Dorian Feld at Halden Mill. The council praised Halden Mill. Alba "
    "Crane repaired Halden Mill with Dorian Feld. The tide gauge was set by Alba Crane.",
    "line.md": "# Brandvik Line\n\nBrandvik Line carried grain for Halden Mill. Alba Crane ran "
    "Brandvik Line.\n\n# Debts\n\nOsric Thale owed Alba Crane a barge. The World Health Office "
    "(WHO) wrote to Osric Thale.",
    "weir.md": "Osric Thale built the Northern Weir near Halden Mill. Thale was thanked by the "
    "council of Bergen. Bergen paid for the Northern Weir. WHO sent Dorian Feld to Bergen.",
    "fair.md": "Lucan Vane opened the Bergen Fair. Lucan Vane sold horses to Osric Thale, and the "
    "Bergen Fair closed late. All rights are reserved by Brandvik Line and Lucan Vane.",
    "people.csv": "id,name,mentor_id\n1,Alba Crane,2\n2,Osric Thale,3\n3,Lucan Vane,\n",
}
QUIET = {"note.md": "Rain fell on the hills for nine days."}
# Each document meets a rule that looks at the whole: what is rare, usual, one, near or repeated.
LOUD = {
    "affair.md": "Alba Crane dismissed Dorian Feld over the Quagga Ledger at Halden Mill. Dorian "
    "Feld kept the tide gauge, and the tide gauge was broken by Marek Vale.",
    "whole.md": "Lucan Vane opened the Bergen Fair. Brandvik Line robbed Lucan Vane. Bergen feared "
    "Alba Crane. Osric Thale and Lucan Vane hid the tide gauge.",
    "again.md": "All rights are reserved by Brandvik Line and Lucan Vane. Marek Vale left Bergen.",
    "rights.md": "All rights are reserved by Brandvik Line and Lucan Vane. Bergen was dark.",
    "named.md": "HALDEN MILL burned. HALDEN MILL fell. HALDEN MILL was sold. DORIAN FELD fled from "
    "HALDEN MILL. The halden mill was a ruin. Northern Weir Company bought HALDEN MILL.",
    "same.md": "Ursula Thale married Imre Crane. Thale and Crane left Halden. Western Harbour "
    "Office (WHO) paid Thale. Osric Thale feared Lucan Vane. Lucan Vane wrote to Osric Thale.",
    "many.md": " ".join(
        f"Number {n} of the council praised the grain and the barge of Halden Mill near Bergen."
        for n in range(40)
    ),
    "people2.csv": "id,name,mentor_id\n1,Marek Vale,2\n2,Alba Crane,3\n3,Dorian Feld,\n",
}
LABEL = "staff"
RULES = [
    {"match": "public/**", "labels": [LABEL, "hr"]},
    {"match": "hidden/", "labels": ["hr"]},
]
QUESTIONS = (
    "What did Alba Crane do at Halden Mill with the tide gauge?",
    "How are Osric Thale and Lucan Vane related, and who paid in Bergen?",
    "What are the main themes of the grain, the barge and the council?",
)
RELEASE_FIELDS = ("release", "created_at")
"""What tells that something was published, and when."""
OF_THE_MOMENT = re.compile(
    r'"timings": ?\{[^}]*\}|"(?:seconds|total|created)": ?[\d.e-]+|(?:chatcmpl|cmpl)-\w+'
    r"|quoted id=\w+|[\d.]+ s\n"
)
"""How long something took, when it was asked, and random names of answers and quotations."""


@dataclass(frozen=True)
class Side:
    """One of the two: its index, and what its release is called."""

    name: str
    index: Index
    release: str
    created_at: str

    def text(self, value: object) -> str:
        """Return something as text, without what a view may tell and what is of the moment."""
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        time = self.created_at[:19].replace(" ", "[ T]") + r"[.\d]*(\+00(:00)?)?"
        text = re.sub(time, "TIME", text.replace(self.release, "RELEASE"))
        return OF_THE_MOMENT.sub("", text)


Pair = Mapping[str, Side]


def write_pair(
    folder: Path, settings: Mapping[str, Any], hidden: Mapping[str, Mapping[str, str]]
) -> None:
    """Index the public documents with each set of hidden ones, in turn, in one place."""
    folder.mkdir()
    (folder / "aliases.csv").write_text(
        "action,a,b,note\nmerge,Osric Thale,Lucan Vane,\nmerge,Brandvik Line,Bergen Fair,\n"
    )
    for name, texts in hidden.items():
        work = folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        for room, files in (("public", PUBLIC), ("hidden", texts)):
            for file, text in files.items():
                path = work / "documents" / room / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        _index(folder, "work/home", settings).update(work / "documents")
        shutil.copytree(work / "home", folder / name)


def opened_pair(folder: Path, settings: Mapping[str, Any], names: Iterable[str]) -> Pair:
    """Return what :func:`write_pair` wrote in a folder."""
    sides = {}
    for name in names:
        index = _index(folder, name, settings)
        (row,) = index.sql("SELECT id, created_at::VARCHAR FROM releases")[1]
        sides[name] = Side(name, index, str(row[0]), str(row[1]))
    return sides


def _index(folder: Path, home: str, settings: Mapping[str, Any]) -> Index:
    sections = {
        "access": {"mode": "filtered", "rules": RULES},
        "resolution": {"aliases_file": str(folder / "aliases.csv")},
        **settings,
    }
    return Index(Settings.exactly({"home": str(folder / home), **sections}))


def differing(pair: Pair, told: Callable[[Side], Mapping[str, object]]) -> list[str]:
    """Return the names of what is not the same, byte for byte, on both sides."""
    one, two = ({k: side.text(v) for k, v in told(side).items()} for side in pair.values())
    return [
        f"{name}: {_apart(one.get(name, ''), two.get(name, ''))}"
        for name in {**one, **two}
        if one.get(name) != two.get(name)
    ]


def rows_of(index: Release, table: str) -> list[str]:
    """Return the rows of a table, which has them in no order."""
    return sorted(json.dumps(row, default=str) for row in index.rows(f"FROM {table}"))


def _apart(one: str, two: str) -> str:
    """Return what stands around the first character that differs."""
    pairs = enumerate(zip(one, two, strict=False))
    same = next((n for n, (a, b) in pairs if a != b), min(len(one), len(two)))
    around = slice(max(0, same - 60), same + 60)
    return f"{one[around]!r} is not {two[around]!r}"
