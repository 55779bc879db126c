"""Lists and sets against what is known: keys that people checked, and pools of different size of one benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.calibration.review_sample import review_sample
from auditlib.errors import AuditError
from auditlib.frames import LETTERS
from auditlib.readers.files import open_table
from auditlib.stats.gain_mixture import fit_gain_mixture
from auditlib.stats.gain_prevalence import prevalence_set
from auditlib.stats.label_conflict import LabelConflict, label_conflict
from auditlib.stats.local_fdr import local_fdr
from auditlib.stats.precision_bounds import precision_bounds

#: sizes of the pools, places of the list, items that people look at
SIZES, AT, REVIEWED = (3, 5, 14), (25, 50, 100), 100
#: what people call a defect of the key; the first of them is a wrong key
KEY_DEFECTS = ("wrong_groundtruth", "multiple_correct_answers", "no_correct_answer")
#: columns of the table of checked keys; every other one is a model's letters
COLUMNS = ("question", "choices", "groundtruth_answer", "error_type")


@dataclass(frozen=True)
class Checked:
    """A pool whose keys people have checked.

    Attributes
    ----------
    letters : codes of the answers, shape (items, models), -1 = none. key : codes, shape (items,).
    family : shape (models,). length : logarithm of the question's length, shape (items,).
    found : what people found -> boolean, shape (items,).
    choices : options as they stand in the table, shape (items,).
    """

    letters: NDArray[np.int8]
    key: NDArray[np.int8]
    family: NDArray
    length: NDArray[np.float64]
    found: Mapping[str, NDArray[np.bool_]]
    choices: NDArray

    def pool(self, models: NDArray, *, tie: bool = True, families: bool = False) -> LabelConflict:
        """The list that some of the models make."""
        kin = self.family[models] if families else None
        return label_conflict(self.letters[:, models], self.key, families=kin, tie_break=self.length if tie else None)


def read_checked(path: Path) -> Checked:
    """Read a table with one row per item: its key as a number from 0, what people found, and a column per model.

    Raises
    ------
    AuditError
        A column is missing, no column of a model is left, or a key is no number.
    """
    table = open_table(path)
    lost = [c for c in COLUMNS if c not in table]
    if lost:
        raise AuditError(f"no column {lost[0]!r}", file=path, mend=f"give {', '.join(COLUMNS)}, and one per model")
    models = [c for c in table.columns if c not in COLUMNS]
    if not models:
        raise AuditError("no column of a model's letters", file=path, mend="give one column per model")
    key = pd.to_numeric(table["groundtruth_answer"], errors="coerce")
    if key.isna().any():
        at = int(key.index[key.isna()][0])
        raise AuditError("the key is no number", file=path, row=at + 2, mend="number the options from 0")
    code = {letter: i for i, letter in enumerate(LETTERS)}
    letters = np.stack([table[m].map(code).fillna(-1).to_numpy(np.int8) for m in models], 1)
    error = table["error_type"]
    return Checked(
        letters,
        key.to_numpy(np.int8),
        np.array([m.split("_")[0] for m in models]),
        np.log(np.maximum(table["question"].str.len().to_numpy(float), 1)),
        {"wrong key": error.eq(KEY_DEFECTS[0]).to_numpy(), "key defect": error.isin(KEY_DEFECTS).to_numpy()},
        table["choices"].to_numpy(object),
    )


def pools_of(size: int, models: int, count: int = 40, seed: int = 0) -> list[NDArray[np.intp]]:
    """``count`` different random pools of a size (all there are, where they are fewer), or the one of all models."""
    from math import comb

    if size >= models:
        return [np.arange(models)]
    rng, out = np.random.default_rng(seed), set()
    while len(out) < min(count, comb(models, size)):
        out.add(tuple(sorted(rng.choice(models, size, replace=False).tolist())))
    return [np.array(s) for s in sorted(out)]


def average_precision(score: NDArray, positive: NDArray, weight: NDArray | None = None) -> float:
    """Mean of the precision at the positives; items of one score share the precision at the end of their group.

    ``weight`` counts an item several times (a bootstrap).
    """
    w = np.ones(len(score)) if weight is None else weight
    _, group = np.unique(-score, return_inverse=True)
    n, hit = np.bincount(group, weights=w), np.bincount(group, weights=w * positive)
    with np.errstate(invalid="ignore"):
        precision = np.nan_to_num(np.cumsum(hit) / np.cumsum(n))
    return float((hit * precision).sum() / hit.sum())


def realised(order: NDArray, found: NDArray, at: Sequence[int] = AT) -> NDArray[np.float64]:
    """Share of defects among the first items of a list."""
    return np.array([found[order[:r]].mean() for r in at])


def ranking_table(data: Checked, *, sizes: Sequence[int] = SIZES, count: int = 40, draws: int = 200,
                  seed: int = 1) -> pd.DataFrame:  # fmt: skip
    """Average precision of the list and of the plain margin.

    Returns
    -------
    frame with ``models``, ``target``, ``pools``, ``list``, ``margin``, and the 5% and 95% points ``low``, ``high`` of
    their difference over bootstrap draws of the items, the same for all pools of a size.
    """
    rows = []
    for size in sizes:
        pools = [data.pool(s) for s in pools_of(size, data.letters.shape[1], count)]
        for target, y in data.found.items():
            rng = np.random.default_rng(seed)
            both = np.mean([[average_precision(p.score, y), average_precision(p.margin, y)] for p in pools], 0)
            moved = []
            for _ in range(draws):
                w = np.bincount(rng.integers(0, len(y), len(y)), minlength=len(y)).astype(float)
                moved.append(np.mean([
                    average_precision(p.score, y, w) - average_precision(p.margin, y, w) for p in pools
                ]))  # fmt: skip
            low, high = np.quantile(moved, [0.05, 0.95])
            rows.append({"models": size, "target": target, "pools": len(pools), "list": both[0], "margin": both[1],
                         "low": low, "high": high})  # fmt: skip
    return pd.DataFrame(rows)


def bound_table(data: Checked, *, sizes: Sequence[int] = SIZES, count: int = 40) -> pd.DataFrame:
    """Upper bounds without reviews beside the precision that people found, by size and place of the list.

    Returns
    -------
    frame with ``models``, ``target``, ``r``, ``bound`` (mean over pools; nan where nothing is said in any), ``said``
    (share of the pools in which something is), ``realised`` and ``holds`` (share of the pools).
    """
    rows = []
    for size in sizes:
        made = []
        for models in pools_of(size, data.letters.shape[1], count):
            order = data.pool(models).order
            rng = np.random.default_rng(0)
            made.append((order, precision_bounds(data.letters[:, models], data.key, order, rng=rng, at=AT)))
        for target, y in data.found.items():
            true = np.array([realised(order, y) for order, _ in made])
            upper = np.array([[b.upper if str(b) != "none" else np.nan for b in row] for _, row in made])
            for j, r in enumerate(AT):
                said = ~np.isnan(upper[:, j])
                rows.append({
                    "models": size, "target": target, "r": r, "said": said.mean(), "realised": true[:, j].mean(),
                    "bound": upper[said, j].mean() if said.any() else np.nan,
                    "holds": (upper[said, j] >= true[said, j]).mean() if said.any() else np.nan,
                })  # fmt: skip
    return pd.DataFrame(rows)


def review_table(data: Checked, *, sizes: Sequence[int] = SIZES, count: int = 40, replications: int = 200,
                 draws: int = 2000) -> pd.DataFrame:  # fmt: skip
    """Intervals of the list's precision from 100 reviewed items, whose labels alone are revealed.

    Returns
    -------
    frame with ``models``, ``target``, ``r``, ``coverage`` of the 90% intervals, ``half_width`` (mean), ``realised``.
    """
    rows = []
    for size in sizes:
        orders = [data.pool(s).order for s in pools_of(size, data.letters.shape[1], count)]
        for target, y in data.found.items():
            inside, half, truths = [], [], []
            for i in range(replications):
                rng, order = np.random.default_rng([i, 7]), orders[i % len(orders)]
                sample = review_sample(order, REVIEWED, rng=rng)
                said = local_fdr(sample.rank, y[sample.items], sample.edges, rng=rng, at=AT, draws=draws).first
                truth = realised(order, y)
                ends = np.array([(f.interval.low, f.interval.high) for f in said])
                inside.append((ends[:, 0] - 1e-9 <= truth) & (truth <= ends[:, 1] + 1e-9))
                half.append((ends[:, 1] - ends[:, 0]) / 2)
                truths.append(truth)
            for j, r in enumerate(AT):
                rows.append({"models": size, "target": target, "r": r, "coverage": np.mean(inside, 0)[j],
                             "half_width": np.mean(half, 0)[j], "realised": np.mean(truths, 0)[j]})  # fmt: skip
    return pd.DataFrame(rows)


def read_matrix(path: Path, blind: str = "<no_image>") -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read a table of 0/1 hits, one row per model, one column per item and one with a prefix for its blind run.

    Returns
    -------
    full, blind : shape (items, models)

    Raises
    ------
    AuditError
        No item has both columns.
    """
    raw = open_table(path)
    known = set(raw.columns)
    items = [c for c in raw.columns if blind + c in known]
    if not items:
        raise AuditError(f"no item has a column and one with {blind!r} before it", file=path, mend="give both runs")
    return tuple(raw[[p + c for c in items]].to_numpy(float).astype(np.int64).T for p in ("", blind))  # type: ignore


def share_table(full: NDArray, blind: NDArray, *, sizes: Sequence[int] = (3, 6, 12, 24), options: NDArray | None = None,
                seed: int = 0) -> pd.DataFrame:  # fmt: skip
    """The same share from smaller and larger pools of one benchmark: nested random subsets of its models.

    Returns
    -------
    frame with ``models``, ``ties`` (raw share of items with equal counts), ``any_low``, ``any_high`` (identified set
    over all laws), ``low``, ``high`` (over scattered laws) and ``mixture`` (model-based).
    """
    order = np.random.default_rng(seed).permutation(full.shape[1])
    rows = []
    for n in sizes:
        f, b = full[:, order[:n]], blind[:, order[:n]]
        wide, narrow = (prevalence_set(f, b, scattered=s) for s in (False, True))
        mixture = fit_gain_mixture(f, b, options=options)
        rows.append({"models": n, "ties": (f.sum(1) == b.sum(1)).mean(), "any_low": wide.low, "any_high": wide.high,
                     "low": narrow.low, "high": narrow.high, "mixture": mixture.share})  # fmt: skip
    return pd.DataFrame(rows)
