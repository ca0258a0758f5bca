import time
from dataclasses import fields

import numpy as np
import pytest
import scipy

from graphrag_pipeline.structures.mixtures import Mixture
from graphrag_pipeline.structures.nested_mixtures import NestedMixture


def blobs(sizes, dimensions=16, spread=0.05, seed=0):
    """Rows around as many random centres as there are sizes, and the centre of each."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((len(sizes), dimensions))
    labels = np.repeat(np.arange(len(sizes)), sizes)
    rows = centres[labels] + spread * random.standard_normal((len(labels), dimensions))
    return rows.astype(np.float32), labels


def nested(vectors, tokens=100, most_tokens=400, known=None):
    n_tokens = np.full(len(vectors), tokens)
    ids = [f"row {n}" for n in range(len(vectors))]
    mixture, clusters = (known or NestedMixture()).place(
        vectors, n_tokens, ids, most_tokens=most_tokens, seed=7
    )
    return mixture, sorted(rows.tolist() for rows in clusters)


def test_the_lowest_bic_finds_the_clusters_there_are_and_new_rows_join_theirs():
    vectors, labels = blobs([40, 60, 50, 30])
    mixture = Mixture.fit(vectors, seed=1)
    rows, clusters = mixture.memberships(vectors)
    assert len(mixture) == 4
    assert rows.tolist() == list(range(180))
    assert len(set(zip(labels.tolist(), clusters.tolist(), strict=True))) == 4
    _, near = mixture.memberships(vectors[[0, 179]] + np.float32(0.01))
    assert near.tolist() == clusters[[0, 179]].tolist()


def test_a_row_between_two_clusters_is_in_both():
    vectors, _ = blobs([50, 50], dimensions=4)
    mixture = Mixture.fit(vectors, seed=1, dimensions=1)
    axis = np.linspace(vectors[:50].mean(axis=0), vectors[50:].mean(axis=0), 2001)
    rows, _ = mixture.memberships(axis.astype(np.float32))
    assert {1, 2} == set(np.bincount(rows).tolist())


def test_a_row_is_in_a_cluster_from_the_probability_on_that_the_densities_give_it():
    vectors, _ = blobs([50, 70], dimensions=4)
    mixture = Mixture.fit(vectors, seed=1, dimensions=1)
    ends = vectors[:50].mean(axis=0), vectors[50:].mean(axis=0)
    along = np.linspace(*ends, 2001).astype(np.float32)
    (one, other), scale = mixture.means[:, 0], 1 / np.abs(mixture.whitening[:, 0, 0])
    place = mixture.reduced(along)[:, 0]
    share = mixture.weights[0] * scipy.stats.norm.pdf(place, one, scale[0])
    rest = mixture.weights[1] * scipy.stats.norm.pdf(place, other, scale[1])
    rows, _ = mixture.memberships(along, 0.2)
    found = np.bincount(rows, minlength=len(along)) == 2
    wanted = (share / (share + rest) > 0.2) & (rest / (share + rest) > 0.2)
    assert found.tolist() == wanted.tolist()
    assert found.any()


def test_the_same_rows_and_seed_give_the_same_mixture():
    vectors, _ = blobs([30, 30, 30], spread=0.5)
    one, two = (Mixture.fit(vectors, seed=3) for _ in range(2))
    for array in fields(Mixture):
        assert getattr(one, array.name).tolist() == getattr(two, array.name).tolist()


@pytest.mark.parametrize(
    "vectors",
    [
        np.ones((1, 8)),
        np.eye(2, 8),
        np.ones((40, 8)),
        np.zeros((3, 8)),
        np.repeat(np.eye(2, 8), 20, axis=0),
        np.outer(np.arange(30), np.ones(8)),
    ],
    ids=["one", "two", "equal", "zeros", "two places", "a line"],
)
def test_rows_that_hardly_differ_have_clusters_too(vectors):
    vectors = vectors.astype(np.float32)
    mixture = Mixture.fit(vectors, seed=1)
    rows, clusters = mixture.memberships(vectors)
    assert set(rows.tolist()) == set(range(len(vectors)))
    assert clusters.max() < len(mixture)
    kept, found = nested(vectors)
    assert set().union(*found) == set(range(len(vectors)))
    assert all(len(cluster) <= 4 for cluster in found)
    assert nested(vectors, known=NestedMixture.from_bytes(kept.to_bytes()))[1] == found


def test_no_rows_are_no_mixture():
    with pytest.raises(ValueError, match="at least one row"):
        Mixture.fit(np.empty((0, 8), np.float32), seed=1)


def test_a_cluster_without_rows_is_forgotten_and_no_row_joins_it():
    vectors, _ = blobs([40, 40, 40])
    mixture = Mixture.fit(vectors, seed=1)
    _, clusters = mixture.memberships(vectors)
    gone = mixture.without(np.array([clusters[0]]))
    rest = gone.memberships(vectors[40:])[1]
    assert rest.tolist() == clusters[40:].tolist()
    assert clusters[0] not in gone.memberships(vectors)[1]
    assert not gone.means[clusters[0]].any()


def test_no_nested_cluster_is_too_large_and_one_more_row_changes_few():
    vectors, _ = blobs([60, 80, 70], spread=0.6)
    mixture, before = nested(vectors)
    assert max(map(len, before)) <= 4
    more = np.concatenate([vectors, vectors[:1] + np.float32(0.01)])
    _, after = nested(more, known=NestedMixture.from_bytes(mixture.to_bytes()))
    assert 210 in set().union(*after)
    assert sum(cluster not in before for cluster in after) <= 4


def test_a_fit_is_bounded_whatever_the_number_of_rows():
    vectors, _ = blobs([20_000, 20_000], dimensions=8)
    started = time.process_time()
    assert len(Mixture.fit(vectors, seed=1)) == 2
    assert time.process_time() - started < 5
