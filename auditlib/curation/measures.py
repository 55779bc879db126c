"""What a curation did: the frames and facts that its study leaves on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from auditlib.curation import adjudication_measures, adjudication_yield, composition, groups, halves, ranking, subsets
from auditlib.curation.again import at_thresholds, with_models
from auditlib.curation.checks import planted_defects, without_providers
from auditlib.curation.cost import cost_table
from auditlib.curation.crossfit import cross_fit, membership_drop
from auditlib.curation.from_files import effort_tables, error_tables
from auditlib.curation.funnel import STAGES
from auditlib.curation.listing import curation_findings, decision_list
from auditlib.curation.resolvable import compare_resolvable, resolvable_pairs
from auditlib.curation.rules import RULES
from auditlib.curation.scores import averages, item_clusters, rates, score_table
from auditlib.curation.sensitivity import Thresholds, threshold_grid
from auditlib.curation.study import Curation
from auditlib.errors import AuditError
from auditlib.studies.results import Result

#: billions of parameters from which an open model counts as large
LARGE = 16.0


def measure(c: Curation) -> Result:
    """Every table of a curation, as :class:`~auditlib.studies.results.Result` ``curation``.

    Notes
    -----
    What a pool cannot support is left out, and ``facts["lacking"]`` says why. Grid and cross-fitting repeat the first
    two stages only: judges and people have seen the items of one panel. The grid leaves out the confirmed defects too.
    """
    lacking: dict[str, str] = {}
    frames: dict[str, pd.DataFrame] = {}

    def add(name: str, make: Callable[[], pd.DataFrame | None]) -> None:
        try:
            table = make()
        except AuditError as why:
            lacking[name] = str(why)
            return
        if table is not None:
            frames[name] = table

    f, pool = c.funnel, c.pool
    stages = [s for s in STAGES if s in f.decisions["stage"].unique() or s != "defects" or c.people is not None]
    listed = decision_list(c)
    frames |= {"decisions": listed, "stages": f.stages, "reasons": f.reasons, "overlap": f.overlap,
               "incidence": f.incidence, "rules": _rules(c), "models": _models(c),
               "findings": curation_findings(listed)}  # fmt: skip
    frames["retention"] = composition.retention(pool.source, f.decisions["stage"], stages)
    applies = f.decisions["reasons"].str.split("; ")
    named = sorted({r for r in f.decisions["reason"] if r} | {r for rs in applies for r in rs if r})
    each = {r: np.array([r in rs for rs in applies]) for r in named}
    add("reasons_by_source", lambda: composition.reasons_by_source(pool.source, each, f.decisions["reason"]))
    cluster = item_clusters(pool.items)
    if pool.capability is not None:
        add("composition", lambda: composition.composition(pool.capability, c.kept, cluster))
    add("sources", lambda: composition.source_table(pool, c.kept))
    if f.wrong is not None:
        frames["wrong_removal"] = f.wrong.table
    if c.kept.any() and len(pool.evaluated):
        _scores(c, cluster, add, lacking)
        try:
            frames["quality"], more = _quality(c, cluster, lacking)
            frames |= more
        except AuditError as why:  # one model has no ranking; who leaves where is still known
            lacking["quality"] = str(why)
    try:
        frames["planted"], frames["planted_rules"] = planted_defects(c)
    except AuditError as why:
        lacking["planted"] = str(why)
    add("without_providers", lambda: without_providers(c))
    if c.adjudication is not None:
        _judges(c, add)
    if c.people is not None and len(c.people.summary):
        frames["people"] = c.people.summary
    frames |= error_tables(c) | effort_tables(c)
    return Result("curation", {k: v for k, v in frames.items() if len(v)}, _facts(c, lacking))


def _rules(c: Curation) -> pd.DataFrame:
    """Each rule: what it is for, how many items it flags among those that reach it and on the full pool."""
    f = c.funnel
    part = f.decisions.loc[f.decisions["stage"].isin(["", "defects"])]
    rows = []
    for j, (rule, words) in enumerate(RULES.items()):
        rows.append({"rule": rule, "words": words, "state": f.rules.state[rule], "reached": len(part),
                     "flagged": int(f.rules.flag[:, j].sum()),
                     "flagged_full": int(f.rules_full.flag[:, j].sum())})  # fmt: skip
    return pd.DataFrame(rows)


def _models(c: Curation) -> pd.DataFrame:
    """Each model: provider, group, and the roles that it has."""
    roles = {"inspector": c.pool.inspectors, "panel": c.pool.panel, "evaluated": c.pool.evaluated}
    held = [", ".join(r for r, places in roles.items() if i in places) for i in range(len(c.pool.models))]
    return pd.DataFrame({"model": c.pool.models["model"].to_numpy(dtype=object), "provider": c.pool.providers,
                         "group": groups.model_groups(c.pool.models, LARGE), "roles": held})  # fmt: skip


def _scores(c: Curation, cluster: Any, add: Callable[..., None], lacking: dict[str, str]) -> None:
    pool = c.pool
    add("scores", lambda: score_table(pool, c.kept))
    add("groups", lambda: groups.group_table(pool, c.kept, groups.model_groups(pool.models, LARGE)))
    add("jagged", lambda: groups.jagged_profiles(pool, c.kept, rng=c.source.rng("curation", "jagged")))
    add("cost", lambda: cost_table(pool, c.kept))
    if pool.capability is None:
        lacking["capabilities"] = "the items have no capability"


def _quality(c: Curation, cluster: Any, lacking: dict[str, str]) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Ranking, spread and resolving power before and after, one row per measure, and the tables behind them."""
    pool, kept = c.pool, c.kept
    rate = rates(pool.full.of(pool.evaluated))
    source, names = pool.source, pool.models["model"].to_numpy(dtype=object)[pool.evaluated]
    rng = c.source.rng("curation", "subsets")
    raw = averages(rate, source, pool.capability)
    new = averages(rate[kept], source[kept], None if pool.capability is None else pool.capability[kept])
    compared = ranking.compare_ranks(raw.benchmark, new.benchmark, names)
    change = ranking.spread_change(raw.benchmark, new.benchmark)
    band = subsets.random_subset_band(rate, source, kept, rng=rng, cluster=cluster, draws=c.params.subsets)
    whole = subsets.part_whole(rate, source, kept)
    part = None if cluster is None else cluster[kept]
    split = [halves.split_half(rate, source, rng=rng, cluster=cluster),
              halves.split_half(rate[kept], source[kept], rng=rng, cluster=part)]  # fmt: skip
    calls = [float(pool.full.of(pool.evaluated).trials[m].sum() / pool.full.unit) for m in (slice(None), kept)]
    pairs = [resolvable_pairs(rate, names, stratum=source, cluster=cluster, calls=calls[0]),
             resolvable_pairs(rate[kept], names, stratum=source[kept], cluster=part, calls=calls[1])]  # fmt: skip
    by = band.table.set_index("statistic")
    rows = [
        _row("mean of the benchmark average", change.raw.mean, change.curated.mean, band=by.loc["mean"]),
        _row("SD between models", change.raw.sd, change.curated.sd, change.sd_ratio, by.loc["sd"]),
        _row("coefficient of variation", change.raw.cv, change.curated.cv, change.cv_ratio, by.loc["cv"],
             note=f"ratio of SDs {change.sd_ratio:.3f} over ratio of means {change.mean_ratio:.3f}"),
        _row(f"top {change.raw.ends} minus bottom {change.raw.ends}", change.raw.gap, change.curated.gap,
             change.gap_ratio, by.loc["gap"]),
        _row("Spearman, curated and all items", None, compared.spearman, band=by.loc["spearman"],
             note=f"{compared.within_one} of {compared.models} models within one place, {compared.within_two} within "
                  f"two, the first {compared.top_unchanged} unchanged"),
        _row("Kendall, curated and all items", None, compared.kendall, band=by.loc["kendall"]),
        _row("Spearman, curated and removed items", None, whole.spearman_removed, band=by.loc["spearman_rest"],
             note="no item is on both sides"),
        _row("Pearson, less the shared items", None, whole.corrected,
             note=f"{whole.pearson:.3f} with them; containment alone gives {whole.by_chance:.3f}"),
        _row("split-half reliability", split[0].reliability, split[1].reliability, note="Spearman-Brown"),
        _row("the same at 1,000 items", split[0].per_1000, split[1].per_1000),
        _row("resolvable pairs of models", pairs[0].resolvable, pairs[1].resolvable, band=by.loc["resolvable"],
             note=f"of {pairs[0].pairs}, Benjamini-Hochberg at 5%"),
        _row("resolvable pairs per 1,000 calls", pairs[0].per_1000_calls, pairs[1].per_1000_calls),
    ]  # fmt: skip
    member = np.isin(pool.evaluated, pool.panel)
    if member.any() and (~member).any():
        fall = membership_drop(rate, source, kept, member)
        rows.append(_row("fall of panel members and of others", fall["drop_members"], fall["drop_others"],
                         note=f"{fall['members']} members, {fall['others']} others; not raw and curated"))  # fmt: skip
    more = {"ranks": compared.table, "band": band.table, "pairs": pairs[1].table,
            "pairs_changed": pd.DataFrame([compare_resolvable(*pairs)])}  # fmt: skip
    try:
        fitted = cross_fit(pool, lambda models: with_models(c, models), rng=c.source.rng("curation", "crossfit"))
        rows.append(_row("cross-fitted membership effect", None, fitted.effect, low=fitted.low, high=fitted.high,
                         note=f"{fitted.splits} splits of the providers; negative: members look worse"))  # fmt: skip
        more |= {"crossfit": fitted.table, "crossfit_halves": fitted.halves}
    except AuditError as why:
        lacking["crossfit"] = str(why)
    at, wrong = at_thresholds(c)
    more["grid"] = threshold_grid(at, rate, source, cluster=cluster,
                                  base=Thresholds(str(c.params.text_binary), str(c.params.text_other),
                                                  str(c.params.saturation)),
                                  wrong_removals=wrong,
                                  calls=pool.full.of(pool.evaluated).trials.sum(axis=1) / pool.full.unit)  # fmt: skip
    return pd.DataFrame(rows), more


