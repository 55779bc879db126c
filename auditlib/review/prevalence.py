"""How many items are defective: the flagged ones all read, the others sampled, both corrected by the probes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from auditlib.errors import AuditError
from auditlib.review.packets import CLEAN, FLAGGED, PLANTED, UNFLAGGED, Packet
from auditlib.review.task import CONFIRMED, REJECTED
from auditlib.stats.intervals import Interval, no_interval, percentile

NAN = float("nan")


@dataclass(frozen=True)
class Stratum:
    """``size`` items, of which ``read`` were read to an end and ``positive`` of these called defective."""

    size: int
    read: int
    positive: int


@dataclass(frozen=True)
class Probes:
    """Rows of known truth: ``found`` of ``planted`` called defective, ``passed`` of ``clean`` called sound."""

    found: int
    planted: int
    passed: int
    clean: int

    @property
    def sensitivity(self) -> float:
        return self.found / self.planted if self.planted else NAN

    @property
    def specificity(self) -> float:
        return self.passed / self.clean if self.clean else NAN


@dataclass(frozen=True)
class Prevalence:
    """A corrected share: ``estimate`` in [0, 1], ``raw`` before it is cut to that, ``apparent`` as read."""

    estimate: float
    interval: Interval
    apparent: float
    raw: float
    note: str = ""

    def as_row(self) -> dict[str, Any]:
        return {"estimate": self.estimate, "low": self.interval.low, "high": self.interval.high,
                "apparent": self.apparent, "note": self.note}  # fmt: skip


def rogan_gladen(apparent: float, sensitivity: float, specificity: float) -> float:
    """``(p + Sp - 1) / (Se + Sp - 1)``, not cut to [0, 1]; NaN where reading does not tell defective from sound.

    The share that gives ``apparent`` on average (Rogan and Gladen 1978).

    Examples
    --------
    >>> round(rogan_gladen(0.26, 0.9, 0.9), 3)
    0.2
    """
    gain = sensitivity + specificity - 1
    return (apparent + specificity - 1) / gain if gain > 0 else NAN


def corrected_prevalence(strata: Sequence[Stratum], probes: Probes | None = None, *, level: float = 0.95) -> Prevalence:
    """Share of defective items over strata, corrected for readers' mistakes.

    Parameters
    ----------
    strata : a stratum that is read whole has ``read == size``.
    probes : None = readers are taken at their word.

    Notes
    -----
    The point is :func:`rogan_gladen` of the size-weighted share, cut to [0, 1]. The interval is that of Lang and
    Reiczigel (2014): one success and one failure are added to each kind of probes, half of z^2 of each to a sample,

    ``pi' + d -+ z sqrt(V(p') + pi'^2 Se'(1-Se')/n_Se' + (1-pi')^2 Sp'(1-Sp')/n_Sp') / (Se' + Sp' - 1)``, with
    ``d = 2 z^2 (pi' Se'(1-Se')/n_Se' - (1-pi') Sp'(1-Sp')/n_Sp')``, for strata with
    ``V(p_h) = (pi_h Se'(1-Se') + (1-pi_h) Sp'(1-Sp')) / n_h + pi_h (1-pi_h) (Se'+Sp'-1)^2 (N_h-n_h)/(N_h-1) / n_h``:
    misreading is random also where every item is read, sampling is not. What is added to a sample shrinks with the
    share of the stratum that is read.
    """
    from scipy.special import ndtri

    z2 = float(ndtri(0.5 + level / 2)) ** 2
    total = sum(s.size for s in strata)
    used = [s for s in strata if s.size]
    if not total or any(not s.read for s in used):
        why = "no items" if not total else "a stratum of which nothing was read to an end"
        return Prevalence(NAN, no_interval(why, level), NAN, NAN, why)
    apparent = sum(s.size * s.positive / s.read for s in used) / total
    if probes is not None and not (probes.planted and probes.clean):
        probes, why = None, "too few probes: readers are taken at their word"
    else:
        why = "" if probes else "no probes: readers are taken at their word"
    if probes is None:
        se = sp = raw = 1.0
        raw, n_se, n_sp = apparent, math.inf, math.inf
    else:
        raw = rogan_gladen(apparent, probes.sensitivity, probes.specificity)
        n_se, n_sp = probes.planted + 2, probes.clean + 2
        se, sp = (probes.found + 1) / n_se, (probes.passed + 1) / n_sp
    gain = se + sp - 1
    if math.isnan(raw) or gain <= 0:
        why = "on the probes, defective items are not called so more often than sound ones"
        return Prevalence(NAN, no_interval(why, level), apparent, NAN, why)
    centre, variance = 0.0, 0.0
    for s in used:
        p, v = _read_share(s, se, sp, gain, z2)
        centre, variance = centre + s.size / total * p, variance + (s.size / total) ** 2 * v
    share = min(max((centre + sp - 1) / gain, 0.0), 1.0)
    of_se, of_sp = se * (1 - se) / n_se, sp * (1 - sp) / n_sp
    moved = share + 2 * z2 * (share * of_se - (1 - share) * of_sp)
    half = math.sqrt(z2 * (variance + share**2 * of_se + (1 - share) ** 2 * of_sp)) / gain
    interval = Interval(max(moved - half, 0.0), min(moved + half, 1.0), level, "Lang-Reiczigel, stratified")
    return Prevalence(min(max(raw, 0.0), 1.0), interval, apparent, raw, why)


def _read_share(s: Stratum, se: float, sp: float, gain: float, z2: float) -> tuple[float, float]:
    """Share called defective in a stratum, drawn towards one half as far as it is sampled, and its variance."""
    more = z2 * (1 - s.read / s.size)
    n = s.read + more
    p = (s.positive + more / 2) / n
    truth = min(max((p + sp - 1) / gain, 0.0), 1.0)
    misread = truth * se * (1 - se) + (1 - truth) * sp * (1 - sp)
    left = (s.size - s.read) / (s.size - 1) if s.size > 1 else 0.0
    return p, (misread + truth * (1 - truth) * gain**2 * left) / n


def flag_recall(flagged: Stratum, unflagged: Stratum, probes: Probes | None, *, rng: np.random.Generator,
                draws: int = 20_000, level: float = 0.95) -> Prevalence:  # fmt: skip
    """Share of all defective items that are among the flagged, corrected like the prevalence.

    Notes
    -----
    ``N_f pi_f / (N_f pi_f + N_u pi_u)``; the interval takes percentiles over draws of the four shares from their
    Jeffreys posteriors (``Beta(k + 1/2, n - k + 1/2)``), shares below 0 counting as 0.
    """
    if not flagged.read or not unflagged.read:
        why = "both flagged and unflagged items have to be read"
        return Prevalence(NAN, no_interval(why, level), NAN, NAN, why)
    tell = probes is not None and bool(probes.planted and probes.clean)
    se, sp = (probes.sensitivity, probes.specificity) if probes and tell else (1.0, 1.0)

    def recall(p_f: Any, p_u: Any, se: Any, sp: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(se + sp > 1, se + sp - 1, NAN)
            a, b = (n * np.clip((p + sp - 1) / gain, 0, 1) for n, p in ((flagged.size, p_f), (unflagged.size, p_u)))
            return a / (a + b)

    shares = [s.positive / s.read for s in (flagged, unflagged)]
    estimate, apparent = float(recall(*shares, se, sp)), float(recall(*shares, 1.0, 1.0))
    drawn = [_jeffreys(s.positive, s.read, rng, draws) if s.read < s.size else s.positive / s.read
             for s in (flagged, unflagged)]  # fmt: skip
    if probes and tell:
        drawn += [
            _jeffreys(probes.found, probes.planted, rng, draws),
            _jeffreys(probes.passed, probes.clean, rng, draws),
        ]
    else:
        drawn += [1.0, 1.0]
    values = recall(*np.broadcast_arrays(*drawn, np.zeros(draws))[:4])
    note = "" if tell else "no probes: readers are taken at their word"
    return Prevalence(estimate, percentile(values, level, "Jeffreys draws"), apparent, estimate, note)


def _jeffreys(k: int, n: int, rng: np.random.Generator, draws: int) -> np.ndarray:
    return rng.beta(k + 0.5, n - k + 0.5, draws)


def prevalence(packet: Packet, found: pd.DataFrame, *, rng: np.random.Generator, view: str | None = None
               ) -> pd.DataFrame:  # fmt: skip
    """Defective items among the flagged, among the others, in all; and the share of them that was flagged.

    Parameters
    ----------
    found : of :func:`~auditlib.review.outcomes.outcomes`, key opened. view : of a task with several.

    Returns
    -------
    DataFrame
        Rows ``flagged``, ``unflagged``, ``all``, ``recall of flags``; columns items, read, confirmed, undecided
        (cannot tell, or open), apparent, estimate, low, high, low_if, high_if (if all undecided rows were sound, or
        defective; before correction), note. Items that probes were made of belong to none of the rows.

    Raises
    ------
    AuditError
        The key is sealed.
    """
    if packet.key is None:
        raise AuditError("the key to the probes is sealed", mend="load the packet with open_key=True")
    name = view or packet.task.views[0].name
    here = found[found["view"].eq(name)]
    kinds = {k: part["outcome"] for k, part in here.groupby("kind")}
    none = pd.Series(dtype=str)
    planted, clean = (kinds.get(k, none) for k in (PLANTED, CLEAN))
    planted, clean = (x[x.ne("open")] for x in (planted, clean))
    # undecided probes are left out as undecided items are
    probes = Probes(*_counts(planted, CONFIRMED), *_counts(clean, REJECTED))
    strata, rows = {}, []
    for kind in (FLAGGED, UNFLAGGED):
        said = kinds.get(kind, none)
        confirmed, read = _counts(said, CONFIRMED)
        strata[kind] = Stratum(int(packet.key.population[kind]), read, confirmed)
        rows.append(_named(kind, [strata[kind]], [said], probes))
    both = [kinds.get(k, none) for k in strata if strata[k].size]
    rows.append(_named("all", [s for s in strata.values() if s.size], both, probes))
    recall = flag_recall(strata[FLAGGED], strata[UNFLAGGED], probes, rng=rng)
    rows.append({"rows": "recall of flags", **recall.as_row()})
    columns = ["rows", "items", "read", "confirmed", "undecided", "apparent", "estimate", "low", "high", "low_if",
               "high_if", "note"]  # fmt: skip
    return pd.DataFrame(rows).reindex(columns=columns)


def _counts(said: pd.Series, wanted: str) -> tuple[int, int]:
    """Rows with an outcome, and all that were decided."""
    return int(said.eq(wanted).sum()), int(said.isin([CONFIRMED, REJECTED]).sum())


def _named(name: str, strata: list[Stratum], said: list[pd.Series], probes: Probes) -> dict[str, Any]:
    total = sum(s.size for s in strata)
    low = high = 0.0
    for s, outcome in zip(strata, said):
        n = max(len(outcome), 1)
        undecided = len(outcome) - s.read
        low, high = low + s.size * s.positive / n, high + s.size * (s.positive + undecided) / n
    facts = {"items": total, "read": sum(s.read for s in strata), "confirmed": sum(s.positive for s in strata),
             "undecided": sum(len(o) for o in said) - sum(s.read for s in strata)}  # fmt: skip
    bounds = {"low_if": low / total if total else NAN, "high_if": high / total if total else NAN}
    return {"rows": name} | facts | corrected_prevalence(strata, probes).as_row() | bounds
