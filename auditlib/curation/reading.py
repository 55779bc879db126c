"""From a :class:`~auditlib.pool.Pool` to the arrays of curation."""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditlib.curation.data import NO_ANSWER, Answers, CurationPool, Draws
from auditlib.errors import AuditError
from auditlib.frames import LETTERS
from auditlib.params import CurationParams
from auditlib.pool import Pool

#: code of a key that no answer can equal
NO_KEY = -2


def curation_pool(pool: Pool, settings: CurationParams | None = None) -> CurationPool:
    """The headline arm of a pool, its answers, and who plays which role.

    Parameters
    ----------
    pool : items need a ``source`` column where several benchmarks are curated together; without one the benchmark is
        the only source.
    settings : names of inspectors, panel and evaluated models. A role that names nobody falls to the models whose
        ``role`` holds its word, and then to every model with such runs.

    Raises
    ------
    AuditError
        A role names a model that the pool lacks or that has no such runs; no model has the role.
    """
    settings = settings or CurationParams()
    items = pool.items.copy().reset_index(drop=True)
    if "source" not in items or items["source"].isna().all():
        items["source"] = pool.benchmark
    items["source"] = items["source"].astype(object).where(items["source"].notna(), "(none)").astype(str)
    if "capability" in items:
        items["capability"] = items["capability"].astype(object).where(items["capability"].notna(), "(none)")
    arm = pool.arm
    if "full" not in arm.hits:
        raise AuditError("no run has the image", file=_source(pool), mend="curation needs runs with the image")
    counted = {c: _draws(pool, c) for c in ("full", "blind") if c in arm.hits}
    seen = {c: (d.trials > 0).any(axis=0) for c, d in counted.items()}
    if not seen["full"].any():
        raise AuditError("every count with the image is 0: no draw was made", file=_source(pool),
                         mend="check the columns and rows that hold the counts; a cell without draws is left out"
                         )  # fmt: skip
    roles = {
        "inspectors": _role(pool, "inspectors", settings.inspectors, "blind", seen.get("blind")),
        "panel": _role(pool, "panel", settings.panel, "full", seen["full"]),
        "evaluated": _role(pool, "evaluated", settings.evaluated, "full", seen["full"]),
    }
    return CurationPool(
        name=pool.name,
        items=items,
        models=pool.models.reset_index(drop=True),
        full=counted["full"],
        blind=counted.get("blind"),
        answers=answers_of(pool),
        **roles,
    ).check()


def _source(pool: Pool):
    return pool.params.source if pool.params else None


def _role(pool: Pool, role: str, named: list[str], condition: str, seen: np.ndarray | None) -> np.ndarray:
    """Places of the models of one role."""
    names = pool.model_names
    if twice := sorted({n for n in named if named.count(n) > 1}):
        raise AuditError(f"curation.{role} names {twice[0]!r} twice, so that it would count twice", file=_source(pool),
                         mend="name each model once")  # fmt: skip
    has = np.zeros(len(names), bool) if seen is None else seen
    for name in named:
        if name not in names or not has[names.index(name)]:
            why = f"has no {condition} run" if name in names else "is no model of this pool"
            there = [n for n, h in zip(names, has) if h]
            raise AuditError(f"curation.{role} names {name!r}, which {why}", file=_source(pool),
                             mend=f"models with {condition} runs: {', '.join(there[:12]) or 'none'}")  # fmt: skip
    if named:
        return np.array([names.index(n) for n in named])
    if "role" in pool.models:
        word = role.rstrip("s")
        marked = pool.models["role"].astype(object).where(pool.models["role"].notna(), "").astype(str)
        places = np.flatnonzero(marked.str.lower().str.contains(word).to_numpy() & has)
        if len(places):
            return places
    return np.flatnonzero(has)


def _draws(pool: Pool, condition: str) -> Draws:
    arm = pool.arm
    hits = arm.hits[condition].astype(np.int32)
    trials = np.full(hits.shape, arm.unit, np.int32) if arm.trials is None else arm.trials[condition].astype(np.int32)
    if pool.answer_counts is not None:
        none = _unanswered(pool, condition)
    elif pool.responses is not None:
        none = _abstentions(pool, condition)
    else:
        none = np.zeros(hits.shape, np.int32)
    return Draws(hits, trials, np.minimum(none * arm.unit, trials - hits), arm.unit)


