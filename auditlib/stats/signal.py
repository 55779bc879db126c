"""Signal detection: rates drawn in, sensitivity d' and criterion."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

NAN = float("nan")


def drawn_in(hits: ArrayLike, n1: ArrayLike, total: ArrayLike) -> NDArray[np.float64]:
    """Rate with a correction that grows with the set, ``(h + n1/N) / (n1 + 2 n1/N)``; NaN for an empty set.

    A judge that always says the same gets equal rates in sets of any sizes, so that its d' is 0; adding one half to
    each set does not do that.
    """
    h, n, whole = np.broadcast_arrays(*(np.asarray(a, float) for a in (hits, n1, total)))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = n / whole
    return np.divide(h + share, n + 2 * share, out=np.full(h.shape, NAN), where=n > 0)


def detection(
    hits: ArrayLike, positives: ArrayLike, alarms: ArrayLike, negatives: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sensitivity d' and criterion c; NaN where one of the two sets is empty.

    Parameters
    ----------
    hits : yes among ``positives``. alarms : yes among ``negatives``. Scalars or arrays that broadcast.

    Notes
    -----
    ``d' = z(hit rate) - z(false alarm rate)``, ``c = -(z(hit rate) + z(false alarm rate)) / 2`` with
    :func:`drawn_in` rates (Green and Swets 1966); c < 0 is a leaning to yes.

    Examples
    --------
    >>> float(detection(400, 400, 4000, 4000)[0])
    0.0
    """
    from scipy.special import ndtri

    total = np.asarray(positives, float) + np.asarray(negatives, float)
    h, f = ndtri(drawn_in(hits, positives, total)), ndtri(drawn_in(alarms, negatives, total))
    return h - f, -(h + f) / 2
