"""Ranking of items by how strongly a pool of models answers against the key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: spread of the tie break in votes: three standard deviations of it stay below half a vote of one model
TIE_SCALE, TIE_CLIP = 0.15, 3.0
#: items that stand for all others in the signed R^2 of item pairs
REFERENCE_ITEMS = 500
#: items handled at a time where memory grows with items times reference items
CHUNK = 20_000


@dataclass(frozen=True)
class LabelConflict:
    """One value for each item, shape (items,), unless said otherwise.

    Attributes
    ----------
    score : what the ranking goes by, larger = more suspect; NaN where the item has no key or nobody names an option.
    alternative : code of the leading option other than the key, -1 where nobody names one.
    alternative_votes, key_votes, voters : models (counts).
    margin : weighted share for the alternative minus weighted share for the key, -1..1; shares are of all weights, so
        a model that names no option supports neither.
    gradient : mean ability (log-odds) of those who name the alternative minus that of those who name the key; NaN
        where one of both has no voter.  Above 0: the able models are against the key.
    misfit : minus the mean signed R^2 of the item's right/wrong pattern with other items; NaN where all or none are
        right.  Reported, not in the score.
    order : item numbers by descending score, items without a score left out.
    weights, accuracy : shape (models,), weights sum to 1.
    """

    score: NDArray[np.float64]
    alternative: NDArray[np.intp]
    alternative_votes: NDArray[np.intp]
    key_votes: NDArray[np.intp]
    voters: NDArray[np.intp]
    margin: NDArray[np.float64]
    gradient: NDArray[np.float64]
    misfit: NDArray[np.float64]
    order: NDArray[np.intp]
    weights: NDArray[np.float64]
    accuracy: NDArray[np.float64]


def label_conflict(
    letters: ArrayLike,
    key: ArrayLike,
    *,
    families: ArrayLike | None = None,
    tie_break: ArrayLike | None = None,
) -> LabelConflict:
    """Score every item by the ability-weighted margin of the leading alternative over the key.

    Parameters
    ----------
    letters : int codes, shape (items, models)
        Option named, below 0 = none (abstained, unparsed, not run).
    key : int codes, shape (items,)
        Below 0 = no key.
    families : labels, shape (models,), optional
        Models of one family that err alike are weighted down, see :func:`model_weights`.
    tie_break : floats, shape (items,), optional
        Orders items whose votes are alike, smaller = more suspect (NaN = the mean), for instance the logarithm of the
        question's length.  Standardised, it moves the margin by less than one half vote.

    Raises
    ------
    ValueError
        Shapes that do not fit.

    Notes
    -----
    Tried on human-checked keys (MMLU-Redux, 14 models, pools of 3, 5 and 14) and left out of the score, as average
    precision grew by less than 0.003 or fell: steeper ability weights, the gradient, the signed R^2, weighting
    families down (0.005 lower with 14 models; it guards against copies).  Similarity of the key to the nearest option
    gained 0.01 and was not confirmed on held-out items.  What helped is the order of ties by question length: short
    questions against which models agree are more often wrong keys than long ones.  It gained 0.02 to 0.04, and 0.01
    to 0.05 where the direction was chosen on other items; this is one benchmark, so it stays a tie break (with 14
    models a weight of 0.3 per standard deviation cost 0.05).
    """
    said, right = np.asarray(letters), np.asarray(key)
    if said.ndim != 2 or right.shape != said.shape[:1]:
        raise ValueError(f"letters {said.shape} and key {right.shape} do not fit")
    items, models = said.shape
    accuracy, weights = model_weights(said, right, families)
    options = int(max(said.max(initial=-1), right.max(initial=-1))) + 1
    best, alt, for_key = np.full(items, -1.0), np.full(items, -1, np.intp), np.zeros(items)
    votes = np.zeros(items, np.intp)
    for o in range(options):
        here = said == o
        share, count, mine = here @ weights, here.sum(axis=1), right == o
        for_key[mine] = share[mine]
        better = ~mine & (share > best) & (count > 0)
        best[better], alt[better], votes[better] = share[better], o, count[better]
    known = (right >= 0) & (said >= 0).any(axis=1)
    margin = np.where(known, np.maximum(best, 0) - for_key, np.nan)
    score = margin.copy()
    if tie_break is not None:
        score = margin - _tie(np.asarray(tie_break, float), known) * TIE_SCALE / models
    hit, miss = (said == right[:, None]) & known[:, None], (said == alt[:, None]) & (alt >= 0)[:, None]
    ranked = np.flatnonzero(known)
    return LabelConflict(
        score=score,
        alternative=np.where(known, alt, -1),
        alternative_votes=votes,
        key_votes=hit.sum(axis=1),
        voters=(said >= 0).sum(axis=1),
        margin=margin,
        gradient=_gradient(hit, miss, accuracy),
        misfit=np.where(known, -signed_r2(hit, known), np.nan),
        order=ranked[np.argsort(-score[ranked], kind="stable")],
        weights=weights,
        accuracy=accuracy,
    )


def model_weights(
    letters: NDArray, key: NDArray, families: ArrayLike | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Accuracy against the key, and voting weights that sum to 1, both of shape (models,).

    Notes
    -----
    A weight is the accuracy among the items a model answers, divided by ``1 + (m - 1) rho`` in a family of m models:
    the Kish design effect, with rho the excess of the family's same-wrong-option rate over that of pairs from
    different families, ``(inside - across) / (1 - across)``, at least 0.  A family that errs like any other models
    keeps its votes.  On MMLU-Redux log-odds of the accuracy (optimal for independent voters) rank the same.
    """
    keyed = key >= 0
    said, right = letters[keyed], key[keyed][:, None]
    answered = (said >= 0).sum(axis=0)
    accuracy = (said == right).sum(axis=0) / np.maximum(answered, 1)
    weights = accuracy.astype(float)
    if families is not None:
        names = np.asarray(families)
        if names.shape != accuracy.shape:
            raise ValueError(f"{len(names)} families for {len(accuracy)} models")
        weights = weights / _design_effect(said, right, names)
    total = weights.sum()
    return accuracy, weights / total if total > 0 else np.full(len(weights), 1 / max(len(weights), 1))


