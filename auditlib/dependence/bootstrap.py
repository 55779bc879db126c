"""How far labels hang on the subjects at hand: a bootstrap over subjects, warm-started."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditlib.dependence.diagnosis import Diagnosis, pool, stack
from auditlib.dependence.fit import Fit, minimise, predicted
from auditlib.dependence.latent_class import fit_latent_class
from auditlib.dependence.problem import make_problem
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

            def refit(old: Fit, weight: NDArray, at: NDArray = at, part: ResponseTensor = part) -> NDArray[np.float64]:
                made = make_problem(part.hits, part.trials, part.chance, diagnosis.prior, weight,
                                    thresholds=old.thresholds, settings=base.settings)  # fmt: skip
                x = np.concatenate([old.x[: 4 * m].reshape(m, 4)[at].ravel(), old.x[4 * m :]])
                q = predicted(made, minimise(made, x, iterations=iterations).x)
                return relative_profile(q, part.chance, thresholds=old.thresholds, kappa=base.settings.kappa,
                                        delta=base.settings.delta)  # fmt: skip

            rho, by_class, pooled = refit(diagnosis.fit, diagnosis.weight), None, None
            if diagnosis.blend:
                informed = bool((diagnosis.weight > 0).any())
                given = {"profile": diagnosis.prior, "weight": diagnosis.weight} if informed else {}
                by_class = fit_latent_class(part.hits, part.trials, part.chance, most=20, **given).profile
            if diagnosis.pool_share and diagnosis.bare is not None:
                pooled = pool(refit(diagnosis.bare, np.zeros_like(diagnosis.weight)), diagnosis.prior)
            profiles[r] = stack(rho, by_class, pooled, diagnosis.blend, diagnosis.pool_share)
    labels = profiles.argmax(2)
    shares = np.stack([(labels == z).mean(0) for z in range(4)], axis=1)
    tail = (1 - level) / 2
    low, high = np.quantile(profiles, [tail, 1 - tail], axis=0)
    return Stability(shares[np.arange(len(shares)), diagnosis.label], shares, low, high, level, draws)