def _unanswered(pool: Pool, condition: str) -> np.ndarray:
    table = pool.answer_counts
    assert table is not None
    mine = table[table["condition"].eq(condition).to_numpy() & table["answer"].eq("").to_numpy()]
    return _spread(pool, mine, (mine["odd"] + mine["even"]).to_numpy())


def _abstentions(pool: Pool, condition: str) -> np.ndarray:
    """Replies of a condition that name nothing, counted over the samples."""
    r = pool.responses
    assert r is not None
    types = pool.items.set_index("item")["answer_type"].reindex(r["item"]).to_numpy(dtype=object)
    said = np.where(types == "choice", _text(r, "letter"), _text(r, "answer"))
    none = np.isin(said, ("", "Z")) & np.isin(types, ("choice", "yesno"))
    if "abstained" in r:
        none |= r["abstained"].fillna(False).astype(bool).to_numpy()
    mine = none & r["condition"].eq(condition).to_numpy() & r["status"].eq("ok").to_numpy()
    return _spread(pool, r[mine], np.ones(int(mine.sum()), int))


def _spread(pool: Pool, rows: pd.DataFrame, values: np.ndarray) -> np.ndarray:
    out = np.zeros((len(pool.items), len(pool.models)), np.int32)
    i = pd.Index(pool.items["item"]).get_indexer(rows["item"])
    j = pd.Index(pool.models["model"]).get_indexer(rows["model"])
    known = (i >= 0) & (j >= 0)
    np.add.at(out, (i[known], j[known]), values[known])
    return out


def _text(frame: pd.DataFrame, column: str) -> np.ndarray:
    if column not in frame:
        return np.full(len(frame), "", object)
    return frame[column].astype(object).where(frame[column].notna(), "").to_numpy(dtype=object)


def answers_of(pool: Pool) -> Answers | None:
    """Histograms of the answers with the image; None for a pool that holds verdicts only."""
    if pool.answer_counts is not None:
        table = pool.answer_counts
        mine = table[table["condition"].eq("full")]
        rows = pd.DataFrame({"item": mine["item"], "model": mine["model"], "answer": mine["answer"],
                             "correct": mine["correct"].astype(bool), "odd": mine["odd"],
                             "even": mine["even"]})  # fmt: skip
    elif pool.responses is not None:
        rows = _from_responses(pool)
    else:
        return None
    if not len(rows) or not rows["answer"].ne("").any():
        return None
    rows = rows.assign(i=pd.Index(pool.items["item"]).get_indexer(rows["item"]),
                       j=pd.Index(pool.models["model"]).get_indexer(rows["model"]))  # fmt: skip
    return _coded(pool.items, rows[(rows["i"] >= 0) & (rows["j"] >= 0)])


def _from_responses(pool: Pool) -> pd.DataFrame:
    """Answer, correctness and sample half of every usable reply with the image."""
    from auditlib.scoring import Cells, open_verdicts

    assert pool.responses is not None
    r = pool.responses[pool.responses["condition"].eq("full") & pool.responses["status"].eq("ok")].reset_index(
        drop=True
    )
    items = pool.items.set_index("item")
    types = items["answer_type"].reindex(r["item"]).to_numpy(dtype=object)
    keys = items["key"].reindex(r["item"]).to_numpy(dtype=object) if "key" in items else np.full(len(r), None)
    choice = types == "choice"
    said = np.where(choice, _text(r, "letter"), _text(r, "answer"))
    said = np.where(choice & (said == "Z"), "", said)
    correct = said == np.array([k if isinstance(k, str) else "\0" for k in keys], dtype=object)
    yesno = types == "yesno"
    correct |= yesno & (np.char.lower(said.astype(str)) == np.char.lower(keys.astype(str)))
    open_item = ~choice & ~yesno
    if open_item.any():
        cells = Cells(pool.items, pool.models, r)
        verdicts = open_verdicts(cells, pool.items, pool.settings.tolerance)
        correct = np.where(open_item, verdicts == 1, correct)
        bare = open_item & (said == "")
        text = _text(r, "prediction")
        said = np.where(bare & (verdicts != -1), [str(t).strip()[:200] for t in text], said)
    if pool.arm.name == "judged" and pool.judgements is not None and open_item.any():
        correct = np.where(open_item, _judged(pool, r, correct), correct)
    sample = r["sample"].to_numpy() if "sample" in r else np.zeros(len(r), int)
    odd = (sample % 2 == 0).astype(np.int32)  # the first sample is odd
    rows = pd.DataFrame({"item": r["item"], "model": r["model"], "answer": said, "correct": correct.astype(bool),
                         "odd": odd, "even": 1 - odd})  # fmt: skip
    # every accepted spelling of an open key is one answer
    merged = open_item & rows["correct"].to_numpy()
    rows.loc[merged, "answer"] = np.array([str(k) if isinstance(k, str) and k else "(key)" for k in keys])[merged]
    return rows.groupby(["item", "model", "answer", "correct"], sort=False, as_index=False)[["odd", "even"]].sum()


