"""The page of the graph: its data, and what it does in a real browser, from disk, offline."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
from functools import partial

import duckdb
import numpy as np
import pytest
from browser import browser as browser
from browser import complaints_of
from query_fixture import COMMUNITIES, ENTITIES, NOT_A_TABLE, publish
from typer.testing import CliRunner

from graphrag_pipeline.cli.app import app
from graphrag_pipeline.core.addresses import PermanentLinks
from graphrag_pipeline.pages.explorer import write_page
from graphrag_pipeline.pages.explorer.data import page_data
from graphrag_pipeline.pages.explorer.passages import PASSAGES
from graphrag_pipeline.pages.explorer.texts import shared
from graphrag_pipeline.store.index_store import connect_published

HOSTILE = "</script><img src=x onerror=alert(1)>"
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 375, "height": 740}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """An index with a hostile title everywhere a title goes, and characters of two units."""
    home = publish(tmp_path_factory.mktemp("home"))
    with duckdb.connect(str(home / "published.duckdb")) as con:
        hostile = [HOSTILE, NOT_A_TABLE]
        con.execute("UPDATE entities SET title = $1, description = $1 WHERE title = $2", hostile)
        con.execute("UPDATE documents SET title = $1 WHERE title LIKE 'Hostile%'", [HOSTILE])
        con.execute(
            "UPDATE hierarchy_reports SET summary = $1 WHERE title ILIKE '%dream%'", [HOSTILE]
        )
        con.execute("UPDATE relationships SET description = $1 WHERE source = '贾宝玉'", [HOSTILE])
        con.execute("UPDATE chunks SET text = '🎩🎩🎩 ' || text WHERE text LIKE 'Marley was%'")
        con.execute(
            "INSERT INTO entity_aliases SELECT 'x', id, 'Old Ebenezer', title, type, 'rule', 'r', "
            "1, '{}' FROM entities WHERE title = 'Scrooge'"
        )
    return home


@pytest.fixture(scope="module")
def data(home):
    con = connect_published(home / "published.duckdb")
    yield page_data(con)
    con.close()


def test_every_entity_leads_up_through_the_communities_it_is_in(data):
    titles, parent = data["entities"]["title"], data["communities"]["parent"]
    level, size = data["communities"]["level"], data["communities"]["size"]
    assert sorted(titles) == sorted(set(ENTITIES) - {NOT_A_TABLE} | {HOSTILE})
    scrooge = data["entities"]["leaf"][titles.index("Scrooge")]
    path = [scrooge]
    while parent[path[-1]] >= 0:
        path.append(parent[path[-1]])
    assert [level[c] for c in path] == [2, 1, 0]
    assert [size[c] for c in path] == [
        len(COMMUNITIES[name][3]) for name in ("partners", "scrooge", "carol")
    ]


def test_passages_quote_the_text_that_names_the_entity(data):
    passages, excerpts = data["passages"], data["excerpts"]
    titles = data["entities"]["title"]
    quoted = [
        (titles[node], excerpts["text"][excerpt][at : at + n])
        for node, excerpt, at, n in zip(
            *(passages[name] for name in ("node", "excerpt", "marked", "n_marked")), strict=True
        )
    ]
    named = [(title, text) for title, text in quoted if title != HOSTILE]
    assert len(named) > len(ENTITIES)
    assert all(title == text for title, text in named)
    assert max(np.bincount(passages["node"])) <= PASSAGES


def test_what_has_no_room_is_said_to_be_elsewhere(home, data):
    everything = sum(map(len, data["entities"]["description"])) + sum(map(len, data["sentences"]))
    assert not data["origins"]["node"]
    with contextlib.closing(connect_published(home / "published.duckdb")) as con:
        little = page_data(con, n_bytes=2000)
        nothing = page_data(con, n_bytes=0)
    assert {**nothing["release"]} == {**data["release"]}
    for name in ("title", "x", "y", "leaf", "degree"):
        assert nothing["entities"][name] == data["entities"][name]
    told = [text for text in little["entities"]["description"] if text is not None]
    assert 0 < len(told) < len(ENTITIES)
    assert sum(map(len, told)) + sum(map(len, little["sentences"])) < everything
    assert set(nothing["entities"]["description"]) == {None}
    assert set(nothing["relationships"]["sentence"]) == {-1}
    assert set(nothing["communities"]["summary"]) == {None}
    assert (
        nothing["sentences"] == nothing["findings"]["summary"] == nothing["excerpts"]["text"] == []
    )
    # Where it is said of each of them is there.
    with_passages = set(data["passages"]["node"])
    assert set(nothing["origins"]["node"]) == with_passages
    assert set(little["origins"]["node"]) == with_passages - set(little["passages"]["node"])
    starts = zip(nothing["origins"]["document"], nothing["origins"]["start"], strict=True)
    assert all(document >= 0 and start >= 0 for document, start in starts)


def test_the_best_connected_of_every_community_are_told_first(home):
    with contextlib.closing(connect_published(home / "published.duckdb")) as con:
        entities = page_data(con, n_bytes=2000)["entities"]
    told = [v for v, text in enumerate(entities["description"]) if text is not None]
    assert told
    assert max(entities["degree"]) in [entities["degree"][v] for v in told]


def test_more_entities_than_can_be_drawn_leave_out_the_least_connected(home, monkeypatch):
    monkeypatch.setattr("graphrag_pipeline.pages.explorer.data.MOST_ENTITIES", 5)
    monkeypatch.setattr("graphrag_pipeline.pages.explorer.data.MOST_RELATIONSHIPS", 3)
    with contextlib.closing(connect_published(home / "published.duckdb")) as con:
        data = page_data(con)
    assert len(data["entities"]["title"]) == 5
    assert "Scrooge" in data["entities"]["title"]
    assert data["release"]["n_entities"] == len(ENTITIES)
    assert len(data["relationships"]["source"]) <= 3
    assert max(data["relationships"]["source"] + data["relationships"]["target"]) < 5
    assert set(data["entities"]["leaf"]) <= set(range(len(data["communities"]["title"])))


def test_what_is_not_needed_by_one_goes_to_the_others():
    assert shared({"a": 10, "b": 1, "c": 100}, 30) == {"b": 1, "a": 10, "c": 19}
    assert shared({"a": 10, "b": 1}, 30) == {"a": 10, "b": 1}


def test_text_of_documents_is_nowhere_in_the_file_as_it_is(home, tmp_path):
    page = write_page(home, tmp_path / "graph.html").path.read_text("utf-8")
    assert HOSTILE not in page
    assert "Scrooge" not in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)


def test_documents_link_to_the_server_that_the_settings_name(home, tmp_path, monkeypatch):
    con = connect_published(home / "published.duckdb")
    unlinked = page_data(con)
    assert "link" not in unlinked["documents"]
    assert "id" not in unlinked["entities"]
    assert unlinked["links"] == {}
    links = partial(PermanentLinks, "https://graph.example.com", "default")
    data = page_data(con, links=links)
    documents = data["documents"]
    ids = con.execute("SELECT id FROM documents").fetchall()
    assert {*documents["link"]} == {links("r1").of("documents", id) for (id,) in ids}
    for kind in ("entities", "communities"):
        numbers = dict(con.execute(f"SELECT human_readable_id, id FROM {kind}").fetchall())
        assert data[kind]["id"] == [numbers[number] for number in data[kind]["number"]]
        assert data["links"][kind] == tuple(links("r1").of(kind, "_").split("_"))
    con.close()


@pytest.mark.browser
def test_a_passage_leads_to_its_place_on_the_server(browser, home, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    monkeypatch.setenv("GRAPHRAG_SERVER__ADDRESS", "https://graph.example.com")
    with Opened(browser, write_page(home, tmp_path / "graph.html").path, DESKTOP) as page:
        page.evaluate("v => explorer.open('entity', v)", number(page, "Fezziwig"))
        link = panel(page).locator("figcaption a").first.get_attribute("href")
        things = [panel(page).locator("a.address").get_attribute("href")]
        page.evaluate("explorer.open('community', 0)")
        things.append(panel(page).locator("a.address").get_attribute("href"))
        spots = panel(page).locator("figcaption a")
        spans = [spots.nth(n).get_attribute("href") for n in range(spots.count())]
    place = r"\?collection=default&release=r1"
    for kind, thing in zip(("entities", "communities"), things, strict=True):
        assert re.fullmatch(rf"https://graph\.example\.com/{kind}/\w+{place}", thing)
    assert spans
    assert all(re.search(r"&start=\d+&end=\d+$", each) for each in spans)
    assert re.fullmatch(
        r"https://graph\.example\.com/documents/\w+\?collection=default&release=r1"
        r"&start=\d+&end=\d+",
        link,
    )


@pytest.mark.browser
def test_by_keyboard_the_focus_goes_to_what_is_shown(browser, home, tmp_path):
    focused = "[document.activeElement.tagName, document.activeElement.textContent]"
    with Opened(browser, write_page(home, tmp_path / "graph.html").path, DESKTOP) as page:
        assert page.evaluate("document.activeElement === document.body")
        page.keyboard.press("Tab")
        while page.evaluate("document.activeElement.id") != "search":
            page.keyboard.press("Tab")
        page.keyboard.type("Fezziwig")
        page.keyboard.press("Enter")
        page.wait_for_selector("#panel[data-kind=entity]")
        assert page.evaluate(focused) == ["H2", "Fezziwig"]
        while not page.evaluate("document.activeElement.matches('.relationships a')"):
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("#panel h2:not(:text-is('Fezziwig'))")
        assert page.evaluate(focused)[0] == "H2"


def test_the_command_says_what_it_wrote(home, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    done = CliRunner().invoke(app, ["explore", "-o", str(tmp_path / "g.html"), "--json"])
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert told["n_entities"] == len(ENTITIES)
    assert told["n_bytes"] == (tmp_path / "g.html").stat().st_size < 400_000


def test_nothing_published_is_exit_code_3_and_a_folder_is_no_page(home, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_HOME", str(tmp_path / "new"))
    assert CliRunner().invoke(app, ["explore", "-o", str(tmp_path / "g.html")]).exit_code == 3
    monkeypatch.setenv("GRAPHRAG_HOME", str(home))
    assert CliRunner().invoke(app, ["explore", "-o", str(tmp_path)]).exit_code == 2
    assert list(tmp_path.glob("*.html")) == []


# A point of a community's name that has no entity under it.
BARE_NAME = """() => {
    const { labels, index } = explorer.picture;
    const nodes = index.entities.x.map((_, v) => explorer.picture.placer()(v));
    for (const { left, top, wide, high, community } of labels.drawn) {
        if (community === -1) continue;
        for (let x = left + 2; x < left + wide; x += 4) {
            const y = top + high / 2;
            if (nodes.every(([u, v]) => Math.hypot(u - x, v - y) > 24)) return { x, y, community };
        }
    }
}"""


def until(page, expression):
    """Wait for an expression; Playwright's own waiting evaluates text, which the page forbids."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {expression}")


