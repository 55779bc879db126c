"""How much a curation rests on its rules and on its panel: defects planted in copies, providers left out."""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditlib.curation.again import with_models
from auditlib.curation.calibration import measure
from auditlib.curation.diff import recuration_diff
from auditlib.curation.study import Curation
from auditlib.errors import AuditError
from auditlib.synth.plant import plant

#: share of the items that reach the rules which get each kind of defect
SHARES = {"key_error": 0.06, "ambiguous": 0.04, "scorer_risk": 0.03}
#: copies of the pool
COPIES = 3


def planted_defects(c: Curation) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Recall of planted defects by kind, and what each rule flags of them, with the thresholds of the params.

    Returns
    -------
    DataFrames
        label, planted, found, recall, low, high; and the precision of each rule among the planted. Items that may hold
        real defects count as sound, so that the precision is a lower value and the recall, of clean plantings, an
        upper one.

    Raises
    ------
    AuditError
        The runs hold verdicts only, or graded ones.
    """
    reach = c.funnel.decisions["stage"].isin(["", "defects"]).to_numpy()
    if reach.sum() < 20:
        raise AuditError("fewer than 20 items reach the rules", mend="plant in a larger pool")
    part = c.pool.at(reach)
    plantings = []
    for copy in range(COPIES):
        made = plant(part, SHARES, c.source.seed + copy)
        plantings.append((made.pool, made.truth["planted"].to_numpy(dtype=object)))
    found = measure(plantings, c.settings.rules)
    return found.recall.assign(copies=COPIES, flagged_share=found.share), found.precision


def without_providers(c: Curation) -> pd.DataFrame:
    """The first two stages again without the models of each provider: which items are kept and removed otherwise.

    Returns
    -------
    DataFrame
        provider, models (left out), kept, same (share of items decided alike), kappa, newly_kept, newly_removed.
    """
    everyone = np.arange(len(c.pool.models))
    ids = c.pool.items["item"]
    decided = ~c.funnel.decisions["stage"].isin(["text_ablation", "saturation"]).to_numpy()
    before = pd.DataFrame({"item": ids, "removed": ~decided})
    rows = []
    for provider in dict.fromkeys(c.pool.providers[np.union1d(c.pool.panel, c.pool.inspectors)]):
        rest = everyone[c.pool.providers != provider]
        try:
            kept = with_models(c, rest)
        except AuditError:
            continue
        found = recuration_diff(before, pd.DataFrame({"item": ids, "removed": ~kept}))
        rows.append({"provider": provider, "models": len(everyone) - len(rest), "kept": int(kept.sum()),
                     "same": found.same, "kappa": found.kappa, "newly_kept": int((kept & ~decided).sum()),
                     "newly_removed": int((~kept & decided).sum())})  # fmt: skip
    return pd.DataFrame(rows)
