"""What a maintainer may say and do: one line per claim, which says what is missing where the claim is not made."""

from __future__ import annotations

from typing import Any

from auditlib.lookup import one
from auditlib.numerals import count, interval, p_says, points, pp
from auditlib.report.blocks import Run, b
from auditlib.report.card_sources import Sources, to
from auditlib.report.card_words import reasons
from auditlib.summary import headline_row


def recommendations(audit: Any, src: Sources, made: dict[str, Any]) -> list[list[Run]]:
    """Lines of runs, the most important first."""
    lines = [_excess(audit, src, made), _candidates(audit, src, made), _keys(audit, src, made),
             _judge(audit, src, made), _where(made), _design(made)]  # fmt: skip
    return [line for line in lines if line]


def _excess(audit: Any, src: Sources, made: dict[str, Any]) -> list[Run]:
    r, claim = headline_row(audit), made["excess over chance"]
    if r is None:
        return [b("Make a run without the image. "), "Until then nothing can be said of the gain from it; the report "
                "holds the command and a forecast of the cost."]  # fmt: skip
    if not claim.made:
        return [b("Quote no excess over chance: "), *reasons(claim.missing, src), "."]
    words = f"zero gain, null {'within categories' if r['null_kind'] == 'within' else 'pooled'}"
    at = src.headline(words, r)
    return [b("Quote the excess, not the share: "), to(points(r["excess"]), at), " ",
            to(interval(r["excess_low"], r["excess_high"], pp), at), ", ", to(p_says(r["p"]), at),
            ", with the names of the models."]  # fmt: skip


def _candidates(audit: Any, src: Sources, made: dict[str, Any]) -> list[Run]:
    u, claim = one(audit.statistics, "unanimous_share", models="all", stratum="all", level=""), made["label conflicts"]
    if u is None:
        return []
    if not claim.made:
        return [b("Quote no share of label conflicts: "), *reasons(claim.missing, src), "."]
    n = round(u["estimate"] * u["n"])
    if not n:
        return [b("No key has all votes against it. "), "That is no proof that all keys are right."]
    return [b("Review "), to(count(n), src.row(u)), f" item{'s' * (n != 1)} on which all votes name one other option, "
            "first in ", to("flagged.md", "flagged.md"), ", with the image before you."]  # fmt: skip


def _keys(audit: Any, src: Sources, made: dict[str, Any]) -> list[Run]:
    found = audit.study("calibration")
    if found is not None and "first" in found.frames:
        return []
    return [b("State no share of wrong keys: "), *reasons(made["share of wrong keys"].missing, src), "."]


def _judge(audit: Any, src: Sources, made: dict[str, Any]) -> list[Run]:
    claim = made["conclusions without the judge"]
    if claim.made:
        return [b("Either scoring can be quoted: "), "judge and parser are equivalent on share and excess."]
    if audit.arm != "judged":
        return []
    return [b("Name the judge with every number: "), *reasons(claim.missing, src), "."]


def _where(made: dict[str, Any]) -> list[Run]:
    if made["where the excess is"].made:
        return [b("Rewrite first "), "in the categories named above; each item by hand, never by the flag alone."]
    return []


def _design(made: dict[str, Any]) -> list[Run]:
    claim = made["design labels"]
    if claim.made and "is not shown to recover" in claim.sentence:
        return [b("Do not sort items by visual gain: "), "it is not shown to recover the design labels."]
    return []
