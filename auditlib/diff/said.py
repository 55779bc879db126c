"""A comparison in words and tables, once for all formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from auditlib import numerals
from auditlib.diff.compare import Difference
from auditlib.diff.sides import AUDIT
from auditlib.figures.pipeline import plural
from auditlib.flagged_rows import clip
from auditlib.lookup import unique_p
from auditlib.metrics.what_if import CHANGES
from auditlib.table_formats import Column

#: rows of a table on a page; the CSV files hold all
MOST = 200
QUANTITIES = {
    "accuracy": "Accuracy", "zero_gain_share": "Zero gain from the image", "text_only_share": "Text only",
    "visual_dependent_share": "Visual dependent", "visual_supplement_share": "Visual supplement",
    "conflicting_share": "Conflicting",
}  # fmt: skip
#: statistics of a whole pool that the page shows, in this order
HEADLINE = (
    "zero_gain_share", "text_only_share", "visual_dependent_share", "visual_supplement_share", "conflicting_share",
    "visual_dependent_majority_share", "unanimous_share", "high_share", "medium_share", "consensus_share",
    "fleiss_kappa", "krippendorff_alpha", "key_kappa", "gain_auc", "attainable_ceiling", "saturated_share",
    "never_solved_share",
)  # fmt: skip


@dataclass(frozen=True)
class Table:
    """A table of a page: ``file`` is the CSV that holds all its rows."""

    title: str
    frame: pd.DataFrame
    columns: tuple[Column, ...]
    note: str = ""
    file: str = ""
    total: int = 0


@dataclass(frozen=True)
class Part:
    """A section: its heading, sentences, and tables."""

    title: str
    sentences: tuple[str, ...]
    tables: tuple[Table, ...] = ()


def title(d: Difference) -> str:
    """The page's title."""
    return f"{d.a.label} and {d.b.label}: what differs"


def parts(d: Difference) -> list[Part]:
    """The sections of a comparison, those without content left out."""
    found = [Part("In short", tuple(short(d)))]
    if len(d.items):
        found.append(Part("Items", (), (_items(d),)))
    if len(d.ranks):
        found += [_ranks(d, arm) for arm in dict.fromkeys(d.ranks["arm"]) if not _ranked_alike(d, arm)]
    if len(d.paired):
        found += [_paired(d, arm) for arm in dict.fromkeys(d.paired["arm"]) if not alike(d, arm)]
    if len(d.categories):
        found.append(_categories(d))
    if len(d.findings):
        found.append(_findings(d))
    if len(d.statistics):
        found.append(_statistics(d))
    found.append(Part("What was compared", tuple(_compared(d))))
    return found


def short(d: Difference) -> list[str]:
    """The changes in a few sentences; one of them says ``no difference`` where there is none."""
    settings = [f"Settings differ ({'; '.join(d.settings)}): a difference of the numbers may be theirs and not the "
                "runs'."] if d.settings else []  # fmt: skip
    if d.same:
        scored = f", {plural(len(d.shared_models), 'model')} scored alike" if len(d.paired) else ""
        rest = "; single replies were not compared" if d.a.kind == AUDIT and not len(d.paired) else ""
        return [f"No difference: {plural(d.shared_items, 'item')} alike{scored}{rest}.", *settings]
    n = d.items.groupby("change")["item"].nunique().to_dict()
    what = d.items.loc[d.items["change"].eq("changed"), "what"].value_counts()
    kinds = f" ({', '.join(f'{name} of {k}' for name, k in what.items())})" if len(what) else ""
    counted = [f"{n.get(c, 0)} {c}" + (kinds if c == "changed" else "") for c in ("changed", "added", "removed")]
    out = [f"Items: {d.shared_items:,} shared; {', '.join(counted)}.", *settings]
    if d.a.kind != AUDIT:
        return out
    if d.left_out:
        by = [f"{', '.join(m for m, s in d.left_out.items() if s == label)} (only in {label})"
              for label in dict.fromkeys(d.left_out.values())]  # fmt: skip
        out.append(f"Models: {plural(len(d.shared_models), 'shared model')}; left out: {'; '.join(by)}.")
    for arm in dict.fromkeys(d.paired["arm"]):
        out += _moved(d, arm)
    if len(d.findings):
        k = d.findings["change"].value_counts()
        out.append("Findings on shared items: "
                   + ", ".join(f"{k.get(c, 0)} {c}" for c in ("appeared", "vanished", "changed")) + ".")  # fmt: skip
    else:
        out.append("Findings on shared items: none appeared, vanished or changed.")
    return out


def alike(d: Difference, arm: str) -> bool:
    """Whether every score of an arm on the shared items is the same before and after."""
    mine = d.paired.loc[d.paired["arm"].eq(arm), ["difference", "gained", "lost"]]
    return not mine.fillna(0).astype(float).ne(0).to_numpy().any()


