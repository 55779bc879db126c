"""``outputs/leaderboard.html``: every benchmark and model on one page, with what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from auditlib import escape
from auditlib.leaderboard import figures
from auditlib.leaderboard.jobs import FOLDER, PoolFiles
from auditlib.leaderboard.numbers import LEFT_OUT
from auditlib.leaderboard.tables import LEAN, Board, collect, report_fits, write_tables
from auditlib.numerals import NONE, count, interval, number, p_value, percent, points, pp, span
from auditlib.paths import RunPaths, atomic
from auditlib.report.page import page, picture

#: the page below the folder of all results
PAGE = "leaderboard.html"
_ABOUT_RANKS = (
    "Mean accuracy with the image, each benchmark counting once. Bands hold for all models at once (95%), from paired "
    "differences over benchmarks: the ranks that a model may have among others of this kind. Groups count "
    "from the top; a new one starts where a model is told apart from the best of the group above. Accuracy is on the "
    "keys as printed: it says nothing of items that need no image or whose key is wrong."
)
_ABOUT_BENCHMARKS = (
    "Zero gain: items on which as many models are right without the image as with it, with its 95% interval. Excess: "
    "over a null permuted inside official categories, or over all items where there are none (pooled); the range is "
    "that over pools without one model. p, Holm: adjusted over the pools of this page. Unanimous: items on which "
    "every readable vote is one same option that is not the key: candidates for review, not errors. Blind above "
    "chance: mean accuracy without the image less one over the options shown, over models. Do not rank benchmarks by "
    "these numbers: they rest on different models and items."
)
_ABOUT_PROFILE = (
    "Accuracy without the image less chance (one over the options shown). What lies above 0 was reached from the text "
    "alone: knowledge, cues among the options, or recall of the benchmark."
)


def write_page(outputs: Path, board: Board | None = None) -> Path:
    """Write the tables and the page over all pools below a folder; returns the page.

    Parameters
    ----------
    outputs : folder of all results.
    board : the numbers; collected from ``outputs`` when not given.
    """
    board = collect(outputs) if board is None else board
    write_tables(board, outputs)
    body = "\n".join([_head(board, outputs), *_pictures(board, outputs), _models(board), _benchmarks(board, outputs),
                      _left_out(board)])  # fmt: skip
    target = outputs / PAGE
    with atomic(target) as temporary:
        temporary.write_text(page("Leaderboard", body, kind="wide"), encoding="utf-8")
    return target


def _head(board: Board, outputs: Path) -> str:
    b = board.benchmarks
    failed = int(b["error"].fillna("").ne("").sum())
    kinds = b["benchmark"].str.casefold().nunique()
    says = [
        f"{count(kinds)} benchmark{'s' * (kinds != 1)}" + (f" in {count(len(b))} pools" if len(b) > kinds else ""),
        f"{count(len(board.models))} models",
    ]
    says += [f"{count(failed)} failed"] if failed else []
    links = [f'<a href="{FOLDER}/{n}.csv">{w}</a>' for n, w in
             (("models", "models"), ("benchmarks", "benchmarks"), ("profile", "models on benchmarks"),
              ("matrix", "blind above chance, as a matrix"))]  # fmt: skip
    if (outputs / "index.html").exists():
        links.append('<a href="index.html">all pools</a>')
    return (
        '<p class="kicker">Benchmark audits</p>\n<h1>Leaderboard</h1>\n'
        f'<p class="pool">{escape.html(", ".join(says))} · {" · ".join(links)}</p>'
    )


def _pictures(board: Board, outputs: Path) -> list[str]:
    out = []
    known = board.profile["above_chance"].notna()
    if known.any():
        if figures.readable(board.matrix):
            file, alt = _draw(figures.heat_map, board.matrix, outputs, "blind_profile"), "models by benchmarks"
        else:
            file, alt = _draw(figures.dot_plot, board.profile, outputs, "blind_profile"), "a row for each benchmark"
        out.append(
            f"<h2>Without the image</h2>\n{_figure(file, f'Blind accuracy above chance, {alt}', _ABOUT_PROFILE)}"
        )
    unknown = sorted(set(board.profile.loc[~known, "benchmark"]))
    if unknown:
        names = ", ".join(unknown)
        out.append(f'<p class="note">Not drawn: chance or the blind run is not known for {escape.html(names)}.</p>')
    if board.models["rank"].notna().sum() >= 2:
        file = _draw(figures.rank_plot, board.models, outputs, "ranks")
        ranked = int(board.models["rank"].notna().sum())
        first = f" The first {figures.MOST_RANKED} of {count(ranked)} models." if ranked > figures.MOST_RANKED else ""
        out.append(f"<h2>Models</h2>\n{_figure(file, 'Ranks of models with bands', _ABOUT_RANKS + first)}")
    return out


def _draw(draw: Any, frame: pd.DataFrame, outputs: Path, name: str) -> Path:
    import matplotlib

    matplotlib.use("Agg", force=False)
    import matplotlib.pyplot as plt

    file = outputs / FOLDER / f"{name}.svg"
    figure = draw(frame).figure
    with atomic(file) as temporary, matplotlib.rc_context({"svg.hashsalt": "auditlib"}):
        figure.savefig(temporary, format="svg", metadata={"Date": None})
    plt.close(figure)
    return file


def _figure(file: Path, alt: str, caption: str) -> str:
    return (f'<figure class="broad" style="max-width:none">{picture(file, alt)}'
            f"<figcaption>{escape.html(caption)}</figcaption></figure>")  # fmt: skip


def _table(head: Sequence[str], sides: str, rows: Sequence[Sequence[str]], note: str) -> str:
    top = "".join(f'<th class="{s}" scope="col">{escape.html(h)}</th>' for h, s in zip(head, sides))
    body = "\n".join(
        "<tr>" + "".join(f'<td class="{s}">{c}</td>' for c, s in zip(cells, sides)) + "</tr>" for cells in rows
    )
    return (f'<div class="scroll"><table><thead><tr>{top}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>\n'
            f'<p class="note">{escape.html(note)}</p>')  # fmt: skip


def _models(board: Board) -> str:
    rows = []
    for r in board.models.to_dict("records"):
        band = span(r["rank_low"], r["rank_high"], count)
        rows.append([
            number(r["rank"], 1).removesuffix(".0"), f'<span dir="auto">{escape.html(r["model"])}</span>',
            escape.html(band), count(r["group"]), count(r["benchmarks"]), percent(r["full"]), percent(r["blind"]),
            points(r["above_chance"]), points(r["gain"]),
        ])  # fmt: skip
    head = ["Rank", "Model", "95% band", "Group", "Benchmarks", "Accuracy", "Blind", "Blind above chance", "Gain"]
    title = "" if board.models["rank"].notna().sum() >= 2 else "<h2>Models</h2>\n"
    return title + _table(
        head,
        "rlrrrrrrr",
        rows,
        "Means over the benchmarks that a model has; ranks over those that all ranked models have.",
    )


def _benchmarks(board: Board, outputs: Path) -> str:
    rows = []
    for r in board.benchmarks.to_dict("records"):
        name = f'<strong dir="auto">{escape.html(r["benchmark"])}</strong>'
        where = f'<span class="note" dir="auto">{escape.html(r["pool"])}</span>'
        if isinstance(r["error"], str) and r["error"]:
            failed = f'<span class="state-failed">failed</span><br><span class="note">{escape.html(r["error"])}</span>'
            rows.append([f"{name}<br>{where}", failed, *[NONE] * 9])
            continue
        kind = "pooled" if r["null_kind"] == "pooled" else ""
        rows.append([
            f"{name}<br>{where}", _links(r, outputs), escape.html(f"{count(r['items'])} × {count(r['models'])}"),
            _two(percent(r["zero_gain"]), interval(r["zero_gain_low"], r["zero_gain_high"])),
            _two(points(r["excess"]), interval(r["excess_low"], r["excess_high"], pp),
                 f"{pp(r['excess_least'])} to {pp(r['excess_most'])}" if pd.notna(r["excess_least"]) else "", kind),
            _two(p_value(r["p"]), f"Holm {p_value(r['p_holm'])}" if pd.notna(r["p_holm"]) else ""),
            percent(r["unanimous_share"]), number(r["kappa"]), percent(r["blind"]), points(r["blind_above_chance"]),
            points(r["gain"]),
        ])  # fmt: skip
    head = ["Benchmark", "Files", "Items × models", "Zero gain", "Excess", "p", "Unanimous", "κ", "Blind",
            "Blind above chance", "Gain"]  # fmt: skip
    return "<h2>Benchmarks</h2>\n" + _table(head, "llrrrrrrrrr", rows, _ABOUT_BENCHMARKS)


def _two(*lines: str) -> str:
    shown = [escape.html(x) for x in lines if x and x != NONE]
    return "<br>".join([shown[0], *(f'<span class="note">{x}</span>' for x in shown[1:])]) if shown else NONE


def _links(r: dict[str, Any], outputs: Path) -> str:
    pool, out = str(r["pool"]), []
    if RunPaths(outputs, pool).report_html.exists() and (r["source"] != LEAN or report_fits(outputs, pool)):
        out.append(f'<a href="{quote(pool)}/report.html">report</a>')
    if r["source"] == LEAN:
        files = PoolFiles(outputs, pool)
        base = f"{FOLDER}/pools/"
        for file, word in ((files.statistics, "statistics"), (files.ranks, "ranks"), (files.coverage, "coverage")):
            out.append(f'<a href="{base}{quote(file.name)}">{word}</a>')
    else:
        out.append(f'<a href="{quote(pool)}/statistics.csv">statistics</a>')
    return " · ".join(out)


def _left_out(board: Board) -> str:
    notes = [*board.notes]
    if board.benchmarks["source"].eq(LEAN).any():
        notes.append(f"pools audited without notebooks have no {LEFT_OUT}")
    if not notes:
        return ""
    items = "\n".join(f"<li>{escape.html(n[0].upper() + n[1:])}.</li>" for n in notes)
    return f"<h2>Left out</h2>\n<ul>\n{items}\n</ul>"
