"""What the card says, as plain data for HTML, PDF and Markdown: every number with the address it came from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from auditlib import claims, lookup
from auditlib.lookup import one
from auditlib.numerals import NONE, count, interval, p_says, percent, points, pp
from auditlib.paths import RunPaths
from auditlib.report import card_parts, flags
from auditlib.report.blocks import Run, b
from auditlib.report.card_advice import recommendations
from auditlib.report.card_figure import figure
from auditlib.report.card_sources import ITEMS, MANIFEST, STEPS, Sources, ends_of, extremes, to, words_of
from auditlib.report.card_studies import studies
from auditlib.report.card_words import range_of, reasons
from auditlib.report.opening import ORIGIN
from auditlib.report.reproduce import read_manifest
from auditlib.summary import headline_row

#: letters of the list of models, and of one name
LINE, LETTERS = 110, 40
#: digits of a hash
SHORT = 12
_TYPES = {"choice": "multiple choice", "mcq": "multiple choice", "yesno": "yes/no", "open": "open answers"}
_WITHIN = {"within": "within the official categories", "pooled": "over all items"}
_BRIEFLY = {"within": "within categories", "pooled": "over all items"}


def card_content(audit: Any, paths: RunPaths) -> dict[str, Any]:
    """Title, facts, headline, parts, recommendations and footer of the card, all made from the saved audit.

    Returns
    -------
    dict with ``benchmark``, ``pool``, ``caution`` (runs or empty), ``facts`` (label and runs), ``tiles`` (empty where
    no headline may be stated), ``reading`` (lines of runs), ``figure``, ``parts``, ``advice`` and ``footer``.
    """
    src = Sources(audit, paths)
    made = {c.name: c for c in claims.claims(audit)}
    manifest = read_manifest(paths)
    parts = [
        card_parts.keys(audit, src, made),
        card_parts.gate(audit, src),
        card_parts.where(audit, src, made),
        card_parts.scoring(audit, src, made),
        card_parts.saturation(audit, src),
        card_parts.reliability(audit, src),
        studies(audit, src),
        card_parts.not_run(audit, src),
        card_parts.limits(audit, src),
    ]
    return {
        "title": f"{audit.benchmark}: benchmark card",
        "benchmark": flags.shortened(audit.benchmark, 60),
        "pool": flags.shortened(audit.pool_name, 60),
        "date": manifest.get("written", "")[:10],
        "caution": _caution(audit),
        "facts": [*_about(audit, src), *_hashes(manifest)],
        "tiles": _tiles(audit, src, made),
        "reading": _reading(audit, src, made),
        "figure": figure(audit),
        "parts": [p for p in parts if p is not None],
        "advice": recommendations(audit, src, made),
        "footer": _footer(manifest, paths),
    }


def _caution(audit: Any) -> list[Run]:
    origin = ORIGIN.get(audit.params.data.embedded or "") if audit.params else None
    return [b("What this pool is. "), origin] if origin else []


def _about(audit: Any, src: Sources) -> list[tuple[str, list[Run]]]:
    s = audit.steps
    strata = [" in ", to(count(s["strata"]), STEPS), " official categories"] if s["strata"] > 1 else [
        ", no official categories"]  # fmt: skip
    names = [flags.shortened(m, LETTERS) for m in lookup.model_names(audit)]
    most = next((i for i in range(len(names)) if len(", ".join(names[: i + 1])) > LINE), len(names))
    shown = ", ".join(names[:most]) + (", …" if len(names) > most else "")
    blind = to(count(s["blind_runs"]), STEPS) if audit.has_blind else "none"
    return [
        ("Items", [to(count(s["items"]), STEPS), *strata]),
        ("Answers", _answers(audit.items)),
        ("Models", [to(count(s["models"]), STEPS), ": ", shown]),
        ("Runs", [to(count(s["full_runs"]), STEPS), " with the image, ", blind, " without"]),
        ("Scoring", [_scored(audit)]),
    ]  # fmt: skip


def _answers(items: pd.DataFrame) -> list[Run]:
    """Kinds of answers with their numbers of items, and the numbers of options shown."""
    out: list[Run] = []
    if "answer_type" in items:
        kinds = items["answer_type"].dropna().astype(str).value_counts(sort=False)
        for kind, n in kinds[kinds.index != ""].items():
            words = flags.shortened(_TYPES.get(kind, kind.replace("_", " ")), 24)
            out += [", " if out else "", words, " ", to(count(n), ITEMS)]
    k = pd.to_numeric(items["k"], errors="coerce").dropna() if "k" in items else pd.Series(dtype=float)
    if len(k):
        low, high = int(k.min()), int(k.max())
        out += ["; " if out else "", to(count(low), ITEMS), *([" to ", to(count(high), ITEMS)] if high > low else []),
                " options"]  # fmt: skip
    return [r for r in out if r] or ["not known"]


def _scored(audit: Any) -> str:
    judge = (audit.params.judge if audit.params else None) or audit.provenance.get("judge")
    arms = list(audit.steps["arms"])
    words = [f"judge {flags.shortened(judge, 30)}" if a == "judged" and judge else a.replace("_", " ") for a in arms]
    return " and ".join(words[:2]) if words else "nothing"


def _hashes(manifest: dict[str, Any]) -> list[tuple[str, list[Run]]]:
    digests = manifest.get("digests", {})
    items, runs = (digests.get(k, "")[:SHORT] for k in ("items", "runs"))
    if not items and not runs:
        return [("Hashes", ["not known: no manifest names them"])]
    return [("Hashes", ["items ", to(items, MANIFEST), ", runs ", to(runs, MANIFEST)])]


def chance(items: pd.DataFrame) -> float:
    """Share of items that a guess among the options shown gets right; nan where no number of options is known."""
    k = pd.to_numeric(items["k"], errors="coerce").to_numpy(float) if "k" in items else np.zeros(0)
    k = k[k > 1]
    return float(np.mean(1 / k)) if len(k) else float("nan")


def _zero(audit: Any, r: pd.Series) -> str:
    return f"zero gain, null {'within categories' if r['null_kind'] == 'within' else 'pooled'}"


def _tiles(audit: Any, src: Sources, made: dict[str, Any]) -> list[dict[str, Any]]:
    r, s = headline_row(audit), audit.statistics
    if r is None or outside(audit):
        return []
    at, keys = src.headline(_zero(audit, r), r), {"arm": audit.arm, "policy": "wrong", "null_kind": r["null_kind"]}
    ci = interval(r["excess_low"], r["excess_high"], pp)
    excess = {
        "label": "zero gain beyond chance",
        "value": to(points(r["excess"]), at),
        "lines": [
            ["95% interval ", to(ci, at), " pp"] if ci != NONE else ["no interval"],
            [to(p_says(r["p"]), at), f", {_BRIEFLY[r['null_kind']]}"],
            range_of(src, extremes(s, "zero_gain_share", "excess", **keys), points, _zero(audit, r), "excess",
                     words="one model left out: ") or ["no model can be left out"],
        ],
    }  # fmt: skip
    share = {
        "label": "items without gain",
        "value": to(percent(r["estimate"]), at),
        "lines": [["chance alone: ", to(percent(r["null"]), at)],
                  range_of(src, extremes(s, "zero_gain_share", **keys), percent, _zero(audit, r),
                           words="one model left out: ")],
    }  # fmt: skip
    return [excess, share, *_blind_tile(audit, src), *_dependent_tile(audit, src)]


def _blind_tile(audit: Any, src: Sources) -> list[dict[str, Any]]:
    runs = blind_accuracy(audit, src)
    if not runs:
        return []
    low, high, guess = runs
    lines = [["a guess: ", to(percent(guess), ITEMS)]] if not np.isnan(guess) else [["chance not known"]]
    return [{"label": "blind accuracy", "value": low, "upto": high, "lines": lines}]


def blind_accuracy(audit: Any, src: Sources) -> tuple[Run, Run | None, float] | None:
    """Smallest and largest accuracy without the image over the models, and that of a guess."""
    ends = ends_of(lookup.rows(audit.statistics, "accuracy", level="blind", arm=audit.arm, policy=("wrong", "")))
    if ends is None:
        return None
    low, high = (to(percent(r["estimate"]), src.table("accuracy", model=r["models"], arm=audit.arm) or src.row(r))
                 for r in ends)  # fmt: skip
    return low, None if words_of(high) == words_of(low) else high, chance(audit.items)


def _dependent_tile(audit: Any, src: Sources) -> list[dict[str, Any]]:
    d = one(audit.statistics, "visual_dependent_share", arm=audit.arm, policy=("wrong", ""), models="all",
            stratum="all")  # fmt: skip
    if d is None:
        return []
    at = src.headline("visual dependent", d)
    return [{"label": "visual dependent", "value": to(percent(d["estimate"]), at),
             "lines": [["hangs on its threshold"],
                       range_of(src, extremes(audit.statistics, "visual_dependent_share", arm=audit.arm,
                                              policy=d["policy"], null_kind=d["null_kind"]), percent,
                                "visual dependent", words="one model left out: ")]}]  # fmt: skip


def outside(audit: Any) -> str:
    """The note of the detector of zero gain on items that it has not been shown to work on; empty where there are
    none."""
    d = audit.detectors
    notes = d.loc[d["detector"].eq("visual_dependency"), "note"] if "note" in d else []
    return next((str(n) for n in notes if isinstance(n, str) and n), "")


def _reading(audit: Any, src: Sources, made: dict[str, Any]) -> list[list[Run]]:
    """What these runs allow to say about the benchmark's use of images."""
    r, claim = headline_row(audit), made["excess over chance"]
    if r is None:
        return [["Whether items need their image cannot be said: ", *reasons(made["zero gain"].missing, src), "."]]
    if note := outside(audit):
        at = src.headline(_zero(audit, r), r)
        said: list[Run] = [
            b("No headline. "),
            *reasons([note], src),
            ". As a description of these runs only: zero gain ",
            to(percent(r["estimate"]), at),
            ", chance alone ",
            to(percent(r["null"]), at),
        ]
        if runs := blind_accuracy(audit, src):
            said += ["; accuracy without the image ", runs[0], *([" to ", runs[1]] if runs[1] else [])]
            said += [", a guess ", to(percent(runs[2]), ITEMS)] if not np.isnan(runs[2]) else []
        return [[*said, "."]]
    if claim.made:
        words = ("More items gain nothing from the image than chance explains, ", _WITHIN[r["null_kind"]],
                 "; the sign holds with any one model left out.")  # fmt: skip
        return [[b("".join(words))]]
    return [["Not claimed that items gain nothing from the image beyond chance: ", *reasons(claim.missing, src), "."]]


def _footer(manifest: dict[str, Any], paths: RunPaths) -> list[Run]:
    version, commit = manifest.get("auditlib", ""), (manifest.get("git") or {}).get("commit", "")
    made = [f"auditlib {version}" if version else "auditlib", f"commit {commit[:SHORT]}" if commit else "",
            f"written {manifest['written'][:10]}" if manifest.get("written") else "date not known"]  # fmt: skip
    links = [("report.html", "report"), ("statistics.csv", "statistics"), ("flagged.md", "flagged items"),
             ("manifest.json", "manifest"), ("../index.html", "all pools")]  # fmt: skip
    out: list[Run] = ["; ".join(m for m in made if m), ". Auxiliary evidence: people review an item before it is "
                      "changed or dropped. "]  # fmt: skip
    there = [(a, w) for a, w in links if a == "report.html" or (paths.folder / a).exists() or a.startswith("../")]
    for i, (address, word) in enumerate(there):
        out += [" · " if i else "", to(word, address)]
    return [r for r in out if r]
