"""Reports after any history are those made from scratch, and cost no call where nothing changed."""

from itertools import combinations, product

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Engine, build, examples
from graphrag_pipeline.core.settings import Settings
from graphrag_pipeline.reports import digests, levels
from graphrag_pipeline.reports.extractive import ExtractiveWriter
from graphrag_pipeline.reports.inputs import level_contexts, level_slices, read_elements, read_level
from graphrag_pipeline.reports.levels import reports_current, update_reports
from graphrag_pipeline.reports.text import ReportText, WrittenReports

NAMES = ("Alice Smith", "Bob Jones", "Carol Brown", "Dora Green", "Emil Black", "Frank Miller")
GIVEN_NAMES = ("Alice", "Karl", "Ida")
HOUSES = ("Smith", "Jones", "Brown", "Green", "Black", "Miller")
PLACES = ("Paris", "London", "Berlin", "Madrid")
GIVEN = {"communities": {"max_cluster_size": 3, "max_drift": 1.0}, "reports": {"max_outdated": 0.0}}
REPORTS = """
SELECT * EXCLUDE (human_readable_id) FROM hierarchy_reports JOIN (
    SELECT hierarchy, id AS community_id, human_readable_id FROM hierarchy_communities)
USING (hierarchy, community_id) ORDER BY ALL
"""

sentences = st.tuples(
    st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from(PLACES), st.integers(0, 2)
).map(lambda t: f"{t[0]} met {t[1]} in {t[2]} {'for a while ' * t[3]}that day.")
texts = st.lists(sentences, min_size=1, max_size=6).map(" ".join)
changes = st.dictionaries(st.sampled_from("abcd"), st.none() | texts, min_size=1, max_size=3)


class Teller:
    """A writer that is paid by the report and repeats all it is told, in order."""

    name = "teller"
    version = "1"
    is_model = True

    def __init__(self):
        self.calls = []

    def write(self, store, contexts, hierarchy, evidence=None):
        self.calls += [context.community_id for context in contexts]
        with store.read() as con:
            told = dict(
                con.execute(
                    """SELECT id, title || type || description FROM entities UNION ALL
                       SELECT id, source || target || description FROM relationships UNION ALL
                       SELECT id, concat_ws(' ', subject, object, type, status, start_date,
                                            end_date, description) FROM claims UNION ALL
                       SELECT community_id, full_content FROM community_reports"""
                ).fetchall()
            )
        reports = {
            c.community_id: ReportText("T", "\n".join(told[id] for id in c.elements), 5.0, "", ())
            for c in contexts
        }
        return WrittenReports(reports)


def bring_up(engine, writer=None):
    given = engine.settings.reports
    by = writer or ExtractiveWriter(given)
    return update_reports(engine.store, given, 0, and_deeper=True, writer=by)


def bring_up_by_level(engine, writer=None):
    for level, and_deeper in ((2, True), (1, False), (0, False)):
        given = engine.settings.reports
        by = writer or ExtractiveWriter(given)
        update_reports(engine.store, given, level, and_deeper=and_deeper, writer=by)


def reports(engine):
    return engine.rows(REPORTS)


def forgotten(engine):
    """Let nothing be known of reports, and let those without a model be written again."""
    with engine.store.transaction() as con:
        con.execute("DELETE FROM meta WHERE starts_with(key, 'graph:reports_state:')")
        con.execute("DELETE FROM staging.report_inputs")
        con.execute("DELETE FROM hierarchy_reports")
        con.execute("DELETE FROM report_elements")


@examples(4)
@given(history=st.lists(changes, min_size=2, max_size=4), is_paid=st.booleans())
def test_after_any_history_reports_are_those_made_from_scratch(tmp_path_factory, history, is_paid):
    engine = Engine(tmp_path_factory.mktemp("history"), Settings(**GIVEN))
    engine.write({"fixed.txt": "Alice Smith met Bob Jones in Paris. Dora Green met Emil Black."})
    with engine.store.session():
        for change in history:
            engine.write({f"{name}.txt": text for name, text in change.items()})
            engine.index()
            engine.cluster()
            bring_up_by_level(engine, Teller() if is_paid else None)
    followed = reports(engine)
    again = Teller()
    forgotten(engine)
    bring_up(engine, again if is_paid else None)
    assert reports(engine) == followed


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    files = {
        f"{i}.txt": " ".join(
            f"{NAMES[(i + j) % 6]} met {NAMES[(i * j + 1) % 6]} in {PLACES[(i + j) % 4]}."
            for j in range(5)
        )
        for i in range(8)
    }
    return build(tmp_path_factory.mktemp("told"), files, **GIVEN)


