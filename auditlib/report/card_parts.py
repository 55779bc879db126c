"""The short sections of the card below its headline: keys, gate, where, saturation, reliability, scoring, limits."""

from __future__ import annotations

from typing import Any

from auditlib import lookup
from auditlib.figures.pipeline import plural
from auditlib.integrity.checks import gate_table
from auditlib.lookup import one
from auditlib.numerals import NONE, count, interval, number, p_value, percent, points
from auditlib.report import flags
from auditlib.report.blocks import Run, b
from auditlib.report.card_sources import GATE, Sources, ends_of, extremes, to
from auditlib.report.card_words import Part, listed, range_of, reasons
from auditlib.report.opening import all_wrong
from auditlib.studies import STUDIES

#: names that a list on the card shows
MOST = 3
#: below this many models a share is more the pool's than the benchmark's
FEW_MODELS = 5


def keys(audit: Any, src: Sources, made: dict[str, Any]) -> Part:
    """Votes against the key, what people said of them, and the attainable ceiling."""
    s, lines = audit.statistics, []
    u = one(s, "unanimous_share", models="all", stratum="all", level="")
    if u is None:
        lines.append(["Votes against the key: ", *reasons(made["label conflicts"].missing, src), "."])
    else:
        at = src.headline("consensus against the key: unanimous", u)
        n = u["estimate"] * u["n"]
        quantity = "consensus against the key: unanimous"
        many = " item, " if round(n) == 1 else " items, "
        line: list[Run] = [b("Unanimous against the key: "), to(count(n), src.row(u)), many,
                           to(percent(u["estimate"]), at), " ", to(interval(u["low"], u["high"]), at)]  # fmt: skip
        line += range_of(src, extremes(s, "unanimous_share", level=""), percent, quantity)
        lines.append([*line, ". Candidates, not errors."])
        any_tier = one(s, "consensus_share", models="all", stratum="all", level="")
        if any_tier is not None:
            lines[-1] += [" Any tier of conflict: ", to(percent(any_tier["estimate"]),
                                                       src.headline("any consensus tier", any_tier)), "."]  # fmt: skip
    lines.append(reviewed(audit, src) or ["Share of wrong keys: not known, ",
                                          *reasons(made["share of wrong keys"].missing, src), "."])  # fmt: skip
    c = one(s, "attainable_ceiling", stratum="all", level="")
    if c is not None:
        shown = percent(c["estimate"], 2 if c["estimate"] < 1 else 0)
        lines.append([b("Attainable ceiling: "), to(shown, src.row(c)),
                      "" if c["estimate"] < 1 else ", every key can be met", "."])  # fmt: skip
    return Part("Keys", lines)


def reviewed(audit: Any, src: Sources) -> list[Run]:
    """What a reviewed sample says of the keys, else the bound that holds without one; empty where neither was made."""
    found = audit.study("calibration")
    if found is None:
        return []
    if "first" in found.frames:
        table = found.frames["first"]
        r, at = table.iloc[-1], src.study("calibration", "first", len(table) - 1)
        return [b("Reviewed: "), "of the first ", to(count(r["r"]), at), " suspects ", to(percent(r["precision"]), at),
                " hold a defect (90% interval ", to(interval(r["low"], r["high"]), at), ")."]  # fmt: skip
    if "bounds" in found.frames and len(found.frames["bounds"]):
        table = found.frames["bounds"]
        r, at = table.iloc[0], src.study("calibration", "bounds", 0)
        if str(r["words"]) == "none":
            return [b("Not reviewed. "), "Votes set no bound on the share of wrong keys, not even among the first ",
                    to(count(r["r"]), at), " suspects."]  # fmt: skip
        return [b("Not reviewed. "), "Share of wrong keys among the first ", to(count(r["r"]), at), " suspects: ",
                to(str(r["words"]), at), "."]  # fmt: skip
    return []


