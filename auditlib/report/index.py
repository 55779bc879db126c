"""``outputs/index.html`` and ``summary.csv``: every pool on one page, with state, headline numbers and links."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from auditlib import escape
from auditlib.errors import AuditError
from auditlib.lookup import one, value
from auditlib.metrics.families import holm_over_pools
from auditlib.numerals import NONE, count, interval, number, p_value, percent, points, pp
from auditlib.paths import RunPaths, atomic
from auditlib.report.page import page

COLUMNS = (
    "pool",
    "benchmark",
    "state",
    "error",
    "limit",
    "items",
    "models",
    "blind",
    "arm",
    "zero_gain",
    "zero_gain_low",
    "zero_gain_high",
    "null",
    "null_kind",
    "excess",
    "excess_low",
    "excess_high",
    "p",
    "p_method",
    "p_holm",
    "unanimous",
    "unanimous_share",
    "kappa",
    "items_high",
    "items_medium",
    "outside_range",
)
#: what may lie in a pool's folder, in the order of the links
LINKS = (
    ("report.html", "report"),
    ("report.pdf", "PDF"),
    ("card.html", "card"),
    ("items.html", "items"),
    ("figures/index.html", "figures"),
    ("tables", "tables"),
    ("findings.csv", "findings"),
    ("statistics.csv", "statistics"),
    ("coverage.csv", "coverage"),
    ("flagged.md", "flagged"),
    ("manifest.json", "manifest"),
)
NOTE = (
    "Zero gain: items on which as many models are right without the image as with it, with Wilson 95% interval. "
    "Excess: "
    "over a null permuted inside official categories, or over all items where there are none (pooled). p, Holm: "
    "adjusted "
    "over the {n} pools with a headline p; quick looks take no part. Unanimous: items on which every readable vote "
    "is one "
    "same option that is not the key: candidates for review, not errors. Numbers of different pools rest on different "
    "models: do not rank benchmarks by them."
)


def write_index(outputs: Path) -> Path:
    """Write the page and the summary over all pools below a folder of results.

    Pools whose run failed stand there with their one line of error, quick looks (``.limitN``) are marked as such, and
    folders whose name begins with a dot are passed over.

    Returns
    -------
    Path
        ``outputs/index.html``.

    Notes
    -----
    ``p_holm`` is Holm's adjustment of the headline p over all full pools that have one; quick looks are left out.
    """
    table = summary(outputs)
    paths = RunPaths(outputs, "")
    with atomic(paths.summary) as file:
        escape.guard_csv(table).to_csv(file, index=False, float_format="%.12g", lineterminator="\n")
    with atomic(paths.index) as file:
        file.write_text(_page(table, outputs), encoding="utf-8")
    return paths.index


def summary(outputs: Path) -> pd.DataFrame:
    """One row per pool below a folder, in the order of their names; columns :data:`COLUMNS`."""
    folders = (
        sorted(p for p in outputs.iterdir() if p.is_dir() and not p.name.startswith(".")) if outputs.is_dir() else []
    )
    rows = [row for p in folders if (row := _row(RunPaths(outputs, p.name))) is not None]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    full = table["p"].where(table["limit"].isna()).astype(float)
    table["p_holm"] = holm_over_pools(full)
    return table


def _row(paths: RunPaths) -> dict[str, Any] | None:
    status = _json(paths.status)
    if not status and not paths.steps.exists():
        return None
    stages = status.get("stages", {})
    errors = [f"{n}: {s['error']}" for n, s in stages.items() if s.get("error")]
    row: dict[str, Any] = {
        "pool": paths.pool,
        "benchmark": status.get("benchmark", ""),
        "state": status.get("state", "done"),
        "error": " ".join("; ".join(errors).split()),
        "limit": status.get("limit"),
    }
    try:
        return row | _numbers(paths)
    except AuditError as e:
        return row | {"state": row["state"] if row["state"] != "done" else "damaged", "error": row["error"] or str(e)}


def _numbers(paths: RunPaths) -> dict[str, Any]:
    if not paths.steps.exists():
        return {}
    from auditlib.outputs import load_audit
    from auditlib.summary import headline_row

    audit = load_audit(paths)
    s, steps = audit.statistics, audit.steps
    out = {
        "benchmark": audit.benchmark,
        "limit": steps["limit"],
        "items": steps["items"],
        "models": steps["models"],
        "blind": bool(audit.has_blind),
        "arm": audit.arm,
        "items_high": steps["severities"]["high"],
        "items_medium": steps["severities"]["medium"],
    }
    if (r := headline_row(audit)) is not None:
        out |= {
            "zero_gain": r["estimate"],
            "zero_gain_low": r["low"],
            "zero_gain_high": r["high"],
            "null": r["null"],
            "null_kind": r["null_kind"],
            "excess": r["excess"],
            "excess_low": r["excess_low"],
            "excess_high": r["excess_high"],
            "p": r["p"],
            "p_method": r["p_method"],
        }
    u = one(s, "unanimous_share", models="all", stratum="all", level="")
    if u is not None:
        out |= {"unanimous": round(u["estimate"] * u["n"]), "unanimous_share": u["estimate"]}
    out["kappa"] = value(one(s, "fleiss_kappa", models="all", stratum="all"))
    notes = audit.detectors["note"].fillna("").astype(str) if "note" in audit.detectors else pd.Series(dtype=str)
    out["outside_range"] = bool(notes.ne("").any())
    return out


def _json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def _page(table: pd.DataFrame, outputs: Path) -> str:
    full = table[table["limit"].isna()]
    failed = int(table["state"].eq("failed").sum())
    with_p = int(full["p"].notna().sum())
    lede = f"{count(len(table))} pools" + (f", {count(failed)} failed" if failed else "")
    board = ""
    if (outputs / "leaderboard.html").exists():
        board = ' · <a href="leaderboard.html">leaderboard: models and benchmarks across pools</a>'
    head = [
        "Pool",
        "State",
        "Items × models",
        "Zero gain",
        "Excess over chance",
        "p",
        "p, Holm",
        "Unanimous",
        "κ",
        "Files",
    ]
    sides = ["l", "l", "r", "r", "r", "r", "r", "r", "r", "l"]
    rows = "\n".join(_line(r, RunPaths(outputs, r["pool"]), sides) for r in table.to_dict("records"))
    cells = "".join(f'<th class="{s}" scope="col">{escape.html(h)}</th>' for h, s in zip(head, sides))
    body = (
        '<p class="kicker">Benchmark audits</p>\n<h1>All pools</h1>\n'
        f'<p class="pool">{lede} · <a href="summary.csv">summary.csv</a>{board}</p>\n'
        '<div class="scroll"><table class="index">'
        f"<thead><tr>{cells}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n"
        f'<p class="note">{escape.html(NOTE.format(n=count(with_p)))}</p>'
    )
    return page("Benchmark audits: all pools", body, kind="wide")


def _line(r: dict[str, Any], paths: RunPaths, sides: list[str]) -> str:
    size = f"{count(r['items'])} × {count(r['models'])}" if pd.notna(r["items"]) else NONE
    share = _two(percent(r["zero_gain"]), interval(r["zero_gain_low"], r["zero_gain_high"]))
    if r["blind"] is False:
        share = _two(NONE, "no blind run")
    kind = "" if r["null_kind"] != "pooled" else "pooled"
    excess = _two(points(r["excess"]), interval(r["excess_low"], r["excess_high"], pp), kind)
    votes = _two(count(r["unanimous"]), percent(r["unanimous_share"]))
    marks = [f"first {count(r['limit'])} items only"] if pd.notna(r["limit"]) else []
    marks += ["outside the calibrated range"] if r["outside_range"] is True else []
    name = quote(paths.pool)
    title = escape.html(paths.pool)
    if paths.report_html.exists():
        title = f'<a href="{name}/report.html">{title}</a>'
    first = f'<strong dir="auto">{title}</strong><br><span class="note" dir="auto">{escape.html(r["benchmark"])}</span>'
    first += "".join(f'<br><span class="state-other">{escape.html(m)}</span>' for m in marks)
    tone = {"done": "done", "failed": "failed"}.get(r["state"], "other")
    state = f'<span class="state-{tone}">{escape.html(r["state"])}</span>'
    if r["error"]:
        state += f'<br><span class="note">{escape.html(r["error"])}</span>'
    cells = [
        first,
        state,
        escape.html(size),
        share,
        excess,
        escape.html(p_value(r["p"])),
        escape.html(p_value(r["p_holm"])),
        votes,
        escape.html(number(r["kappa"])),
        _links(paths),
    ]
    return "<tr>" + "".join(f'<td class="{s}">{c}</td>' for c, s in zip(cells, sides)) + "</tr>"


def _two(*lines: str) -> str:
    """A number with its interval in small type below."""
    shown = [escape.html(x) for x in lines if x and x != NONE]
    if not shown:
        return NONE
    return "<br>".join([shown[0], *(f'<span class="note">{x}</span>' for x in shown[1:])])


def _links(paths: RunPaths) -> str:
    name = quote(paths.pool)
    out = [f'<a href="{name}/{file}">{word}</a>' for file, word in LINKS if (paths.folder / file).exists()]
    if paths.notebooks.is_dir():
        out += [
            f'<a href="{name}/notebooks/{quote(f.name)}">{escape.html(f.stem)}</a>'
            for f in sorted(paths.notebooks.glob("*.html"))
        ]
    return " · ".join(out)
