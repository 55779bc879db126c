"""Whether a filter's gain is the filter's: prompts with wider ratings, and judges that err together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib import seeds
from auditlib.judges.decision_data import CHOSEN, Choices, Prompts
from auditlib.judges.decisions import per_prompt
from auditlib.judges.slots import design
from auditlib.stats.conditional_logit import conditional_logit, probabilities
from auditlib.stats.paired import Estimate, bootstrap, cluster_totals, mean_interval
from auditlib.stats.poisson_binomial import PoissonBinomial, poisson_binomial_test

NAN = float("nan")
_TIE = 1e-9


def _difference(totals: NDArray) -> NDArray:
    """Mean kept minus mean dropped."""
    kept = np.divide(totals[:, 0], totals[:, 1], out=np.full(len(totals), NAN), where=totals[:, 1] > 0)
    return kept - np.divide(totals[:, 2], totals[:, 3], out=np.full(len(totals), NAN), where=totals[:, 3] > 0)


def confound_check(
    prompts: Prompts, weights: NDArray, keep: NDArray, *, seed: int = 0, draws: int = 2_000
) -> pd.DataFrame:
    """Repeat kept minus dropped where the spread of the ratings cannot make it.

    Returns
    -------
    DataFrame
        ``check, estimate, low, high, bca_low, bca_high, kept, dropped``: ``spread`` (highest minus lowest rating:
        above 0 means that kept prompts had more to gain), ``gain``, ``normalised gain`` (gain over best minus random
        of each prompt with such room), ``gain, tercile 1..3`` of the spread, and ``gain, within terciles`` (their mean
        weighted by prompts); each the difference kept minus dropped.
    """
    table = per_prompt(prompts, weights).assign(keep=keep, spread=prompts.best - prompts.worst)
    table = table[table["gain"].notna()].reset_index(drop=True)
    room = table["room"].to_numpy()
    share = np.divide(table["gain"].to_numpy(), room, out=np.full(len(table), NAN), where=room > _TIE)
    rank = table["spread"].rank(method="average", pct=True).to_numpy() if len(table) else np.zeros(0)
    tercile = np.minimum(np.floor(rank * 3 - 1e-9), 2).astype(int)
    rng = seeds.generator(seed, "judges", "confound")
    rows: list[dict[str, Any]] = []

    def one(name: str, values: NDArray, mine: NDArray) -> None:
        k = table["keep"].to_numpy(float)
        use = mine & ~np.isnan(values)
        totals = cluster_totals(_split(values, k)[use], table["cluster"].to_numpy()[use])
        rows.append({"check": name, **bootstrap(totals, _difference, rng=rng, draws=draws).as_row(),
                     "kept": int((use & (k > 0)).sum()), "dropped": int((use & (k == 0)).sum())})  # fmt: skip

    every = np.ones(len(table), bool)
    gain = table["gain"].to_numpy()
    one("spread", table["spread"].to_numpy(), every)
    one("gain", gain, every)
    one("normalised gain", share, every)
    for t in range(3):
        one(f"gain, tercile {t + 1}", gain, tercile == t)
    split = _split(gain, table["keep"].to_numpy(float))
    wide = np.concatenate([split * (tercile == t)[:, None] for t in range(3)], axis=1)

    def within(totals: NDArray) -> NDArray:
        parts = [totals[:, 4 * t : 4 * t + 4] for t in range(3)]
        n = np.stack([p[:, 1] + p[:, 3] for p in parts], axis=1)
        d = np.stack([_difference(p) for p in parts], axis=1)
        n = np.where(np.isnan(d), 0.0, n)
        total = n.sum(axis=1)
        return np.divide(np.nansum(n * np.nan_to_num(d), axis=1), total, out=np.full(len(total), NAN), where=total > 0)

    found = bootstrap(cluster_totals(wide, table["cluster"].to_numpy()), within, rng=rng, draws=draws)
    kept = int(table["keep"].sum())
    rows.append({"check": "gain, within terciles", **found.as_row(), "kept": kept, "dropped": len(table) - kept})
    return pd.DataFrame(rows)


def _split(values: NDArray, k: NDArray) -> NDArray[np.float64]:
    filled = np.nan_to_num(values)
    return np.column_stack([filled * k, k, filled * (1 - k), 1 - k])


@dataclass(frozen=True)
class SharedErrors:
    """How often two judges make the same bad choice, against independence given what people rate.

    Attributes
    ----------
    test : agreements on bad candidates among prompts, Poisson-binomial (``upper``: as many or more by chance).
    excess : observed minus expected share of prompts, interval over clusters.
    bad_among_agreed : share of the prompts on which they agree where the choice is bad: what a filter on their
        agreement keeps. prompts : prompts both decided.
    """

    test: PoissonBinomial
    excess: Estimate
    bad_among_agreed: float
    prompts: int


def shared_errors(
    prompts: Prompts, first: Choices, second: Choices, *, epsilon: float = 0.0, seed: int = 0
) -> SharedErrors | None:
    """Correlated-judge check on the first choice of each judge at each prompt.

    Parameters
    ----------
    epsilon : a candidate more than this below the best rating is bad.

    Notes
    -----
    Each judge's choices follow a conditional logit on the rating, its square and being the best rated; two judges that
    are independent given these agree on bad candidate j with chance ``t1_j t2_j``. Agreement beyond that is shared
    error, or a shared liking for something that people do not rate.

    Returns
    -------
    None where no prompt was decided by both.
    """
    picks, models = [], []
    for choices in (first, second):
        calls = choices.at(choices.state == CHOSEN)
        if not len(calls.prompt):
            return None
        calls = calls.at(np.unique(calls.prompt, return_index=True)[1])
        pick = np.full(len(prompts.prompt), -1)
        pick[calls.prompt] = calls.candidate
        picks.append(pick)
        models.append(_chances(prompts, choices))
    both = (picks[0] >= 0) & (picks[1] >= 0)
    if not both.any():
        return None
    bad = prompts.rating < prompts.best[:, None] - epsilon - _TIE
    chance = (np.nan_to_num(models[0] * models[1]) * bad).sum(axis=1)[both]
    rows = np.flatnonzero(both)
    agree = picks[0][rows] == picks[1][rows]
    hit = agree & bad[rows, picks[0][rows]]
    test = poisson_binomial_test(int(hit.sum()), np.clip(chance, 0, 1))
    excess = mean_interval(hit - chance, prompts.cluster[rows], rng=seeds.generator(seed, "judges", "shared errors"))
    return SharedErrors(test, excess, float(hit[agree].mean()) if agree.any() else NAN, len(rows))


def _chances(prompts: Prompts, choices: Choices) -> NDArray[np.float64]:
    """Fitted chance of each candidate given what people rate, whatever the slot, shape (P, N)."""
    best = np.where(prompts.there, (prompts.rating >= prompts.best[:, None] - _TIE).astype(float), np.nan)
    centred = prompts.rating - np.nanmean(prompts.rating)
    covariates = {"rating": centred, "square": centred**2, "best": best}
    calls = choices.at(choices.state == CHOSEN)
    x, group, chosen, _ = design(calls, covariates, slots=False)
    fit = conditional_logit(x, group, chosen)
    p, j = np.nonzero(prompts.there)
    out = np.full(prompts.rating.shape, np.nan)
    out[p, j] = probabilities(np.column_stack([v[p, j] for v in covariates.values()]), p, fit.beta)
    return out
