"""Figures of sensitivity, further: evidence and control boxes, forms of the question, layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from auditlib.figures import style
from auditlib.figures.style import AMBER, BLUE, COLUMN, GREEN, GREY, MUTED, VERMILION, WIDE, styled
from auditlib.numerals import number, pct, percent, points
from auditlib.studies.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# ----------------------------------------------------------------------------------------------------------- evidence


def prepare_evidence(result: Result) -> pd.DataFrame:
    """Accuracy as it is, with a control box and with the evidence box, by model."""
    table = result.frame("evidence")
    columns = ["model", "n", "full", "control", "evidence", "specificity", "low", "high", "bound", "chance"]
    return table[columns].sort_values("specificity", ascending=False, kind="stable").reset_index(drop=True)


@styled
def evidence(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Three marks per model; the bar between control and evidence is the specificity."""
    ax = style.axes(ax, WIDE, style.rows_height(len(frame), each=0.24, room=0.8))
    y = np.arange(len(frame))
    ax.hlines(y, frame["evidence"], frame["control"], color=style.PALE, lw=5)
    for name, colour in (("full", GREY), ("control", BLUE), ("evidence", VERMILION)):
        ax.scatter(frame[name], y, s=22, c=colour, zorder=3)
    for place, r in zip(y, frame.itertuples()):
        said = f"{points(r.specificity)} [{pct(r.low)}, {pct(r.high)}]"
        style.note(ax, 1.01, place, said, transform=ax.get_yaxis_transform(), ha="left", clip_on=False)
    style.row_names(ax, frame["model"].tolist())
    style.percent_axis(ax, "x", "accuracy (%)")
    style.grid(ax)
    style.legend_line(ax, [("as it is", GREY, "●"), ("another region covered", BLUE, "●"),
                           ("evidence covered", VERMILION, "●"),
                           ("(right: difference, 95% interval)", MUTED, "")])  # fmt: skip
    return ax


def say_evidence(frame: pd.DataFrame) -> str:
    a, b = frame.iloc[0], frame.iloc[-1]
    text = ("Accuracy when the region that holds the answer is covered and when another one of its size is. The "
            f"evidence costs {a['model']} {points(a['specificity'])} more than another region")  # fmt: skip
    return text + (f", {b['model']} {points(b['specificity'])}." if len(frame) > 1 else ".")


# -------------------------------------------------------------------------------------------------------------- forms


def prepare_forms(result: Result) -> pd.DataFrame:
    """Share of answers that keep their meaning under each form of the question, by model."""
    return result.frame("forms")[["model", "form", "n", "same", "low", "high"]].reset_index(drop=True)


@styled
def forms(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Heat map: rows are models, columns forms, numbers the percentage of answers with the same meaning."""
    from matplotlib.colors import LinearSegmentedColormap

    models, names = list(dict.fromkeys(frame["model"])), list(dict.fromkeys(frame["form"]))
    ax = style.axes(
        ax, max(COLUMN, min(WIDE, 1.3 + 0.8 * len(names))), style.rows_height(len(models), each=0.21, room=0.75)
    )
    shades = LinearSegmentedColormap.from_list("same", ["#ffffff", BLUE])
    value = frame.pivot(index="model", columns="form", values="same").reindex(index=models, columns=names)
    for j, name in enumerate(names):
        column = value[name].to_numpy(float)
        ax.barh(np.arange(len(models)), 1, left=j, height=0.94, color=shades(0.05 + 0.9 * np.nan_to_num(column)))
        for i, v in enumerate(column):
            style.note(ax, j + 0.5, i, pct(v, 0), ha="center", color="white" if v > 0.55 else style.INK)
    style.row_names(ax, models)
    ax.set_xticks(np.arange(len(names)) + 0.5, [n.replace("_", " ").replace("-", " ") for n in names])
    ax.xaxis.tick_top()
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(0, len(names))
    for side in ("top", "bottom"):
        ax.spines[side].set_visible(False)
    ax.set_xlabel("% of answers that mean the same as the answer to the question as it is")
    ax.xaxis.set_label_position("bottom")
    return ax


def say_forms(frame: pd.DataFrame) -> str:
    every = frame[frame["form"].eq("all forms")]
    text = "Share of answers that mean the same as the answer to the question as it is, with negations turned back. "
    if len(every):
        a, b = every.loc[every["same"].idxmax()], every.loc[every["same"].idxmin()]
        text += (f"All forms agree on {percent(a['same'], 0)} of the items for {a['model']} and on "
                 f"{percent(b['same'], 0)} for {b['model']}.")  # fmt: skip
    return text.strip()


# ------------------------------------------------------------------------------------------------------------- layers


def prepare_layers(result: Result) -> pd.DataFrame:
    """Cosines by layer: within an image, corrected, of moved tokens, between images, of text tokens."""
    table = result.frame("layers")
    return table[["layer", "images", "cosine", "corrected", "control", "between", "text"]].reset_index(drop=True)


_LINES = {"cosine": ("tokens of an image", BLUE, "-"), "corrected": ("layer mean subtracted", GREEN, "-"),
          "control": ("tokens moved between images", GREY, "--"),
          "between": ("means of different images", VERMILION, "-"),
          "text": ("text tokens", AMBER, "-")}  # fmt: skip


@styled
def layers(frame: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """One line per kind of pair, over the layers."""
    ax = style.axes(ax, WIDE, 2.5)
    shown = []
    for name, (said, colour, dash) in _LINES.items():
        if frame[name].notna().any():
            ax.plot(frame["layer"], frame[name], color=colour, ls=dash, marker="o", ms=3, lw=1.3)
            shown.append((said, colour, "━"))
    ax.axhline(0, color=GREY, lw=0.6, zorder=0)
    ax.set_xlabel("layer")
    ax.set_ylabel("mean cosine")
    step = max(1, len(frame) // 12)
    ax.set_xticks(frame["layer"].iloc[::step])
    style.grid(ax, "y")
    style.legend_line(ax, shown)
    return ax


def say_layers(frame: pd.DataFrame) -> str:
    a, b = frame.iloc[0], frame.iloc[-1]
    text = (f"Mean cosine between visual tokens of one image over {len(frame)} layers ({int(a['images'])} images): "
            f"from {number(a['cosine'], 2)} to {number(b['cosine'], 2)}")  # fmt: skip
    if frame["control"].notna().any():
        text += (f"; with the layer's mean subtracted {number(b['corrected'], 2)} in the last layer, and "
                 f"{number(b['control'], 2)} for tokens moved between images")  # fmt: skip
    return text + "."