def _moved(d: Difference, arm: str) -> list[str]:
    mine = d.paired[d.paired["arm"].eq(arm)]
    if alike(d, arm):
        keys = d.items["what"].eq("key").any() and arm == "judged"
        why = "; stored verdicts do not follow a changed key" if keys else ""
        return [f"Shared items ({arm}): every model scores as before{why}."]
    zero = mine[mine["quantity"].eq("zero_gain_share")]
    out = []
    for r in zero.to_dict("records"):
        out.append(f"Zero-gain share ({arm}): {numerals.percent(r['before'])} before, "
                   f"{numerals.percent(r['after'])} after on {plural(r['items'], 'shared item')}, "
                   f"{_difference(r)}.")  # fmt: skip
    full = mine[mine["quantity"].eq("accuracy") & mine["condition"].eq("full")]
    if len(full):
        moved = full[full["difference"].abs() > 1e-12]
        far = full.loc[full["difference"].abs().idxmax()].to_dict()
        out.append(
            f"Accuracy with the image ({arm}): {len(moved)} of {plural(len(full), 'model')} changed"
            + (f"; most {far['model']}, {_difference(far)}." if len(moved) else " on the shared items.")
        )
    claims = d.claims[d.claims["arm"].eq(arm)]
    if len(d.ranks[d.ranks["arm"].eq(arm)]):
        said = [f"{plural(n, 'pair')} {words}" for change, words in CHANGES.items()
                if (n := int(claims["change"].eq(change).sum()))]  # fmt: skip
        out.append(f"Ranks ({arm}): {'; '.join(said) if said else 'no pair of models changes its standing'}.")
    return out


def _difference(r: dict) -> str:
    p = f", {numerals.p_says(r['p'])} ({r['p_method']})" if r["p"] == r["p"] else ""
    ends = numerals.interval(r["low"], r["high"], numerals.pp)
    return f"difference {numerals.points(r['difference'])}, 95% interval {ends}{p}"


# ------------------------------------------------------------------------------------------------ tables


def _cut(frame: pd.DataFrame, file: str) -> dict:
    return {"frame": frame.head(MOST), "file": file, "total": len(frame)}


def _items(d: Difference) -> Table:
    frame = d.items.assign(before=d.items["before"].map(clip), after=d.items["after"].map(clip))
    columns = (Column("item", "Item"), Column("change", "Change"), Column("what", "What"), Column("before", "Before"),
               Column("after", "After"))  # fmt: skip
    return Table("Items added, removed or changed", columns=columns, **_cut(frame, "items.csv"))


def _ranked_alike(d: Difference, arm: str) -> bool:
    """Whether an arm's leaderboard is the same before and after."""
    board = d.ranks[d.ranks["arm"].eq(arm)]
    names = ("items", "score", "rank", "low", "high")
    return all(board[f"{n}_before"].equals(board[f"{n}_after"].rename(f"{n}_before")) for n in names)


def _ranks(d: Difference, arm: str) -> Part:
    board = d.ranks[d.ranks["arm"].eq(arm)]
    columns = (Column("model", "Model"), Column("score_before", "Before (%)", "pct"),
               Column("rank_before", "Rank", "any"), Column("low..high", "Band", "range:low_before:high_before:count"),
               Column("score_after", "After (%)", "pct"), Column("rank_after", "Rank", "any"),
               Column("low..high", "Band", "range:low_after:high_after:count"))  # fmt: skip
    items = [f"{plural(int(board[f'items_{s}'].iloc[0]), 'item')} {s}" for s in ("before", "after")]
    note = f"Accuracy with the image on {items[0]}, {items[1]}. Bands hold for all models of a side at once (95%)."
    tables = [Table("Ranks of the shared models", board, columns, note, "ranks.csv", len(board))]
    claims = d.claims[d.claims["arm"].eq(arm)]
    if len(claims):
        names = (Column("first", "First"), Column("second", "Second"), Column("before", "Before"),
                 Column("after", "After"))  # fmt: skip
        tables.append(Table("Pairs whose standing changes", columns=names, **_cut(claims, "claims.csv")))
    return Part(f"Ranks, {arm} arm", (), tuple(tables))


def _paired(d: Difference, arm: str) -> Part:
    mine = d.paired[d.paired["arm"].eq(arm)]
    mine = mine.assign(quantity=mine["quantity"].map(lambda q: QUANTITIES.get(q, q)))
    numbers = (Column("items", "Items", "count"), Column("before", "Before (%)", "pct"),
               Column("after", "After (%)", "pct"), Column("difference", "Difference (pp)", "pp"),
               Column("low..high", "95% interval (pp)", "range:low:high:pp"), Column("gained", "Gained", "count"),
               Column("lost", "Lost", "count"), Column("p", "p", "p"), Column("q", "q", "p"))  # fmt: skip
    methods = " or ".join(dict.fromkeys(m for m in mine["p_method"] if m))
    note = ("Gained, lost: items that have the property after and not before, and the other way round. Interval: "
            "bootstrap of the paired difference over items (clusters where items share a picture). "
            f"p: {methods or 'none'}; q: Benjamini-Hochberg.")  # fmt: skip
    accuracy = mine["quantity"].eq("Accuracy")
    tables = []
    if (~accuracy).any():
        tables.append(Table("Shares of the shared items", columns=(Column("quantity", "Share"), *numbers), note=note,
                            **_cut(mine[~accuracy], "paired.csv")))  # fmt: skip
    if accuracy.any():
        columns = (Column("model", "Model"), Column("condition", "Run"), *numbers)
        tables.append(Table("Accuracy on the shared items", columns=columns, note="" if tables else note,
                            **_cut(mine[accuracy], "paired.csv")))  # fmt: skip
    return Part(f"Shared items, {arm} arm", (), tuple(tables))


