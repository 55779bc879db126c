"""The ``calibration`` block: planted defects, ranked lists, prevalence and plans."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from auditlib.params.base import Share, Strict


class CalibrationParams(Strict):
    """How far this pool's findings can be believed.

    ``share`` of the items gets a planted defect in each of ``repeats`` copies. ``margin`` is the largest gain that
    counts as none. ``reviews`` is a table of what people said of items of the review sample: item, and defect (1, 0, or
    empty).
    """

    share: float = Field(0.05, gt=0, le=0.5)
    repeats: int = Field(20, ge=1, le=1000)
    margin: float = Field(0.1, gt=0, lt=0.5)
    shuffles: int = Field(49, ge=19, le=10_000)
    review_budget: int = Field(100, ge=1)
    reviews: Path | None = None
    list_error: Share = 0.1
