"""Does a subset of items keep the order of models, and keep damaged items out? A pool with known corrupted items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.dependence.rankings import Rankers, fit_rankers, subject_utilities, utilities
from auditlib.dependence.structure import StructuralPrior
from auditlib.dependence.tensor import ResponseTensor
from auditlib.errors import AuditError

#: percentages of the pool that are selected
SHARES = (1, 2, 5, 10, 20, 50)
PROTOCOLS = ("full", "m3irt")


@dataclass(frozen=True)
class ContaminatedPool:
    """Responses to clean and corrupted items, and which are corrupted, shape (items,)."""

    responses: ResponseTensor
    corrupted: NDArray[np.bool_]


@dataclass(frozen=True)
class Refinement:
    """Rank preservation of selected subsets on held-out subjects.

    Attributes
    ----------
    table : one row per utility and share: ``items``, means and standard deviations over splits of ``spearman``,
        ``kendall``, ``corrupted``; ``defined`` is the number of splits whose correlation exists.
    draws : one row per split, utility and share. Splits overlap in subjects: deviations are no standard errors.
    protocol, splits : as asked.
    """

    table: pd.DataFrame
    draws: pd.DataFrame
    protocol: str
    splits: int


def contaminate(clean: ResponseTensor, corrupted: ResponseTensor) -> ContaminatedPool:
    """One pool of clean items and corrupted ones, both answered by the same subjects under four conditions.

    Raises
    ------
    AuditError
        Subjects that differ, or an item name in both.
    """
    order = {name: j for j, name in enumerate(corrupted.subjects)}
    if set(order) != set(clean.subjects):
        odd = sorted(set(order) ^ set(clean.subjects))
        raise AuditError(f"{odd[0]} answered one of the two parts only", mend="give both parts for the same models")
    both = set(clean.items) & set(corrupted.items)
    if both:
        raise AuditError(f"item {sorted(both)[0]} is clean and corrupted", mend="rename the corrupted items")
    other = corrupted.take_subjects([order[name] for name in clean.subjects])
    joined = ResponseTensor(
        np.concatenate([clean.hits, other.hits], axis=1), np.concatenate([clean.trials, other.trials], axis=1),
        np.concatenate([clean.k, other.k]), clean.subjects, clean.items + other.items, clean.families,
    )  # fmt: skip
    return ContaminatedPool(joined, np.arange(len(joined.items)) >= len(clean.items))


def rank_correlations(first: ArrayLike, second: ArrayLike) -> tuple[float, float]:
    """Spearman's rho and Kendall's tau-b; NaN where either side does not vary or fewer than two pairs are known."""
    from scipy.stats import kendalltau, spearmanr

    x, y = np.asarray(first, float), np.asarray(second, float)
    known = ~(np.isnan(x) | np.isnan(y))
    x, y = x[known], y[known]
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan"), float("nan")
    return float(spearmanr(x, y)[0]), float(kendalltau(x, y)[0])


def rank_curve(
    rate: ArrayLike, utility: ArrayLike, reference: ArrayLike | None = None, *, shares: Sequence[float] = SHARES
) -> pd.DataFrame:
    """How well subsets of highest utility keep the order of subjects.

    Parameters
    ----------
    rate : shape (subjects, items), accuracy on the full item, NaN where not asked
    utility : shape (items,); ties keep their order
    reference : shape (subjects,), what their order is compared with; accuracy on all items by default
    shares : percentages of the items

    Returns
    -------
    DataFrame with share, items, spearman, kendall.
    """
    x = np.asarray(rate, float)
    order = np.argsort(-np.asarray(utility, float), kind="stable")
    against = _mean(x) if reference is None else np.asarray(reference, float)
    rows = []
    for share in shares:
        count = subset_size(x.shape[1], share)
        rho, tau = rank_correlations(_mean(x[:, order[:count]]), against)
        rows.append({"share": share, "items": count, "spearman": rho, "kendall": tau})
    return pd.DataFrame(rows)


def subset_size(items: int, share: float) -> int:
    """Number of items in a percentage of them, at least one."""
    if not 0 < share <= 100:
        raise ValueError(f"a share of {share:g} per cent")
    return max(1, round(items * share / 100))


def refine(
    pool: ContaminatedPool,
    prior: StructuralPrior | None = None,
    *,
    protocol: str = "full",
    splits: int = 6,
    shares: Sequence[float] = SHARES,
    seed: int = 0,
) -> Refinement:
    """Select by every utility on half of the subjects, and correlate accuracies of the other half.

    Parameters
    ----------
    pool : with at least eight subjects, so that each half has four
    prior : structure of all items of the pool; adds utilities that use it
    protocol : ``full`` (default) correlates accuracy on the full item of the subset with that on all clean items.
        ``m3irt`` correlates means over all four conditions, and each held-out subject's subset is chosen by its own
        abilities, scored on frozen items, where the utility depends on abilities.
    splits : at least 6
    shares : percentages of the pool

    Raises
    ------
    AuditError
        Fewer than eight subjects, no clean or no corrupted items. ValueError for options that do not exist.
    """
    from auditlib.seeds import generator

    responses, bad = pool.responses, np.asarray(pool.corrupted, bool)
    m = len(responses.subjects)
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol {protocol!r} is none of {', '.join(PROTOCOLS)}")
    if splits < 6:
        raise ValueError(f"{splits} splits: halves of a few subjects vary too much for fewer than six")
    if m < 8:
        raise AuditError(f"{m} models answered the pool", mend="give at least eight: half are fitted, half held out")
    if bad.all() or not bad.any():
        raise AuditError("the pool has no clean or no corrupted items", mend="mark both kinds")
    with np.errstate(invalid="ignore"):
        cells = responses.hits / responses.trials
    rate = cells[:, :, 3] if protocol == "full" else _mean(cells)
    reference = _mean(rate[:, ~bad])
    counts = [subset_size(len(bad), s) for s in shares]
    rows = []
    for split in range(splits):
        order = generator(seed, "refinement", str(split)).permutation(m)
        held = order[m // 2 :]
        rng = generator(seed, "refinement order", str(split))
        rankers = fit_rankers(responses.take_subjects(order[: m // 2]), prior)
        chosen = _orders(rankers, responses, held, rng, protocol)
        for name, orders in chosen.items():
            for share, count in zip(shares, counts):
                at = np.broadcast_to(orders[:, :count], (len(held), count))
                rho, tau = rank_correlations(_mean(rate[held[:, None], at]), reference[held])
                rows.append({"split": split, "utility": name, "share": share, "items": count, "spearman": rho,
                             "kendall": tau, "corrupted": float(bad[at].mean())})  # fmt: skip
    draws = pd.DataFrame(rows)
    grouped = draws.groupby(["utility", "share"], sort=False)
    table = grouped.agg(
        items=("items", "first"), spearman=("spearman", "mean"), spearman_sd=("spearman", "std"),
        kendall=("kendall", "mean"), kendall_sd=("kendall", "std"), corrupted=("corrupted", "mean"),
        corrupted_sd=("corrupted", "std"), defined=("spearman", "count"),
    ).reset_index()  # fmt: skip
    return Refinement(table, draws, protocol, splits)


def _orders(
    rankers: Rankers, responses: ResponseTensor, held: NDArray, rng: np.random.Generator, protocol: str
) -> dict[str, NDArray[np.int64]]:
    """Items from best to worst by each utility: one row for all held-out subjects, or one each."""
    found = {name: u[None] for name, u in utilities(rankers, rng).items()}
    if protocol == "m3irt":
        own = [subject_utilities(rankers, responses.hits[j], responses.trials[j]) for j in held]
        found |= {name: np.stack([u[name] for u in own]) for name in own[0]}
    return {name: np.argsort(-u, axis=1, kind="stable") for name, u in found.items()}


def _mean(x: NDArray) -> NDArray[np.float64]:
    """Mean over the last axis of what is known; NaN where nothing is."""
    known = ~np.isnan(x)
    size = known.sum(-1)
    return np.divide(np.where(known, x, 0).sum(-1), size, out=np.full(size.shape, np.nan), where=size > 0)
