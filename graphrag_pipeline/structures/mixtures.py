"""Soft clusters of vectors by Gaussian mixtures, as RAPTOR finds them, kept to place new rows in.

Vectors are reduced by principal components and not by UMAP, which the papers use: UMAP needs numba,
its layout moves as a whole when one row is added, and it cannot be kept as a few small arrays. A
mixture in a linear space can, so a new row is only placed in the clusters there are.

A mixture is one clustering: all of HiRAG's, and the global stage of RAPTOR's, whose whole procedure
is ``nested_mixtures``. It is a function of the rows, in their order, and of the seed.

Source: Sarthi et al., 2024 (RAPTOR), section 3: mixtures by BIC, a row in each cluster of
probability above 0.1. Their code tries 1 to 49 components of full covariance, as HiRAG's does.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture
    from threadpoolctl import ThreadpoolController

LEAST_PROBABILITY = 0.1
"""A row is in every cluster of a probability above this, and always in its likeliest."""
FITTED_ROWS = 10_000
"""A mixture is fitted to so many rows at most, drawn with the seed."""

_COMPARED_ROWS = 2500
_ROUNDS = 50
_LEAST_VARIANCE = 1e-3
_LEAST_GAIN = 1e-3
_PATIENCE = 3
_STEP = 1.15
_BLOCK = 8192
_SAME = 1e-12

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Mixture:
    """A fitted clustering of vectors of ``d`` numbers into ``k`` Gaussians in ``r`` dimensions.

    ``centre`` (d,) and ``axes`` (d, r) reduce a vector; ``weights`` (k,), ``means`` (k, r) and
    ``whitening`` (k, r, r), the Cholesky factors of the precisions, are the Gaussians.
    """

    centre: Doubles
    axes: Doubles
    weights: Doubles
    means: Doubles
    whitening: Doubles

    @classmethod
    def fit(
        cls, vectors: Floats, *, seed: int, dimensions: int = 10, most: int = 50, least: int = 1
    ) -> Mixture:
        """Fit ``least`` to ``most`` clusters, by BIC, to the rows of ``vectors`` (n, d).

        Rows are reduced to at most ``dimensions``. Rows that are all equal are one cluster, and
        there are never more than half as many as rows. Raises ValueError without any row.
        """
        if not len(vectors):
            raise ValueError("a mixture needs at least one row")
        random = np.random.default_rng(seed)
        # More threads of BLAS only wait for each other, and would sum in another order.
        with _threads().limit(limits=1):
            rows = _drawn(vectors, FITTED_ROWS, random).astype(np.float64)
            centre, axes = _principal_axes(rows, dimensions, seed)
            gaussians = _best_gaussians((rows - centre) @ axes, least, most, seed, random)
        return cls(centre, axes, *gaussians)

    def __len__(self) -> int:
        """Return the number of clusters, k."""
        return len(self.weights)

    def memberships(self, vectors: Floats, above: float = LEAST_PROBABILITY) -> tuple[Whole, Whole]:
        """Return row and cluster of every membership of ``vectors`` (n, d), ordered by both.

        A row is in each cluster of a probability ``above`` this, at least in the likeliest. A
        cluster may be without rows.
        """
        members = [
            (rows + start, clusters)
            for start in range(0, len(vectors), _BLOCK)
            for rows, clusters in [self._members(vectors[start : start + _BLOCK], above)]
        ]
        none = np.empty(0, np.int64)
        return (
            np.concatenate([none, *(rows for rows, _ in members)]),
            np.concatenate([none, *(clusters for _, clusters in members)]),
        )

    def without(self, clusters: Whole) -> Mixture:
        """Return the mixture with nothing left of these clusters; the others keep their numbers.

        So that a cluster goes with the last of its rows: its mean would tell where they were.
        """
        weights, means, whitening = self.weights.copy(), self.means.copy(), self.whitening.copy()
        for values in (weights, means, whitening):
            values[clusters] = 0
        return Mixture(self.centre, self.axes, weights, means, whitening)

    def reduced(self, vectors: Floats) -> Doubles:
        """Return the rows (n, d) in the space of the Gaussians (n, r)."""
        return (vectors.astype(np.float64) - self.centre) @ self.axes

    def _members(self, vectors: Floats, above: float) -> tuple[Whole, Whole]:
        likely = self._probabilities(self.reduced(vectors))
        member = likely > above
        member[np.arange(len(likely)), likely.argmax(axis=1)] = True
        rows, clusters = np.nonzero(member)
        return rows.astype(np.int64), clusters.astype(np.int64)

    def _probabilities(self, reduced: Doubles) -> Doubles:
        """Return the probability of each cluster (n, k) for each reduced row."""
        likely = np.empty((len(reduced), len(self)))
        for k, (mean, factor) in enumerate(zip(self.means, self.whitening, strict=True)):
            likely[:, k] = -0.5 * (((reduced - mean) @ factor) ** 2).sum(axis=1)
        likely += self._heights
        likely = np.exp(likely - likely.max(axis=1, keepdims=True))
        return likely / likely.sum(axis=1, keepdims=True)

    @cached_property
    def _heights(self) -> Doubles:
        """The logarithm of weight and height of each Gaussian, up to what all have in common."""
        scales = np.diagonal(self.whitening, axis1=1, axis2=2)
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights) + np.log(np.where(scales > 0, scales, 1)).sum(axis=1)
        return logs if np.isfinite(logs).any() else np.zeros_like(logs)


@cache
def _threads() -> ThreadpoolController:
    # Only libraries that are loaded by now are found.
    import sklearn.mixture  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _drawn(rows: npt.NDArray, most: int, random: np.random.Generator) -> npt.NDArray:
    if len(rows) <= most:
        return rows
    return rows[np.sort(random.choice(len(rows), most, replace=False))]


def _principal_axes(rows: Doubles, dimensions: int, seed: int) -> tuple[Doubles, Doubles]:
    """Return the rows' mean and their first axes (d, r), scaled to a variance of 1 on the first.

    Axes along which the rows do not differ are left out.
    """
    from sklearn.decomposition import PCA

    centre = rows.mean(axis=0)
    spread = np.square(rows - centre).sum() / len(rows)
    if spread <= _SAME:
        return centre, np.empty((rows.shape[1], 0))
    pca = PCA(min(dimensions, *rows.shape), random_state=seed).fit(rows)
    variance = np.asarray(pca.explained_variance_)
    is_large = variance > _LEAST_VARIANCE * _LEAST_VARIANCE * spread
    return centre, np.asarray(pca.components_)[is_large].T / math.sqrt(variance[0])


def _best_gaussians(
    reduced: Doubles, least: int, most: int, seed: int, random: np.random.Generator
) -> tuple[Doubles, Doubles, Doubles]:
    """Return weights, means and whitening of as many Gaussians as have the lowest BIC.

    At most half as many as rows; and one that is the likeliest of a single row is left out, so
    that this row joins the next likeliest: a cluster of one has nothing to say.
    """
    compared = _drawn(reduced, _COMPARED_ROWS, random)
    distinct = len(np.unique(compared.round(9), axis=0)) if compared.shape[1] else 1
    if distinct == 1:
        return np.ones(1), reduced[:1], np.eye(reduced.shape[1])[None]
    best = _best_count(
        compared, min(least, distinct), min(most, distinct, len(compared) // 2), seed
    )
    gaussians = _gaussians(reduced, best, seed)
    rows_of = np.bincount(gaussians.predict(reduced), minlength=best)
    is_kept = rows_of >= min(2, rows_of.max())
    weights, means = np.asarray(gaussians.weights_), np.asarray(gaussians.means_)
    return weights[is_kept], means[is_kept], _whitening(gaussians)[is_kept]


def _best_count(reduced: Doubles, least: int, most: int, seed: int) -> int:
    """Return the number of Gaussians of the lowest BIC.

    The search ends once three more counts in turn lower it by less than a thousandth.
    """
    lowest, best, waited = math.inf, least, 0
    for count in _counts(least, most) if least < most else ():
        bic = _gaussians(reduced, count, seed).bic(reduced)
        gained = lowest - bic > _LEAST_GAIN * abs(lowest) if math.isfinite(lowest) else True
        lowest, best = min((lowest, best), (bic, count))
        waited = 0 if gained else waited + 1
        if waited == _PATIENCE:
            break
    return best


def _counts(least: int, most: int) -> Iterator[int]:
    """Yield the numbers of clusters to try: each up to about seven, then ever fewer."""
    count = least
    while count < most:
        yield count
        count = max(count + 1, int(count * _STEP))
    yield most


def _gaussians(reduced: Doubles, count: int, seed: int) -> GaussianMixture:
    """Fit ``count`` Gaussians, of full covariance where there are rows enough to estimate it."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    n, d = reduced.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianMixture(
            count,
            covariance_type="full" if n >= 2 * count * (d + 1) else "tied",
            reg_covar=_LEAST_VARIANCE,
            init_params="k-means++",
            max_iter=_ROUNDS,
            random_state=seed,
        ).fit(reduced)


def _whitening(gaussians: GaussianMixture) -> Doubles:
    factors = np.asarray(gaussians.precisions_cholesky_)
    return (
        factors if factors.ndim == 3 else np.repeat(factors[None], gaussians.n_components, axis=0)
    )


def to_archive(arrays: dict[str, npt.NDArray]) -> bytes:
    """Return arrays by name as a NumPy archive, which holds no pickles."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def from_archive(data: bytes) -> dict[str, npt.NDArray]:
    """Return the arrays of an archive by name."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return dict(archive)
