"""One thread in linear algebra: the products here are small, and sums must repeat to the bit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


@contextmanager
def single_threaded() -> Iterator[None]:
    """Limit BLAS and OpenMP pools to one thread inside the block."""
    with _controller(len(sys.modules)).limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    """The libraries loaded so far; looking for them takes milliseconds, so only anew when a module came in between."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
