"""The extraction judge of a study: what people read, the judge's readings from the same file or from live calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from auditlib import frames
from auditlib.calls import Reply, Request
from auditlib.errors import AuditError
from auditlib.frames import ABSTENTION
from auditlib.inference.judge import JudgeSettings
from auditlib.judges import extraction_judge as ej
from auditlib.judges.calls import Calls
from auditlib.judges.study import Judges
from auditlib.pool import Pool
from auditlib.readers import cells, files

if TYPE_CHECKING:
    from auditlib.inference.items import QuestionItem

Ask = Callable[[list[Request]], list[Reply]]
#: what a table may hold of the judge's own readings
READINGS = (*ej.VARIANTS, "again")
_WORDS = {"yes": "Yes", "no": "No"}


def read_truth(path: str | Path, pool: Pool) -> pd.DataFrame:
    """What people read in replies, one row per reply.

    Returns
    -------
    DataFrame
        ``response`` (place), ``item, model, condition, sample, truth, key, kind, cluster, weight`` and those of
        :data:`READINGS` that the file has. A key comes from the pool where the file has none.

    Raises
    ------
    AuditError
        A column is missing, a reply twice, nothing read by people, a reading that is no letter, yes, no or Z, a weight
        that is no positive number, no key known.
    """
    path = Path(path)
    table = files.open_table(path)
    for name in ("item", "model", "truth"):
        if name not in table:
            raise AuditError(f"there is no column {name!r}", file=path, row=1, mend="give item, model, truth")
    out = pd.DataFrame({"response": range(len(table)), "item": cells.item_ids(table["item"]).to_numpy(),
                        "model": table["model"].str.strip().to_numpy()})  # fmt: skip
    for name, empty in (("condition", "full"), ("kind", "all")):
        out[name] = table[name].str.strip().to_numpy() if name in table else empty
    out["sample"] = _numbers(table, "sample", path, 0).astype(int)
    out["weight"] = _numbers(table, "weight", path, 1)
    keys = dict(zip(pool.items["item"].astype(str), pool.items["key"].fillna("").astype(str))) if "key" in pool.items \
        else {}  # fmt: skip
    own = table["key"].str.strip().tolist() if "key" in table else [""] * len(table)
    out["key"] = [_word(k or keys.get(i, "")) for k, i in zip(own, out["item"].astype(str))]
    out["cluster"] = table["cluster"].str.strip().to_numpy() if "cluster" in table else out["item"].to_numpy()
    for name in ("truth", *(r for r in READINGS if r in table)):
        out[name] = [_word(v) for v in table[name]]
        bad = [i for i, v in enumerate(out[name]) if v not in (ABSTENTION, "Yes", "No") and not (
            len(v) == 1 and "A" <= v <= "Z") and (v or name == "truth")]  # fmt: skip
        if bad:
            raise AuditError(f"{name} is {table[name].iloc[bad[0]]!r}", file=path, row=bad[0] + 2,
                             mend="write the item's own letter, yes, no, or Z for none")  # fmt: skip
    again = out.duplicated(["item", "model", "condition", "sample"])
    if again.any():
        at = int(again.idxmax())
        raise AuditError(f"the reply of {out['model'][at]!r} to item {out['item'][at]!r} is read twice by people",
                         file=path, row=at + 2, mend="settle it to one reading")  # fmt: skip
    if (lost := out["key"].eq("")).any():
        raise AuditError(f"no key of item {out['item'][int(lost.idxmax())]!r} is known", file=path,
                         row=int(lost.idxmax()) + 2, mend="give a column key")  # fmt: skip
    return out


def _word(said: str) -> str:
    text = str(said).strip()
    return _WORDS.get(text.casefold(), text.upper() if len(text) == 1 else text)


def _numbers(table: pd.DataFrame, name: str, path: Path, empty: float) -> pd.Series:
    if name not in table:
        return pd.Series(empty, index=range(len(table)), dtype=float)
    out = pd.to_numeric(table[name], errors="coerce").reset_index(drop=True)
    bad = out.isna() | (out < 0 if name == "sample" else out <= 0)
    if bad.any():
        at = int(bad.idxmax())
        raise AuditError(f"{name} is {table[name].iloc[at]!r}", file=path, row=at + 2, mend="give a positive number")
    return out


def examined(
    j: Judges, ask: Ask | None = None, questions: Sequence[QuestionItem] | None = None, *, limit: int | None = None
) -> Judges:
    """The study with the readings of its extraction judge; unchanged where the params name none.

    Parameters
    ----------
    ask : sends the judge's requests, see :func:`auditlib.inference.asking.asker`. questions : the benchmark's items.
    limit : the first replies only.

    Raises
    ------
    AuditError
        The file is damaged, or holds no readings while no judge is asked.
    """
    e = j.params.extraction
    if e is None:
        return j
    truth = read_truth(e.truth, j.source)
    if limit:
        truth = truth.head(limit)
    if e.judge is None:
        if "plain" not in truth:
            raise AuditError("the judge's own readings are not there", file=e.truth,
                             mend="give them as columns plain, permuted, key_shown, again, or name "
                             "judges.extraction.judge")  # fmt: skip
        return _with(j, _saved(truth), [_read(truth, e.truth)])
    if ask is None or not questions or j.source.responses is None:
        raise AuditError(
            "judges.extraction names a judge, but not what it reads",
            file=e.truth,
            mend="give a pool with replies, and the benchmark's own table as judges.extraction.items",
        )
    table, rows = _live(truth, ask, questions, j.source.responses, e.judge.name)
    return _with(j, table, [_read(truth, e.truth), *rows])


def _read(truth: pd.DataFrame, file: Path) -> dict[str, Any]:
    return frames.coverage_row("read", n=len(truth), run=file.name, reason="replies that people read")


def _with(j: Judges, table: pd.DataFrame, rows: list[dict[str, Any]]) -> Judges:
    coverage = pd.concat([j.calls.coverage, frames.frame("coverage", rows)], ignore_index=True)
    return replace(j, extraction=table, calls=Calls(j.calls.table, coverage, j.calls.inputs))


def _saved(truth: pd.DataFrame) -> pd.DataFrame:
    parts = []
    for name in READINGS:
        if name in truth:
            variant, repeat = ("plain", 1) if name == "again" else (name, 0)
            parts.append(pd.DataFrame({"response": truth["response"], "variant": variant, "repeat": repeat,
                                       "said": truth[name]}))  # fmt: skip
    own = truth.drop(columns=[r for r in READINGS if r in truth])
    return ej.joined_readings(pd.concat(parts, ignore_index=True), own)


def _live(
    truth: pd.DataFrame, ask: Ask, questions: Sequence[QuestionItem], responses: pd.DataFrame, judge: str
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Readings of a live judge, of the replies that the pool has."""
    keys = ["item", "model", "condition", "sample"]
    pool = responses.assign(item=responses["item"].astype(str)).drop_duplicates(keys)
    both = truth.assign(item=truth["item"].astype(str)).drop(columns=[r for r in READINGS if r in truth])
    both = both.merge(pool[[*keys, "run", "status", "prediction", *(["order"] if "order" in pool else [])]], on=keys)
    rows = []
    if len(both) < len(truth):
        reason = "replies that people read and the pool does not have"
        rows.append(frames.coverage_row("excluded", n=len(truth) - len(both), model=judge, reason=reason))
    both = both.reset_index(drop=True).assign(response=range(len(both)))
    settings = JudgeSettings(judge, repeats=2)
    wanted = {r.key: r for _, _, r in ej.variant_requests(questions, both, settings)}
    replies = {r.key: r for r in ask(list(wanted.values()))}
    readings = ej.variant_readings(questions, both, settings, replies.get)
    if n := int((readings["outcome"].isin(("not run", "failed"))).sum()):
        rows.append(frames.coverage_row("not run", n=n, model=judge, reason="readings that were not made"))
    own = ["response", "item", "model", "truth", "key", "kind", "cluster", "weight"]
    return ej.joined_readings(readings, both[own]), rows


def extraction_frames(table: pd.DataFrame, seed: int) -> dict[str, pd.DataFrame]:
    """Accuracy by type of reply, leniency toward the key, and what permuting the options and showing the key change."""
    accuracy = [ej.accuracy_by_kind(table, v).assign(variant=v) for v in ej.VARIANTS if table[v].ne("").any()]
    seen = [v for v in ej.VARIANTS if table[v].ne("").any()]
    lenient = ej.leniency(table)
    changes = ej.variant_changes(table, seed=seed)
    return {
        "extraction_accuracy": pd.concat(accuracy, ignore_index=True) if accuracy else pd.DataFrame(),
        "extraction_leniency": lenient[lenient["variant"].isin(seen)].reset_index(drop=True),
        "extraction_changes": changes[changes["n"].gt(0)].reset_index(drop=True),
    }
