"""The documentation: it says what the code says, its examples run, and its site builds offline."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from html.parser import HTMLParser
from inspect import isfunction
from pathlib import Path

import pytest

from conftest import Engine
from docs import generate
from docs.method_entries import entry_of
from graphrag_pipeline import Index
from graphrag_pipeline.cli import app as cli
from graphrag_pipeline.cli.index_views import show_status
from graphrag_pipeline.core.prompting import prompt_names
from graphrag_pipeline.marts.sql import query_published
from graphrag_pipeline.query import METHODS, MODEL_METHODS, operators, parameter_rows
from graphrag_pipeline.query.methods import method_named
from graphrag_pipeline.releases.publishing import publish
from graphrag_pipeline.structures.updating import embed_table
from graphrag_pipeline.structures.vector_tables import TABLES

ROOT = Path(__file__).parents[1]
# Those of single methods become parts of one page.
PAGES = sorted({*ROOT.glob("docs/**/*.md")} - {*ROOT.glob("docs/methods/*.md")})
WITH_EXAMPLES = [ROOT / "README.md", *PAGES]
TESTED_ELSEWHERE = {
    ("docs/sql.md", "sql"),
    ("docs/sql.md", "python"),
    ("docs/how-to/extend.md", "python"),
}
UPDATE = "make docs"
DOCUMENTS = (
    "press/soft-stone-how-we-reported-it.md",
    "press/interview-orsolya-venn.txt",
    "reference/kestrel-bridge.md",
    "reference/orlen-dam.md",
    "records/biographical-register.json",
)
_BLOCK = re.compile(
    r"(?P<note><!--.*?-->\n)?^```(?P<kind>python|sh|sql)\n(?P<code>.*?)^```$", re.M | re.S
)
_NOT_RUN = re.compile(r"<!-- not run: .{10,}? -->\n")
_ASSETS_OF_A_PAGE = {"script": "src", "img": "src", "iframe": "src", "source": "src"}
_LOADED = {"stylesheet", "icon", "preload", "preconnect", "manifest"}


@pytest.mark.beside
def test_everything_there_is_says_what_it_is() -> None:
    assert generate.undocumented() == []


@pytest.mark.beside
def test_the_reference_pages_are_current() -> None:
    # On a busy machine something may come late, and another request be recorded: so only what is
    # old twice is old.
    stale = stale_pages() and stale_pages()
    assert not stale, f"run: {UPDATE}\n{stale}"


def stale_pages() -> str:
    """Return how the pages that are kept differ from those that are made."""
    kept = [*generate.PAGES.glob("*.md"), *generate.PICTURES.glob("*.svg")]
    written = {path: path.read_text() for path in kept}
    made = generate.pages()
    return "\n".join(
        line
        for path in sorted(made.keys() | written.keys())
        for line in unified_diff(
            written.get(path, "").splitlines(),
            made.get(path, "").splitlines(),
            fromfile=path.name,
            lineterm="",
            n=1,
        )
    )


@pytest.mark.beside
def test_every_prompt_is_shown_as_it_is_sent() -> None:
    page = (generate.PAGES / "prompts.md").read_text()
    assert sorted(re.findall(r"^## (\w+)\n\nSent by", page, re.M)) == prompt_names()


def test_the_readme_links_to_what_there_is() -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#([^)]+))?\)", (ROOT / "README.md").read_text())
    assert [path for path, _ in links if not (ROOT / path).exists()] == []
    for path, anchor in [link for link in links if link[1]]:
        headings = re.findall(r"^#+ (.*)$", (ROOT / path).read_text(), re.M)
        assert anchor in [re.sub(r"\W+", "-", h.lower()) for h in headings]


def test_the_readme_is_short_enough_to_be_read() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 900


def test_the_readme_quotes_figures_that_stand_on_their_pages() -> None:
    readme = (ROOT / "README.md").read_text()
    rows = re.findall(
        r"\(`(?:auto`, here `)?(\w+)`\) \| \**([\d.]+)\** \| ([\d,]+) \| (\d+) \|", readme
    )
    table = (
        (ROOT / "docs" / "how-to" / "compare.md").read_text().partition("MuSiQue, graph rule")[2]
    )
    measured = re.findall(
        r"\| `(\w+)` \| ([\d.]+) \| [^|]+ \| \d+ \| ([\d,]+) \| (\d+) \|",
        table.partition("(end)")[0],
    )
    assert len(rows) == 5
    assert set(rows) <= set(measured)
    size = (ROOT / "docs" / "how-to" / "size.md").read_text()
    scale = re.findall(
        r"^\| (?:full|1 % more documents|nothing new) \| ([\d.]+) \| ([\d,]+) \|", readme, re.M
    )
    assert len(scale) == 3
    assert all(f"| {seconds} | {memory} |" in size for seconds, memory in scale)


def test_the_readme_shows_what_the_demo_prints(tmp_path: Path, monkeypatch, capsys) -> None:
    readme = (ROOT / "README.md").read_text()
    shown = re.findall(r"^(?:\w+ +\d+|(?: +\d+){4})$", readme.partition("seconds ")[0], re.M)
    monkeypatch.chdir(ROOT)
    index = Index(tmp_path / "home")
    index.update("examples/corpus")
    show_status(index.status())
    printed = capsys.readouterr().out.splitlines()
    assert len(shown) == 7, "the README shows four counts and three levels"
    assert [line for line in printed if line in shown] == shown
    answer = index.answer("Who was the source called Heron?", "local").text.splitlines()
    assert [line for line in readme.splitlines() if line.startswith("- Or") and line in answer]


def test_the_page_on_methods_lists_every_method_and_operator() -> None:
    text = (ROOT / "docs" / "methods.md").read_text()
    rows = re.findall(
        r'^\| (?:<a id="\w+"></a>)?\[`(\w+)`\]\(reference/methods\.md#\1\) \| [^|]+ \| ([^|]+) \|',
        text,
        re.M,
    )
    entries = {name: entry_of(name) for name in METHODS | MODEL_METHODS}
    assert rows == [(name, entry.calls if entry else "") for name, entry in entries.items()]
    offered = {
        name
        for name, value in vars(operators).items()
        if isfunction(value) and value.__module__.startswith(f"{operators.__name__}.")
    }
    assert len(offered) > 60
    assert [name for name in offered if f"`{name}`" not in text] == []


def test_the_pages_on_methods_say_parameters_and_defaults_that_there_are() -> None:
    text = (ROOT / "docs" / "methods.md").read_text()
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##)", text, re.M | re.S))
    entries = {name: entry_of(name) for name in METHODS | MODEL_METHODS}
    sections |= {name: entry.details for name, entry in entries.items() if entry and entry.details}
    assert {"ppr", "hirag"} <= sections.keys()
    for name, section in sections.items():
        defaults = {row[0]: row[2] for row in parameter_rows(method_named(name))}
        said = re.findall(r"`(\w+)`\s\((\d[\d,]*(?:\.\d+)?)\b", section)
        wrong = {
            (parameter, value)
            for parameter, value in said
            if parameter in defaults and float(value.replace(",", "")) != defaults[parameter]
        }
        assert wrong == set(), name


@dataclass(frozen=True)
class Example:
    """A block of code on a page."""

    place: str
    kind: str
    code: str
    is_run: bool


def _examples(page: Path) -> list[Example]:
    text, name = page.read_text(), str(page.relative_to(ROOT))
    return [
        Example(
            f"{name}:{text[: found.start('code')].count(chr(10)) + 1}",
            found["kind"],
            found["code"],
            not _NOT_RUN.fullmatch(found["note"] or ""),
        )
        for found in _BLOCK.finditer(text)
        if (name, found["kind"]) not in TESTED_ELSEWHERE
    ]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder as a reader would have it: some documents, an index of them, some questions."""
    folder = tmp_path_factory.mktemp("docs")
    engine = Engine(folder)
    for name in DOCUMENTS:
        engine.write({name: (ROOT / "examples" / "corpus" / name).read_bytes()})
    engine.update()
    for table in TABLES:
        embed_table(engine.workspace, table)
    publish(engine.workspace)
    questions = (ROOT / "examples" / "questions.jsonl").read_text().splitlines(keepends=True)
    (folder / "examples").mkdir()
    (folder / "examples" / "questions.jsonl").write_text("".join(questions[:3]))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for variable in [name for name in os.environ if name.startswith("GRAPHRAG_")]:
            patch.delenv(variable)
        yield folder


