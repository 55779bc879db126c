"""Sentences of the report about judges: what they notice, what their decisions are worth, what is not known."""

from __future__ import annotations

from typing import Any

from auditlib.figures.judges import setting_name
from auditlib.judges.dimensions import named
from auditlib.numerals import count, number, p_says, percent, points
from auditlib.report.blocks import b, callout, card, cards, p, ul
from auditlib.studies.results import Result

_SEEN = ("", "shown", "none")


def words(result: Result) -> list[Any]:
    """Blocks of the section's opening."""
    return [x for x in (_counts(result), _synthetic(result), _detected(result), _neutral(result), _image(result),
                        _hard(result), _people(result), _value(result), _slots(result), _own(result),
                        _filters(result), _cards(result), _extraction(result), _lacking(result)) if x]  # fmt: skip


def _counts(result: Result) -> Any:
    f = result.facts
    out = [card("calls", count(f["calls"]), f"{len(f['judges'])} judges", f"{percent(f['answered'])} answered")]
    overall = result.frames.get("overall")
    if overall is not None:
        seen = overall[overall["quantity"].eq("detection") & overall["image"].isin(_SEEN)]
        if len(seen):
            out.append(card("planted damage detected", f"{percent(seen['estimate'].min(), 0)} to "
                            f"{percent(seen['estimate'].max(), 0)}", "over judges and ways of asking"))  # fmt: skip
    value = result.frames.get("value")
    if value is not None:
        share = value[value["quantity"].eq("share") & ~value["judge"].isin(("similarity", "half of the people"))]
        if len(share):
            out.append(card("normalised gain of decisions", f"{percent(share['estimate'].min(), 0)} to "
                            f"{percent(share['estimate'].max(), 0)}", "0: random, 100: always the best"))  # fmt: skip
    return cards(out)


def _synthetic(result: Result) -> Any:
    if not result.facts.get("synthetic"):
        return None
    return callout(b("Invented judges. "), "No model was run: the habits of these judges were planted.", tone="info")


def _detected(result: Result) -> Any:
    table = result.frames.get("overall")
    if table is None:
        return None
    here = table[table["image"].isin(_SEEN)]
    d = here[here["quantity"].eq("d_prime") & here["estimate"].notna()]
    if not len(d):
        return None
    names = [setting_name(r.judge, r.paradigm, r.style, r.image, here) for r in d.itertuples()]
    top, low = int(d["estimate"].to_numpy().argmax()), int(d["estimate"].to_numpy().argmin())
    text = (f"Damage is told from harmless changes best by {names[top]} (d' {number(d['estimate'].iloc[top], 2)}) and "
            f"least by {names[low]} ({number(d['estimate'].iloc[low], 2)}).")  # fmt: skip
    rates = here.pivot_table(index=["judge", "paradigm", "style", "image"], columns="quantity", values="estimate",
                             sort=False).reset_index()  # fmt: skip
    strict = rates[rates["false_alarm"].gt(0.5)] if "false_alarm" in rates else rates[:0]
    if len(strict):
        r = strict.iloc[int(strict["false_alarm"].to_numpy().argmax())]
        text += (f" A high detection alone says little: {setting_name(r.judge, r.paradigm, r.style, r.image)} detects "
                 f"{percent(r.detection, 0)} and marks {percent(r.false_alarm, 0)} of the harmless changes down "
                 "too.")  # fmt: skip
    floor = here[here["quantity"].eq("floor")]
    if len(floor):
        r = floor.iloc[int(floor["estimate"].to_numpy().argmax())]
        text += (f" Up to {percent(r['estimate'], 0)} ({r['judge']}) of second scores of the same output are strictly "
                 "lower than the first: so much is detected by chance.")  # fmt: skip
    return p(b("What judges notice. "), text)