def settled(page, expression):
    """Return what an expression gives once it has given the same for a while."""
    seen = [page.evaluate(expression)]
    while len(seen) < 4 or any(value != seen[-1] for value in seen[-4:]):
        assert len(seen) < 100, f"never settles: {expression}"
        page.wait_for_timeout(150)
        seen.append(page.evaluate(expression))
    return seen[-1]


class Opened:
    """A page in the browser, and whatever it complained of or asked of a network."""

    def __init__(self, browser, file, size, scheme="light"):
        self.context = browser.new_context(viewport=size, color_scheme=scheme)
        self.page = self.context.new_page()
        self.troubles = complaints_of(self.page)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", lambda dialog: self.troubles.append(dialog.message))
        self.page.on("request", lambda r: r.url.startswith("file:") or self.troubles.append(r.url))
        self.page.goto(file.as_uri())
        until(self.page, "'explorer' in window")

    def __enter__(self):
        return self.page

    def __exit__(self, *_):
        self.context.close()
        assert self.troubles == []


@pytest.fixture(scope="module")
def file(home):
    return write_page(home, home / "graph.html").path


def panel(page):
    return page.locator("#panel")


def wait_for_heading(page, text):
    until(page, f"document.querySelector('#panel h2').textContent === {json.dumps(text)}")


