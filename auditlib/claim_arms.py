"""Does the audit say the same under two ways of scoring? Paired differences over items, with equivalence tests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


@dataclass(frozen=True)
class ArmsDifference:
    """Other arm minus headline arm, over the ``n`` items counted in both.

    ``share`` and ``excess`` are differences of the zero-gain share and of its within-stratum excess (pooled where there
    are no strata), ``*_se`` their standard errors, ``*_p`` the larger of the two one-sided p of the equivalence test.
    """

    other: str
    n: int
    share: float
    share_se: float
    share_p: float
    excess: float
    excess_se: float
    excess_p: float


def arms_difference(audit: Any, margin_share: float, margin_excess: float) -> ArmsDifference | None:
    """Compare the headline arm with the first arm that has no judge; None where no items are counted in both.

    Notes
    -----
    Two one-sided tests (Schuirmann 1987) with the normal law, on paired values over items, or over clusters where items
    share a picture. The excess enters linearised: an item adds ``1[F = B] - P(B = F_i) - P(F = B_i)`` to it, with the
    margins of its own permutation block, plus a constant.
    """
    table = audit.counts
    other = next((a for a in audit.steps["arms"] if a.startswith("exact") and a in set(table["arm"])), None)
    if other is None or audit.arm == other:
        return None
    arms = [table[table["arm"] == a].set_index("item") for a in (audit.arm, other)]
    both = arms[0].index.intersection(arms[1].index, sort=False)
    if not len(both):
        return None
    one, two = (a.loc[both] for a in arms)
    block = one["stratum"].astype(object).where(one["stratum"].notna(), "").astype(str) + "\x1f" + one["k"].astype(str)
    code = pd.factorize(block + "\x1f" + one["n"].astype(str) + "\x1f" + two["n"].astype(str))[0]
    cluster = _clusters(audit, both)
    ties = [(a["F"] == a["B"]).to_numpy(float) for a in (one, two)]
    share, share_se = _mean(ties[1] - ties[0], cluster)
    parts = [_linear(a["F"].to_numpy(), a["B"].to_numpy(), code) for a in (one, two)]
    excess = parts[1][0] - parts[0][0]
    _, excess_se = _mean(parts[1][1] - parts[0][1], cluster)
    return ArmsDifference(other, len(both), share, share_se, _tost(share, share_se, margin_share), excess, excess_se,
                          _tost(excess, excess_se, margin_excess))  # fmt: skip


def _linear(f: NDArray, b: NDArray, code: NDArray) -> tuple[float, NDArray[np.float64]]:
    """Excess share, and what each item adds to it (linearised)."""
    tie = (f == b).astype(float)
    null, adds = 0.0, tie.copy()
    for c in range(int(code.max()) + 1):
        here = code == c
        n, levels = int(here.sum()), int(max(f[here].max(), b[here].max())) + 1
        pf, pb = (np.bincount(x[here], minlength=levels) / n for x in (f, b))
        null += n * float(pf @ pb)
        adds[here] -= pb[f[here]] + pf[b[here]] - float(pf @ pb)
    return (float(tie.sum()) - null) / len(f), adds


def _mean(x: NDArray[np.float64], cluster: NDArray | None) -> tuple[float, float]:
    mean, n = float(x.mean()), len(x)
    parts = x - mean if cluster is None else np.bincount(cluster, x - mean)
    g = len(parts)
    return mean, math.sqrt(g / (g - 1) * float(parts @ parts)) / n if g > 1 else math.nan


def _tost(difference: float, se: float, margin: float) -> float:
    if math.isnan(se):
        return math.nan
    if se <= 1e-12:
        return 0.0 if abs(difference) < margin else 1.0
    return 0.5 * math.erfc((margin - abs(difference)) / se / math.sqrt(2))


def _clusters(audit: Any, items: pd.Index) -> NDArray | None:
    for column in ("cluster", "image_key"):
        if column in audit.items and audit.items[column].notna().any():
            names = audit.items.set_index("item")[column].reindex(items).astype(object)
            alone = names.isna() | names.eq("")
            return pd.factorize(names.where(~alone, "\0" + items.to_series().astype(str)))[0]
    return None
