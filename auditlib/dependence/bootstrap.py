"""How far labels hang on the subjects at hand: a bootstrap over subjects, warm-started."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditlib.dependence.diagnosis import Diagnosis
from auditlib.dependence.fit import minimise, predicted
from auditlib.dependence.latent_class import fit_latent_class
from auditlib.dependence.objective import make_problem
from auditlib.dependence.profile import relative_profile
from auditlib.dependence.tensor import ResponseTensor
from auditlib.threads import single_threaded


@dataclass(frozen=True)
class Stability:
    """Bootstrap of subjects.

    Attributes
    ----------
    label : shape (items,), share of draws with the diagnosis's label. shares : shape (items, 4), draws per label.
    low, high : shape (items, 4), percentile interval of each part of the profile. level, draws : as asked.
    """

    label: NDArray[np.float64]
    shares: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    level: float
    draws: int


def bootstrap_subjects(
    responses: ResponseTensor,
    diagnosis: Diagnosis,
    *,
    rng: np.random.Generator,
    draws: int = 100,
    level: float = 0.95,
    iterations: int = 15,
) -> Stability:
    """Draw subjects with replacement, refit from the diagnosis, and count labels.

    Thresholds stay where the diagnosis set them. Draws of fewer than two different subjects are drawn again. The
    profiles of all draws are held: draws x items x 16 bytes.
    """
    m = len(responses.subjects)
    if draws < 2:
        raise ValueError("a bootstrap needs at least two draws")
    base = diagnosis.problem
    profiles = np.empty((draws, len(responses.items), 4), np.float32)
    with single_threaded():
        for r in range(draws):
            at = rng.integers(0, m, m)
            while len(np.unique(at)) < 2:
                at = rng.integers(0, m, m)
            part = responses.take_subjects(at)
            made = make_problem(
                part.hits, part.trials, part.chance, diagnosis.prior, diagnosis.weight,
                thresholds=diagnosis.thresholds, settings=base.settings,
            )  # fmt: skip
            cut = 4 * m
            x = np.concatenate([diagnosis.fit.x[:cut].reshape(m, 4)[at].ravel(), diagnosis.fit.x[cut:]])
            found = minimise(made, x, iterations=iterations)
            rho = relative_profile(predicted(made, found.x), part.chance, thresholds=diagnosis.thresholds,
                                   kappa=base.settings.kappa, delta=base.settings.delta)  # fmt: skip
            if diagnosis.blend:
                informed = bool((diagnosis.weight > 0).any())
                given = {"profile": diagnosis.prior, "weight": diagnosis.weight} if informed else {}
                classes = fit_latent_class(part.hits, part.trials, part.chance, most=20, **given)
                rho = (1 - diagnosis.blend) * rho + diagnosis.blend * classes.profile
            profiles[r] = rho
    labels = profiles.argmax(2)
    shares = np.stack([(labels == z).mean(0) for z in range(4)], axis=1)
    tail = (1 - level) / 2
    low, high = np.quantile(profiles, [tail, 1 - tail], axis=0)
    return Stability(shares[np.arange(len(shares)), diagnosis.label], shares, low, high, level, draws)
