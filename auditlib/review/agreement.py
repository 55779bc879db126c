"""How far readers agree with each other, and with what is known of the probes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.errors import AuditError
from auditlib.review.packets import CLEAN, PLANTED, Packet
from auditlib.review.task import CANNOT_TELL, CONFIRMED
from auditlib.stats.agreement import Agreement, cohen_kappa, fleiss_kappa, krippendorff_alpha
from auditlib.stats.intervals import wilson

AGREEMENT = ("view", "rows", "of", "statistic", "readers", "n", "observed", "estimate", "low", "high", "note")
PROBES = ("reader", "measure", "hits", "n", "estimate", "low", "high", "cannot_tell")


def agreement(packet: Packet, table: pd.DataFrame, *, rng: np.random.Generator, draws: int = 20_000) -> pd.DataFrame:
    """Kappas of the first readings; third readings are left out, since they exist only where two readers differ.

    Parameters
    ----------
    table : columns row, reader, label.
    rng : for the percentile bootstrap over rows.

    Returns
    -------
    DataFrame
        One row per view, kind of rows (``all``; ``without probes`` where the key is open), category (``label`` or
        ``outcome``) and statistic: Fleiss' kappa of rows with all first readings (readers interchangeable),
        Krippendorff's alpha of all rows with two, Cohen's kappa of each pair of readers.
    """
    first = packet.assignment[packet.assignment["role"].eq("first")]
    mine = first.merge(table[["row", "reader", "label"]], on=["row", "reader"], how="left")
    views = packet.rows.set_index("row")["view"]
    probes: set[str] = set()
    if packet.key is not None:
        probes = set(packet.key.rows.loc[packet.key.rows["kind"].isin([CLEAN, PLANTED]), "row"])
    out = []
    for view in packet.task.views:
        here = mine[mine["row"].map(views).eq(view.name)]
        parts = [("all", here)] + ([("without probes", here[~here["row"].isin(probes)])] if probes else [])
        for words, part in parts:
            for of in ("label", "outcome"):
                code = _codes(packet, of)
                base = {"view": view.name, "rows": words, "of": of}
                out += [base | r for r in _kappas(part, code, len(set(code.values())), view.readers, rng, draws)]
    return pd.DataFrame(out, columns=list(AGREEMENT))


def _codes(packet: Packet, of: str) -> dict[str, int]:
    values = packet.task.values if of == "label" else [packet.task.outcome_of[v] for v in packet.task.values]
    place = {v: i for i, v in enumerate(dict.fromkeys(values))}
    return {label: place[v] for label, v in zip(packet.task.values, values)}


def _kappas(part: pd.DataFrame, code: dict[str, int], levels: int, readers: int, rng: np.random.Generator, draws: int
            ) -> Iterator[dict[str, Any]]:  # fmt: skip
    if not len(part):
        return
    coded = part.assign(code=part["label"].map(code).fillna(-1).astype(int))
    slot = coded.groupby("row", sort=False).cumcount()
    slots = coded.assign(slot=slot).pivot(index="row", columns="slot", values="code").to_numpy(dtype=int)
    wide = coded.pivot(index="row", columns="reader", values="code").fillna(-1).astype(int)
    who = ", ".join(sorted(wide.columns))
    if readers > 1:
        yield _row("fleiss_kappa", who, fleiss_kappa(slots, levels, rng=rng, draws=draws))
        yield _row("krippendorff_alpha", who, krippendorff_alpha(wide.to_numpy(), levels, rng=rng, draws=draws))
    for a, b in combinations(sorted(wide.columns), 2):
        x, y = wide[a].to_numpy(), wide[b].to_numpy()
        if ((x >= 0) & (y >= 0)).any():
            yield _row("cohen_kappa", f"{a}, {b}", cohen_kappa(x, y, levels, rng=rng, draws=draws))


def _row(statistic: str, readers: str, found: Agreement) -> dict[str, Any]:
    note = found.note or (found.interval.method if np.isnan(found.interval.low) else "")
    ends = {"low": found.interval.low, "high": found.interval.high, "note": note}
    return {"statistic": statistic, "readers": readers, "n": found.n, "observed": found.observed,
            "estimate": found.estimate} | ends  # fmt: skip


def probe_accuracy(packet: Packet, table: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """How readers, and the reading as a whole, deal with rows whose truth is known.

    Parameters
    ----------
    table : columns row, reader, label. found : of :func:`~auditlib.review.outcomes.outcomes`.

    Returns
    -------
    DataFrame
        For each reader, ``all readers`` and ``final outcome``: ``sensitivity`` (damaged rows called defective),
        ``right kind`` (with the expected label) and ``specificity`` (sound rows not called defective and not left
        undecided), with Wilson intervals. ``cannot_tell`` counts as not found and is given beside. Readings of the
        final outcome that are still open are left out.

    Raises
    ------
    AuditError
        The key is sealed.
    """
    if packet.key is None:
        raise AuditError("the key to the probes is sealed", mend="load the packet with open_key=True")
    key = packet.key.rows.set_index("row")
    mine = table.assign(kind=table["row"].map(key["kind"]), expected=table["row"].map(key["expected"]),
                        outcome=table["label"].map(packet.task.outcome_of))  # fmt: skip
    final = found[found["outcome"].ne("open")]
    groups = [(who, mine[mine["reader"].eq(who)]) for who in packet.readers]
    out = []
    for who, part in [*groups, ("all readers", mine), ("final outcome", final)]:
        planted, clean = part[part["kind"].eq(PLANTED)], part[part["kind"].eq(CLEAN)]
        for measure, rows, hit in (
            ("sensitivity", planted, planted["outcome"].eq(CONFIRMED)),
            ("right kind", planted, planted["label"].eq(planted["expected"])),
            ("specificity", clean, clean["outcome"].eq("rejected")),
        ):
            out.append(_share(who, measure, hit.to_numpy(bool), int(rows["outcome"].eq(CANNOT_TELL).sum())))
    return pd.DataFrame(out, columns=list(PROBES))


def _share(reader: str, measure: str, hit: NDArray[np.bool_], cannot: int) -> dict[str, Any]:
    hits, n = int(hit.sum()), len(hit)
    interval = wilson(hits, n)
    return {"reader": reader, "measure": measure, "hits": hits, "n": n, "estimate": hits / n if n else float("nan"),
            "low": interval.low, "high": interval.high, "cannot_tell": cannot}  # fmt: skip
