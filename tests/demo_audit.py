"""Real audits of small simulated pools, for tests of figures, tables and reports."""

from __future__ import annotations

from functools import cache

import numpy as np
from builders import params, runs

import auditlib
from auditlib.frames import LETTERS
from auditlib.reading import pool_of

#: what a hostile item holds: script, typst code, LaTeX, a spreadsheet formula, emoji, right-to-left text, an override
HOSTILE = {
    "question": 'Q <script>alert(1)</script> #read("x") $ _ | & % \\input{x} 😀 🚀 שלום עולם مرحبا \u202etxt',
    "options": ['=HYPERLINK("http://x.invalid","y")', "<b>bold</b>", "100% & $x_1$ | pipe", "⟨plain⟩ `tick` *star*"],
    "reply": "C. <img src=x onerror=alert(1)> =cmd|' /C calc'!A0 #read(\"x\") {} \\end{document} 🚀",
}
HOSTILE_MODEL = "<m>_$&%#"
FAST = {"bootstrap": 200, "permutations": 99, "splits": 2}


@cache
def demo(
    n: int = 120,
    models: int = 3,
    strata: int = 4,
    *,
    blind: bool = True,
    judged: bool = True,
    design: bool = False,
    hostile: bool = False,
    seed: int = 0,
    long_names: bool = False,
) -> auditlib.Audit:
    """The audit of a simulated pool of ``n`` items; every third model loses letters, more so without the image.

    With ``hostile``, item 0 holds :data:`HOSTILE` and every model votes C against the key A, and a model, a category
    and the benchmark have hostile names.
    """  # fmt: skip
    rng = np.random.default_rng(seed)
    stem = "some-vendor/A-Rather-Long-Model-Name-Instruct-" if long_names else "Model-"
    names = [f"{stem}{LETTERS[j % 25]}{j // 25 or ''}" for j in range(models)]
    labels = [f"{'a rather long category name, number ' if long_names else 'category '}{i + 1}" for i in range(strata)]
    if hostile:
        names[0] = HOSTILE_MODEL
        labels[:1] = ["<i>& $_ {x}"] if labels else []
    easy, ability = rng.normal(0, 1.1, n), rng.normal(0.9, 0.4, models)
    key = rng.integers(0, 4, n)
    key[0] = 0
    options = [[f"choice {i} {w}" for w in ("alpha", "beta", "gamma", "delta")] for i in range(n)]
    questions = [f"What is shown in picture {i}?" for i in range(n)]
    if hostile:
        questions[0], options[0] = HOSTILE["question"], HOSTILE["options"]
    replies, verdicts = {}, {}
    for condition in ("full", "blind") if blind else ("full",):
        level = easy[:, None] + ability if condition == "full" else 0.7 * easy[:, None] - 1.4 + 0 * ability
        right = rng.random((n, models)) < 1 / (1 + np.exp(-level))
        said = np.where(right, key[:, None], (key[:, None] + rng.choice([1, 1, 2, 3], right.shape)) % 4)
        lost = rng.random(right.shape) < (0.3 if condition == "blind" else 0.04) * (np.arange(models) % 3 == 2)
        refused = "I cannot see the image, so I cannot answer."
        texts = np.where(
            lost, np.where(rng.random(lost.shape) < 0.5, refused, "hard to say"), np.array(list("ABCD"))[said]
        )
        for j, name in enumerate(names):
            replies[name, condition] = [str(t) for t in texts[:, j]]
            verdicts[name, condition] = [float(v) for v in right[:, j] & (~lost[:, j] | (rng.random(n) < 0.5))]
            if hostile and condition == "full":
                replies[name, condition][0], verdicts[name, condition][0] = HOSTILE["reply"], 0.0
    stratum = [labels[i * strata // n] for i in range(n)] if strata else None
    more = {"design": ["VS" if i % 3 == 0 else "VD" for i in range(n)]} if design else {}
    read = runs(replies, [LETTERS[k] for k in key], options=options, judged=verdicts if judged else None,
                stratum=stratum, question=questions, **more)  # fmt: skip
    settings = FAST | ({"design": {"column": "design", "positive": "VD"}} if design else {})
    benchmark = "<Demo> & $Bench_ #1" if hostile else "DemoBench"
    pool = pool_of(
        read, params(pool="demo", benchmark=benchmark, judge="demo-judge" if judged else None, audit=settings)
    )
    return auditlib.audit(pool)


@cache
def bare(n: int = 200, models: int = 6) -> auditlib.Audit:
    """The audit of bare hits: no items, letters, texts or categories."""
    rng = np.random.default_rng(1)
    full, blind = (rng.random((n, models)) < p for p in (0.7, 0.3))
    pool = auditlib.Pool.from_hits(full, blind, name="bare")
    return auditlib.audit(pool)
