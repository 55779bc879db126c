"""A blind run as tables to look at: the plan and its price, what endpoints did, what became of the replies."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from auditlib.extract import extract_frame
from auditlib.inference.canary import Canary
from auditlib.inference.plan import Forecast, requests_of
from auditlib.inference.stage import BlindPlan, BlindRun
from auditlib.inference.store import Store

#: characters of a prompt and a reply in a transcript
_LONGEST = 600


def plan_table(plan: BlindPlan, forecasts: Mapping[str, Forecast] | None = None) -> pd.DataFrame:
    """One row per model: what is asked, what of it is answered already, tokens, price and time.

    Parameters
    ----------
    plan : what is asked.
    forecasts : measured ones by model; guesses from the texts when not given.
    """
    rows = []
    with Store(plan.paths.answers) as store:
        for name, settings in plan.settings.items():
            known = forecasts[name] if forecasts else plan.forecast(name)
            stored = sum(r.key in store for r in requests_of(plan.items, settings)) if len(store) else 0
            rows.append(
                {
                    "model": name,
                    "conditions": ", ".join(settings.conditions),
                    "prompt mode": settings.prompt_mode,
                    "items": len(plan.items),
                    "calls": known.calls,
                    "answered already": stored,
                    "tokens in": known.tokens_in,
                    "tokens out": known.tokens_out,
                    "price": "" if known.price is None else f"{known.price:,.2f}",
                    "seconds": "" if known.seconds is None else f"{known.seconds:,.0f}",
                    "by": known.basis,
                }
            )
    return pd.DataFrame(rows)


def canary_table(found: Mapping[str, Canary]) -> pd.DataFrame:
    """One row per model and check."""
    rows = [
        {"model": name, "check": c.name, "found": c.found, "verdict": c.verdict, "note": c.note}
        for name, canary in found.items()
        for c in canary.checks
    ]
    return pd.DataFrame(rows, columns=["model", "check", "found", "verdict", "note"])


def profile(run: BlindRun) -> pd.DataFrame:
    """One row per model and condition: shares of the replies that name the key, another option, none, or decline."""
    read = extract_frame(run.responses, run.items, tuple(run.plan.params.audit.exact))
    key = read["item"].map(dict(zip(run.items["item"], run.items["key"])))
    said = read["letter"].fillna("").astype(str).where(read["letter"].notna(), read["answer"].fillna("").astype(str))
    names = said.ne("") & said.ne("Z")
    right = names & said.str.lower().eq(key.fillna("").str.lower())
    answered = read["status"].isin(["ok", "truncated"])
    columns = {
        "answered": answered,
        "right": right,
        "wrong": names & ~right,
        "no option named": answered & ~names & ~read["refused"],
        "declined": answered & ~names & read["refused"],
    }
    table = read[["model", "condition"]].assign(**columns).groupby(["model", "condition"], sort=False)
    counts = table["answered"].sum()
    shares = table[list(columns)[1:]].mean().map("{:.1%}".format)
    return pd.concat([table.size().rename("asked"), counts, shares], axis=1).reset_index()


def checks_table(run: BlindRun) -> pd.DataFrame:
    """The no-op checks, worst first."""
    order = {"fail": 0, "warn": 1, "pass": 2, "info": 3}
    table = run.checks.sort_values("verdict", key=lambda v: v.map(order), kind="stable")
    return table[["verdict", "model", "condition", "name", "n", "sentence"]].reset_index(drop=True)


def transcripts(run: BlindRun, n: int = 2) -> pd.DataFrame:
    """Prompt and reply of the first ``n`` items of each model and condition, as sent and as received."""
    rows = []
    for name, settings in run.plan.settings.items():
        mine = run.responses[run.responses["model"].eq(name)]
        replies = {(r["item"], r["condition"], r["sample"]): r["prediction"] for r in mine.to_dict("records")}
        for request in requests_of(run.plan.items[:n], settings):
            at = (request.item, request.condition, request.sample)
            if request.sample == 0 and at in replies:
                sent = request.text if request.text else "(no text)"
                rows.append(
                    {
                        "item": request.item,
                        "model": name,
                        "condition": request.condition,
                        "pictures": len(request.pictures),
                        "prompt": _cut(sent),
                        "reply": _cut(replies[at]),
                    }
                )
    return pd.DataFrame(rows, columns=["item", "model", "condition", "pictures", "prompt", "reply"])


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."
