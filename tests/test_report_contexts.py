from typing import NamedTuple

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from graphrag_pipeline.reports.contexts import (
    LINE_TOKENS,
    NO_PARTS,
    Element,
    Parts,
    build_contexts,
    intra_edges,
)

TEN = 10 - LINE_TOKENS  # an element that takes ten tokens with its line


class Edge(NamedTuple):
    relationship: Element
    source: Element
    target: Element


def edge(source, target, tokens=TEN):
    return Edge(
        Element(f"{source}{target}", tokens, f"hash {source}{target}"),
        Element(source, TEN, f"hash {source}"),
        Element(target, TEN, f"hash {target}"),
    )


ELEMENT = {"id": pl.String, "n_tokens": pl.Int64, "text_hash": pl.String, "support": pl.Int64}
EDGE = {"community_id": pl.String, **ELEMENT, "source_id": pl.String, "target_id": pl.String}


def frame(rows, schema):
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def contexts(edges_of, budget, children=None, reports=(), version="v", claims=()):
    """Return the context of each community; ``children`` and ``reports`` are those of all."""
    edges = [(name, each) for name, edges in edges_of.items() for each in edges]
    rows = frame([(name, *e.relationship, e.source.id, e.target.id) for name, e in edges], EDGE)
    entities = {end for _, each in edges for end in (each.source, each.target)}
    members = [(c, n, id) for c in edges_of for n, ids in (children or {}).items() for id in ids]
    parts = Parts(frame(members, NO_PARTS.members.schema), frame(reports, NO_PARTS.reports.schema))
    found, _ = build_contexts(
        list(edges_of), rows, frame(entities, ELEMENT), budget, version, parts, dict(claims)
    )
    return found


def context(edges, budget, children=None, reports=(), version="v", claims=()):
    return contexts({"c": edges}, budget, children, reports, version, claims)[0]


class Report(NamedTuple):
    child: str
    n_tokens: int
    coverage: float = 1.0
    support: int = 1
    full_content: str = "text"
    findings: tuple = ()


def test_relationships_come_by_combined_degree_and_ties_by_id():
    members = pl.DataFrame({"community_id": ["c"] * 3 + ["d"], "entity_id": ["A", "B", "C", "D"]})
    relationships = pl.DataFrame(
        [("r3", "A", "B", 3), ("r2", "B", "C", 5), ("r1", "A", "C", 3), ("r0", "C", "D", 9)],
        schema=["id", "source_id", "target_id", "combined_degree"],
        orient="row",
    ).with_columns(n_tokens=1, text_hash=pl.lit("h"), support=1)
    for rows in (relationships, relationships.reverse()):
        found = intra_edges(members, rows)
        assert found["id"].to_list() == ["r2", "r1", "r3"]
        assert found["community_id"].unique().to_list() == ["c"]


def test_each_relationship_comes_with_its_source_and_target_and_none_twice():
    found = context([edge("A", "B"), edge("B", "C"), edge("A", "C")], 1000)
    assert found.entities == ("A", "B", "C")
    assert found.relationships == ("AB", "BC", "AC")
    assert found.n_tokens == 60
    assert found.coverage == 1.0


@pytest.mark.parametrize(
    ("budget", "entities", "relationships"),
    [
        (29, "AB", ("AB",)),
        (30, "AB", ("AB",)),
        (49, "AB", ("AB",)),
        (50, "ABC", ("AB", "BC")),
        (59, "ABC", ("AB", "BC")),
        (60, "ABC", ("AB", "BC", "AC")),
    ],
)
def test_relationships_are_added_until_one_does_not_fit(budget, entities, relationships):
    found = context([edge("A", "B"), edge("B", "C"), edge("A", "C")], budget)
    assert found.entities == tuple(entities)
    assert found.relationships == relationships
    assert found.coverage == pytest.approx(len(relationships) / 3, abs=1e-6)


def test_the_first_relationship_is_there_however_large_it_is():
    found = context([edge("A", "B", tokens=5000), edge("B", "C")], 60)
    assert (found.relationships, found.n_tokens) == (("AB",), 60)


