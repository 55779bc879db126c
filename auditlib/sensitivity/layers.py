"""Geometry of saved visual tokens by layer: how alike tokens become, within an image and between images.

Input is a file of arrays: tokens themselves, or sums that hold all that is needed, so that no model is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.errors import AuditError
from auditlib.stats.paired import mean_interval, sign_flip

NAN = float("nan")


def pairwise_cosine(tokens: ArrayLike) -> NDArray[np.float64]:
    """Mean cosine over the pairs of tokens, ``(|sum_t u_t|^2 - T) / (T (T - 1))`` with unit vectors u.

    Parameters
    ----------
    tokens : shape (..., T, d). Exact in O(T d): no matrix of pairs is made.
    """
    h = np.asarray(tokens, float)
    size = np.linalg.norm(h, axis=-1, keepdims=True)
    if (size == 0).any():
        raise AuditError("a token is the zero vector, which has no direction", mend="leave such tokens out")
    return cosine_of_sum((h / size).sum(axis=-2), h.shape[-2])


def cosine_of_sum(unit_sum: ArrayLike, tokens: ArrayLike) -> NDArray[np.float64]:
    """:func:`pairwise_cosine` from the sum of unit vectors, shape (..., d), and the number of tokens."""
    s, t = np.asarray(unit_sum, float), np.asarray(tokens, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return ((s**2).sum(axis=-1) - t) / (t * (t - 1))


def spread(singular: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Effective rank ``exp(entropy)`` and participation ratio of the covariance, from singular values of the centred
    tokens, shape (..., r).

    Notes
    -----
    Roy and Vetterli (2007); shares are those of the eigenvalues, the squares of the singular values.

    Examples
    --------
    >>> [round(float(x), 3) for x in spread([1.0, 1.0, 0.0])]
    [2.0, 2.0]
    """
    value = np.asarray(singular, float) ** 2
    total = value.sum(axis=-1, keepdims=True)
    p = value / np.where(total > 0, total, NAN)
    entropy = -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=-1)
    return np.exp(entropy), 1 / (p**2).sum(axis=-1)


def cka(first: ArrayLike, second: ArrayLike) -> float:
    """Linear centred kernel alignment of two matrices with the same rows (Kornblith et al. 2019), in [0, 1]."""
    x, y = (np.asarray(a, float) - np.mean(a, axis=0) for a in (first, second))
    cross = np.linalg.norm(y.T @ x) ** 2
    return float(cross / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)))


@dataclass(frozen=True)
class States:
    """Summaries of the visual tokens of n images at L layers.

    Attributes
    ----------
    item : shape (n,), names. cosine : (n, L), mean pairwise cosine. corrected : the same after the layer's mean over
        images was subtracted. control : (n, L), tokens moved between images inside the layer. rank, participation :
        (n, L). mean : (n, L, d). text : (n, L), cosine among text tokens. degraded : (n, L, d), mean under a change.
        tokens : (n,). What was not saved is None.
    """

    item: NDArray
    cosine: NDArray[np.float64]
    mean: NDArray[np.float64]
    tokens: NDArray[np.int64]
    corrected: NDArray[np.float64] | None = None
    control: NDArray[np.float64] | None = None
    rank: NDArray[np.float64] | None = None
    participation: NDArray[np.float64] | None = None
    text: NDArray[np.float64] | None = None
    degraded: NDArray[np.float64] | None = None
    resolution: NDArray[np.float64] | None = None


