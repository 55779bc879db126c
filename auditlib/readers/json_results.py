"""Totals beside a file of samples: small facts of a run; and the reply where only likelihoods are stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from auditlib.frames import coverage_row, option_name

_GENERATION = ("temperature", "top_p", "do_sample", "max_new_tokens", "max_gen_toks", "num_beams", "seed")


def load(path: Path | None) -> dict[str, Any]:
    """A file of totals; empty where it is absent or damaged."""
    if path is None or not path.is_file():
        return {}
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def facts(path: Path | None, task: str) -> dict[str, Any]:
    """Version, limit, numbers of samples and generation parameters; never a model's arguments or a command line."""
    told = load(path)
    out: dict[str, Any] = {"task": task}
    for name in ("lmms_eval_version", "lm_eval_version"):
        if isinstance(told.get(name), str):
            out["version"] = told[name]
    if isinstance(told.get("git_hash"), str):
        out["commit"] = told["git_hash"]
    config = told.get("config")
    limit = config.get("limit") if isinstance(config, dict) else None
    if isinstance(limit, int | float):
        out["limit"] = limit
    counted = _under(told, "n-samples", task)
    if isinstance(counted.get("effective"), int):
        out["samples"] = counted["effective"]
    given = _under(told, "configs", task).get("generation_kwargs")
    if isinstance(given, dict):
        out |= {n: given[n] for n in _GENERATION if isinstance(given.get(n), bool | int | float)}
    return out


def _under(told: dict[str, Any], name: str, task: str) -> dict[str, Any]:
    table = told.get(name)
    value = table.get(task) if isinstance(table, dict) else None
    return value if isinstance(value, dict) else {}


def most_likely(options: list[list[float]]) -> tuple[list[list[str]], dict[str, Any]]:
    """The letter of each row's option with the highest log-likelihood as its reply, and a coverage row.

    Equal ones give the first, and are counted.
    """
    letters = [[option_name(values.index(max(values)))] for values in options]
    ties = sum(values.count(max(values)) > 1 for values in options)
    reason = (
        "log-likelihood multiple choice: the option with the highest log-likelihood is the reply "
        "(no text was generated)"
    )
    if ties:
        reason += f"; the first one in {ties} rows with a tie"
    return letters, coverage_row("condition", n=len(options), reason=reason)
