"""From responses and a structural prior to one profile per item: the whole diagnosis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditlib.dependence.fit import Fit, fit, predicted
from auditlib.dependence.latent_class import LatentClass, fit_latent_class
from auditlib.dependence.objective import SETTINGS, Problem, Settings, bounded, make_problem
from auditlib.dependence.profile import LABELS, relative_profile, solvability
from auditlib.dependence.structure import StructuralPrior
from auditlib.dependence.tensor import ResponseTensor
from auditlib.dependence.thresholds import CALIBRATION, Calibration
from auditlib.errors import AuditError

METHODS = ("stacked", "response-model", "latent-class")
#: most of the latent class in a stacked profile, and the number of subjects from which it has a share at all
BLEND, NONE_UP_TO = 0.3, 4.0


@dataclass(frozen=True)
class Diagnosis:
    """What each item depends on.

    Attributes
    ----------
    profile : shape (items, 4), rho over R, V, T, S, given that the item is solvable; ``label`` its largest place.
    q : shape (items, 4), predicted accuracy of the pool. solvability : shape (items,), (q_VT - g) / (1 - g).
    undetermined : shape (items,), items whose full version is hardly answered above chance: a profile says nothing.
    prior, weight : structural profile and its weight. thresholds : shape (2,), of image and question.
    alone : shape (items, 4), profile by the same responses without structure, or None where that was not asked for.
    by_model, by_class : the two profiles that are stacked; ``blend`` is the share of the second.
    theta, a, b : standardised abilities (subjects, 4), slopes and intercepts (items, 4); ``contribution`` is
        ``a * mean theta - b`` on the same scale, which is ``-b``.
    converged, iterations, evaluations, objective : of the fit. method : a word.
    fit, problem, classes : raw results, for warm starts.
    """

    profile: NDArray[np.float64]
    label: NDArray[np.int64]
    q: NDArray[np.float64]
    solvability: NDArray[np.float64]
    undetermined: NDArray[np.bool_]
    prior: NDArray[np.float64]
    weight: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    alone: NDArray[np.float64] | None
    by_model: NDArray[np.float64]
    by_class: NDArray[np.float64] | None
    blend: float
    theta: NDArray[np.float64]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    converged: bool
    iterations: int
    evaluations: int
    objective: float
    method: str
    subjects: tuple[str, ...]
    items: tuple[str, ...]
    fit: Fit
    problem: Problem
    classes: LatentClass | None

    @property
    def labels(self) -> NDArray[np.str_]:
        """Letters R, V, T, S, shape (items,)."""
        return np.array(LABELS)[self.label]

    @property
    def contribution(self) -> NDArray[np.float64]:
        """Logit that each coordinate adds for an average subject, shape (items, 4)."""
        return self.theta.mean(0) * self.a - self.b

    @property
    def location(self) -> NDArray[np.float64]:
        """Classical difficulty ``b / a``, NaN where the slope is at most 0.2; shape (items, 4)."""
        return np.where(self.a > 0.2, self.b / np.maximum(self.a, 0.2), np.nan)


def blend_share(subjects: float) -> float:
    """Share of the latent class in a stacked profile: it grows with the pool, whose few logits must be learned."""
    return BLEND * max(0.0, 1 - NONE_UP_TO / max(subjects, 1.0))


def diagnose(
    responses: ResponseTensor,
    prior: StructuralPrior | None = None,
    *,
    settings: Settings = SETTINGS,
    method: str = "stacked",
    rounds: int = 3,
    iterations: int = 60,
    optimiser: str = "lbfgs",
    calibration: Calibration = CALIBRATION,
    blend: float | None = None,
    compare: bool = True,
    start: NDArray[np.float64] | None = None,
) -> Diagnosis:
    """Diagnose modality dependence by structure and responses together.

    Parameters
    ----------
    responses : :class:`ResponseTensor`
    prior : :class:`StructuralPrior`, none by default (responses alone)
    settings, rounds, iterations, optimiser, calibration : of the response model
    method : ``stacked`` (default; response model and latent class averaged), ``response-model``, ``latent-class``
    blend : share of the latent class where stacked; by the number of subjects, see :func:`blend_share`, by default.
        Without a prior it is 0: what the latent class adds is how it weighs structure against responses.
    compare : also fit without structure, so that ``alone`` shows what moved an item
    start : parameters to start from

    Raises
    ------
    AuditError
        A prior of another length. ValueError for unknown methods and for settings without an item ridge, since eight
        parameters per item are not identified by a few binary answers alone.
    """
    n, chance = len(responses.items), responses.chance
    structure = StructuralPrior.none(n) if prior is None else prior
    if len(structure.profile) != n:
        raise AuditError(
            f"the structural prior has {len(structure.profile)} items, the responses {n}", mend="give one row per item"
        )
    if method not in METHODS:
        raise ValueError(f"method {method!r} is none of {', '.join(METHODS)}")
    if min(settings.residual, settings.ability, settings.bridge) <= 0:
        raise ValueError("residual, ability and bridge ridges must be positive: without them items are not identified")

    def solve(weight: NDArray, x: NDArray | None, turns: int) -> tuple[Problem, Fit]:
        made = make_problem(responses.hits, responses.trials, chance, structure.profile, weight, settings=settings)
        return fit(made, x, rounds=turns, iterations=iterations, calibration=calibration, optimiser=optimiser)

    problem, found = solve(structure.weight, start, rounds)
    q = predicted(problem, found.x)
    shape = {"kappa": settings.kappa, "delta": settings.delta}
    by_model = relative_profile(q, chance, thresholds=found.thresholds, **shape)
    classes, share = None, 0.0
    if method != "response-model" and (structure.informative or method == "latent-class" or blend):
        given = (structure.profile, structure.weight) if structure.informative else (None, None)
        classes = fit_latent_class(responses.hits, responses.trials, chance, profile=given[0], weight=given[1])
        asked = (responses.trials > 0).any(2).sum(0).mean()
        share = 1.0 if method == "latent-class" else blend_share(asked) if blend is None else blend
    profile = by_model if classes is None else (1 - share) * by_model + share * classes.profile
    alone = None
    if compare:
        alone = by_model
        if structure.informative:
            bare, bare_fit = solve(np.zeros(n), None, 1)
            alone = relative_profile(predicted(bare, bare_fit.x), chance, **shape)
    theta, a, b = standardised(problem, found.x)
    nu = solvability(q, chance)
    return Diagnosis(
        profile=profile, label=profile.argmax(1), q=q, solvability=nu,
        undetermined=nu * (1 - chance) < settings.delta, prior=structure.profile, weight=structure.weight,
        thresholds=found.thresholds, alone=alone, by_model=by_model,
        by_class=None if classes is None else classes.profile, blend=share, theta=theta, a=a, b=b,
        converged=found.converged, iterations=found.iterations, evaluations=found.evaluations, objective=found.value,
        method=method, subjects=responses.subjects, items=responses.items, fit=found, problem=problem, classes=classes,
    )  # fmt: skip


def standardised(problem: Problem, x: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Abilities of mean 0 and variance 1 per coordinate, and slopes and intercepts (items, 4) to match."""
    theta, a, b = bounded(problem, x)
    mean, sd = theta.mean(0), theta.std(0)
    sd = np.where(sd > 1e-9, sd, 1.0)
    return (theta - mean) / sd, (a.T * sd), b.T - a.T * mean
