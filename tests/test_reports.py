import polars as pl
import pytest

from conftest import build
from graphrag_pipeline import Index
from graphrag_pipeline.reports import extractive
from graphrag_pipeline.reports.extractive import (
    ExtractiveWriter,
    ReportSentence,
    select_sentences,
)
from graphrag_pipeline.reports.extractive import write_extractive as write
from graphrag_pipeline.reports.levels import adopt_reports, reports_current, update_reports
from graphrag_pipeline.reports.text import Finding, ReportText

PEOPLE = ("Alice Smith", "Bob Jones", "Carol Brown", "Dora Green", "Emil Black", "Frank Miller")
PLACES = ("Paris", "London", "Berlin", "Madrid", "Vienna", "Lisbon")


def story(shift=0):
    """Text with two crowds of people, dense within and thinly joined: communities on two levels."""
    sentences = []
    for group in ("Smith", "Jones", "Brown"):
        names = [f"{first} {group}" for first in ("Alice", "Bob", "Carol", "Dora", "Emil", "Frank")]
        for i, name in enumerate(names):
            other, third = names[(i + 1) % 6], names[(i + 2) % 6]
            sentences.append(f"{name} met {other} and {third} in {PLACES[(i + shift) % 6]}.")
    return " ".join(sentences)


SMALL = {"communities": {"max_cluster_size": 4}, "chunks": {"size": 80, "overlap": 20}}


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """An index with reports on several levels; tests only read it."""
    files = {"a.txt": f"Ünder 😀. {story()}", "b.txt": story(2)}
    return build(tmp_path_factory.mktemp("reported"), files, **SMALL)


DANGLING = """
SELECT f.explanation, d.text, f.start_char, f.end_char
FROM (SELECT unnest(findings) AS f FROM community_reports)
LEFT JOIN chunks c ON c.id = f.chunk_id LEFT JOIN documents d ON d.id = c.document_id
"""


def misplaced(engine):
    """Return the findings that are not in the document where they are said to be."""
    return [
        row
        for row in engine.rows(DANGLING)
        if row[1] is None or " ".join(row[1][row[2] : row[3]].split()) != row[0]
    ]


def test_there_is_one_report_for_each_community_of_two_or_more(reported):
    assert reported.rows("SELECT count(DISTINCT level) > 1 FROM community_reports") == [(True,)]
    expected = reported.rows("SELECT id, level FROM communities WHERE size >= 2 ORDER BY ALL")
    found = reported.rows("SELECT community_id, level FROM community_reports ORDER BY ALL")
    assert found == expected


def test_every_finding_stands_in_its_document_at_its_place(reported):
    assert len(reported.rows(DANGLING)) > 10
    assert misplaced(reported) == []


def test_a_report_says_what_its_columns_say(reported):
    rows = reported.rows(
        """SELECT title, summary, rating, full_content, n_tokens, coverage, context_tokens, writer,
                  len(findings) FROM community_reports"""
    )
    for title, summary, rating, content, n_tokens, coverage, context, writer, findings in rows:
        assert content.startswith(f"# {title}\n\n{summary}")
        assert 0 <= rating <= 10
        assert 0 <= coverage <= 1
        assert n_tokens > 0
        assert 0 < context <= reported.settings.reports.max_context_tokens
        assert writer == "extractive"
        assert 1 <= findings <= reported.settings.reports.max_findings


def test_a_run_without_changes_writes_nothing(reported):
    before = reported.store.path.read_bytes()
    for level in reported.report():
        assert (level.written, level.removed) == (0, 0)
    assert reported.store.path.read_bytes() == before
    with reported.store.read() as con:
        assert reports_current(
            con, reported.settings.reports, ExtractiveWriter(reported.settings.reports)
        )


def test_deeper_levels_are_done_by_the_last_asset_and_only_by_it(reported, tmp_path):
    counts = dict(reported.rows("SELECT level, count(*) FROM community_reports GROUP BY level"))
    with reported.store.transaction() as con:
        con.execute("DELETE FROM hierarchy_reports")
        con.execute("DELETE FROM meta WHERE key LIKE 'graph:reports_state:%'")
    given = reported.settings.reports
    assert (
        update_reports(
            reported.store, given, 0, and_deeper=False, writer=ExtractiveWriter(given)
        ).written
        == counts[0]
    )
    assert reported.rows("SELECT DISTINCT level FROM community_reports") == [(0,)]
    below = sum(counts.values()) - counts[0]
    assert (
        update_reports(
            reported.store, given, 1, and_deeper=True, writer=ExtractiveWriter(given)
        ).written
        == below
    )
    reported.report()
    found = dict(reported.rows("SELECT level, count(*) FROM community_reports GROUP BY level"))
    assert found == counts