def test_no_report_is_asked_for_where_only_the_digests_are_lost_or_made_otherwise(
    told, monkeypatch
):
    first = Teller()
    assert bring_up(told, first).written == len(first.calls) > 1
    before = reports(told)
    with told.store.transaction() as con:
        con.execute("DELETE FROM staging.report_inputs")
        con.execute("DELETE FROM meta WHERE starts_with(key, 'graph:reports_state:')")
    again = Teller()
    assert (bring_up(told, again).written, again.calls) == (0, [])
    monkeypatch.setattr(digests, "_DIGESTS_VERSION", "another")
    assert (bring_up(told, again).written, again.calls) == (0, [])
    assert reports(told) == before
    monkeypatch.setattr(duckdb, "__version__", "99.0")
    assert (bring_up(told, again).written, again.calls) == (0, [])


def test_contexts_are_made_only_where_a_digest_changed(told, monkeypatch):
    teller = Teller()
    bring_up(told, teller)
    made = []
    monkeypatch.setattr(
        "graphrag_pipeline.reports.levels.level_slices",
        lambda elements, level, *rest: (
            made.extend(level.communities) or level_slices(elements, level, *rest)
        ),
    )
    with told.store.transaction() as con:
        con.execute("DELETE FROM meta WHERE starts_with(key, 'graph:reports_state:')")
    bring_up(told, teller)
    assert made == []


def test_levels_of_one_session_read_the_graph_once(told, monkeypatch):
    read = []
    for name in ("read_elements", "read_sentences", "community_digests"):
        reading = getattr(levels, name)
        monkeypatch.setattr(
            levels, name, lambda *a, name=name, reading=reading: read.append(name) or reading(*a)
        )
    forgotten(told)
    with told.store.session():
        bring_up_by_level(told)
    assert sorted(read) == ["community_digests", "read_elements", "read_sentences"]
    forgotten(told)
    bring_up_by_level(told)
    assert len(read) > 4


def test_reports_are_the_same_where_sentences_are_too_many_to_be_held(told, monkeypatch):
    forgotten(told)
    bring_up(told)
    before = reports(told)
    monkeypatch.setattr(levels, "_FEW_RELATIONSHIPS", 0)
    monkeypatch.delattr(levels, "read_sentences")
    forgotten(told)
    assert bring_up(told).written
    assert reports(told) == before


def test_a_session_sums_the_graph_up_once_and_again_where_somebody_wrote(told, monkeypatch):
    summed = []
    monkeypatch.setattr(
        levels, "graph_digest", lambda *a: summed.append(1) or digests.graph_digest(*a)
    )
    forgotten(told)
    with told.store.session():
        bring_up_by_level(told)
        assert len(summed) == 1
        bring_up_by_level(told)
        assert len(summed) == 1
        with told.store.transaction() as con:
            con.execute("UPDATE relationships SET weight = weight + 40")
        assert bring_up(told).written
        assert len(summed) == 2


def test_slices_make_the_contexts_of_the_whole_level(told):
    with told.store.read() as con:
        level = read_level(con, 0)
        elements = read_elements(con, Teller())
    whole = level_contexts(elements, level, 300, "v")
    slices = [part.contexts for part in level_slices(elements, level, 300, "v", size=1)]
    assert len(slices) > 1
    assert [context for part in slices for context in part] == whole


def test_of_some_communities_only_what_is_within_them_is_read(told):
    with told.store.read() as con:
        level = read_level(con, 0)
        whole = read_elements(con, Teller())
        own = read_elements(con, Teller(), members=level.own_members)
    assert len(own.relationships) < len(whole.relationships)
    assert level_contexts(own, level, 300, "v") == level_contexts(whole, level, 300, "v")


def test_what_a_report_says_of_its_community_is_brought_up_to_date_though_no_word_changes(told):
    bring_up(told)
    changed = "UPDATE relationships SET weight = weight + 40"
    before = dict(told.rows("SELECT community_id, rating FROM community_reports"))
    with told.store.transaction() as con:
        con.execute(changed)
    bring_up(told)
    after = dict(told.rows("SELECT community_id, rating FROM community_reports"))
    assert before.keys() == after.keys()
    assert all(after[community] > rating for community, rating in before.items())


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    """Two families of three households each: communities, and communities within them."""
    houses = [[f"{name} {house}" for name in GIVEN_NAMES] for house in HOUSES]
    files = {}
    for number, family in enumerate((houses[:3], houses[3:])):
        within = [pair for house in family for pair in combinations(house, 2)]
        files[f"{number}.txt"] = " ".join(f"{a} met {b}. {a} met {b} again." for a, b in within)
        for place, (one, two) in enumerate(combinations(family, 2)):
            between = product(one, two)
            files[f"{number}-{place}.txt"] = " ".join(f"{a} met {b}." for a, b in between)
    return build(tmp_path_factory.mktemp("deep"), files, **GIVEN)


