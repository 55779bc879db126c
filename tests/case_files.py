"""Small results folders and tables that tests write and read back through the public functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

import auditlib

#: small resampling settings, so that an audit of a few items takes no time
QUICK = {"permutations": 99, "bootstrap": 200, "splits": 2}
FOUR = {"A": "red", "B": "blue", "C": "green", "D": "white"}


def read(tmp_path: Path, data: dict[str, Any], *, audit=None, benchmark="Toy", **more) -> auditlib.Pool:
    """A pool by a params file that lies in ``tmp_path``."""
    path = tmp_path / "pool.yaml"
    settings = {"pool": "toy", "benchmark": benchmark, "data": data, "audit": QUICK | (audit or {}), **more}
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return auditlib.read_pool(path)


def table_pool(tmp_path: Path, rows: list[dict], *, audit=None, columns=None, **data) -> auditlib.Pool:
    """A pool from one row per reply; A to D are four colours where the rows name no options."""
    plain = [r if "A" in r or "options" in r or ("hit" in r and "prediction" not in r) else FOUR | r for r in rows]
    pd.DataFrame(plain).to_csv(tmp_path / "runs.csv", index=False)
    return read(tmp_path, {"table": "runs.csv"} | ({"columns": columns} if columns else {}) | data, audit=audit)


def folder_pool(tmp_path: Path, *, benchmark="Toy", audit=None, judge=None, **data) -> auditlib.Pool:
    """A pool of the folder ``results``."""
    more = {"judge": judge} if judge else {}
    return read(tmp_path, {"folder": "results"} | data, audit=audit, benchmark=benchmark, **more)


def lines(path: Path, rows: list[dict]) -> Path:
    """A file of JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def lmms_lines(tmp_path: Path, model: str, rows: list[dict], *, task="toy", folder="results") -> Path:
    """A samples file of lmms-eval."""
    return lines(tmp_path / folder / model / f"20260101_000000_samples_{task}.jsonl", rows)


def lm_lines(tmp_path: Path, model: str, rows: list[dict], *, task="toy", folder="results") -> Path:
    """A samples file of the harness."""
    return lines(tmp_path / folder / model / f"samples_{task}_2026-01-01T00-00-00.000000.jsonl", rows)


def inspect_log(path: Path, samples: list[dict], *, model="mock/m", blind=False, task="toy", failed=0) -> Path:
    """A log of Inspect; ``samples`` have id, epoch, choices, target, said, value and perhaps error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made, name = [], model.rsplit("/", 1)[-1]
    for s in samples:
        said = {"content": s["said"], "source": "generate", "role": "assistant", "model": name}
        one = {"id": s["id"], "epoch": s.get("epoch", 1), "input": f"question {s['id']}", "choices": s["choices"],
               "target": s["target"], "metadata": {}, "store": {}, "events": [], "attachments": {},
               "messages": [{"content": f"question {s['id']}", "source": "input", "role": "user"}, said],
               "output": {"model": name, "choices": [{"message": said, "stop_reason": "stop"}]}}  # fmt: skip
        if "error" in s:
            one |= {"error": {"message": s["error"], "traceback": "", "traceback_ansi": ""}, "scores": {},
                    "output": {"model": name, "choices": []}}  # fmt: skip
        else:
            one["scores"] = {"choice": {"value": s["value"], "answer": s.get("answer", ""), "explanation": s["said"]}}
        made.append(one)
    scored = [s for s in samples if "error" not in s]
    right = sum(s["value"] == "C" for s in scored) / max(len(scored), 1)
    score = {"name": "choice", "scorer": "choice", "scored_samples": len(scored), "unscored_samples": 0, "params": {},
             "metrics": {"accuracy": {"name": "accuracy", "value": right, "params": {}}}}  # fmt: skip
    ids = list(dict.fromkeys(s["id"] for s in samples))
    spec = {"eval_id": "e", "run_id": "r", "created": "2026-01-01T00:00:00+00:00", "task": task, "task_id": "t",
            "task_version": 0, "task_args": {"blind": blind}, "model": model, "model_args": {}, "config": {},
            "dataset": {"name": "Toy", "samples": len(ids), "sample_ids": ids, "shuffled": False}}  # fmt: skip
    log = {"version": 2, "status": "success", "eval": spec, "plan": {"name": "plan", "steps": [], "config": {}},
           "results": {"total_samples": len(samples), "completed_samples": len(scored), "scores": [score]},
           "stats": {"started_at": "2026-01-01T00:00:00+00:00", "completed_at": "2026-01-01T00:01:00+00:00"},
           "samples": made}  # fmt: skip
    path.write_text(json.dumps(log), encoding="utf-8")
    return path


def defects(found: auditlib.Audit) -> dict[tuple[str, str], str]:
    """(item, check of the gate) -> severity."""
    rows = found.findings[found.findings["detector"] == "integrity"]
    return {(i, json.loads(e)["check"]): s for i, e, s in zip(rows["item"], rows["evidence"], rows["severity"])}


def said(pool_or_audit: Any, words: str) -> list[tuple[str, int]]:
    """(model, n) of the coverage rows whose reason has these words."""
    table = pool_or_audit.coverage
    table = table[table["reason"].astype(str).str.contains(words, regex=False)]
    return list(zip(table["model"], table["n"]))


def share(pool: auditlib.Pool, arm: str, condition: str = "full", model: int = 0) -> tuple[int, int]:
    """Hits and scored replies of one model in parts of a draw."""
    a = pool.arms[arm]
    hits = a.hits[condition][:, model]
    return int(hits.sum()), int(len(hits) if a.trials is None else a.trials[condition][:, model].sum())


def one(found: auditlib.Audit, metric: str, **where: str) -> pd.Series:
    """The only row of a metric at a place."""
    rows = found.statistic(metric, **where)
    assert len(rows) == 1, f"{len(rows)} rows of {metric} {where}"
    return rows.iloc[0]
