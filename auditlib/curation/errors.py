"""Error classes of wrong answers: their shares with simultaneous intervals, weighted back to all wrong answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.curation.clustered import codes, mean_covariance
from auditlib.curation.error_labels import ERROR_CLASSES, FINAL, NONE
from auditlib.errors import AuditError
from auditlib.stats.agreement import cohen_kappa

NAN = float("nan")
_ANSWER = ["item", "draw"]


@dataclass(frozen=True)
class ErrorClasses:
    """Shares of the error classes.

    Attributes
    ----------
    answers : wrong answers with a label. unlabelled : answers of the sample without one. conflicts : answers on which
        labellers differ and no final label settles it; each of their labels counts its part.
    method : how the intervals are made.
    table : one row per capability (and ``all``) and class: capability, label, answers, share, low, high (simultaneous
        over the classes of a row), unweighted.
    kappa : one row per pair of labellers: a, b, answers, observed, kappa, low, high, note.
    """

    answers: int
    unlabelled: int
    conflicts: int
    method: str
    table: pd.DataFrame = field(repr=False, compare=False)
    kappa: pd.DataFrame = field(repr=False, compare=False)

    def as_row(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("answers", "unlabelled", "conflicts", "method")}


def error_classes(
    labels: pd.DataFrame,
    sample: pd.DataFrame | None = None,
    *,
    rng: np.random.Generator | None = None,
    interval: str = "goodman",
    level: float = 0.95,
    draws: int = 2000,
) -> ErrorClasses:
    """Shares of the error classes among the wrong answers of a model.

    Parameters
    ----------
    labels : frame item, draw, labeller, label (:func:`~auditlib.curation.error_labels.read_error_labels`).
    sample : frame item, draw, capability, population (:func:`~auditlib.curation.error_labels.sample_wrong`), optional
        Weighs every capability by its wrong answers. Without it each labelled answer weighs the same.
    rng : numpy Generator, optional
        For the interval of kappa.
    interval : ``goodman`` or ``bonferroni``.
    level : joint level of all classes of a capability.
    draws : bootstrap draws of kappa.

    Raises
    ------
    AuditError
        A label of an answer that is not in the sample; an unknown kind of interval.

    Notes
    -----
    ``goodman``: the score interval of each class with the chi-square quantile at ``1 - alpha / K`` (Goodman 1965).
    ``bonferroni``: Clopper and Pearson's at ``alpha / K``. With strata, split labels or several answers of one item the
    number of answers is the effective one, ``p (1 - p) / v`` with v the variance over items of the stratified
    estimate; a class that nobody named has Kish's ``(sum w)^2 / sum w^2``. Kappa leaves out the final labels.
    """
    if interval not in ("goodman", "bonferroni"):
        raise AuditError(f"interval is {interval!r}", mend="use 'goodman' or 'bonferroni'")
    share, conflicts = _resolved(labels)
    unlabelled, capability, population = 0, np.full(len(share), NONE, object), None
    if sample is not None:
        frame = _drawn(sample).merge(share.reset_index(), on=_ANSWER, how="outer", indicator=True)
        strange = frame[frame["_merge"] == "right_only"]
        if len(strange):
            which = f"item {strange['item'].iloc[0]!r}, draw {strange['draw'].iloc[0]},"
            raise AuditError(f"{which} is labelled but not in the sample",
                             mend="give the sample that was labelled, or remove these labels")  # fmt: skip
        unlabelled = int((frame["_merge"] == "left_only").sum())
        frame = frame[frame["_merge"] == "both"]
        share = frame.set_index(_ANSWER)[list(ERROR_CLASSES)]
        capability = frame["capability"].astype(str).to_numpy(object)
        population = sample.drop_duplicates("capability").set_index("capability")["population"].astype(float)
        population.index = population.index.astype(str)
    x, item = share.to_numpy(float), share.index.get_level_values("item").to_numpy(object)
    names = np.unique(capability).tolist()
    rows = []
    for name in [*(names if sample is not None else []), "all"]:
        here = np.ones(len(x), bool) if name == "all" else capability == name
        weights = None
        if name == "all" and population is not None:
            total = population.reindex(names).to_numpy()
            weights = total / total.sum()
        rows += _shares(name, x[here], capability[here], item[here], weights, interval, level)
    lost = [] if population is None else sorted(set(population.index) - set(names))
    note = f"; no labelled answer of {', '.join(lost)}" if lost else ""
    method = {"goodman": "Goodman", "bonferroni": "Clopper-Pearson, Bonferroni"}[interval]
    return ErrorClasses(len(x), unlabelled, conflicts, f"{method}, {len(ERROR_CLASSES)} classes jointly{note}",
                        pd.DataFrame(rows), label_agreement(labels, rng=rng, draws=draws, level=level))  # fmt: skip


def label_agreement(
    labels: pd.DataFrame, *, rng: np.random.Generator | None = None, draws: int = 2000, level: float = 0.95
) -> pd.DataFrame:
    """Cohen's kappa of every two labellers, resampling items: a, b, answers, observed, kappa, low, high, note."""
    own = labels[labels["labeller"] != FINAL]
    code = own.assign(code=own["label"].map({c: k for k, c in enumerate(ERROR_CLASSES)}))
    wide = code.pivot(index=_ANSWER, columns="labeller", values="code")
    item = wide.index.get_level_values("item").to_numpy(object).astype(str)
    rows = []
    for a, b in combinations(wide.columns, 2):
        x, y = (wide[c].fillna(-1).to_numpy(int) for c in (a, b))
        k = cohen_kappa(x, y, len(ERROR_CLASSES), rng=rng, cluster=item, draws=draws, level=level)
        rows.append({"a": a, "b": b, "answers": k.n, "observed": k.observed, "kappa": k.estimate,
                     "low": k.interval.low, "high": k.interval.high, "note": k.note})  # fmt: skip
    columns = ["a", "b", "answers", "observed", "kappa", "low", "high", "note"]
    return pd.DataFrame(rows, columns=columns)


