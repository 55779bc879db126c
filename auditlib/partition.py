"""Which categories hold when the runs of a benchmark disagree about them: those of a majority, taken as a whole."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Agreed:
    """The categories that most owners share.

    Attributes
    ----------
    values : item to category, as the agreeing owners have it; empty when no majority agrees.
    deviants : owners (models or runs) with another category for some item, sorted.
    items : items on which owners differ.
    """

    values: dict[str, str]
    deviants: tuple[str, ...]
    items: int


def agreed_partition(facts: pd.DataFrame, column: str, owner: str) -> Agreed | None:
    """Find the owners that agree on every item they share, and what they say; None where nobody disagrees.

    Two partitions of one benchmark are never mixed: an owner that differs on any item from the majority gives none of
    its categories. Without a majority (more than half of the owners) there is no agreed partition.

    Parameters
    ----------
    facts : columns ``item``, ``column`` and ``owner``; empty categories say nothing.
    """
    known = facts.loc[facts[column].notna() & (facts[column] != ""), ["item", column, owner]].drop_duplicates()
    spread = known.groupby("item", sort=False)[column].nunique()
    clash = spread.index[spread > 1]
    if not len(clash):
        return None
    disputed = known[known["item"].isin(set(clash))]
    torn = set(disputed.loc[disputed.duplicated(["item", owner], keep=False), owner])
    wide = disputed[~disputed[owner].isin(torn)].pivot(index="item", columns=owner, values=column)
    owners = sorted(set(known[owner]) - torn)
    best: list[str] = []
    for one in owners:
        company = [two for two in owners if _agree(wide, one, two)]
        # agreement is not transitive where owners share no disputed item: all must agree with each other
        company = [two for two in company if all(_agree(wide, two, three) for three in company)]
        if len(company) > len(best):
            best = company
    if 2 * len(best) <= len(set(known[owner])):
        return Agreed({}, tuple(sorted(set(disputed[owner]))), len(clash))
    first = known[known[owner].isin(best)].drop_duplicates("item")
    deviants = tuple(sorted(set(disputed[owner]) - set(best)))
    return Agreed(dict(zip(first["item"], first[column])), deviants, len(clash))


def _agree(wide: pd.DataFrame, one: str, two: str) -> bool:
    if one == two or one not in wide or two not in wide:
        return True
    both = wide[[one, two]].dropna()
    return bool((both[one] == both[two]).all())