def _design_effect(said: NDArray, right: NDArray, names: NDArray) -> NDArray[np.float64]:
    wrong = (said >= 0) & (said != right)
    both = wrong.T.astype(np.float32) @ wrong.astype(np.float32)
    same = np.zeros_like(both)
    for o in range(int(said.max(initial=-1)) + 1):
        here = (wrong & (said == o)).astype(np.float32)
        same += here.T @ here
    pair = ~np.eye(len(names), dtype=bool)
    kin = names[:, None] == names[None, :]
    across = _rate(same, both, pair & ~kin)
    effect = np.ones(len(names))
    for name in np.unique(names):
        mine = names == name
        inside = _rate(same, both, pair & mine[:, None] & mine[None, :])
        if mine.sum() > 1 and across < 1:
            effect[mine] = 1 + (mine.sum() - 1) * max((inside - across) / (1 - across), 0.0)
    return effect


def _rate(same: NDArray, both: NDArray, where: NDArray) -> float:
    n = float(both[where].sum())
    return float(same[where].sum()) / n if n else 0.0


def _tie(values: NDArray, known: NDArray) -> NDArray[np.float64]:
    if values.shape != known.shape:
        raise ValueError(f"{values.shape} values to break ties of {known.shape} items")
    use = known & np.isfinite(values)
    spread = values[use].std() if use.any() else 0.0
    if spread == 0:
        return np.zeros(len(values))
    return np.where(use, np.clip((values - values[use].mean()) / spread, -TIE_CLIP, TIE_CLIP), 0.0)


def _gradient(hit: NDArray, miss: NDArray, accuracy: NDArray) -> NDArray[np.float64]:
    a = np.clip(accuracy, 1e-3, 1 - 1e-3)
    ability = np.log(a / (1 - a))
    with np.errstate(invalid="ignore", divide="ignore"):
        return (miss @ ability) / miss.sum(axis=1) - (hit @ ability) / hit.sum(axis=1)


def signed_r2(hits: ArrayLike, use: ArrayLike | None = None) -> NDArray[np.float64]:
    """Mean signed R^2 of each item's right/wrong pattern over models with those of other items.

    Parameters
    ----------
    hits : bool, shape (items, models)
    use : bool, shape (items,), optional
        Items that may serve as the others.

    Notes
    -----
    Of two binary patterns the isotonic regression is the pair of group means, so the signed isotonic R^2 is
    ``sign(phi) phi^2``.  The others are at most :data:`REFERENCE_ITEMS` items at even distances; an item is not
    compared with itself.  NaN for items that all or no models get right.
    """
    h = np.asarray(hits, np.float32)
    z = h - h.mean(axis=1, keepdims=True)
    norm = np.sqrt((z * z).sum(axis=1, keepdims=True))
    varies = norm[:, 0] > 0
    z = np.divide(z, norm, out=np.zeros_like(z), where=norm > 0)
    others = np.flatnonzero(varies if use is None else varies & np.asarray(use, bool))
    if len(others) > REFERENCE_ITEMS:
        others = others[np.linspace(0, len(others) - 1, REFERENCE_ITEMS).round().astype(int)]
    out = np.full(len(h), np.nan)
    if len(others) < 2:
        return out
    for start in range(0, len(h), CHUNK):
        phi = z[start : start + CHUNK] @ z[others].T
        out[start : start + CHUNK] = (phi * np.abs(phi)).sum(axis=1)
    own = np.isin(np.arange(len(h)), others)
    out = (out - own) / (len(others) - own)
    return np.where(varies, out, np.nan)
