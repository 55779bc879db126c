"""Answers out of the store: frames for the audit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib import frames
from auditlib.calls import Reply, Request
from auditlib.errors import AuditError
from auditlib.extract import extract_frame
from auditlib.frames import coverage_row
from auditlib.inference.items import QuestionItem, items_table
from auditlib.inference.store import Store
from auditlib.paths import atomic
from auditlib.readers import cells
from auditlib.readers.own_runs import FORMAT, ITEMS, JUDGEMENTS, PROVENANCE, RESPONSES
from auditlib.readers.vlmevalkit_status import plain_error

#: outcome of a call -> status of a response; a truncated one is ``ok`` where something can be read from it
STATUS = {"ok": "ok", "empty": "missing", "truncated": "truncated", "filtered": "filtered", "refused_request": "failed",
          "failed": "failed"}  # fmt: skip
_READABLE = ("letters", "boxed", "option_text")


@dataclass(frozen=True)
class Collected:
    """Answers to a plan.

    Attributes
    ----------
    responses : responses contract; beyond it ``reasoning``, ``letter_logprobs`` (JSON), ``prompt_version``,
        ``text_sha256``, ``outcome``, ``latency``.
    coverage : what was not asked or failed, and how often.
    provenance : what is known of each run, by its label.
    """

    responses: pd.DataFrame
    coverage: list[dict[str, Any]]
    provenance: dict[str, dict[str, Any]]


def run_label(request: Request) -> str:
    """Name of a run: model, condition, and the prompt mode where it is not silent."""
    mode = "" if request.prompt_mode == "silent" else f"/{request.prompt_mode}"
    return f"{request.model}/{request.condition}{mode}"


def collect(store: Store, items: Sequence[QuestionItem], requests: Iterable[Request]) -> Collected:
    """Look up the answers to a plan.

    Parameters
    ----------
    store : the answers; those to other plans are not looked at.
    items : the questions.
    requests : all that the plan asks, of all models; gone through once, nothing is sent.

    Raises
    ------
    AuditError
        The plan asks one thing twice: the same item, model, condition, mode and sample in two ways.
    """
    failed = {f["key"]: f["error"] for f in store.failures()}
    rows: list[dict[str, Any]] = []
    facts: dict[str, dict[str, Any]] = {}
    outcomes: dict[str, Counter[str]] = {}
    errors: dict[str, dict[str, Counter[str]]] = {}
    asked: set[tuple[str, str, int]] = set()
    for request in requests:
        label = run_label(request)
        if (request.item, label, request.sample) in asked:
            what = f"item {request.item!r} is asked twice in the run {label}, sample {request.sample}"
            raise AuditError(what, mend="ask one layout and one generation setting at a time, or name the models apart")
        asked.add((request.item, label, request.sample))
        count = outcomes.setdefault(label, Counter())
        reply = store.get(request.key)
        if reply is None and request.key in failed:
            reply = Reply(request.key, "failed", error=failed[request.key])
        if reply is None:
            count["not asked"] += 1
            continue
        count[reply.outcome] += 1
        if reply.error:
            said = errors.setdefault(label, {}).setdefault(reply.outcome, Counter())
            said[plain_error(reply.error)] += 1
        _note(facts.setdefault(label, _facts(request)), reply)
        rows.append(_row(request, reply, label, len(rows) + 1))
    responses = _readable(frames.frame("responses", rows), items_table(items)) if rows else frames.frame("responses")
    if rows:
        responses["refused"] = cells.refused(responses["prediction"])
    coverage = [row for label, count in outcomes.items() for row in _coverage(label, count, errors.get(label, {}))]
    for label, fact in facts.items():
        fact["outcomes"] = dict(sorted(outcomes[label].items()))
        fact |= {n: sorted(fact[n]) for n in ("server_model", "fingerprint")}
    return Collected(responses, coverage, facts)


def _row(request: Request, reply: Reply, label: str, row: int) -> dict[str, Any]:
    logprobs = reply.letter_logprobs
    return {
        "run": label,
        "row": row,
        "item": request.item,
        "model": request.model,
        "condition": request.condition,
        "prompt_mode": request.prompt_mode,
        "sample": request.sample,
        "prediction": reply.text,
        "status": STATUS[reply.outcome],
        "refused": False,
        "finish": reply.finish,
        "tokens_in": reply.tokens_in,
        "tokens_out": reply.tokens_out,
        "outcome": reply.outcome,
        "reasoning": reply.reasoning,
        "letter_logprobs": None if logprobs is None else json.dumps(logprobs, sort_keys=True),
        "prompt_version": request.prompt_version,
        "text_sha256": request.text_sha256,
        "latency": reply.latency,
    }


def _readable(responses: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Truncated replies from which an answer can be read count as replies; ``finish`` still tells."""
    responses = responses.astype({"tokens_in": "Int64", "tokens_out": "Int64"})
    cut = responses["status"].eq("truncated") & responses["prediction"].str.strip().ne("")
    if cut.any():
        read = extract_frame(responses[cut].assign(status="ok"), items, _READABLE)
        found = read["letter"].ne(frames.ABSTENTION) & read["letter"].notna()
        found |= read["answer"].notna() & read["answer"].ne(frames.ABSTENTION)
        responses.loc[found.index[found], "status"] = "ok"
    return responses