@pytest.mark.beside
def test_every_example_runs(place: Path) -> None:
    examples = [example for page in WITH_EXAMPLES for example in _examples(page)]
    for example in examples:
        try:
            _run(example, place / ".graphrag")
        except BaseException as error:
            error.add_note(f"in the example at {example.place}")
            raise


def test_examples_of_a_program_read_the_index_that_the_first_of_them_makes() -> None:
    examples = [each.code for each in _examples(ROOT / "docs" / "how-to" / "program.md")]
    makes = [re.findall(r"\bIndex\((?!Settings)(.*?)\)", code) for code in examples]
    assert makes[0] == [""]
    assert {home for homes in makes for home in homes} == {""}


def _run(example: Example, home: Path) -> None:
    if not example.is_run:
        return
    if example.kind == "python":
        _run_python(example)
    elif example.kind == "sql":
        query_published(home, example.code)
    else:
        for line in example.code.splitlines():
            _run_command(line)


def _run_python(example: Example) -> None:
    code = compile(example.code, example.place, "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, {"__name__": "__main__"})
    assert out.getvalue().strip(), "it prints nothing"


def _run_command(line: str) -> None:
    words = shlex.split(line, comments=True)
    assert words[0] == "graphrag-pipeline", f"cannot run {line!r}: mark the block"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.app(words[1:], standalone_mode=False)
    assert not code, f"{line}: {err.getvalue()}"
    assert out.getvalue().strip(), f"{line} prints nothing"


class _Loads(HTMLParser):
    """What a page makes a browser load, and whether it is from the network."""

    def __init__(self) -> None:
        super().__init__()
        self.from_network: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        address = given.get(_ASSETS_OF_A_PAGE.get(tag, ""))
        if tag == "link" and _LOADED & set((given.get("rel") or "").split()):
            address = given.get("href")
        if address and re.match(r"(https?:)?//", address):
            self.from_network.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)]
    built = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert built.returncode == 0, built.stderr
    return target