def _neutral(result: Result) -> Any:
    table = result.frames.get("dimensions")
    if table is None or table["effect"].eq("neutral").any():
        return None
    return callout(b("No harmless changes. "), "Without changes that should not matter, a judge that dislikes "
                   "everything detects 100%: d' and false alarms are not known.", tone="warn")  # fmt: skip


def _image(result: Result) -> Any:
    table = result.frames.get("images")
    if table is None:
        return None
    blind = table[table["p_same"].le(0.05)]
    parts = [f"{r.judge} detects {percent(r.shown, 0)} with the image and {percent(r.other, 0)} with it {r.without}"
             for r in table.head(4).itertuples()]  # fmt: skip
    text = "; ".join(parts) + "."
    if len(blind):
        text += (
            f" For {', '.join(dict.fromkeys(blind['judge']))} the difference lies within 5 points: the text decides."
        )
    return p(b("Does the judge look? "), text)


def _hard(result: Result) -> Any:
    table = result.frames.get("dimensions")
    if table is None:
        return None
    here = table[table["image"].isin(_SEEN) & table["effect"].eq("degrade")]
    half, low = here[here["q_half"].le(0.05)], here[here["q_macro"].le(0.05)]
    text = (f"Of {count(len(here))} pairs of judge and dimension, fewer than half of the faults are detected for "
            f"{count(len(half))}, {count(len(low))} lie below the mean (false discovery rate 5%)")  # fmt: skip
    if len(low):
        worst = low.sort_values("shrunk", kind="stable").head(4)
        lowest = [f"{named(r.dimension)} ({percent(r.shrunk, 0)}) for "
                  + setting_name(r.judge, r.paradigm, r.style, r.image, here) for r in worst.itertuples()]  # fmt: skip
        text += f": lowest {', '.join(lowest)}"
    return p(b("Blind spots. "), text + ".")


def _people(result: Result) -> Any:
    table = result.frames.get("people")
    if table is None:
        return None
    whole = table[table["comparison"].eq("all")]
    parts = [f"{r.judge} {number(r.rank, 2)} ({percent(r.unparsed_share)} without a score)" for r in whole.itertuples()]
    text = f"Rank correlation with people: {', '.join(parts)}."
    inner = table[table["comparison"].ne("all") & table["unparsed_share"].notna()]
    if len(inner):
        worst = inner.loc[inner["unparsed_share"].idxmax()]
        text += (f" Most scores are missing for {worst['judge']} on {worst['comparison']} "
                 f"({percent(worst['unparsed_share'])}).")  # fmt: skip
    return p(b("Against people. "), text)


def _value(result: Result) -> Any:
    table = result.frames.get("value")
    if table is None:
        return None
    share = table[table["quantity"].eq("share") & table["estimate"].notna()]
    judges = share[~share["judge"].isin(("similarity", "half of the people"))]
    if not len(judges):
        return None
    barely = judges[judges["p"].le(0.05)]["judge"].tolist()
    text = "Share of the way from a random choice to the best candidate: " + ", ".join(
        f"{r.judge} {percent(r.estimate, 0)}" for r in share.itertuples()) + "."  # fmt: skip
    if barely:
        text += f" Barely better than random, within 10 points: {', '.join(barely)}."
    return p(b("What decisions are worth. "), text)


def _slots(result: Result) -> Any:
    table = result.frames.get("slots")
    if table is None:
        return None
    first = table[table["scope"].eq("all") & table["slot"].eq("1")]
    odd = first[first["q"].le(0.05)]
    text = ""
    for r in odd.itertuples():
        text += (f"{r.judge} takes the first slot in {percent(r.estimate)} of calls, expected {percent(r.expected)} "
                 f"({p_says(r.p)}). ")  # fmt: skip
    orders = result.frames.get("orders")
    if orders is not None:
        excess = orders[orders["quantity"].eq("excess over the same order") & orders["p"].le(0.05)]
        if len(excess):
            r = excess.loc[excess["estimate"].idxmax()]
            text += (f"Another order changes decisions beyond sampling most for {r['judge']} "
                     f"({points(r['estimate'])}).")  # fmt: skip
    return p(b("Slots. "), text.strip() or "No judge takes the first slot more or less often than expected.")


