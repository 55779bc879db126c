"""Samples of an Inspect log as replies: texts, targets, options, and what a stored score means."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from auditlib.frames import coverage_row
from auditlib.readers import cells
from auditlib.readers.replies import Reply, Verdict, facts_of

_WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_LETTER_SCORERS = ("choice", "match", "pattern", "exact", "includes", "answer", "math")
_ATTACHED = "attachment://"
_GENERATION = ("temperature", "top_p", "max_tokens", "seed", "reasoning_effort")


def to_hit(value: Any) -> float:
    """A stored score value as a number: C 1, P 0.5, I and N 0, yes and true 1; NaN where it is none of these.

    Examples
    --------
    >>> to_hit("C"), to_hit("P"), to_hit(True), to_hit("0.25"), to_hit(None), to_hit("maybe")
    (1.0, 0.5, 1.0, 0.25, nan, nan)
    """
    if isinstance(value, str):
        if value in _WORDS:
            return _WORDS[value]
        word = value.strip()
        try:
            return _WORDS.get(word.lower(), math.nan) if word.isalpha() else _finite(float(word))
        except ValueError:
            return math.nan
    return _finite(float(value)) if isinstance(value, bool | int | float) else math.nan


def _finite(number: float) -> float:
    return number if math.isfinite(number) else math.nan


def source_of(scorer: str) -> str:
    """Who decides for a scorer, as far as its name tells: a rule, a model, or unknown."""
    name = scorer.rsplit("/", 1)[-1]
    return "regex" if name in _LETTER_SCORERS else "llm" if name.startswith("model_graded") else "unknown"


def verdicts_of(scores: Mapping[str, Any] | None, scorers: Mapping[str, str]) -> dict[str, Verdict]:
    """Verdicts by judge; a score that is a mapping gives one per key, ``scorer/key``."""
    found = {}
    for name, score in (scores or {}).items():
        source = source_of(scorers.get(name, name))
        said = (score.answer or "").strip()
        if isinstance(score.value, Mapping):
            found |= {f"{name}/{k}": Verdict(to_hit(v), said, source) for k, v in score.value.items()}
        else:
            found[name] = Verdict(to_hit(score.value), said, source)
    return found


def replies_of(
    samples: list[Any], *, note: Mapping[str, str], scorers: Mapping[str, str], shuffles: bool, where: Mapping[str, str]
) -> tuple[list[Reply], list[dict[str, Any]]]:
    """Replies of one log, and coverage rows on what is odd.

    Parameters
    ----------
    samples : the log's samples.
    note : run, model and condition.
    scorers : score name -> registered name of the scorer.
    shuffles : whether the log says that options are shuffled.
    where : fact of the sample -> value that is asked for.
    """
    replies, unknown, counts = [], Counter(), Counter()
    for row, s in enumerate(samples, start=1):
        told = {str(k): cells.cell_text(v).strip() for k, v in (s.metadata or {}).items()}
        if any(told.get(c) != v for c, v in where.items()):
            counts["where"] += 1
            continue
        if s.invalidation is not None:
            counts["invalidated"] += 1
            continue
        verdicts = verdicts_of(s.scores, scorers)
        unknown.update(name for name, v in verdicts.items() if math.isnan(v.hit))
        counts["unscored"] += not verdicts and s.error is None
        counts["retried"] += bool(s.error_retries)
        pictures = _pictures(s.input)
        counts["messages"] += pictures is not None
        counts["pictures"] += bool(pictures)
        replies.append(_reply(s, row, verdicts, note, shuffles))
    rows = [
        coverage_row("warning", n=n, reason=f"values of {name!r} mean neither right nor wrong: no verdict", **note)
        for name, n in sorted(unknown.items())
    ]
    says = ", ".join(f"{c}={v}" for c, v in where.items())
    for what, kind, reason in (
        ("where", "excluded", f"samples outside {says}"),
        ("invalidated", "excluded", "samples marked as invalid in the log"),
        ("unscored", "warning", "samples that no scorer has judged"),
        ("retried", "warning", "samples that were run again after an error"),
    ):
        if counts[what]:
            rows.append(coverage_row(kind, n=counts[what], reason=reason, **note))
    if note["condition"] == "blind" and counts["pictures"]:
        reason = "inputs hold an image although the run counts as one without"
        rows.append(coverage_row("warning", n=counts["pictures"], reason=reason, **note))
    if note["condition"] == "full" and replies and not counts["pictures"]:
        reason = "no input holds an image although the run counts as one with"
        rows.append(coverage_row("warning", n=len(replies), reason=reason, **note))
    return replies, rows


def _reply(s: Any, row: int, verdicts: dict[str, Verdict], note: Mapping[str, str], shuffles: bool) -> Reply:
    failed = s.error is not None
    ending = s.output.choices[0].stop_reason if s.output.choices else ""
    finish = "error" if failed else s.limit.type + " limit" if s.limit is not None else ending or ""
    usage = s.output.usage
    targets = [s.target] if isinstance(s.target, str) else list(s.target)
    return Reply(
        **note,
        row=row,
        item=str(s.id),
        sample=s.epoch - 1,
        prediction="" if failed else _whole(s.output.completion, s),
        question=_whole(_text(s.input), s).strip(),
        options=tuple(str(c).strip() for c in s.choices or ()),
        target=tuple(_whole(str(t), s) for t in targets),
        facts=facts_of(s.metadata),
        verdicts=verdicts,
        status="failed" if failed else "filtered" if finish == "content_filter" else "",
        finish=finish,
        shuffles=shuffles,
        tokens_in=usage.input_tokens if usage else None,
        tokens_out=usage.output_tokens if usage else None,
    )


def _whole(text: str, s: Any) -> str:
    """A text, or the attachment that a long one was moved to."""
    if not text.startswith(_ATTACHED):
        return text
    return (s.attachments or {}).get(text.removeprefix(_ATTACHED), text)


def _text(given: Any) -> str:
    """The question: a text as it is, else the text of the last message of the user."""
    if isinstance(given, str):
        return given
    asked = [m for m in given if m.role == "user"] or list(given)
    return asked[-1].text if asked else ""


def _pictures(given: Any) -> int | None:
    """How many images the input holds; None for a plain text."""
    if isinstance(given, str):
        return None
    return sum(not isinstance(m.content, str) and any(c.type == "image" for c in m.content) for m in given)


def denominators(log: Any, replies: list[Reply]) -> str:
    """What the log counts beside what is read here: errored samples leave its denominators without a word."""
    judged = sum(bool(r.verdicts) for r in replies)
    ours = f"{len(replies)} replies to {len({r.item for r in replies})} items, {judged} with verdicts"
    if log.results is None:
        return f"the log holds no results; here {ours}"
    parts = [f"total_samples {log.results.total_samples}", f"completed_samples {log.results.completed_samples}"]
    for s in log.results.scores:
        value = s.metrics["accuracy"].value if "accuracy" in s.metrics else None
        parts.append(
            f"{s.name}: scored_samples {s.scored_samples}" + (f", accuracy {value:.4f}" if value is not None else "")
        )
    return f"the log counts {'; '.join(parts)}; here {ours}"


def run_facts(log: Any) -> dict[str, Any]:
    """Small facts of a run: never arguments of models, never keys."""
    spec = log.eval
    facts: dict[str, Any] = {"date": str(spec.created), "task": spec.task, "epochs": spec.config.epochs}
    if spec.revision is not None and spec.revision.commit:
        facts["commit"] = spec.revision.commit
    for config in (spec.model_generate_config, log.plan.config if log.plan else None):
        for name in _GENERATION:
            value = getattr(config, name, None)
            if value is not None:
                facts[name] = value
    return facts
