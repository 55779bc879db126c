"""Visual dependency of an item from its integer counts: the paper's four categories and the exact tie."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditlib.stats.tables import tie_region

#: names in the order of their codes; the first rule that holds decides
CATEGORIES = ("visual_dependent", "conflicting", "visual_supplement", "text_only")

_INT = NDArray[np.int64]


def _dependent(f: _INT, b: _INT, t: _INT) -> NDArray[np.bool_]:
    return (100 * f >= 99 * t) & (100 * b <= t)


def _conflicting(f: _INT, b: _INT, t: _INT) -> NDArray[np.bool_]:
    return 5 * (b - f) > t


def _supplement(f: _INT, b: _INT, t: _INT) -> NDArray[np.bool_]:
    return 5 * (f - b) >= t


_RULES: tuple[Callable[[_INT, _INT, _INT], NDArray[np.bool_]], ...] = (_dependent, _conflicting, _supplement)


def categories(full: ArrayLike, blind: ArrayLike, total: ArrayLike) -> NDArray[np.int8]:
    """Category code of each item.

    Parameters
    ----------
    full, blind : integer arrays
        Correct answers with and without the image.
    total : int or integer array
        Models times draws, one number or one for each item.

    Returns
    -------
    int8 array
        Index in :data:`CATEGORIES`; -1 where ``total`` is 0.

    Notes
    -----
    ``visual_dependent`` 100F >= 99nR and 100B <= nR; ``conflicting`` 5(B-F) > nR; ``visual_supplement``
    5(F-B) >= nR; ``text_only`` otherwise; first match wins.  A loss of exactly a fifth is ``text_only``, a gain of
    exactly a fifth is not: :func:`boundary` counts such items.

    Examples
    --------
    >>> [CATEGORIES[c] for c in categories([3, 1, 2, 1], [0, 2, 1, 1], 3)]
    ['visual_dependent', 'conflicting', 'visual_supplement', 'text_only']
    """
    f, b, t = _counts(full, blind, total)
    code = np.full(np.broadcast_shapes(f.shape, b.shape, t.shape), len(_RULES), np.int8)
    for i in reversed(range(len(_RULES))):
        code[_RULES[i](f, b, t)] = i
    code[np.broadcast_to(t, code.shape) == 0] = -1
    return code


def majority_dependent(full: ArrayLike, blind: ArrayLike, total: ArrayLike) -> NDArray[np.bool_]:
    """The majority definition of visual dependence: ``3F >= 2nR`` and ``3B <= nR`` (and nR > 0)."""
    f, b, t = _counts(full, blind, total)
    return (3 * f >= 2 * t) & (3 * b <= t) & (t > 0)


def zero_gain(full: ArrayLike, blind: ArrayLike, total: ArrayLike = 1) -> NDArray[np.bool_]:
    """The exact tie ``F = B`` (and nR > 0)."""
    f, b, t = _counts(full, blind, total)
    return (f == b) & (t > 0)


def boundary(full: ArrayLike, blind: ArrayLike, total: ArrayLike) -> NDArray[np.bool_]:
    """Items exactly on the 0.2 boundary, ``5|F-B| = nR``, where strict and weak inequality part."""
    f, b, t = _counts(full, blind, total)
    return (5 * np.abs(f - b) == t) & (t > 0)


def category_region(name: str, total: int) -> NDArray[np.bool_]:
    """Region of a share, shape (total + 1, total + 1).

    Parameters
    ----------
    name : one of :data:`CATEGORIES`, ``"zero_gain"``, ``"visual_dependent_majority"`` or ``"boundary"``
    total : models times draws, at least 1

    Raises
    ------
    KeyError
        For another name.
    """
    if name == "zero_gain":
        return tie_region(total + 1)
    f, b = np.ogrid[0 : total + 1, 0 : total + 1]
    if name == "visual_dependent_majority":
        return majority_dependent(f, b, total)
    if name == "boundary":
        return boundary(f, b, total)
    if name not in CATEGORIES:
        raise KeyError(name)
    return categories(f, b, total) == CATEGORIES.index(name)


def _counts(full: ArrayLike, blind: ArrayLike, total: ArrayLike) -> tuple[_INT, _INT, _INT]:
    # counts go up to models x draws; the smallest type that holds 100 times them saves memory on a million items
    arrays = [np.asarray(x) for x in (full, blind, total)]
    if any(a.dtype.kind not in "iub" for a in arrays):
        raise ValueError("counts must be integers")
    top = max((int(a.max()) for a in arrays if a.size), default=0)
    dtype = np.int32 if top < 10_000_000 else np.int64
    return tuple(a.astype(dtype) for a in arrays)  # type: ignore[return-value]