def _row(measure: str, raw: float | None, curated: float, ratio: float | None = None, band: Any = None, *,
         low: float = np.nan, high: float = np.nan, note: str = "") -> dict[str, Any]:  # fmt: skip
    """One measure; ``random_*`` is the central 95% of random subsets of the same size and source mix."""
    random = {"random_low": np.nan, "random_median": np.nan, "random_high": np.nan}
    if band is not None:
        random = {"random_low": band["low"], "random_median": band["median"], "random_high": band["high"]}
    return {"measure": measure, "raw": np.nan if raw is None else float(raw), "curated": float(curated),
            "ratio": np.nan if ratio is None else float(ratio), **random, "low": low, "high": high,
            "note": note}  # fmt: skip


def _judges(c: Curation, add: Callable[..., None]) -> None:
    a = c.adjudication
    assert a is not None
    rng = c.source.rng("curation", "judges")
    truth = None if c.people is None else {i: x for i, x in c.people.label.items() if x != "cannot_tell"}
    add("votes", lambda: a.votes)
    add("adjudicated", lambda: a.decisions)
    add("votes_coverage", lambda: a.coverage)
    add("herding", lambda: adjudication_measures.herding(a.votes, rng=rng))
    add("rounds", lambda: adjudication_measures.by_round(a.votes, truth, rng=rng))
    add("judges", lambda: adjudication_measures.confusion(a.votes, truth).accuracy)
    add("confusion", lambda: adjudication_measures.confusion(a.votes, truth).table)
    providers = dict(zip(c.pool.models["model"], c.pool.providers))
    add("judges_left_out", lambda: adjudication_yield.leave_out(a.votes, providers))
    add("judges_cost", lambda: adjudication_yield.cost(a.votes, a.decisions, people=truth))
    flags = c.funnel.decisions.loc[c.funnel.decisions["recalled"], ["item", *RULES]]
    add("rule_precision", lambda: adjudication_yield.rule_precision(flags, a.decisions, truth))


def _facts(c: Curation, lacking: dict[str, str]) -> dict[str, Any]:
    waiting = {k: v for k, v in (c.waiting or {}).items()
               if not (k == "adjudication" and c.adjudication) and not (k == "people" and c.people)}  # fmt: skip
    names = c.pool.models["model"].to_numpy(dtype=object)
    return {
        "items": len(c.pool.items),
        "kept": int(c.kept.sum()),
        "roles": {r: names[getattr(c.pool, r)].tolist() for r in ("inspectors", "panel", "evaluated")},
        "judges": sorted(c.adjudication.votes["judge"].unique()) if c.adjudication else [],
        "states": c.funnel.states,
        "waiting": waiting,
        "wrong_removals": "" if c.funnel.wrong is None else c.funnel.wrong.sentence,
        "lacking": lacking,
        "settings": c.params.model_dump(mode="json"),
    }
