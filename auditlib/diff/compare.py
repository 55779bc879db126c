"""Two sides compared: one frame per question, and notes on what could not be compared."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pandas as pd

from auditlib.diff.findings import FINDINGS, finding_changes, not_run
from auditlib.diff.items import item_changes
from auditlib.diff.paired import (
    MOVES,
    PAIRED,
    Shared,
    category_changes,
    changed_statistics,
    paired_numbers,
    saved_moves,
    shared,
)
from auditlib.diff.ranks import CLAIMS, RANKS, rank_changes
from auditlib.diff.settings import setting_changes
from auditlib.diff.sides import AUDIT, Side, refuse_strangers


@dataclass(frozen=True, repr=False)
class Difference:
    """What differs between two sides.

    Attributes
    ----------
    items, categories, findings, statistics, paired, ranks, claims : frames; see the functions that make them. All but
        ``paired`` and ``ranks`` hold changes only. Of two datasets only ``items`` has rows.
    shared_items, shared_models : how many items, and which models, both sides have.
    left_out : model -> the side that alone has it. notes : what was not compared, and why.
    settings : the audits' settings that differ, as sentences' parts; they are no difference of their own.
    """

    a: Side
    b: Side
    items: pd.DataFrame
    shared_items: int
    categories: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(MOVES)))
    findings: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(FINDINGS)))
    statistics: pd.DataFrame = field(default_factory=pd.DataFrame)
    paired: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(PAIRED)))
    ranks: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(RANKS)))
    claims: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(CLAIMS)))
    shared_models: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether nothing differs: items, models, findings, estimates, and the scores on shared items.

        Intervals and p values that rest on random draws differ between pools of different names, and do not count.
        """
        moved = self.paired[["difference", "gained", "lost"]].fillna(0).astype(float).ne(0).to_numpy().any()
        told = self.statistics["change"].eq("estimate").any() if len(self.statistics) else False
        frames = (self.items, self.categories, self.findings, self.claims)
        return not (any(len(f) for f in frames) or self.left_out or moved or told)

    def frames(self) -> dict[str, pd.DataFrame]:
        """The frames by the name of their file."""
        names = ("items", "categories", "findings", "statistics", "paired", "ranks", "claims")
        return {n: getattr(self, n) for n in names}


def compare(a: Side, b: Side) -> Difference:
    """Compare two audits of one benchmark, or two versions of its dataset.

    Raises
    ------
    AuditError
        They are of different kinds or benchmarks, or share no item.
    """
    refuse_strangers(a, b)
    changes, notes = item_changes(a.items, b.items)
    both = set(a.items["item"].astype(str)) & set(b.items["item"].astype(str))
    if a.kind != AUDIT or a.audit is None or b.audit is None:
        return Difference(a, b, changes, len(both), notes=tuple(notes))
    mine, theirs = (s.audit.models["model"].astype(str).tolist() for s in (a, b))
    models = [m for m in theirs if m in set(mine)]
    left_out = {m: a.label for m in mine if m not in set(theirs)} | {m: b.label for m in theirs if m not in set(mine)}
    notes += not_run(a.audit, b.audit)
    found = finding_changes(a.audit, b.audit, both)
    if left_out:
        notes.append("findings and statistics of either side are over its own models; the paired numbers, categories "
                     "and ranks are over the shared ones")  # fmt: skip
    made = Difference(a, b, changes, len(both), findings=found, shared_models=tuple(models), left_out=left_out,
                      statistics=changed_statistics(a.audit.statistics, b.audit.statistics),
                      notes=tuple(notes),
                      settings=setting_changes(a.audit.params, b.audit.params))  # fmt: skip
    return _with_runs(made)


def _with_runs(d: Difference) -> Difference:
    """The comparison with all that rests on single replies, where both sides' runs are known."""
    pools = [s.runs for s in (d.a, d.b)]
    missing = [why for _, why in pools if why]
    if missing:
        notes = (*d.notes, *(f"{why}: accuracies and ranks are not compared" for why in missing))
        if d.left_out or d.a.audit is None or d.b.audit is None:
            return replace(d, notes=(*notes, "the models differ: categories are not compared"))
        return replace(d, notes=notes, categories=saved_moves(d.a.audit.counts, d.b.audit.counts))
    s: Shared = shared(pools[0][0], pools[1][0])
    if not s.models:
        return replace(d, notes=(*d.notes, "no model is on both sides: accuracies and ranks are not compared"))
    seed = pools[1][0].seed
    board = rank_changes(s, seed)
    return replace(d, categories=category_changes(s), paired=paired_numbers(s, seed), ranks=board.board,
                   claims=board.claims, notes=(*d.notes, *board.notes))  # fmt: skip
