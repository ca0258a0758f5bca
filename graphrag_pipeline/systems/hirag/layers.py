"""The layers of a hierarchical knowledge graph: clusters, what summarises them, when to stop.

Where paper and code differ. The paper clusters as RAPTOR does: Gaussian mixtures, their number by
BIC, an entity in every cluster of probability above 0.1; first of all, then within each cluster,
then within one of more tokens than can be read at once. The code leaves out all but the first, and
draws from a cluster that is too large; by that, 7,000 entities would have eight clusters. The code
reduces by UMAP without a seed, here it is by principal components (``mixtures``). The paper stops
once cluster sparsity (equation 17) changes by at most 5 % from layer to layer; the code also where
it is at least 98 %, which fifty clusters of like size reach, so that a large graph would get no
layer: that is left out. A cluster of one entity passes it up, as in the code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_pipeline.core.identity import content_hash, make_id
from graphrag_pipeline.core.text import normalize_title
from graphrag_pipeline.core.tokens import count_tokens
from graphrag_pipeline.structures.nested_mixtures import NestedMixture
from graphrag_pipeline.systems.hirag.writing import Summary, SummaryEntity

LEAST_CHANGE = 0.05
"""Building stops once cluster sparsity changes by no more than this share (the paper's epsilon)."""
MOST_LAYERS = 10
"""Building stops here in any case; the code's limit is 50, and it too is never met."""
REFIT_SHARE = 0.2
"""A layer is clustered anew once more than this share of it has changed since it was."""

_SEED = 0xDEADBEEF
_FEWEST = 3

NODES = pl.Schema(
    {
        **dict.fromkeys(("id", "title", "type", "description"), pl.String),
        "n_tokens": pl.Int64,
    }
)
ENTITIES = pl.Schema({**NODES, "layer": pl.Int32, "size": pl.Int64})
LINKS = pl.Schema(
    {
        "source_id": pl.String,
        "target_id": pl.String,
        "layer": pl.Int32,
        "description": pl.String,
        "weight": pl.Float64,
    }
)
BASIS = pl.Schema({"id": pl.String, "entity_id": pl.String})

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True)
class LayerNodes:
    """Nodes a layer is clustered from: ``rows`` with the columns ``NODES``, ``vectors`` (n, d).

    ``below`` are the entities of layer 0 that each stands for, by their places there, and ``basis``
    those that were read when it was written: of all members of its clusters, linked to it or not.
    """

    rows: pl.DataFrame
    vectors: Vectors
    below: Sequence[frozenset[int]]
    basis: Sequence[frozenset[int]]

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.rows)

    @cached_property
    def text_hashes(self) -> Mapping[str, str]:
        """A hash of what each node says, by its id."""
        return {
            key: content_hash("\n".join(texts))[:16]
            for key, *texts in self.rows.select("id", "title", "type", "description").iter_rows()
        }


