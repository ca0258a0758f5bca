"""The output tables of microsoft/graphrag, of versions 1 to 3, in one shape."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from graphrag_pipeline.core.errors import InputError, first_line

_TEXTS = pl.List(pl.String)
_OUTPUT_FOLDERS = ("", "output", "artifacts")
_FILE_NAMES = ("{}.parquet", "create_final_{}.parquet", "final_{}.parquet")


@dataclass(frozen=True)
class _Column:
    """A column: its type, the names it has had, and whether there is no doing without it."""

    dtype: pl.DataType | type[pl.DataType]
    names: tuple[str, ...] = ()
    required: bool = False


_NUMBER = _Column(pl.Int64)
_TEXT = _Column(pl.String)
_LIST = _Column(_TEXTS)
_DOCUMENTS = {
    "human_readable_id": _NUMBER,
    "id": _Column(pl.String, required=True),
    "title": _TEXT,
    "text": _Column(pl.String, ("raw_content",)),
    "creation_date": _TEXT,
}
_TEXT_UNITS = {
    "human_readable_id": _NUMBER,
    "id": _Column(pl.String, required=True),
    "text": _Column(pl.String, required=True),
    "document_id": _Column(pl.String, ("document_ids",)),
}
_ENTITIES = {
    "human_readable_id": _NUMBER,
    "id": _TEXT,
    "title": _Column(pl.String, ("name",), required=True),
    "type": _TEXT,
    "description": _TEXT,
    "text_unit_ids": _LIST,
}
_RELATIONSHIPS = {
    "human_readable_id": _NUMBER,
    "source": _Column(pl.String, required=True),
    "target": _Column(pl.String, required=True),
    "description": _TEXT,
    "weight": _Column(pl.Float64),
    "text_unit_ids": _LIST,
}
_COMMUNITIES = {
    "community": _Column(pl.Int64, required=True),
    "level": _Column(pl.Int64, required=True),
    "parent": _NUMBER,
    "children": _Column(pl.List(pl.Int64)),
    "entity_ids": _Column(_TEXTS, required=True),
}
_REPORTS = {
    "community": _Column(pl.Int64, required=True),
    "title": _Column(pl.String, required=True),
    "summary": _Column(pl.String, required=True),
    "full_content": _Column(pl.String, required=True),
    "rating": _Column(pl.Float64, ("rank",)),
    "rating_explanation": _Column(pl.String, ("rank_explanation",)),
}
_COVARIATES = {
    "human_readable_id": _NUMBER,
    "type": _TEXT,
    "description": _TEXT,
    "subject_id": _Column(pl.String, required=True),
    "object_id": _TEXT,
    "status": _TEXT,
    "start_date": _TEXT,
    "end_date": _TEXT,
    "source_text": _TEXT,
    "text_unit_id": _Column(pl.String, required=True),
}
_FINDINGS = pl.List(pl.Struct({"summary": pl.String, "explanation": pl.String}))


@dataclass(frozen=True)
class ImportedTables:
    """Another index's tables, each with all its columns and sorted by human_readable_id.

    ``fingerprint`` changes with the files; ``missing`` names the tables that are not there.
    """

    documents: pl.DataFrame
    text_units: pl.DataFrame
    entities: pl.DataFrame
    relationships: pl.DataFrame
    communities: pl.DataFrame
    reports: pl.DataFrame
    covariates: pl.DataFrame
    fingerprint: str
    missing: tuple[str, ...]


def read_tables(directory: Path) -> ImportedTables:
    """Read the tables in a folder, or in its sub-folder ``output``.

    Entities and relationships are required; of the other tables, those that are there are read.
    Raises InputError that names the table or column that is missing.
    """
    folder = _output_folder(directory)
    digest = hashlib.sha256()
    absent: list[str] = []

    def read(name: str, columns: dict[str, _Column], *, required: bool = False) -> pl.DataFrame:
        path = _file(folder, name)
        if path is None and required:
            raise InputError(
                f"{folder} has no {name}.parquet: name the folder of GraphRAG's output"
            )
        if path is None:
            absent.append(name)
            return pl.DataFrame(schema={n: c.dtype for n, c in columns.items()})
        frame = _read_file(path, digest)
        return _in_order(_shaped(frame, columns, path))

    reports = read("community_reports", _REPORTS)
    return ImportedTables(
        documents=read("documents", _DOCUMENTS),
        text_units=read("text_units", _TEXT_UNITS),
        entities=read("entities", _ENTITIES, required=True),
        relationships=read("relationships", _RELATIONSHIPS, required=True),
        communities=read("communities", _COMMUNITIES),
        reports=_with_findings(reports),
        covariates=read("covariates", _COVARIATES),
        fingerprint=digest.hexdigest(),
        missing=tuple(absent),
    )


def _output_folder(directory: Path) -> Path:
    if not directory.is_dir():
        raise InputError(f"{directory} is not a folder: name the folder of GraphRAG's output")
    places = (directory / name for name in _OUTPUT_FOLDERS)
    return next((place for place in places if _file(place, "entities")), directory)


def _file(folder: Path, name: str) -> Path | None:
    places = (folder / pattern.format(name) for pattern in _FILE_NAMES)
    return next((place for place in places if place.is_file()), None)


def _read_file(path: Path, digest: hashlib._Hash) -> pl.DataFrame:  # pyright: ignore[reportPrivateUsage]
    try:
        data = path.read_bytes()
        digest.update(data)
        return pl.read_parquet(data)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"cannot read {path}: {first_line(error)}") from error


def _shaped(frame: pl.DataFrame, columns: dict[str, _Column], path: Path) -> pl.DataFrame:
    expressions = []
    for name, column in columns.items():
        source = next((n for n in (name, *column.names) if n in frame.columns), None)
        if source is None and column.required:
            raise InputError(f"{path} has no column {name}: it has {', '.join(frame.columns)}")
        value = pl.lit(None) if source is None else pl.col(source)
        if source and frame.schema[source].base_type() is pl.List and column.dtype == pl.String:
            value = value.list.first()
        expressions.append(value.cast(column.dtype, strict=False).alias(name))
    extra = [pl.col("findings")] if "findings" in frame.columns else []
    try:
        return frame.select(*expressions, *extra)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"cannot use {path}: {first_line(error)}") from error


def _in_order(frame: pl.DataFrame) -> pl.DataFrame:
    if "human_readable_id" not in frame.columns:
        return frame
    place = pl.int_range(pl.len(), dtype=pl.Int64)
    return frame.with_columns(pl.col("human_readable_id").fill_null(place)).sort(
        "human_readable_id", maintain_order=True
    )


def _with_findings(reports: pl.DataFrame) -> pl.DataFrame:
    """Bring ``findings`` into one shape; a finding that is mere text is an explanation."""
    lists = reports["findings"].to_list() if "findings" in reports.columns else []
    findings = [_findings(row) for row in lists] or [[]] * len(reports)
    return reports.with_columns(findings=pl.Series(findings, dtype=_FINDINGS))


def _findings(row: object) -> list[dict[str, str]]:
    return [_finding(item) for item in (row if isinstance(row, list) else [row]) if item]


def _finding(item: object) -> dict[str, str]:
    if not isinstance(item, dict):
        return {"summary": "", "explanation": str(item)}
    return {name: str(item.get(name) or "") for name in ("summary", "explanation")}
