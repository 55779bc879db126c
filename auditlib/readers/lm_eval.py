"""lm-eval: one file of samples per model, run and task, ``MODEL/samples_<task>_<time>.jsonl``, a row per filter."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditlib.frames import coverage_row
from auditlib.readers import json_results, prompts, sample_rows
from auditlib.readers.json_runs import Judge, Log, Toolkit, Verdicts, read_json_runs, titles
from auditlib.readers.jsonl import SUFFIXES, first_row, read_jsonl
from auditlib.readers.runfile import RunFile, split_blind

if TYPE_CHECKING:
    from auditlib.frames import Runs
    from auditlib.params import DataParams

TOOLKIT = "lm-eval"
_NAME = re.compile(r"samples_(?P<task>.+?)(?:_(?P<time>\d{4}-\d\d-\d\dT[\d.:-]+))?")
_FIELDS = frozenset(
    ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash",
     "target_hash", "input", "sample_len")
)  # fmt: skip
INVALID = "[invalid]"


def scan(folder: Path) -> list[RunFile]:
    """Files of samples in a folder and below, sorted by path. ``judges``: filters and metrics, from the totals."""
    found = []
    for path in sorted(p for p in folder.rglob("samples_*") if p.name.endswith(SUFFIXES) and p.is_file()):
        match = _NAME.fullmatch(_stem(path))
        row = first_row(path) if match else None
        if match is None or row is None or not _is_ours(row, match):
            continue
        model, condition = split_blind(path.parent.name or path.resolve().parent.name)
        found.append(
            RunFile(path, model, condition, "predictions", _stem(path), match["task"], toolkit=TOOLKIT,
                    judges=_judges(path, match, row))
        )  # fmt: skip
    return found


def _is_ours(row: Mapping[str, Any], match: re.Match[str]) -> bool:
    if "doc_id" not in row or "input" in row or "token_counts" in row:
        return False
    return bool(match["time"]) or "filter" in row or "metrics" in row or isinstance(row.get("arguments"), dict)


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def _judges(path: Path, match: re.Match[str], row: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of verdicts: ``metric,filter`` in the totals beside the file, else those of the first row."""
    totals = json_results.load(_totals(path, match["time"])).get("results")
    task = totals.get(match["task"]) if isinstance(totals, dict) else None
    pairs = [tuple(k.split(",", 1))[::-1] for k in (task if isinstance(task, dict) else ()) if "," in k]
    pairs = [(f, m) for f, m in pairs if not m.endswith("_stderr")]
    if not pairs:
        pairs = [(str(row.get("filter", "")), m) for m in _metrics(row)]
    return tuple(sorted(set(titles(pairs).values())))


def _totals(path: Path, time: str | None) -> Path | None:
    return path.parent / f"results_{time}.json" if time else None


def _metrics(row: Mapping[str, Any]) -> list[str]:
    named = row.get("metrics")
    names = named if isinstance(named, list) else [k for k in row if k not in _FIELDS]
    return [m for m in names if isinstance(row.get(m), bool | int | float)]


def read_lm_eval(data: DataParams, benchmark: str, *, judge: str | None = None, exclude: Iterable[str] = ()) -> Runs:
    """Read the runs of one task.

    Replies are the raw texts; repeats are samples. Where the task compares log-likelihoods of options, the letter of
    the likeliest one is the reply (column ``chosen``). Filters and metrics are judges. Items are told apart by the
    dataset's own id where it is unique, else by ``doc_id``.

    Parameters
    ----------
    data : the ``data`` block of the params, with ``folder``.
    benchmark : name of the task.
    judge : filter or metric whose verdicts are read; needed when several differ.
    exclude : models to leave out.

    Raises
    ------
    AuditError
        No run of the task, several filters and no choice, two runs in one file, a damaged line.
    """
    kit = Toolkit(TOOLKIT, scan, read_samples, _facts, _time)
    return read_json_runs(kit, data, benchmark, judge=judge, exclude=exclude)


