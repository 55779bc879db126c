"""Figure 1: the audit as five steps, with what this pool put in and got out."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pandas as pd

from auditlib import lookup
from auditlib.figures import style
from auditlib.figures.style import BLUE, GREY, INK, MUTED, WIDE, styled
from auditlib.frames import SEVERITIES
from auditlib.numerals import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plural(n: float, one: str, many: str | None = None) -> str:
    """``1 item``, ``1500 items``."""
    return f"{count(n)} {one if int(n) == 1 else many or one + 's'}"


def prepare_pipeline(audit: Any) -> pd.DataFrame:
    """The lines of each box: step, title, line, tone (plain or missing)."""
    steps, coverage = audit.steps, audit.coverage
    items, blind, run = len(audit.items), steps["blind_runs"], audit.detectors["state"].eq("run")
    left_out = int(coverage.loc[coverage["what"] == "excluded", "n"].sum())
    arms = [style.arm_name(a).removeprefix("exact ") for a in lookup.arms(audit)]
    there = [
        w for c, w in (("key", "keys"), ("options", "options")) if c in audit.items and audit.items[c].notna().any()
    ]
    held = " and ".join(there) or "hits alone"
    boxes = [
        ("Inputs", [plural(steps["full_runs"], "full run"), plural(blind, "blind run") if blind else "no blind run",
                    held]),
        ("Align by item id", [f"{plural(items, 'item')} joined", f"{count(left_out)} left out",
                              plural(len(audit.models), "model")]),
        ("Detect", [f"{int(run.sum())} of {len(run)} detectors run",
                    f"arms: {', '.join(arms)}" if arms else "no scored arm"]),
        ("Report", [f"{plural(steps['severities'].get(s, 0), 'item')} {s}" for s in SEVERITIES[:3]]),
        ("Act", ["review flagged items", "mend keys and options",
                 "quote the excess" if blind else "add the blind run"]),
    ]  # fmt: skip
    rows = [(i + 1, title, line) for i, (title, lines) in enumerate(boxes) for line in lines]
    table = pd.DataFrame(rows, columns=["step", "title", "line"])
    table["tone"] = table["line"].map({"no blind run": "missing", "add the blind run": "missing"}).fillna("plain")
    return table


@styled
def pipeline(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Five boxes from left to right; the blind run is the only input that needs a model."""
    from matplotlib.patches import FancyBboxPatch

    ax = style.axes(ax, WIDE, 1.35)
    steps = list(dict.fromkeys(frame["step"]))
    width, gap, tall = 1.0, 0.13, 0.74
    for i, step in enumerate(steps):
        part = frame[frame["step"] == step]
        x = i * (width + gap)
        ax.add_patch(FancyBboxPatch((x, 0), width, tall, boxstyle="round,pad=0,rounding_size=0.035", fc="#f6f7f8",
                                    ec=GREY, lw=0.6, mutation_aspect=1))  # fmt: skip
        style.note(ax, x + 0.06, tall - 0.13, f"{step}", color=BLUE, fontsize=8, fontweight="bold")
        style.note(ax, x + 0.16, tall - 0.13, part["title"].iloc[0], fontsize=7.5, fontweight="bold")
        lines = [(w, r.tone) for r in part.itertuples() for w in textwrap.wrap(r.line, 24)][:4]
        for j, (line, tone) in enumerate(lines):
            colour = "#a05a00" if tone == "missing" else INK
            style.note(ax, x + 0.06, tall - 0.31 - 0.155 * j, line, fontsize=6.6, color=colour)
        if i + 1 < len(steps):
            ax.annotate("", (x + width + gap - 0.02, tall / 2), (x + width + 0.02, tall / 2),
                        arrowprops={"arrowstyle": "-|>", "lw": 0.9, "color": MUTED, "mutation_scale": 8,
                                    "shrinkA": 0, "shrinkB": 0})  # fmt: skip
    if "no blind run" in set(frame["line"]):
        style.note(
            ax, 0.06, -0.09, "without blind runs, what the image adds is not measured", color="#a05a00", fontsize=6.5
        )
    total = len(steps) * (width + gap) - gap
    ax.set(xlim=(-0.02, total + 0.02), ylim=(-0.16 if "no blind run" in set(frame["line"]) else -0.02, tall + 0.02))
    ax.axis("off")
    return ax
