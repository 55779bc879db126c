"""From a params file (or a folder) to a :class:`~auditlib.pool.Pool`."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib.align import align
from auditlib.errors import AuditError
from auditlib.frames import LETTERS, Runs, coverage_row, frame
from auditlib.params import Params, load_params
from auditlib.paths import resolve
from auditlib.pool import Arm, Pool
from auditlib.repeats import without_copied_repeats
from auditlib.scoring import Cells, exact_arm, judged_arm, open_arm, open_verdicts, rounded, yesno_arm

if TYPE_CHECKING:
    from auditlib.parsed import ParsedCache
    from auditlib.readers.answer_counts import AnswerCounts


#: why a pool with keyed items has no exact arm
NO_LETTER = "no reply names an option letter"


def read_pool(
    source: Params | str | Path,
    *,
    outputs: str | Path = "outputs",
    benchmark: str | None = None,
    cache: bool | None = None,
) -> Pool:
    """Read the runs of one pool.

    Parameters
    ----------
    source : params, the path of a params file, or a results folder.
    outputs : folder under which embedded pools are materialised.
    benchmark : needed with a results folder that holds more than one benchmark.
    cache : whether runs parsed before are taken from ``OUTPUTS/.cache`` and new ones kept there; the pool is the same
        either way. By default yes, where ``outputs`` exists and ``AUDITLIB_CACHE`` is not ``off``.

    Raises
    ------
    AuditError
        Any mistake in the params or the files; the message names the file, the row and the mend.
    """
    from auditlib.parsed import cache_of
    from auditlib.readers import read_runs

    params = source if isinstance(source, Params) else _params_of(Path(source), benchmark)
    data = params.data
    out = resolve(outputs) if data.embedded or params.inference else Path(outputs)
    runs, kept = None, cache_of(out, cache)
    if data.has_runs:
        runs = read_runs(
            data,
            benchmark=params.benchmark,
            judge=params.judge,
            exclude_models=params.audit.exclude_models,
            outputs=out,
            cache=kept,
        )
    if params.inference is not None:
        from auditlib.own_runs import with_own_runs

        if runs is not None and not isinstance(runs, Runs):
            raise AuditError(
                "runs made here cannot be joined to a matrix of bare results or to counts",
                file=params.source,
                mend="give the other runs as a folder or a table, or take the inference block out",
            )
        runs = with_own_runs(runs, params, out)
    if isinstance(runs, Runs):
        return pool_of(runs, params, cache=kept)
    return _pool_of_counts(runs, params) if hasattr(runs, "table") else _pool_of_matrix(runs, params)


def _params_of(path: Path, benchmark: str | None) -> Params:
    if not path.is_dir():
        return load_params(path)
    from auditlib.readers.discover import params_of_folder

    return params_of_folder(path, benchmark)


def pool_of(
    runs: Runs, params: Params, *, cache: ParsedCache | None = None, memo: dict | None = None, part: bool = False
) -> Pool:
    """Align, extract and count: canonical frames to a pool.

    ``memo`` keeps readings of replies from call to call; a ``part`` of a pool has the exact arm even if none of its
    replies names a letter, for those of other parts may.
    """
    from auditlib.parsed_letters import extract_kept

    settings = params.audit
    runs = without_copied_repeats(runs)
    items, responses, coverage = align(runs, keys_from=settings.keys_from)
    check_names(params, items, sorted(set(responses["model"])))
    models = model_table(runs.models, params, sorted(set(responses["model"])))
    items = _item_facts(items, settings.options_by_stratum)
    shown, unknown = _letters_to_accept(items)
    responses = extract_kept(responses, shown, tuple(settings.exact), cache, memo)
    unclosed = responses["rule"].astype(str).str.contains("truncated", na=False) & responses["status"].eq("ok")
    responses.loc[unclosed, "status"] = "truncated"
    judgements = runs.judgements[runs.judgements["model"].isin(models["model"])] if len(runs.judgements) else None
    cells = Cells(items, models, responses)
    wrong = settings.failed == "wrong"
    letters = {c: cells.letters(c) for c in cells.conditions}
    arms, absent = {}, unknown + _unkeyed(items)
    keyed = items["key"].isin(list(LETTERS[:-1])).any() if "key" in items else False
    if keyed and (part or any((codes >= 0).any() for codes in letters.values())):
        arms["exact"] = exact_arm(cells, items, failed_wrong=wrong)
    else:
        reason = NO_LETTER if keyed else "no item has an option letter as its key"
        absent.append(coverage_row("not run", n=len(items), reason=f"exact arm: {reason}"))
    if items["answer_type"].eq("yesno").any():
        arms["exact_yesno"] = yesno_arm(cells, items, failed_wrong=wrong)
    verdicts = open_verdicts(cells, items, settings.tolerance)
    compared = open_arm(cells, verdicts, items, failed_wrong=wrong)
    if compared is not None:
        arms["exact_open"] = compared
    judged = None if judgements is None else judged_arm(cells, judgements, failed_wrong=wrong)
    if judged is not None:
        arms["judged"] = judged
        if moved := rounded(judgements["hit"].dropna().to_numpy(float), judged.unit):
            reason = f"graded verdicts without a small common denominator: counted in steps of 1/{judged.unit}"
            absent.append(coverage_row("warning", n=moved, reason=reason))
    absent += _unread(responses, shown, tuple(settings.exact))
    if not arms:
        if not responses["status"].eq("ok").any():
            raise AuditError(
                f"all {len(responses)} predictions are empty, failed or cut off",
                file=runs.inputs[0] if runs.inputs else None,
                mend="check the prediction column, or run the model again",
            )
        raise AuditError(
            "no reply could be scored: no option letter, yes/no or open answer was read, and there are no verdicts",
            file=params.source,
            mend="choose another extraction chain as audit.exact, or give judged files",
        )
    if unclosed.any():
        absent.append(coverage_row("status", n=int(unclosed.sum()), reason="replies whose think block never ends"))
    odd = responses["rule"].astype(str).str.endswith("+letter-text")
    if odd.any():
        reason = "replies read by letter although one option's text is another option's letter"
        absent.append(coverage_row("warning", n=int(odd.sum()), reason=reason))
    if absent:
        coverage = pd.concat([coverage, frame("coverage", absent)], ignore_index=True)
    return Pool(
        name=params.pool,
        benchmark=params.benchmark,
        items=items,
        models=models,
        arms=arms,
        letters=letters,
        refused={c: cells.flag("refused", c) for c in cells.conditions},
        failed={c: cells.not_ok(c) for c in cells.conditions},
        abstained={c: cells.abstained(c, items["answer_type"], verdicts == -1) for c in cells.conditions},
        responses=responses,
        judgements=judgements,
        coverage=coverage,
        params=params,
        provenance=dict(runs.provenance),
        inputs=tuple(runs.inputs),
    )


def check_names(params: Params, items: pd.DataFrame, models: list[str]) -> None:
    """Refuse names in the params that name nothing, and model names that the tables need for themselves."""
    reserved = [m for m in models if m in ("all", "all pairs") or m.startswith("without ")]
    if reserved:
        raise AuditError(f"a model is called {reserved[0]!r}, which the tables use for pools", mend="rename the model")
    for m in params.models:
        if m.text_base is not None and m.text_base not in models:
            raise AuditError(
                f"text_base of {m.name!r} names {m.text_base!r}, which has no run",
                file=params.source,
                mend=f"models found: {', '.join(models[:12])}",
            )
    design = params.audit.design
    if design is None:
        return
    if design.column not in items:
        have = [c for c in ("stratum", "substratum", "source", "capability") if c in items]
        raise AuditError(
            f"audit.design.column names {design.column!r}, which the items lack",
            file=params.source,
            mend=f"use one of {', '.join(have) or 'the mapped item columns'}",
        )
    values = sorted(set(items[design.column].dropna().astype(str)))
    if design.positive not in values:
        raise AuditError(
            f"audit.design.positive names {design.positive!r}, which no item has in {design.column!r}",
            file=params.source,
            mend=f"use one of {', '.join(values[:12])}",
        )


def _unkeyed(items: pd.DataFrame) -> list[dict[str, Any]]:
    """Coverage rows for items that no arm without a judge can score."""
    key = items["key"].astype(object).where(items["key"].notna(), "").astype(str) if "key" in items else None
    if key is None:
        return [coverage_row("excluded", n=len(items), reason="items without a key: not scored by letter")]
    rows = []
    letter, yesno = key.isin(list(LETTERS[:-1])), items["answer_type"].eq("yesno")
    for mask, reason in (
        (key.eq(""), "items without a key: not scored by letter"),
        (key.eq("Z"), "items whose key is the letter Z, which stands for an abstention: not scored by letter"),
        (~letter & ~yesno & key.ne("") & key.ne("Z"), "items whose key is no option letter: not scored by letter"),
    ):
        if mask.any():
            rows.append(
                coverage_row("excluded", n=int(mask.sum()), reason=reason, item=str(items["item"][mask].iloc[0]))
            )
    return rows


def _pool_of_matrix(matrix: Any, params: Params) -> Pool:
    if not matrix.hits or not len(matrix.items):
        raise AuditError(
            "the matrix has no column of results", file=params.data.matrix, mend="check rows: and prefixes:"
        )
    check_names(params, matrix.items, list(matrix.models))
    items = _item_facts(matrix.items, params.audit.options_by_stratum)
    models = model_table(pd.DataFrame({"model": list(matrix.models)}), params, list(matrix.models), sort=False)
    hits = dict(matrix.hits)
    missing = matrix.missing if any(m is not None for m in (matrix.missing or {}).values()) else None
    if models["model"].tolist() != list(matrix.models):  # the params name them in another order
        order = pd.Index(matrix.models).get_indexer(models["model"])
        hits = {c: h[:, order] for c, h in hits.items()}
        missing = missing and {c: None if m is None else m[:, order] for c, m in missing.items()}
    trials = None
    if missing is not None:
        trials = {
            c: np.ones(h.shape, np.uint8) if missing.get(c) is None else (~missing[c]).astype(np.uint8)
            for c, h in hits.items()
        }
    return Pool(
        name=params.pool,
        benchmark=params.benchmark,
        items=items,
        models=models,
        arms={"judged": Arm("judged", hits, trials)},
        coverage=matrix.coverage,
        params=params,
        provenance={"judge": "correctness as stored in the matrix"} | dict(matrix.provenance or {}),
        inputs=tuple(matrix.inputs),
    )


def _pool_of_counts(counts: AnswerCounts, params: Params) -> Pool:
    """A pool of counted answers: one judged arm, and the counts themselves for curation."""
    check_names(params, counts.items, counts.models)
    models = model_table(counts.about, params, counts.models)
    order = pd.Index(counts.models).get_indexer(models["model"])
    table = counts.table.assign(model=counts.table["model"].cat.reorder_categories(models["model"].tolist()))
    hits = {c: h[:, order] for c, h in counts.hits.items()}
    trials = {c: t[:, order] for c, t in counts.trials.items()}
    return Pool(
        name=params.pool,
        benchmark=params.benchmark,
        items=_item_facts(counts.items, params.audit.options_by_stratum),
        models=models,
        arms={"judged": Arm("judged", hits, trials)},
        answer_counts=table,
        coverage=counts.coverage,
        params=params,
        provenance=dict(counts.provenance),
        inputs=tuple(counts.inputs),
    )


def model_table(known: pd.DataFrame, params: Params, present: list[str], *, sort: bool = True) -> pd.DataFrame:
    """Models in a fixed order: as the params list them, then the others by name."""
    listed = [m.name for m in params.models]
    for name in listed:
        if name not in present and name not in params.audit.exclude_models:
            near = difflib.get_close_matches(name, present, n=1, cutoff=0.4)
            raise AuditError(
                f"model {name!r} of the params has no run",
                file=params.source,
                mend=f"did you mean {near[0]!r}?" if near else f"models found: {', '.join(present[:12])}",
            )
    rest = [m for m in present if m not in listed]
    order = [m for m in listed if m in present] + (sorted(rest) if sort else rest)
    facts = (
        pd.DataFrame([m.model_dump(exclude_none=True) for m in params.models]) if listed else pd.DataFrame({"name": []})
    )
    table = pd.DataFrame({"model": order})
    known = known.drop_duplicates("model")
    extra = [c for c in known.columns if c != "model" and known[c].notna().any()]
    table = table.merge(known[["model", *extra]], on="model", how="left")
    facts = facts.rename(columns={"name": "model"})
    for column in facts.columns.drop("model"):
        stated = dict(zip(facts["model"], facts[column]))
        old = table[column] if column in table else pd.Series([None] * len(table))
        table[column] = [stated.get(m) if pd.notna(stated.get(m)) else o for m, o in zip(table["model"], old)]
    return table


def _item_facts(items: pd.DataFrame, options_by_stratum: dict[str, int]) -> pd.DataFrame:
    """Add ``k`` (options shown) and ``answer_type`` where the reader could not know them."""
    items = items.copy()
    options = items["options"] if "options" in items else pd.Series([None] * len(items))
    shown = np.array(
        [sum(bool(str(t)) for t in o) if isinstance(o, list | tuple | np.ndarray) else 0 for o in options], float
    )
    k = (
        pd.to_numeric(items["k"], errors="coerce").to_numpy(float).copy()
        if "k" in items
        else np.full(len(items), np.nan)
    )
    # what the runs showed decides: an option lost on the way was no choice, whatever the dataset says
    k = np.where(shown > 0, shown, k)
    if options_by_stratum:
        if "stratum" not in items:
            raise AuditError(
                "audit.options_by_stratum is given but the items have no stratum", mend="map a stratum column"
            )
        unknown = set(options_by_stratum) - set(items["stratum"].astype(str))
        if unknown:
            near = difflib.get_close_matches(min(unknown), list(set(items["stratum"].astype(str))), n=1)
            raise AuditError(
                f"audit.options_by_stratum names {min(unknown)!r}, which is no stratum",
                mend=f"did you mean {near[0]!r}?" if near else "use the names of the stratum column",
            )
        by = items["stratum"].astype(str).map(options_by_stratum).to_numpy(dtype=float)
        k = np.where(np.isnan(k), by, k)
    items["k"] = pd.array(np.where(np.isnan(k), 0, k).astype(int), dtype="Int64")
    items.loc[np.isnan(k), "k"] = pd.NA
    if "answer_type" not in items:
        items["answer_type"] = None
    if "key" in items:
        key = items["key"].astype(object).where(items["key"].notna(), "").astype(str)
        guess = np.select([key.str.lower().isin(["yes", "no"]), key.isin(list(LETTERS))], ["yesno", "choice"], "open")
        known = items["answer_type"].notna() & items["answer_type"].ne("")
        items["answer_type"] = np.where(known, items["answer_type"], np.where(key.eq(""), None, guess))
        items.loc[items["answer_type"].eq("yesno") & items["k"].isna(), "k"] = 2
    return items


def _letters_to_accept(items: pd.DataFrame) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Items as the extraction sees them: where options are unknown, letters up to the highest key are accepted."""
    unknown = items["k"].isna() & items["answer_type"].eq("choice")
    if not unknown.any():
        return items, []
    highest = max(LETTERS.index(k) for k in items.loc[unknown, "key"]) + 1
    reason = f"options unknown: letters up to {LETTERS[highest - 1]}, the highest key, are accepted as answers"
    shown = items.assign(k=items["k"].mask(unknown, highest))
    return shown, [coverage_row("warning", n=int(unknown.sum()), reason=reason)]


def _unread(responses: pd.DataFrame, items: pd.DataFrame, chain: tuple[str, ...]) -> list[dict[str, Any]]:
    """Coverage rows for models of whose replies with the image the chain reads next to nothing, and what would."""
    from auditlib.extract import READERS, extract_frame

    choice = responses["item"].isin(items.loc[items["answer_type"].eq("choice"), "item"])
    usable = responses[choice & responses["condition"].eq("full") & responses["status"].eq("ok")]
    rows = []
    for model, part in usable.groupby("model", sort=True):
        if len(part) < 10 or (part["letter"] != "Z").mean() > 0.1:
            continue
        better = []
        for name in (n for n in READERS if n not in chain and n in ("letters", "boxed", "option_text")):
            share = (extract_frame(part, items, (name,))["letter"] != "Z").mean()
            if share > 0.5:
                better.append(f"{name} reads {100 * share:.0f}%")
        hint = f"; add to audit.exact: {', '.join(better)}" if better else ""
        reason = f"the chain {list(chain)} reads next to none of its replies with the image{hint}"
        n = int((part["letter"] == "Z").sum())
        rows.append(coverage_row("warning", n=n, model=model, condition="full", reason=reason))
    return rows
