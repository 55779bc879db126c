"""A small saved audit for tests of figures, tables and reports: right frames, simulated answers, plain formulas.

It stands in for ``auditlib.outputs.load_audit``; its numbers are consistent with each other but no oracle of anything.
"""

from __future__ import annotations

import json
from itertools import combinations
from math import sqrt
from types import SimpleNamespace

import numpy as np
import pandas as pd

from auditlib.frames import LETTERS

HOSTILE = {
    "question": 'Q <script>alert(1)</script> #read("x") $ _ | & % \\input{x} 😀 🚀 שלום עולם مرحبا \u202etxt',
    "options": ['=HYPERLINK("http://x.invalid","y")', "<b>bold</b>", "100% & $x_1$ | pipe", "⟨plain⟩ `tick` *star*"],
    "reply": '<img src=x onerror=alert(1)> =cmd|\' /C calc\'!A0 #read("x") {} \\end{document} 🚀',
}
DETECTORS = [
    ("visual_dependency", "full vs. blind accuracy", "no-gain-from-image items", True),
    ("consensus_error", "majority vote vs. label", "label-conflict candidates", False),
    ("fleiss_kappa_agreement", "inter-model kappa", "unstable / ambiguous items", False),
    ("correctness_agreement", "judged-correctness profile", "difficulty / discrimination", True),
    ("answer_options_distribution", "label-position histogram", "position bias", False),
    ("distractor_similarity", "pairwise option similarity", "near-duplicate options", False),
]


def wilson(share: float, n: int) -> tuple[float, float]:
    z = 1.959964
    middle, half = share + z * z / (2 * n), z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def category(F: np.ndarray, B: np.ndarray, n: int) -> np.ndarray:
    out = np.where(5 * (F - B) >= n, "visual_supplement", "text_only")
    out = np.where(5 * (B - F) > n, "conflicting", out)
    return np.where((100 * F >= 99 * n) & (100 * B <= n), "visual_dependent", out)


