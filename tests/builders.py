"""Small pools for tests, from one builder, and the embedded pools' audits, made once per session."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import auditlib
from auditlib.frames import Runs, frame
from auditlib.params import Params
from auditlib.reading import pool_of

ROOT = Path(__file__).resolve().parents[1]


def params(**more) -> Params:
    """Params of a pool that lies nowhere."""
    return Params(**({"pool": "tiny", "benchmark": "Tiny", "data": {"embedded": "tinysee"}} | more))


def runs(replies: dict[tuple[str, str], list[str]], keys: list[str], *, options=None, judged=None, stratum=None,
         ids=None, **item_columns) -> Runs:  # fmt: skip
    """Runs from replies: (model, condition) -> one reply per item ("" = none). ``judged``: same keys -> hits."""
    ids = list(ids or [str(i) for i in range(len(keys))])
    options = options or [["red", "blue", "green", "white"]] * len(keys)
    items, responses, verdicts = [], [], []
    for (model, condition), texts in replies.items():
        run = f"{model}/{condition}"
        for i, (item, text) in enumerate(zip(ids, texts)):
            facts = {
                "run": run,
                "row": i + 2,
                "item": item,
                "key": keys[i],
                "options": list(options[i]),
                "question": f"q{item}",
            }
            facts |= {"stratum": stratum[i]} if stratum else {}
            items.append(facts | {k: v[i] for k, v in item_columns.items()})
            responses.append(
                {
                    "run": run,
                    "row": i + 2,
                    "item": item,
                    "model": model,
                    "condition": condition,
                    "sample": 0,
                    "prediction": text,
                    "status": "ok" if text else "missing",
                    "refused": False,
                }
            )
            if judged and (model, condition) in judged:
                verdicts.append(
                    {
                        "run": run,
                        "item": item,
                        "model": model,
                        "condition": condition,
                        "sample": 0,
                        "judge": "j",
                        "hit": judged[model, condition][i],
                        "source": "llm",
                    }
                )
    models = pd.DataFrame({"model": sorted({m for m, _ in replies})})
    return Runs(pd.DataFrame(items), models, frame("responses", responses), frame("judgements", verdicts))


def tiny_pool(replies, keys, *, settings=None, name="tiny", **more) -> auditlib.Pool:
    """A pool read from in-memory replies through alignment and extraction."""
    return pool_of(runs(replies, keys, **more), params(pool=name, audit=settings or {}))


def world(n: int, models: int, *, seed: int, link: float = 0.0, strata: int = 1) -> auditlib.Pool:
    """A pool of hits: strata differ in difficulty, ``link`` couples full and blind answers of an item."""
    rng = np.random.default_rng(seed)
    stratum = np.sort(rng.integers(0, strata, n))
    level = np.linspace(-1.5, 1.5, strata)[stratum] if strata > 1 else np.zeros(n)
    shared = rng.normal(size=(n, 1)) * link
    logit = level[:, None] + shared + rng.normal(size=(n, 1))
    blind = level[:, None] + shared + rng.normal(size=(n, 1)) - 1
    draw = lambda x: (rng.random((n, models)) < 1 / (1 + np.exp(-x))).astype(np.uint8)  # noqa: E731
    return auditlib.Pool.from_hits(draw(logit), draw(blind), stratum=[f"s{s}" for s in stratum], name=f"world{seed}")


@cache
def scratch() -> Path:
    """One outputs folder for the session."""
    holder = tempfile.TemporaryDirectory(prefix="auditlib-test-")
    scratch.holder = holder  # removed when the interpreter ends
    return Path(holder.name)


@cache
def embedded_pool(name: str) -> auditlib.Pool:
    return auditlib.read_pool(ROOT / "params" / f"{name}.yaml", outputs=scratch())


@cache
def embedded_audit(name: str) -> auditlib.Audit:
    return auditlib.audit(embedded_pool(name))