def audited_shares(
    labels: pd.DataFrame, judge: str, sample: pd.DataFrame | None = None, *, level: float = 0.95
) -> pd.DataFrame:
    """Shares by a judge that labelled all answers, corrected by the people who labelled some of them.

    Parameters
    ----------
    labels, sample : as in :func:`error_classes`; every labeller but ``judge`` is a person.
    judge : labeller name of the judge.

    Returns
    -------
    DataFrame
        label, judge (its share), audited (answers with both), correction, share (judge + correction), low, high
        (simultaneous, Bonferroni).

    Raises
    ------
    AuditError
        No label by this judge, or fewer than two audited answers.

    Notes
    -----
    Difference estimator: the weighted mean of the judge's labels plus that of (human - judge) over the audited ones,
    which is right on average whatever the judge's errors, if the audit is a random part of the sample. The variance is
    linearised over items. A corrected share may leave [0, 1] by chance; it is not cut.
    """
    from scipy.special import stdtrit

    if judge not in set(labels["labeller"]):
        raise AuditError(f"nobody named {judge!r} has labelled", mend="name the judge's labeller")
    j, _ = _resolved(labels[labels["labeller"] == judge])
    others = labels[labels["labeller"] != judge]
    h = _resolved(others)[0].reindex(j.index) if len(others) else pd.DataFrame(index=j.index, columns=j.columns)
    audited = h.notna().all(axis=1).to_numpy()
    if audited.sum() < 2:
        raise AuditError("fewer than two answers have a label by the judge and by a person",
                         mend="let people label a part of the judge's answers")  # fmt: skip
    weight = np.ones(len(j))
    if sample is not None:
        drawn = _drawn(sample).set_index(_ANSWER)
        capability = drawn["capability"].reindex(j.index)
        size = capability.map(capability.value_counts())
        weight = (drawn["population"].reindex(j.index) / size).to_numpy(float)
        if np.isnan(weight).any():
            raise AuditError(
                "the judge labelled answers that are not in the sample", mend="give the sample it labelled"
            )
    x, difference = j.to_numpy(float), h.to_numpy(float) - j.to_numpy(float)
    part = np.where(audited, weight, 0.0)
    mean = weight @ x / weight.sum()
    correction = part @ np.where(audited[:, None], difference, 0.0) / part.sum()
    z = weight[:, None] * (x - mean) / weight.sum()
    z += part[:, None] * np.where(audited[:, None], difference - correction, 0.0) / part.sum()
    unit, names = codes(j.index.get_level_values("item"), len(j))
    summed = np.stack([np.bincount(unit, z[:, c], len(names)) for c in range(x.shape[1])], axis=1)
    n = len(names)
    se = np.sqrt((summed**2).sum(axis=0) * n / (n - 1)) if n > 1 else np.full(x.shape[1], NAN)
    df = max(1, len(set(j.index.get_level_values("item")[audited])) - 1)
    half = se * float(stdtrit(df, 1 - (1 - level) / (2 * len(ERROR_CLASSES))))
    share = mean + correction
    return pd.DataFrame({"label": ERROR_CLASSES, "judge": mean, "audited": int(audited.sum()),
                         "correction": correction, "share": share, "low": share - half,
                         "high": share + half})  # fmt: skip


