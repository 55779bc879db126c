"""Read the runs that this program made itself."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.frames import coverage_row

RESPONSES, ITEMS, JUDGEMENTS, PROVENANCE = "responses.parquet", "items.parquet", "judgements.parquet", "runs.json"
#: raise when the files change in a way that older programs would misread
FORMAT = 1
_AGAIN = "make the files again with the blind-run stage"


def has_own(folder: str | Path) -> bool:
    """Whether a folder holds runs that this program made."""
    return all((Path(folder) / name).is_file() for name in (RESPONSES, ITEMS, PROVENANCE))


def read_own(folder: str | Path, prompt_mode: str | None = None) -> frames.Runs:
    """Read a folder of own runs.

    Parameters
    ----------
    folder : ``runs`` below a pool's outputs.
    prompt_mode : ``silent`` or ``told_to_guess``; needed where runs of both lie there, since they are never mixed.

    Returns
    -------
    Runs
        Items once per run; responses with ``prompt_mode``, ``finish``, token counts and, beyond the contract,
        ``reasoning`` (what the model thought, where the server keeps that apart), ``letter_logprobs``,
        ``prompt_version``, ``text_sha256``, ``outcome``, ``latency``.

    Raises
    ------
    AuditError
        Files are missing or damaged, or two prompt modes lie there and none is chosen.
    """
    folder = Path(folder)
    try:
        facts = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
        responses = pd.read_parquet(folder / RESPONSES)
        items = pd.read_parquet(folder / ITEMS)
        with_verdicts = (folder / JUDGEMENTS).is_file()
        judgements = pd.read_parquet(folder / JUDGEMENTS) if with_verdicts else frames.frame("judgements")
    except FileNotFoundError as e:
        missing = next((n for n in (PROVENANCE, RESPONSES, ITEMS) if not (folder / n).exists()), e.filename)
        raise AuditError(f"no {missing} in this folder of own runs", file=folder, mend=_AGAIN) from None
    except (OSError, ValueError) as e:
        raise AuditError(f"own runs are damaged ({type(e).__name__})", file=folder, mend=_AGAIN) from None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise AuditError("own runs of another version of this program", file=folder / PROVENANCE, mend=_AGAIN)
    if not len(responses):
        raise AuditError(
            "own runs without an answer", file=folder / RESPONSES, mend="let the blind-run stage ask first"
        )
    mode = _mode(responses, prompt_mode, folder)
    responses = responses[responses["prompt_mode"] == mode].reset_index(drop=True)
    runs = list(dict.fromkeys(responses["run"]))
    coverage = [row for row in facts.get("coverage", []) if row.get("run") in (*runs, "")]
    unknown = ~responses["item"].isin(items["item"])
    if unknown.any():
        reason = "answers to questions that items.parquet lacks"
        coverage.append(coverage_row("excluded", n=int(unknown.sum()), reason=reason))
        responses = responses[~unknown].reset_index(drop=True)
    items = items.assign(options=[[str(t) for t in o] for o in items["options"]])
    if "references" in items:
        items["references"] = [None if r is None else list(r) for r in items["references"]]
    by_run = responses.groupby("run", sort=False)["item"].agg(set)
    shown = [items[items["item"].isin(asked)].assign(run=run) for run, asked in by_run.items()]
    inputs = [RESPONSES, ITEMS, PROVENANCE, *([JUDGEMENTS] if with_verdicts else [])]
    judges = sorted(judgements["judge"].unique()) if len(judgements) else []
    return frames.Runs(
        items=pd.concat(shown, ignore_index=True),
        models=frames.frame("models", [{"model": m} for m in responses["model"].unique()]),
        responses=responses,
        judgements=judgements[judgements["run"].isin(runs)].reset_index(drop=True),
        coverage=frames.frame("coverage", coverage),
        inputs=tuple(folder / n for n in inputs),
        provenance={
            "toolkit": "auditlib",
            "judge": judges[0] if len(judges) == 1 else None,
            "prompt_mode": mode,
            "runs": {run: facts["runs"][run] for run in runs if run in facts.get("runs", {})},
        },
    )


def _mode(responses: pd.DataFrame, asked: str | None, folder: Path) -> str:
    modes = sorted(responses["prompt_mode"].unique())
    if asked is None and len(modes) > 1:
        what = f"runs of two prompt modes lie here ({', '.join(modes)}), which are never mixed"
        raise AuditError(what, file=folder / RESPONSES, mend=f"choose one: prompt_mode: {modes[0]}")
    if asked is not None and asked not in modes:
        what = f"no runs of prompt mode {asked!r} (here: {', '.join(modes)})"
        raise AuditError(what, file=folder / RESPONSES, mend=f"write prompt_mode: {modes[0]}, or run that mode")
    return asked or str(modes[0])
