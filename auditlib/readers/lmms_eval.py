"""lmms-eval: one file of samples per model, run and task, ``MODEL/<time>_samples_<task>.jsonl``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditlib.frames import coverage_row
from auditlib.readers import cells, json_results, prompts, sample_rows
from auditlib.readers.json_runs import Judge, Log, Toolkit, Verdicts, read_json_runs
from auditlib.readers.jsonl import SUFFIXES, first_row, read_jsonl
from auditlib.readers.runfile import RunFile, split_blind

if TYPE_CHECKING:
    from auditlib.frames import Runs
    from auditlib.params import DataParams

TOOLKIT = "lmms-eval"
_NEW = re.compile(r"(?P<time>\d{8}_\d{6})_samples_(?P<task>.+)")
_OLD = re.compile(r"samples_(?P<task>.+?)(?:_(?P<time>\d{4,8}_\d{4,6}|\d{4}-\d\d-\d\d[-T_][\d.:-]+))?")
#: keys of a row that are no metrics
_FIELDS = frozenset(
    ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "token_counts", "doc_hash", "prompt_hash",
     "target_hash", "input", "input_media", "filter", "metrics", "submission", "reasoning")
)  # fmt: skip
_SCORES = ("score", "correct", "is_correct", "hit", "acc", "accuracy")
_SAID = ("parsed_pred", "prediction", "pred", "extracted_answer")


def scan(folder: Path) -> list[RunFile]:
    """Files of samples in a folder and below, sorted by path; only first lines are read. ``judges``: the metrics."""
    found = []
    for path in sorted(p for p in folder.rglob("*samples_*") if p.name.endswith(SUFFIXES) and p.is_file()):
        stem = _stem(path)
        match = _NEW.fullmatch(stem) or _OLD.fullmatch(stem)
        row = first_row(path) if match else None
        if match is None or row is None or "doc_id" not in row or not (_NEW.fullmatch(stem) or _is_ours(row, match)):
            continue
        model, condition = split_blind(path.parent.name or path.resolve().parent.name)
        judges = tuple(sorted(k for k, v in row.items() if k not in _FIELDS and _scores(v)))
        found.append(
            RunFile(path, model, condition, "predictions", stem, match["task"], toolkit=TOOLKIT, judges=judges)
        )
    return found


def _is_ours(row: Mapping[str, Any], match: re.Match[str]) -> bool:
    """Whether a file of the older name is lmms-eval's: lm-eval's rows name a filter, and its files an ISO time."""
    if "filter" in row or "metrics" in row or isinstance(row.get("arguments"), dict):
        return False
    return "input" in row or "token_counts" in row or "T" not in (match["time"] or "")


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def read_lmms_eval(data: DataParams, benchmark: str, *, judge: str | None = None, exclude: Iterable[str] = ()) -> Runs:
    """Read the runs of one task.

    Replies are the raw texts (``resps`` where it stands). Items are told apart by the dataset's own id where every row
    has one, else by ``doc_id``; never by ``doc_hash``. Options come from ``doc``, else from the prompt's lines.

    Parameters
    ----------
    data : the ``data`` block of the params, with ``folder``.
    benchmark : name of the task.
    judge : metric (or ``filter 1``) whose verdicts are read; needed when several differ.
    exclude : models to leave out.

    Raises
    ------
    AuditError
        No run of the task, several metrics and no choice, two runs in one file, a damaged line.
    """
    kit = Toolkit(TOOLKIT, scan, read_samples, _facts, _time)
    return read_json_runs(kit, data, benchmark, judge=judge, exclude=exclude)


def read_samples(path: Path, where: Mapping[str, str]) -> Log:
    """Items, replies and verdicts of one file."""
    lines = read_jsonl(path, drop=("arguments", "doc_hash", "prompt_hash", "target_hash", "input_media"))
    coverage = [sample_rows.cut_row(lines.cut)] if lines.cut else []
    rows, numbers = lines.rows, lines.numbers
    replies = [sample_rows.texts(_raw(r)) for r in rows]
    filters, told = sample_rows.by_filter(rows, numbers, [""] * len(rows), [tuple(r) for r in replies], path)
    coverage += told
    places = next(iter(filters.values()), [])
    sources = {i: _sources(rows[i]) for i in places}
    if where:
        keep = {str(rows[i]["doc_id"]) for i in places if sample_rows.matches(sources[i], where)}
        if len(keep) < len(places):
            says = ", ".join(f"{c}={v}" for c, v in where.items())
            coverage.append(coverage_row("excluded", n=len(places) - len(keep), reason=f"rows outside {says}"))
        filters = {f: [i for i in p if str(rows[i]["doc_id"]) in keep] for f, p in filters.items()}
        places = next(iter(filters.values()), [])
    likely = [prompts.likelihoods(_raw(rows[i])) for i in places]
    chosen = bool(places) and all(v is not None for v in likely)
    items = [_item(rows[i], index=chosen) for i in places]
    replies = [replies[i] for i in places]
    if chosen:
        replies, row = json_results.most_likely(likely)
        coverage.append(row)
    verdicts: dict[Judge, Verdicts] = {}
    for name, at in filters.items():
        for metric, found in _verdicts([rows[i] for i in at]).items():
            verdicts[name, metric] = found
    tokens, row = _tokens([rows[i] for i in places])
    coverage += row
    return Log(
        row=[numbers[i] for i in places],
        ids=sample_rows.unique_ids([sources[i] for i in places]) | {"doc_id": [str(rows[i]["doc_id"]) for i in places]},
        replies=replies,
        question=[q for q, _, _ in items],
        options=[o for _, o, _ in items],
        key=[k for _, _, k in items],
        facts=_strata([rows[i] for i in places], [sources[i] for i in places]),
        verdicts=verdicts,
        chosen=chosen,
        tokens=tokens,
        coverage=coverage,
    )


def _sources(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Mappings of a row that hold facts of its item: the dataset's row, then dictionaries of metrics."""
    held = [row["doc"]] if isinstance(row.get("doc"), dict) else []
    return held + [v for k, v in row.items() if k not in _FIELDS and type(v) is dict]


