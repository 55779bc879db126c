"""Laws of gain that scatter: what a mixture of windows says of the counts of models that gain and lose an item."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from auditlib.stats.gain_kernel import Floats, trinomial

#: half-width of a window and largest gain that may heap, in margins
HALF_WIDTH, HEAP = 1.25, 0.75
#: cells of the grid of gains per margin
_CELLS = 8


@lru_cache(maxsize=8)
def window_nodes(size: int, margin: float, parts: int, height: int) -> tuple[Floats, Floats]:
    """Laws whose mixtures are the scattered set.

    Parameters
    ----------
    size : models at once.
    margin : largest gain that counts as none.
    parts : fineness: nodes of small gain, and windows per margin, grow with it.
    height : values of the rate at which the image changes anything, for each gain.

    Returns
    -------
    kernel : shape (nodes, cells)
        Law of the table: of one gain up to :data:`HEAP` margins, or averaged over a window.
    inside : shape (nodes,)
        Share of the node's mass in the band.
    """
    rise = (1 - np.cos(np.pi * np.linspace(0, 1, height))) / 2
    heap = np.round(np.linspace(-HEAP * margin, HEAP * margin, 4 * parts + 1), 12)
    edges = np.linspace(-1, 1, 2 * math.ceil(_CELLS / margin) + 1)
    middle, step = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    # part of each cell of the grid that lies in the band
    held = np.clip(np.minimum(edges[1:], margin) - np.maximum(edges[:-1], -margin), 0, None) / step
    laws = _at(size, middle, rise)
    wide = min(max(round(2 * HALF_WIDTH * margin / step), 1), len(middle))
    running = np.concatenate([np.zeros((1, *laws.shape[1:])), np.cumsum(laws, axis=0)])
    inside = np.concatenate([[0.0], np.cumsum(held)])
    first = np.arange(0, len(middle) - wide + 1, 4 if parts == 1 else 2)
    windows = (running[first + wide] - running[first]) / wide
    mass = (inside[first + wide] - inside[first]) / wide
    kernel = np.concatenate([_at(size, heap, rise), windows])
    return kernel.reshape(-1, kernel.shape[-1]), np.repeat(np.r_[np.ones(len(heap)), mass], height)


def _at(size: int, gain: Floats, rise: Floats) -> Floats:
    """Laws of the table at gains, shape (gains, heights, cells)."""
    total = np.abs(gain)[:, None] + (1 - np.abs(gain))[:, None] * rise
    g = np.broadcast_to(gain[:, None], total.shape)
    law = trinomial(size, ((total + g) / 2).ravel(), ((total - g) / 2).ravel())
    return law.reshape(len(gain), len(rise), -1)
