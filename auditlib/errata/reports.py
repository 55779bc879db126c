"""What one source says of one item, and how the reports of all sources become a row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from auditlib.errata.reasons import CANDIDATE, CONFIRMED, DISPUTED, REASONS, REJECTED, TOPICS

UNSPECIFIED = "unspecified"


@dataclass(frozen=True)
class Report:
    """One report.

    Attributes
    ----------
    item, reason : the item, and a code of :data:`~auditlib.errata.reasons.REASONS`.
    status : what the source says of it; detectors only ever say ``candidate``.
    source : ``audit``, ``review``, or the name of an imported file (or of the source that it names).
    people : whether people say so; otherwise saved runs point at it.
    old_key, key : the key that the report was made on, and the one it proposes; empty where it names none.
    says : a short sentence. detectors : whose findings these are. outcome : the readers' words.
    topics : the questions that are answered; other than that of ``reason`` for readers who find an item in order.
    lone : whether the report makes a row where no other source speaks of the item.
    pair : name of a pair of items on which reports must agree; empty where there is none.
    """

    item: str
    reason: str
    status: str
    source: str
    people: bool
    old_key: str = ""
    key: str = ""
    says: str = ""
    detectors: tuple[str, ...] = ()
    outcome: str = ""
    topics: tuple[str, ...] = ()
    lone: bool = True
    pair: str = ""

    def about(self) -> tuple[str, ...]:
        """The questions that this report answers."""
        return self.topics or (REASONS[self.reason].topic,)


def merge(reports: Iterable[Report]) -> dict[tuple[str, str], dict[str, str]]:
    """Reports of all sources to one row per item and question.

    Parameters
    ----------
    reports : in the order of the sources; of detectors, the most severe first.

    Returns
    -------
    dict
        (item, topic) -> proposed_key, reason, evidence, detectors, outcome, status, sources.

    Notes
    -----
    Only people's decisions confirm or reject. Decisions that contradict each other, proposals of different keys and
    people's differing reasons make a row ``disputed`` with no proposed key; so do reports on a pair that change
    different items of it. A confirmed row has a key only where people named it: models' votes make candidates.
    """
    held: dict[tuple[str, str], list[Report]] = defaultdict(list)
    for r in reports:
        for topic in r.about():
            held[r.item, topic].append(r)
    held = {at: said for at, said in held.items() if any(r.lone for r in said)}
    rows = {at: _row(said) for at, said in held.items()}
    for at in _pairs_at_odds(held):
        if rows[at]["status"] in (CANDIDATE, CONFIRMED) and not _reviewed(held[at]):
            others = "; ".join(dict.fromkeys(r.source for r in held[at]))
            rows[at] |= {
                "status": DISPUTED,
                "proposed_key": "",
                "evidence": f"reports on this pair name different items ({others}); {rows[at]['evidence']}",
            }
    order = {t: n for n, t in enumerate(TOPICS)}
    return dict(sorted(rows.items(), key=lambda row: order[row[0][1]]))


def _row(said: list[Report]) -> dict[str, str]:
    status, reason, key, why = _settle(said)
    sentences = dict.fromkeys(_sentence(r, named=len(said) > 1) for r in said if r.says or (r.people and r.key))
    return {
        "proposed_key": key,
        "reason": reason,
        "evidence": "; ".join([why] * bool(why) + list(sentences)),
        "detectors": ", ".join(dict.fromkeys(d for r in said for d in r.detectors)),
        "outcome": "; ".join(dict.fromkeys(r.outcome for r in said if r.outcome)),
        "status": status,
        "sources": ", ".join(dict.fromkeys(r.source for r in said)),
    }


def _sentence(r: Report, *, named: bool) -> str:
    says = r.says if not (r.people and r.key) else "; ".join(filter(None, (f"key {r.key}", r.says)))
    return f"{r.source}: {says}" if named and r.people else says


def _settle(said: list[Report]) -> tuple[str, str, str, str]:
    """Status, reason, proposed key, and the words for a contradiction."""
    decided = [r for r in said if r.status in (CONFIRMED, REJECTED) and r.people]
    verdicts = {r.status for r in decided}
    reason = _reason(decided if verdicts == {CONFIRMED} else said)
    if any(r.status == DISPUTED for r in said):
        return DISPUTED, reason, "", "the reports contradict each other"
    if len(verdicts) > 1:
        return DISPUTED, reason, "", "people decided both ways"
    if verdicts == {REJECTED}:
        return REJECTED, reason, "", ""
    weighed = decided or [r for r in said if r.people]
    reasons = {r.reason for r in weighed} - {UNSPECIFIED}
    if len(reasons) > 1:
        return DISPUTED, reason, "", f"people give different reasons ({', '.join(sorted(reasons))})"
    # what readers confirm, a list may complete: the key that it names for the same reason
    naming = [r for r in said if r.key and (r.people or not decided)]
    if decided:
        naming = [r for r in naming if r.reason in (reason, UNSPECIFIED)]
    keys = sorted({r.key for r in naming})
    if len(keys) > 1:
        return DISPUTED, reason, "", f"different keys are proposed ({', '.join(keys)})"
    return CONFIRMED if decided else CANDIDATE, reason, keys[0] if keys else "", ""


def _reason(said: list[Report]) -> str:
    """People's word first, then the most severe finding; a settled reason before an unsettled one."""
    ranked = sorted(said, key=lambda r: (r.status == REJECTED, r.reason == UNSPECIFIED, not r.people))
    return ranked[0].reason


def _reviewed(said: list[Report]) -> bool:
    return any(r.source == "review" and r.status in (CONFIRMED, REJECTED) for r in said)


def _pairs_at_odds(held: Mapping[tuple[str, str], list[Report]]) -> list[tuple[str, str]]:
    """Rows of pairs on which two sources propose different changes."""
    claims: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    rows: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for at, said in held.items():
        for r in said:
            if r.pair:
                claims[r.pair][r.source][r.item] = r.key or r.reason
                rows[r.pair].append(at)
    odd = [pair for pair, by in claims.items() if len({tuple(sorted(c.items())) for c in by.values()}) > 1]
    return list(dict.fromkeys(at for pair in odd for at in rows[pair]))
