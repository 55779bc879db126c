"""What a run's ``status.json`` tells: when, by which judge, copied from where. Never its arguments, which hold keys."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from auditlib.readers.layout import RUN_FOLDER

#: the facts that are passed on
_RUN = ("eval_id", "created_at", "updated_at", "commit", "mode", "reuse", "pred_format")
_DATASET = ("status", "judge_model", "source_run", "skip_reason")
_LONGEST = 120
_SECRET = re.compile(
    r"(?i)\b((?:api[ _-]?key|key|token|secret|password|authorization)\b(?:\s+provided)?\s*[:=]\s*(?:bearer\s+)?)\S+"
)
_BEARER = re.compile(r"(?i)\b(bearer\s+)\S+")
_LONG_WORD = re.compile(r"\b(?:sk|hf|gsk|AIza)[-_]?[\w*-]{8,}")
_FOLDERS = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.@+ -]+)*[\\/](?=[\w.@+-]+)")


@dataclass(frozen=True)
class Status:
    """Facts on one benchmark in one folder of runs; ``when`` sorts runs, empty where nothing tells it."""

    when: str
    facts: dict[str, Any]

    @property
    def error(self) -> str:
        return str(self.facts.get("error_message") or "")

    @property
    def source_run(self) -> str:
        return str(self.facts.get("source_run") or "")

    def seconds(self) -> float | None:
        """How long a run took that put the questions itself; None where it did not or where that is not known."""
        if self.facts.get("mode") not in ("all", "infer") or self.facts.get("reuse") or self.source_run:
            return None
        try:
            begin = datetime.fromisoformat(str(self.facts["created_at"]))
            return (datetime.fromisoformat(str(self.facts["updated_at"])) - begin).total_seconds()
        except (KeyError, ValueError, TypeError):
            return None


def read_status(place: Path, benchmark: str) -> Status:
    """Facts on a benchmark's run from the ``status.json`` beside its files; none of them where there is no such file.

    A folder's name tells the time of its run better than the file does: without ``status.json``, or where a later
    evaluation rewrote it.
    """
    when = re.sub(r"\D", "", place.name.partition("_")[0]) if RUN_FOLDER.match(place.name) else ""
    try:
        status = json.loads((place / "status.json").read_text(encoding="utf-8"))
        own = status.get("datasets", {}).get(benchmark, {})
    except (OSError, ValueError, AttributeError, RecursionError):
        return Status(when, {})
    if not isinstance(own, dict) or not own:
        return Status(when, {})
    facts = {k: _short(status[k]) for k in _RUN if status.get(k) not in (None, "")}
    facts |= {k: _short(own[k]) for k in _DATASET if own.get(k) not in (None, "")}
    if own.get("updated_at"):
        facts["updated_at"] = _short(own["updated_at"])
    if own.get("error_message"):
        facts["error_message"] = plain_error(str(own["error_message"]), status.get("argv"))
    when = when or re.sub(r"\D", "", str(facts.get("created_at", ""))[:19])
    return Status(when, facts)


def plain_error(text: str, argv: Any = ()) -> str:
    """An error message in one short line, without keys and without folders of the machine it came from.

    Examples
    --------
    >>> plain_error("Incorrect API key provided: sk-abcdefgh1234 in /runs/me/run.py")
    'Incorrect API key provided: ... in run.py'
    """
    line = next((t.strip() for t in text.splitlines() if t.strip()), "")
    for word in argv if isinstance(argv, list) else ():
        value = str(word).rpartition("=")[2]
        if len(value) > 5 and not value.startswith("-") and re.search(r"\d", value):
            line = line.replace(value, "...")
    line = _BEARER.sub(r"\1...", _SECRET.sub(r"\1...", line))
    line = _FOLDERS.sub("", _LONG_WORD.sub("...", line))
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def _short(value: Any) -> Any:
    return value if isinstance(value, bool | int | float) else str(value)[:_LONGEST]
