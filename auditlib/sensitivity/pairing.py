"""Calls under a change beside the call to the item as it is, and means by item."""

from __future__ import annotations

import pandas as pd

ITEM = ["model", "item"]
KIND = ["family", "variant", "level"]


def full_calls(calls: pd.DataFrame) -> pd.DataFrame:
    """Calls to the items as they are, in the order of their samples."""
    here = calls["family"].eq("full") & calls["form"].eq("")
    return calls[here].sort_values("sample", kind="stable")


def full_of(calls: pd.DataFrame) -> pd.DataFrame:
    """One row per model and item as it is: ``hit_full`` and ``margin_full`` (means of the samples), ``answer_full``
    (of the first sample)."""
    full = full_calls(calls)
    out = full.groupby(ITEM, sort=False).agg(
        hit_full=("hit", "mean"), margin_full=("margin", "mean"), answer_full=("meaning", "first")
    )
    return out.reset_index()


def pairs(calls: pd.DataFrame, *, forms: bool = False) -> pd.DataFrame:
    """Calls under a change with the columns of :func:`full_of`; calls whose item was not asked as it is are left out.

    Parameters
    ----------
    forms : take the other forms of the question instead of the changes of the image.
    """
    changed = calls["form"].ne("") & calls["family"].eq("full") if forms else (
        calls["form"].eq("") & calls["family"].ne("full"))  # fmt: skip
    return calls[changed].merge(full_of(calls), on=ITEM, how="inner")


def item_means(calls: pd.DataFrame) -> pd.DataFrame:
    """Mean hit and margin by model, item and condition, over seeds and samples; calls without a reply left out."""
    here = calls[calls["form"].eq("") & calls["hit"].notna()]
    out = here.groupby([*ITEM, *KIND], sort=False).agg(
        image=("image", "first"),
        hit=("hit", "mean"),
        margin=("margin", "mean"),
        calls=("hit", "size"),
        k=("k", "first"),
    )
    return out.reset_index()