def number(page, title):
    return page.evaluate("t => explorer.index.entities.title.indexOf(t)", title)


@pytest.mark.browser
def test_the_graph_is_drawn_in_the_colours_of_its_communities(browser, file):
    from PIL import Image

    with Opened(browser, file, DESKTOP) as page:
        assert "14 entities · 11 relationships" in panel(page).inner_text()
        page.wait_for_timeout(600)
        screenshot = Image.open(io.BytesIO(page.locator("#canvas").screenshot())).convert("RGB")
        seen = {
            "#" + bytes(c).hex() for c in np.unique(np.asarray(screenshot).reshape(-1, 3), axis=0)
        }
        colours = page.evaluate("[...new Set(explorer.picture.colours)]")
        assert len(colours) == 4
        assert set(colours) <= seen


@pytest.mark.browser
def test_search_by_keyboard_finds_titles_aliases_and_communities(browser, file):
    with Opened(browser, file, DESKTOP) as page:
        page.keyboard.press("/")
        page.keyboard.type("irene")
        page.keyboard.press("Enter")
        wait_for_heading(page, "Irène Joliot-Curie")
        page.fill("#search", "old eben")
        page.locator("#found li").first.click()
        wait_for_heading(page, "Scrooge")
        assert "Also: Old Ebenezer" in panel(page).inner_text()
        page.fill("#search", "qqq")
        assert "Nothing" in page.locator("#found").inner_text()
        page.fill("#search", "marley")
        dots = page.locator("#found li", has_text="community of").locator(".dot")
        colours = dots.evaluate_all("dots => dots.map(dot => dot.style.background)")
        assert len(colours) > 1
        assert "var(--alone)" not in colours