def demo(n=120, models=3, strata=4, *, blind=True, judged=True, design=False, hostile=False, responses=True, seed=0,
         pool="demo", names=None, stratum_names=None):  # fmt: skip
    """A namespace with the frames of an audit: ``n`` items, ``models`` models, ``strata`` categories."""
    rng = np.random.default_rng(seed)
    names = names or [f"Model-{chr(65 + j % 26)}{j // 26 or ''}" for j in range(models)]
    if hostile:
        names[0] = "<m>_$&%#"
    labels = stratum_names or [f"category {i + 1}" for i in range(strata)]
    ability, easy = rng.normal(0.9, 0.4, models), rng.normal(0, 1.1, n)
    full = rng.random((n, models)) < 1 / (1 + np.exp(-(ability + easy[:, None])))
    seen = rng.random((n, models)) < 1 / (1 + np.exp(1.4 - 0.7 * easy[:, None]))
    key = rng.integers(0, 4, n)
    items = pd.DataFrame({
        "item": [str(i) for i in range(n)], "question": [f"What is shown in picture {i}?" for i in range(n)],
        "options": [[f"option {i}{c}" for c in "abcd"] for i in range(n)], "key": [LETTERS[k] for k in key],
        "k": 4, "answer_type": "choice",
    })  # fmt: skip
    if strata:
        items["stratum"] = [labels[i * strata // n] for i in range(n)]
    if design:
        items["design"] = np.where(np.arange(n) % 3 == 0, "VS", "VD")
    if hostile:
        items.at[0, "question"], items.at[0, "options"] = HOSTILE["question"], HOSTILE["options"]
    conditions = {"full": full} | ({"blind": seen} if blind else {})
    letters, hits = {}, {}
    for c, right in conditions.items():
        guess = np.where(right, key[:, None], (key[:, None] + rng.choice([1, 1, 2, 3], right.shape)) % 4)
        lost = rng.random(right.shape) < (0.25 if c == "blind" else 0.02) * (np.arange(models) % 3 == 2)
        letters[c] = np.where(lost, -1, guess)
        hits[c] = {"exact": right & ~lost} | ({"judged": right & (~lost | (rng.random(lost.shape) < 0.5))} if judged else {})
    if hostile:
        letters["full"][0] = (key[0] + 1) % 4
    arms = ["judged", "exact"] if judged else ["exact"]
    long = [(items["item"][i], names[j], c, LETTERS[letters[c][i, j]] if letters[c][i, j] >= 0 else "Z", i, j)
            for c in conditions for i in range(n) for j in range(models)]  # fmt: skip
    votes = pd.DataFrame([r[:4] for r in long], columns=["item", "model", "condition", "letter"])
    votes["rule"] = np.where(votes["letter"] == "Z", "no letter", "bare")
    for a in arms:
        votes[f"hit_{a}"] = [float(hits[r[2]][a][r[4], r[5]]) for r in long]
    replies = votes.assign(prediction=votes["letter"].where(votes["letter"] != "Z", "I see no image."), status="ok",
                           refused=votes["letter"].eq("Z") & votes["condition"].eq("blind"), run="run.xlsx")  # fmt: skip
    if hostile:
        replies.loc[replies["item"] == "0", "prediction"] = HOSTILE["reply"]
    statistics, counts, draws = _statistics(pool, items, names, hits, letters, key, arms, blind, rng)
    findings = _findings(items, names, letters, key, counts)
    detectors = _detectors(findings, blind)
    steps = {"models": models, "full_runs": models, "blind_runs": models if blind else 0, "items_read": n + 2,
             "items_joined": n, "items_excluded": 2, "detectors_run": int(detectors["state"].eq("run").sum()),
             "detectors_not_run": int(detectors["state"].ne("run").sum()),
             "findings": findings.loc[findings["flag"], "severity"].value_counts().to_dict()}  # fmt: skip
    coverage = pd.DataFrame([
        {"run": "a/a.xlsx", "model": names[0], "condition": "full", "what": "read", "n": n, "item": "", "reason": ""},
        {"run": "", "model": "", "condition": "", "what": "excluded", "n": 2, "item": "", "reason": "in one run only"},
        {"run": "", "model": "", "condition": "", "what": "joined", "n": n, "item": "", "reason": ""},
    ])  # fmt: skip
    frame = pd.DataFrame({"model": names, "family": names})
    return SimpleNamespace(
        params=SimpleNamespace(pool=pool, benchmark="DemoBench", seed=1, judge="demo-judge" if judged else None,
                               audit=SimpleNamespace(exact=["letters"], failed="missing", permutations=999,
                                                     bootstrap=2000, splits=20)),
        pool_name=pool, benchmark="<Demo> & $Bench_" if hostile else "DemoBench", items=items, models=frame,
        findings=findings, statistics=statistics, counts=counts, draws=draws, coverage=coverage, detectors=detectors,
        steps=steps, provenance={"judge": "demo-judge"}, responses=replies if responses else None, votes=votes,
    )  # fmt: skip


def _shares(F, B, n):
    c = category(F, B, n)
    out = {f"{k}_share": c == k for k in ("text_only", "visual_dependent", "visual_supplement", "conflicting")}
    return {"zero_gain_share": F == B} | out | {"visual_dependent_majority_share": (3 * F >= 2 * n) & (3 * B <= n)}


def _null(F, B, n, region) -> float:
    f, b = np.bincount(F, minlength=n + 1) / len(F), np.bincount(B, minlength=n + 1) / len(B)
    return float(sum(f[i] * b[j] for i in range(n + 1) for j in range(n + 1) if region(np.array([i]), np.array([j]))[0]))


def _statistics(pool, items, names, hits, letters, key, arms, blind, rng):
    rows, counts, draws = [], [], []
    n, m = len(items), len(names)
    strata = items["stratum"] if "stratum" in items else pd.Series([""] * n)

    def put(metric, estimate=np.nan, **more):
        rows.append({"pool": pool, "metric": metric, "policy": "wrong", "models": "all", "stratum": "all",
                     "estimate": estimate, **more})  # fmt: skip

    def excess(metric, arm, F, B, k, keep, mask, models, stratum, kind):
        region = lambda f, b: _shares(f, b, k)[metric]  # noqa: E731
        F, B, s = F[mask], B[mask], strata[mask]
        share = float(region(F, B).mean())
        if kind == "within" and stratum == "all":
            null = sum(_null(F[s == v], B[s == v], k, region) * (s == v).sum() for v in s.unique()) / len(F)
        else:
            null = _null(F, B, k, region)
        sd = sqrt(max(null * (1 - null), 1e-9) / len(F)) * 0.8
        low, high = wilson(share, len(F))
        e = share - null
        put(metric, share, arm=arm, null_kind=kind, models=models, stratum=stratum, n=len(F), low=low, high=high,
            null=null, null_sd=sd, excess=e, excess_low=e - 2 * sd, excess_high=e + 2 * sd, p_method="exact",
            p=float(np.clip(0.5 * np.exp(-((max(e, 0) / sd) ** 2)), 1e-9, 1)),
            q=float("nan") if stratum == "all" else 0.04)  # fmt: skip
        return null, sd

    everyone = np.ones(n, bool)
    for arm in arms if blind else []:
        full, seen = hits["full"][arm].astype(int), hits["blind"][arm].astype(int)
        pools = [("all", np.ones(m, bool))] + [(f"without {names[j]}", np.arange(m) != j) for j in range(m) if m > 1]
        for models, keep in pools:
            F, B, k = full[:, keep].sum(1), seen[:, keep].sum(1), int(keep.sum())
            kinds = ["pooled", "within"] if strata.nunique() > 1 else ["pooled"]
            for metric in _shares(F, B, k):
                for kind in kinds:
                    null, sd = excess(metric, arm, F, B, k, keep, everyone, models, "all", kind)
                    if models == "all" and metric == "zero_gain_share":
                        draws += [{"metric": metric, "arm": arm, "models": models, "stratum": "all", "null_kind": kind,
                                   "draw": d, "share": v}
                                  for d, v in enumerate(np.round(rng.normal(null, sd, 300) * n) / n)]  # fmt: skip
                if models == "all":
                    put(metric, arm=arm, policy="bounds", null_kind="pooled", n=n,
                        low=rows[-1]["estimate"] * 0.6, high=min(1, rows[-1]["estimate"] * 1.5))  # fmt: skip
                    for s in strata.unique() if strata.nunique() > 1 else []:
                        excess(metric, arm, F, B, k, keep, (strata == s).to_numpy(), "all", s, "pooled")
        F, B = full.sum(1), seen.sum(1)
        f, b = np.bincount(F, minlength=m + 1) / n, np.bincount(B, minlength=m + 1) / n
        for k in range(m + 1):
            share = float(((F == k) & (B == k)).mean())
            put("zero_gain_composition", share, arm=arm, level=str(k), n=round(share * n), null=f[k] * b[k],
                excess=share - f[k] * b[k])  # fmt: skip
        if strata.nunique() > 1:
            both = [r["excess"] for r in rows if r["metric"] == "zero_gain_share" and r["models"] == "all"
                    and r["stratum"] == "all" and r["arm"] == arm and "excess" in r]  # fmt: skip
            put("zero_gain_between_strata", both[0] - both[1], arm=arm)
        if "design" in items:
            for d in ("VD", "VS"):
                excess("zero_gain_share", arm, F, B, m, None, (items["design"] == d).to_numpy(), "all", f"design:{d}", "pooled")
            put("gain_auc", 0.49, arm=arm, level="positive VD", low=0.45, high=0.53, n=n)
        for size in range(2, m + 1):
            picks = list(combinations(range(m), size))[:40]
            shares = [float((full[:, list(p)].sum(1) == seen[:, list(p)].sum(1)).mean()) for p in picks]
            put("pool_size_zero_gain_share", float(np.median(shares)), arm=arm, level=str(size), n=len(picks),
                low=min(shares), high=max(shares))  # fmt: skip
            put("pool_size_excess", float(np.median(shares)) / 5, arm=arm, level=str(size), n=len(picks),
                low=min(shares) / 8, high=max(shares) / 4)  # fmt: skip
        put("split_half_difference", 0.015, arm=arm, n=20, null=0.012)
        label = items["design"] if "design" in items else pd.Series([""] * n)
        counts.append(pd.DataFrame({"item": items["item"], "stratum": strata, "k": 4, "arm": arm, "F": F, "B": B, "n": m,
                                    "R": 1, "category": category(F, B, m), "zero_gain": F == B, "boundary": False,
                                    "design": label}))  # fmt: skip
    L, K = letters["full"], key[:, None]
    tiers = _tiers(L, key)
    for stratum in ["all", *(strata.unique() if strata.nunique() > 1 else [])]:
        mask = everyone if stratum == "all" else (strata == stratum).to_numpy()
        for tier in ("unanimous", "high", "medium"):
            share = float((tiers[mask] == tier).mean())
            low, high = wilson(share, int(mask.sum()))
            put(f"{tier}_share", share, stratum=stratum, n=int(mask.sum()), low=low, high=high)
        share = float((tiers[mask] != "").mean())
        put("consensus_share", share, stratum=stratum, n=int(mask.sum()), low=wilson(share, n)[0], high=wilson(share, n)[1])
    if m > 1:
        put("fleiss_kappa", 0.544, n=n - 5, low=0.517, high=0.57)
        put("krippendorff_alpha", 0.54, n=n, low=0.51, high=0.567)
        for a, c in combinations(range(m), 2):
            for kind, null in (("shuffled", 0.26), ("rejudged", 0.34)):
                put("same_wrong_option", 0.68, models=f"{names[a]} | {names[c]}", null_kind=kind, null=null, n=80)
    for j, name in enumerate(names):
        for c in hits:
            for arm in arms:
                share = float(hits[c][arm][:, j].mean())
                low, high = wilson(share, n)
                put("accuracy", share, models=name, level=c, arm=arm, n=n, low=low, high=high)
            lost = float((letters[c][:, j] < 0).mean())
            put(f"{c}_unparseable_rate", lost, models=name, n=n, low=wilson(lost, n)[0], high=wilson(lost, n)[1])
            put(f"{c}_refused_rate", lost if c == "blind" else 0.0, models=name, n=n)
            put(f"{c}_failed_rate", 0.0, models=name, n=n)
            if len(arms) > 1:
                differ = int((hits[c]["judged"][:, j] != hits[c]["exact"][:, j]).sum())
                put("judge_parser_disagreement", differ / n, models=name, level=c, n=differ)
        if blind:
            put("multimodal_gain", float(hits["full"][arms[0]][:, j].mean() - hits["blind"][arms[0]][:, j].mean()), models=name)
    if len(arms) > 1 and blind:
        a, b = counts[0]["category"], counts[1]["category"]
        for (x, y), g in pd.DataFrame({"a": a, "b": b}).groupby(["a", "b"]):
            put("category_flow", len(g) / n, level=f"{x}>{y}", n=len(g))
        put("category_changed", float((a != b).mean()), n=int((a != b).sum()))
    for c in range(4):
        put("key_letter_share", float((key == c).mean()), level=LETTERS[c], null=0.25, n=n)
        put("always_letter_accuracy", float((key == c).mean()), level=LETTERS[c], n=n)
        for j, name in enumerate(names):
            put("model_letter_share", float((L[:, j] == c).mean()), models=name, level=LETTERS[c], n=n)
    put("key_position", p=0.35, p_method="exact", n=n)
    put("longest_option_rate", 0.28, null=0.25, n=n)
    put("saturated_share", float((L == K).all(1).mean()), n=n)
    put("never_solved_share", float((L != K).all(1).mean()), n=n)
    put("backfill_unanimous", 0.1, n=9, note="answers back-filled from the key by judged hits")
    wanted = ["pool", "metric", "arm", "policy", "models", "stratum", "null_kind", "level", "n", "estimate", "low", "high",
              "null", "null_sd", "excess", "excess_low", "excess_high", "p", "p_method", "q", "family", "note"]  # fmt: skip
    counts = pd.concat(counts, ignore_index=True) if counts else pd.DataFrame(columns=["item", "arm", "F", "B", "n", "R"])
    return pd.DataFrame(rows).reindex(columns=wanted), counts, pd.DataFrame(draws)


def _tiers(L: np.ndarray, key: np.ndarray) -> np.ndarray:
    out = []
    for row, k in zip(L, key):
        v = row[row >= 0]
        if len(v) < 2 or (v == k).sum() * 3 > len(v):
            out.append("")
        elif len(set(v)) == 1 and v[0] != k:
            out.append("unanimous")
        else:
            out.append("high" if not (v == k).any() else "medium" if 3 * np.bincount(v[v != k]).max() >= 2 * len(v) else "")
    return np.array(out, object)


def _findings(items, names, letters, key, counts) -> pd.DataFrame:
    rows = []
    for i, tier in enumerate(_tiers(letters["full"], key)):
        v = letters["full"][i]
        severity = "medium" if tier == "unanimous" and (v >= 0).sum() >= 3 else "low" if tier else "info"
        ev = {"key": LETTERS[key[i]], "tier": tier, "votes": {m: LETTERS[c] if c >= 0 else "Z" for m, c in zip(names, v)}}
        rows.append({"item": items["item"][i], "detector": "consensus_error", "arm": "exact", "score": 0.9 if tier else 0.2,
                     "flag": bool(tier), "severity": severity, "evidence": json.dumps(ev, sort_keys=True, ensure_ascii=False),
                     "message": f"{tier}: {(v >= 0).sum()} of {len(v)} voters, none says the key" if tier else ""})  # fmt: skip
    for r in counts.drop_duplicates(["item", "arm"]).itertuples() if len(counts) else ():
        flag = r.category in ("text_only", "conflicting")
        rows.append({"item": r.item, "detector": "visual_dependency", "arm": r.arm, "score": (r.n - r.F + r.B) / 2 / r.n,
                     "flag": flag, "severity": "medium" if r.F == r.B == r.n else "low" if r.category == "conflicting" else "info",
                     "evidence": json.dumps({"F": r.F, "B": r.B, "n": r.n}), "message": f"{r.category}: {r.F} of {r.n} with the image, {r.B} without"})  # fmt: skip
    rows.append({"item": items["item"][1], "detector": "distractor_similarity", "arm": "", "score": 1.0, "flag": True,
                 "severity": "high", "evidence": json.dumps({"pair": ["A", "B"]}), "message": "options A and B are equal"})  # fmt: skip
    return pd.DataFrame(rows)


def _detectors(findings: pd.DataFrame, blind: bool) -> pd.DataFrame:
    rows = []
    for name, signal, pathology, dependent in DETECTORS:
        run = blind or name != "visual_dependency"
        mine = findings[(findings["detector"] == name) & findings["flag"]]
        rows.append({"detector": name, "signal": signal, "pathology": pathology, "judge_dependent": dependent,
                     "state": "run" if run else "not run", "reason": "" if run else "no blind run in this pool",
                     "judged": int(findings.loc[findings["detector"] == name, "item"].nunique()), "flagged": int(mine["item"].nunique()),
                     **{s: int(mine.loc[mine["severity"] == s, "item"].nunique()) for s in ("high", "medium", "low", "info")}})  # fmt: skip
    return pd.DataFrame(rows)
