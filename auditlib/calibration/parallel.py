"""The same function over many worlds, in one process or several."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def spread(function: Callable[[Any], Any], over: Iterable[Any], jobs: int = 1) -> list[Any]:
    """``[function(x) for x in over]``, in ``jobs`` processes where that is more than one; order is kept."""
    things = list(over)
    if jobs <= 1 or len(things) < 4 * jobs:
        return [function(x) for x in things]
    import multiprocessing

    # spawned, so that no thread of the caller is copied half-way
    with multiprocessing.get_context("spawn").Pool(jobs, initializer=_quiet) as pool:
        return pool.map(function, things, chunksize=max(1, len(things) // (8 * jobs)))


def _quiet() -> None:
    import os

    os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
