"""The card's one small figure: accuracies with and without the image, chance, and zero gain against its null."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from auditlib import escape, lookup
from auditlib.numerals import percent
from auditlib.summary import headline_row

#: width, left edge and right edge of the scale, height of a row, in points of the drawing
WIDTH, LEFT, RIGHT, ROW, TOP = 330.0, 92.0, 318.0, 24.0, 16.0
INK, SOFT, HAIR, ACCENT, WARM = "#1d2126", "#5b636d", "#d9dde2", "#0b5a8f", "#b5651d"


def prepare(audit: Any) -> pd.DataFrame:
    """What is drawn: row, kind (point, interval, chance), low and high in [0, 1].

    Returns
    -------
    frame : empty where no accuracy is known.
    """
    rows: list[dict[str, Any]] = []
    table = lookup.rows(audit.statistics, "accuracy", arm=audit.arm, policy=("wrong", ""))
    for level, words in (("full", "with the image"), ("blind", "without it")):
        for value in table.loc[table["level"].eq(level), "estimate"].dropna():
            rows.append({"row": words, "kind": "point", "low": value, "high": value})
    r = headline_row(audit)
    if r is not None:
        rows.append({"row": "zero gain", "kind": "chance", "low": r["null"], "high": r["null"]})
        if pd.notna(r["low"]):
            rows.append({"row": "zero gain", "kind": "interval", "low": r["low"], "high": r["high"]})
        rows.append({"row": "zero gain", "kind": "point", "low": r["estimate"], "high": r["estimate"]})
    if rows and (guess := _guess(audit.items)) is not None:
        seen = dict.fromkeys(r["row"] for r in rows if r["row"] != "zero gain")
        rows += [{"row": name, "kind": "chance", "low": guess, "high": guess} for name in seen]
    return pd.DataFrame(rows, columns=["row", "kind", "low", "high"])


def _guess(items: pd.DataFrame) -> float | None:
    k = pd.to_numeric(items["k"], errors="coerce").to_numpy(float) if "k" in items else np.zeros(0)
    k = k[k > 1]
    return float(np.mean(1 / k)) if len(k) else None


def figure(audit: Any) -> dict[str, str] | None:
    """The drawing as SVG, with its words; None where there is nothing to draw."""
    frame = prepare(audit)
    if not len(frame):
        return None
    too = ", or the zero-gain share with its 95% interval" if frame["row"].eq("zero gain").any() else ""
    chance = "; an upright line is what chance alone gives" if frame["kind"].eq("chance").any() else ""
    return {"svg": draw(frame), "alt": words(frame),
            "caption": f"Share of items. A dot is a model’s accuracy{too}{chance}."}  # fmt: skip


def words(frame: pd.DataFrame) -> str:
    """The numbers drawn, in words."""
    said = []
    for name, part in frame.groupby("row", sort=False):
        dots, guess = part[part["kind"].eq("point")], part[part["kind"].eq("chance")]
        low, high = percent(dots["low"].min()), percent(dots["high"].max())
        text = f"{name}: {low}" + (f" to {high}" if high != low else "")
        said.append(text + (f", chance alone {percent(guess['low'].iloc[0])}" if len(guess) else ""))
    return "; ".join(said) + "."


def draw(frame: pd.DataFrame) -> str:
    """An SVG of a few lines and dots; the same bytes for the same frame."""
    names = list(dict.fromkeys(frame["row"]))
    height = TOP + ROW * len(names) + 6
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:g}pt" height="{height:g}pt" '
           f'viewBox="0 0 {WIDTH:g} {height:g}" font-family="DejaVu Sans, system-ui, sans-serif">']  # fmt: skip
    for share in (0, 0.25, 0.5, 0.75, 1):
        out.append(f'<path d="M{_x(share):g} {TOP:g}V{height - 5:g}" stroke="{HAIR}" stroke-width="0.6"/>')
        out.append(f'<text x="{_x(share):g}" y="{TOP - 5:g}" font-size="7.5" fill="{SOFT}" text-anchor="middle">'
                   f"{100 * share:g}%</text>")  # fmt: skip
    for i, name in enumerate(names):
        y = TOP + ROW * (i + 0.5)
        part, tone = frame[frame["row"].eq(name)], WARM if name == "zero gain" else ACCENT
        out.append(f'<text x="{LEFT - 10:g}" y="{y + 3:g}" font-size="9" fill="{INK}" text-anchor="end">'
                   f"{escape.html(name)}</text>")  # fmt: skip
        for r in part.sort_values("kind", kind="stable").itertuples():
            out.append(_mark(r.kind, r.low, r.high, y, tone))
    return "\n".join([*out, "</svg>"]) + "\n"


def _x(share: float) -> float:
    return round(LEFT + (RIGHT - LEFT) * float(share), 2)


def _mark(kind: str, low: float, high: float, y: float, tone: str) -> str:
    if kind == "chance":
        return f'<path d="M{_x(low):g} {y - 7.5:g}V{y + 7.5:g}" stroke="{INK}" stroke-width="1.4"/>'
    if kind == "interval":
        return f'<path d="M{_x(low):g} {y:g}H{_x(high):g}" stroke="{tone}" stroke-width="2" stroke-opacity="0.55"/>'
    return f'<circle cx="{_x(low):g}" cy="{y:g}" r="3.4" fill="{tone}" fill-opacity="0.8"/>'