def gate(audit: Any, src: Sources) -> Part:
    """The integrity gate: how many checks found what."""
    table = gate_table(audit)
    states = table["state"].value_counts()
    n = {k: int(states.get(k, 0)) for k in ("found", "passed", "not run")}
    lines: list[list[Run]] = [[to(count(n["found"]), GATE), f" check{'s' * (n['found'] != 1)} found something, ",
                               to(count(n["passed"]), GATE), " passed, ", to(count(n["not run"]), GATE),
                               " could not run."]]  # fmt: skip
    found = table[table["state"].eq("found") & table["severity"].isin(["high", "medium"])]
    for r in found.head(MOST).itertuples():
        lines.append([b(f"{r.severity}, does not hold: "), r.what, " (", to(count(r.n), GATE), " found)."])
    if not len(found):
        lines.append(["Nothing of high or medium severity."])
    return Part("Integrity gate", lines)


def where(audit: Any, src: Sources, made: dict[str, Any]) -> Part:
    """Categories that stand out, if any may be named."""
    lines: list[list[Run]] = []
    claim = made["where the excess is"]
    if claim.made:
        t = lookup.unique_p(lookup.rows(audit.statistics, "zero_gain_share", models="all", arm=audit.arm,
                                        policy="wrong", null_kind="within"), "stratum")  # fmt: skip
        t = t[t["q"].le(0.05) & t["excess_low"].gt(0) & ~t["stratum"].isin(["all", ""])]
        t = t[~t["stratum"].str.startswith("design:")].sort_values("excess", ascending=False, kind="stable")
        parts = []
        for _, r in t.head(MOST).iterrows():
            at = src.table("strata", stratum=r["stratum"]) or src.row(r)
            parts.append([flags.shortened(r["stratum"], 40), " (", to(points(r["excess"]), at), ", q = ",
                          to(p_value(r["q"]), at), ")"])  # fmt: skip
        more = ", and others" if len(t) > MOST else ""
        lines.append([b("More zero gain than chance: "), *listed(parts), more, "."])
    else:
        lines.append(["No category is named for zero gain: ", *reasons(claim.missing, src), "."])
    claim = made["where label conflicts are"]
    if claim.made:
        t = lookup.unique_p(lookup.rows(audit.statistics, "unanimous_share", models="all", level=""), "stratum")
        names = [r for _, r in t.iterrows() if f"{r['stratum']} (" in claim.sentence and r["stratum"] != "all"]
        parts = []
        for r in names[:MOST]:
            at = src.table("strata", stratum=r["stratum"]) or src.row(r)
            parts.append([flags.shortened(r["stratum"], 40), " (", to(percent(r["estimate"]), at), ")"])
        lines.append([b("More label conflicts: "), *listed(parts), ", and others" if len(names) > MOST else "", "."])
    else:
        lines.append(["None is named for label conflicts: ", *reasons(claim.missing, src), "."])
    return Part("Categories that stand out", lines)


def saturation(audit: Any, src: Sources) -> Part:
    """Items that all models solve, items that none solves, and the range of accuracies."""
    s, line = audit.statistics, []
    for metric, words in (("saturated_share", "solved by every model"), ("never_solved_share", "by none")):
        r = one(s, metric, models="all", stratum="all", arm=audit.arm)
        if r is not None:
            at = src.table("agreement", quantity=words if "every" in words else "solved by no model", arm=audit.arm)
            line += [", " if line else "", to(percent(r["estimate"]), at or src.row(r)), f" {words}"]
    lines = [["Items: ", *line, "."]] if line else [["Needs two models."]]
    ends = ends_of(lookup.rows(s, "accuracy", level="full", arm=audit.arm, policy=("wrong", "")))
    if ends is not None:
        best = [to(percent(r["estimate"]), src.table("accuracy", model=r["models"], arm=audit.arm) or src.row(r))
                for r in ends]  # fmt: skip
        lines.append(["Accuracy with the image: ", best[0], " to ", best[1], "."])
    return Part("Saturation", lines)


