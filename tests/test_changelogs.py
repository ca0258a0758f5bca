"""Questions for versions, answered by changelogs: the head far above a change says its version."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from asked_files import index_asked

from benchmarks.answers import passages_of
from graphrag_pipeline.query import QueryEngine
from graphrag_pipeline.query.evidence.changelogs import _number_of, _versions

FILLER = "".join(f"- Mended a leak in pump {n} of the harbour.\n" for n in range(60))
DREDGE = f"""# Changelog

## [Unreleased]

- Nothing so far.

## [2.1.0] - 2024-05-06

### Added

- Support for sieves of brass.
{FILLER}
### Deprecated

- The option --rope, which `dredge --chain` replaces.

## [2.0.0] - 2023-01-31

### Removed

- Support for wooden sieves is gone.

## [2.0.0-rc1] - 2022-12-24

- A first look.

## [1.9.0] - 2021-07-01

### Added

- The option --rope ties the boat.
"""
SPONGE = f"""Sponge news

What's New in Sponge 3.1.2 final?
=================================

*Release date: 2022-03-04*

{FILLER}
- Sponge now dries wooden sieves. Sieves of brass are wet.

What's New in Sponge 3.1.1 final?
=================================

*Release date: 2022-02-01*

- bpo-12: Fixed the crash when the tide turns.
"""
MUDLARK = """mudlark (590-1) unstable; urgency=medium

  * Whistle at low tide.

mudlark (581-2) unstable; urgency=low

  * Sleep in the keel.
"""
NOTES = "The lighthouse was removed in 1931. Port Rowan 2.1 is a chart. Dredge 2.0 was a boat.\n"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryEngine]:
    files = {
        "dredge-2.1/CHANGELOG.md": DREDGE,
        "sponge.txt": SPONGE,
        "mudlark.txt": MUDLARK,
        "notes.txt": NOTES,
    }
    yield from index_asked(files, tmp_path_factory)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Which version of dredge added sieves of brass?", "[2.1.0] - 2024-05-06: Support for"),
        ("When was support for sieves of brass added to dredge?", "[2.1.0] - 2024-05-06: Support"),
        ("In which dredge release were wooden sieves removed?", "[2.0.0] - 2023-01-31: Support"),
        ("Since which version has dredge the option --rope?", "The option --rope ties the boat"),
        (
            "Which version of Sponge fixed the crash when the tide turns?",
            "3.1.1 final, Release date",
        ),
        ("Which version of sponge dries wooden sieves?", "Sponge now dries wooden sieves"),
        ("When was dredge 2.0.0 released?", "[2.0.0] - 2023-01-31"),
        ("When was Sponge 3.1.1 released?", "Release date: 2022-02-01"),
        ("What is the latest version of dredge?", "[2.1.0] - 2024-05-06"),
        ("What is the newest release of Sponge?", "Sponge 3.1.2 final, Release date: 2022-03-04"),
        ("What was deprecated in dredge 2.1.0?", "--rope, which dredge --chain replaces"),
        ("What changed in dredge 2.0.0?", "Support for wooden sieves is gone"),
        ("When was the swan of Bergen removed?", "The lighthouse was removed in 1931"),
        ("When was the lighthouse removed?", "The lighthouse was removed in 1931"),
    ],
)
def test_a_version_and_its_changes_are_told_by_its_head(
    asked: QueryEngine, question: str, told: str
) -> None:
    first, *_ = passages_of(asked.answer(question, "auto").text)
    assert told in first


def test_a_change_cites_its_own_line(asked: QueryEngine) -> None:
    answer = asked.answer("Which version of dredge added sieves of brass?", "auto")
    assert answer.citations[0].text == "- Support for sieves of brass."


def test_who_asks_some_documents_is_told_of_no_other(asked: QueryEngine) -> None:
    question = "What is the latest version of dredge?"
    where = {"uri": "*notes.txt"}
    assert "2.1.0" in asked.answer(question, "auto").text
    assert "2.1.0" not in asked.answer(question, "auto", where=where).text
    assert "2.1.0" in asked.answer(question, "auto", where={"uri": "*CHANGELOG.md"}).text


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("Version 4.3 (19 Jan 2020)", "4.3"),
        ("## [1.2.0] - 2023-01-01", "1.2.0"),
        ("### Changes between 3.0.18 and 3.0.19 [27 Jan 2026]", "3.0.19"),
        ('Major changes between "less" versions 563 and 581', "581"),
        ("Redis 7.0.15    Released Tue 09 Jan 2024 10:45:52 IST", "7.0.15"),
        ("Git v2.30 Release Notes", "2.30"),
        ("curl and libcurl 7.88.1", "7.88.1"),
        ("Updates since v2.29", ""),
        ("Works with Python 3.9 and the mud of 4.1.", ""),
        ("Pacify the compiler of Oracle Studio 12.6", ""),
        ("19 January 2020", ""),
        ("2.9. Deletions", ""),
        ("3.2. Versions", ""),
        ("30.6 WAL Internals", ""),
    ],
)
def test_a_head_names_one_version_and_hardly_anything_else(line: str, number: str) -> None:
    assert _number_of(line) == number


def test_only_texts_of_versions_are_changelogs() -> None:
    assert [version.number for version in _versions(DREDGE)] == [
        "2.1.0",
        "2.0.0",
        "2.0.0-rc1",
        "1.9.0",
    ]
    assert [version.number for version in _versions("Git 2.30 Release Notes\n\n * Mud.\n")] == [
        "2.30"
    ]
    assert _versions("Mud is wet.\n\nVersion 2.1\n\nNobody knows why.\n") == []
    assert _versions(NOTES) == []