GRAPH_CHANGES = (
    "UPDATE entities SET description = description || ' He sings.'",
    "UPDATE entities SET title = title || '!'",
    "UPDATE entities SET n_tokens = n_tokens + 1",
    "UPDATE relationships SET description = 'So.' WHERE id = (SELECT min(id) FROM relationships)",
    "UPDATE relationships SET weight = weight + 1 WHERE id = (SELECT min(id) FROM relationships)",
    "UPDATE relationships SET combined_degree = 99 WHERE id = (SELECT min(id) FROM relationships)",
    "UPDATE hierarchy_communities SET title = title || '!'",
    "UPDATE hierarchy_communities SET n_relationships = 99",
    "UPDATE hierarchy_communities SET size = size + 1",
    """UPDATE hierarchy_communities SET parent_id = (SELECT max(id) FROM communities
       WHERE level = 0) WHERE level = 1""",
    """INSERT INTO claims BY NAME SELECT 'c' AS id, 0 AS human_readable_id, chunk_id,
       entity_id AS subject_id, 'x' AS subject, 'owed' AS description, 'b' AS batch
       FROM entity_chunks ORDER BY ALL LIMIT 1""",
)
REPORT_CHANGES = (
    "UPDATE hierarchy_reports SET full_content = reverse(full_content) WHERE level > 0",
    "UPDATE hierarchy_reports SET context_hash = 'of another context'",
    "UPDATE hierarchy_reports SET outdated = 0.5",
)
FORGET_STATES = "DELETE FROM meta WHERE starts_with(key, 'graph:reports_state:')"


@pytest.fixture
def made(monkeypatch):
    """The communities of which contexts are made."""
    communities = []
    monkeypatch.setattr(
        levels,
        "level_slices",
        lambda elements, level, *rest: (
            communities.extend(level.communities) or level_slices(elements, level, *rest)
        ),
    )
    return communities


@pytest.mark.parametrize("change", GRAPH_CHANGES + REPORT_CHANGES)
def test_whatever_a_report_is_told_of_changes_it_is_looked_at_again(deep, change, made):
    forgotten(deep)
    bring_up(deep, Teller())
    made.clear()
    with deep.store.transaction() as con:
        con.execute(change)
        is_current = reports_current(con, deep.settings.reports, Teller())
        con.execute(FORGET_STATES)
    bring_up(deep, Teller())
    assert made
    assert is_current is (change in REPORT_CHANGES)


A_CLAIM_EACH = """
DELETE FROM claims;
INSERT INTO claims BY NAME SELECT entity_id AS id, row_number() OVER () AS human_readable_id,
    min(chunk_id) AS chunk_id, entity_id AS subject_id, 'a' AS subject, 'b' AS object, 'c' AS type,
    'd' AS status, '1901' AS start_date, '1902' AS end_date, 'owed' AS description, 'b' AS batch
FROM entity_chunks GROUP BY entity_id
"""
WITHIN = "(SELECT entity_id FROM community_members WHERE community_id = $community)"
BOTH_WITHIN = f"source_id IN {WITHIN} AND target_id IN {WITHIN}"
WORDS = [
    *(f"entities SET {name} = {name} || '!' WHERE id" for name in ("title", "type", "description")),
    *(f"relationships SET {name} = {name} || '!' WHERE" for name in ("source", "description")),
]
CLAIM = ("subject", "object", "type", "status", "start_date", "end_date", "description")
WORDS_OF_CLAIMS = [f"claims SET {name} = {name} || '!' WHERE subject_id" for name in CLAIM]
CITED = [
    "relationships SET weight = weight + 1 WHERE",
    "relationships SET target = target || '!' WHERE",
    "relationship_mentions SET description = description || '!' WHERE",
    *(f"relationship_mentions SET {end} = {end} + 1 WHERE" for end in ("start_char", "end_char")),
]


@pytest.mark.parametrize(
    ("changes", "writer"),
    [
        ([*WORDS, WORDS_OF_CLAIMS[-1]], Teller()),
        (WORDS_OF_CLAIMS[:-1], Teller()),
        (CITED, None),
    ],
    ids=["graph", "claims", "cited"],
)
def test_a_report_is_written_again_whichever_word_it_is_told_of_changes(deep, changes, writer):
    """In each household another changes: a report is left behind by what is not looked at."""
    with deep.store.transaction() as con:
        con.execute(A_CLAIM_EACH)
    forgotten(deep)
    bring_up(deep, writer)
    before = reports(deep)
    households = [id for (id,) in deep.rows("SELECT id FROM communities WHERE level = 1")]
    with deep.store.transaction() as con:
        for change, community in zip(changes, households, strict=False):
            which = f"IN {WITHIN}" if change.endswith("id") else BOTH_WITHIN
            con.execute(f"UPDATE {change} {which}", {"community": community})
    bring_up(deep, writer)
    followed = reports(deep)
    assert sum(row in before for row in followed) == len(households) - len(changes)
    forgotten(deep)
    bring_up(deep, writer)
    assert reports(deep) == followed