@pytest.mark.browser
def test_a_click_on_an_entity_shows_what_is_known_and_where_it_is_said(browser, file):
    with Opened(browser, file, DESKTOP) as page:
        page.wait_for_timeout(500)
        scrooge = number(page, "Scrooge")
        x, y = page.evaluate("v => explorer.picture.placer()(v)", scrooge)
        box = page.locator("#canvas").bounding_box()
        page.mouse.click(box["x"] + x, box["y"] + y)
        until(page, "location.hash.startsWith('#entity=')")
        text = panel(page).inner_text()
        wait_for_heading(page, "Scrooge")
        for known in ("person", "4 neighbours", "Relationships (4)", "Bob Cratchit", "docs/0.txt"):
            assert known in text
        assert set(page.locator("#panel mark").all_inner_texts()) == {"Scrooge"}
        page.locator("#panel .relationships a", has_text="Bob Cratchit").click()
        wait_for_heading(page, "Bob Cratchit")
        page.go_back()
        wait_for_heading(page, "Scrooge")


@pytest.mark.browser
def test_communities_are_drilled_into_and_out_of(browser, file):
    with Opened(browser, file, DESKTOP) as page:
        before = page.evaluate("explorer.picture.colours.slice()")
        page.select_option("#level", "1")
        assert page.evaluate("explorer.picture.colours.slice()") != before
        page.select_option("#level", "0")
        assert page.evaluate("explorer.picture.colours.slice()") == before
        page.locator("#panel .communities a").first.click()
        wait_for_heading(page, "Scrooge, Marley, Bob Cratchit")
        text = panel(page).inner_text()
        assert "Bob Cratchit worked as a clerk for Scrooge" in text
        assert "Communities inside (2)" in text
        assert page.evaluate("explorer.picture.highlighted.size") == 6
        page.locator("#panel .communities a").first.click()
        until(page, "explorer.picture.highlighted.size === 4")
        assert "4 entities" in panel(page).inner_text()
        page.locator("#panel nav a").last.click()
        wait_for_heading(page, "Scrooge, Marley, Bob Cratchit")
        page.locator("#panel nav a").first.click()
        wait_for_heading(page, "The graph")
        assert page.evaluate("explorer.picture.highlighted") is None
        until(page, "!explorer.picture.sigma.getCamera().isAnimated()")
        name = settled(page, BARE_NAME)
        box = page.locator("#canvas").bounding_box()
        page.mouse.click(box["x"] + name["x"], box["y"] + name["y"])
        title = f"explorer.index.communities.title[{name['community']}]"
        until(page, f"document.querySelector('#panel h2').textContent === {title}")


