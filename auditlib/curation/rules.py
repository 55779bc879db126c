"""Five rules that recall items whose key, wording or scoring may be at fault, each with a score and a flag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.curation.ablation import whole_k
from auditlib.curation.data import NO_ANSWER, Answers, Draws
from auditlib.curation.exact import above, fraction, mean_of_means, times
from auditlib.curation.histogram import NO_MODAL, Vote, draws_made, vote
from auditlib.errors import AuditError

#: rules in the order of the columns of scores and flags
RULES = {
    "R1": "zero-correct",
    "R2": "majority against key",
    "R3": "high disagreement",
    "R4": "near-tied top answers",
    "R5": "low extraction",
}
_VERDICTS_ONLY = "not run: the runs hold verdicts only, no answers"


@dataclass(frozen=True)
class RuleSettings:
    """Thresholds of the five rules.

    Attributes
    ----------
    soft : R1 also flags choice items with a share of right draws of at most 1/(2k). majority, backing : R2, least share
        of the modal answer and of the models behind it. entropy : R3, least normalised entropy. gap, pair : R4, largest
        difference and least sum of the two largest shares. extraction, quantile : R5, an item's extraction rate below
        which, and the lower tail of a binomial with its source's rate in which, it is flagged.
    open_size : open answers count as so many options at most. family_aware : models of one provider share a vote.
    cutoffs : least score of each rule, in place of the thresholds. budget : share of items to recall by the largest
        score, in place of the flags.
    """

    soft: bool = False
    majority: str = "0.50"
    backing: str = "0.60"
    entropy: str = "0.80"
    gap: str = "0.10"
    pair: str = "0.60"
    extraction: str = "0.75"
    quantile: float = 0.025
    open_size: int = 8
    family_aware: bool = False
    cutoffs: tuple[float, ...] | None = None
    budget: str | None = None


@dataclass(frozen=True)
class RuleResult:
    """The five rules on every item.

    Attributes
    ----------
    score : shape (items, 5), 0 to 1 and 0.5 where the statistic meets its threshold (R1: that of the soft variant);
        nan where a rule could not judge. flag : shape (items, 5).
    state : rule -> ``run``, or ``not run: `` and why.
    zero, soft : the strict and the soft variant of R1, shape (items,).
    overall : largest score of an item. candidates : items recalled, by the flags or within the budget.
    shares : frame with the statistics behind the scores, one row per item.
    """

    score: NDArray[np.float64]
    flag: NDArray[np.bool_]
    state: dict[str, str]
    zero: NDArray[np.bool_]
    soft: NDArray[np.bool_]
    overall: NDArray[np.float64]
    candidates: NDArray[np.bool_]
    shares: pd.DataFrame

    @property
    def incidence(self) -> pd.DataFrame:
        return incidence(self.flag)


def rules(
    answers: Answers | None,
    full: Draws,
    k: ArrayLike,
    source: ArrayLike,
    settings: RuleSettings | None = None,
    families: Sequence[str] | None = None,
    key_known: ArrayLike | None = None,
) -> RuleResult:
    """Score and flag every item by the five rules.

    Parameters
    ----------
    answers : histograms of the panel, or None where the runs hold verdicts only
    full : counts of the panel with the image, shape (items, models)
    k : floats, shape (items,)
        Distinct valid answers, nan for open answers.
    source : shape (items,)
        Source of each item; R5 compares an item with its source.
    families : provider of each model, optional
        Models of one provider then share a vote.
    key_known : booleans, shape (items,), optional
        Items whose key is known; a key without a code is then an answer that nobody gave.

    Raises
    ------
    AuditError
        A threshold that is no number from 0 to 1, or cutoffs that are not five.

    Notes
    -----
    Each model weighs 1 and each of its n draws 1/n; draws without an answer are left out of the shares.
    """
    settings = settings or RuleSettings()
    options = whole_k(k)
    items, models = full.hits.shape
    score, flag = np.full((items, 5), np.nan), np.zeros((items, 5), bool)
    state = dict.fromkeys(RULES, "run")
    rate, zero, soft = _zero(full, options)
    chance = np.where(options > 0, options, settings.open_size)
    score[:, 0], flag[:, 0] = 1 - np.minimum(1, rate * chance), zero | soft if settings.soft else zero
    shares = {"rate": rate}
    if answers is None:
        state |= dict.fromkeys(("R2", "R3", "R4"), _VERDICTS_ONLY)
    else:
        codes = None if families is None else np.unique(np.asarray(families, str), return_inverse=True)[1]
        votes = [vote(answers, draws, models, codes) for draws in (answers.draws, answers.odd, answers.even)]
        known = answers.key >= 0
        judged = known if key_known is None else known | (np.asarray(key_known, bool) & zero)
        if judged.any():
            score[:, 1], flag[:, 1] = _against_key(votes, answers.key, settings)
            score[~judged, 1], flag[~judged, 1] = np.nan, False
        else:
            state["R2"] = "not run: no item has a key that answers can be compared with"
        score[:, 2], flag[:, 2], entropy = _disagreement(votes[0], answers.size, options, settings)
        score[:, 3], flag[:, 3] = _near_tie(votes[0], settings)
        shares |= _shares(votes[0], entropy)
    extracted = _extracted(answers, full)
    if extracted is None:
        state["R5"] = "not run: the runs do not tell which replies held no answer"
    else:
        score[:, 4], flag[:, 4], shares["extraction"] = _low_extraction(*extracted, source, settings)
    score[~(full.trials > 0).any(axis=1)] = np.nan
    if settings.cutoffs is not None:
        flag = _cut(score, settings.cutoffs)
    overall = np.fmax.reduce(score, axis=1)
    candidates = flag.any(axis=1) if settings.budget is None else within_budget(score, settings.budget)
    return RuleResult(score, flag, state, zero, soft, overall, candidates, pd.DataFrame(shares))


def incidence(flag: NDArray[np.bool_]) -> pd.DataFrame:
    """Items of each of the 32 combinations of flags: columns R1 to R5, ``n`` and ``share``."""
    places = np.bincount(flag.astype(np.int64) @ (16, 8, 4, 2, 1), minlength=32)
    table = pd.DataFrame(list(product((False, True), repeat=5)), columns=list(RULES))
    return table.assign(n=places, share=places / max(len(flag), 1))


def within_budget(score: NDArray[np.float64], share: str | float) -> NDArray[np.bool_]:
    """The top share of items by their largest score, then by the sum of scores, then in order; none with score 0."""
    cut = fraction(share, "recall budget")
    take = len(score) * cut.numerator // cut.denominator
    largest = np.nan_to_num(np.fmax.reduce(score, axis=1), nan=0.0)
    order = np.lexsort((-np.nansum(score, axis=1), -largest))
    out = np.zeros(len(score), bool)
    out[order[:take]] = True
    return out & (largest > 0)


def _cut(score: NDArray, cutoffs: Sequence[float]) -> NDArray[np.bool_]:
    if len(cutoffs) != len(RULES):
        raise AuditError(f"{len(cutoffs)} cutoffs for {len(RULES)} rules", mend="give one score for each rule")
    return np.nan_to_num(score, nan=-1.0) >= np.asarray(cutoffs, float)


def _ramp(value: ArrayLike, threshold: float) -> NDArray[np.float64]:
    """0 at 0, 0.5 at the threshold, 1 at 1, straight between."""
    value = np.clip(np.nan_to_num(np.asarray(value, float)), 0, 1)
    return np.interp(value, [0, threshold, 1], [0, 0.5, 1]) if 0 < threshold < 1 else value


def _ratio(num: NDArray, den: NDArray) -> NDArray[np.float64]:
    return np.divide(num.astype(float), den.astype(float), out=np.zeros(len(num)), where=den.astype(float) > 0)


def _least(num: NDArray, den: NDArray, threshold: str, what: str) -> NDArray[np.bool_]:
    """``num / den >= threshold`` in whole numbers; never where ``den`` is 0."""
    cut = fraction(threshold, what)
    return (den > 0) & (times(num, cut.denominator) >= times(den, cut.numerator))


def _zero(full: Draws, options: NDArray) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    rates = mean_of_means(full.hits, full.trials)
    zero = rates.seen & (full.hits.sum(axis=1) == 0)
    soft = rates.seen & (options > 0) & ~above(rates, 1, 2 * np.maximum(options, 1))
    return rates.value, zero, soft


def _against_key(votes: Sequence[Vote], key: NDArray, settings: RuleSettings) -> tuple[NDArray, NDArray]:
    """R2: the same wrong answer leads in all draws and in each half of the samples; a half without draws is passed."""
    everything = votes[0]
    wrong = (everything.modal != NO_MODAL) & (everything.modal != key)
    score, flag = np.where(wrong, 1.0, 0.0), wrong.copy()
    for v in votes:
        drawn = np.asarray(v.voters > 0, bool)
        same = v.modal == everything.modal
        strength = np.minimum(_ramp(_ratio(v.first, v.total), float(fraction(settings.majority))),
                              _ramp(_ratio(v.backing, v.voters), float(fraction(settings.backing))))  # fmt: skip
        holds = _least(v.first, v.total, settings.majority, "majority") & _least(
            v.backing, v.voters, settings.backing, "share of models"
        )
        score = np.where(drawn, np.minimum(score, np.where(same, strength, 0.0)), score)
        flag &= ~drawn | (same & holds)
    return score, flag


def _disagreement(v: Vote, size: NDArray, options: NDArray, settings: RuleSettings) -> tuple[NDArray, ...]:
    """R3: entropy over the log of the distinct valid answers, or of those seen of an open item."""
    q = np.where(options > 0, np.minimum(size, options), np.minimum(v.seen, settings.open_size))
    entropy = np.where(q > 1, np.minimum(v.entropy / np.log(np.maximum(q, 2)), 1.0), 0.0)
    edge = float(fraction(settings.entropy, "entropy threshold"))
    return _ramp(entropy, edge), (entropy >= edge) & np.asarray(v.total > 0, bool), entropy


def _near_tie(v: Vote, settings: RuleSettings) -> tuple[NDArray, NDArray]:
    """R4: the two largest answers are near each other, hold most draws, and silence is not among the two largest."""
    gap, pair = fraction(settings.gap, "gap"), fraction(settings.pair, "sum of two shares")
    answered = np.asarray((v.total > 0) & (v.silent <= v.second), bool)
    near = times(v.first - v.second, gap.denominator) <= times(v.total, gap.numerator)
    both = _ratio(v.first + v.second, v.total)
    score = np.minimum(_ramp(1 - _ratio(v.first - v.second, v.total), 1 - float(gap)), _ramp(both, float(pair)))
    flag = near & _least(v.first + v.second, v.total, settings.pair, "sum of two shares") & answered
    return np.where(answered, score, 0.0), np.asarray(flag, bool)


def _extracted(answers: Answers | None, full: Draws) -> tuple[NDArray, NDArray] | None:
    """Draws with an answer and all draws of each item; None where the runs do not tell."""
    if answers is not None:
        valid = answers.answer != NO_ANSWER
        items, draws = len(answers.size), answers.draws
        given = np.bincount(answers.item[valid], draws[valid], items).astype(np.int64)
        return given, draws_made(answers, draws, full.hits.shape[1]).sum(axis=1)
    if not full.abstained.any():
        return None
    made = full.trials.sum(axis=1, dtype=np.int64) // full.unit
    return made - full.abstained.sum(axis=1, dtype=np.int64) // full.unit, made


def _low_extraction(given: NDArray, made: NDArray, source: ArrayLike, settings: RuleSettings) -> tuple[NDArray, ...]:
    """R5: few draws hold an answer, and fewer than chance leaves at the source's rate."""
    from scipy.special import bdtr

    code = pd.factorize(np.asarray(source, dtype=object), use_na_sentinel=False)[0]
    expected = _ratio(np.bincount(code, given), np.bincount(code, made))[code]
    edge = fraction(settings.extraction, "extraction rate")
    tail = np.where(made > 0, bdtr(given.astype(float), np.maximum(made, 1), expected), 1.0)
    rate = np.where(made > 0, _ratio(given, made), np.nan)
    score = np.minimum(_ramp(1 - rate, 1 - float(edge)), _ramp(1 - tail, 1 - settings.quantile))
    flag = (times(given, edge.denominator) < times(made, edge.numerator)) & (tail < settings.quantile)
    return score, flag & (made > 0), rate


def _shares(v: Vote, entropy: NDArray) -> dict[str, NDArray]:
    return {
        "modal": v.modal, "top1": _ratio(v.first, v.total), "top2": _ratio(v.second, v.total),
        "backing": _ratio(v.backing, v.voters), "entropy": entropy,
    }  # fmt: skip
