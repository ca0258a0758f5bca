"""Agreement of raters beyond chance: shares, Cohen's kappa, Krippendorff's alpha.

Kappa (Cohen, 1960; weighted by squared differences where labels are numbers: Cohen, 1968) is of two
raters who labelled the same items. Alpha (Krippendorff, "Computing Krippendorff's
Alpha-Reliability", 2011) is of any number of raters, each of whom may have left items out. Both are
1 where all agree, 0 where they agree as by chance, and less where they disagree more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

_WIDEST = 100
"""Weighted kappa is of a scale of so many steps at most."""


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """Agreement of ``raters`` on ``items`` that at least two of them labelled.

    ``share`` is that of pairs of labels on one item that are equal. ``kappa`` is None unless there
    are two raters, and where their labels are no whole numbers. It and ``alpha`` are None where all
    labels are the same: nothing tells agreement from chance then.
    """

    raters: int
    items: int
    share: float
    kappa: float | None
    alpha: float | None


def reliability(labels: pl.DataFrame, *, is_number: bool) -> Reliability | None:
    """Return how far the raters of labels agree; None where no item has labels of two.

    ``labels`` has the columns item, rater and value, and one row for an item and a rater. Numbers
    differ by how far they are apart (an interval scale), others only in being equal or not.
    """
    several = labels.filter(pl.len().over("item") > 1)
    if several.is_empty():
        return None
    raters = several["rater"].unique(maintain_order=True).to_list()
    return Reliability(
        raters=len(raters),
        items=several["item"].n_unique(),
        share=_share(several),
        kappa=_kappa(several, raters, is_number) if len(raters) == 2 else None,
        alpha=krippendorff_alpha(several, is_number=is_number),
    )


def krippendorff_alpha(labels: pl.DataFrame, *, is_number: bool) -> float | None:
    """Return 1 - observed / expected disagreement; None where all labels are the same.

    ``labels`` are as of :func:`reliability`; items with one label do not count. A label of an item
    with m labels is compared with the m - 1 others of the item, and with all other labels there
    are: by squared difference (interval), or by whether they differ (nominal).
    """
    several = labels.filter(pl.len().over("item") > 1)
    disagreement = _squares if is_number else _unequal
    within = several.group_by("item").agg(disagreement().alias("apart"), pl.len().alias("n"))
    n = len(several)
    expected = several.select(disagreement()).item() / (n - 1) if n else 0.0
    if not expected:
        return None
    observed = within.select((pl.col("apart") / (pl.col("n") - 1)).sum()).item()
    return 1 - observed / expected


def cohen_kappa(
    first: Sequence[float], second: Sequence[float], *, is_number: bool
) -> float | None:
    """Return Cohen's kappa of two raters' labels on the same items.

    Weighted by squared differences where they are numbers. None where all labels are the same, and
    for numbers that are not whole, or too far apart.
    """
    from sklearn.metrics import cohen_kappa_score

    values = sorted({*first, *second})
    if len(values) < 2:
        return None
    if not is_number:
        places = {value: place for place, value in enumerate(values)}
        return float(
            cohen_kappa_score([places[value] for value in first], [places[v] for v in second])
        )
    steps = values[-1] - values[0]
    if any(value % 1 for value in values) or steps > _WIDEST:
        return None
    # Each step of the scale counts, also those that nobody took.
    scale = list(range(int(values[0]), int(values[-1]) + 1))
    pair = [int(value) for value in first], [int(value) for value in second]
    return float(cohen_kappa_score(*pair, labels=scale, weights="quadratic"))


def _kappa(labels: pl.DataFrame, raters: Sequence[str], is_number: bool) -> float | None:
    own = [labels.filter(rater=rater) for rater in raters]
    both = own[0].join(own[1], "item", maintain_order="left")
    return cohen_kappa(both["value"].to_list(), both["value_right"].to_list(), is_number=is_number)


def _share(labels: pl.DataFrame) -> float:
    """Return the share of ordered pairs of labels on one item that are equal."""
    by_item = labels.group_by("item").agg(_unequal().alias("apart"), pl.len().alias("n"))
    pairs = (pl.col("n") * (pl.col("n") - 1)).sum()
    return by_item.select(1 - pl.col("apart").sum() / pairs).item()


def _squares() -> pl.Expr:
    """The sum of squared differences over all ordered pairs of values."""
    centred = pl.col("value") - pl.col("value").mean()
    return 2 * pl.len() * (centred**2).sum()


def _unequal() -> pl.Expr:
    """The number of ordered pairs of values that differ."""
    counts = pl.col("value").value_counts().struct.field("count").cast(pl.Int64)
    return pl.len().cast(pl.Int64) ** 2 - (counts**2).sum()
