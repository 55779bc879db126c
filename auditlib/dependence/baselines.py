"""Methods that a diagnosis is compared with, each one small function with the same kind of result."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from auditlib.dependence.fit import minimise, predicted
from auditlib.dependence.information import log_determinant, logits
from auditlib.dependence.item_response import fit_m2irt, fit_mirt, fit_two_parameter
from auditlib.dependence.latent_class import fit_latent_class
from auditlib.dependence.problem import SETTINGS, Settings, bounded, make_problem
from auditlib.dependence.profile import difference_profile, relative_profile
from auditlib.dependence.structure import StructuralPrior
from auditlib.dependence.tensor import ResponseTensor
from auditlib.errors import AuditError

#: shares of the prior in a fixed fusion
ALPHAS = (0.25, 0.5, 0.75)
_FLOOR = 1e-3


@dataclass(frozen=True)
class Baseline:
    """What a method says of each item.

    Attributes
    ----------
    name : of the method.
    profile : shape (items, 4), over R, V, T, S; None for methods that only rank items.
    utility : shape (items,), larger for items to keep; None for methods that only label.
    """

    name: str
    profile: NDArray[np.float64] | None = None
    utility: NDArray[np.float64] | None = None

    @property
    def label(self) -> NDArray[np.int64]:
        """Largest place of the profile, shape (items,); an AuditError where the method has none."""
        if self.profile is None:
            raise AuditError(f"{self.name} gives no labels", mend="compare it by the subsets that it selects")
        return self.profile.argmax(1)


def random_guess(items: int, rng: np.random.Generator, shares: ArrayLike = (0.25, 0.25, 0.25, 0.25)) -> Baseline:
    """Labels drawn from ``shares`` (of the four labels, such as their empirical ones), and a uniform order."""
    p = np.asarray(shares, float)
    drawn = np.eye(4)[rng.choice(4, items, p=p / p.sum())]
    return Baseline("random", drawn, rng.random(items))


def raw_difference(responses: ResponseTensor) -> Baseline:
    """Gains in accuracy over the options alone (option A), and the gap between the full item and the better view."""
    q = responses.accuracy
    return Baseline("raw difference (A)", difference_profile(q), q[:, 3] - np.maximum(q[:, 1], q[:, 2]))


def raw_relative(responses: ResponseTensor) -> Baseline:
    """Relative sufficiency of raw accuracies (option B), and the same gap, no less than that over chance."""
    q, g = responses.accuracy, responses.chance
    gap = q[:, 3] - np.maximum(np.maximum(q[:, 1], q[:, 2]), g)
    return Baseline("raw relative (B)", relative_profile(q, g), gap)


def one_parameter(responses: ResponseTensor) -> Baseline:
    """Rasch model of the full condition; mean Fisher information ``p (1 - p)``. It gives no labels."""
    return Baseline("1PL", utility=_full_model(responses, slopes=False))


def two_parameter(responses: ResponseTensor) -> Baseline:
    """Two-parameter model of the full condition; mean Fisher information ``a^2 p (1 - p)``. It gives no labels."""
    return Baseline("2PL", utility=_full_model(responses, slopes=True))


def _full_model(responses: ResponseTensor, *, slopes: bool) -> NDArray[np.float64]:
    found = fit_two_parameter(responses.hits[:, :, 3], responses.trials[:, :, 3], slopes=slopes)
    return found.information(found.theta).mean(0)


def mirt(responses: ResponseTensor, dimensions: int = 2) -> Baseline:
    """Exploratory compensatory model in which each item and condition is an item of its own (4 per item).

    Labels by relative sufficiency of predicted accuracies; utility ``mean p (1 - p) |a|^2`` of the full condition.
    """
    m, n, _ = responses.hits.shape
    found = fit_mirt(responses.hits.reshape(m, 4 * n), responses.trials.reshape(m, 4 * n), dimensions)
    p = expit(found.theta @ found.a.T + found.d).reshape(m, n, 4)
    full = p[:, :, 3]
    weight = (found.a.reshape(n, 4, dimensions)[:, 3] ** 2).sum(1)
    return Baseline("MIRT", relative_profile(p.mean(0), responses.chance), (full * (1 - full)).mean(0) * weight)


@dataclass(frozen=True)
class Gated:
    """A gated fit without structure: abilities (subjects, 4), slopes and intercepts (items, 4), accuracy (items, 4)."""

    theta: NDArray[np.float64]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    q: NDArray[np.float64]


def fit_m3irt(responses: ResponseTensor, *, settings: Settings = SETTINGS, iterations: int = 100) -> Gated:
    """M3IRT: the response model of this package without a structural prior."""
    none = StructuralPrior.none(len(responses.items))
    problem = make_problem(
        responses.hits, responses.trials, responses.chance, none.profile, none.weight, settings=settings
    )
    x = minimise(problem, iterations=iterations).x
    theta, a, b = bounded(problem, x)
    return Gated(theta, a.T, b.T, predicted(problem, x))


def native_profile(theta: ArrayLike, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """Shares of the four coordinates' positive contributions at the mean ability, shape (items, 4).

    What both views add, and what the options add, is redundant; the rest of each view is its own; joint is synergy.
    """
    c = np.clip(np.asarray(theta, float).mean(0) * np.asarray(a, float) - np.asarray(b, float), 0, None)
    shared = c[:, 1:3].min(1)
    parts = np.stack([shared + c[:, 0], c[:, 1] - shared, c[:, 2] - shared, c[:, 3]], axis=1) + _FLOOR
    return parts / parts.sum(1, keepdims=True)


def m3irt(responses: ResponseTensor, fitted: Gated | None = None) -> tuple[Baseline, Baseline, Baseline]:
    """M3IRT read three ways: native coordinates, option A, option B ("strong", the fair ablation of structure).

    Utilities: information of the joint coordinate; log determinant; log determinant.
    """
    f = fit_m3irt(responses) if fitted is None else fitted
    p = expit(logits(f.theta, f.a, f.b))[:, :, 3]
    joint = (p * (1 - p)).mean(0) * f.a[:, 3] ** 2
    volume = log_determinant(f.theta, f.a, f.b).mean(0)
    return (
        Baseline("M3IRT, native coordinates", native_profile(f.theta, f.a, f.b), joint),
        Baseline("M3IRT + profile A", difference_profile(f.q), volume),
        Baseline("M3IRT + profile B", relative_profile(f.q, responses.chance), volume),
    )


def m2irt(responses: ResponseTensor) -> Baseline:
    """Ungated products: slope ``sum_k G_ck a_k`` times ability ``sum_k G_ck theta_k`` less ``b_c``.

    Labels by relative sufficiency; utility is the full condition's Fisher information.
    """
    f = fit_m2irt(responses.hits, responses.trials)
    p = f.probability
    full = p[:, :, 3]
    return Baseline("M2IRT", relative_profile(p.mean(0), responses.chance),
                    (full * (1 - full)).mean(0) * f.a.sum(1) ** 2)  # fmt: skip


def structure_only(prior: StructuralPrior, name: str = "structure only") -> Baseline:
    """The prior's profile, no responses; LSMI where the prior was made by it. Utility is the synergistic part."""
    return Baseline(name, prior.profile, prior.profile[:, 3])