@dataclass(frozen=True)
class Fitted:
    """The mixtures a layer was clustered by, and how much has changed since they were fitted.

    ``text_hashes`` are those of the layer's nodes when it was last looked at.
    """

    mixture: NestedMixture
    n_fitted: int
    n_changed: int
    text_hashes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A clustering of the layer below: its sparsity, and what it was found by.

    The last one may have no entities: it differs too little from the one before.
    """

    number: int
    n_nodes: int
    n_clusters: int
    sparsity: float
    fitted: Fitted


@dataclass(frozen=True)
class LayeredEntities:
    """All layers: summary entities (``ENTITIES``), links to them (``LINKS``), what they say.

    ``basis`` (``BASIS``) has the entities of layer 0 that each summary entity was written from.
    """

    layers: Sequence[Layer]
    entities: pl.DataFrame
    links: pl.DataFrame
    basis: pl.DataFrame
    summaries: Sequence[Summary]


Write = Callable[[Sequence[pl.DataFrame]], Sequence[Summary]]
Embed = Callable[[Sequence[str]], Vectors]


def build_layers(
    base: LayerNodes, write: Write, embed: Embed, fits: Mapping[int, Fitted], *, most_tokens: int
) -> LayeredEntities:
    """Build layers over ``base`` (algorithm 1) until sparsity settles, or two nodes are left.

    ``write`` says what clusters have in common, each given as the rows of its members, the most
    central first, of no more than ``most_tokens``; ``embed`` embeds titles with descriptions.
    ``fits`` are the mixtures there are, by layer.
    """
    layers: list[Layer] = []
    entities, links, summaries = [pl.DataFrame(schema=ENTITIES)], [pl.DataFrame(schema=LINKS)], []
    bases = [pl.DataFrame(schema=BASIS)]
    nodes, before = base, None
    while len(nodes) >= _FEWEST and len(layers) < MOST_LAYERS:
        number = len(layers) + 1
        fit, clusters = _clusters(nodes, fits.get(number), most_tokens)
        shared = [members for members in clusters if len(members) > 1]
        sparsity = cluster_sparsity([len(members) for members in clusters], len(nodes))
        is_built = bool(shared) and not (before is not None and is_settled(before, sparsity))
        layers.append(
            Layer(
                number=number,
                n_nodes=len(nodes),
                n_clusters=len(clusters),
                sparsity=sparsity,
                fitted=fit,
            )
        )
        if not is_built:
            break
        cluster_summaries = write([nodes.rows[members] for members in shared])
        layer_nodes, layer_links, below, basis = _fold(number, nodes, shared, cluster_summaries)
        entities.append(layer_nodes)
        links.append(layer_links)
        bases.append(_basis_frame(layer_nodes, basis, base))
        summaries += cluster_summaries
        alone = sorted({members[0] for members in clusters if len(members) == 1})
        above = _above(nodes, layer_nodes, below, basis, alone, embed)
        if len(above) >= len(nodes):
            break
        nodes, before = above, sparsity
    return LayeredEntities(
        layers, pl.concat(entities), pl.concat(links), pl.concat(bases), summaries
    )


def cluster_sparsity(sizes: Sequence[int], n: int) -> float:
    """Return how sparse clusters of these sizes are, of ``n`` entities (equation 17).

    1 - sum |S|(|S| - 1) / n(n - 1): 1 where each cluster is one entity, 0 where one holds all;
    below 0 where clusters overlap much.
    """
    return 1 - sum(size * (size - 1) for size in sizes) / (n * (n - 1))


def is_settled(before: float, now: float, least: float = LEAST_CHANGE) -> bool:
    """Whether cluster sparsity has changed by no more than the share ``least`` of what it was."""
    return abs(now - before) <= least * abs(before)


def _clusters(
    nodes: LayerNodes, before: Fitted | None, most_tokens: int
) -> tuple[Fitted, list[list[int]]]:
    """Return the clusters as places of their members, the most central first, each set once.

    By the mixtures kept, unless too much has changed since they were fitted.
    """
    start = before and _followed(before, nodes.text_hashes)
    start = start or Fitted(NestedMixture(), len(nodes), 0, nodes.text_hashes)
    mixture, groups = start.mixture.place(
        nodes.vectors,
        nodes.rows["n_tokens"].to_numpy(),
        nodes.rows["id"].to_list(),
        most_tokens=most_tokens,
        seed=_SEED,
    )
    distinct = sorted({tuple(sorted(group.tolist())) for group in groups})
    clusters = [_by_centrality(nodes.vectors, list(members)) for members in distinct]
    return replace(start, mixture=mixture), clusters


def _followed(fit: Fitted, now: Mapping[str, str]) -> Fitted | None:
    """Return a fit with what has changed counted, None if that is too much."""
    before = fit.text_hashes
    n_changed = fit.n_changed + len(now.items() - before.items()) + len(before.keys() - now.keys())
    if n_changed > REFIT_SHARE * fit.n_fitted:
        return None
    return replace(fit, n_changed=n_changed, text_hashes=now)


def _by_centrality(vectors: Vectors, members: list[int]) -> list[int]:
    member_vectors = vectors[members].astype(np.float64)
    nearness = (member_vectors @ member_vectors.mean(axis=0)).round(6)
    return [members[place] for place in np.argsort(-nearness, kind="stable")]


def _fold(
    number: int, nodes: LayerNodes, clusters: Sequence[Sequence[int]], summaries: Sequence[Summary]
) -> tuple[pl.DataFrame, pl.DataFrame, list[frozenset[int]], list[frozenset[int]]]:
    """Return a layer's summary entities, links to them, what each stands for, and its basis.

    Entities that several clusters name alike are one.
    """
    ids = nodes.rows["id"].to_list()
    entities_said: dict[str, dict[str, SummaryEntity]] = {}
    links: dict[tuple[str, str], list[str]] = {}
    below: dict[str, set[int]] = {}
    basis: dict[str, set[int]] = {}
    place_of = {key: place for place, key in enumerate(ids)}
    for members, summary in zip(clusters, summaries, strict=True):
        keys = {normalize_title(e.title): _id(number, e.title) for e in summary.entities}
        for (source, target), description in _links_of(nodes, members, summary, keys).items():
            links.setdefault((source, target), []).append(description)
            if source in place_of:
                below.setdefault(target, set()).update(nodes.below[place_of[source]])
        read = frozenset[int]().union(*(nodes.basis[member] for member in members))
        for key in keys.values():
            basis.setdefault(key, set()).update(read)
        for entity in summary.entities:
            by_cluster = entities_said.setdefault(keys[normalize_title(entity.title)], {})
            by_cluster.setdefault(entity.description, entity)
    # What no member is linked to rests on nothing.
    entities_said = {key: by_cluster for key, by_cluster in entities_said.items() if key in below}
    links_kept = {
        pair: by_cluster
        for pair, by_cluster in links.items()
        if pair[0] in place_of or pair[0] in entities_said
    }
    return (
        _entity_frame(number, entities_said, below),
        _link_frame(
            number,
            {
                pair: by_cluster
                for pair, by_cluster in links_kept.items()
                if pair[1] in entities_said
            },
        ),
        [frozenset(below[key]) for key in entities_said],
        [frozenset(basis[key]) for key in entities_said],
    )


def _basis_frame(
    entities: pl.DataFrame, basis: Sequence[frozenset[int]], base: LayerNodes
) -> pl.DataFrame:
    places = pl.Series([sorted(read) for read in basis], dtype=pl.List(pl.UInt32))
    pairs = entities.select("id").with_columns(place=places).explode("place")
    ids = base.rows.select(pl.col("id").alias("entity_id")).with_row_index("place")
    return pairs.join(ids, "place", maintain_order="left").select(list(BASIS))


def _entity_frame(
    number: int,
    entities_said: Mapping[str, Mapping[str, SummaryEntity]],
    below: Mapping[str, set[int]],
) -> pl.DataFrame:
    firsts = [next(iter(by_cluster.values())) for by_cluster in entities_said.values()]
    texts = ["\n".join(by_cluster) for by_cluster in entities_said.values()]
    counts = count_tokens([f"{e.title} {text}" for e, text in zip(firsts, texts, strict=True)])
    rows = [
        (key, entity.title, entity.type, text, n, number, len(below[key]))
        for key, entity, text, n in zip(entities_said, firsts, texts, counts, strict=True)
    ]
    return pl.DataFrame(rows, schema=ENTITIES, orient="row")


def _link_frame(number: int, links: Mapping[tuple[str, str], Sequence[str]]) -> pl.DataFrame:
    rows = [
        (*pair, number, "\n".join(dict.fromkeys(filter(None, link))), float(len(link)))
        for pair, link in links.items()
    ]
    return pl.DataFrame(rows, schema=LINKS, orient="row")


def _links_of(
    nodes: LayerNodes, members: Sequence[int], summary: Summary, keys: Mapping[str, str]
) -> dict[tuple[str, str], str]:
    """Return the links that one cluster gives: (member, summary entity), or two of the latter.

    A member that the summary relates to nothing is linked to its first entity, for the paper links
    all members of a cluster.
    """
    ids, titles = nodes.rows["id"], nodes.rows["title"]
    id_of = {normalize_title(titles[place]): ids[place] for place in reversed(members)}
    links: dict[tuple[str, str], str] = {}
    for link in summary.links:
        near, far = normalize_title(link.source), normalize_title(link.target)
        if near in keys and far not in keys:
            near, far = far, near
        source, target = id_of.get(near) or keys.get(near), keys.get(far)
        if source and target and source != target:
            links.setdefault((source, target), link.description)
    sources = {source for source, _ in links}
    first = next(iter(keys.values()))
    unlinked = (ids[place] for place in members if ids[place] not in sources)
    return links | dict.fromkeys(((member, first) for member in unlinked), "")


def _above(
    nodes: LayerNodes,
    nodes_above: pl.DataFrame,
    below: Sequence[frozenset[int]],
    basis: Sequence[frozenset[int]],
    alone: Sequence[int],
    embed: Embed,
) -> LayerNodes:
    """Return the nodes of the next layer: summary entities, and those that were clustered alone."""
    texts = [
        f"{title}\n{description}"
        for title, description in nodes_above.select("title", "description").iter_rows()
    ]
    return LayerNodes(
        pl.concat([nodes_above.select(list(NODES)), nodes.rows[alone].select(list(NODES))]),
        np.concatenate([embed(texts), nodes.vectors[alone]]),
        [*below, *(nodes.below[place] for place in alone)],
        [*basis, *(nodes.basis[place] for place in alone)],
    )


def _id(layer: int, title: str) -> str:
    return make_id("hirag", layer, normalize_title(title))