@pytest.mark.browser
def test_a_file_without_room_for_texts_says_where_they_are(browser, home, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "graphrag_pipeline.pages.explorer.page.page_data", partial(page_data, n_bytes=0)
    )
    with Opened(browser, write_page(home, tmp_path / "bare.html").path, DESKTOP) as page:
        left = page.locator("#left-out").inner_text()
        assert "The texts of 14 entities" in left
        assert "run graphrag-pipeline serve, and open" in left
        page.evaluate("explorer.open('entity', explorer.index.entities.title.indexOf('Scrooge'))")
        wait_for_heading(page, "Scrooge")
        text = panel(page).inner_text()
        for known in (
            "Its description is not in this file",
            "Bob Cratchit",
            "docs/0.txt, character",
        ):
            assert known in text
        page.locator("#panel .communities a").first.click()
        until(page, "location.hash.startsWith('#community=')")
        until(page, "document.querySelector('#panel .absent').textContent.startsWith('Its report')")


@pytest.mark.browser
def test_hostile_text_stays_text_and_nothing_reaches_a_network(browser, file):
    with Opened(browser, file, DESKTOP) as page:
        page.fill("#search", "</script")
        page.keyboard.press("Enter")
        wait_for_heading(page, HOSTILE)
        page.evaluate("explorer.open('entity', explorer.index.entities.title.indexOf('贾宝玉'))")
        until(page, f"document.querySelector('#panel').textContent.includes({HOSTILE!r})")
        assert page.locator("img").count() == 0
    refused = Opened(browser, file, DESKTOP)
    fetched = "fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')"
    assert refused.page.evaluate(fetched) == "refused"
    assert any("Content Security Policy" in said for said in refused.troubles)
    refused.context.close()


@pytest.mark.browser
@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "dark"), (PHONE, "light")])
def test_nothing_overlaps_and_text_can_be_read(browser, file, size, scheme):
    with Opened(browser, file, size, scheme) as page:
        page.wait_for_timeout(500)
        boxes = [page.locator(name).bounding_box() for name in ("header", "main", "aside")]
        for one in boxes:
            assert one["x"] >= 0
            assert one["x"] + one["width"] <= size["width"]
            assert sum(_overlap(one, other) for other in boxes) == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        labels = page.evaluate(
            "explorer.picture.labels.drawn.map(r => "
            "({x: r.left, y: r.top, width: r.wide, height: r.high}))"
        )
        assert len(labels) > 2
        buttons, main = page.locator(".zoom").bounding_box(), boxes[1]
        corner = {**buttons, "x": buttons["x"] - main["x"], "y": buttons["y"] - main["y"]}
        assert sum(_overlap(corner, one) for one in labels) == 1  # their own place
        assert all(sum(_overlap(one, other) for other in labels) == 1 for one in labels)
        light = page.evaluate(
            "['background-color', 'color'].map(name => getComputedStyle(document.body)"
            ".getPropertyValue(name).match(/\\d+/g).reduce((sum, v) => sum + +v, 0) / 3)"
        )
        assert (light[0] > light[1]) == (scheme == "light")
        assert abs(light[0] - light[1]) > 150


def _overlap(one, other):
    return (
        one["x"] < other["x"] + other["width"] - 0.5
        and other["x"] < one["x"] + one["width"] - 0.5
        and one["y"] < other["y"] + other["height"] - 0.5
        and other["y"] < one["y"] + one["height"] - 0.5
    )


@pytest.mark.browser
def test_an_empty_graph_says_so(browser, home, tmp_path):
    shutil.copy(home / "published.duckdb", tmp_path / "published.duckdb")
    with duckdb.connect(str(tmp_path / "published.duckdb")) as con:
        for table in (
            "entities",
            "relationships",
            "entity_chunks",
            "entity_aliases",
            "hierarchy_communities",
            "hierarchy_members",
            "hierarchy_reports",
        ):
            con.execute(f"DELETE FROM {table}")
    with Opened(browser, write_page(tmp_path, tmp_path / "graph.html").path, PHONE) as page:
        assert "holds no entities" in page.locator("#message").inner_text()
        assert page.locator("#message").is_visible()
