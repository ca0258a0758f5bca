"""When reports that cost money are written anew: not at once for little, at once for removal."""

import pytest

from conftest import Engine
from graphrag_pipeline.core.settings import ReportSettings, Settings
from graphrag_pipeline.reports.levels import update_reports
from graphrag_pipeline.reports.text import ReportText, WrittenReports

TEAM = "Alice Smith met Bob Jones in Paris. Bob Jones and Carol Brown work for Acme Corporation. "
MORE = [
    f"Alice Smith showed Bob Jones the {what} of Carol Brown at Acme Corporation in Paris. "
    for what in ("house", "garden", "letters", "archive", "paintings", "coins")
]
FAR = "Frank Miller saw George Wilson in Berlin. George Wilson left Berlin with Henry Ford. "


class Teller:
    """A writer that costs money: it repeats all it is told of entities and sub-reports."""

    name = "teller"
    version = "1"
    is_model = True

    def __init__(self):
        self.written = []

    def write(self, store, contexts, hierarchy, evidence=None):
        self.written += [context.community_id for context in contexts]
        with store.read() as con:
            told = dict(
                con.execute(
                    """SELECT id, description FROM entities UNION ALL
                       SELECT id, description FROM relationships UNION ALL
                       SELECT community_id, full_content FROM community_reports"""
                ).fetchall()
            )
        return WrittenReports(
            {
                c.community_id: ReportText(
                    "T", "\n".join(told[id] for id in c.elements), 5.0, "", ()
                )
                for c in contexts
            }
        )


@pytest.fixture
def engine(tmp_path):
    given = {"communities": {"max_cluster_size": 4, "max_drift": 1.0}}
    engine = Engine(tmp_path, Settings(graph={"max_description_sentences": 50}, **given))
    engine.write({"team.txt": TEAM + "".join(MORE), "far.txt": FAR})
    return engine


def bring_up(engine, teller, most=0.5):
    """Index what changed; return how many reports were written, kept though outdated, failed."""
    engine.index()
    engine.cluster()
    teller.written.clear()
    settings = ReportSettings(max_outdated=most)
    return update_reports(engine.store, settings, 0, and_deeper=True, writer=teller)


def reports(engine):
    return dict(engine.rows("SELECT community_id, full_content FROM community_reports"))


def outdated(engine):
    return dict(engine.rows("SELECT community_id, outdated FROM community_reports"))


def test_what_a_report_was_written_from_is_stored_in_order(engine):
    bring_up(engine, Teller())
    rows = engine.rows(
        """SELECT community_id, string_agg(kind, ',' ORDER BY place) FROM report_elements
           GROUP BY community_id"""
    )
    assert {community for community, _ in rows} == reports(engine).keys()
    unknown = engine.rows(
        """SELECT count(*) FROM report_elements WHERE element_id NOT IN (
               SELECT id FROM entities UNION ALL SELECT id FROM relationships
               UNION ALL SELECT id FROM communities)"""
    )
    assert unknown == [(0,)]
    rest = engine.rows(
        """SELECT any_value(r.context_tokens) - sum(e.n_tokens), count(*) FROM report_elements e
           JOIN community_reports r USING (community_id) GROUP BY r.community_id"""
    )
    assert all(0 <= more <= 8 * n for more, n in rest)


def test_a_little_more_leaves_a_report_as_it_is_and_says_how_far_it_is_behind(engine):
    teller = Teller()
    bring_up(engine, teller)
    before = reports(engine)
    engine.write({"new.txt": "Alice Smith waved to Bob Jones. "})
    done = bring_up(engine, teller)
    assert (done.written, teller.written) == (0, [])
    assert done.outdated > 0
    assert reports(engine) == before
    behind = {c: share for c, share in outdated(engine).items() if share}
    assert len(behind) == done.outdated
    assert all(0 < share <= 0.5 for share in behind.values())
    again = bring_up(engine, teller)
    assert (again.written, again.outdated) == (0, 0)


def test_small_changes_gather_until_a_report_is_written_anew(engine):
    teller = Teller()
    bring_up(engine, teller, 0.2)
    shares, rewritten = [], False
    for number in range(8):
        engine.write({f"n{number}.txt": f"Carol Brown told Bob Jones about tree {number}. "})
        done = bring_up(engine, teller, 0.2)
        shares.append(max(outdated(engine).values()))
        rewritten = done.written > 0
        if rewritten:
            break
    assert rewritten
    assert max(shares) <= 0.2
    assert shares[-1] < shares[-2]


def test_without_patience_any_change_counts(engine):
    teller = Teller()
    bring_up(engine, teller, 0.0)
    engine.write({"new.txt": "Alice Smith waved to Bob Jones. "})
    done = bring_up(engine, teller, 0.0)
    assert done.written > 0
    assert not any(outdated(engine).values())


def test_removal_leaves_no_trace_however_little_it_was(engine):
    engine.write({"secret.txt": "Alice Smith gave Bob Jones the zirconium key. "})
    teller = Teller()
    bring_up(engine, teller, 0.9)
    telling = {c for c, text in reports(engine).items() if "zirconium" in text}
    assert telling
    elsewhere = {c for c, text in reports(engine).items() if "Frank Miller" in text}
    engine.write({"secret.txt": None})
    bring_up(engine, teller, 0.9)
    assert "zirconium" not in "".join(reports(engine).values())
    assert telling & reports(engine).keys() <= set(teller.written)
    assert not elsewhere & set(teller.written)
    assert engine.rows("SELECT count(*) FROM staging.lost_evidence") == [(0,)]


def test_removal_is_not_forgotten_when_the_run_ends_before_the_reports(engine):
    engine.write({"secret.txt": "Alice Smith gave Bob Jones the zirconium key. "})
    teller = Teller()
    bring_up(engine, teller, 0.9)
    engine.write({"secret.txt": None})
    engine.index()
    engine.write({"new.txt": "Carol Brown waved to Bob Jones. "})
    bring_up(engine, teller, 0.9)
    assert "zirconium" not in "".join(reports(engine).values())


def test_another_version_of_the_writer_writes_everything_anew(engine):
    teller = Teller()
    first = bring_up(engine, teller)
    teller.version = "2"
    assert bring_up(engine, teller).written == first.written
