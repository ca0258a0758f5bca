"""The public face of the engine: one index, and what one can do with it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.core import showing
from graphrag_pipeline.core.errors import AccessError, ConfigError, GraphRAGError, InputError
from graphrag_pipeline.core.settings import Settings, load_settings
from graphrag_pipeline.core.sharing import sharing_of
from graphrag_pipeline.exchange.exporting import Export, export_release
from graphrag_pipeline.exchange.importing import ImportResult, import_graphrag
from graphrag_pipeline.extraction.model.trial import learn_of_model
from graphrag_pipeline.ingest.sites import Fetched, fetch_sites
from graphrag_pipeline.marts.sql import query_published
from graphrag_pipeline.pages import pictures
from graphrag_pipeline.pipeline.updating import check_key, cut_batches, run_stages
from graphrag_pipeline.planning.plan import Plan, plan_run
from graphrag_pipeline.planning.status import changes_in, summarise
from graphrag_pipeline.query import Answer, QueryEngine, Retrieval
from graphrag_pipeline.releases.diff import diff_releases
from graphrag_pipeline.releases.kept_releases import KeptRelease, list_releases, published_release
from graphrag_pipeline.releases.older_releases import release_file
from graphrag_pipeline.releases.rollback import Rollback, rollback
from graphrag_pipeline.releases.table_diffs import ReleaseDiff
from graphrag_pipeline.store import cache_limit
from graphrag_pipeline.store.cache_limit import CacheUse
from graphrag_pipeline.store.index_store import connect_published
from graphrag_pipeline.store.snapshots import is_address, snapshot_folder
from graphrag_pipeline.store.sources import changed_files
from graphrag_pipeline.store.workspace import Workspace
from graphrag_pipeline.structures.registry import ask_for_clustering
from graphrag_pipeline.upkeep import backups, checking, purging
from graphrag_pipeline.upkeep.backups import Backup, Restored
from graphrag_pipeline.upkeep.checking import Checked
from graphrag_pipeline.upkeep.purging import Purge

if TYPE_CHECKING:
    import networkx
    import polars

_NAMES = """
SELECT table_name FROM information_schema.tables
WHERE table_catalog = 'published' AND table_schema = 'main' ORDER BY table_name
"""
_NODES = "SELECT * FROM entities ORDER BY human_readable_id"
_EDGES = "SELECT * FROM relationships ORDER BY human_readable_id"
_DRAWN = 400
"""How many entities a notebook shows of a graph."""


@dataclass(frozen=True)
class Update:
    """The result of an update.

    ``changes`` counts the files by action (add, change, remove, rename) in the batches that were
    taken in; ``release`` is what is published now, ``is_new`` whether this update made it,
    ``counts`` what it holds; ``fetched`` what came of fetching pages, where a source was an
    address: ``fetched.problems`` says of which none came, and why.
    """

    batches: Sequence[str]
    changes: Mapping[str, int]
    release: str
    is_new: bool
    counts: Mapping[str, int]
    fetched: Fetched | None = None

    def __repr__(self) -> str:
        release = f"new release {self.release}" if self.is_new else f"still release {self.release}"
        holds = ", ".join(f"{n:,} {name}" for name, n in self.counts.items())
        return showing.two_lines(f"Update: {self._changes}, {release}", holds)

    def _repr_html_(self) -> str:
        return showing.block(
            showing.heading(f"{self._changes}; {'new' if self.is_new else 'same'} release"),
            showing.paragraph(self.release, is_small=True),
            showing.table(("", "in the index"), self.counts.items()),
            showing.paragraph(f"Pages that did not come: {len(problems):,}; see fetched.problems")
            if (problems := self.fetched.problems if self.fetched else {})
            else "",
        )

    @property
    def _changes(self) -> str:
        return changed_files(self.changes) or "no file changed"


@dataclass(frozen=True)
class Restoration(Restored):
    """A home folder that was restored, and what a check of it has found."""

    checked: Checked


class Index(Workspace):
    """One index: documents in, a knowledge graph out, and questions answered.

    ``Index("home")`` is the index in that folder, with the settings of its ``graphrag.toml``, or
    else those that :func:`load_settings` finds; ``Index(settings)`` and ``Index("home", settings)``
    ask neither file nor environment, and a folder that is named beats that of the settings.

    The settings are those of its making, whatever is edited meanwhile. Several indexes may be used
    in one process, each from any thread. Several ``Index`` of one home, and the command line, wait
    for each other while they write; readers never wait.
    """

    def __init__(
        self, home: str | Path | Settings | None = None, settings: Settings | None = None
    ) -> None:
        if isinstance(home, Settings):
            home, settings = None, home
        if not isinstance(home, str | Path | None):
            raise InputError(f"home = {home!r}: must be the path of a folder")
        if not isinstance(settings, Settings | None):
            raise InputError(f"settings = {settings!r}: must be Settings(...)")
        if home is None:
            super().__init__(settings or load_settings())
        elif settings is None:
            super().__init__(load_settings(home=str(home)))
        else:
            super().__init__(settings.model_copy(update={"home": str(home)}))

    def __repr__(self) -> str:
        release = published_release(self.home)
        state = f"release {release}" if release else "nothing published yet: call update(folder)"
        return showing.two_lines(f"Index: {self.home}", state)

    def _repr_html_(self) -> str:
        try:
            shown = self._picture()
        except GraphRAGError as error:
            shown = showing.paragraph(str(error))
        return showing.block(showing.heading(str(self.home)), shown)

    def _picture(self) -> str:
        """Return the most central part of the published graph as an image."""
        with connect_published(release_file(self._followed_home)) as con:
            graph = pictures.read_graph(con, _DRAWN)
            picture = pictures.graph_picture(graph, pictures.read_names(con, 0))
        if picture is None:
            return showing.paragraph("The graph has no communities yet.")
        return showing.picture(picture.draw(), picture.caption)

    def plan(self, folder: str | Path, *, recluster: bool = False, verify: bool = False) -> Plan:
        """Return what :meth:`update` would do and cost; nothing is spent.

        Nothing is written but the pages of an address, which are fetched as for an update.
        """
        if verify:
            self.batches.verify()
        return plan_run(self, self._source(folder)[0], recluster=recluster)

    def update(
        self,
        folder: str | Path,
        *,
        recluster: bool = False,
        remove_all: bool = False,
        settle_seconds: float = 0,
        verify: bool = False,
    ) -> Update:
        """Index what was added, changed or removed in a folder, and publish a new release.

        In place of a folder it takes the address of a web page or sitemap (a str that starts with
        http:// or https://), and fetches what is new of it, with the settings ``input.urls_*``.

        These are the stages of ``graphrag-pipeline index``, without Dagster. It waits until no
        other run works on this index. A model is paid without being asked for:
        ``llm.max_cost`` limits it, :meth:`plan` estimates it. What was finished before an error is
        kept, and the next update goes on from there.

        ``recluster`` clusters the whole graph anew instead of repairing its communities; files
        changed in the last ``settle_seconds`` are left for the next update; ``verify`` reads all
        files once more, also those that look as they did. Raises RemovalError, and does nothing,
        where most documents of the folder are gone, unless ``remove_all``; ConfigError, and reads
        nothing, where documents wait for a model that has no key; CheckFailedError, and publishes
        nothing, where what must hold of the tables does not; InputError where the folder cannot be
        read, or no page of an address could be fetched.
        """
        documents, fetched = self._source(folder)
        if verify:
            self.batches.verify()
        if learn_of_model(self.settings):
            self.settings = Settings.exactly(self.settings.as_set())
        check_key(self, documents)
        with self.turn():
            cut_batches(self, documents, settle_seconds=settle_seconds, remove_all=remove_all)
            if recluster:
                ask_for_clustering(self.store)
            return replace(self._run(), fetched=fetched)

    def import_graphrag(self, folder: str | Path) -> ImportResult:
        """Bring in an index made by microsoft/graphrag, and publish it; nothing is paid again."""
        with self.turn():
            result = import_graphrag(_folder(folder), self)
            self._run()
            return result

    @property
    def _followed_home(self) -> Path:
        """The home, with what is published of a shared index brought into it."""
        sharing_of(self.settings).follow()
        return self.home

    def _source(self, source: object) -> tuple[Path, Fetched | None]:
        """Return the folder of a source, and what was fetched into it now."""
        if not isinstance(source, str) or not is_address(source):
            return _folder(source), None
        fetched = fetch_sites(self.home, (source,), self.settings)
        return snapshot_folder(self.home), fetched

    def _run(self) -> Update:
        batches, release = run_stages(self)
        return Update(
            batches=batches,
            changes=changes_in(self.batches, batches),
            release=release.id,
            is_new=release.created,
            counts=release.counts,
        )

    def status(self) -> dict[str, Any]:
        """Return what is indexed, pending and quarantined, and what is published."""
        return summarise(self)

    def releases(self) -> list[KeptRelease]:
        """Return the releases that are kept, the newest first."""
        return list_releases(self._followed_home)

    def diff(self, before: str | None = None, after: str | None = None) -> ReleaseDiff:
        """Return what entered, left and changed between two releases.

        By default from the one before the published to the published one.
        """
        return diff_releases(self._followed_home, before, after)

    def rollback(self, release: str | None = None) -> Rollback:
        """Publish an older release again, by default the one before."""
        return rollback(self, release)

    def forget(self, *documents: str | Path, dry_run: bool = False) -> Purge:
        """Remove documents from the index, and every trace of them from the disk, for good.

        A document is named by the path of its file, by uri or by id; a folder names all that lay in
        it. Delete the files first, or have them ignored. Documents that an update has removed
        before can be named too. What rested on them is written again, by a model where one is
        configured, which is paid; then everything goes that :meth:`purge` removes. ``dry_run``
        changes nothing and returns what would go.

        It waits until no other run works on this index. One that was stopped is completed by the
        next. Sizes are in bytes, costs in US dollars. Raises InputError, and does nothing, for a
        document that is not known, or whose file is still there, where files wait to be indexed,
        and after a rollback; and what :meth:`update` raises.
        """
        if not documents:
            raise InputError("name the documents to forget; purge() removes what is left of others")
        return self._purge([str(document) for document in documents], dry_run)

    def purge(self, *, dry_run: bool = False) -> Purge:
        """Take everything off the disk that the index does not hold, for good.

        That is what is left of documents that were removed or changed: older releases and their
        vectors, kept answers of models that the index does not rest on, evaluations of what is
        gone, names in manifests, the history of Dagster's runs in this home. No file of yours is
        touched. Readers must open the new release. ``dry_run``, units and errors are those of
        :meth:`forget`.
        """
        return self._purge((), dry_run)

    def _purge(self, documents: Sequence[str], dry_run: bool) -> Purge:
        return (purging.plan_purge if dry_run else purging.purge)(self, documents)

    def check(self, *, repair: bool = False) -> Checked:
        """Verify index, vectors, releases, manifests and answers against each other.

        ``problems`` of the result is empty where all is well; each has a ``line`` that says where,
        what, how many, and what to do. Nothing is changed, and runs may go on, unless ``repair``:
        that waits for its turn and makes again what can be made without paying a model. What it
        replaces stays beside its place, with ``damaged`` in its name. Raises StorageError where the
        home cannot be written in, to repair; what is damaged is a problem and no error.
        """
        return (checking.repair if repair else checking.check)(self)

    def cache(self, *, vacuum: bool = False) -> CacheUse:
        """Return what the cache of paid answers takes, by stage, purpose and model.

        ``vacuum`` first drops what is above ``llm.cache_gb``, used least recently, and gives free
        space back to the disk: what is needed again is bought again. Nothing that was used today or
        yesterday goes, and without that setting nothing at all. Sizes are in bytes. Raises
        StorageError, and nothing is lost, where there is no room to do so.
        """
        return (cache_limit.vacuum if vacuum else cache_limit.measure_use)(self.settings)

    def backup(self, archive: str | Path, *, with_history: bool = False) -> Backup:
        """Write index, releases, vectors, manifests and paid answers to one archive (tar, zstd).

        It may be made while a run goes on, and is consistent. ``with_history`` takes in Dagster's
        runs. Documents and keys are not in it. Sizes are in bytes. Raises InputError where there is
        no index, or a file of this name already, and StorageError where the disk is full or may not
        be written to: then nothing is left behind.
        """
        return backups.back_up(self, Path(archive), with_history=with_history)

    @classmethod
    def restore(
        cls, archive: str | Path, home: str | Path, settings: Settings | None = None
    ) -> Restoration:
        """Restore an archive to a folder that is empty or not there, and check what was restored.

        Each file is compared with its SHA-256; the folder is there whole or not at all. It is
        checked as ``Index(home, settings)``, which sees the ``graphrag.toml`` that was restored.
        Sizes are in bytes. Raises InputError where the folder is not empty or the file is no
        backup, and StorageError for one that is damaged, or where there is no room.
        """
        place = Path(os.path.abspath(Path(home).expanduser()))
        mode = (settings or load_settings(home=str(place))).home_mode
        restored = backups.restore(Path(archive), place, int(mode, 8))
        return Restoration(**vars(restored), checked=cls(place, settings).check())

    def sql(
        self, statement: str, release: str | None = None
    ) -> tuple[list[str], list[tuple[object, ...]]]:
        """Run one SQL query on what is published; return column names and rows."""
        return query_published(self._followed_home, statement, release)

    def export(
        self,
        name: str,
        output: str | Path | None = None,
        *,
        release: str | None = None,
        tables: Sequence[str] = (),
        raw: bool = False,
        force: bool = False,
    ) -> Export:
        """Write a release in a format of another tool; see :func:`export_release`."""
        target = None if output is None else Path(output)
        return export_release(
            self._followed_home, name, target, release=release, tables=tables, raw=raw, force=force,
            settings=self.settings,
        )  # fmt: skip

    def open(self, release: str | None = None) -> QueryEngine:
        """Open a release (default: the published one) for many questions; close it when done.

        >>> with Index("home").open() as engine:  # doctest: +SKIP
        ...     print(engine.answer("Who visits Scrooge?").text)
        """
        if not isinstance(self, Index):
            raise InputError(f"call open on an index: Index({self!r}).open()")
        return QueryEngine(self.home, release=release, settings=self.settings)

    def view(self, labels: Collection[str]) -> View:
        """Return what somebody with these labels may see of this index, as ``[access]`` says.

        >>> Index("home").view(["hr", "public"]).answer("Who leads Tyrell?").text  # doctest: +SKIP
        """
        return View(self, labels)

    def answer(
        self, question: str, method: str = "", *, release: str | None = None, **options: Any
    ) -> Answer:
        """Return an answer with its citations; see :meth:`QueryEngine.answer` for the options."""
        with self.open(release) as engine:
            return engine.answer(question, method, **options)

    def retrieve(
        self, question: str, method: str = "", *, release: str | None = None, **options: Any
    ) -> Retrieval:
        """Return the evidence alone; see :meth:`QueryEngine.retrieve` for the options."""
        with self.open(release) as engine:
            return engine.retrieve(question, method, **options)

    def to_polars(self, table: str, *, release: str | None = None) -> polars.DataFrame:
        """Return a table or view of a release. Raises InputError for a name that is none."""
        with connect_published(release_file(self._followed_home, release)) as con:
            names = [name for (name,) in con.execute(_NAMES).fetchall()]
            if table not in names:
                raise InputError(f"there is no table {table}: there are {', '.join(names)}")
            return con.table(f'"{table}"').pl()

    def to_pandas(self, table: str, *, release: str | None = None) -> Any:
        """Return :meth:`to_polars` as pandas has it. Raises ConfigError where there is none."""
        rows = self.to_polars(table, release=release)
        try:
            return rows.to_pandas()
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"{error.name} is not installed: pip install {error.name}, or use to_polars"
            ) from None

    def to_networkx(self, *, release: str | None = None) -> networkx.Graph:
        """Return the graph: entities by their titles, linked by relationships with their weights.

        Nodes and edges have the columns of ``entities`` and ``relationships`` as attributes.
        """
        import networkx

        graph = networkx.Graph()
        with connect_published(release_file(self._followed_home, release)) as con:
            nodes, edges = con.sql(_NODES).pl(), con.sql(_EDGES).pl()
        graph.add_nodes_from((row.pop("title"), row) for row in nodes.iter_rows(named=True))
        graph.add_edges_from(
            (row.pop("source"), row.pop("target"), row) for row in edges.iter_rows(named=True)
        )
        return graph


class View:
    """An index as somebody with some labels may see it: questions, and nothing that shows more.

    See :meth:`QueryEngine.view` for what is shown and for errors.
    """

    def __init__(self, index: Index, labels: Collection[str]) -> None:
        self._index = index
        self._labels = labels

    def open(self) -> QueryEngine:
        """Open the published release for many questions; close it when done."""
        return QueryEngine(self._index.home, labels=self._labels, settings=self._index.settings)

    def answer(self, question: str, method: str = "", **options: Any) -> Answer:
        """Return an answer with its citations; see :meth:`QueryEngine.answer` for the options."""
        with self.open() as engine:
            return engine.answer(question, method, **options)

    def retrieve(self, question: str, method: str = "", **options: Any) -> Retrieval:
        """Return the evidence alone; see :meth:`QueryEngine.retrieve` for the options."""
        with self.open() as engine:
            return engine.retrieve(question, method, **options)

    def __getattr__(self, name: str) -> Any:
        """Refuse what an index can do besides: SQL, exports and the like show all documents."""
        if name.startswith("_") or not hasattr(Index, name):
            raise AttributeError(f"a view has no {name}")
        raise AccessError(f"{name} would show more than the labels allow: a view does not have it")


def _folder(folder: object) -> Path:
    if isinstance(folder, str | Path) and str(folder):
        return Path(folder)
    raise InputError(f"{folder!r} is not a folder: name one that holds your documents")
