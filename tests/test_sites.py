"""Web pages become documents; their servers are asked politely, and nobody else's are."""

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster_helpers import Pipeline, failed_checks, metadata_of
from typer.testing import CliRunner

from graphrag_pipeline import Index, InputError, NothingPublishedError
from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.settings import BatchSettings, Settings
from graphrag_pipeline.index import Update
from graphrag_pipeline.ingest.documents import read_changes
from graphrag_pipeline.ingest.fetching import (
    AGENT,
    Fetcher,
    FetchError,
    FetchOptions,
    canonical,
    is_public,
)
from graphrag_pipeline.ingest.sites import Fetched, fetch_sites, parse_sitemap, unpacked
from graphrag_pipeline.store.batches import BatchLog
from graphrag_pipeline.store.snapshots import SITES
from graphrag_pipeline.store.sources import Source, apply_changes
from graphrag_pipeline.watching import watch

LOCAL = FetchOptions(max_bytes=100_000, seconds=5, seconds_between=0, private=True)


@dataclass
class Page:
    body: bytes = b""
    kind: str = "text/html"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    before: Callable[[], None] = lambda: None


class Site(ThreadingHTTPServer):
    """A server of some pages, which knows conditional requests and counts what it is asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages: dict[str, Page] = {}
        self.asked: list[tuple[str, dict[str, str], int]] = []
        self.at = f"http://127.0.0.1:{self.server_port}"

    def sitemap(self, *paths: str) -> bytes:
        places = "".join(f"<url><loc>{self.at}{path}</loc></url>" for path in paths)
        return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{places}</urlset>'.encode()


class Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path, Page(b"no", status=404))
        page.before()
        etag = f'"{hash(page.body)}"'
        is_known = page.status == 200 and self.headers.get("If-None-Match") == etag
        status = 304 if is_known else page.status
        self.server.asked.append((self.path, dict(self.headers), status))
        self.send_response(status)
        for name, value in {"ETag": etag, "Content-Type": page.kind, **page.headers}.items():
            self.send_header(name, value)
        body = b"" if is_known else page.body
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def settings(**values: object) -> Settings:
    given = {"urls_private": True, "urls_seconds": 0.0, **values}
    return Settings.model_validate({"input": given})


def fetch(home: Path, *addresses: str, **values: object) -> Fetched:
    return fetch_sites(home, addresses, settings(**values))


def cut(home: Path) -> dict[str, str]:
    """Return the changes of the snapshot since the last look: actions by address."""
    limits = BatchSettings(max_removed_share=1.0)
    batches = BatchLog(home).cut(home / "web", limits, max_bytes=100_000)
    return {change.uri: change.action for batch in batches for change in batch.changes}


def why(fetcher: Fetcher, address: str) -> str:
    with pytest.raises(FetchError) as error:
        fetcher.get(address)
    return str(error.value)


def test_pages_of_a_sitemap_are_documents_named_by_their_address(site, tmp_path):
    home = tmp_path / ".graphrag"
    index = f"<sitemapindex><sitemap><loc>{site.at}/s.xml.gz</loc></sitemap></sitemapindex>"
    site.pages = {
        "/sitemap.xml": Page(index.encode(), "application/xml"),
        "/s.xml.gz": Page(
            gzip.compress(site.sitemap("/a", "/b/?x=1", "/n.md")), "application/gzip"
        ),
        "/a": Page("<title>Ä</title><p>One".encode("latin-1"), "text/html; charset=latin-1"),
        "/b/?x=1": Page(b"<p>Two"),
        "/n.md": Page(b"# Three", "text/plain"),
    }
    assert fetch(home, f"{site.at}/sitemap.xml").new == 3
    log = BatchLog(home)
    changes = log.look(home / "web", max_bytes=100_000).changes
    sources: dict[str, Source] = {}
    apply_changes(sources, changes, batch="", root=SITES)
    read = read_changes(changes, sources, log, settings())
    rows = read.documents.select("uri", "title", "text").iter_rows()
    documents = {uri: (title, text) for uri, title, text in rows}
    assert documents == {
        f"{site.at}/a": ("Ä", "One"),
        f"{site.at}/b/?x=1": ("B", "Two"),
        f"{site.at}/n.md": ("Three", "# Three"),
    }
    assert all(AGENT in headers["User-Agent"] for _, headers, _ in site.asked)


def test_only_what_changed_is_sent_again_and_only_what_is_gone_is_removed(site, tmp_path):
    home, start = tmp_path / ".graphrag", f"{site.at}/sitemap.xml"
    site.pages = {
        "/sitemap.xml": Page(site.sitemap("/a", "/b", "/c"), "text/xml"),
        **{f"/{name}": Page(f"<p>{name}".encode()) for name in "abc"},
    }
    fetch(home, start)
    assert set(cut(home).values()) == {"add"}
    fetch(home, start)
    assert [status for path, _, status in site.asked if path == "/a"] == [200, 304]
    assert cut(home) == {}

    site.pages["/sitemap.xml"].body = site.sitemap("/a")
    site.pages["/a"].status = 500
    site.pages["/b"].body = b"<p>B"
    site.pages["/c"].status = 410
    fetched = fetch(home, start)
    assert (fetched.changed, fetched.gone) == (1, 1)
    assert "500" in fetched.problems[f"{site.at}/a"]
    assert cut(home) == {f"{site.at}/b": "change", f"{site.at}/c": "remove"}


def test_a_failing_server_or_sitemap_removes_nothing_and_is_left_alone(site, tmp_path):
    home, start = tmp_path / ".graphrag", f"{site.at}/sitemap.xml"
    names = [f"/{n}" for n in range(6)]
    site.pages = {"/sitemap.xml": Page(site.sitemap(*names), "text/xml")}
    site.pages |= {name: Page(b"<p>x") for name in names}
    fetch(home, start)
    cut(home)
    site.asked.clear()
    for name in names:
        site.pages[name].status = 502
    assert len(fetch(home, start).problems) == 6
    assert sum(path in names for path, _, _ in site.asked) == 3
    site.pages["/sitemap.xml"] = Page(b"<urlset><url>", "text/xml")
    assert start in fetch(home, start).problems
    assert cut(home) == {}


def test_robots_txt_is_obeyed_and_without_it_nothing_is_asked_of_a_failing_server(site):
    site.pages = {"/robots.txt": Page(b"User-agent: *\nDisallow: /a*b\n"), "/ok": Page(b"x")}
    with Fetcher(LOCAL) as fetcher:
        assert fetcher.get(f"{site.at}/ok").status == 200
        assert "robots.txt" in why(fetcher, f"{site.at}/a/b")
    site.pages["/robots.txt"].status = 503
    with Fetcher(LOCAL) as fetcher:
        assert "robots.txt" in why(fetcher, f"{site.at}/ok")


def test_a_server_is_asked_no_more_often_than_it_wants(site):
    site.pages = {"/robots.txt": Page(b"User-agent: *\nCrawl-delay: 0.2\n"), "/": Page(b"x")}
    with Fetcher(LOCAL) as fetcher:
        start = time.monotonic()
        for _ in range(3):
            fetcher.get(f"{site.at}/")
        assert time.monotonic() - start >= 0.4


def test_a_server_that_wants_hours_between_two_requests_is_given_half_a_minute(site, monkeypatch):
    site.pages = {"/robots.txt": Page(b"User-agent: *\nCrawl-delay: 7200\n"), "/": Page(b"x")}
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    with Fetcher(LOCAL) as fetcher:
        for _ in range(2):
            fetcher.get(f"{site.at}/")
    assert 25 < max(waits) <= 30


def test_private_addresses_are_refused_whatever_name_leads_there(site, monkeypatch):
    public = FetchOptions(max_bytes=1_000, seconds_between=0)
    with Fetcher(public) as fetcher:
        assert "not a public address" in why(fetcher, f"{site.at}/")
    real = socket.getaddrinfo

    def rebound(host: str, port: int, *args: Any, **kwargs: Any) -> object:
        return real("127.0.0.1" if host == "public.example" else host, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", rebound)
    with Fetcher(public) as fetcher:
        assert "not a public address" in why(fetcher, f"http://public.example:{site.server_port}/")
    assert site.asked == []


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "192.168.0.1",
        "172.16.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "fe80::1%eth0",
        "fd00::1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::1",
        "255.255.255.255",
    ],
)
def test_addresses_of_no_public_network_are_known(address):
    assert not is_public(address)


def test_redirections_stay_within_the_host_and_end(site):
    site.pages = {
        "/one": Page(status=301, headers={"Location": "/two"}),
        "/two": Page(b"x"),
        "/loop": Page(status=302, headers={"Location": "/loop"}),
        "/out": Page(status=302, headers={"Location": "http://localhost:1/"}),
        "/file": Page(status=302, headers={"Location": "file:///etc/passwd"}),
    }
    with Fetcher(LOCAL) as fetcher:
        assert fetcher.get(f"{site.at}/one").body == b"x"
        assert "redirections" in why(fetcher, f"{site.at}/loop")
        assert "urls_other_hosts" in why(fetcher, f"{site.at}/out")
        assert "not a web address" in why(fetcher, f"{site.at}/file")


def test_answers_are_bounded_in_size_unpacked_and_in_time(site):
    packed = {"Content-Encoding": "gzip"}
    site.pages = {
        "/large": Page(b"x" * 100_001),
        "/bomb": Page(gzip.compress(bytes(10_000_000)), headers=packed),
        "/packed": Page(gzip.compress(b"words"), headers=packed),
        "/slow": Page(before=lambda: time.sleep(1)),
    }
    with Fetcher(LOCAL) as fetcher:
        assert fetcher.get(f"{site.at}/packed").body == b"words"
        assert "larger" in why(fetcher, f"{site.at}/large")
        assert "larger" in why(fetcher, f"{site.at}/bomb")
    hasty = FetchOptions(max_bytes=1_000, seconds=0.2, seconds_between=0, private=True)
    with Fetcher(hasty) as fetcher:
        assert "did not answer" in why(fetcher, f"{site.at}/slow")


def test_pages_of_other_hosts_kinds_and_beyond_the_limit_are_left(site, tmp_path):
    other = b"<url><loc>http://other.example/</loc></url></urlset>"
    listed = site.sitemap("/a", "/b", "/image").replace(b"</urlset>", other)
    site.pages = {
        "/sitemap.xml": Page(listed, "text/xml"),
        "/image": Page(b"x", "image/png"),
        **{name: Page(b"<p>x") for name in ("/a", "/b")},
    }
    fetched = fetch(tmp_path, f"{site.at}/sitemap.xml", urls_most=1)
    assert fetched.new == 1
    assert set(fetched.problems) == {f"{site.at}/b", f"{site.at}/image"}
    fetched = fetch(tmp_path, f"{site.at}/sitemap.xml")
    assert fetched.new == 1
    assert "image/png" in fetched.problems[f"{site.at}/image"]


def test_a_folder_and_what_was_fetched_do_not_remove_each_other(site, tmp_path):
    home = tmp_path / ".graphrag"
    (tmp_path / "a.txt").write_text("words")
    site.pages = {"/a": Page(b"<p>x")}
    fetch(home, f"{site.at}/a")
    log, limits = BatchLog(home), BatchSettings(max_removed_share=1.0)
    for _ in range(2):
        cut(home)
        log.cut(tmp_path, limits, max_bytes=1_000)
    assert set(log.sources()) == {f"{site.at}/a", "a.txt"}


def test_an_index_takes_an_address_as_it_takes_a_folder(site, tmp_path):
    start = f"{site.at}/sitemap.xml"
    site.pages = {
        "/sitemap.xml": Page(site.sitemap("/a", "/broken"), "text/xml"),
        "/a": Page(b"<p>Ada met Bob in Paris."),
        "/broken": Page(status=500),
    }
    index = Index(tmp_path / "home", settings())
    assert index.plan(start).changes["add"] == 1
    update = index.update(start)
    assert update.fetched is not None
    assert list(update.fetched.problems) == [f"{site.at}/broken"]
    assert [status for path, _, status in site.asked if path == "/a"] == [200, 304]
    assert index.to_polars("documents")["uri"].to_list() == [f"{site.at}/a"]


def test_where_no_page_comes_an_index_says_why_and_publishes_nothing(site, tmp_path):
    index = Index(tmp_path / "home", settings())
    site.pages = {"/broken": Page(status=500)}
    with pytest.raises(InputError, match=f"no page could be fetched: {site.at}/broken.*500"):
        index.update(f"{site.at}/broken")
    with pytest.raises(InputError, match="not there"):
        index.plan(f"{site.at}/missing")
    closed = Index(tmp_path / "home", settings(urls_private=False))
    with pytest.raises(InputError, match="not a public address"):
        closed.update(f"{site.at}/a")
    with pytest.raises(NothingPublishedError):
        index.releases()


def test_plan_fetches_what_index_would_and_cuts_no_batch(site, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    site.pages = {"/a": Page(b"<p>One"), "/b": Page(b"<p>Two")}
    monkeypatch.setenv("GRAPHRAG_INPUT__URLS_PRIVATE", "true")
    monkeypatch.setenv("GRAPHRAG_INPUT__URLS_SECONDS", "0")
    monkeypatch.setenv("GRAPHRAG_INPUT__URLS", f'["{site.at}/b"]')
    named = CliRunner().invoke(app, ["plan", f"{site.at}/a"])
    assert "Fetched 1 new" in named.stderr
    assert "1 to read" in named.stdout
    assert "2 to read" in CliRunner().invoke(app, ["plan"]).stdout
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "c.txt").write_text("Three")
    both = CliRunner().invoke(app, ["plan"])
    assert "1 to read" in both.stdout
    (told,) = (line for line in both.stderr.splitlines() if "planned apart" in line)
    apart = CliRunner().invoke(app, ["plan", told.rpartition(" ")[2]])
    assert "2 to read" in apart.stdout
    assert BatchLog(tmp_path / ".graphrag").batches() == []


@pytest.fixture
def pipeline(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """Return a pipeline of an inbox and of the page /a of the site."""
    monkeypatch.setenv("GRAPHRAG_INPUT__URLS_PRIVATE", "true")
    monkeypatch.setenv("GRAPHRAG_INPUT__URLS_SECONDS", "0")
    monkeypatch.setenv("GRAPHRAG_INPUT__URLS", f'["{site.at}/a"]')
    monkeypatch.setenv("GRAPHRAG_INPUT__SETTLE_SECONDS", "0")
    return Pipeline(tmp_path, monkeypatch)


def tick(
    pipeline: Pipeline, instance: dg.DagsterInstance, name: str, cursor: str | None = None
) -> dg.SensorResult | dg.SkipReason:
    sensor: Any = next(each for each in pipeline.defs.sensors or () if each.name == name)
    with dg.build_sensor_context(instance=instance, cursor=cursor) as context:
        return sensor(context)


def test_without_addresses_dagster_has_nothing_that_fetches(tmp_path, monkeypatch):
    pipeline = Pipeline(tmp_path, monkeypatch)
    assert "addresses_sensor" not in {sensor.name for sensor in pipeline.defs.sensors or ()}
    assert dg.AssetKey("web_pages") not in pipeline.defs.resolve_asset_graph().get_all_asset_keys()


def test_dagster_fetches_in_a_run_of_its_own_and_the_inbox_takes_what_came(site, pipeline):
    beside_others = {"graphrag/beside_others": "true"}
    site.pages = {"/a": Page(b"<p>Ada met Bob in Paris.")}
    (pipeline.inbox / "b.txt").write_text("Bob wrote to Ada.")
    with dg.DagsterInstance.ephemeral() as instance:
        asked = tick(pipeline, instance, "addresses_sensor")
        assert isinstance(asked, dg.SensorResult)
        assert len(asked.run_requests or ()) == 1
        with pipeline.workspace.turn():  # it needs none of its own
            first = pipeline.run("fetch_addresses", instance, beside_others)
        assert metadata_of(first)[("web_pages", None)]["new"] == 1
        waits = tick(pipeline, instance, "addresses_sensor", asked.cursor)
        assert isinstance(waits, dg.SkipReason)
        assert "fetched again at" in str(waits.skip_message)
        assert isinstance(tick(pipeline, instance, "inbox_sensor"), dg.SensorResult)
        assert set(pipeline.log.sources()) == {f"{site.at}/a", "documents/b.txt"}
        site.pages = {"/a": Page(status=500)}
        again = pipeline.run("fetch_addresses", instance, beside_others)
        assert again.success
        assert failed_checks(again) == {"web_pages:every_page_answered"}
        assert "500" in metadata_of(again)[("web_pages", None)]["not_fetched"]
        assert f"{site.at}/a" in pipeline.log.sources()


def test_the_sensor_asks_in_its_time_and_for_other_addresses_and_once_at_a_time(site, pipeline):
    now = time.time()
    with dg.DagsterInstance.ephemeral() as instance:
        first = tick(pipeline, instance, "addresses_sensor")
        assert isinstance(first, dg.SensorResult)
        wanted = str(first.cursor).split()[0]
        for cursor in (f"{wanted} {now - 3601:.0f}", f"others {now:.0f}"):
            due = tick(pipeline, instance, "addresses_sensor", cursor)
            assert isinstance(due, dg.SensorResult)
        job = pipeline.defs.resolve_job_def("fetch_addresses")
        instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTING)
        (pipeline.home / "web").mkdir()
        (pipeline.home / "web" / "http:!!a.b!c@.html").write_text("<p>half of a fetch")
        under_way = tick(pipeline, instance, "addresses_sensor")
        assert "under way" in str(getattr(under_way, "skip_message", ""))
        tick(pipeline, instance, "inbox_sensor")
    assert pipeline.log.sources() == {}


def test_pages_are_followed_beside_a_folder(site, tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("Ida Brandt sailed the Marigold to Bergen.")
    site.pages = {"/a": Page(b"<p>Ole Moen mended the Marigold.")}
    updates: list[Update] = []
    problems: list[Exception] = []
    stop = threading.Event()

    def changed(update: Update) -> None:
        updates.append(update)
        if update.counts["documents"] == 2:
            site.pages = {"/a": Page(b"<p>Ole Moen mended the Marigold in Oslo.")}
        if update.changes["change"]:
            stop.set()

    late = threading.Timer(60, stop.set)
    late.start()
    quick = settings(poll_seconds=1, settle_seconds=0.0, urls_every_minutes=0.02)
    index = Index(tmp_path / "home", quick)
    watch(
        index,
        folder,
        addresses=[f"{site.at}/a"],
        stop=stop,
        on_update=changed,
        on_problem=problems.append,
    )
    late.cancel()
    assert updates[-1].changes["change"] == 1
    assert problems == []
    assert set(index.to_polars("documents")["uri"]) == {f"{site.at}/a", "docs/a.txt"}


def test_where_no_page_comes_following_says_so_and_publishes_nothing(site, tmp_path):
    stop = threading.Event()
    problems: list[str] = []

    def problem(error: Exception) -> None:
        problems.append(str(error))
        threading.Timer(2.5, stop.set).start()

    watch(
        Index(tmp_path / "home", settings(poll_seconds=1)),
        None,
        addresses=[f"{site.at}/missing"],
        stop=stop,
        on_update=lambda update: pytest.fail(str(update)),
        on_problem=problem,
    )
    assert len(problems) == 1
    assert "no page could be fetched" in problems[0]


def test_a_name_that_is_not_resolved_in_time_is_given_up(monkeypatch):
    release = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait(60))
    hasty = FetchOptions(max_bytes=1_000, lookup_seconds=0.1)
    began = time.monotonic()
    with Fetcher(hasty) as fetcher:
        assert "slow.example was not found in 0.1 seconds" in why(fetcher, "http://slow.example/")
    assert time.monotonic() - began < 30
    release.set()


def test_sitemaps_that_are_bombs_are_refused_and_pages_are_none():
    with pytest.raises(FetchError, match="unpacks"):
        unpacked(gzip.compress(bytes(60_000_000)))
    with pytest.raises(FetchError, match="DOCTYPE"):
        parse_sitemap(b'<!DOCTYPE d [<!ENTITY a "b">]><urlset>&a;</urlset>')
    with pytest.raises(FetchError, match="deep"):
        parse_sitemap(b"<urlset>" + b"<a>" * 100)
    assert parse_sitemap(b"<html><urlset></urlset></html>") is None
    assert parse_sitemap(b"no xml") is None


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("HTTP://Example.org:80#top", "http://example.org/"),
        ("https://bücher.example/ä b", "https://xn--bcher-kva.example/%C3%A4%20b"),
        ("https://example.org/a%20b?x=%C3%A4!", "https://example.org/a%20b?x=%C3%A4%21"),
    ],
)
def test_an_address_has_one_form(written, kept):
    assert canonical(written) == kept
    assert canonical(kept) == kept


@pytest.mark.parametrize("written", ["ftp://a.b/", "http://", "http://u:p@a.b/", "http://[", "a"])
def test_what_is_no_public_web_address_is_refused(written):
    with pytest.raises(FetchError, match="not a web address"):
        canonical(written)