STANDS_OTHERWISE = (
    "UPDATE documents SET n_chars = n_chars + 9",
    """INSERT INTO blocks BY NAME SELECT id AS document_id, 0 AS start_char, 40 AS end_char,
       'list' AS kind, batch FROM documents""",
    "UPDATE blocks SET kind = 'code'",
    "UPDATE blocks SET end_char = 10_000",
    "UPDATE blocks SET start_char = start_char + 1",
)


def test_a_report_is_written_again_where_what_it_cites_stands_otherwise(deep):
    bring_up(deep)
    for change in STANDS_OTHERWISE:
        with deep.store.transaction() as con:
            con.execute(change)
        assert bring_up(deep).written, change


@pytest.mark.parametrize("writer", [Teller(), None], ids=["paid", "free"])
def test_no_report_is_written_again_for_what_none_is_told_of(deep, writer):
    with deep.store.transaction() as con:
        con.execute(A_CLAIM_EACH)
    bring_up(deep, writer)
    with deep.store.transaction() as con:
        con.execute(
            """UPDATE entities SET frequency = frequency + 1, degree = degree + 1,
                   human_readable_id = human_readable_id + 9;
               UPDATE relationships SET combined_degree = combined_degree + 1,
                   human_readable_id = human_readable_id + 9;
               UPDATE claims SET human_readable_id = human_readable_id + 9, source_text = 'x';
               UPDATE documents SET title = 'x'"""
        )
    assert bring_up(deep, writer).written == 0


@pytest.mark.parametrize(
    ("change", "writer"),
    [
        ("reports SET full_content = reverse(full_content)", Teller()),
        ("reports SET n_tokens = 9_999", Teller()),
        ("reports SET findings = []", None),
        ("communities SET size = size + 1", None),
    ],
)
def test_a_report_is_written_again_where_those_that_it_is_told_change(
    deep, change, writer, monkeypatch
):
    tight = deep.settings.reports.model_copy(update={"max_context_tokens": 200})
    monkeypatch.setattr(deep, "settings", deep.settings.model_copy(update={"reports": tight}))
    forgotten(deep)
    bring_up_by_level(deep, writer)
    with deep.store.transaction() as con:
        con.execute(f"UPDATE hierarchy_{change} WHERE level = 1")
    by = writer or ExtractiveWriter(tight)
    assert update_reports(deep.store, tight, 0, and_deeper=False, writer=by).written


@pytest.mark.parametrize("change", ["outdated = 0.5", "context_hash = 'of another context'"])
def test_a_report_that_is_not_the_one_that_was_compared_is_made_as_it_should_be(deep, change):
    forgotten(deep)
    bring_up(deep, Teller())
    before = reports(deep)
    with deep.store.transaction() as con:
        con.execute(f"UPDATE hierarchy_reports SET {change}")
        con.execute(FORGET_STATES)
    bring_up(deep, Teller())
    assert reports(deep) == before


def test_places_that_a_report_cites_are_looked_at_again_where_they_change(deep):
    forgotten(deep)
    bring_up(deep)
    with deep.store.transaction() as con:
        con.execute("UPDATE relationship_mentions SET end_char = end_char - 1")
        assert not reports_current(
            con, deep.settings.reports, ExtractiveWriter(deep.settings.reports)
        )
        con.execute(FORGET_STATES)
    assert bring_up(deep).written


def test_a_level_is_told_of_what_the_reports_beneath_it_say_now(deep, made):
    forgotten(deep)
    bring_up_by_level(deep, Teller())
    with deep.store.transaction() as con:
        con.execute("UPDATE hierarchy_reports SET full_content = reverse(full_content)")
    made.clear()
    update_reports(deep.store, deep.settings.reports, 0, and_deeper=False, writer=Teller())
    assert made


def test_another_version_of_a_writer_writes_every_report_again(deep, monkeypatch):
    forgotten(deep)
    bring_up(deep, Teller())
    monkeypatch.setattr(Teller, "version", "2")
    again = Teller()
    bring_up(deep, again)
    assert [(len(again.calls),)] == deep.rows("SELECT count(*) FROM hierarchy_reports")