def _resolved(labels: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Part of each class in each answer, and answers whose labellers differ without a final label."""
    answer = pd.MultiIndex.from_frame(labels[_ANSWER])
    code, answers = pd.factorize(answer, sort=True)
    final = labels["labeller"].eq(FINAL).to_numpy()
    label = labels["label"].map({c: k for k, c in enumerate(ERROR_CLASSES)}).to_numpy(int)
    settled = np.zeros(len(answers), bool)
    settled[code[final]] = True
    counts = final | ~settled[code]
    share = np.zeros((len(answers), len(ERROR_CLASSES)))
    np.add.at(share, (code[counts], label[counts]), 1.0)
    share /= share.sum(axis=1, keepdims=True)
    index = pd.MultiIndex.from_tuples(answers, names=_ANSWER)
    return pd.DataFrame(share, index=index, columns=list(ERROR_CLASSES)), int((share.max(axis=1) < 1).sum())


def _drawn(sample: pd.DataFrame) -> pd.DataFrame:
    for column in ("item", "capability", "population"):
        if column not in sample:
            raise AuditError(f"the sample has no column {column!r}", mend="give the table that drew the answers")
    table = sample.assign(item=sample["item"].astype(str), draw=sample.get("draw", 1))
    return table[[*_ANSWER, "capability", "population"]]


def _shares(name: str, x: NDArray, stratum: NDArray, item: NDArray, weights: NDArray | None, kind: str,
            level: float) -> list[dict[str, Any]]:  # fmt: skip
    """Rows of one capability: estimate, effective number, simultaneous interval."""
    fit = mean_covariance(x, stratum if weights is not None else None, item, weights)
    n = len(x)
    plain = weights is None and fit.units == n and bool(np.isin(x, (0, 1)).all())
    code = codes(stratum, n)[0] if weights is not None else np.zeros(n, int)
    each = (np.ones(1) if weights is None else weights)[code] / np.bincount(code)[code]
    kish = 1 / (each**2).sum() if fit.units == n else fit.units
    p, v = fit.mean, np.diag(fit.cov)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(v > 1e-18, np.minimum(p * (1 - p) / v, n), kish)
    size = np.full(len(p), float(n)) if plain else size
    low, high = _ends(p, size, kind, level)
    if fit.units < 2:
        low, high = np.full(len(p), NAN), np.full(len(p), NAN)
    return [{"capability": name, "label": c, "answers": n, "share": p[k], "low": low[k], "high": high[k],
             "unweighted": x[:, k].mean()} for k, c in enumerate(ERROR_CLASSES)]  # fmt: skip


def _ends(p: NDArray, n: NDArray, kind: str, level: float) -> tuple[NDArray, NDArray]:
    from scipy.special import betaincinv, ndtri

    p = np.clip(p, 0.0, 1.0)
    tail = (1 - level) / (2 * len(p))
    if kind == "goodman":
        q = float(ndtri(tail)) ** 2
        half = np.sqrt(q * (q + 4 * n * p * (1 - p)))
        low, high = (q + 2 * n * p - half) / (2 * (n + q)), (q + 2 * n * p + half) / (2 * (n + q))
    else:
        k = n * p
        low = betaincinv(np.maximum(k, 1e-300), n - k + 1, tail)
        high = betaincinv(k + 1, np.maximum(n - k, 1e-300), 1 - tail)
    return np.where(p <= 0, 0.0, low), np.where(p >= 1, 1.0, high)
