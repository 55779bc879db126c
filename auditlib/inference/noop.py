"""After a run: did taking the picture away do anything, and did the model notice?"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pandas as pd

from auditlib.extract import extract_frame
from auditlib.readers import cells

#: words by which a reply speaks of a picture
_MENTION = re.compile(
    r"\b(?:in|from|of|on|to|at|see|view|the|this|an|your|provided|attached|shown|given)\s+"
    r"(?:the\s+|this\s+|an?\s+|your\s+)?(?:provided\s+|attached\s+|given\s+|shown\s+)?"
    r"(?:image|picture|photo(?:graph)?|figure|screenshot|diagram|chart)s?\b",
    re.IGNORECASE,
)
#: replies shorter than this are equal by chance, so their share says nothing
_LONG = 24
_WITHOUT = ("blind", "none")
COLUMNS = ("model", "condition", "name", "value", "reference", "n", "verdict", "sentence")


def noop_checks(responses: pd.DataFrame, items: pd.DataFrame, chain: tuple[str, ...] = ("letters",)) -> pd.DataFrame:
    """Checks on runs whose picture was taken away or replaced, against the full runs where there are any.

    Parameters
    ----------
    responses : responses contract of own runs, one prompt mode.
    items : items contract, one row per item.
    chain : readers of replies, for the accuracy.

    Returns
    -------
    DataFrame
        ``model``, ``condition``, ``name``, ``value``, ``reference`` (what the value is held against, NaN where
        nothing), ``n`` (what was counted), ``verdict`` (``pass``, ``warn``, ``fail`` or ``info``), ``sentence``.
        Names: ``identical_replies`` and ``long_identical_replies`` (share of replies equal to the full run's),
        ``prompt_tokens_equal``, ``prompt_tokens_saved`` (mean difference per call), ``mentions_image``,
        ``refuses``, ``accuracy`` (against the share of the commonest key in its stratum; 1/k in the sentence).
    """
    rows: list[dict] = []
    answered = responses[responses["status"].isin(["ok", "truncated"])]
    read = extract_frame(answered, items, chain)
    keys = items.drop_duplicates("item").set_index("item")
    for (model, condition), run in read.groupby(["model", "condition"], sort=False):
        if condition == "full":
            continue
        full = read[(read["model"] == model) & (read["condition"] == "full")]
        pairs = run.merge(full, on=["item", "sample"], suffixes=("", "_full"))
        found = [*_identical(pairs, condition), *_tokens(pairs, condition), *_words(run, condition)]
        found += _accuracy(run, keys, condition)
        rows += [{"model": model, "condition": condition, **row} for row in found]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _check(name: str, value: float, n: int, verdict: str, sentence: str, reference: float = np.nan) -> dict:
    return {"name": name, "value": float(value), "reference": float(reference), "n": int(n), "verdict": verdict,
            "sentence": sentence}  # fmt: skip


def _identical(pairs: pd.DataFrame, condition: str) -> list[dict]:
    if not len(pairs):
        return []
    same = (pairs["prediction"].str.strip() == pairs["prediction_full"].str.strip()).to_numpy()
    long = (pairs["prediction_full"].str.len() >= _LONG).to_numpy()
    share = same.mean()
    verdict = "warn" if share == 1.0 and len(pairs) >= 20 else "info"
    text = f"{same.sum()} of {len(pairs)} replies are the same with the picture and under {condition!r}"
    text += "; the picture may never have been sent, or the replies are a cache's" if verdict == "warn" else ""
    rows = [_check("identical_replies", share, len(pairs), verdict, text)]
    if long.any():
        share, n = same[long].mean(), int(long.sum())
        verdict = "fail" if share > 0.9 and n >= 10 else "warn" if share > 0.5 and n >= 10 else "pass"
        text = f"{same[long].sum()} of {n} replies of {_LONG} characters or more are the same word for word"
        rows.append(_check("long_identical_replies", share, n, verdict, text))
    return rows


def _tokens(pairs: pd.DataFrame, condition: str) -> list[dict]:
    if "tokens_in" not in pairs or not len(pairs):
        return []
    own, full = (pd.to_numeric(pairs[c], errors="coerce").astype(float) for c in ("tokens_in", "tokens_in_full"))
    counted = (own.notna() & full.notna()).to_numpy()
    if not counted.any():
        text = "the server counts no prompt tokens, so nothing shows whether the picture was sent"
        return [_check("prompt_tokens_equal", np.nan, 0, "warn", text)]
    saved = (full - own).to_numpy()[counted]
    equal, n = float((saved <= 0).mean()), int(counted.sum())
    if condition in _WITHOUT:
        verdict = "fail" if equal > 0.5 else "warn" if equal > 0 else "pass"
        text = f"{(saved <= 0).sum()} of {n} prompts are no shorter than with the picture"
        text += ": the picture never reached the model, or is not counted" if verdict == "fail" else ""
    else:
        verdict = "info"
        text = f"{(saved == 0).sum()} of {n} prompts have as many tokens as with the item's own picture"
        equal = float((saved == 0).mean())
    mean = f"a prompt under {condition!r} has {abs(saved.mean()):.1f} tokens {'fewer' if saved.mean() >= 0 else 'more'}"
    return [
        _check("prompt_tokens_equal", equal, n, verdict, text),
        _check("prompt_tokens_saved", saved.mean(), n, "info", mean),
    ]


def _words(run: pd.DataFrame, condition: str) -> list[dict]:
    said = run["prediction"].fillna("")
    refused = cells.refused(said).to_numpy()
    mentions = said.map(lambda t: bool(_MENTION.search(t))).to_numpy() & ~refused
    n = len(run)
    note = "info" if condition not in _WITHOUT else "warn" if mentions.mean() > 0.1 else "pass"
    spoken = f"{mentions.sum()} of {n} replies speak of a picture without saying that there is none"
    declined = f"{refused.sum()} of {n} replies say that no picture can be seen, or decline"
    much = "warn" if refused.mean() > 0.5 else "info"
    return [
        _check("mentions_image", mentions.mean(), n, note, spoken),
        _check("refuses", refused.mean(), n, much, declined),
    ]


def _accuracy(run: pd.DataFrame, keys: pd.DataFrame, condition: str) -> list[dict]:
    """Share right among choice and yes/no items, against always naming the commonest key of the stratum."""
    known = run[run["item"].isin(keys.index)]
    kind = known["item"].map(keys["answer_type"])
    known = known[kind.isin(["choice", "yesno"])]
    key = known["item"].map(keys["key"]).fillna("").str.strip()
    known, key = known[key != ""], key[key != ""]
    if not len(known):
        return []
    yesno = known["item"].map(keys["answer_type"]).eq("yesno").to_numpy()
    answer = np.where(yesno, known["answer"].fillna("").str.lower(), known["letter"].fillna(""))
    right = answer == np.where(yesno, key.str.lower(), key)
    stratum = known["item"].map(keys["stratum"]).fillna("") if "stratum" in keys else pd.Series("", index=known.index)
    most = {s: Counter(key[stratum == s]).most_common(1)[0][1] for s in stratum.unique()}
    prior = sum(most.values()) / len(known)
    k = pd.to_numeric(known["item"].map(keys["k"]), errors="coerce") if "k" in keys else pd.Series(dtype=float)
    chance = float((1 / k.astype(float)).mean()) if k.notna().any() else np.nan
    accuracy, n = float(right.mean()), len(known)
    spread = np.sqrt(max(prior * (1 - prior), 1e-9) / n)
    above = accuracy > prior + 2 * spread
    verdict = "info" if not above else "warn"
    text = (
        f"{accuracy:.3f} right under {condition!r}; the commonest key of each stratum {prior:.3f}, chance {chance:.3f}"
    )
    text += "; more than the options' prior gives away" if above and condition in _WITHOUT else ""
    return [_check("accuracy", accuracy, n, verdict, text, prior)]