def test_a_community_keeps_its_report_while_its_context_is_as_it_was_and_itself_is_there(tmp_path):
    engine = build(tmp_path, {"a.txt": "Alice Smith met Bob Jones in Paris."})
    before = engine.rows("FROM community_reports")
    engine.write({"b.txt": "Frank Miller saw George Wilson in Berlin."})
    (batch,) = engine.cut()
    engine.ingest(batch.key)
    engine.merge()
    engine.cluster()
    done = engine.report()
    assert (sum(d.written for d in done), sum(d.reused for d in done)) == (1, 1)
    assert before[0] in engine.rows("FROM community_reports")
    engine.write({"b.txt": None})
    engine.update()
    assert engine.rows("SELECT title FROM community_reports") == [
        ("Alice Smith, Bob Jones, Paris",)
    ]


def test_reports_are_up_to_date_after_one_update_where_the_hierarchy_became_shallower(tmp_path):
    engine = build(tmp_path, {"a.txt": story(), "b.txt": story(2)}, **SMALL)
    with engine.store.transaction() as con:
        (deepest,) = con.execute("SELECT max(level) FROM community_reports").fetchone()
        for table in ("hierarchy_communities", "hierarchy_members"):
            con.execute(f"DELETE FROM {table} WHERE level >= ?", [deepest])
        con.execute("UPDATE meta SET value = 'shallower' WHERE key = 'graph:communities_state'")
    given = engine.settings.reports
    done = update_reports(engine.store, given, 0, and_deeper=True, writer=ExtractiveWriter(given))
    assert deepest >= 1
    assert done.removed > 0
    with engine.store.read() as con:
        assert reports_current(con, given, ExtractiveWriter(given))


def test_findings_move_with_the_text_they_stand_in_those_of_higher_reports_too(tmp_path):
    small = {**SMALL, "reports": {"max_context_tokens": 300}}
    engine = build(tmp_path, {"a.txt": story()}, **small)
    engine.write({"a.txt": f"And so it was that nothing happened.\n\n{story()}"})
    engine.update()
    assert misplaced(engine) == []
    assert engine.rows("SELECT count(*) > 3 FROM community_reports") == [(True,)]


CODE_AND_PROSE = """
>>> print(Alice Smith, Bob Jones) == {1: 2} # Alice Smith | Bob Jones
Alice Smith - Bob Jones - Paris
He saw Alice Smith and Bob Jones again.
In the spring of that year Alice Smith met Bob Jones in Paris.
"""


def test_reports_quote_whole_sentences_and_no_code(tmp_path):
    engine = build(tmp_path, {"a.txt": CODE_AND_PROSE.replace("\n", "\n\n")})
    ((findings,),) = engine.rows(
        """SELECT list(f.explanation) FROM (
               SELECT unnest(findings) AS f FROM community_reports WHERE level = 0)"""
    )
    assert findings[0] == "In the spring of that year Alice Smith met Bob Jones in Paris."
    assert set(findings[1:]) <= {"He saw Alice Smith and Bob Jones again."}


def test_reports_do_not_begin_with_what_many_documents_repeat(tmp_path):
    footer = "Alice Smith of Acme Corporation wrote this page for Bob Jones and for Carol Brown."
    own = "Alice Smith and Bob Jones sailed to Paris on day {} of the voyage."
    files = {f"{n}.txt": f"{own.format(n)}\n\n{footer}" for n in range(4)}
    more = {"more.txt": f"Alice Smith met Bob Jones.\n\n{footer}"}
    engine = build(tmp_path / "engine", {**files, **more})
    engine.write({"more.txt": None})
    engine.update()
    fresh = build(tmp_path / "fresh", files)
    told = """SELECT [f.explanation for f in findings] FROM community_reports
              WHERE title LIKE '%Paris%' AND level = 0"""
    [(findings,)] = fresh.rows(told)
    assert findings == [*(own.format(n) for n in range(4)), footer]
    assert engine.rows(told) == [(findings,)]


def test_a_change_of_the_report_settings_writes_the_reports_again(tmp_path):
    engine = build(tmp_path, {"a.txt": story()}, **SMALL)
    engine.settings = type(engine.settings)(**SMALL, reports={"max_findings": 2})
    assert all(level.reused == 0 for level in engine.report())
    assert engine.rows("SELECT max(len(findings)) FROM community_reports") == [(2,)]


class Untouched:
    """A writer that reads claims and must not be asked for anything."""

    name = version = "untouched"
    is_model = True

    def write(self, store, contexts):
        raise AssertionError([context.community_id for context in contexts])


