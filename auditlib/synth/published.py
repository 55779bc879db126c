"""The published numbers of the audited paper against an audit of its replica."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditlib.auditing import Audit
from auditlib.frames import letter_codes
from auditlib.lookup import one, rows
from auditlib.stats.categories import category_region
from auditlib.stats.null import region_null
from auditlib.stats.tables import joint_table

_TARGETS = Path(__file__).resolve().parent / "data" / "replica" / "targets.csv"
SEEDS = range(21)
_MC = " (999 permutations, seed 0)"
_SIX = ("coarse perception", "fine-grained perception", "instance reasoning", "logical reasoning",
        "science & technology", "math")  # fmt: skip
_REASONING = ("math", "logical reasoning", "instance reasoning")


def targets() -> pd.DataFrame:
    """The published numbers: name, published, replica, tolerance, met, note (text)."""
    return pd.read_csv(_TARGETS, dtype=str, keep_default_na=False)


def compare(audit: Audit) -> pd.DataFrame:
    """Each published number of this replica beside the audit's.

    Returns
    -------
    frame with columns ``name``, ``published``, ``tolerance``, ``exact`` (closed forms and exact p), ``monte_carlo``
    (999 random tables of this run), ``seeds`` (of 21 seeds of random tables, how many print the published value),
    ``kind`` and ``met``. Kinds: ``value`` (met = within the tolerance); ``monte carlo`` (met = the run's Monte-Carlo
    value within 4 standard errors of the exact one, an exact p at most the published one); ``split halves`` (met =
    the median lies in the central 95% that the replica's own protocol gives); ``information`` (not judged). ``rule``
    says in words by which rule a row is met.
    """
    ours = "HallusionBench" if audit.benchmark == "HallusionBench" else "MMStar"
    look = _Look(audit)
    out = []
    for t in targets().to_dict("records"):
        if t["name"].startswith("HallusionBench") == (ours == "HallusionBench"):
            out.append(_row(look, t))
    return pd.DataFrame(out)


def _row(look: _Look, t: dict[str, str]) -> dict[str, Any]:
    name, published = t["name"], 1.0 if t["published"] == "True" else float(t["published"])
    base = {"name": name, "published": published, "tolerance": float(t["tolerance"]), "exact": np.nan,
            "monte_carlo": np.nan, "seeds": "", "kind": "value", "met": "", "rule": "within the tolerance"}  # fmt: skip
    if "split-half" in name:
        value = look.split_half()
        if "mean over seeds" in name:
            rule = "information only: another random protocol"
            return base | {"exact": value.null_pp, "kind": "information", "rule": rule}
        low, high = _central(name)
        rule = f"inside the central 95% of split seeds, {low:.2f} to {high:.2f}"
        met = _yes(low <= value.pp <= high)
        return base | {"monte_carlo": value.pp, "kind": "split halves", "met": met, "rule": rule}
    if name.endswith(_MC):
        return base | _monte_carlo(look, name.removesuffix(_MC), published)
    value = look.value(name)
    met = abs(value - published) <= base["tolerance"] + 1e-9
    return base | {"exact": value, "met": _yes(met)}


def _monte_carlo(look: _Look, what: str, published: float) -> dict[str, Any]:
    """A row that holds under a shuffle protocol: judged by its distance from the exact value, in standard errors."""
    place = look.place(what)
    exact, drawn = look.null_row(place), look.null_row(place, "tables")
    column = "p" if what.endswith(" p") else "excess" if "excess" in what else "null"
    kind = {"exact": exact[column] * (1 if column == "p" else 100), "kind": "monte carlo"}
    kind["monte_carlo"] = drawn[column] * (1 if column == "p" else 100)
    digits = len(str(published).partition(".")[2])
    prints = [round(v, digits) == published for v in look.seeded(place, column)]
    rule = (
        "exact p at most the published one"
        if column == "p"
        else "Monte Carlo within 4 standard errors of the exact value"
    )
    if column == "p":
        met = exact["p"] <= published
    else:
        error = 100 * exact["null_sd"] / np.sqrt(look.audit.settings.permutations)
        met = abs(kind["monte_carlo"] - kind["exact"]) <= 4 * error
    return kind | {"seeds": f"{sum(prints)} of {len(prints)}", "met": _yes(met), "rule": rule}


def _central(name: str) -> tuple[float, float]:
    """Central 95% of the median split-half difference over split seeds, from the note of the information row."""
    stem = name.rpartition(",")[0]
    notes = targets()
    note = notes.loc[notes["name"].str.startswith(stem) & notes["name"].str.contains("mean over seeds"), "note"].iloc[0]
    low, high = re.search(r"central 95% ([\d.]+)-([\d.]+)", note).groups()
    return float(low), float(high)


def _yes(x: bool) -> str:
    return "yes" if x else "no"


@dataclass(frozen=True)
class _Half:
    pp: float
    null_pp: float


@dataclass(frozen=True)
class _Look:
    """Look-ups of the audit's numbers by the names of the target list."""

    audit: Audit

    def share(self, metric: str, column: str = "estimate", **keys: str) -> float:
        where = {"arm": "judged", "policy": "wrong", "models": "all", "stratum": "all"} | keys
        if metric.startswith("zero_gain") or metric in ("text_only_share",):
            where.setdefault("null_kind", "pooled")
        row = one(self.audit.statistics, metric, **where)
        if row is None:
            raise KeyError(f"{metric} {where}")
        return float(row[column])

    def null_row(self, place: dict[str, str], method: str = "exact") -> pd.Series:
        found = rows(self.audit.statistics, "zero_gain_share", arm="judged", policy="wrong", p_method=method, **place)
        return found.iloc[0]

    def place(self, what: str) -> dict[str, str]:
        """Models, stratum and null of a name such as ``Table 2 [all] p`` or ``excess math pp``."""
        if found := re.match(r"Table 2 \[(.+?)\]", what):
            return {"models": found[1], "stratum": "all", "null_kind": "pooled"}
        if found := re.match(r"(?:HallusionBench )?excess (.+) pp", what):
            return {"models": "all", "stratum": found[1], "null_kind": "within"}
        return {"models": "all", "stratum": "all", "null_kind": "pooled"}

    def seeded(self, place: dict[str, str], column: str) -> list[float]:
        """The Monte-Carlo value under seeds 0 to 20, as printed."""
        counts = self._counts(place)
        n = len(self.audit.models) - (place["models"] != "all")
        table = joint_table(counts["F"].to_numpy(), counts["B"].to_numpy(), n)
        region = category_region("zero_gain", n)
        out = []
        for seed in SEEDS:
            r = region_null(table, region, draws=999, rng=np.random.default_rng(seed), exact="never").as_row("tables")
            out.append(r[column] * (1 if column == "p" else 100))
        return out

    def _counts(self, place: dict[str, str]) -> pd.DataFrame:
        if place["models"] != "all":
            return self._without(place["models"].removeprefix("without "))
        counts = self.audit.counts[self.audit.counts["arm"] == "judged"]
        return counts if place["stratum"] == "all" else counts[counts["stratum"] == place["stratum"]]

    def _without(self, model: str) -> pd.DataFrame:
        verdicts = self.audit.judgements[self.audit.judgements["model"] != model]
        hits = verdicts.pivot_table(index="item", columns="condition", values="hit", aggfunc="sum").astype(int)
        return hits.rename(columns={"full": "F", "blind": "B"})

    def split_half(self) -> _Half:
        row = one(self.audit.statistics, "split_half_difference", arm="judged")
        return _Half(100 * row["estimate"], 100 * row["null"])

    def value(self, name: str) -> float:
        """The audit's value of a row that needs no random protocol."""
        if found := re.match(r"items: (.+)", name):
            return float((self.audit.items["stratum"] == found[1]).sum())
        if found := re.match(r"(unparseable) (full|blind) % (.+)", name):
            return 100 * self.share(f"{found[2]}_unparseable_rate", arm="exact", models=found[3])
        if found := re.match(r"judge/parser disagreements (.+)", name):
            keys = {"arm": "", "policy": "", "models": found[1], "level": "all"}
            return self.share("judge_parser_disagreement", "n", **keys)
        if found := re.match(r"(judged|exact) (text_only|visual_dependent|visual_supplement|conflicting) %", name):
            return 100 * self.share(f"{found[2]}_share", arm=found[1], null_kind="pooled")
        if found := re.match(r"unanimous % (" + "|".join(map(re.escape, _SIX)) + r")$", name):
            return 100 * self.share("unanimous_share", arm="exact", stratum=found[1], level="")
        if found := re.match(r"(Table 2 \[.+?\]|HallusionBench) (observed|null mean|excess)", name):
            column = {"observed": "estimate", "null mean": "null", "excess": "excess"}[found[2]]
            if not re.match(r"HallusionBench excess (VS|VD)", name) and "ratio" not in name:
                return 100 * float(self.null_row(self.place(name))[column])
        if name in _VALUES:
            return float(_VALUES[name](self))
        if re.match(r"(HallusionBench )?excess (.+) pp$", name):
            return 100 * float(self.null_row(self.place(name))["excess"])
        raise KeyError(name)


def _table2(look: _Look, column: str) -> list[float]:
    pools = ["all", *(f"without {m}" for m in look.audit.models["model"])]
    return [100 * float(look.null_row({"models": p, "stratum": "all", "null_kind": "pooled"})[column]) for p in pools]


def _stratum_excess(look: _Look, name: str) -> float:
    return float(look.null_row({"models": "all", "stratum": name, "null_kind": "within"})["excess"])


def _unanimous(look: _Look, column: str = "estimate", **keys: str) -> float:
    return look.share("unanimous_share", column, arm="exact", **({"level": ""} | keys))


def _same_wrong(look: _Look, column: str) -> list[float]:
    found = rows(look.audit.statistics, "same_wrong_option", null_kind="shuffled")
    return (100 * found.loc[found["models"].str.contains("|", regex=False), column]).tolist()


def _mismatches(look: _Look) -> float:
    """Replies whose parsed letter differs from the letter that the replica was built with."""
    from auditlib.synth.embedded import replica

    built, read = replica(look.audit.params.data.embedded or look.audit.pool_name), look.audit.responses
    wrong = 0
    for (model, condition), part in read.groupby(["model", "condition"]):
        want = dict(zip(built["index"], built[f"{model}|{condition}|letter"]))
        wrong += int((part["letter"].astype(str) != part["item"].map(want)).sum())
    return float(wrong)


def _between(look: _Look) -> bool:
    low, high = _stratum_excess(look, "coarse perception"), _stratum_excess(look, "math")
    return all(low < _stratum_excess(look, s) < high for s in ("fine-grained perception", *_REASONING[1:]))


def _zero_gain(look: _Look, level: int) -> float:
    return look.share("zero_gain_composition", "n", policy="wrong", null_kind="pooled", level=str(level))


def _categories(look: _Look, column: str) -> float:
    arms = ("judged", "exact")
    metrics = ("text_only_share", "visual_dependent_share", "visual_supplement_share", "conflicting_share")
    return max(
        abs(np.subtract(*(100 * look.share(m, column, arm=a, null_kind="pooled") for a in arms))) for m in metrics
    )


def _letters_read(look: _Look) -> int:
    letters = look.audit.responses["letter"].astype(object)
    return int((letter_codes(letters) >= 0).sum())


def _any_tier(look: _Look) -> float:
    return 100 * look.share("consensus_share", arm="exact")


_VALUES: dict[str, Callable[[_Look], float]] = {
    "MMStar items": lambda a: len(a.audit.items),
    "HallusionBench items": lambda a: len(a.audit.items),
    "letter column equals parse of raw text (mismatches)": _mismatches,
    "judged text_only items": lambda a: round(a.share("text_only_share") * len(a.audit.items)),
    "text_only with F=B=0": lambda a: _zero_gain(a, 0),
    "text_only with F=B=3": lambda a: _zero_gain(a, 3),
    "visual_dependent, majority definition %": lambda a: (
        100 * a.share("visual_dependent_majority_share", null_kind="pooled")
    ),
    "text_only Wilson low %": lambda a: 100 * a.share("text_only_share", "low"),
    "text_only Wilson high %": lambda a: 100 * a.share("text_only_share", "high"),
    "raw spread across pools pp": lambda a: float(np.ptp(_table2(a, "estimate"))),
    "excess spread across pools pp": lambda a: float(np.ptp(_table2(a, "excess"))),
    "other three categories in between": _between,
    "largest share move between arms pp": lambda a: _categories(a, "estimate"),
    "items changing category between arms": lambda a: a.share("category_changed", "n", arm="", policy=""),
    "items changing category %": lambda a: 100 * a.share("category_changed", arm="", policy=""),
    "unanimous candidates": lambda a: round(_unanimous(a) * _unanimous(a, "n")),
    "unanimous with three parseable": lambda a: round(_unanimous(a, level="3/3") * _unanimous(a, "n")),
    "unanimous with exactly two parseable": lambda a: round(_unanimous(a, level="2/2") * _unanimous(a, "n")),
    "unanimous %": lambda a: 100 * _unanimous(a),
    "unanimous Wilson low %": lambda a: 100 * _unanimous(a, "low"),
    "unanimous Wilson high %": lambda a: 100 * _unanimous(a, "high"),
    "unanimous % lowest category (math and reasoning)": lambda a: min(
        100 * _unanimous(a, stratum=s) for s in _REASONING
    ),
    "unanimous % highest of math and reasoning": lambda a: max(100 * _unanimous(a, stratum=s) for s in _REASONING),
    "any tier %": _any_tier,
    "complete cases": lambda a: a.share("fleiss_kappa", "n", arm="exact"),
    "Fleiss kappa": lambda a: a.share("fleiss_kappa", arm="exact"),
    "kappa bootstrap low": lambda a: a.share("fleiss_kappa", "low", arm="exact"),
    "kappa bootstrap high": lambda a: a.share("fleiss_kappa", "high", arm="exact"),
    "same wrong option, lowest pair %": lambda a: min(_same_wrong(a, "estimate")),
    "same wrong option, highest pair %": lambda a: max(_same_wrong(a, "estimate")),
    "same wrong option after shuffle, lowest pair %": lambda a: min(_same_wrong(a, "null")),
    "same wrong option after shuffle, highest pair %": lambda a: max(_same_wrong(a, "null")),
    "HallusionBench parseable letters": _letters_read,
    "HallusionBench text_only %": lambda a: 100 * a.share("text_only_share"),
    "HallusionBench VS/VD excess ratio": lambda a: _stratum_excess(a, "VS") / _stratum_excess(a, "VD"),
    "HallusionBench AUC of visual gain (positive class VD)": lambda a: a.share("gain_auc"),
}
