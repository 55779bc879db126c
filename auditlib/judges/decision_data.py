"""Decisions as arrays: prompts with their rated candidates, and which slot a judge chose when in which order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.errors import AuditError

#: codes of the states of a call
CHOSEN, TIE, NONE = 1, 0, -1


@dataclass(frozen=True)
class Prompts:
    """Prompts with two or more candidates; N is the largest number of candidates, cells beyond a prompt's n are NaN.

    Attributes
    ----------
    prompt : shape (P,), names. names : candidates of each prompt. n : shape (P,), their number.
    rating : shape (P, N), mean human rating. similarity, side, length : shape (P, N), or None where unknown.
    cluster : shape (P,), prompts that are resampled together. group : shape (P,), such as a culture; or None.
    alone : prompts with a single candidate, left out: there is nothing to decide.
    """

    prompt: NDArray
    names: tuple[tuple[str, ...], ...]
    n: NDArray[np.int64]
    rating: NDArray[np.float64]
    similarity: NDArray[np.float64] | None
    side: NDArray[np.float64] | None
    length: NDArray[np.float64] | None
    cluster: NDArray
    group: NDArray | None
    alone: int = 0

    @property
    def there(self) -> NDArray[np.bool_]:
        """Cells that hold a candidate, shape (P, N)."""
        return np.arange(self.rating.shape[1]) < self.n[:, None]

    @property
    def random(self) -> NDArray[np.float64]:
        """Mean rating of each prompt's candidates: the exact value of a random choice."""
        return np.nansum(self.rating, axis=1) / self.n

    @property
    def best(self) -> NDArray[np.float64]:
        return np.nanmax(self.rating, axis=1)

    @property
    def worst(self) -> NDArray[np.float64]:
        return np.nanmin(self.rating, axis=1)


@dataclass(frozen=True)
class Choices:
    """Calls of one judge.

    Attributes
    ----------
    prompt, order, repeat : shape (M,): place of the prompt, code of the order within the prompt (in the order of first
        use), repeat within the order.
    shown : shape (M, N), candidate in each slot, -1 beyond the slots.
    slot : shape (M,), chosen slot, -1 for none. state : shape (M,), :data:`CHOSEN`, :data:`TIE` (declared) or
        :data:`NONE` (no judgement, a tie from failure included).
    """

    judge: str
    prompt: NDArray[np.int64]
    order: NDArray[np.int64]
    repeat: NDArray[np.int64]
    shown: NDArray[np.int64]
    slot: NDArray[np.int64]
    state: NDArray[np.int64]

    @property
    def candidate(self) -> NDArray[np.int64]:
        """Chosen candidate of each call, -1 for none."""
        found = self.shown[np.arange(len(self.slot)), np.maximum(self.slot, 0)]
        return np.where(self.slot >= 0, found, -1)

    @property
    def slots(self) -> NDArray[np.int64]:
        """Number of slots of each call."""
        return (self.shown >= 0).sum(axis=1)

    def at(self, calls: NDArray) -> Choices:
        """Some of the calls (places or mask)."""
        return Choices(self.judge, self.prompt[calls], self.order[calls], self.repeat[calls], self.shown[calls],
                       self.slot[calls], self.state[calls])  # fmt: skip


def prompts_of(candidates: pd.DataFrame) -> Prompts:
    """Prompts from a frame of candidates (see :func:`~auditlib.judges.readers.read_candidates`).

    Raises
    ------
    AuditError
        A rating, similarity or side effect that is missing for some candidates of the prompts; a prompt in two groups
        or clusters; no prompt with two candidates.
    """
    sizes = candidates.groupby("prompt", sort=False)["candidate"].transform("size").to_numpy()
    table = candidates[sizes > 1].reset_index(drop=True)
    alone = int(candidates["prompt"].nunique() - table["prompt"].nunique())
    if not len(table):
        raise AuditError("no prompt has two candidates", mend="give the candidates that the judge chose from")
    code, names = pd.factorize(table["prompt"])
    place = table.groupby(code).cumcount().to_numpy()
    n = np.bincount(code)
    shape = (len(names), int(n.max()))

    def spread(column: str) -> NDArray[np.float64] | None:
        if column not in table or table[column].isna().all():
            return None
        lost = table[column].isna()
        if lost.any():
            at = table[lost].iloc[0]
            raise AuditError(f"candidate {at['candidate']!r} of prompt {at['prompt']!r} has no {column}",
                             mend=f"give it, or leave {column} out for all")  # fmt: skip
        out = np.full(shape, np.nan)
        out[code, place] = table[column].to_numpy(float)
        return out

    rating = spread("rating")
    if rating is None:
        raise AuditError("no candidate has a rating", mend="give people's ratings of the candidates")
    listed = tuple(tuple(g) for _, g in table.groupby(code, sort=True)["candidate"])
    return Prompts(
        np.asarray(names, object), listed, n.astype(np.int64), rating, spread("similarity"), spread("side"),
        spread("length"), _constant(table, code, "cluster", names), _constant(table, code, "group", None), alone,
    )  # fmt: skip