def _raw(row: Mapping[str, Any]) -> Any:
    """Raw replies; they are left out of a row where the filtered ones are equal."""
    return row["resps"] if row.get("resps") is not None else row.get("filtered_resps")


def _item(row: Mapping[str, Any], *, index: bool) -> tuple[str, list[str], str]:
    """Question, options and key."""
    doc = row["doc"] if isinstance(row.get("doc"), dict) else {}
    prompt = row.get("input")
    prompt = prompt if isinstance(prompt, str) else ""
    options = prompts.options_of(doc) if doc else []
    question = prompts.question_of(doc) if doc else ""
    if not options and prompt:
        asked, options = prompts.options_in(prompt)
        question = question or asked
    target = row.get("target")
    target = target[0] if isinstance(target, list) and len(target) == 1 else target
    key = prompts.key_of(target, doc, options, index=index) if doc or index else cells.cell_text(target).strip()
    if not doc and options and len(key) > 1 and key not in options and cells.key_text(key) == key:
        # an open item whose prompt only looks like a list of options
        return prompt.strip(), [], key
    return (question or prompt).strip(), options, key


def _scores(value: Any) -> bool:
    if isinstance(value, dict):
        return any(isinstance(value.get(s), bool | int | float) for s in _SCORES) or _recomputable(value)
    return isinstance(value, bool | int | float)


def _recomputable(value: Mapping[str, Any]) -> bool:
    return "parsed_pred" in value and "answer" in value


def _verdicts(rows: list[dict[str, Any]]) -> dict[str, Verdicts]:
    """Verdicts by metric, of those that stand on every row."""
    names = [n for n in rows[0] if n not in _FIELDS] if rows else []
    names = [n for n in names if all(n in r for r in rows)]
    found = {}
    filtered = [sample_rows.texts(r.get("filtered_resps"))[0] if "resps" in r else "" for r in rows]
    for name in sorted(names):
        values = [r[name] for r in rows]
        if not any(_scores(v) for v in values):
            continue
        recompute = all(type(v) is dict and _recomputable(v) and not _stored(v) for v in values)
        source = "recomputed" if recompute else "regex" if name.startswith("exact_match") else "unknown"
        said = [_said(v) for v in values] if type(values[0]) is dict else None
        if set(map(type, values)) == {float} and all(map(math.isfinite, values)):
            hits = values
        else:
            hits = [_agrees(v) if recompute else _hit(v) for v in values]
        found[name] = Verdicts(hits, said or filtered, source)
    return found