def _filters(result: Result) -> Any:
    table = result.frames.get("filters")
    if table is None:
        return None
    inner = table[table["quantity"].eq("interaction") & table["low"].notna()]
    help_, hurt = inner[inner["low"].gt(0)], inner[inner["high"].lt(0)]
    text = (f"Of {len(inner)} filters {len(help_)} keep decisions that gain more than those dropped, {len(hurt)} keep "
            "worse ones.")  # fmt: skip
    table = table[table["note"].eq("")]
    bad = table[table["quantity"].eq("bad_kept")]
    lost = table[table["quantity"].eq("good_lost") & table["estimate"].notna()]
    if len(lost) and len(bad):
        a, c = lost.loc[lost["estimate"].idxmax()], bad.loc[bad["estimate"].idxmax()]
        text += (f" Good decisions are lost too: {percent(a['estimate'], 0)} of those dropped with {a['judge']}, "
                 f"{a['filter']}; and bad ones kept: {percent(c['estimate'], 0)} with {c['judge']}, "
                 f"{c['filter']}.")  # fmt: skip
    return p(b("Agreement as a filter. "), text)


def _own(result: Result) -> Any:
    table = result.frames.get("own_family")
    if table is None or "coef" not in table:
        return None
    judges = table[table["judge"].ne("all judges") & table["coef"].notna()]
    if not len(judges):
        return None
    odd = judges[judges["q"].le(0.05)]
    parts = [f"{r.judge} takes an output of its own family ({r.family}) in {percent(r.chosen, 0)} of the calls that "
             f"show some, {percent(r.expected, 0)} expected (log odds {number(r.coef, 2)} at equal slot and quality)"
             for r in odd.itertuples()]  # fmt: skip
    none = (f"None of {count(len(judges))} judges chooses outputs of its own family more often than slot and people's "
            "ratings explain.")  # fmt: skip
    return p(b("Own family. "), "; ".join(parts) + "." if parts else none)


def _cards(result: Result) -> Any:
    table = result.frames.get("cards")
    if table is None:
        return None
    n = int(table["lacks"].ne("").sum())
    text = f"{count(len(table))} validity cards state what each filter did, for which judge."
    if n:
        some = "None of them says" if n == len(table) else f"{count(n)} of them do not say"
        text += f" {some} what the judge was (judges.identity), so that nobody sees when it is another."
    checks = result.frames.get("card_checks")
    if checks is not None:
        text += f" Of {count(len(checks))} earlier cards {count(int(checks['holds'].sum()))} still hold."
    return p(b("Validity. "), text)


def _extraction(result: Result) -> Any:
    table = result.frames.get("extraction_leniency")
    if table is None:
        return None
    by = table.set_index("variant")
    whole = result.frames["extraction_accuracy"]
    mine = whole[whole["kind"].eq("all")].set_index("variant")
    words = {"plain": "asked as the audit asks", "permuted": "with options in another order", "key_shown":
             "with the key shown"}  # fmt: skip
    parts = [f"{percent(mine.at[v, 'estimate'])} of replies as people do {words[v]} "
             f"({percent(by.at[v, 'false_right'])} of other answers as the key)" for v in by.index]  # fmt: skip
    return p(b("The judge that reads answers. "), f"It reads {'; '.join(parts)}.")


def _lacking(result: Result) -> Any:
    lost = result.facts.get("lacking", {})
    by: dict[str, list[str]] = {}
    for name, why in lost.items():
        by.setdefault(why, []).append(name.replace("_", " "))
    by.pop("no item's planted faults pass all judges", None)
    if not by:
        return None
    return ul([[b(", ".join(names) + ": "), f"{why}."] for why, names in by.items()])
