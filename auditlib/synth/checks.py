"""Tables that only embedded pools have: published numbers, planted truth."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from auditlib.auditing import Audit
from auditlib.paths import RunPaths, atomic

TITLES = {"published": "published numbers", "truth": "planted faults"}


def checks_of(audit: Audit) -> dict[str, Callable[[Audit], pd.DataFrame]]:
    """File stem -> function, for the pools whose right answer is known; empty for every other pool."""
    from auditlib.synth.embedded import is_counts, is_table
    from auditlib.synth.planted import confusion
    from auditlib.synth.published import compare

    name = audit.params.data.embedded if audit.params else None
    if name is None or is_counts(name) or is_table(name) or audit.steps["limit"] is not None:
        return {}
    return {"truth": confusion} if name == "tinysee" else {"published": compare}


def write_checks(audit: Audit, paths: RunPaths) -> dict[str, pd.DataFrame]:
    """Write ``published.csv`` or ``truth.csv`` beside the audit, and remove one that no longer applies.

    Returns
    -------
    dict : title -> table; empty for a pool whose right answer nobody knows.
    """
    made = checks_of(audit)
    tables = {}
    for stem, title in TITLES.items():
        target = paths.folder / f"{stem}.csv"
        if stem not in made:
            target.unlink(missing_ok=True)
            continue
        tables[title] = made[stem](audit)
        with atomic(target) as temporary:
            tables[title].to_csv(temporary, index=False, float_format="%.12g", lineterminator="\n")
    return tables
