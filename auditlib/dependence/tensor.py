"""Responses of subjects to items under four conditions, as counts."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.dependence.profile import CONDITIONS
from auditlib.errors import AuditError
from auditlib.pool import Pool

#: fewer subjects than this are fitted with a warning
FEW = 4


@dataclass(frozen=True)
class ResponseTensor:
    """Counts of right answers.

    Attributes
    ----------
    hits, trials : shape (subjects, items, 4), conditions none, image_only, blind, full; a cell without a draw has
        ``trials`` 0.
    k : shape (items,), options. subjects, items, families : names; families are ``""`` where unknown.
    """

    hits: NDArray[np.float64]
    trials: NDArray[np.float64]
    k: NDArray[np.float64]
    subjects: tuple[str, ...]
    items: tuple[str, ...]
    families: tuple[str, ...]

    @property
    def chance(self) -> NDArray[np.float64]:
        """Shape (items,), ``1 / k``."""
        return 1 / self.k

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """Mean over subjects of each item's share of right draws, shape (items, 4); NaN where no one was asked."""
        with np.errstate(invalid="ignore"):
            rate = self.hits / self.trials
        seen = ~np.isnan(rate)
        with np.errstate(invalid="ignore"):
            return np.where(seen, rate, 0).sum(0) / seen.sum(0)

    def take_subjects(self, which: ArrayLike) -> ResponseTensor:
        """The tensor of some subjects, by place or boolean mask; places may repeat. Nothing is checked again."""
        at = np.arange(len(self.subjects))[np.asarray(which)]
        names = tuple(self.subjects[j] for j in at)
        return ResponseTensor(
            self.hits[at], self.trials[at], self.k, names, self.items, tuple(self.families[j] for j in at)
        )

    def take_items(self, which: ArrayLike) -> ResponseTensor:
        """The tensor of some items, by place or boolean mask."""
        at = np.arange(len(self.items))[np.asarray(which)]
        names = tuple(self.items[j] for j in at)
        return ResponseTensor(self.hits[:, at], self.trials[:, at], self.k[at], self.subjects, names, self.families)

    @classmethod
    def from_arrays(
        cls,
        hits: ArrayLike,
        trials: ArrayLike | None = None,
        *,
        k: ArrayLike,
        subjects: Sequence[str] | None = None,
        items: Sequence[str] | None = None,
        families: Sequence[str] | None = None,
    ) -> ResponseTensor:
        """Checked responses.

        Parameters
        ----------
        hits : shape (subjects, items, 4); NaN where a cell was not asked
        trials : same shape, draws per cell; 1 by default
        k : number or shape (items,), options shown

        Raises
        ------
        AuditError
            Another shape, counts beyond their trials, one subject only, a condition that nobody was asked under, no
            subject with all four, an unknown number of options, a name twice.

        Warns
        -----
        Fewer than four subjects; an item or a subject that was never asked; a condition that is always right or wrong.
        """
        h = np.array(hits, float)
        if h.ndim != 3 or h.shape[2] != 4:
            raise AuditError(f"responses have shape {h.shape}", mend="give (subjects, items, 4)")
        gap = np.isnan(h)
        t = np.where(gap, 0.0, 1.0 if trials is None else np.asarray(trials, float))
        if t.shape != h.shape:
            raise AuditError(f"trials have shape {t.shape}, hits {h.shape}", mend="give one count per cell")
        h[gap] = 0
        if not (np.isfinite(t).all() and (t >= 0).all() and (h >= 0).all() and (h <= t).all()):
            raise AuditError("hits exceed trials or a count is negative", mend="give hits of 0..trials in each cell")
        m, n, _ = h.shape
        sizes = np.array(np.broadcast_to(np.asarray(k, float), (n,)))
        names = _names(subjects, m, "subject", "subject")
        item_names = _names(items, n, "item", "item")
        if m < 2:
            raise AuditError(f"{m} subject answered", mend="give the runs of at least two models, better four or more")
        unknown = ~(sizes >= 2)
        if unknown.any():
            first = item_names[int(unknown.argmax())]
            raise AuditError(
                f"the number of options is unknown for {int(unknown.sum())} items, first {first}",
                mend="give k of at least 2 for every item, or leave items without options out",
            )
        asked = (t > 0).any(axis=1)
        missing = [c for c, some in zip(CONDITIONS, asked.any(axis=0)) if not some]
        if missing:
            raise AuditError(
                f"no subject was asked under {', '.join(missing)}",
                mend="run all four conditions (none, image_only, blind, full): what the image alone or the options "
                "alone give cannot be told from the others",
            )
        if not asked.all(axis=1).any():
            raise AuditError("no subject was asked under all four conditions", mend="run all four for at least one")
        told = tuple(families) if families is not None else ("",) * m
        if len(told) != m:
            raise AuditError(f"families has {len(told)} entries for {m} subjects", mend="give one each")
        _warn(h, t, names)
        return cls(h, t, sizes, names, item_names, told)

    @classmethod
    def from_long(cls, table: pd.DataFrame, *, abstain: str = "wrong") -> ResponseTensor:
        """From one row per answer: ``subject`` (or ``model``), ``item``, ``condition``, ``hit``, ``k``.

        ``family`` and ``abstained`` are optional. Rows of one cell are its draws; a missing ``hit`` is no draw.
        ``abstain="missing"`` leaves abstentions out, ``"wrong"`` counts them as they are scored: wrong. Other
        conditions than the four raise.
        """
        _check_abstain(abstain)
        rows = table.rename(columns={"model": "subject"}) if "subject" not in table else table
        lacking = [c for c in ("subject", "item", "condition", "hit", "k") if c not in rows]
        if lacking:
            raise AuditError(f"the table of answers has no column {', '.join(lacking)}", mend="add it")
        strange = sorted(set(rows["condition"].astype(str)) - set(CONDITIONS))
        if strange:
            raise AuditError(f"unknown condition {strange[0]!r}", mend=f"use {', '.join(CONDITIONS)}, or leave it out")
        value = pd.to_numeric(rows["hit"], errors="coerce").to_numpy(float, na_value=np.nan)
        unread = np.isnan(value) & rows["hit"].notna().to_numpy()
        if unread.any() or ((value < 0) | (value > 1)).any():
            bad = unread | (value < 0) | (value > 1)
            raise AuditError("hit is no number of 0..1", row=int(bad.argmax()) + 2, mend="give 0, 1 or nothing")
        if "abstained" in rows:
            gone = rows["abstained"].fillna(False).to_numpy(bool)
            value = np.where(gone, np.nan if abstain == "missing" else 0.0, value)
        s, subjects = pd.factorize(rows["subject"].astype(str), sort=True)
        i, items = pd.factorize(rows["item"].astype(str), sort=True)
        c = pd.Categorical(rows["condition"], categories=CONDITIONS).codes
        drawn = ~np.isnan(value)
        shape = (len(subjects), len(items), 4)
        hits, trials = np.zeros(shape), np.zeros(shape)
        np.add.at(hits, (s[drawn], i[drawn], c[drawn]), value[drawn])
        np.add.at(trials, (s[drawn], i[drawn], c[drawn]), 1)
        spread = rows.groupby(i)["k"].nunique(dropna=False)
        if (spread > 1).any():
            raise AuditError(f"item {items[int(spread.idxmax())]} has two values of k", mend="give one per item")
        families = None
        if "family" in rows:
            families = rows.groupby(s)["family"].first().fillna("").astype(str).tolist()
        k = rows.groupby(i)["k"].first().to_numpy(float, na_value=np.nan)
        return cls.from_arrays(hits, trials, k=k, subjects=list(subjects), items=list(items), families=families)

    @classmethod
    def from_pool(cls, pool: Pool, *, arm: str | None = None, abstain: str = "wrong") -> ResponseTensor:
        """From a pool that holds all four conditions; ``arm`` is the headline arm by default.

        Raises
        ------
        AuditError
            A condition that the pool was not run under, an unknown number of options, a single model.
        """
        _check_abstain(abstain)
        scored = pool.arms.get(arm) if arm else pool.arm
        if scored is None:
            raise AuditError(f"pool {pool.name} has no arm {arm!r}", mend=f"use one of {', '.join(pool.arms)}")
        missing = [c for c in CONDITIONS if c not in scored.hits]
        if missing:
            raise AuditError(
                f"pool {pool.name} has no run under {', '.join(missing)}: what an image alone or the options alone "
                "give cannot be told from the others",
                mend="run the missing conditions with the blind-run stage",
            )
        hits = np.stack([scored.hits[c].T for c in CONDITIONS], axis=2).astype(float)
        trials = np.ones_like(hits)
        if scored.trials is not None:
            trials = np.stack([scored.trials[c].T for c in CONDITIONS], axis=2).astype(float)
        hits, trials = hits / scored.unit, trials / scored.unit
        if abstain == "missing":
            for j, c in enumerate(CONDITIONS):
                gone = pool.abstained[c].T if c in pool.abstained else np.zeros(hits.shape[:2], bool)
                hits[:, :, j][gone] = trials[:, :, j][gone] = 0
        k = np.full(len(pool.items), np.nan) if pool.k is None else pool.k
        families = None
        if "family" in pool.models:
            families = pool.models["family"].astype(object).where(pool.models["family"].notna(), "").tolist()
        names = pool.items["item"].astype(str).tolist()
        return cls.from_arrays(hits, trials, k=k, subjects=pool.model_names, items=names, families=families)


