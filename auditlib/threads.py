"""One thread in linear algebra: the products here are small, and sums must repeat to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def single_threaded() -> Iterator[None]:
    """Limit BLAS and OpenMP pools to one thread inside the block."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield
