"""What curation works on: counts of correct, made and unanswered draws, and histograms of answers.

Everything is counted in whole draws, so that a threshold such as 20 of 40 is compared in integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from auditlib.errors import AuditError

#: code of an answer that was not given, in :class:`Answers`
NO_ANSWER = -1


@dataclass(frozen=True)
class Draws:
    """Counts of one condition, each of shape (items, models).

    Attributes
    ----------
    hits : correct draws. trials : draws made, those without an answer included. abstained : draws without an answer
        (a refusal, a reply from which no answer could be read); 0 where the runs do not tell.
    unit : graded verdicts count in parts of a draw; ``hits`` and ``trials`` are in these parts, ``abstained`` too.
    """

    hits: np.ndarray
    trials: np.ndarray
    abstained: np.ndarray
    unit: int = 1

    def of(self, models: np.ndarray) -> Draws:
        """The same counts for some models (columns)."""
        return Draws(self.hits[:, models], self.trials[:, models], self.abstained[:, models], self.unit)

    def at(self, items: np.ndarray) -> Draws:
        """The same counts for some items (rows)."""
        return Draws(self.hits[items], self.trials[items], self.abstained[items], self.unit)


@dataclass(frozen=True)
class Answers:
    """Who answered what, with the image: one row per item, model and distinct answer.

    Attributes
    ----------
    item, model : places in ``CurationPool.items`` and ``.models``, shape (rows,). answer : code of the answer within
        its item, 0 to ``size - 1``, or :data:`NO_ANSWER`. odd, even : draws that gave it, in the odd and in the even
        samples; whole draws.
    size : shape (items,), the number of distinct valid answers: options shown of a choice item, distinct answers seen
        of an open one.
    key : shape (items,), code of the key; -2 where the key is unknown or is an open answer that nobody gave.
    name : (item place, code) -> the answer as text.
    """

    item: np.ndarray
    model: np.ndarray
    answer: np.ndarray
    odd: np.ndarray
    even: np.ndarray
    size: np.ndarray
    key: np.ndarray
    name: Callable[[int, int], str]

    @property
    def draws(self) -> np.ndarray:
        return self.odd + self.even

    def of(self, models: np.ndarray) -> Answers:
        """Rows of some models; ``model`` then counts within ``models``."""
        place = np.full(int(self.model.max(initial=-1)) + 1, -1)
        models = np.asarray(models)
        place[models[models < len(place)]] = np.flatnonzero(models < len(place))
        here = place[self.model] >= 0
        return Answers(self.item[here], place[self.model[here]], self.answer[here], self.odd[here], self.even[here],
                       self.size, self.key, self.name)  # fmt: skip

    def at(self, items: np.ndarray) -> Answers:
        """Rows of some items (sorted places); ``item`` then counts within ``items``."""
        items = np.asarray(items)
        place = np.full(len(self.size), -1)
        place[items] = np.arange(len(items))
        here = place[self.item] >= 0
        return Answers(place[self.item[here]], self.model[here], self.answer[here], self.odd[here], self.even[here],
                       self.size[items], self.key[items], lambda i, code: self.name(int(items[i]), code))  # fmt: skip


@dataclass(frozen=True)
class CurationPool:
    """A pool as curation sees it.

    Attributes
    ----------
    items : columns item, source, capability, k (float, options or distinct valid answers; nan for open answers),
        answer_type, key where known, and whatever else the pool's items hold (licence, provenance, cluster ...).
    models : columns model, provider, tier, open, params_b, family where known; one row per column of the arrays.
    full : counts with the image. blind : counts without, or None where no model was run so.
    answers : histograms with the image, or None where the runs hold verdicts only.
    inspectors, panel, evaluated : places of the models that play each role.
    """

    name: str
    items: pd.DataFrame
    models: pd.DataFrame
    full: Draws
    blind: Draws | None
    answers: Answers | None
    inspectors: np.ndarray
    panel: np.ndarray
    evaluated: np.ndarray

    @property
    def source(self) -> np.ndarray:
        return self.items["source"].to_numpy(dtype=object)

    @property
    def capability(self) -> np.ndarray | None:
        return self.items["capability"].to_numpy(dtype=object) if "capability" in self.items else None

    @property
    def k(self) -> np.ndarray:
        return self.items["k"].to_numpy(float) if "k" in self.items else np.full(len(self.items), np.nan)

    @property
    def providers(self) -> np.ndarray:
        """Provider of each model; its family, then its own name, where that is unknown."""
        table = self.models
        out = table["model"].astype(object)
        for column in ("family", "provider"):
            if column in table:
                given = table[column].astype(object)
                out = given.where(given.notna() & given.astype(str).ne(""), out)
        return out.astype(str).to_numpy(dtype=object)

    def at(self, items: np.ndarray) -> CurationPool:
        """The pool with some items only (places, or a boolean mask)."""
        places = np.flatnonzero(items) if np.asarray(items).dtype == bool else np.sort(np.asarray(items))
        return CurationPool(
            self.name,
            self.items.iloc[places].reset_index(drop=True),
            self.models,
            self.full.at(places),
            None if self.blind is None else self.blind.at(places),
            None if self.answers is None else self.answers.at(places),
            self.inspectors,
            self.panel,
            self.evaluated,
        )

    def check(self) -> CurationPool:
        """Refuse what no stage could count.

        Raises
        ------
        AuditError
            Shapes differ, more hits than draws, no model in a role.
        """
        shape = (len(self.items), len(self.models))
        for condition, draws in (("full", self.full), ("blind", self.blind)):
            if draws is None:
                continue
            for what in ("hits", "trials", "abstained"):
                if getattr(draws, what).shape != shape:
                    raise AuditError(f"{what} ({condition}) have shape {getattr(draws, what).shape}, expected {shape}",
                                     mend="give one row per item and one column per model")  # fmt: skip
            over = (draws.hits < 0) | (draws.hits.astype(int) + draws.abstained > draws.trials)
            if over.any():
                i, j = np.argwhere(over)[0]
                raise AuditError(
                    f"item {self.items['item'].iloc[i]} of {self.models['model'].iloc[j]} ({condition}) counts more "
                    "correct and unanswered draws than draws",
                    mend="correct these counts",
                )
        if not len(self.panel):
            raise AuditError("no model of the panel was run with the image", mend="name models as curation.panel")
        return self
