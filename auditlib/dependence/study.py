"""Modality dependence of a pool from its params, step by step as the notebook shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.dependence import sources
from auditlib.dependence.bootstrap import Stability, bootstrap_subjects
from auditlib.dependence.diagnosis import Diagnosis, diagnose
from auditlib.dependence.problem import Settings
from auditlib.dependence.profile import CONDITIONS
from auditlib.dependence.source_files import Embeddings, read_embeddings
from auditlib.dependence.structure import StructuralPrior
from auditlib.dependence.tensor import ResponseTensor
from auditlib.errors import AuditError
from auditlib.params import DependenceParams
from auditlib.pool import Arm, Pool

#: what the lack of a condition leaves unknown
UNKNOWN = {
    "image_only": "whether the image with the options suffices: redundant is not told from textual-dominant, nor "
    "visual-dominant from synergistic",
    "blind": "whether the question with the options suffices: redundant is not told from visual-dominant, nor "
    "textual-dominant from synergistic",
    "none": "what the options alone give away, so that the four coordinates of the response model are not separate",
    "full": "whether the item can be solved at all, on which every statement rests",
}


@dataclass(frozen=True)
class Dependence:
    """A diagnosis under way.

    Attributes
    ----------
    source : the pool as read. pool : its items with a known number of options. params : the block.
    responses : None where a condition was not run; ``missing`` then names it. left_out : reason -> items.
    prior, prior_facts : of the content. diagnosis, stability : None until fitted.
    """

    source: Pool
    pool: Pool
    params: DependenceParams
    responses: ResponseTensor | None = None
    missing: tuple[str, ...] = ()
    left_out: Mapping[str, int] | None = None
    prior: StructuralPrior | None = None
    prior_facts: Mapping[str, Any] | None = None
    diagnosis: Diagnosis | None = None
    stability: Stability | None = None

    @property
    def k(self) -> NDArray[np.float64]:
        return np.full(len(self.pool.items), np.nan) if self.pool.k is None else self.pool.k

    @property
    def families(self) -> dict[str, list[int]]:
        """Family -> places of its models, those that the params name or all; a family of all models is none."""
        names = [] if self.responses is None else list(self.responses.families)
        wanted = self.params.families or [f for f in dict.fromkeys(names) if f]
        absent = [f for f in wanted if f not in names]
        if absent:
            raise AuditError(f"dependence.families names {absent[0]!r}, which no model has",
                             mend=f"families here: {', '.join(sorted({n for n in names if n})) or 'none'}")  # fmt: skip
        return {f: [j for j, x in enumerate(names) if x == f] for f in wanted}


def settings_of(params: DependenceParams) -> Settings:
    """Strengths of the response model."""
    f = params.fit
    return Settings(align=f.align, residual=f.residual, ability=f.ability, bridge=f.bridge, kappa=f.kappa,
                    delta=f.delta)  # fmt: skip


def read(pool: Pool) -> Dependence:
    """The responses of a pool under the four conditions; where one was not run, what is lacking.

    Raises
    ------
    AuditError
        The pool has no such arm, fewer than two models, or no item with a known number of options.
    """
    params = (pool.params.dependence if pool.params else None) or DependenceParams()
    seen = _renamed(pool, params)
    left_out: dict[str, int] = {}
    k = np.full(len(seen.items), np.nan) if seen.k is None else seen.k
    known = k >= 2
    if not known.any():
        raise AuditError(f"no item of pool {pool.name} has a known number of options",
                         mend="name the benchmark's own table as data.items, or map a column k")  # fmt: skip
    if not known.all():
        left_out["items whose number of options is unknown"] = int((~known).sum())
        seen = take(seen, known)
    here = Dependence(pool, seen, params, left_out=left_out)
    arm = seen.arms.get(params.arm) if params.arm else seen.arm
    if arm is None:
        raise AuditError(f"pool {pool.name} has no arm {params.arm!r}", mend=f"use one of {', '.join(pool.arms)}")
    missing = tuple(c for c in CONDITIONS if not arm.scored_models(c).any())
    if missing:
        return replace(here, missing=missing)
    return replace(here, responses=ResponseTensor.from_pool(seen, arm=arm.name, abstain=params.abstain))


def _renamed(pool: Pool, params: DependenceParams) -> Pool:
    """The pool with the runs that stand for the four conditions under their names, and no others."""
    names = {theirs: ours for ours, theirs in params.conditions.model_dump().items()}

    def of(arrays: Mapping[str, Any] | None) -> dict[str, Any] | None:
        return None if arrays is None else {names[c]: a for c, a in arrays.items() if c in names}

    arms = {n: Arm(n, of(a.hits) or {}, of(a.trials), a.unit) for n, a in pool.arms.items()}
    arms = {n: a for n, a in arms.items() if a.hits}
    if not arms:
        raise AuditError(f"pool {pool.name} has no run under any of the four conditions",
                         mend="check dependence.conditions")  # fmt: skip
    return replace(pool, arms=arms, letters=of(pool.letters), refused=of(pool.refused), failed=of(pool.failed),
                   abstained=of(pool.abstained))  # fmt: skip


def take(pool: Pool, which: NDArray[np.bool_]) -> Pool:
    """The pool of some items; replies and counts as frames stay whole."""

    def of(arrays: Mapping[str, Any] | None) -> dict[str, Any] | None:
        return None if arrays is None else {c: a[which] for c, a in arrays.items()}

    arms = {n: Arm(n, of(a.hits) or {}, of(a.trials), a.unit) for n, a in pool.arms.items()}
    return replace(pool, items=pool.items[which].reset_index(drop=True), arms=arms, letters=of(pool.letters),
                   refused=of(pool.refused), failed=of(pool.failed), abstained=of(pool.abstained))  # fmt: skip


def with_prior(d: Dependence, outputs: str | Path, *, encode: Callable[[Dependence], Embeddings] | None = None
               ) -> Dependence:  # fmt: skip
    """The structural prior that the params name; an embedded pool's own vectors where they name no file.

    Parameters
    ----------
    outputs : the outputs folder, where embedded pools are laid out.
    encode : makes embeddings for source ``encoder``; by default the models of the params do.

    Raises
    ------
    AuditError
        Files that are missing, damaged or of other items; see :mod:`auditlib.dependence.sources`.
    """
    p, n = d.params.prior, len(d.pool.items)
    if d.responses is None or p.source == "none":
        return replace(d, prior=StructuralPrior.none(n), prior_facts={"source": "none", "items": 0})
    items, key = d.pool.items["item"].astype(str).tolist(), d.pool.key_codes
    shape = {"method": p.method, "temperature": p.temperature}
    if p.source == "labels":
        prior = sources.prior_from_labels(p.files[0], items, trust=p.trust)
    elif p.source == "probabilities":
        prior = sources.prior_from_probabilities(p.files[0], items, d.k, **shape)
    elif p.source == "logprobs":
        prior = sources.prior_from_logprobs(
            p.files[0], items, key, d.k, scorer=p.scorer, evaluated=d.source.model_names, **shape
        )
    else:
        found = (encode or _encoded)(d) if p.source == "encoder" else _vectors(d, items, outputs)
        prior = sources.prior_from_embeddings(
            found, items, key, d.k, groups=d.pool.cluster, dimensions=p.dimensions, folds=p.folds,
            file=p.files[0] if p.files else None, **shape,
        )  # fmt: skip
    facts = {"source": prior.source, "method": p.method, "items": int((prior.weight > 0).sum()),
             "confidence": float(prior.confidence.mean())}  # fmt: skip
    return replace(d, prior=prior, prior_facts=facts)


def _vectors(d: Dependence, items: list[str], outputs: str | Path) -> Embeddings:
    from auditlib.synth.embedded import structure_file

    files = list(d.params.prior.files)
    name = d.source.params.data.embedded if d.source.params else None
    if not files and name and (own := structure_file(name, outputs)) is not None:
        files = [own]
    if not files:
        raise AuditError("dependence.prior.source is embeddings, but no file of them is named",
                         file=d.source.params.source if d.source.params else None,
                         mend="name it as dependence.prior.files, or set source: none")  # fmt: skip
    return read_embeddings(files, items)


def _encoded(d: Dependence) -> Embeddings:
    """Vectors by the models that the params name, from the dataset's pictures."""
    from auditlib.dependence.encoders import encode_items, image_text_encoder, sentence_encoder
    from auditlib.readers.dataset import read_images

    path = d.source.params.data.dataset if d.source.params else None
    if path is None or "question" not in d.pool.items or "options" not in d.pool.items:
        raise AuditError("there are no pictures, questions and options to embed",
                         mend="name the benchmark's own table as data.dataset")  # fmt: skip
    p, items = d.params.prior, d.pool.items["item"].astype(str).tolist()
    text = sentence_encoder(p.text_encoder) if p.text_encoder else None
    options = [list(map(str, o)) if isinstance(o, list | tuple | np.ndarray) else [] for o in d.pool.items["options"]]
    found, _ = encode_items(items, d.pool.items["question"].astype(str).tolist(), options, read_images(path, items),
                            image_text_encoder(str(p.encoder)), text=text)  # fmt: skip
    return found