def _stored(value: Mapping[str, Any]) -> bool:
    return any(isinstance(value.get(s), bool | int | float) for s in _SCORES)


def _hit(value: Any) -> float:
    if type(value) is dict:
        value = next((value[s] for s in _SCORES if isinstance(value.get(s), bool | int | float)), None)
    return float(value) if isinstance(value, bool | int | float) and math.isfinite(value) else math.nan


def _said(value: Any) -> str:
    if type(value) is not dict:
        return ""
    found = next((value[s] for s in _SAID if value.get(s) is not None), "")
    return found if isinstance(found, str) else sample_rows.texts(found)[0] if isinstance(found, list) else str(found)


def _agrees(value: Mapping[str, Any]) -> float:
    """Whether a parsed answer is an accepted one; both may be lists."""
    said, accepted = value["parsed_pred"], value["answer"]
    said = said if isinstance(said, list) else [said]
    accepted = accepted if isinstance(accepted, list) else [accepted]
    wanted = {cells.cell_text(a).strip().lower() for a in accepted}
    return float(any(cells.cell_text(s).strip().lower() in wanted for s in said))


def _strata(rows: list[dict[str, Any]], sources: list[list[Mapping[str, Any]]]) -> list[dict[str, str]]:
    """Facts of the items; a metric that only some rows have names a category, and a lone finer level is the stratum."""
    everywhere = set(rows[0]) if rows else set()
    for r in rows:
        everywhere &= r.keys()
    out = []
    for r, held in zip(rows, sources):
        facts = prompts.facts_in(held)
        if "stratum" not in facts and len(r) > len(everywhere):
            own = [k for k, v in r.items() if k not in everywhere and k not in _FIELDS and type(v) is dict]
            facts |= {"stratum": own[0]} if len(own) == 1 else {}
        if "stratum" not in facts and "substratum" not in facts:
            value = next((h["subdomain"] for h in held if h.get("subdomain")), None)
            facts |= {"stratum": str(value)} if value is not None else {}
        out.append(facts)
    if not any("stratum" in f for f in out):
        for f in out:
            if "substratum" in f:
                f["stratum"] = f.pop("substratum")
    return out


def _tokens(rows: list[dict[str, Any]]) -> tuple[list[tuple[int, int] | None], list[dict[str, Any]]]:
    """Tokens sent and received, and how many replies come from a cache: those without a count."""
    counts = [r.get("token_counts") for r in rows]
    first = [c[0] if isinstance(c, list) and c else c for c in counts]
    cached = sum(isinstance(c, list) and bool(c) and c[0] is None for c in counts)
    told = []
    if cached:
        reason = f"{cached} replies come from a cache, which ignores pictures"
        told = [coverage_row("warning", n=cached, reason=reason)]
    if not any(isinstance(f, dict) for f in first):
        return [], told
    return [
        (_whole(f.get("input_tokens")), _whole(f.get("output_tokens"))) if isinstance(f, dict) else None for f in first
    ], told


def _whole(value: Any) -> int:
    """A count of tokens; 0 where the file has none, or no finite number."""
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else 0


def _time(path: Path) -> str:
    match = _NEW.fullmatch(_stem(path)) or _OLD.fullmatch(_stem(path))
    return re.sub(r"\D", "", match["time"] or "") if match else ""


def _facts(path: Path, task: str) -> dict[str, Any]:
    match = _NEW.fullmatch(_stem(path)) or _OLD.fullmatch(_stem(path))
    time = match["time"] if match else None
    beside = path.parent / f"{time}_results.json" if time else None
    return json_results.facts(beside, task) | ({"date": time} if time else {})