def _categories(d: Difference) -> Part:
    flow = d.categories.groupby(["arm", "before", "after"], sort=False).size().reset_index(name="items")
    said = flow.assign(before=_words(flow["before"]), after=_words(flow["after"]))
    flows = (
        Column("arm", "Arm"),
        Column("before", "Before"),
        Column("after", "After"),
        Column("items", "Items", "count"),
    )
    frame = d.categories.assign(
        before=_words(d.categories["before"]), after=_words(d.categories["after"]),
        right_before=_right(d.categories, "before"), right_after=_right(d.categories, "after"))  # fmt: skip
    columns = (Column("item", "Item"), Column("arm", "Arm"), Column("before", "Before"),
               Column("right_before", "Right with, without"), Column("after", "After"),
               Column("right_after", "Right with, without"))  # fmt: skip
    tables = (Table("From one category to another", said, flows, total=len(said)),
              Table("Items in another category", columns=columns, **_cut(frame, "categories.csv")))  # fmt: skip
    return Part("Categories", (), tables)


def _right(t: pd.DataFrame, side: str) -> list[str]:
    return [f"{f}, {b} of {n}" for f, b, n in zip(t[f"full_{side}"], t[f"blind_{side}"], t[f"of_{side}"])]


def _words(column: pd.Series) -> pd.Series:
    return column.str.replace("_", " ")


def _findings(d: Difference) -> Part:
    columns = (Column("item", "Item"), Column("detector", "Detector"), Column("arm", "Arm"), Column("change", "Change"),
               Column("severity_before", "Severity before"), Column("severity_after", "Severity after"),
               Column("before", "Before"), Column("after", "After"))  # fmt: skip
    counts = d.findings.groupby(["detector", "change"], sort=False).size().unstack(fill_value=0)
    counts = counts.reindex(columns=["appeared", "vanished", "changed"], fill_value=0).reset_index()
    numbers = (Column("detector", "Detector"), *(Column(c, c.capitalize(), "count") for c in counts.columns[1:]))
    return Part("Findings", (), (
        Table("Flagged findings on shared items, by detector", counts, numbers, total=len(counts)),
        Table("Findings that appeared, vanished or changed", columns=columns, **_cut(d.findings, "findings.csv")),
    ))  # fmt: skip


def _statistics(d: Difference) -> Part:
    told = d.statistics["change"].eq("estimate")
    whole = d.statistics["models"].eq("all") & d.statistics["stratum"].eq("all")
    plain = d.statistics["policy"].isin(["", "wrong"]) & d.statistics["null_kind"].isin(["", "pooled"])
    head = d.statistics[told & whole & plain & d.statistics["metric"].isin(HEADLINE)]
    head = unique_p(head, "metric", "arm", "which")
    names = [f"{m} ({w})" if w else m for m, w in zip(_words(head["metric"]), head["which"])]
    head = head.assign(metric=names, place=head["metric"].map(HEADLINE.index))
    head = head.sort_values(["arm", "place"], kind="stable")
    columns = [Column("metric", "Statistic"), Column("arm", "Arm")]
    for side, word in (("before", "Before"), ("after", "After")):
        columns += [Column(f"n_{side}", "n", "any"), Column(f"estimate_{side}", word, "number"),
                    Column("low..high", "95% interval", f"range:low_{side}:high_{side}:number"),
                    Column(f"null_{side}", "Null", "number"), Column(f"p_{side}", "p", "p")]  # fmt: skip
    said = [f"{plural(int(told.sum()), 'row')} of the statistics have another estimate or n; statistics.csv holds all."]
    if rest := int((~told).sum()):
        said.append(f"{plural(rest, 'more row')} differ in an interval, null or p only.")
    note = "Each side over its own items and models; null: pooled. Intervals of one side each, not of the difference."
    tables = (Table("Headline statistics that changed", columns=tuple(columns), note=note,
                    **_cut(head, "statistics.csv")),) if len(head) else ()  # fmt: skip
    return Part("Statistics", tuple(said), tables)


def _compared(d: Difference) -> list[str]:
    sides: Sequence = (("Before", d.a), ("After", d.b))
    out = []
    for word, s in sides:
        models = f", {plural(len(s.audit.models), 'model')}" if s.audit is not None else ""
        of = f" of {s.benchmark}" if s.benchmark else ""
        out.append(f"{word}: {s.kind} {s.label}{of}, {plural(len(s.items), 'item')}{models}, SHA-256 of "
                   f"{'the file' if s.audit is None else 'its items'} {s.digest}.")  # fmt: skip
    return [*out, *(f"{n[0].upper()}{n[1:]}." for n in dict.fromkeys(d.notes))]
