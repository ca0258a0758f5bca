"""Fixtures that tests share: real stores in temporary folders, and the public data where it is."""

from __future__ import annotations

import gc
import importlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest
from artefacts import copy_of
from case_costs import CaseCosts
from hypothesis import HealthCheck, settings
from quick_stores import OPEN, QuickStores
from surroundings import isolate

from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.graph.communities import CommunityChanges, update_communities
from graphrag_pipeline.graph.fold import GraphChanges, merge_graph
from graphrag_pipeline.graph.resolution.resolving import resolve_entities
from graphrag_pipeline.ingest.stages import INGESTION, StageResult
from graphrag_pipeline.marts import build as marts_build
from graphrag_pipeline.pipeline.stages import ingest
from graphrag_pipeline.planning.pending import pending_batches
from graphrag_pipeline.reports.extractive import ExtractiveWriter
from graphrag_pipeline.reports.levels import LevelReports, update_reports
from graphrag_pipeline.store.batches import Batch, BatchLog
from graphrag_pipeline.store.index_store import IndexStore
from graphrag_pipeline.store.workspace import Workspace

isolate()

SHARED_DATA = Path(__file__).parents[1] / "shared" / "data"
NOBODY = 65534
BESIDE = [
    f"graphrag_{project.parent.name}"
    for project in Path(__file__).parent.glob("packages/*/pyproject.toml")
]
TESTS = Path(__file__).parent / "tests"
LISTED = ("dear", "nightly")
"""Marks of cases by lists: those that take most CPU, and those whose faults another tells too.

A file that is listed by its name is so with all its cases.
"""

_SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile(
    "repeatable", deadline=None, derandomize=True, max_examples=60, suppress_health_check=_SLOW
)
settings.register_profile("search", deadline=None, max_examples=1000, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of lists, and those to skip. Those that mostly wait run first."""
    files = {mark: TESTS / f"{mark}_cases.txt" for mark in LISTED}
    listed = {m: {*f.read_text().splitlines()} for m, f in files.items() if f.is_file()}
    # What `make test` has not run before: one run of all that is left wastes least.
    also = [Path(path).resolve() for path in os.environ.get("DEAR_TOO", "").split()]
    lacking = [name for name in BESIDE if find_spec(name) is None]
    for item in items:
        if any(item.path.is_relative_to(path) for path in also):
            item.add_marker("dear")
        for mark, cases in listed.items():
            if _case(item) in cases or item.path.name in cases:
                item.add_marker(mark)
        if lacking and item.get_closest_marker("beside"):
            item.add_marker(pytest.mark.skip(reason=f"{lacking[0]} is not installed"))
    for first in ("slow", "waits"):
        items.sort(key=lambda item: item.get_closest_marker(first) is None)


def _case(item: pytest.Item) -> str:
    """Return what a case is called, wherever its file is."""
    return f"{item.path.name}::{item.nodeid.partition('::')[2]}"


def pytest_configure(config: pytest.Config) -> None:
    if folder := os.environ.get("COST_OF_TESTS"):
        config.pluginmanager.register(CaseCosts(Path(folder), _case))


def pytest_collection() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    """Let go of no module and no test from here on: looking at them all again takes long."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker for each processor, and two more: many tests wait for another process."""
    return (os.cpu_count() or 1) + 2


def examples(number: int) -> settings:
    """Return settings for dear examples: so many, and at night 16 times as many."""
    return settings(max_examples=number * settings().max_examples // 60)


def workspace_of(home: Path, settings: Settings) -> Workspace:
    """Return the index in a home folder, worked on under these settings."""
    return Workspace(settings.model_copy(update={"home": str(home)}))


class Engine:
    """One index in a folder of its own, driven stage by stage as the assets drive it."""

    def __init__(self, folder: Path, settings: Settings | None = None) -> None:
        self.inbox = folder / "documents"
        self.inbox.mkdir(parents=True, exist_ok=True)
        self.settings = settings or Settings()
        self.log = BatchLog(folder / ".graphrag")
        self.store = IndexStore(folder / ".graphrag" / "index.duckdb", wait_seconds=60)

    @property
    def workspace(self) -> Workspace:
        """The index under the settings of now."""
        return workspace_of(self.log.home, self.settings)

    def write(self, files: Mapping[str, str | bytes | None]) -> None:
        """Put files into the inbox; None takes one away."""
        for name, content in files.items():
            path = self.inbox / name
            if content is None:
                path.unlink(missing_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def cut(self, settle_seconds: float = 0) -> list[Batch]:
        given = self.settings
        return self.workspace.batches.cut(
            self.inbox,
            given.batches,
            max_bytes=given.input.max_file_bytes,
            settle_seconds=settle_seconds,
            remove_all=True,
        )

    def ingest(self, key: str) -> tuple[StageResult, StageResult, StageResult]:
        documents, chunks, extractions = (ingest(self.workspace, s, key) for s in INGESTION)
        return documents, chunks, extractions

    def merge(self) -> GraphChanges:
        store, settings = self.workspace.store, self.workspace.settings
        resolve_entities(store, settings)
        return merge_graph(store, settings.graph, settings.chunks.encoding)

    def cluster(self) -> CommunityChanges:
        return update_communities(self.store, self.settings.communities)

    def report(self, levels: int = 1) -> list[LevelReports]:
        """Write the reports by so many level assets, deepest first; the last does all deeper."""
        return [
            update_reports(
                self.store,
                self.settings.reports,
                level,
                and_deeper=level == levels - 1,
                writer=ExtractiveWriter(self.settings.reports),
            )
            for level in range(levels - 1, -1, -1)
        ]

    def index(self) -> None:
        """Take in what changed in the inbox, as far as the graph."""
        with self.store.session():
            self.cut()
            for key in pending_batches(self.workspace):
                self.ingest(key)
            self.merge()

    def update(self) -> None:
        """Bring the whole index up to date with the inbox."""
        with self.store.session():
            self.index()
            self.cluster()
            self.report()

    def rows(self, sql: str) -> list[tuple]:
        with self.store.read() as con:
            return con.execute(sql).fetchall()

    def table(self, sql: str) -> pl.DataFrame:
        with self.store.read() as con:
            return con.sql(sql).pl()


def build_graph(folder: Path, files: Mapping[str, str | bytes], **given: object) -> Engine:
    """Build an index of some files as far as the graph."""
    engine = Engine(folder, Settings(**given))
    engine.write(files)
    engine.index()
    return engine


def build(folder: Path, files: Mapping[str, str | bytes], **given: object) -> Engine:
    """Build an index of some files, through every stage."""
    engine = Engine(folder, Settings(**given))
    engine.write(files)
    engine.update()
    return engine


@pytest.fixture(scope="session")
def _quick_stores() -> Iterator[QuickStores]:
    stores = QuickStores()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IndexStore, "_connect", lambda store: stores.connect(store))
        patch.setattr(IndexStore, "copy_to", stores.alone(IndexStore.copy_to))
        patch.setattr(IndexStore, "write_anew", stores.alone(IndexStore.write_anew))
        yield stores


@pytest.fixture(autouse=True)
def _files_are_closed_after_a_test(_quick_stores: QuickStores) -> Iterator[None]:
    yield
    _quick_stores.end_test()


@pytest.fixture(scope="session", autouse=True)
def _dbt_reads_its_project_once() -> Iterator[None]:
    """All homes have the manifest that dbt makes for the first."""
    parse, project = marts_build._parse, marts_build.PROJECT

    def parse_once(command: Path, folder: Path) -> None:
        if project == marts_build.PROJECT:
            copy_of("manifest", lambda made: parse(command, made), folder)
        else:
            parse(command, folder)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marts_build, "_parse", parse_once)
        yield


@pytest.fixture
def plain_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are made, opened and closed as outside of tests: for tests of how."""
    monkeypatch.setattr(IndexStore, "_connect", OPEN)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """An index that holds nothing yet."""
    return Engine(tmp_path)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data beside the checkout; the test is skipped where there is none."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"public data is not at {SHARED_DATA}")
    return SHARED_DATA


@contextmanager
def without_privileges(*given_away: Path) -> Iterator[None]:
    """Run as a user whom the operating system can refuse something; root hands over the paths."""
    if os.geteuid() != 0:
        yield
        return
    for path in given_away:
        os.chown(path, NOBODY, NOBODY)
    # DuckDB asks for it with the first time it converts; that user may have no right to read it.
    importlib.import_module("_strptime")
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user may enter: those that pytest makes are the owner's alone."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name).resolve()
