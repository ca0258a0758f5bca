import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from graphrag_pipeline.reports.contexts import (
    LINE_TOKENS,
    Edge,
    Element,
    SubReport,
    build_context,
    edges_of,
    intra_edges,
)

TEN = 10 - LINE_TOKENS  # an element that takes ten tokens with its line


def edge(source, target, tokens=TEN):
    return Edge(
        Element(f"{source}{target}", tokens, f"hash {source}{target}"),
        Element(source, TEN, f"hash {source}"),
        Element(target, TEN, f"hash {target}"),
    )


def context(edges, budget, children=None, reports=(), version="v"):
    sub_communities = {name: frozenset(nodes) for name, nodes in (children or {}).items()}
    return build_context(
        "c", edges, sub_communities, {r.community_id: r for r in reports}, budget, version
    )


def report(name, tokens, coverage=1.0, text="text"):
    return SubReport(name, tokens, f"hash {text}", coverage)


def test_relationships_come_by_combined_degree_and_ties_by_id():
    members = pl.DataFrame({"community_id": ["c"] * 3 + ["d"], "entity_id": ["A", "B", "C", "D"]})
    relationships = pl.DataFrame(
        [("r3", "A", "B", 3), ("r2", "B", "C", 5), ("r1", "A", "C", 3), ("r0", "C", "D", 9)],
        schema=["id", "source_id", "target_id", "combined_degree"],
        orient="row",
    ).with_columns(n_tokens=1, text_hash=pl.lit("h"), support=1)
    entities = pl.DataFrame({"id": list("ABCD")}).with_columns(
        n_tokens=1, text_hash=pl.lit("h"), support=1
    )
    for rows in (relationships, relationships.reverse()):
        found = edges_of(intra_edges(members, rows, entities))
        assert [e.relationship.id for e in found["c"]] == ["r2", "r1", "r3"]
        assert "d" not in found


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
    found = build_context("c", edges, {}, {}, 120, "v", claims_of(A=100, C=1))
    assert found.relationships == ("AB", "BC", "AC")
    assert found.claims == ("A0", "A1", "A2", "A3", "A4", "A5")
    assert found.n_tokens == 120
    found = build_context("c", edges, {}, {}, 1000, "v", claims_of(B=3, C=1))
    assert found.claims == ("B0", "B1", "B2", "C0")
    assert [e.id for e in found.elements][-4:] == list(found.claims)


def test_after_one_that_does_not_fit_no_smaller_one_is_taken():
    found = context([edge("A", "B"), edge("B", "C", tokens=500), edge("A", "C")], 60)
    assert found.relationships == ("AB",)


# Two sub-communities, P with A-B-C (60 tokens) and Q with D-E (30), and one edge between them.
INSIDE_P = [edge("A", "B"), edge("B", "C"), edge("A", "C")]
ACROSS = [edge("C", "D")]
INSIDE_Q = [edge("D", "E")]
WHOLE = ACROSS + INSIDE_P + INSIDE_Q
CHILDREN = {"P": "ABC", "Q": "DE"}
REPORTS = (report("P", 20, coverage=0.5), report("Q", 15))


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
    found = context(WHOLE, 70, CHILDREN, (report("P", 65), report("Q", 15)))
    assert found.sub_reports == ("Q",)


def test_a_sub_community_without_a_report_is_told_by_its_elements():
    found = context(WHOLE, 90, CHILDREN, (report("Q", 15),))
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
    found = context(INSIDE_P + ACROSS, 35, {"P": "ABC", "Q": "DE"}, (report("P", 40),))
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
        report(name, draw(st.integers(1, 200)), draw(st.floats(0, 1)))
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
    told = {r.community_id: r for r in reports}
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
    changed = [report(r.community_id, r.n_tokens, r.coverage, "other") for r in reports]
    rewritten = context(edges, budget, children, changed)
    assert (rewritten.hash != before.hash) == bool(before.sub_reports)


def test_the_hash_depends_on_order_and_version():
    one = context([edge("A", "B"), edge("B", "C")], 100)
    assert context([edge("B", "C"), edge("A", "B")], 100).hash != one.hash
    assert context([edge("A", "B"), edge("B", "C")], 100, version="w").hash != one.hash
    assert context([edge("A", "B"), edge("B", "C")], 900).hash == one.hash