def read_samples(path: Path, where: Mapping[str, str]) -> Log:
    """Items, replies and verdicts of one file."""
    lines = read_jsonl(path, drop=("doc_hash", "prompt_hash", "target_hash"))
    coverage = [sample_rows.cut_row(lines.cut)] if lines.cut else []
    rows, numbers = lines.rows, lines.numbers
    replies = [sample_rows.texts(r.get("resps", r.get("filtered_resps"))) for r in rows]
    names = [str(r.get("filter", "")) for r in rows]
    filters, told = sample_rows.by_filter(rows, numbers, names, [tuple(r) for r in replies], path)
    coverage += told
    docs = _documents(rows, filters)
    if where:
        kept = {d: i for d, i in docs.items() if sample_rows.matches([_doc(rows[i])], where)}
        if len(kept) < len(docs):
            says = ", ".join(f"{c}={v}" for c, v in where.items())
            coverage.append(coverage_row("excluded", n=len(docs) - len(kept), reason=f"rows outside {says}"))
        docs = kept
    places = list(docs.values())
    likely = [prompts.likelihoods(rows[i].get("resps", rows[i].get("filtered_resps"))) for i in places]
    chosen = bool(places) and all(v is not None for v in likely)
    items = [_item(rows[i], index=chosen) for i in places]
    said = [replies[i] for i in places]
    if chosen:
        said, row = json_results.most_likely(likely)
        coverage.append(row)
    elif any(len(r) > 1 for r in said):
        n = sum(len(r) > 1 for r in said)
        reason = "several draws per item: the stored verdict is of all together and stands with the first"
        coverage.append(coverage_row("warning", n=n, reason=reason))
    return Log(
        row=[numbers[i] for i in places],
        ids=sample_rows.unique_ids([[_doc(rows[i])] for i in places]) | {"doc_id": list(docs)},
        replies=said,
        question=[q for q, _, _ in items],
        options=[o for _, o, _ in items],
        key=[k for _, _, k in items],
        facts=[prompts.facts_in([_doc(rows[i])]) for i in places],
        verdicts=_verdicts(rows, filters, list(docs), text=not chosen),
        chosen=chosen,
        coverage=coverage,
    )


def _doc(row: Mapping[str, Any]) -> Mapping[str, Any]:
    doc = row.get("doc")
    return doc if isinstance(doc, dict) else {}


def _documents(rows: list[dict[str, Any]], filters: Mapping[str, list[int]]) -> dict[str, int]:
    """Documents in order, and where the row of each stands under the filter that comes first in the alphabet."""
    first, *others = [filters[n] for n in sorted(filters)] or [[]]
    docs = {str(rows[at]["doc_id"]): at for at in first}
    for places in others:
        for at in places:
            docs.setdefault(str(rows[at]["doc_id"]), at)
    return docs


def _item(row: Mapping[str, Any], *, index: bool) -> tuple[str, list[str], str]:
    """Question, options and key."""
    doc = _doc(row)
    prompt = _prompt(row.get("arguments"))
    options = prompts.options_of(doc)
    question = prompts.question_of(doc)
    if index and not options:
        options = _continuations(row.get("arguments"))
    elif not options and prompt:
        asked, options = prompts.options_in(prompt)
        question = question or asked
    target = row.get("target")
    target = target[0] if isinstance(target, list) and len(target) == 1 else target
    return (question or prompt).strip(), options, prompts.key_of(target, doc, options, index=index)


def _calls(arguments: Any) -> list[list[Any]]:
    """Arguments of the calls of one document, in either spelling."""
    if isinstance(arguments, dict):
        calls = [v for _, v in sorted(arguments.items(), key=lambda a: (len(a[0]), a[0]))]
        return [list(c.values()) if isinstance(c, dict) else [c] for c in calls]
    return [c if isinstance(c, list) else [c] for c in arguments] if isinstance(arguments, list) else []


def _prompt(arguments: Any) -> str:
    """Text of the prompt; of messages, what the last one says."""
    calls = _calls(arguments)
    text = calls[0][0] if calls and calls[0] else ""
    text = text[0] if isinstance(text, list) and text else text
    return prompts.message_text(text) if isinstance(text, str) else ""


def _continuations(arguments: Any) -> list[str]:
    calls = _calls(arguments)
    return [str(c[1]).strip() for c in calls] if calls and all(len(c) > 1 for c in calls) else []


def _verdicts(
    rows: list[dict[str, Any]], filters: Mapping[str, list[int]], docs: list[str], *, text: bool
) -> dict[Judge, Verdicts]:
    found: dict[Judge, Verdicts] = {}
    for name, places in filters.items():
        of = {str(rows[i]["doc_id"]): rows[i] for i in places}
        for metric in sorted({m for r in of.values() for m in _metrics(r)}):
            hits = [_hit(of[d].get(metric)) if d in of else math.nan for d in docs]
            said = [_extracted(of[d]) if d in of and text else "" for d in docs]
            found[name, metric] = Verdicts(hits, said, "regex")
    return found


def _hit(value: Any) -> float:
    return float(value) if isinstance(value, bool | int | float) and math.isfinite(value) else math.nan


def _extracted(row: Mapping[str, Any]) -> str:
    said = sample_rows.texts(row.get("filtered_resps"))[0]
    return "" if said == INVALID else said


def _time(path: Path) -> str:
    match = _NAME.fullmatch(_stem(path))
    return re.sub(r"\D", "", match["time"] or "") if match else ""


def _facts(path: Path, task: str) -> dict[str, Any]:
    match = _NAME.fullmatch(_stem(path))
    time = match["time"] if match else None
    return json_results.facts(_totals(path, time), task) | ({"date": time} if time else {})
