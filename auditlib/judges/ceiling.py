"""How far people's own ratings allow a decision to go: one half of the raters chooses, the other half scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.errors import AuditError
from auditlib.judges.decision_data import Prompts

_TIE = 1e-9


@dataclass(frozen=True)
class Ceiling:
    """Value that people reach for people.

    Attributes
    ----------
    value : of the choice of one half of the raters, rated by the other half. random, best : of a random choice, and of
        the best candidate by the same ratings that score it (optimistic), in the scoring half.
    share : ``(value - random) / (U_best - U_random)`` with all raters' means below the line: the normalised gain that
        a half of the raters has. low, high : 2.5 and 97.5 % of ``share`` over random halvings.
    prompts : prompts where every candidate has ratings in both halves. left_out : the others.
    """

    value: float
    random: float
    best: float
    share: float
    low: float
    high: float
    prompts: int
    left_out: int


def noise_ceiling(
    prompts: Prompts, ratings: pd.DataFrame, *, rng: np.random.Generator, splits: int = 200
) -> Ceiling | None:
    """Noise ceiling from single raters' ratings.

    Parameters
    ----------
    ratings : ``prompt, candidate, rater, rating``, see :func:`~auditlib.judges.readers.read_ratings`.
    splits : random halvings of each prompt's raters; an odd rater falls to either side. Both halves choose in turn.

    Returns
    -------
    None where no prompt has two raters for every candidate.

    Raises
    ------
    AuditError
        A rating of a candidate that the prompt lacks.
    """
    groups = _cubes(prompts, ratings)
    room = prompts.best - prompts.random
    used = np.zeros(len(prompts.prompt), bool)
    seen = []
    for _ in range(splits):
        places, worth = [], []
        for at, cube in groups:
            half = _halves(len(at), cube.shape[1], rng)[:, :, None]
            parts = [_means(np.where(side, cube, np.nan)) for side in (half, ~half)]
            whole = ~np.isnan(parts[0] + parts[1]).any(axis=1)
            used[at[whole]] = True
            for a, b in (parts, parts[::-1]):
                top = a[whole] >= a[whole].max(axis=1, keepdims=True) - _TIE
                value = (top * b[whole]).sum(axis=1) / top.sum(axis=1)
                places.append(at[whole])
                worth.append(np.column_stack([value, b[whole].mean(axis=1), b[whole].max(axis=1)]))
        if sum(map(len, places)):
            w = np.concatenate(worth)
            seen.append([*w.mean(axis=0), (w[:, 0] - w[:, 1]).sum() / max(room[np.concatenate(places)].sum(), _TIE)])
    if not seen:
        return None
    value, random, best, share = np.mean(seen, axis=0)
    low, high = np.quantile([s[3] for s in seen], [0.025, 0.975])
    n = int(used.sum())
    return Ceiling(float(value), float(random), float(best), float(share), float(low), float(high), n, len(used) - n)


def _halves(prompts: int, raters: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Raters of the first half, shape (prompts, raters); an odd one falls to either side."""
    rank = rng.random((prompts, raters)).argsort(axis=1).argsort(axis=1)
    odd = rng.integers(2, size=(prompts, 1)) if raters % 2 else 0
    return rank < raters // 2 + odd


def _means(cube: NDArray) -> NDArray[np.float64]:
    """Mean rating over the raters that gave one, cube of shape (prompts, raters, n); NaN where none did."""
    count = (~np.isnan(cube)).sum(axis=1)
    return np.divide(np.nansum(cube, axis=1), count, out=np.full(count.shape, np.nan), where=count > 0)


def _cubes(prompts: Prompts, ratings: pd.DataFrame) -> list[tuple[NDArray, NDArray[np.float64]]]:
    """Prompts with two raters or more by shape: their places, and ratings of shape (prompts, raters, n)."""
    place = {name: p for p, name in enumerate(prompts.prompt)}
    found: dict[tuple[int, int], list[tuple[int, NDArray]]] = {}
    for name, mine in ratings.groupby("prompt", sort=False):
        p = place.get(name)
        if p is None:
            continue
        j = pd.Index(prompts.names[p]).get_indexer(mine["candidate"])
        if (j < 0).any():
            lost = mine["candidate"].to_numpy()[np.argmax(j < 0)]
            raise AuditError(f"a rating of {lost!r}, which is no candidate of prompt {name!r}",
                             mend="use the same names in ratings and candidates")  # fmt: skip
        raters, people = pd.factorize(mine["rater"])
        if len(people) < 2:
            continue
        cube = np.full((len(people), int(prompts.n[p])), np.nan)
        cube[raters, j] = mine["rating"].to_numpy(float)
        found.setdefault(cube.shape, []).append((p, cube))
    return [(np.array([p for p, _ in same]), np.stack([c for _, c in same])) for same in found.values()]