def read_states(path: str | Path, *, rng: np.random.Generator) -> States:
    """Read an npz of states.

    Parameters
    ----------
    path : ``item`` (n,) and either ``tokens`` (n, L, T, d), or sums: ``unit_sum`` and ``mean`` (n, L, d), ``count``
        (n,); optional ``corrected_sum``, ``control_sum`` (n, L, d), ``singular`` (n, L, r), ``text`` (n, L),
        ``degraded`` (n, L, d), ``resolution`` (n,). Arrays of objects are never loaded.
    rng : of the control, which needs the tokens.

    Raises
    ------
    AuditError
        The file is unreadable, arrays are missing or of unlike shape, values are not finite.
    """
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            a = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError) as e:
        raise AuditError(
            f"not readable as npz ({type(e).__name__})", file=path, mend="write it with numpy.savez"
        ) from None
    names = a.get("item")
    sums = {"unit_sum", "mean", "count"} <= set(a)
    if names is None or not ("tokens" in a or sums):
        raise AuditError(
            "the states lack arrays", file=path, mend="save item and tokens, or item, unit_sum, mean, count"
        )
    for name, array in a.items():
        if len(array) != len(names):
            raise AuditError(f"{name} has {len(array)} rows for {len(names)} items", file=path, mend="give one each")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise AuditError(f"{name} holds values that are no numbers", file=path, mend="save finite states")
    extra = {n: a[n].astype(float) for n in ("text", "degraded", "resolution") if n in a}
    names = names.astype(str)
    if "tokens" in a:
        return summarise(names, a["tokens"], rng=rng, **extra)
    rank, part = spread(a["singular"]) if "singular" in a else (None, None)
    count = a["count"].astype(float)[:, None]
    moved = {n: cosine_of_sum(a[f"{n}_sum"], count) for n in ("corrected", "control") if f"{n}_sum" in a}
    return States(names, cosine_of_sum(a["unit_sum"], count), a["mean"].astype(float), a["count"].astype(np.int64),
                  rank=rank, participation=part, **moved, **extra)  # fmt: skip


def summarise(item: ArrayLike, tokens: ArrayLike, *, rng: np.random.Generator, **extra: Any) -> States:
    """Summaries of tokens, shape (n, L, T, d), with the random-token control."""
    h = np.asarray(tokens, float)
    if h.ndim != 4 or h.shape[2] < 2:
        raise AuditError(
            f"tokens have shape {h.shape}", mend="give (images, layers, tokens, dimensions), 2 tokens or more"
        )
    n, layers, t, d = h.shape
    centred = h - h.mean(axis=(0, 2), keepdims=True)
    control = np.empty((n, layers))
    for k in range(layers):
        pool = centred[:, k].reshape(n * t, d)
        control[:, k] = pairwise_cosine(pool[rng.permutation(n * t)].reshape(n, t, d))
    inner = h - h.mean(axis=2, keepdims=True)
    rank, part = spread(np.linalg.svd(inner, compute_uv=False))
    return States(np.asarray(item), pairwise_cosine(h), h.mean(axis=2), np.full(n, t), pairwise_cosine(centred),
                  control, rank, part, **extra)  # fmt: skip


