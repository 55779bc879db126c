"""A pool's replies in the format of Every Eval Ever: instance files, and the totals beside them."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib import __version__
from auditlib.errors import AuditError
from auditlib.frames import ABSTENTION
from auditlib.paths import atomic
from auditlib.pool import Pool
from auditlib.readers.cells import cell_text
from auditlib.readers.every_eval_ever_records import ITEM_FACTS

SCHEMA = "0.2.2"
_CELL = ["item", "model", "condition", "sample"]
_REPLY_FACTS = ("status", "finish", "order", "level", "variant", "prompt_mode", "abstained")


def write_instances(pool: Pool, folder: str | Path, *, created: float | None = None) -> list[Path]:
    """Write every reply of a pool, failed ones too, as instance files that other tools and this one can read.

    Each model and condition gives ``BENCHMARK/DEVELOPER/MODEL/CONDITION_samples.jsonl`` and, beside it,
    ``CONDITION.json`` with the totals. The score is the judge's where there is a verdict, else that of the letter;
    ``metadata.scored_by`` says which. A reply without an answer has an empty ``extracted_value``.

    Parameters
    ----------
    pool : a pool with responses.
    folder : folder to write into; files of the same name are replaced.
    created : seconds since 1970 of the record; now when not given. The bytes repeat for equal pools and times.

    Returns
    -------
    list of Path
        The files written, totals after their instances.

    Raises
    ------
    AuditError
        The pool holds no replies.

    Examples
    --------
    >>> write_instances(auditlib.read_pool("params/tinysee.yaml"), "exchange")  # doctest: +SKIP
    """
    if pool.responses is None or not len(pool.responses):
        raise AuditError(
            f"pool {pool.name!r} holds no replies to write", mend="read the pool from files with predictions"
        )
    stamp = f"{time.time() if created is None else created:.0f}"
    replies = _scored(pool)
    items = {i["item"]: i for i in pool.items.to_dict("records")}
    place = {item: n for n, item in enumerate(items)}
    written: list[Path] = []
    taken: set[Path] = set()
    for (model, condition), part in replies.groupby(["model", "condition"], sort=True):
        developer, _, short = str(model).rpartition("/")
        home = Path(folder) / _name(pool.benchmark) / _name(developer or "unknown") / _name(short)
        if home / str(condition) in taken:  # two models whose names differ in signs that no file name keeps
            home = home.with_name(f"{home.name}-{hashlib.sha256(str(model).encode()).hexdigest()[:8]}")
        taken.add(home / str(condition))
        rows = part.assign(_place=part["item"].map(place)).sort_values(["_place", "sample"], kind="stable")
        head = {
            "schema_version": f"instance_level_eval_{SCHEMA}",
            "evaluation_id": f"{pool.benchmark}/{model}/{condition}/{stamp}",
            "model_id": str(model),
            "evaluation_name": pool.benchmark,
        }
        records = [_record(head, r, items[r["item"]]) for r in rows.to_dict("records") if r["item"] in items]
        instances = home / f"{condition}_samples.jsonl"
        lines = b"".join(_json(r) + b"\n" for r in records)
        totals = _totals(pool, head, records, stamp, instances.name, hashlib.sha256(lines).hexdigest())
        for path, text in ((instances, lines), (home / f"{condition}.json", _json(totals, indent=2) + b"\n")):
            with atomic(path) as temporary:
                temporary.write_bytes(text)
            written.append(path)
    return written


def _name(text: str) -> str:
    """A name that any file system keeps."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip(".") or "_"


def _json(value: Any, indent: int | None = None) -> bytes:
    # half of a surrogate pair has no UTF-8; its escaped form is good JSON
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    return text.encode("utf-8", errors="backslashreplace")


def _scored(pool: Pool) -> pd.DataFrame:
    """Replies with the verdict of the judge, where there is one."""
    assert pool.responses is not None
    replies = pool.responses.reset_index(drop=True)
    if "sample" not in replies:
        replies = replies.assign(sample=0)
    verdicts = pool.judgements
    if verdicts is None or not len(verdicts):
        return replies.assign(judge=None)
    if "level" in verdicts:
        verdicts = verdicts[verdicts["level"] != "circular"]
    if "sample" not in verdicts:
        verdicts = verdicts.assign(sample=0)
    have = [c for c in ("judge", "hit", "extracted", "source") if c in verdicts]
    verdicts = verdicts.drop_duplicates(_CELL)[[*_CELL, *have]].rename(columns={"source": "verdict_source"})
    return replies.drop(columns=[c for c in (*have, "verdict_source") if c in replies]).merge(
        verdicts.assign(judged=True), on=_CELL, how="left"
    )


def _told(value: Any) -> str:
    """A cell as text, nothing where it is missing."""
    return "" if not isinstance(value, list | tuple | dict) and pd.isna(value) else cell_text(value)


