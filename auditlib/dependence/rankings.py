"""Utilities by which items are selected: what is fitted once, and what each makes of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from auditlib.dependence.baselines import Baseline, fit_m3irt, m2irt, mirt, raw_difference
from auditlib.dependence.diagnosis import Diagnosis, diagnose
from auditlib.dependence.information import log_determinant, logits, utility
from auditlib.dependence.item_response import Unidimensional, fit_two_parameter
from auditlib.dependence.newcomer import score_new_subject
from auditlib.dependence.profile import relative_profile, solvability
from auditlib.dependence.structure import StructuralPrior
from auditlib.dependence.tensor import ResponseTensor


@dataclass(frozen=True)
class Rankers:
    """Models of one pool from which utilities are read; ``diagnosis`` only where there is a structural prior."""

    chance: NDArray[np.float64]
    theta: NDArray[np.float64]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    one: Unidimensional
    two: Unidimensional
    fixed: tuple[Baseline, ...]
    diagnosis: Diagnosis | None


def fit_rankers(responses: ResponseTensor, prior: StructuralPrior | None = None) -> Rankers:
    """Fit everything that utilities need, on these subjects alone."""
    full = responses.hits[:, :, 3], responses.trials[:, :, 3]
    gated = fit_m3irt(responses)
    informed = prior is not None and prior.informative
    return Rankers(
        responses.chance, gated.theta, gated.a, gated.b, fit_two_parameter(*full, slopes=False),
        fit_two_parameter(*full), (mirt(responses), m2irt(responses), raw_difference(responses)),
        diagnose(responses, prior, compare=False) if informed else None,
    )  # fmt: skip


def utilities(rankers: Rankers, rng: np.random.Generator) -> dict[str, NDArray[np.float64]]:
    """Every utility by name, shape (items,), larger for items to keep.

    Ties of the raw gap are broken at random; the others keep the order of items.
    """
    n = len(rankers.chance)
    mirt_, m2irt_, raw = rankers.fixed
    out = {"random": rng.random(n)}
    out |= _by_ability(rankers, rankers.theta, rankers.one.theta, rankers.two.theta)
    out["MIRT information"], out["M2IRT information"] = mirt_.utility, m2irt_.utility
    out["raw gap"] = raw.utility + 1e-9 * rng.random(n)
    if rankers.diagnosis is not None:
        d = rankers.diagnosis
        out["diagnosis: rho_S"] = d.profile[:, 3]
        out["diagnosis: gap x information"] = utility(d.theta, d.a, d.b, rankers.chance)
        gain = np.where(d.undetermined, 0, d.profile[:, 3] * d.solvability)
        p = expit(logits(d.theta, d.a, d.b))[:, :, 3]
        out["diagnosis: rho_S x gain x information"] = gain * (p * (1 - p)).mean(0) * (d.a**2).sum(1)
    return out


def subject_utilities(rankers: Rankers, hits: NDArray, trials: NDArray) -> dict[str, NDArray[np.float64]]:
    """Utilities at one new subject's abilities, for those that depend on them; hits and trials (items, 4)."""
    theta = score_new_subject(hits, rankers.a, rankers.b, trials=trials).theta[None]
    single = [np.array([_ability(u, hits[:, 3], trials[:, 3])]) for u in (rankers.one, rankers.two)]
    return _by_ability(rankers, theta, *single)


def _by_ability(rankers: Rankers, theta: NDArray, one: NDArray, two: NDArray) -> dict[str, NDArray[np.float64]]:
    """Utilities averaged over abilities ``theta`` (subjects, 4) and those of the two unidimensional models."""
    a, b, g = rankers.a, rankers.b, rankers.chance
    p = expit(logits(theta, a, b))
    q, full = p.mean(0), p[:, :, 3]
    weight = (full * (1 - full)).mean(0)
    information = weight * (a**2).sum(1)
    return {
        "1PL information": rankers.one.information(one).mean(0),
        "2PL information": rankers.two.information(two).mean(0),
        "M3IRT log determinant": log_determinant(theta, a, b).mean(0),
        "M3IRT joint information": weight * a[:, 3] ** 2,
        "rho_S": relative_profile(q, g)[:, 3],
        "solvability x information": np.maximum(solvability(q, g), 0) * information,
        "gap x information": utility(theta, a, b, g),
    }


def _ability(model: Unidimensional, hits: NDArray, trials: NDArray) -> float:
    """Maximum a posteriori ability under N(0, 1) on frozen items."""
    theta = 0.0
    for _ in range(50):
        p = expit(model.a * theta + model.d)
        step = (model.a @ (hits - trials * p) - theta) / (model.a**2 @ (trials * p * (1 - p)) + 1)
        theta += float(np.clip(step, -1, 1))
        if abs(step) < 1e-8:
            break
    return theta