def between(mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean cosine between the mean vectors of different images, by layer; ``mean`` has shape (n, L, d)."""
    return pairwise_cosine(np.moveaxis(mean, 0, 1))


def nearest_image(mean: NDArray[np.float64], degraded: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of degraded images whose nearest original (by cosine of the mean vectors) is their own, by layer."""
    a, b = (np.moveaxis(x / np.linalg.norm(x, axis=-1, keepdims=True), 0, 1) for x in (degraded, mean))
    return (np.argmax(a @ np.swapaxes(b, 1, 2), axis=2) == np.arange(mean.shape[0])).mean(axis=1)


def layer_table(s: States) -> pd.DataFrame:
    """Means over images by layer; columns of what was not saved are missing."""
    n, layers = s.cosine.shape

    def column(values: NDArray | None) -> NDArray:
        return np.full(layers, NAN) if values is None else values.mean(axis=0)

    near = far = np.full(layers, NAN)
    if s.degraded is not None:
        near = nearest_image(s.mean, s.degraded)
        product = (s.mean * s.degraded).sum(axis=-1)
        far = (1 - product / np.linalg.norm(s.mean, axis=-1) / np.linalg.norm(s.degraded, axis=-1)).mean(axis=0)
    chain = [NAN] + [cka(s.mean[:, k - 1], s.mean[:, k]) for k in range(1, layers)] if n > 2 else [NAN] * layers
    return pd.DataFrame({
        "layer": np.arange(1, layers + 1), "images": n, "cosine": column(s.cosine), "corrected": column(s.corrected),
        "control": column(s.control), "text": column(s.text), "rank": column(s.rank),
        "participation": column(s.participation), "between": between(s.mean) if n > 1 else NAN, "cka": chain,
        "nearest": near, "moved": far,
    })  # fmt: skip


def layer_tests(s: States, *, rng: np.random.Generator, draws: int = 2_000) -> pd.DataFrame:
    """Whether tokens grow alike with depth: Spearman by image with a sign test, last less first third, control.

    Returns
    -------
    DataFrame
        Rows ``Spearman of cosine with layer``, ``last less first third``, ``excess over moved tokens``, each as the
        mean over images with interval and exact or sign-flip p; also of the corrected cosine where there is one.
    """
    rows = []
    for words, value in (("cosine", s.cosine), ("corrected cosine", s.corrected)):
        if value is None or value.shape[1] < 3:
            continue
        rho = _spearman_rows(value)
        third = max(1, value.shape[1] // 3)
        rise = value[:, -third:].mean(axis=1) - value[:, :third].mean(axis=1)
        up, moved = int((rho > 0).sum()), int((np.abs(rho) > 1e-12).sum())
        rows.append(_row(f"Spearman of {words} with layer", rho, rng, draws) | {"p": _sign(up, moved), "up": up})
        rows.append(_row(f"last less first third, {words}", rise, rng, draws) | {"up": int((rise > 0).sum())})
    if s.control is not None and s.corrected is not None:
        excess = (s.corrected - s.control).mean(axis=1)
        rows.append(_row("excess of corrected cosine over moved tokens", excess, rng, draws)
                    | {"up": int((excess > 0).sum())})  # fmt: skip
        # the control itself must hold no excess: its mean cosine is that of tokens drawn from all images
        rows.append(_row("corrected cosine of moved tokens", s.control.mean(axis=1), rng, draws)
                    | {"up": int((s.control.mean(axis=1) > 0).sum())})  # fmt: skip
    return pd.DataFrame(rows)


def _row(what: str, values: NDArray, rng: np.random.Generator, draws: int) -> dict[str, Any]:
    seen = mean_interval(values, rng=rng, draws=draws)
    return {"what": what, "n": len(values), "estimate": seen.value, "low": seen.interval.low,
            "high": seen.interval.high, "p": sign_flip(values, rng=rng).p}  # fmt: skip


def _sign(up: int, moved: int) -> float:
    from scipy.stats import binomtest

    return float(binomtest(up, moved, 0.5).pvalue) if moved else 1.0


def _spearman_rows(values: NDArray) -> NDArray[np.float64]:
    """Rank correlation of each row with its columns' order; 0 where a row does not vary."""
    from scipy.stats import rankdata

    r = rankdata(values, axis=1)
    r = r - r.mean(axis=1, keepdims=True)
    x = np.arange(values.shape[1]) - (values.shape[1] - 1) / 2
    size = np.linalg.norm(r, axis=1) * np.linalg.norm(x)
    return np.divide(r @ x, size, out=np.zeros(len(r)), where=size > 0)


def link(s: States, drop: pd.Series) -> dict[str, Any]:
    """Partial rank correlation of the last third's cosine with an image's fall in accuracy, given its size.

    Parameters
    ----------
    drop : item -> mean fall over models.

    Returns
    -------
    dict
        ``n``, ``rho``, ``p`` (t with n - 2 - controls degrees of freedom), ``controls``. An association between images;
        a possible explanation, no proof.
    """
    from scipy.stats import rankdata, t

    third = max(1, s.cosine.shape[1] // 3)
    table = pd.DataFrame({"x": s.cosine[:, -third:].mean(axis=1), "tokens": s.tokens}, index=s.item)
    if s.resolution is not None:
        table["resolution"] = s.resolution
    table["y"] = drop.reindex(s.item).to_numpy(float)
    table = table.dropna()
    controls = [c for c in ("tokens", "resolution") if c in table and table[c].nunique() > 1]
    n, free = len(table), len(table) - 2 - len(controls)
    if free < 1 or table["x"].nunique() < 2 or table["y"].nunique() < 2:
        return {"n": n, "rho": NAN, "p": NAN, "controls": ", ".join(controls)}
    ranks = np.column_stack([rankdata(table[c]) for c in ["x", "y", *controls]])
    ranks = ranks - ranks.mean(axis=0)
    x, y = (_residual(ranks[:, j], ranks[:, 2:]) for j in (0, 1))
    size = np.linalg.norm(x) * np.linalg.norm(y)
    rho = float(np.clip(x @ y / size, -1, 1)) if size > 1e-9 else NAN
    p = float(2 * t.sf(abs(rho) * np.sqrt(free / max(1 - rho**2, 1e-300)), free)) if rho == rho else NAN
    return {"n": n, "rho": rho, "p": p, "controls": ", ".join(controls)}


def _residual(v: NDArray, given: NDArray) -> NDArray[np.float64]:
    return v if not given.shape[1] else v - given @ np.linalg.lstsq(given, v, rcond=None)[0]
