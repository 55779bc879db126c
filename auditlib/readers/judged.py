"""Verdict files of VLMEvalKit: what was decided, and by what, which only the log tells."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from auditlib.errors import AuditError
from auditlib.readers.cells import EXCEL_LIMIT

#: columns that can hold the verdict, in the order of preference
HIT_COLUMNS = ("hit", "score", "correct", "is_correct", "verifier_match", "eval_match", "verifier_score")
EXACT_FALLBACK = "Failed in Prefetch, no GPT-based answer matching"
RANDOM_FILL = "Failed to predict, thus randomly generate one"
#: sources that make a verdict void
VOID = ("random_fill", "cache_stale")

_TRUTH = {"1": 1.0, "0": 0.0, "true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
#: logs of circular sets, several lines in one cell; the first kind names what the rule alone decided
_CIRCULAR_RULE = re.compile(r"^(?:Succeed During Pre-fetching|Failed in Prefetching Rolling)")
_CIRCULAR = re.compile(r"Pre-?fetching|Rolling \d+")
_SEPARATORS = str.maketrans(dict.fromkeys(".()[],:;!*#{}", " "))


def hits(table: pd.DataFrame, path: Path) -> np.ndarray:
    """Verdicts of a judged file in [0, 1], NaN where the cell is empty.  Shape (n,).

    Raises
    ------
    AuditError
        No column holds verdicts, or a cell is neither empty nor a number in [0, 1] nor true/false.
    """
    column = hit_column(table)
    if column is None:
        raise AuditError(
            f"no verdict column (one of {', '.join(HIT_COLUMNS)})",
            file=path,
            mend="evaluate the run again, or remove this file",
        )
    text = table[column].str.strip().str.lower()
    values = text.map({v: _TRUTH.get(v, _number(v)) for v in text.unique()}).to_numpy(dtype=float)
    bad = ((text != "").to_numpy() & np.isnan(values)) | (values < 0) | (values > 1)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise AuditError(
            f"column {column!r} holds {table[column].iloc[at]!r}, no verdict between 0 and 1",
            file=path,
            row=int(table.index[at]) + 2,
            mend="correct the cell, or evaluate the run again",
        )
    return values


def hit_column(table: pd.DataFrame) -> str | None:
    """The column that holds the verdicts, None where there is none."""
    return next((c for c in HIT_COLUMNS if c in table.columns), None)


def hits_of(table: pd.DataFrame, path: Path) -> np.ndarray:
    """:func:`hits`; NaN throughout where the file holds extracted answers (``res``) in the place of verdicts."""
    if hit_column(table) is None and {"res", "log"} <= set(table.columns):
        return np.full(len(table), np.nan)
    return hits(table, path)


def moved(predictions: pd.Series, current: pd.Series) -> np.ndarray:
    """Where a judged file holds another reply than the run, row by row.  Shape (n,), bool."""
    return (_plain(predictions) != _plain(current)).to_numpy(dtype=bool)


def check_keys(now: pd.DataFrame, then: pd.DataFrame, path: Path) -> None:
    """Refuse verdicts that were given on other keys than those of the run.

    Parameters
    ----------
    now, then : the run's and the judged file's items, indexed by item id, on the same rows: ``key`` and ``written``
        (the key before an option's text became its letter); ``then`` has ``row`` too.

    Raises
    ------
    AuditError
        A key differs.
    """
    differs = (now["key"] != then["key"]).to_numpy() & (now["written"] != then["written"]).to_numpy()
    if differs.any():
        at = int(np.flatnonzero(differs)[0])
        more = f" ({int(differs.sum())} such items)" if differs.sum() > 1 else ""
        raise AuditError(
            f"item {then.index[at]!r} was judged on the key {then['written'].iloc[at]!r}, "
            f"the run's key is {now['written'].iloc[at]!r}{more}",
            file=path,
            row=int(then["row"].iloc[at]),
            mend="judge again with the current keys, or remove the judged file",
        )


def choice_sources(
    logs: pd.Series, predictions: pd.Series, current: pd.Series, letters: list[set[str]], other: pd.Series | None = None
) -> np.ndarray:
    """What decided each multiple-choice verdict.  Shape (n,), text.

    Parameters
    ----------
    logs, predictions : columns of the judged file, which VLMEvalKit writes with the predictions it has at that time.
    current : predictions of the run's own file, on the same rows.
    letters : option letters of each row.
    other : replies of the same model under another condition, on the same rows.

    Notes
    -----
    Every log but those of circular sets reads ``Match Log: ... . ``. Equal to ``Match Log: {prediction}. `` = decided
    by rule (``regex``); the two failure sentences = ``exact_fallback`` and ``random_fill``; any other text = the
    judge's reply (``llm``). A verdict is stale (``cache_stale``) when the judged file holds another prediction than the
    run, or when the rule must have decided the present prediction and the log quotes another text. When that is proved
    for a tenth of a file's readable rows or more, the whole file comes from an old cache, and its judge replies too; so
    it does when nearly all of (at least 20) judge replies are word for word what the model said under the other
    condition. Without a log, or with one of a form not known, the source is ``unknown``.
    """
    n = len(logs)
    sources = np.full(n, "llm", dtype=object)
    quoted = np.fromiter((_quotes(log, p) for log, p in zip(logs, predictions)), bool, n)
    sources[quoted] = "regex"
    sources[logs.str.contains(EXACT_FALLBACK, regex=False).to_numpy(dtype=bool)] = "exact_fallback"
    sources[logs.str.contains(RANDOM_FILL, regex=False).to_numpy(dtype=bool)] = "random_fill"
    plain = logs.str.startswith("Match Log: ").to_numpy(dtype=bool)
    rolled = logs.str.contains(_CIRCULAR_RULE).to_numpy(dtype=bool)
    sources[~plain & (sources == "llm") & ~logs.str.contains(_CIRCULAR).to_numpy(dtype=bool)] = "unknown"
    sources[~plain & (sources == "llm") & rolled] = "regex"
    readable = np.fromiter((_decided(p, a) for p, a in zip(predictions, letters)), bool, n)
    stale = moved(predictions, current) | (
        plain & readable & np.isin(sources, ("llm", "exact_fallback", "random_fill"))
    )
    if stale.any() and stale.sum() >= 0.1 * max(1, readable.sum()):
        stale |= np.isin(sources, ("llm", "random_fill"))
    if other is not None:
        asked = sources == "llm"
        echoed = np.fromiter((_quotes(log, p) for log, p in zip(logs, other)), bool, n)
        if asked.sum() >= 20 and (echoed & asked).sum() >= 0.95 * asked.sum():
            stale |= asked
    sources[stale] = "cache_stale"
    return sources


def yesno_sources(extracted: pd.Series, predictions: pd.Series, current: pd.Series) -> np.ndarray:
    """What decided each yes/no verdict: ``regex``, ``llm``, ``unknown`` or ``cache_stale``.  Shape (n,), text.

    Notes
    -----
    VLMEvalKit's rule says Yes when the word "yes" occurs and "no" does not, and the reverse; what it leaves open goes
    to the judge. A Yes where the rule says No, or the reverse, comes from an old cache. ``Unknown`` may be the judge's
    reply or the end of a failed call.
    """
    rule = pd.Series([yes_or_no(p) for p in predictions], index=predictions.index, dtype="str")
    said = extracted.str.strip().str.capitalize()
    answered = said.isin(["Yes", "No"])
    sources = np.where(answered, "llm", "unknown").astype(object)
    sources[(answered & (rule == said)).to_numpy()] = "regex"
    stale = (answered & (rule != "") & (rule != said)) | (_plain(predictions) != _plain(current))
    sources[stale.to_numpy()] = "cache_stale"
    return sources


def yes_or_no(text: str) -> str:
    """VLMEvalKit's own reading of a yes/no reply: ``Yes``, ``No``, or ``""`` when both or neither word occurs."""
    words = set(re.sub(r"[^\w\s]", " ", text.lower()).split())
    if ("yes" in words) == ("no" in words):
        return ""
    return "Yes" if "yes" in words else "No"


def replies(logs: pd.Series, sources: np.ndarray) -> np.ndarray:
    """The judge's own words where a judge decided, ``""`` elsewhere.  Shape (n,), text."""
    inner = logs.str.removeprefix("Match Log: ").str.removesuffix(". ").to_numpy(dtype=object)
    return np.where(sources == "llm", inner, "")


def remarks(sources: np.ndarray, stored: np.ndarray, judge: str | None) -> list[tuple[int, str]]:
    """Verdicts that are not the judge's own: how many, and what is wrong with them."""
    random, stale = sources == "random_fill", sources == "cache_stale"
    fallback = sources == "exact_fallback"
    says = [
        (random, "verdicts on a random letter after the judge failed (not counted; {hits} of them were hits)"),
        (stale, "verdicts of an old cache: their log or prediction is another one (not counted)"),
        (fallback & (judge != "exact_matching"), f"verdicts of exact matching: judge {judge!r} was not asked"),
    ]
    return [(int(at.sum()), text.replace("{hits}", f"{np.nansum(stored[at]):.0f}")) for at, text in says if at.any()]


def column(table: pd.DataFrame, name: str) -> pd.Series:
    """A column of a judged file, empty texts when it lacks it."""
    return table[name] if name in table.columns else pd.Series("", index=table.index, dtype="str")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _quotes(log: str, prediction: str) -> bool:
    expected = f"Match Log: {prediction or 'nan'}. "
    if len(log) >= EXCEL_LIMIT or len(prediction) >= EXCEL_LIMIT - len("Match Log: . "):
        return log[: EXCEL_LIMIT - 20] == expected[: EXCEL_LIMIT - 20]
    return log == expected


def _plain(texts: pd.Series) -> pd.Series:
    """Texts for comparison: an empty reply is written as ``nan`` by the evaluation."""
    return texts.str.strip().replace("nan", "")


def _decided(prediction: str, letters: set[str]) -> bool:
    """Whether VLMEvalKit's rule surely reads a letter here, in every version of it.

    One option letter as a word of its own, among the last four words, and no article: then the log quotes the reply.
    """
    words = prediction.translate(_SEPARATORS).split()
    found = [w for w in words if w in letters]
    if len(set(found)) != 1 or (found[0] == "A" and len(words) > 3):
        return False
    return words.index(found[0]) >= len(words) - 4
