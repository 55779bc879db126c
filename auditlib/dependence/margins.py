"""Do labels hold for models that had no part in them? Margins of a left-out family, by group of items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.dependence.diagnosis import diagnose
from auditlib.dependence.profile import LABELS
from auditlib.dependence.structure import StructuralPrior
from auditlib.dependence.tensor import ResponseTensor
from auditlib.errors import AuditError
from auditlib.stats.multiplicity import holm
from auditlib.threads import single_threaded

#: permuted labels held at once
_BATCH = 1_000_000


@dataclass(frozen=True)
class Margins:
    """Margins of left-out families.

    Attributes
    ----------
    table : one row per family and group (R, V, T, S): ``subjects`` left out, ``items`` in the group, ``margin``,
        ``low``, ``high`` (item bootstrap), ``null`` (mean under permuted labels), ``p`` and ``p_holm`` (one-sided).
    positive, of : margins above 0, and margins there are. positive_null : positive ones expected by permutation.
    level, draws : as asked.
    """

    table: pd.DataFrame
    positive: int
    of: int
    positive_null: float
    level: float
    draws: int


def group_margins(accuracy: ArrayLike) -> NDArray[np.float64]:
    """What each group should show, from its mean accuracy (..., 4 groups, 4 conditions); shape (..., 4).

    R: ``min(V, T) - none``; V: ``V - T``; T: ``T - V``; S: ``VT - max(V, T)``.
    """
    q = np.asarray(accuracy, float)
    image, question = q[..., 1], q[..., 2]
    return np.stack([
        np.minimum(image, question)[..., 0] - q[..., 0, 0],
        (image - question)[..., 1],
        (question - image)[..., 2],
        q[..., 3, 3] - np.maximum(image, question)[..., 3],
    ], axis=-1)  # fmt: skip


def _group_means(rate: NDArray, label: NDArray) -> NDArray[np.float64]:
    """Mean accuracy (..., 4 groups, 4 conditions) of items (items, 4) under labels (..., items); NaN without items."""
    out = []
    for j in range(4):
        own = (label == j).astype(float)
        size = own.sum(-1)[..., None]
        out.append(np.divide(own @ rate, size, out=np.full((*own.shape[:-1], 4), np.nan), where=size > 0))
    return np.stack(out, axis=-2)


def label_margins(
    rate: ArrayLike, label: ArrayLike, *, rng: np.random.Generator, draws: int = 2_000, level: float = 0.95
) -> pd.DataFrame:
    """Margins of one set of subjects, with an item bootstrap and a null of permuted labels.

    Parameters
    ----------
    rate : shape (items, 4), accuracy of the left-out subjects, solvable items only
    label : int, shape (items,)

    Notes
    -----
    The bootstrap resamples items within each group. The permutation keeps group sizes; ``p = (1 + #{null >= margin}) /
    (draws + 1)``. V and T margins mirror each other, so labels without content make about half of them positive.
    """
    x, z = np.asarray(rate, float), np.asarray(label)
    if x.ndim != 2 or x.shape != (len(z), 4) or np.isnan(x).any():
        raise ValueError("rates must be a full matrix of items x 4 conditions, one label per item")
    margin = group_margins(_group_means(x, z))
    drawn, null = np.empty((draws, 4, 4)), np.empty((draws, 4))
    with single_threaded():
        for j in range(4):
            part = x[z == j]
            n = len(part)
            drawn[:, j] = rng.multinomial(n, np.full(n, 1 / n), size=draws) @ part / n if n else np.nan
        step = max(1, _BATCH // max(len(z), 1))
        for start in range(0, draws, step):
            turned = rng.permuted(np.tile(z, (min(step, draws - start), 1)), axis=1)
            null[start : start + step] = group_margins(_group_means(x, turned))
    tail = (1 - level) / 2
    low, high = np.quantile(group_margins(drawn), [tail, 1 - tail], axis=0)
    p = np.where(np.isnan(margin), np.nan, (1 + (null >= margin - 1e-12).sum(0)) / (draws + 1))
    return pd.DataFrame({
        "group": list(LABELS), "items": [(z == j).sum() for j in range(4)], "margin": margin, "low": low, "high": high,
        "null": null.mean(0), "p": p, "null_positive": (null > 0).mean(0),
    })  # fmt: skip


def leave_family_out(
    responses: ResponseTensor,
    prior: StructuralPrior | None = None,
    *,
    rng: np.random.Generator,
    families: Sequence[str] | None = None,
    draws: int = 2_000,
    level: float = 0.95,
    **options: Any,
) -> Margins:
    """Label items without one family of models, then look at that family's answers.

    Parameters
    ----------
    responses : with families named
    families : those to leave out; every named one by default
    options : passed to :func:`auditlib.dependence.diagnosis.diagnose`

    Notes
    -----
    Items that stay undetermined without the family, or that it was not asked under every condition, do not count.

    Raises
    ------
    AuditError
        No families, one that no model belongs to, or fewer than two models left.
    """
    named = np.array(responses.families, dtype=object)
    chosen = list(dict.fromkeys(f for f in named if f)) if families is None else list(families)
    if not chosen:
        raise AuditError("no model names its family", mend="add a family column, or name families")
    parts = []
    for family in chosen:
        own = named == family
        if not own.any() or (~own).sum() < 2:
            raise AuditError(
                f"family {family!r} has {int(own.sum())} of {len(own)} models",
                mend="name a family that some, and not all but one, of the models belong to",
            )
        d = diagnose(responses.take_subjects(~own), prior, compare=False, **options)
        rate = responses.take_subjects(own).accuracy
        usable = ~d.undetermined & ~np.isnan(rate).any(1)
        part = label_margins(rate[usable], d.label[usable], rng=rng, draws=draws, level=level)
        parts.append(part.assign(family=family, subjects=int(own.sum())))
    table = pd.concat(parts, ignore_index=True)
    table["p_holm"] = holm(table["p"])
    known = table["margin"].notna()
    expected = float(table.loc[known, "null_positive"].sum())
    shown = ["family", "subjects", "group", "items", "margin", "low", "high", "null", "p", "p_holm"]
    return Margins(table[shown], int((table["margin"] > 0).sum()), int(known.sum()), expected, level, draws)