def reliability(audit: Any, src: Sources) -> Part:
    """Agreement of the models on letters."""
    s, lines = audit.statistics, []
    for metric, quantity, words in (("fleiss_kappa", "Fleiss' kappa of letters", "Fleiss’ κ of letters: "),
                                    ("krippendorff_alpha", "Krippendorff's alpha", "Krippendorff’s α: ")):  # fmt: skip
        r = one(s, metric, models="all", stratum="all")
        if r is not None:
            at = src.headline(quantity, r)
            ci = interval(r["low"], r["high"], number)
            lines.append([b(words), to(number(r["estimate"]), at), *([" ", to(ci, at)] if ci != NONE else []), "."])
    same = lookup.rows(s, "same_wrong_option", null_kind="shuffled", stratum="all")
    ends = ends_of(same[same["models"].ne("all") & same["n"].gt(0)])
    if ends is not None:
        low, high = (to(percent(r["estimate"]), src.table("same_wrong_option", models=r["models"]) or src.row(r))
                     for r in ends)  # fmt: skip
        lines.append(["Two models, both wrong: the same wrong option in ", low, *([" to ", high] if high != low else
                      []), " of cases."])  # fmt: skip
    return Part("Reliability", lines or [["Agreement needs the letters of two models."]])


def scoring(audit: Any, src: Sources, made: dict[str, Any]) -> Part:
    """Judge against parser."""
    s, claim = audit.statistics, made["conclusions without the judge"]
    changed, lines = one(s, "category_changed"), []
    why = reasons(claim.missing, src)
    lines.append([b("Conclusions do not hang on the judge: "), "share and excess are equivalent in both arms."]
                 if claim.made else ["Not claimed that conclusions stand without the judge: ", *why, "."])  # fmt: skip
    if changed is not None:
        lines.append([to(percent(changed["estimate"]), src.row(changed)), " of the items change category with the "
                      "arm."])  # fmt: skip
    return Part("Judge and parser", lines)


def not_run(audit: Any, src: Sources) -> Part:
    """Detectors, arms and studies that are missing, and why."""
    idle = audit.detectors[audit.detectors["state"] != "run"]
    lines: list[list[Run]] = [[b(f"{d.replace('_', ' ')}: "), f"{flags.shortened(r, 90)}."]
                              for d, r in zip(idle["detector"], idle["reason"])]  # fmt: skip
    if not audit.has_blind:
        lines.insert(0, [b("gain from the image: "), "no run without it; the report names the command and the cost."])
    for arm, why in list(audit.steps["not_counted"].items())[:1] if audit.has_blind else []:
        lines.append([b(f"{arm} arm: "), f"{flags.shortened(why, 90)}."])
    missing = [st.title.lower() for st in STUDIES.values() if audit.study(st.name) is None]
    if missing:
        lines.append([b("Studies: "), f"{', '.join(missing)}: their notebooks were not run on this pool."])
    return Part("Not run", lines or [["Every detector and study was run."]])


def limits(audit: Any, src: Sources) -> Part:
    """What no number of the card can say."""
    n = len(audit.models)
    lines: list[list[Run]] = []
    if audit.steps["limit"]:
        lines.append([b("A quick look at the first items, no audit of the benchmark.")])
    if silent := all_wrong(audit):
        lines.append([b("Scored all wrong: "), flags.shortened(", ".join(silent), 60), ". Compare the arms."])
    few = f"few: below {FEW_MODELS}, shares move with every model" if n < FEW_MODELS else "a pool, not all models"
    lines += [
        [b("Models. "), to(plural(n, "model"), "audit.json"), f" {'is' if n == 1 else 'are'} {few}. Fewer tie more "
         "often."],
        [b("Errors are shared. "), "Unanimity ranks items for people; it is no error rate."],
        [b("Mechanism. "), "Ties beyond chance do not tell language priors from contamination."],
    ]  # fmt: skip
    return Part("Limits", lines)
