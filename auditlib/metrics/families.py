"""Multiplicity: which p-values belong together, and their adjusted values."""

from __future__ import annotations

import pandas as pd

from auditlib.stats.multiplicity import bh, holm

#: families whose members are checks of the headline, not claims: they get no q
WITHOUT_Q = ("", "sensitivity", "headline")


def add_q(statistics: pd.DataFrame) -> pd.DataFrame:
    """Benjamini-Hochberg q inside each family of strata or design labels of one metric and arm."""
    out = statistics.copy()
    for family, part in out.groupby("family", sort=False):
        if family not in WITHOUT_Q:
            out.loc[part.index, "q"] = bh(part["p"].to_numpy())
    return out


def holm_over_pools(p: pd.Series) -> pd.Series:
    """Holm-adjusted headline p of all pools of a run."""
    return pd.Series(holm(p.to_numpy()), index=p.index)
