"""The structural prior: what the content of an item says about the evidence it needs, and how surely."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from auditlib.dependence.pid import decompose, surprisal
from auditlib.dependence.probes import FOLDS, Folds, probe_probabilities, whiten
from auditlib.dependence.profile import LABELS
from auditlib.errors import AuditError

#: no item counts for more than this many average ones
MOST_WEIGHT = 3.0
_CLIP = 3.0
_LEAST = 1e-4


@dataclass(frozen=True)
class StructuralPrior:
    """Prior profile of each item and its weight.

    Attributes
    ----------
    profile : shape (items, 4), pi in the order R, V, T, S.
    confidence : shape (items,), ``1 - H(pi) / log 4``.
    weight : shape (items,), confidence over its mean, at most 3; 0 everywhere for no prior.
    probability : shape (items, 4), of the key under each condition; None where the prior did not come from these.
    information : shape (items, 4), r, u_V, u_T, s; None likewise.
    source : a word.
    """

    profile: NDArray[np.float64]
    confidence: NDArray[np.float64]
    weight: NDArray[np.float64]
    probability: NDArray[np.float64] | None = None
    information: NDArray[np.float64] | None = None
    source: str = "table"

    @property
    def informative(self) -> bool:
        """Whether any item has weight."""
        return bool((self.weight > 0).any())

    @classmethod
    def none(cls, items: int) -> StructuralPrior:
        """No structure: uniform profiles of weight 0."""
        return cls(np.full((items, 4), 0.25), np.zeros(items), np.zeros(items), source="none")

    @classmethod
    def from_profile(cls, profile: ArrayLike, *, source: str = "table") -> StructuralPrior:
        """A prior from R, V, T, S probabilities, shape (items, 4); rows of NaN say nothing.

        Raises
        ------
        AuditError
            Another shape, negative or infinite entries, or a row that sums to 0.
        """
        p = np.array(profile, float)
        if p.ndim != 2 or p.shape[1] != 4:
            raise AuditError(f"the structural prior has shape {p.shape}", mend="give one row R, V, T, S per item")
        p[np.isnan(p).all(axis=1)] = 0.25
        bad = ~np.isfinite(p).all(axis=1) | (p < 0).any(axis=1) | (p.sum(axis=1) <= 0)
        if bad.any():
            raise AuditError(
                "the structural prior holds a row that is no distribution",
                row=int(np.flatnonzero(bad)[0]) + 1,
                mend="give four numbers of at least 0, not all 0, or leave the row empty",
            )
        p = np.clip(p / p.sum(1, keepdims=True), _LEAST, 1)
        p /= p.sum(1, keepdims=True)
        confidence = np.clip(1 + (p * np.log(p)).sum(1) / np.log(4), 0, 1)
        confidence[confidence < 1e-12] = 0
        mean = confidence.mean() if len(confidence) else 0.0
        weight = np.minimum(confidence / mean, MOST_WEIGHT) if mean > 0 else np.zeros(len(p))
        return cls(p, confidence, weight, source=source)

    @classmethod
    def from_labels(cls, labels: ArrayLike, *, trust: float = 0.7) -> StructuralPrior:
        """A prior from one letter R, V, T or S per item, ``""`` where unknown; ``trust`` is the label's probability."""
        names = np.asarray(labels, dtype=object)
        unknown = sorted({str(n) for n in names} - {*LABELS, "", "None", "nan"})
        if unknown:
            raise AuditError(f"unknown structure label {unknown[0]!r}", mend="use R, V, T, S or leave it empty")
        if not 0.25 < trust < 1:
            raise AuditError(f"trust is {trust:g}", mend="give a probability above 0.25 and below 1")
        profile = np.full((len(names), 4), 0.25)
        for j, label in enumerate(LABELS):
            profile[names == label] = (1 - trust) / 3
            profile[names == label, j] = trust
        return cls.from_profile(profile, source="labels")

    @classmethod
    def from_probs(
        cls,
        probability: ArrayLike,
        k: ArrayLike,
        *,
        method: str = "min",
        temperature: float = 1.0,
        surprisals: tuple[ArrayLike, ArrayLike] | None = None,
        source: str = "probabilities",
    ) -> StructuralPrior:
        """A prior from probabilities of the key under none, image, question, both; shape (items, 4).

        The model that gave them must not be one of the evaluated pool: its evidence would count twice.

        Notes
        -----
        Each part of the information is centred at its median and scaled by its MAD over items, so that the prior is a
        statement within one benchmark; ``pi = softmax(z / temperature)``.
        """
        p = np.asarray(probability, float)
        sizes = np.broadcast_to(np.asarray(k, float), p.shape[:1])
        if p.ndim != 2 or p.shape[1] != 4 or not ((p >= 0) & (p <= 1)).all():
            raise AuditError(
                f"key probabilities have shape {p.shape} or leave 0..1",
                mend="give one row per item: none, image_only, blind, full",
            )
        parts = decompose(p, sizes, method, surprisals=surprisals)
        made = cls.from_profile(softmax(_standard(parts) / temperature, axis=1), source=source)
        return cls(made.profile, made.confidence, made.weight, p, parts, source)

    @classmethod
    def from_embeddings(
        cls,
        visual: ArrayLike,
        textual: ArrayLike,
        options: ArrayLike,
        key: ArrayLike,
        *,
        k: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        method: str = "min",
        temperature: float = 1.0,
        dimensions: int = 64,
        folds: Folds = FOLDS,
    ) -> StructuralPrior:
        """A prior from embeddings, by cross-fitted probes; see :mod:`auditlib.dependence.probes`.

        Parameters
        ----------
        visual, textual : shape (items, d), of image and question
        options : shape (items, K, d); places beyond an item's ``k`` are ignored
        key : int, shape (items,), place of the right option
        k : int, shape (items,), options per item; all K by default
        groups : shape (items,), items that share an image or nearly a question, kept in one fold
        """
        x = np.asarray(options, float)
        sizes = np.full(len(x), x.shape[1]) if k is None else np.asarray(k, int)
        probability = probe_probabilities(
            visual, textual, x, key, k=sizes, groups=groups, dimensions=dimensions, folds=folds
        )
        surprisals = None
        if method == "lsmi":
            surprisals = tuple(surprisal(whiten(e, min(32, dimensions))) for e in (visual, textual))
        return cls.from_probs(
            probability, sizes, method=method, temperature=temperature, surprisals=surprisals, source="embeddings"
        )


def _standard(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns in robust units, clipped; a constant column is 0 and warned about."""
    centred = parts - np.median(parts, axis=0)
    mad = 1.4826 * np.median(np.abs(centred), axis=0)
    flat = np.ptp(parts, axis=0) < 1e-12
    if flat.any():
        names = ", ".join(np.array(LABELS)[flat])
        warnings.warn(f"the structural information {names} is the same for every item and says nothing", stacklevel=3)
    return np.where(flat, 0.0, np.clip(centred / (mad + 1e-6), -_CLIP, _CLIP))
