"""Tables that packages offer to the marts are copied with a build; whoever cannot is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import polars as pl
import pytest

from graphrag_pipeline.core.errors import ConfigError, StorageError
from graphrag_pipeline.marts import inputs
from graphrag_pipeline.marts.inputs import MART_TABLES, MartTable, copy_inputs, offered_version

Offer = Callable[[Callable[[Path], pl.DataFrame]], None]


def version(home: Path) -> str:
    return "7"


@pytest.fixture
def offer() -> Iterator[Offer]:
    """Offers rows of feedback, in the place of whatever is installed."""
    yield lambda rows: MART_TABLES.add(
        "feedback", MartTable(about="Said.", rows=rows, version=version)
    )
    MART_TABLES.remove("feedback")


def test_rows_come_by_the_names_of_their_columns_and_with_their_version(
    offer: Offer, tmp_path: Path
) -> None:
    offer(lambda home: pl.DataFrame({"words": [home.name], "documents": [["a", "b"]]}))
    assert offered_version(tmp_path / "there") == "feedback=7"
    with duckdb.connect(str(copy_inputs(tmp_path / "there", tmp_path))) as con:
        said = "SELECT words, documents, communities FROM offered.feedback"
        assert con.execute(said).fetchall() == [("there", ["a", "b"], None)]
        assert con.execute("FROM offered.versions").fetchall() == [("feedback", "7")]


@pytest.mark.parametrize(
    "rows",
    [lambda home: 1 / 0, lambda home: pl.DataFrame({"unheard": [1]})],
    ids=["fails", "shape"],
)
def test_a_table_that_cannot_be_read_is_named(
    offer: Offer, tmp_path: Path, rows: Callable[[Path], pl.DataFrame]
) -> None:
    offer(rows)
    with pytest.raises(StorageError, match="cannot read feedback for the marts"):
        copy_inputs(tmp_path / "there", tmp_path)


def test_a_table_that_no_mart_reads_is_refused() -> None:
    table = MartTable(about="Of mine.", rows=lambda home: pl.DataFrame(), version=version)
    inputs._check("feedback", table)
    with pytest.raises(ConfigError, match="the marts read no such table: there is feedback"):
        inputs._check("sentiment", table)