def _answers(item: dict[str, Any]) -> list[str]:
    accepted = item.get("references")
    if isinstance(accepted, list | tuple) and len(accepted):
        return [str(a) for a in accepted]
    key = _told(item.get("key"))
    return [key] if key else []


def _read_answer(reply: dict[str, Any]) -> str:
    letter = _told(reply.get("letter"))
    return (letter if letter != ABSTENTION else "") or _told(reply.get("answer"))


def _record(head: dict[str, str], reply: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    question, accepted = _told(item.get("question")), _answers(item)
    options = item.get("options")
    said = _read_answer(reply) if _told(reply.get("status")) in ("ok", "") else ""
    by, score = _score(reply, said, accepted)
    facts = {c: _told(item.get(c)) for c in (*ITEM_FACTS, "answer_type", "k")}
    facts |= {c: _told(reply.get(c)) for c in _REPLY_FACTS}
    if reply.get("judged") is True:
        facts |= {"judge": _told(reply.get("judge")) or "judge", "verdict_source": _told(reply.get("verdict_source"))}
    metadata = {c: v for c, v in facts.items() if v}
    metadata |= {"condition": str(reply["condition"]), "sample": str(int(reply["sample"])), "scored_by": by}
    record: dict[str, Any] = head | {
        "sample_id": str(reply["item"]),
        "sample_hash": hashlib.sha256(
            "".join([question, *accepted]).encode("utf-8", errors="backslashreplace")
        ).hexdigest(),
        "interaction_type": "single_turn",
        "input": {"raw": question, "reference": accepted},
        "output": {"raw": [_told(reply.get("prediction"))]},
        "answer_attribution": list(_attributions(reply, said, by)),
        "evaluation": {"score": score, "is_correct": score == 1.0},
        "metadata": metadata,
    }
    if isinstance(options, list | tuple) and len(options):
        record["input"]["choices"] = [str(o) for o in options]
    if _told(reply.get("status")) == "failed":
        record["error"] = "the call failed"
    tokens = [reply.get("tokens_in"), reply.get("tokens_out")]
    if not any(t is None or pd.isna(t) for t in tokens):
        used, made = (int(t) for t in tokens)
        record["token_usage"] = {"input_tokens": used, "output_tokens": made, "total_tokens": used + made}
    return record


def _score(reply: dict[str, Any], said: str, accepted: list[str]) -> tuple[str, float]:
    """Who scores a reply (``judge``, ``exact`` or ``nothing``) and the score."""
    hit = reply.get("hit")
    if reply.get("judged") is True:
        return ("nothing", 0.0) if hit is None or pd.isna(hit) else ("judge", float(hit))
    if _told(reply.get("status")) not in ("ok", "") or not accepted or not _told(reply.get("letter")):
        return "nothing", 0.0
    return "exact", float(said.lower() == accepted[0].lower())


def _attributions(reply: dict[str, Any], said: str, by: str) -> Iterator[dict[str, Any]]:
    judged = _told(reply.get("extracted")) if reply.get("judged") is True else ""
    entry = {"turn_idx": 0, "source": "output.raw"}
    method = _told(reply.get("rule")) or "none"
    yield entry | {"extracted_value": said, "extraction_method": method, "is_terminal": not judged}
    if judged:
        method = f"judge:{_told(reply.get('judge'))}"
        yield entry | {"extracted_value": judged, "extraction_method": method, "is_terminal": True}


def _totals(pool: Pool, head: dict[str, str], records: list[dict[str, Any]], stamp: str, file: str, checksum: str
            ) -> dict[str, Any]:  # fmt: skip
    scores = [r["evaluation"]["score"] for r in records if r["metadata"]["scored_by"] != "nothing"]
    binary = set(scores) <= {0.0, 1.0}
    metric: dict[str, Any] = {"lower_is_better": False, "score_type": "binary" if binary else "continuous"}
    metric |= {} if binary else {"min_score": 0.0, "max_score": 1.0}
    result = {
        "evaluation_name": pool.benchmark,
        "source_data": {"dataset_name": pool.benchmark, "source_type": "other"},
        "metric_config": metric,
        "score_details": {
            "score": sum(scores) / len(scores) if scores else 0.0,
            "details": {"replies": str(len(records)), "scored": str(len(scores))},
        },
    }
    model = head["model_id"]
    return {
        "schema_version": SCHEMA,
        "evaluation_id": head["evaluation_id"],
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
            "additional_details": {"written_by": f"auditlib {__version__}"},
        },
        "model_info": {"name": model.rpartition("/")[2], "id": model},
        "eval_library": {
            "name": str(pool.provenance.get("toolkit") or "unknown"),
            "version": str(pool.provenance.get("toolkit_version") or "unknown"),
        },
        "evaluation_results": [result] if scores else [],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": file,
            "hash_algorithm": "sha256",
            "checksum": checksum,
            "total_rows": len(records),
        },
    }