def test_the_site_has_every_page(site: Path) -> None:
    made = {path.relative_to(site).with_suffix(".md") for path in site.rglob("*.html")}
    pages = {page.relative_to(ROOT / "docs") for page in PAGES}
    assert pages - made == set()
    assert list(site.rglob("*.py")) == []


@pytest.mark.parametrize("listing", ["mkdocs.yml", "docs/index.md"])
def test_every_page_is_listed(listing: str) -> None:
    text = (ROOT / listing).read_text()
    own = ROOT / listing
    names = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page != own]
    form = ": {}\n" if listing == "mkdocs.yml" else "]({}"
    assert [name for name in names if form.format(name) not in text] == []


def test_no_page_loads_anything_from_the_network(site: Path) -> None:
    found = {}
    for page in site.rglob("*.html"):
        loads = _Loads()
        loads.feed(text := page.read_text())
        assert 'class="mermaid"' not in text, "the theme loads mermaid from the network"
        found[page.name] = loads.from_network
    assert {name: loaded for name, loaded in found.items() if loaded} == {}
    styles = [
        sheet
        for sheet in site.rglob("*.css")
        if re.search(r"url\(['\"]?(https?:)?//", sheet.read_text())
    ]
    assert styles == []
    pictures = sum(path.stat().st_size for path in (site / "images").iterdir())
    assert pictures < 1_000_000
