"""Other words and other answers: consistency of reformulations, bias to yes, effects of the set of options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from auditlib.sensitivity.conditions import EXPANDED, REFORMULATED
from auditlib.sensitivity.pairing import full_calls
from auditlib.stats.intervals import wilson
from auditlib.stats.paired import mean_interval
from auditlib.stats.signal import detection

NAN = float("nan")
#: the answer ``cannot be determined``, whatever its letter
CANNOT = "cannot_tell"


def yes_bias(calls: pd.DataFrame) -> pd.DataFrame:
    """d', criterion and rates of yes by model and form of the question, on items with a yes/no key, image as it is."""
    here = calls[calls["family"].eq("full") & calls["key"].isin(["yes", "no"]) & calls["answer"].ne("")]
    rows = []
    for (model, form), part in here.groupby(["model", "form"], sort=False):
        yes, pos = part["answer"].eq("yes"), part["key"].eq("yes")
        d, c = detection((yes & pos).sum(), pos.sum(), (yes & ~pos).sum(), (~pos).sum())
        rows.append({"model": model, "form": form or "as it is", "n": len(part), "key_yes": float(pos.mean()),
                     "said_yes": float(yes.mean()), "hit_rate": float(yes[pos].mean()) if pos.any() else NAN,
                     "false_yes": float(yes[~pos].mean()) if (~pos).any() else NAN, "d_prime": float(d),
                     "criterion": float(c)})  # fmt: skip
    return pd.DataFrame(rows)


def reformulation(calls: pd.DataFrame) -> pd.DataFrame:
    """Accuracy and agreement in meaning by model and form, image as it is.

    Returns
    -------
    DataFrame
        ``same``: share of the items whose answer means the same as the first answer to the item as it is (Wilson
        interval); ``failure`` (negations): share with the same surface answer to both polarities, so that one of them
        must be wrong. The rows ``all forms`` give the share of the items on which all forms, the item as it is
        included, agree.
    """
    first = full_calls(calls).drop_duplicates(["model", "item"])[["model", "item", "answer", "meaning", "hit"]]
    first = first.rename(columns={"answer": "answer_0", "meaning": "meaning_0", "hit": "hit_0"})
    here = calls[calls["family"].eq("full") & calls["form"].str.partition("-")[0].isin(REFORMULATED)]
    here = here[here["sample"].eq(0)].merge(first, on=["model", "item"])
    here = here[here["meaning"].ne("") & here["meaning_0"].ne("")]
    here = here.assign(same=here["meaning"].eq(here["meaning_0"]))
    rows: list[dict[str, Any]] = []
    for (model, form), part in here.groupby(["model", "form"], sort=False):
        rows.append({"model": model, "form": form, "n": len(part), "accuracy": float(part["hit"].mean()),
                     "as_is": float(part["hit_0"].mean()), **_share(part["same"]),
                     "failure": float(part["answer"].eq(part["answer_0"]).mean())
                     if form == "negation" else NAN})  # fmt: skip
    for model, part in here.groupby("model", sort=False):
        by_item = part.groupby("item")["same"].agg(["all", "size"])
        whole = by_item[by_item["size"].eq(by_item["size"].max())]["all"]  # items asked in every form
        rows.append({"model": model, "form": "all forms", "n": len(whole), "accuracy": NAN, "as_is": NAN,
                     **_share(whole), "failure": NAN})  # fmt: skip
    return pd.DataFrame(rows)


def _share(values: pd.Series) -> dict[str, float]:
    seen = wilson(int(values.sum()), len(values))
    return {"same": float(values.mean()), "low": seen.low, "high": seen.high}


def answer_space(calls: pd.DataFrame, *, rng: np.random.Generator, draws: int = 2_000) -> pd.DataFrame:
    """Accuracy and use of ``cannot be determined`` by model, image condition and set of answers.

    Returns
    -------
    DataFrame
        ``accuracy`` with interval over images, ``chance`` mean ``1 / k``, ``kappa`` = (accuracy - chance) / (1 -
        chance), ``cannot``: rate of ``cannot be determined`` where it is offered, ``overconfident``: the rest, in the
        blind run, where nothing can be determined. Rows of the item as it is come first, on the items of each set.
    """
    kind = calls["form"].str.partition("-")[0]
    here = calls[kind.isin(EXPANDED) & calls["hit"].notna()]
    plain = calls[calls["form"].eq("") & calls["hit"].notna()]
    rows: list[dict[str, Any]] = []
    for (model, family, variant, level, form), part in here.groupby(
        ["model", "family", "variant", "level", "form"], sort=False
    ):
        same = plain[plain["model"].eq(model) & plain["family"].eq(family) & plain["variant"].eq(variant)
                     & plain["level"].eq(level) & plain["item"].isin(part["item"])]  # fmt: skip
        key = {"model": model, "family": family, "variant": variant, "level": level, "form": form}
        row = key | _accuracy(part, rng, draws) | {"as_is": float(same["hit"].mean()) if len(same) else NAN}
        offered = form.partition("-")[0] == CANNOT
        rate = float(part["meaning"].eq(CANNOT).mean()) if offered else NAN
        rows.append(row | {"cannot": rate, "overconfident": 1 - rate if family == "blind" else NAN})
    return pd.DataFrame(rows)


def _accuracy(part: pd.DataFrame, rng: np.random.Generator, draws: int) -> dict[str, float]:
    seen = mean_interval(part["hit"], part["image"].to_numpy(), rng=rng, draws=draws)
    chance = float((1 / part["k"]).mean())
    return {"n": len(part), "accuracy": seen.value, "low": seen.interval.low, "high": seen.interval.high,
            "chance": chance, "kappa": (seen.value - chance) / (1 - chance) if chance < 1 else NAN}  # fmt: skip