def fixed_fusion(prior: StructuralPrior, strong: Baseline, alpha: float) -> Baseline:
    """``alpha`` of the prior's profile and the rest of a baseline's, M3IRT + profile B as a rule."""
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha is {alpha:g}, not in 0..1")
    if strong.profile is None or len(strong.profile) != len(prior.profile):
        raise AuditError("a fusion needs two profiles of the same items", mend="give a baseline that has a profile")
    return Baseline(f"fusion alpha={alpha:g}", alpha * prior.profile + (1 - alpha) * strong.profile)


def latent_class(responses: ResponseTensor, prior: StructuralPrior | None = None) -> Baseline:
    """Four latent classes, with a prior or without."""
    informed = prior is not None and prior.informative
    given = {"profile": prior.profile, "weight": prior.weight} if informed else {}
    found = fit_latent_class(responses.hits, responses.trials, responses.chance, **given)
    return Baseline("latent class + prior" if informed else "latent class", found.profile)


def all_baselines(
    responses: ResponseTensor,
    prior: StructuralPrior | None = None,
    *,
    lsmi: StructuralPrior | None = None,
    rng: np.random.Generator,
    shares: ArrayLike = (0.25, 0.25, 0.25, 0.25),
) -> dict[str, Baseline]:
    """Every baseline by name; those that need structure only where ``prior`` (and ``lsmi``) are given."""
    native, difference, strong = m3irt(responses)
    made = [
        random_guess(len(responses.items), rng, shares), raw_difference(responses), raw_relative(responses),
        one_parameter(responses), two_parameter(responses), mirt(responses), m2irt(responses), native, difference,
        strong, latent_class(responses),
    ]  # fmt: skip
    if lsmi is not None:
        made.append(structure_only(lsmi, "LSMI only"))
    if prior is not None and prior.informative:
        made += [
            structure_only(prior),
            *(fixed_fusion(prior, strong, a) for a in ALPHAS),
            latent_class(responses, prior),
        ]
    return {b.name: b if b.profile is None else replace(b, profile=np.asarray(b.profile)) for b in made}