def fitted(d: Dependence, *, stability: bool = True) -> Dependence:
    """The diagnosis, and its stability under a bootstrap of the models; unchanged where a condition is missing."""
    if d.responses is None:
        return d
    found = diagnose(d.responses, d.prior, settings=settings_of(d.params), method=d.params.method,
                     rounds=d.params.fit.rounds, iterations=d.params.fit.iterations)  # fmt: skip
    stable = None
    if stability:
        rng = d.source.rng("dependence", "bootstrap")
        stable = bootstrap_subjects(d.responses, found, rng=rng, draws=d.params.bootstrap)
    return replace(d, diagnosis=found, stability=stable)


def refit(d: Dependence, subjects: list[int] | NDArray) -> Diagnosis:
    """The same diagnosis by some of the models only."""
    assert d.responses is not None
    return diagnose(d.responses.take_subjects(subjects), d.prior, settings=settings_of(d.params),
                    method=d.params.method, rounds=d.params.fit.rounds, iterations=d.params.fit.iterations,
                    compare=False)  # fmt: skip


def partial(d: Dependence) -> pd.DataFrame:
    """What fewer conditions can say: each item's accuracy, and whether the one view that was run suffices.

    Returns
    -------
    DataFrame
        item, stratum, k, accuracy under each condition that was run, and ``sufficiency_<condition>``: its gain over
        chance as a share of the full item's, NaN where the full item is not answered above chance. Raw accuracies of
        the pool: nothing is fitted.
    """
    from auditlib.dependence.profile import DELTA

    arm = d.pool.arms.get(d.params.arm) if d.params.arm else d.pool.arm
    assert arm is not None
    out = pd.DataFrame({"item": d.pool.items["item"].astype(str), "stratum": strata(d.pool), "k": d.k})
    for c in CONDITIONS:
        if c in d.missing:
            continue
        trials = np.ones_like(arm.hits[c]) if arm.trials is None else arm.trials[c]
        with np.errstate(invalid="ignore", divide="ignore"):
            out[c] = np.nanmean(np.where(trials > 0, arm.hits[c] / trials, np.nan), axis=1)
    if "full" in out:
        gain = out["full"] - 1 / d.k
        for c in ("image_only", "blind"):
            if c in out:
                out[f"sufficiency_{c}"] = np.where(gain >= DELTA, (out[c] - 1 / d.k) / gain, np.nan)
    return out


def strata(pool: Pool) -> NDArray[np.object_]:
    """Category of each item; ``""`` where the pool has none."""
    return np.full(len(pool.items), "", object) if pool.strata is None else pool.strata