def _constant(table: pd.DataFrame, code: NDArray, column: str, default) -> NDArray:
    """A text that all candidates of a prompt share."""
    if column not in table:
        return None if default is None else np.asarray(default, object)
    mixed = table.groupby(code)[column].nunique(dropna=False).to_numpy() > 1
    if mixed.any():
        prompt = table["prompt"].to_numpy()[code == np.flatnonzero(mixed)[0]][0]
        raise AuditError(f"candidates of prompt {prompt!r} differ in {column}", mend=f"give each prompt one {column}")
    found = table.groupby(code)[column].first().to_numpy(dtype=object)
    blank = np.array([not isinstance(v, str) or not v.strip() for v in found])
    # without a name of its own a prompt is its own cluster, and belongs to no group
    return np.where(blank, "(none)" if default is None else np.asarray(default, object), found)


def choices_of(calls: pd.DataFrame, prompts: Prompts, judge: str, paradigm: str = "best_of_n") -> Choices:
    """One judge's calls of one paradigm, in the order of prompts, orders and repeats.

    Parameters
    ----------
    calls : frame of judge calls; ``instance`` is the prompt. Calls of prompts that are not there are left out.
    paradigm : ``best_of_n``: every call shows all candidates of its prompt. ``pairwise``: two of them.

    Raises
    ------
    AuditError
        A call shows a candidate that its prompt does not have, or (best of n) not all of them.
    """
    mine = calls[calls["judge"].eq(judge) & calls["paradigm"].eq(paradigm)]
    place = pd.Index(prompts.prompt).get_indexer(mine["instance"])
    mine, place = mine[place >= 0], place[place >= 0]
    codes = [{name: j for j, name in enumerate(listed)} for listed in prompts.names]
    shown = np.full((len(mine), prompts.rating.shape[1]), -1, np.int64)
    for i, (p, names) in enumerate(zip(place.tolist(), mine["shown"])):
        try:
            at = [codes[p][name] for name in names]
        except KeyError as e:
            raise _shows(mine, i, f"shows {e}, which has no rating") from None
        if paradigm == "best_of_n" and len(at) != prompts.n[p]:
            raise _shows(mine, i, f"shows {len(at)} of {prompts.n[p]} candidates")
        shown[i, : len(at)] = at
    state = mine["state"].map({"chosen": CHOSEN, "tie": TIE}).fillna(NONE).astype(int).to_numpy()
    slot, repeat = mine["slot"].to_numpy(np.int64), mine["repeat"].to_numpy(np.int64)
    order = _orders(place, shown)
    by = np.lexsort((np.arange(len(place)), repeat, order, place))
    return Choices(judge, place[by].astype(np.int64), order[by], repeat[by], shown[by], slot[by], state[by])


def _shows(mine: pd.DataFrame, i: int, why: str) -> AuditError:
    row = int(mine["row"].iloc[i])
    return AuditError(f"a call of judge {mine['judge'].iloc[i]!r} on prompt {mine['instance'].iloc[i]!r} {why}",
                      file=mine["run"].iloc[i] or None, row=row or None,
                      mend="show the candidates that people rated, all of them")  # fmt: skip


def _orders(place: NDArray, shown: NDArray) -> NDArray[np.int64]:
    """Code of each call's order within its prompt, by first use."""
    code = pd.factorize(pd.Series(list(map(tuple, np.column_stack([place, shown]).tolist()))))[0]
    out, seen, count = np.zeros(len(place), np.int64), {}, {}
    for i, (p, c) in enumerate(zip(place.tolist(), code.tolist())):
        if c not in seen:
            seen[c] = count.get(p, 0)
            count[p] = seen[c] + 1
        out[i] = seen[c]
    return out


def order_weights(shown: NDArray) -> NDArray[np.float64] | None:
    """Weights of the orders of one prompt under which every candidate lies in every slot equally often.

    Parameters
    ----------
    shown : shape (orders, n), candidate in each slot.

    Returns
    -------
    shape (orders,), summing to 1; equal weights where these do (cyclic shifts). None where no weights do.
    """
    from scipy.optimize import nnls

    orders, n = shown.shape
    cells = np.zeros((n * n, orders))
    for o in range(orders):
        cells[np.arange(n) * n + shown[o], o] = 1
    if np.allclose(cells.mean(axis=1), 1 / n):
        return np.full(orders, 1 / orders)
    if orders < n:
        return None
    weights, residual = nnls(cells, np.full(n * n, 1 / n))
    return weights / weights.sum() if residual < 1e-8 else None