def _judged(pool: Pool, r: pd.DataFrame, otherwise: np.ndarray) -> np.ndarray:
    """Verdicts of the headline judge on the replies; ``otherwise`` where it has none."""
    on = ["item", "model", "condition", "sample"]
    judgements = pool.judgements
    assert judgements is not None
    if "sample" not in judgements:
        judgements = judgements.assign(sample=0)
    left = r if "sample" in r else r.assign(sample=0)
    hit = left[on].merge(judgements.drop_duplicates(on)[[*on, "hit"]], on=on, how="left")["hit"].to_numpy(float)
    return np.where(np.isnan(hit), otherwise, hit >= 0.5)


def _coded(items: pd.DataFrame, rows: pd.DataFrame) -> Answers:
    """Answers as codes: a choice item's letters by their place, other answers in the order of their text."""
    n = len(items)
    k = pd.to_numeric(items["k"], errors="coerce").to_numpy(float) if "k" in items else np.full(n, np.nan)
    choice = items["answer_type"].eq("choice").to_numpy() if "answer_type" in items else np.ones(n, bool)
    i = rows["i"].to_numpy()
    said = rows["answer"].astype(str).to_numpy(dtype=object)
    letter = {c: p for p, c in enumerate(LETTERS[:-1])}
    by_letter = choice[i] & np.array([s in letter for s in said], bool)
    code = np.full(len(rows), NO_ANSWER, np.int32)
    code[by_letter] = [letter[s] for s in said[by_letter]]
    key = np.full(n, NO_KEY, np.int32)
    if "key" in items:
        stated = items["key"].astype(object).where(items["key"].notna(), "").to_numpy(dtype=object)
        key[choice] = [letter.get(str(s), NO_KEY) for s in stated[choice]]
    free = ~by_letter & (said != "")
    names = pd.DataFrame({"i": i[free], "answer": said[free]}).drop_duplicates().sort_values(["i", "answer"])
    base = np.where(choice, np.where(np.isnan(k), 0, k), 0).astype(int)
    # answers beyond the letters of a choice item come after its options
    top = base.copy()
    np.maximum.at(top, i[by_letter], code[by_letter] + 1)
    names["code"] = names.groupby("i").cumcount().to_numpy() + top[names["i"].to_numpy()]
    table = names.set_index(["i", "answer"])["code"]
    if free.any():
        code[free] = table.reindex(pd.MultiIndex.from_arrays([i[free], said[free]])).to_numpy()
    size = top.copy()
    np.maximum.at(size, names["i"].to_numpy(), names["code"].to_numpy() + 1)
    right = rows["correct"].to_numpy(bool) & (code >= 0) & ~by_letter
    key[i[right]] = code[right]
    texts = {(int(a), int(c)): str(s) for a, c, s in zip(names["i"], names["code"], names["answer"])}
    size = np.where(choice | np.isnan(k), size, np.maximum(size, k.astype(float))).astype(np.int32)

    def name(place: int, answer: int) -> str:
        if answer == NO_ANSWER:
            return ""
        return texts.get((place, answer)) or LETTERS[answer]

    return Answers(i.astype(np.int32), rows["j"].to_numpy(np.int32), code, rows["odd"].to_numpy(np.int32),
                   rows["even"].to_numpy(np.int32), size, key, name)  # fmt: skip