def test_an_imported_report_stays_whatever_the_writer_and_whatever_it_reads(tmp_path):
    engine = build(tmp_path, {"a.txt": "Alice Smith met Bob Jones in Paris."})
    columns = "community_id, title, summary, rating, rating_explanation, findings, full_content"
    given = engine.table(f"SELECT {columns} FROM community_reports")
    with engine.store.transaction() as con:
        assert adopt_reports(con, engine.settings.reports, 0, given) == 1
    with engine.store.transaction() as con:
        con.execute(
            """INSERT INTO claims BY NAME SELECT 'c' AS id, 1 AS human_readable_id,
                      min(id) AS subject_id, 'told' AS description, 'x' AS subject,
                      any_value(chunk_id) AS chunk_id, any_value(batch) AS batch
               FROM entities, (SELECT chunk_id, batch FROM entity_mentions LIMIT 1)"""
        )
    # It was not written from what a writer is shown now.
    shown = "SELECT context_tokens, coverage FROM community_reports"
    before = engine.rows(shown)
    done = update_reports(
        engine.store, engine.settings.reports, 0, and_deeper=True, writer=Untouched()
    )
    assert (done.written, done.reused) == (0, 1)
    assert engine.rows(shown) == before


def sentence(text, score, *entities):
    return ReportSentence(
        text=text,
        chunk_id="c",
        start_char=0,
        end_char=len(text),
        entities=frozenset(entities),
        score=score,
    )


def test_sentences_are_chosen_by_score_and_by_what_no_other_told():
    best = sentence("best", 10.0, "a", "b")
    same = sentence("same", 9.0, "a", "b")
    new = sentence("new", 5.0, "c", "d")
    assert select_sentences([same, new, best], 2) == [best, new]
    assert select_sentences([best, best, new], 9) == [best, new]
    assert select_sentences([], 3) == []
    told = sentence("Ilse Maravin conducted the orchestra with a sure hand.", 8.0, "a", "b")
    again = sentence("Ilse Maravin conducted the orchestra with a hand.", 7.0, "a", "b")
    assert select_sentences([told, again, new], 9) == [told, new]


def test_the_choice_does_not_depend_on_the_order_of_the_sentences():
    many = [sentence(f"s{i}", 5.0, f"e{i % 3}") for i in range(9)]
    assert select_sentences(many, 4) == select_sentences(many[::-1], 4)


@pytest.mark.parametrize(("evidence", "rating"), [(0.0, 0.0), (10.0, 2.1), (1e3, 6.0), (1e9, 10.0)])
def test_the_rating_grows_with_the_evidence_up_to_ten(evidence, rating):
    assert write("T", 2, 1, evidence, [], {}, 5).rating == rating


def test_a_report_without_evidence_is_still_a_report():
    report = write("A, B", 2, 1, 1.0, [], {}, 5)
    assert report.findings == ()
    assert report.full_content == "# A, B\n\n2 entities and 1 relationships around A, B.\n"


def test_a_report_is_summed_up_by_what_it_finds_first():
    told = [sentence(f"Ilse Maravin wrote letter {n} in Horta.", 9.0 - n, "a") for n in range(3)]
    assert write("A, B", 2, 1, 1.0, told, {}, 5).summary == f"{told[0].text} {told[1].text}"


def test_who_speaks_is_not_what_is_spoken_of():
    said = ["MOE HALL: It was late.", "Slate is what Moe Hall sells.", "MOE HALL: I sell slate."]
    told = pl.DataFrame({"title": "Moe Hall, Slate", "text": said})
    assert told.select(extractive._n_named()).to_series().to_list() == [0, 2, 1]


def test_the_full_content_is_markdown_of_title_summary_and_findings():
    finding = Finding("A – B", "A met B.", "c", 0, 8)
    report = ReportText("T", "S.", 1.0, "why", (finding,))
    assert report.full_content == "# T\n\nS.\n\n## A – B\n\nA met B.\n"


def test_sentences_that_were_read_the_time_before_are_not_read_again(monkeypatch):
    read = []
    reading = extractive.read_prose
    monkeypatch.setattr(
        extractive, "read_prose", lambda texts: read.append(sorted(texts)) or reading(texts)
    )
    reader = extractive._Reader()
    read.clear()
    texts = [f"Alice Smith met Bob Jones in Paris on day {n}." for n in range(4)]
    first = reader.read(pl.Series("text", texts[:3]))
    second = reader.read(pl.Series("text", texts[1:]))
    reader.read(pl.Series("text", texts[:1]))
    assert read == [texts[:3], texts[3:], texts[:1]]
    again = extractive._Reader().read(pl.Series("text", texts[1:]))
    assert second.sort("text").equals(again.sort("text"))
    assert first.sort("text")["text"].to_list() == texts[:3]


def test_an_index_without_relationships_has_no_reports_to_look_at(plain_stores, tmp_path):
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "a.txt").write_text("Jonas Fredriksen has a boat.")
    index = Index(tmp_path / "home")
    index.update(tmp_path / "documents")
    assert index.check().problems == ()
    budget = index.settings.reports.model_copy(update={"max_context_tokens": 900})
    other = Index(index.home, index.settings.model_copy(update={"reports": budget}))
    assert other.plan(tmp_path / "documents").calls == 0