def claims_of(**numbers):
    return {
        entity: [Element(f"{entity}{n}", TEN, f"claim {n}") for n in range(number)]
        for entity, number in numbers.items()
    }


def test_claims_follow_their_entities_and_do_not_crowd_out_the_graph():
    edges = [edge("A", "B"), edge("B", "C"), edge("A", "C")]
    found = context(edges, 120, claims=claims_of(A=100, C=1))
    assert found.relationships == ("AB", "BC", "AC")
    assert found.claims == ("A0", "A1", "A2", "A3", "A4", "A5")
    assert found.n_tokens == 120
    found = context(edges, 1000, claims=claims_of(B=3, C=1))
    assert found.claims == ("B0", "B1", "B2", "C0")
    assert found.elements[-4:] == found.claims


def test_after_one_that_does_not_fit_no_smaller_one_is_taken():
    found = context([edge("A", "B"), edge("B", "C", tokens=500), edge("A", "C")], 60)
    assert found.relationships == ("AB",)


# Two sub-communities, P with A-B-C (60 tokens) and Q with D-E (30), and one edge between them.
INSIDE_P = [edge("A", "B"), edge("B", "C"), edge("A", "C")]
ACROSS = [edge("C", "D")]
INSIDE_Q = [edge("D", "E")]
WHOLE = ACROSS + INSIDE_P + INSIDE_Q
CHILDREN = {"P": "ABC", "Q": "DE"}
REPORTS = (Report("P", 20, coverage=0.5), Report("Q", 15))


def test_where_everything_fits_no_sub_report_is_used():
    found = context(WHOLE, 100, CHILDREN, REPORTS)
    assert found.n_tokens == 100
    assert found.sub_reports == ()
    assert found.coverage == 1.0


def test_the_largest_sub_community_is_replaced_first_and_only_until_it_fits():
    found = context(WHOLE, 99, CHILDREN, REPORTS)
    assert found.sub_reports == ("P",)
    assert found.relationships == ("CD", "DE")
    assert found.entities == ("D", "E")
    assert found.n_tokens == 20 + 40
    assert found.coverage == pytest.approx((2 + 3 * 0.5) / 5)


def test_the_next_sub_community_is_replaced_where_one_is_not_enough():
    found = context(WHOLE, 59, CHILDREN, REPORTS)
    assert found.sub_reports == ("P", "Q")
    assert found.relationships == ("CD",)
    assert found.entities == ()
    assert found.n_tokens == 35 + 10
    assert found.coverage == pytest.approx((1 + 3 * 0.5 + 1) / 5)


def test_a_sub_community_whose_report_is_longer_than_itself_is_not_replaced():
    found = context(WHOLE, 70, CHILDREN, (Report("P", 65), Report("Q", 15)))
    assert found.sub_reports == ("Q",)


def test_a_sub_community_without_a_report_is_told_by_its_elements():
    found = context(WHOLE, 90, CHILDREN, (Report("Q", 15),))
    assert found.sub_reports == ("Q",)
    assert set(found.relationships) == {"CD", "AB", "BC", "AC"}
    assert found.coverage == 1.0


def test_reports_that_do_not_fit_either_are_left_out():
    found = context(WHOLE, 30, CHILDREN, REPORTS)
    assert found.sub_reports == ("P",)
    assert found.n_tokens <= 30
    assert found.relationships == ()
    assert found.coverage == pytest.approx(3 * 0.5 / 5)


def test_a_sub_community_whose_report_does_not_fit_is_told_by_its_elements_as_far_as_they_do():
    found = context(INSIDE_P + ACROSS, 35, {"P": "ABC", "Q": "DE"}, (Report("P", 40),))
    assert found.sub_reports == ()
    assert found.entities == ("A", "B")
    assert found.relationships == ("AB",)


def test_a_community_without_relationships_is_covered():
    found = context([], 100)
    assert (found.n_tokens, found.coverage, found.entities) == (0, 1.0, ())