def _facts(request: Request) -> dict[str, Any]:
    return {
        "model": request.model,
        "condition": request.condition,
        "prompt_mode": request.prompt_mode,
        "prompt_version": request.prompt_version,
        "system": request.system,
        "generation": asdict(request.generation),
        "server_model": set(),
        "fingerprint": set(),
        "tokens_in": 0,
        "tokens_out": 0,
        "first": None,
        "last": None,
    }


def _note(fact: dict[str, Any], reply: Reply) -> None:
    for name in ("server_model", "fingerprint"):
        if value := getattr(reply, name):
            fact[name].add(value)
    fact["tokens_in"] += reply.tokens_in or 0
    fact["tokens_out"] += reply.tokens_out or 0
    if reply.created:
        fact["first"] = min(fact["first"] or reply.created, reply.created)
        fact["last"] = max(fact["last"] or reply.created, reply.created)


def _coverage(label: str, count: Counter[str], errors: dict[str, Counter[str]]) -> list[dict[str, Any]]:
    model, condition = label.removesuffix("/told_to_guess").rsplit("/", 1)
    said = {
        "not asked": ("not run", "questions that were not asked yet; run again to ask them"),
        "failed": ("warning", "calls that failed; run again to ask them"),
        "refused_request": ("warning", "calls that the server refuses"),
        "filtered": ("warning", "calls stopped by a content filter"),
        "empty": ("warning", "empty replies"),
        "truncated": ("warning", "replies that the length limit ended; raise max_tokens"),
    }
    rows = [
        coverage_row("read", n=sum(count.values()) - count["not asked"], run=label, model=model, condition=condition)
    ]
    for outcome, (what, reason) in said.items():
        if count[outcome]:
            if outcome in errors:
                reason += f" (most often: {errors[outcome].most_common(1)[0][0]})"
            rows.append(
                coverage_row(what, n=count[outcome], reason=reason, run=label, model=model, condition=condition)
            )
    return rows


def write_runs(
    collected: Collected,
    items: Sequence[QuestionItem],
    folder: str | Path,
    benchmark: str,
    *,
    judgements: pd.DataFrame | None = None,
    coverage: Iterable[dict[str, Any]] = (),
) -> list[Path]:
    """Write answers where :func:`~auditlib.readers.own_runs.read_own` reads them.

    Parameters
    ----------
    collected : answers by :func:`collect`.
    items : the questions.
    folder : ``runs`` below the pool's outputs; files of an earlier call are replaced.
    benchmark : its name.
    judgements : verdicts of a judge, see :mod:`auditlib.inference.judge`.
    coverage : rows to add, such as those of :func:`~auditlib.inference.plan.plan_coverage`.

    Returns
    -------
    list of Path
        ``responses.parquet``, ``items.parquet``, ``runs.json`` and, with verdicts, ``judgements.parquet``.
    """
    folder = Path(folder)
    tables = {RESPONSES: collected.responses, ITEMS: items_table(items)}
    if judgements is not None and len(judgements):
        tables[JUDGEMENTS] = judgements
    else:
        (folder / JUDGEMENTS).unlink(missing_ok=True)
    for name, table in tables.items():
        with atomic(folder / name) as temporary:
            table.to_parquet(temporary, index=False)
    facts = {
        "format": FORMAT,
        "benchmark": benchmark,
        "runs": collected.provenance,
        "coverage": [*collected.coverage, *coverage],
    }
    with atomic(folder / PROVENANCE) as temporary:
        text = json.dumps(facts, indent=1, sort_keys=True, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf-8")
    return [folder / name for name in (*tables, PROVENANCE)]
