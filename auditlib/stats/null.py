"""How many items would fall in a region of (F, B) if full and blind counts had no item-level link."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditlib.stats.rook import blocks, exact_tail
from auditlib.stats.tables import (
    as_blocks,
    composition,
    group_tables,
    joint_table,
    lump,
    moments,
    random_counts,
    tie_region,
)

__all__ = ["NullResult", "composition", "group_tables", "joint_table", "region_null", "tie_region"]

NAN = float("nan")


@dataclass(frozen=True)
class NullResult:
    """A region count beside its permutation law.  Counts are items; shares divide by ``n``.

    ``p_exact`` is NaN where no exact law was computed, ``p_tables`` and ``table_*`` where no tables were drawn.
    ``p_equal`` is ``P(T = observed)`` of the law that ``p_method`` names; ``draws`` are shares of the random tables.
    ``p_normal`` is a normal tail with continuity correction, for want of an exact law in large pools.
    """

    n: int
    observed: int
    mean: float
    sd: float
    p_exact: float
    p_lower: float
    p_equal: float
    p_tables: float
    p_normal: float
    table_mean: float
    table_sd: float
    draws: NDArray[np.float64] = field(repr=False, compare=False)

    @property
    def p_method(self) -> Literal["exact", "tables", "normal"]:
        """The best law at hand: exact, else random tables, else the normal tail."""
        if not math.isnan(self.p_exact):
            return "exact"
        return "normal" if math.isnan(self.p_tables) else "tables"

    @property
    def p(self) -> float:
        """One-sided p (upper tail) of :attr:`p_method`."""
        return {"exact": self.p_exact, "tables": self.p_tables, "normal": self.p_normal}[self.p_method]

    @property
    def share(self) -> float:
        return self.observed / self.n if self.n else NAN

    @property
    def null(self) -> float:
        return self.mean / self.n if self.n else NAN

    @property
    def excess(self) -> float:
        return (self.observed - self.mean) / self.n if self.n else NAN

    def randomised_p(self, u: float) -> float:
        """``P(T > observed) + u P(T = observed)``: uniform under the null for uniform ``u`` in [0, 1)."""
        return self.p - (1.0 - u) * self.p_equal

    def as_row(self, method: Literal["exact", "tables", "normal"] | None = None) -> dict[str, Any]:
        """Fields of a statistics row; ``method="tables"`` puts the random tables' mean, sd and p in their place."""
        method = method or self.p_method
        null, sd = (self.table_mean, self.table_sd) if method == "tables" else (self.mean, self.sd)
        p = {"exact": self.p_exact, "tables": self.p_tables, "normal": self.p_normal}[method]
        n = self.n or NAN
        return {"n": self.n, "estimate": self.share, "null": null / n, "null_sd": sd / n,
                "excess": (self.observed - null) / n, "p": p, "p_method": method}  # fmt: skip


def region_null(
    tables: ArrayLike | Sequence[ArrayLike],
    region: ArrayLike | Sequence[ArrayLike],
    *,
    rng: np.random.Generator | None = None,
    observed: int | None = None,
    draws: int = 999,
    exact: Literal["auto", "always", "never"] = "auto",
    max_exact: int = 5000,
) -> NullResult:
    """The law of a region count when blind counts are permuted over items inside each table.

    Parameters
    ----------
    tables : int array (levels_F, levels_B), or a sequence of them
        Joint tables of full and blind counts.  One table is the pooled null; several permute inside strata or
        missingness groups only, and their counts are added.
    region : boolean array of the table's shape, or one for each table
    rng : numpy Generator
        Needed when ``draws`` > 0.
    observed : int, optional
        Count to be judged; the region count of ``tables`` by default.
    draws : int
        Random tables for the Monte-Carlo columns; 0 for none.
    exact : "auto", "always" or "never"
        ``auto`` computes the exact p where the region is a union of disjoint blocks in every table (a tie, a
        rectangle) and there are at most ``max_exact`` items; ``always`` has no limit of items.

    Returns
    -------
    NullResult

    Raises
    ------
    ValueError
        Shapes disagree, tables hold no counts, or ``draws`` > 0 without ``rng``.

    Notes
    -----
    One permutation of item ids, applied to all models' blind hits, is a random contingency table with fixed margins.
    Mean and variance are closed forms (:func:`auditlib.stats.tables.moments`), the exact p comes from rook
    polynomials (:func:`auditlib.stats.rook.exact_tail`), the Monte-Carlo p is ``(g + 1) / (draws + 1)`` with g tables
    at or above the observed count.

    Examples
    --------
    >>> r = region_null([[2, 0], [0, 2]], tie_region(2), draws=0)
    >>> r.observed, r.mean, round(r.p, 4)
    (4, 2.0, 0.1667)
    """
    raw = as_blocks(tables, region)
    n = sum(int(t.sum()) for t, _ in raw)
    seen = sum(int(t[a].sum()) for t, a in raw) if observed is None else int(observed)
    if not n:
        return NullResult(0, seen, *[NAN] * 9, draws=np.empty(0))
    parts = [lump(t, a) for t, a in raw]
    each = [moments(t, a) for t, a in parts]
    mean, sd = math.fsum(m for m, _ in each), math.sqrt(math.fsum(v for _, v in each))

    p_exact = p_lower = p_equal = NAN
    sizes = [blocks(t, a) for t, a in parts]
    if exact != "never" and None not in sizes and (exact == "always" or n <= max_exact):
        tail = exact_tail([(int(t.sum()), s) for (t, _), s in zip(parts, sizes, strict=True)], seen)
        p_exact, p_equal, p_lower = tail.upper, tail.equal, tail.lower

    counts = np.zeros(draws, np.int64)
    if draws:
        if rng is None:
            raise ValueError("random tables need an rng")
        for t, a in parts:
            counts += np.concatenate(list(random_counts(t, a, draws, rng)))
    p_tables = (1 + int((counts >= seen).sum())) / (draws + 1) if draws else NAN
    if math.isnan(p_exact) and draws:
        p_equal = (1 + int((counts == seen).sum())) / (draws + 1)
        p_lower = (1 + int((counts <= seen).sum())) / (draws + 1)
    return NullResult(
        n, seen, mean, sd, p_exact, p_lower, p_equal, p_tables, _normal_tail(seen, mean, sd),
        float(counts.mean()) if draws else NAN, float(counts.std(ddof=1)) if draws > 1 else NAN, draws=counts / n,
    )  # fmt: skip


def _normal_tail(seen: int, mean: float, sd: float) -> float:
    if sd <= 1e-12:
        return 1.0 if seen <= mean + 1e-9 else 0.0
    return 0.5 * math.erfc((seen - 0.5 - mean) / sd / math.sqrt(2))
