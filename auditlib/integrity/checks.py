"""Every check of the gate with its outcome: found, passed, or not run and why.

The outcome is read from a finished audit, so that a saved audit tells it too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from auditlib.frames import SEVERITIES

#: ids and names shown as examples
EXAMPLES = 3
COLUMNS = ("check", "about", "what", "state", "n", "severity", "examples", "do")


@dataclass(frozen=True)
class Check:
    """One check.

    ``marks`` are the words by which a coverage row of a run check is known; ``needs`` says why a check cannot run.
    """

    name: str
    about: str
    what: str
    do: str
    needs: Callable[[Any], str]
    marks: tuple[str, ...] = ()
    severity: str = "medium"


def _has(*columns: str, words: str) -> Callable[[Any], str]:
    def needs(audit: Any) -> str:
        lacking = [c for c in columns if c not in audit.items or audit.items[c].isna().all()]
        return f"no {words}" if lacking else ""

    return needs


_KEYED = _has("key", "options", words="options or no keys")
_OPTIONS = _has("options", words="option texts")
_TEXTS = _has("question", words="question texts")


def _dataset(audit: Any) -> str:
    return "" if "options_written" in audit.items else "no dataset file to compare with"


def _replies(audit: Any) -> str:
    return "" if audit.responses is not None and len(audit.responses) else "no replies"


def _several_runs(audit: Any) -> str:
    why = _replies(audit)
    if why or "run" not in audit.responses:
        return why
    return "" if audit.responses["run"].nunique() > 1 else "one run only"


def _several(audit: Any) -> str:
    return _replies(audit) or ("" if len(audit.models) > 1 else "one model only")


def _blind(audit: Any) -> str:
    return "" if audit.has_blind else "no run without the image"


def _both(audit: Any) -> str:
    return _replies(audit) or _blind(audit)


def _judged(audit: Any) -> str:
    return "" if audit.judgements is not None and len(audit.judgements) else "no verdicts"


def _origins(audit: Any) -> str:
    """Whether the files say what decided their verdicts; where none does, nothing about that can pass."""
    if (why := _judged(audit)) or "source" not in audit.judgements:
        return why
    return "the files do not say what decided their verdicts" if audit.judgements["source"].eq("unknown").all() else ""


def _pictures(audit: Any) -> str:
    return _has("image_key", words="pictures")(audit)


def _always(audit: Any) -> str:
    return ""


def _two_judges(audit: Any) -> str:
    return _judged(audit) or "the audit holds one set of verdicts"


_MEND = "Correct the item before any score of it is used."
CHECKS: tuple[Check, ...] = (
    Check("key_outside_options", "items", "the key is one of the options shown", _MEND, _KEYED),
    Check("key_without_text", "items", "the key’s option has a text", _MEND, _KEYED),
    Check("lost_option", "items", "every option of the dataset reached the models",
          "Read the dataset without taking the word None for an empty cell; run these items again.", _dataset),
    Check("key_placeholder", "items", "the key is an answer, no placeholder", "Fill in the key.", _KEYED),
    Check("key_text_unmatched", "items", "a key given as text is the text of an option", _MEND, _KEYED),
    Check("equal_options", "items", "no two options are equal letter for letter",
          "Tell the options apart; where the key is one of them, accept both until then.", _OPTIONS),
    Check("empty_option_inside", "items", "no blank between options (blanks at the end are padding)",
          "See whether a text was lost.", _OPTIONS),
    Check("single_option", "items", "there is more than one option", "See whether options were lost.", _OPTIONS),
    Check("letter_valued_options", "items", "no option’s text is another option’s letter",
          "Read replies by letter with care; rename these options.", _OPTIONS),
    Check("position_dependent_option", "items", "no option speaks of the options around it",
          "Keep such items out of any shuffling of options.", _OPTIONS),
    Check("contradictory_duplicate", "items", "no item stands twice with different keys",
          "Look at both items; one key or one picture is wrong.", _TEXTS),
    Check("duplicate_item", "items", "no item stands twice", "Keep one; until then count them as one cluster.", _TEXTS),
    Check("near_duplicate_item", "items", "no item stands twice in nearly the same words", "Compare them.", _TEXTS),
    Check("shared_pictures", "items", "each item has a picture of its own",
          "Nothing: intervals draw the items of one picture together.", _pictures, severity="info"),
    Check("key_differs", "runs", "all runs hold the same keys", "See which file is right.", _several_runs,
          ("keys differed between runs",)),
    Check("options_differ", "runs", "all runs hold the same option texts", "See which models were asked what.",
          _several_runs, ("option texts differ",)),
    Check("question_differs", "runs", "all runs hold the same questions", "See which models were asked what.",
          _several_runs, ("question text differ",), "low"),
    Check("category_differs", "runs", "all runs hold the same official categories",
          "Name the right ones in the params; those of the deviating runs are not used.", _always, ("category",)),
    Check("same_run", "runs", "runs with and without the image differ", "Make the run without the image again.",
          _both, ("the same run twice",)),
    Check("two_names", "runs", "no two models give the same replies", "Find out whose replies they are.",
          _several, ("one run under two names",)),
    Check("other_item", "runs", "no long reply is given to several items", "Look for a cache; run these items again.",
          _replies, ("word for word",)),
    Check("blind_above_full", "runs", "no model is better without the image", "See whether the image reached it.",
          _blind, ("exceeds that with it",)),
    Check("no_image_given", "runs", "no reply with the image says that none was given",
          "See whether the image reached the model.", _replies, ("say that none was given",), "low"),
    Check("below_chance", "runs", "no model is below chance in every category", "See how its replies are read.",
          _always, ("below chance in every stratum",)),
    Check("all_or_nothing", "runs", "no run is right on every item, or on none", "See how its replies are scored.",
          _always, ("accuracy is exactly",)),
    Check("judge_named", "runs", "verdicts are those of the judge they are named for",
          "Judge again, or call them exact matching.", _judged, ("really exact matching", "was not asked")),
    Check("random_fill", "runs", "no verdict was filled at random", "Judge again; here they are abstentions.",
          _origins, ("random letter",)),
    Check("stale_verdict", "runs", "no verdict comes from an old cache", "Judge again; here they are left out.",
          _origins, ("of an old cache",)),
    Check("judged_unlike", "runs", "equal replies to one item are judged alike",
          "The judge does not agree with itself: judge again, several times.", _judged, ("were judged unlike",)),
    Check("two_judges", "runs", "two sets of verdicts on equal replies agree",
          "Audit once with each judge and compare.", _two_judges),
)  # fmt: skip


def gate_table(audit: Any) -> pd.DataFrame:
    """The gate's checks, those that found something first.

    Returns
    -------
    frame with columns ``check``, ``about`` (items or runs), ``what`` holds when it passes, ``state`` (found | passed |
    not run), ``n`` (items, or rows of runs), ``severity``, ``examples``, and ``do`` (what to do; for a check that was
    not run, why).
    """
    by_check = _item_findings(audit.findings)
    rows = [_row(audit, c, by_check) for c in CHECKS]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    state = table["state"].map({"found": 0, "passed": 1, "not run": 2})
    severity = table["severity"].map({s: i for i, s in enumerate(SEVERITIES)}).fillna(len(SEVERITIES))
    order = pd.DataFrame({"a": state, "b": severity}).sort_values(["a", "b"], kind="stable").index
    return table.loc[order].reset_index(drop=True)


def _row(audit: Any, c: Check, by_check: dict[str, pd.DataFrame]) -> dict[str, Any]:
    base = {"check": c.name, "about": c.about, "what": c.what, "severity": "", "examples": "", "n": 0}
    n, severity, examples = _outcome(audit, c, by_check)
    if n:
        return base | {"state": "found", "n": n, "severity": severity, "examples": examples, "do": c.do}
    why = c.needs(audit)
    return base | {"state": "not run" if why else "passed", "do": why}


def _outcome(audit: Any, c: Check, by_check: dict[str, pd.DataFrame]) -> tuple[int, str, str]:
    if c.name == "shared_pictures":
        return _shared(audit)
    if c.marks:
        return _warned(audit.coverage, c)
    mine = by_check.get(c.name)
    if mine is None:
        return 0, "", ""
    worst = min(mine["severity"], key=SEVERITIES.index)
    return mine["item"].nunique(), worst, _some(mine["item"].unique().tolist())


def _item_findings(findings: pd.DataFrame) -> dict[str, pd.DataFrame]:
    mine = findings[findings["detector"].eq("integrity") & findings["flag"].astype(bool)]
    names = [json.loads(e).get("check", "") for e in mine["evidence"]]
    return dict(iter(mine.groupby(pd.Series(names, index=mine.index, dtype=object)))) if len(mine) else {}


def _warned(coverage: pd.DataFrame, c: Check) -> tuple[int, str, str]:
    reason = coverage["reason"].astype(str)
    hit = pd.Series(False, index=coverage.index)
    for mark in c.marks:
        hit |= reason.str.startswith(mark) if mark == "category" else reason.str.contains(mark, regex=False)
    mine = coverage[hit & coverage["what"].isin(["warning", "conflict"])]
    if not len(mine):
        return 0, "", ""
    if mine["item"].astype(str).ne("").any():
        return int(mine["n"].sum()), c.severity, _some([i for i in mine["item"].astype(str) if i])
    who = [f"{m} ({k})" if k else m for m, k in zip(mine["model"].astype(str), mine["condition"].astype(str)) if m]
    return int(mine["n"].sum()), c.severity, _some(list(dict.fromkeys(who)) or [reason[mine.index[0]]])


def _shared(audit: Any) -> tuple[int, str, str]:
    from auditlib.integrity.duplicates import shared_pictures

    sizes = shared_pictures(audit.items)
    if sizes is None or sizes.max() < 2:
        return 0, "", ""
    many = sizes[sizes > 1]
    return int(many.sum()), "info", f"{len(many)} pictures, at most {many[0]} items each"


def _some(names: list[str]) -> str:
    shown = ", ".join(n if len(n) <= 60 else n[:59] + "…" for n in names[:EXAMPLES])
    return shown + (f" and {len(names) - EXAMPLES} more" if len(names) > EXAMPLES else "")