def _check_abstain(abstain: str) -> None:
    if abstain not in ("wrong", "missing"):
        raise AuditError(f"abstain is {abstain!r}", mend="use wrong or missing")


def _names(given: Sequence[str] | None, n: int, what: str, stem: str) -> tuple[str, ...]:
    names = tuple(map(str, given)) if given is not None else tuple(f"{stem}_{j + 1}" for j in range(n))
    if len(names) != n or len(set(names)) < n:
        raise AuditError(f"{len(set(names))} different {what} names for {n} {what}s", mend="give each its own name")
    return names


def _warn(hits: NDArray, trials: NDArray, names: tuple[str, ...]) -> None:
    if len(hits) < FEW:
        warnings.warn(f"{len(hits)} subjects: profiles rest on the prior; four or more are better", stacklevel=3)
    idle = (trials.sum((0, 2)) == 0).sum()
    if idle:
        warnings.warn(f"{idle} items were never asked; their profiles are the prior's", stacklevel=3)
    for j in np.flatnonzero(trials.sum((1, 2)) == 0):
        warnings.warn(f"{names[j]} was never asked", stacklevel=3)
    for j, c in enumerate(CONDITIONS):
        share = hits[:, :, j].sum() / trials[:, :, j].sum()
        if share in (0.0, 1.0):
            warnings.warn(f"under {c} every answer is {'right' if share else 'wrong'}: it tells no items apart",
                          stacklevel=3)  # fmt: skip
