"""What the choice of a parser is worth: accuracy of the same replies under the parsers of other toolkits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from auditlib.extract.chain import own_letter, shown_in, shown_options
from auditlib.extract.compat import PARSERS, RANDOM
from auditlib.frames import LETTERS
from auditlib.metrics.rows import row
from auditlib.pool import Pool

#: replies that a toolkit would have read though the audit's arms leave them out
_CUT = "truncated"
_CELL = ["item", "model", "condition", "sample"]


class Readings(NamedTuple):
    """Replies with a letter key under every parser.

    ``cells`` has columns item, model, condition, sample, prediction, letter, key; ``exact`` is a boolean (n,);
    ``letters[parser]`` and ``gains[parser]`` have shape (n,): the letter read and what it scores in [0, 1], 1/k where
    the parser would guess among k options.
    """

    cells: pd.DataFrame
    exact: np.ndarray
    letters: dict[str, np.ndarray]
    gains: dict[str, np.ndarray]


def read_with_parsers(pool: Pool) -> Readings | None:
    """Read the pool's replies with every compat parser; None where there are no replies or no letter keys.

    Each distinct pair of reply and options is read once.
    """
    cells = _cells(pool)
    if cells is None or not len(cells):
        return None
    options = [shown_options(r) for r in pool.items[_columns(pool, "options", "k")].to_dict("records")]
    place = pd.Index(pool.items["item"]).get_indexer(cells["item"])
    orders = cells["order"].to_numpy(dtype=object)
    seen: dict[tuple[str, tuple[str, ...]], int] = {}
    code = np.empty(len(cells), np.int64)
    for n, (text, i, order) in enumerate(zip(cells["prediction"], place.tolist(), orders)):
        shown = shown_in(options[i], order) if order else options[i]
        code[n] = seen.setdefault((text, shown), len(seen))
    key, shuffled = cells["key"].to_numpy(dtype=object), np.flatnonzero(orders != "")
    letters, gains = {}, {}
    for name, parser in PARSERS.items():
        read = [parser(text, shown) for text, shown in seen]
        said = np.array([r.value for r in read], object)[code]
        for n in shuffled.tolist():
            said[n] = own_letter(said[n], orders[n])
        guess = np.array([_chance(r.rule, shown) for r, (_, shown) in zip(read, seen)])[code]
        letters[name], gains[name] = said, np.where(said == key, 1.0, guess)
    exact = (cells["letter"] == cells["key"]).to_numpy(dtype=bool)
    return Readings(cells.drop(columns="order").reset_index(drop=True), exact, letters, gains)


def _columns(pool: Pool, *names: str) -> list[str]:
    return [c for c in names if c in pool.items]


def _cells(pool: Pool) -> pd.DataFrame | None:
    """Replies to items whose key is an option letter; cut-off ones only where failures count as wrong."""
    table = pool.responses
    if (
        table is None
        or "exact" not in pool.arms
        or not {"prediction", "letter"} <= set(table)
        or "key" not in pool.items
    ):
        return None
    keys = pool.items["key"].astype(object)
    keys = keys[keys.isin(list(LETTERS[:-1])).to_numpy()]
    by_item = dict(zip(pool.items["item"][keys.index], keys))
    if "answer_type" in pool.items:
        choice = pool.items["answer_type"].fillna("choice").astype(str).isin(["choice", ""]).to_numpy()
        chosen = set(pool.items["item"][choice])
        by_item = {i: k for i, k in by_item.items() if i in chosen}
    wanted = ["ok", _CUT] if pool.settings.failed == "wrong" else ["ok"]
    usable = table["item"].isin(list(by_item)) & table["model"].isin(pool.model_names)
    usable &= table["prediction"].map(lambda t: isinstance(t, str)).astype(bool)
    if "status" in table:
        usable &= table["status"].isin(wanted)
    table = table[usable]
    blank = pd.Series("", index=table.index, dtype=object)
    order = table["order"].astype(object).where(table["order"].notna(), "") if "order" in table else blank
    sample = table["sample"] if "sample" in table else blank.map(lambda _: 0)
    letter = table["letter"].astype(object).where(table["letter"].notna(), "")
    facts = {"sample": sample, "letter": letter, "key": table["item"].map(by_item), "order": order}
    return table[["item", "model", "condition", "prediction"]].assign(**facts)


def _chance(rule: str, options: tuple[str, ...]) -> float:
    """What a random choice among the options shown scores on average; 0 where the parser does not guess."""
    if rule != RANDOM or not options:
        return 0.0
    return 1 / (sum(1 for t in options if t.strip()) or len(options))


def extraction_rows(pool: Pool) -> list[dict[str, Any]]:
    """Accuracy under every parser, its range, and the hits that only a parser, a fallback or chance makes.

    Metrics, by model and condition (``models="all"`` over all replies): ``parser_accuracy`` (``level`` is
    ``condition:parser``), ``parser_accuracy_range`` (estimate by the exact arm, low and high over all parsers and the
    exact arm), ``parser_only_hits`` (share of replies that some compat parser scores as right and the exact arm does
    not; guesses left out). From verdicts, for the conditions that have any: ``fallback_share`` (verdicts by a fallback
    after the judge failed, among all), ``random_fill_hits`` (right by a random letter) and ``parser_only_judged_hits``
    (right by a rule of the toolkit where the exact arm reads another letter or none).

    Returns
    -------
    list of dict
        Rows of the statistics frame; empty for a pool without replies or without letter keys.
    """
    readings = read_with_parsers(pool)
    rows = [] if readings is None else _parser_rows(pool, readings)
    return rows + _verdict_rows(pool, readings)


def _groups(cells: pd.DataFrame, models: list[str]) -> list[tuple[str, str, np.ndarray]]:
    """(model, condition, places) of replies, ``all`` first within a condition."""
    model, condition = cells["model"].to_numpy(dtype=object), cells["condition"].to_numpy(dtype=object)
    out = []
    for c in sorted(set(condition), key=lambda c: (c != "full", c != "blind", c)):
        here = condition == c
        out.append(("all", c, np.flatnonzero(here)))
        out += [(m, c, at) for m in models if len(at := np.flatnonzero(here & (model == m)))]
    return out


def _parser_rows(pool: Pool, readings: Readings) -> list[dict[str, Any]]:
    rows = []
    certain = {p: readings.letters[p] == readings.cells["key"].to_numpy(dtype=object) for p in PARSERS}
    extra = np.logical_or.reduce(list(certain.values())) & ~readings.exact
    for model, condition, at in _groups(readings.cells, pool.model_names):
        facts = {"arm": "exact", "models": model, "n": len(at)}
        exact = float(readings.exact[at].mean())
        by_parser = {"exact": exact} | {p: float(gain[at].mean()) for p, gain in readings.gains.items()}
        for parser, accuracy in by_parser.items():
            level = f"{condition}:{parser}"
            rows.append(row("parser_accuracy", facts, level=level, null_kind="", estimate=accuracy))
        low, high = (pick(by_parser, key=by_parser.__getitem__) for pick in (min, max))
        note = f"lowest by {low}, highest by {high}"
        span = {"low": by_parser[low], "high": by_parser[high]}
        rows.append(row("parser_accuracy_range", facts | span, level=condition, estimate=exact, note=note))
        found = int(extra[at].sum())
        note = f"{found} replies are right only under another toolkit's parser"
        rows.append(row("parser_only_hits", facts, level=condition, estimate=found / len(at), note=note))
    return rows


def _verdict_rows(pool: Pool, readings: Readings | None) -> list[dict[str, Any]]:
    verdicts = pool.judgements
    if verdicts is None or not len(verdicts) or "source" not in verdicts:
        return []
    if "level" in verdicts:
        verdicts = verdicts[verdicts["level"] != "circular"]
    verdicts = verdicts[verdicts["model"].isin(pool.model_names)]
    verdicts = verdicts.assign(sample=verdicts.get("sample", 0)).reset_index(drop=True)
    source = verdicts["source"].fillna("unknown").astype(str)
    stored = verdicts["hit_stored"] if "hit_stored" in verdicts else verdicts["hit"]
    right = pd.to_numeric(stored, errors="coerce").fillna(0).gt(0).to_numpy()
    fill = source.eq("random_fill").to_numpy()
    kinds = {"fallback_share": fill | source.eq("exact_fallback").to_numpy(), "random_fill_hits": fill & right}
    notes = {
        "fallback_share": "verdicts made without the judge after it failed",
        "random_fill_hits": "right by a letter filled in at random",
        "parser_only_judged_hits": "right by the toolkit's own rule, not by the exact arm",
    }
    if readings is not None:
        joined = verdicts[_CELL].merge(
            readings.cells[_CELL].assign(exact=readings.exact).drop_duplicates(_CELL), on=_CELL, how="left"
        )
        missed = joined["exact"].eq(False).to_numpy(dtype=bool)
        kinds["parser_only_judged_hits"] = missed & right & source.isin(["regex", "exact_fallback"]).to_numpy()
    rows = []
    for model, condition, at in _groups(verdicts, pool.model_names):
        for metric, flag in kinds.items():
            found = int(flag[at].sum())
            note = f"{found} of {len(at)} {notes[metric]}"
            rows.append(
                row(metric, arm="judged", models=model, level=condition, n=len(at), estimate=found / len(at), note=note)
            )
    return rows


def parser_hits(pool: Pool) -> pd.DataFrame:
    """Replies that another toolkit's parser scores as right and the exact arm does not.

    Returns
    -------
    DataFrame
        Columns item, model, condition, sample, parser, letter, key; one row per reply and parser, in the order of the
        responses. Guesses are left out. Empty for a pool without replies or without letter keys.
    """
    columns = ["item", "model", "condition", "sample", "parser", "letter", "key"]
    readings = read_with_parsers(pool)
    parts = []
    for parser, said in readings.letters.items() if readings else ():
        here = (said == readings.cells["key"].to_numpy(dtype=object)) & ~readings.exact
        parts.append(readings.cells[here].assign(parser=parser, letter=said[here]))
    if not parts:
        return pd.DataFrame(columns=columns)
    return pd.concat(parts).sort_index(kind="stable")[columns].reset_index(drop=True)
