"""What each part of a diagnosis is worth, and how it holds on smaller pools of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.dependence.diagnosis import diagnose, stack
from auditlib.dependence.labels import evaluate_labels, label_codes
from auditlib.dependence.problem import SETTINGS, Settings
from auditlib.dependence.structure import StructuralPrior
from auditlib.dependence.tensor import ResponseTensor
from auditlib.errors import AuditError

#: parts that :func:`ablate` leaves out of the response model, besides the whole of it and of structure
PARTS = ("entropy weighting", "profile alignment", "bridge", "threshold calibration")
#: billions of parameters of a small model
SMALL_SCALE = (3.0, 12.0)


def ablate(
    responses: ResponseTensor, prior: StructuralPrior, *, settings: Settings = SETTINGS, iterations: int = 60
) -> dict[str, NDArray[np.float64]]:
    """Profiles (items, 4) of the diagnosis and of its reductions, by name.

    ``stacked`` is the default diagnosis; ``stacked, - latent class`` and ``stacked, - pooled`` leave one of its members
    out, ``response model`` both. The others take one more part away from the response model:
    ``- entropy weighting`` (every item has weight 1), ``- profile alignment``
    (the bridge stays), ``- bridge`` (alignment stays), ``- threshold calibration`` (both at one half), ``- structure``
    (M3IRT + profile B) and ``- responses`` (the prior).

    Raises
    ------
    AuditError
        A prior without information: there is nothing to leave out.
    """
    if not prior.informative:
        raise AuditError("the structural prior says nothing", mend="give a prior that distinguishes items")

    def profile(rounds: int = 3, **change: bool) -> NDArray[np.float64]:
        return diagnose(responses, prior, settings=replace(settings, **change), method="response-model", rounds=rounds,
                        iterations=iterations, compare=False).profile  # fmt: skip

    whole = diagnose(responses, prior, settings=settings, iterations=iterations)
    return {
        "stacked": whole.profile,
        "stacked, - latent class": stack(whole.by_model, None, whole.pooled, 0, whole.pool_share),
        "stacked, - pooled": stack(whole.by_model, whole.by_class, None, whole.blend, 0),
        "response model": whole.by_model,
        "- entropy weighting": profile(use_confidence=False),
        "- profile alignment": profile(use_align=False),
        "- bridge": profile(use_bridge=False),
        "- threshold calibration": profile(rounds=1),
        "- structure": whole.alone,
        "- responses": prior.profile,
    }


def subsample_pool(
    responses: ResponseTensor,
    prior: StructuralPrior | None = None,
    truth: ArrayLike | None = None,
    *,
    rng: np.random.Generator,
    sizes: Sequence[int] = (4, 6),
    draws: int = 20,
    method: str = "stacked",
) -> pd.DataFrame:
    """How much of the full pool's score random smaller pools keep.

    Parameters
    ----------
    truth : labels, shape (items,), ``""`` where unknown (such items are fitted and not scored); without them a pool is
        scored by its agreement with the full pool's labels
    sizes : numbers of models; each must be below the pool's
    draws : pools per size, each without repetition

    Returns
    -------
    DataFrame with ``models``, ``draws``, ``metric`` (accuracy and macro-F1, or agreement), ``full``, ``mean``, ``sd``,
    ``retention`` and ``retention_sd``, the mean and deviation of score over the full pool's.
    """
    m = len(responses.subjects)
    wrong = [n for n in sizes if not 2 <= n < m]
    if wrong:
        raise AuditError(
            f"pools of {wrong[0]} models cannot be drawn from {m}", mend="use sizes from 2 to one below it"
        )
    whole = diagnose(responses, prior, method=method, compare=False).label
    names = whole if truth is None else np.asarray(truth)
    seen = np.ones(len(whole), bool) if names.dtype.kind in "iu" else names != ""
    target = label_codes(names[seen])

    def score(label: NDArray) -> dict[str, float]:
        found = evaluate_labels(target, label[seen])
        if truth is None:
            return {"agreement": found.accuracy}
        return {"accuracy": found.accuracy, "macro-F1": found.macro_f1}

    full, rows = score(whole), []
    for n in sizes:
        got = []
        for _ in range(draws):
            part = responses.take_subjects(rng.choice(m, n, replace=False))
            got.append(score(diagnose(part, prior, method=method, compare=False).label))
        for metric, best in full.items():
            values = np.array([g[metric] for g in got])
            kept = values / best if best > 0 else np.full(draws, np.nan)
            spread = {"sd": values.std(ddof=1), "retention_sd": kept.std(ddof=1)} if draws > 1 else {}
            rows.append({"models": n, "draws": draws, "metric": metric, "full": best, "mean": values.mean(),
                         "retention": kept.mean(), "sd": np.nan, "retention_sd": np.nan} | spread)  # fmt: skip
    columns = ["models", "draws", "metric", "full", "mean", "sd", "retention", "retention_sd"]
    return pd.DataFrame(rows)[columns]


def small_scale_pool(
    responses: ResponseTensor, billions: ArrayLike, *, low: float = SMALL_SCALE[0], high: float = SMALL_SCALE[1]
) -> ResponseTensor:
    """The models of ``low`` to ``high`` billion parameters; those of unknown size (NaN) are left out.

    Raises
    ------
    AuditError
        Not one size per model, or fewer than two models in the range.
    """
    size = np.asarray(billions, float)
    if size.shape != (len(responses.subjects),):
        raise AuditError(f"sizes have shape {size.shape} for {len(responses.subjects)} models", mend="give one each")
    within = (size >= low) & (size <= high)
    if within.sum() < 2:
        raise AuditError(
            f"{int(within.sum())} models have {low:g} to {high:g} billion parameters",
            mend="add models of this size, or their parameter counts",
        )
    return responses.take_subjects(within)
