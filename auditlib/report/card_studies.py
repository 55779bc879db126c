"""One line for each study of the pool that was run, with the rows that its numbers stand in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from auditlib.dependence.profile import LABEL_NAMES, LABELS
from auditlib.lookup import Lacking
from auditlib.numerals import count, percent
from auditlib.report.blocks import Run, b
from auditlib.report.card_sources import Sources, to, words_of
from auditlib.report.card_words import Part
from auditlib.studies import STUDIES


def studies(audit: Any, src: Sources) -> Part | None:
    """The part on studies; None where none was run."""
    lines: list[list[Run]] = []
    for study in STUDIES.values():
        result = audit.study(study.name)
        if result is None:
            continue
        try:
            said = _LINES[study.name](result, src) if study.name in _LINES else []
        except Lacking:
            said = []
        lines.append([b(f"{study.title}: "), *(said or ["run"]), "; ",
                      to("more", f"report.html#{study.name}"), "."])  # fmt: skip
    return Part("Studies", lines) if lines else None


def _curation(result: Any, src: Sources) -> list[Run]:
    stages = result.frame("stages")
    turn = np.flatnonzero(stages["mode"].eq("sequential") & stages["state"].eq("run"))
    if not len(turn):
        raise Lacking("no stage of the curation could run")
    first, last = (stages.iloc[i] for i in (turn[0], turn[-1]))
    return [to(count(last["left"]), src.study("curation", "stages", int(turn[-1]))), " of ",
            to(count(first["items_in"]), src.study("curation", "stages", int(turn[0]))), " items are left",
            *([", people’s word is awaited"] if result.facts.get("waiting") else [])]  # fmt: skip


def _dependence(result: Any, src: Sources) -> list[Run]:
    labels, out = result.facts["labels"], []
    words = dict(zip(LABELS, LABEL_NAMES))
    for name, n in labels.items():
        out += [", " if out else "", to(count(n), "dependence/facts.json"), " ", words.get(name, str(name))]
    return out


def _judges(result: Any, src: Sources) -> list[Run]:
    return [to(count(result.facts["calls"]), "judges/facts.json"), " calls of ",
            to(count(len(result.facts["judges"])), "judges/facts.json"), " judges",
            *([", invented" if result.facts.get("synthetic") else ""])]  # fmt: skip


def _sensitivity(result: Any, src: Sources) -> list[Run]:
    calls, items = (to(count(result.facts[k]), "sensitivity/facts.json") for k in ("calls", "items"))
    out: list[Run] = [calls, " calls on ", items, " items"]
    table = result.frames.get("conditions")
    if table is not None and len(table):
        falls = int(table["state"].eq("falls").sum())
        out += [", accuracy falls in ", to(count(falls), f"report.html#{result.name}"), " pairs of model and change"]
    return out


def _calibration(result: Any, src: Sources) -> list[Run]:
    table = result.frame("spike_in")
    mine = np.flatnonzero(table["planted"].eq("wrong key") & table["flag"].eq("unanimous"))
    if not len(mine):
        raise Lacking("no keys were flipped")
    low, high = (int(mine[f(table["recall"].to_numpy(float)[mine])]) for f in (np.argmin, np.argmax))
    shown = [to(percent(table["recall"].iloc[i], 0), src.study("calibration", "spike_in", i)) for i in (low, high)]
    upto = [" to ", shown[1]] if words_of(shown[1]) != words_of(shown[0]) else []
    return ["the unanimous tier finds ", shown[0], *upto, " of keys flipped on purpose, an upper value"]  # fmt: skip


_LINES: dict[str, Callable[[Any, Sources], list[Run]]] = {
    "curation": _curation,
    "dependence": _dependence,
    "judges": _judges,
    "sensitivity": _sensitivity,
    "calibration": _calibration,
}
