"""Put planted changes to a live judge: scores of gold and changed answers, comparisons of the two in both orders.

Requests go through the inference layer like any other: a stored reply is never paid twice, a stopped run goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib import frames
from auditlib.calls import Generation, Part, Picture, Reply, Request
from auditlib.errors import AuditError
from auditlib.judges.calls import EFFECTS, Calls, calls_frame, stated
from auditlib.judges.dimensions import DIMENSIONS
from auditlib.judges.outcomes import GOLD, PERTURBED
from auditlib.judges.requests import NO_REPLY, Decision, DecisionSettings, calls_of, plan_decisions
from auditlib.judges.verdicts import written_score
from auditlib.readers import cells, files

PURPOSE = "scoring"
#: what the judge may be shown of the image
SHOWN = ("shown", "withheld", "swapped")
_TASK = "Below are a request and an answer to it. How good is the answer?"
_REFERENCE = (
    "Below are a request, a reference answer that is right, and an answer to be judged. How good is the answer, "
    "measured by the reference?"
)
_RUBRIC = (
    " {high:g}: everything it says is right and nothing that matters is missing. {low:g}: it is wrong or useless. Each "
    "fault lowers the score, a small one by little."
)
_AXIS = " Look for one kind of fault above all: that the answer {what}."
_STYLES = {"plain": (), "explained": (), "rubric": (_RUBRIC,), "axis": (_AXIS,), "axis_rubric": (_AXIS, _RUBRIC)}
_EXPLAIN = " Explain your score first, in a few sentences."


@dataclass(frozen=True)
class Change:
    """A gold output and its planted change, as a row of the sheet.

    Attributes
    ----------
    prompt, gold, perturbed : texts. pictures : that the request is about. cluster : image that changes share.
    """

    instance: str
    dimension: str
    effect: str
    prompt: str
    gold: str
    perturbed: str
    severity: float | None = None
    cluster: str = ""
    pictures: tuple[Picture, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.instance} / {self.dimension}"


@dataclass(frozen=True)
class ScoreSettings:
    """How a judge scores.

    Attributes
    ----------
    paradigm : ``single``, or ``reference``: the gold output is shown beside the one to be judged.
    style : ``plain``, ``explained``, ``rubric``, ``axis`` (the kind of fault is named), ``axis_rubric``.
    image : ``shown``, ``withheld``, or ``swapped`` (the picture of another cluster).
    repeats : scores of each gold output; two or more tell how often a strict inequality fires by chance.
    scale : lowest and highest score.
    """

    model: str
    paradigm: str = "single"
    style: str = "plain"
    image: str = "shown"
    repeats: int = 2
    scale: tuple[float, float] = (1.0, 5.0)
    generation: Generation = field(default_factory=lambda: Generation(max_tokens=512))

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("paradigm", self.paradigm, ("single", "reference")),
            ("style", self.style, tuple(_STYLES)),
            ("image", self.image, SHOWN),
        ):
            if value not in allowed:
                raise ValueError(f"{name} is {value!r}, expected one of {', '.join(allowed)}")

    @property
    def version(self) -> str:
        """Name of the prompt."""
        return f"{self.paradigm}-score-{self.style}-1"


@dataclass(frozen=True)
class PlannedScore:
    """A request and the call that its reply is."""

    request: Request
    change: Change
    which: str
    settings: ScoreSettings
    repeat: int


def read_changes(
    path: str | Path, pictures: Callable[[str, str, int], tuple[Picture, ...]]
) -> tuple[list[Change], list[dict[str, Any]]]:
    """Planted changes with their texts, from a sheet.

    Rows that people found wrong (``valid`` no), and those whose text is the gold one, are not put to a judge; coverage
    rows count them.

    Parameters
    ----------
    pictures : (cell ``image``, cluster, row) -> pictures of the request.

    Raises
    ------
    AuditError
        A column is missing, a text is empty, an effect unknown, an instance twice for one dimension.
    """
    path = Path(path)
    table = files.open_table(path)
    needed = ("instance", "dimension", "effect", "prompt", "gold", "perturbed")
    if lost := [c for c in needed if c not in table]:
        raise AuditError(f"there is no column {lost[0]!r}: the changes cannot be shown to a judge", file=path, row=1,
                         mend=f"give {', '.join(needed)}")  # fmt: skip
    ids, out, seen, gone = cells.item_ids(table["instance"]), [], set(), Counter[str]()
    for at, name, row in zip(table.index, ids, table.to_dict("records")):
        place = {"file": path, "row": int(at) + 2}
        if empty := [c for c in needed if not row[c].strip()]:
            raise AuditError(f"{empty[0]} is empty", **place, mend="give the text, or leave the row out")
        if row["effect"].strip() not in EFFECTS:
            raise AuditError(f"effect is {row['effect']!r}", **place, mend=f"write {' or '.join(EFFECTS)}")
        if (name, row["dimension"]) in seen:
            raise AuditError(f"instance {name!r} stands twice", **place, mend="give each instance and dimension once")
        seen.add((name, row["dimension"]))
        if row.get("valid", "").strip().casefold() in ("no", "n", "false", "0"):
            gone["planted changes that people found not to be what they should be: not put to a judge"] += 1
            continue
        if row["gold"].split() == row["perturbed"].split():
            gone["planted changes whose text is the gold one: not put to a judge"] += 1
            continue
        image = row.get("image", "").strip()
        cluster = row.get("cluster", "").strip() or image or name
        said = pd.to_numeric(row.get("severity", ""), errors="coerce")
        out.append(Change(str(name), row["dimension"].strip(), row["effect"].strip(), row["prompt"], row["gold"],
                          row["perturbed"], None if pd.isna(said) else float(said), cluster,
                          pictures(image, cluster, int(at) + 2)))  # fmt: skip
    return out, [frames.coverage_row("excluded", n=n, run=path.name, reason=why) for why, n in gone.items()]


def swapped(changes: Sequence[Change]) -> list[Change]:
    """Each change with the pictures of the next cluster that has others; changes without such are left out."""
    own = {c.cluster: c.pictures for c in changes if c.pictures}
    names, hashes = list(own), {n: tuple(p.sha256 for p in own[n]) for n in own}
    out = []
    for c in changes:
        if c.cluster not in own:
            continue
        at = names.index(c.cluster)
        other = next((n for n in names[at + 1 :] + names[:at] if hashes[n] != hashes[c.cluster]), None)
        if other is not None:
            out.append(replace(c, pictures=own[other]))
    return out


def plan_scores(changes: Iterable[Change], settings: ScoreSettings) -> list[PlannedScore]:
    """Requests for the scores of gold and changed outputs; equal ones (a gold that several changes share) are one call.

    Changes whose request has no picture are left out where the image is to be withheld or swapped.
    """
    given = list(changes)
    if settings.image != "shown":
        given = swapped(given) if settings.image == "swapped" else [c for c in given if c.pictures]
    out = []
    for change in given:
        for which, text in ((GOLD, change.gold), (PERTURBED, change.perturbed)):
            for repeat in range(settings.repeats if which == GOLD else 1):
                request = _request(change, text, settings, repeat)
                out.append(PlannedScore(request, change, which, settings, repeat))
    return out


def _request(change: Change, text: str, s: ScoreSettings, repeat: int) -> Request:
    low, high = s.scale
    kind = DIMENSIONS.get(change.dimension)
    what = kind.what if kind else f"has the fault {change.dimension.replace('_', ' ')!r}"
    task = (_REFERENCE if s.paradigm == "reference" else _TASK) + "".join(
        t.format(low=low, high=high, what=what) for t in _STYLES[s.style]
    )
    task += _EXPLAIN if s.style == "explained" else ""
    reference = f"\n\nReference answer:\n<<<\n{change.gold}\n>>>" if s.paradigm == "reference" else ""
    close = f"End with one line of this form, with a number from {low:g} (worst) to {high:g} (best):\nScore: <number>"
    parts: list[Part] = [f"{task}\n\nRequest: {change.prompt}", *(() if s.image == "withheld" else change.pictures),
                         f"{reference}\n\nAnswer:\n<<<\n{text}\n>>>\n\n{close}".lstrip("\n")]  # fmt: skip
    return Request(item=change.cluster, model=s.model, condition="judge", parts=tuple(parts), generation=s.generation,
                   sample=repeat, prompt_version=s.version, purpose=PURPOSE)  # fmt: skip


def score_calls(planned: Iterable[PlannedScore], answer: Callable[[str], Reply | None]) -> Calls:
    """Replies to :func:`plan_scores` as judge calls; calls that were never made are counted in the coverage."""
    rows: list[dict[str, Any]] = []
    lost: dict[str, int] = {}
    for p in planned:
        reply = answer(p.request.key)
        if reply is None:
            lost[p.settings.model] = lost.get(p.settings.model, 0) + 1
            continue
        gone = reply.outcome in NO_REPLY
        state, score = ("no_reply", None) if gone else written_score(reply.text, p.settings.scale)
        rows.append({**_facts(p.change, p.settings.image), "judge": p.settings.model, "paradigm": p.settings.paradigm,
                     "style": p.settings.style, "shown": (p.which,), "repeat": p.repeat, "state": state,
                     "score": score, "raw": reply.text, "tokens_in": reply.tokens_in,
                     "tokens_out": reply.tokens_out})  # fmt: skip
    return _calls(rows, lost)


def _facts(change: Change, image: str) -> dict[str, Any]:
    return {"instance": change.instance, "cluster": change.cluster, "dimension": change.dimension,
            "effect": change.effect, "severity": change.severity,
            "image": image if change.pictures else "none"}  # fmt: skip


def _calls(rows: list[dict[str, Any]], lost: dict[str, int]) -> Calls:
    table = calls_frame(rows)
    coverage = stated(table) if len(table) else []
    coverage += [frames.coverage_row("not run", n=n, model=m, reason="calls that were not made")
                 for m, n in lost.items()]  # fmt: skip
    return Calls(table, frames.frame("coverage", coverage))


def compare(
    changes: Sequence[Change], settings: DecisionSettings, image: str = "shown"
) -> tuple[list, Callable[[Callable[[str], Reply | None]], Calls]]:
    """Comparisons of gold and changed outputs in both orders.

    Parameters
    ----------
    settings : of paradigm ``pairwise``. image : as of :class:`ScoreSettings`.

    Returns
    -------
    planned requests, and the function that turns replies (by key) into calls
    """
    given = list(changes) if image == "shown" else swapped(changes) if image == "swapped" else [
        c for c in changes if c.pictures]  # fmt: skip
    by = {c.name: c for c in given}
    asked = replace(settings, image="withheld" if image == "withheld" else "shown")
    decisions = [
        Decision(c.name, c.prompt, ((GOLD, (c.gold,)), (PERTURBED, (c.perturbed,))), c.pictures, c.cluster)
        for c in given
    ]
    planned = list(plan_decisions(decisions, asked))

    def calls(answer: Callable[[str], Reply | None]) -> Calls:
        made = calls_of(planned, asked, answer)
        facts = pd.DataFrame([_facts(by[name], image) for name in made.table["instance"]], index=made.table.index)
        table = made.table.assign(**{c: facts[c] for c in facts}) if len(facts) else made.table
        return Calls(calls_frame(table), made.coverage)

    return planned, calls