@st.composite
def communities(draw):
    nodes = [f"n{i}" for i in range(draw(st.integers(2, 9)))]
    size = {node: draw(st.integers(1, 60)) for node in nodes}
    pairs = draw(
        st.lists(
            st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)).filter(lambda p: p[0] < p[1]),
            unique=True,
            min_size=1,
            max_size=20,
        )
    )
    edges = [
        Edge(
            Element(f"{s}-{t}", draw(st.integers(1, 80)), f"h {s}-{t}"),
            Element(s, size[s], f"h {s}"),
            Element(t, size[t], f"h {t}"),
        )
        for s, t in pairs
    ]
    names = st.sampled_from(["P", "Q", "R"])
    children = {}
    for node in nodes:
        children.setdefault(draw(names), set()).add(node)
    reports = [
        Report(name, draw(st.integers(1, 200)), draw(st.floats(0, 1)))
        for name in children
        if draw(st.booleans())
    ]
    return edges, children, reports


@given(communities(), st.integers(1, 800))
def test_the_budget_is_never_exceeded_and_coverage_is_a_share(community, budget):
    edges, children, reports = community
    found = context(edges, budget, children, reports)
    assert 0 <= found.n_tokens <= budget
    assert 0 <= found.coverage <= 1
    tokens = {e.id: e.n_tokens for x in edges for e in (x.relationship, x.source, x.target)}
    shown = sum(tokens[e] + LINE_TOKENS for e in (*found.entities, *found.relationships))
    told = {r.child: r for r in reports}
    taken = shown + sum(told[c].n_tokens for c in found.sub_reports)
    assert found.n_tokens == min(taken, budget)
    # Only the first relationship may be larger than all that there is room for.
    assert taken <= budget or (len(found.relationships) == 1 and not found.sub_reports)


@given(communities(), st.integers(1, 800))
def test_an_entity_is_told_by_a_sub_report_or_by_itself_wherever_its_relationship_is(
    community, budget
):
    edges, children, reports = community
    found = context(edges, budget, children, reports)
    told = {node for name in found.sub_reports for node in children[name]}
    for each in edges:
        if each.relationship.id in found.relationships:
            assert {each.source.id, each.target.id} <= told | set(found.entities)


@given(communities(), st.integers(1, 800), st.data())
def test_the_hash_changes_exactly_when_something_shown_changes(community, budget, data):
    edges, children, reports = community
    before = context(edges, budget, children, reports)
    assert context(edges, budget, children, reports).hash == before.hash
    place = data.draw(st.integers(0, len(edges) - 1))
    old = edges[place]
    new = Edge(
        Element(old.relationship.id, old.relationship.n_tokens, "another"), old.source, old.target
    )
    after = context([*edges[:place], new, *edges[place + 1 :]], budget, children, reports)
    assert (after.hash != before.hash) == (old.relationship.id in before.relationships)
    assume(reports)
    changed = [r._replace(full_content="other") for r in reports]
    rewritten = context(edges, budget, children, changed)
    assert (rewritten.hash != before.hash) == bool(before.sub_reports)


def test_the_hash_depends_on_order_and_version():
    one = context([edge("A", "B"), edge("B", "C")], 100)
    assert context([edge("B", "C"), edge("A", "B")], 100).hash != one.hash
    assert context([edge("A", "B"), edge("B", "C")], 100, version="w").hash != one.hash
    assert context([edge("A", "B"), edge("B", "C")], 900).hash == one.hash


@given(communities(), st.integers(1, 800))
def test_communities_beside_each_other_change_nothing_of_each_other(one, budget):
    edges, children, reports = one
    beside = contexts({"c": edges, "d": edges, "e": []}, budget, children, reports)
    alone = contexts({"c": edges}, budget, children, reports)
    assert [each.community_id for each in beside] == ["c", "d", "e"]
    assert beside[:1] == alone
    assert beside[1].elements == beside[0].elements


def test_elements_come_in_the_order_of_their_context():
    rows = frame([("c", "AB", TEN, "h", 3, "A", "B")], EDGE)
    entities = frame([("B", TEN, "hb", 2), ("A", TEN, "ha", 1)], ELEMENT)
    (found,), elements = build_contexts(["c"], rows, entities, 100, "v")
    assert tuple(elements["element_id"]) == found.elements == ("A", "B", "AB")
    assert elements.select("place", "kind", "support").rows() == [
        (0, "entity", 1),
        (1, "entity", 2),
        (2, "relationship", 3),
    ]
