"""Pictures across pools: the blind profile of models on benchmarks, and ranks with their bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from auditlib.figures.style import (
    AMBER,
    BLUE,
    GREY,
    INK,
    MUTED,
    WIDE,
    axes,
    grid,
    legend_line,
    percent_axis,
    row_names,
    rows_height,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: a heat map of more rows or columns than this cannot be read
READABLE = 40
#: models drawn with their rank bands
MOST_RANKED = 40


def readable(matrix: pd.DataFrame) -> bool:
    """Whether a heat map of models x benchmarks can be read."""
    return 2 <= matrix.shape[0] <= READABLE and 2 <= matrix.shape[1] <= READABLE


@styled
def heat_map(matrix: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Blind accuracy less chance, models down, benchmarks across; missing cells stay empty.

    One hue from pale to dark on a scale that starts at chance (below chance is drawn as chance: nobody can know less
    than nothing), told apart with any kind of colour vision and in grey.
    """
    n, m = matrix.shape
    ax = axes(ax, WIDE, rows_height(n, room=1.25))
    values = np.ma.masked_invalid(matrix.to_numpy(float))
    top = max(0.05, float(values.max()) if values.count() else 0.05)
    image = ax.imshow(np.clip(values, 0, None), aspect="auto", cmap="Blues", vmin=0, vmax=top, interpolation="none")
    row_names(ax, [str(v) for v in matrix.index], width=28)
    ax.set_ylim(n - 0.5, -0.5)
    ax.set_xticks(range(m), [str(c) for c in matrix.columns], rotation=60, ha="right", rotation_mode="anchor",
                  fontsize=6.5, parse_math=False)  # fmt: skip
    for side in ax.spines.values():
        side.set_visible(False)
    ax.tick_params(axis="x", length=0)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.025, pad=0.015)
    percent_axis(bar.ax, "y", "blind accuracy above chance (points)")
    bar.outline.set_visible(False)
    if n * m <= 300:
        for i in range(n):
            for j in range(m):
                if not np.ma.is_masked(values[i, j]):
                    ink = "white" if values[i, j] > 0.62 * top else INK
                    text = f"{round(100 * values[i, j])}".replace("-", "−")
                    ax.text(j, i, text, ha="center", va="center", fontsize=6, color=ink)
    return ax


@styled
def dot_plot(profile: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """One row per pool, most blind accuracy above chance on top: a dot per model, the median, and chance as zero.

    Benchmarks whose chance is not known have no place on this scale and are named on the page.
    """
    known = profile[profile["above_chance"].notna()]
    order = known.groupby("pool")["above_chance"].median().sort_values(ascending=False)
    ax = axes(ax, WIDE, rows_height(len(order), each=0.15, room=0.8))
    rng = np.random.default_rng(0)
    for place, name in enumerate(order.index):
        values = known.loc[known["pool"].eq(name), "above_chance"].to_numpy()
        jitter = rng.uniform(-0.22, 0.22, len(values))
        ax.plot(values, place + jitter, "o", ms=2.2 if len(values) < 60 else 1.2, color=BLUE, alpha=0.55, mew=0)
        ax.plot([order[name]] * 2, [place - 0.36, place + 0.36], color=AMBER, lw=1.8, solid_capstyle="butt")
    ax.axvline(0, color=MUTED, lw=0.8)
    grid(ax)
    percent_axis(ax, "x", "blind accuracy above chance (points)", signed=True)
    row_names(ax, [str(v) for v in order.index], width=28)
    legend_line(
        ax, [("a model", BLUE, "●"), ("median", AMBER, "━"), ("0 = guessing over the options shown", MUTED, "━")]
    )
    return ax


@styled
def rank_plot(models: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Ranks of the first models with their simultaneous bands."""
    shown = models[models["rank"].notna()].head(MOST_RANKED)
    ax = axes(ax, WIDE, rows_height(len(shown), each=0.15))
    for place, r in enumerate(shown.itertuples()):
        if pd.notna(r.rank_low):
            ax.plot([r.rank_low, r.rank_high], [place, place], color=GREY, lw=2.2, solid_capstyle="round")
        ax.plot([r.rank], [place], "o", ms=3.4, color=BLUE)
    grid(ax)
    ax.set_xlabel("rank by mean accuracy with the image (1 = best)")
    ax.set_xlim(0, None)
    row_names(ax, [str(v) for v in shown["model"]], width=28)
    legend_line(ax, [("rank", BLUE, "●"), ("simultaneous 95% band", GREY, "━")])
    return ax
