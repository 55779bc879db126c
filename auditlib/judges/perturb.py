"""Have a model plant damage in answers, through the inference layer, and write the sheet on which people check it.

Nothing that a model wrote counts as damage before people agreed: the sheet's column ``valid`` is empty at first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from auditlib import frames
from auditlib.calls import Generation, Picture, Reply, Request
from auditlib.errors import AuditError
from auditlib.escape import guard_csv
from auditlib.judges.dimensions import Dimension, dimension
from auditlib.judges.sheet import COLUMNS
from auditlib.paths import atomic

PURPOSE = "perturbing"
VERSION = "perturbing-1"
SEVERITY = {1: "slightly", 2: "clearly", 3: "badly"}
_DEGRADE = (
    "Below is a good answer to a question about an image. Rewrite it so that it {how} and {what}. Change nothing else: "
    "keep length, order, tone and all other facts. The new answer must be worse than the old one."
)
_NEUTRAL = (
    "Below is a good answer to a question about an image. Rewrite it so that it {what}. Every fact must stay as it is: "
    "the new answer must be exactly as good as the old one."
)
_CLOSE = 'Answer with one line of JSON of this form:\n{"answer": "...", "changed": "what was changed, in a few words"}'


@dataclass(frozen=True)
class Gold:
    """A gold answer to be damaged: its name, the question, the answer, pictures, their file, and what answers share."""

    instance: str
    prompt: str
    answer: str
    pictures: tuple[Picture, ...] = ()
    image: str = ""
    cluster: str = ""


@dataclass(frozen=True)
class PlannedChange:
    """A request and the change that it asks for."""

    request: Request
    gold: Gold
    dimension: Dimension
    severity: int | None


def plan_changes(
    golds: Iterable[Gold], dimensions: Sequence[str], model: str, *, severities: Sequence[int] = (2,),
    generation: Generation | None = None,
) -> list[PlannedChange]:  # fmt: skip
    """One request per gold answer, dimension and severity; neutral changes have no severity.

    Raises
    ------
    AuditError
        An unknown dimension, one of pictures (made by a generator, not by rewriting), a severity that is not 1, 2 or 3,
        no neutral dimension, an empty gold answer, a gold name twice.
    """
    kinds = [dimension(d) for d in dimensions]
    if bad := [d.id for d in kinds if d.task != "I2T"]:
        raise AuditError(f"{bad[0]!r} changes pictures, which no model can rewrite as text",
                         mend="give such instances as files")  # fmt: skip
    if not any(d.effect == "neutral" for d in kinds):
        raise AuditError("no neutral change is planned: a judge that dislikes everything would look perfect",
                         mend="add i2t_neutral_paraphrase")  # fmt: skip
    if wrong := [s for s in severities if s not in SEVERITY]:
        raise AuditError(f"severity is {wrong[0]!r}", mend="use 1, 2 or 3")
    settings = generation or Generation(temperature=0.7, max_tokens=1024)
    out, seen = [], set()
    for gold in golds:
        if not gold.answer.strip() or gold.instance in seen:
            what = "is empty" if not gold.answer.strip() else "stands twice"
            raise AuditError(f"the gold answer {gold.instance!r} {what}", mend="give each gold answer once, with text")
        seen.add(gold.instance)
        for kind in kinds:
            for severity in severities if kind.effect == "degrade" else (None,):
                task = _NEUTRAL.format(what=kind.what) if severity is None else _DEGRADE.format(
                    what=kind.what, how=f"is {SEVERITY[severity]} wrong")  # fmt: skip
                text = f"{task}\n\nQuestion: {gold.prompt}\n\nAnswer:\n<<<\n{gold.answer}\n>>>\n\n{_CLOSE}"
                request = Request(item=gold.instance, model=model, condition=f"{kind.id}-{severity or 0}",
                                  parts=(*gold.pictures, text), generation=settings, sample=0,
                                  prompt_version=VERSION, purpose=PURPOSE)  # fmt: skip
                out.append(PlannedChange(request, gold, kind, severity))
    return out


def changed_answers(planned: Iterable[PlannedChange], answer: Callable[[str], Reply | None]
                    ) -> tuple[pd.DataFrame, pd.DataFrame]:  # fmt: skip
    """Changed answers as rows of the sheet; replies that cannot be used are counted, never mended.

    Parameters
    ----------
    answer : the reply to a request's key, such as :meth:`~auditlib.inference.store.Store.get`.

    Returns
    -------
    sheet, coverage
        The sheet has the columns of :data:`~auditlib.judges.sheet.COLUMNS`; ``valid`` is empty, ``longer`` the
        difference of lengths in characters, ``note`` what the model says that it changed.
    """
    rows, lost = [], {}
    for p in planned:
        reply = answer(p.request.key)
        text, said = written_change(reply.text) if reply is not None and reply.answered else ("", "")
        why = ("calls that were not made" if reply is None else "no changed answer in the reply" if not text
               else "the answer came back unchanged" if text.split() == p.gold.answer.split() else "")  # fmt: skip
        if why:
            lost[why] = lost.get(why, 0) + 1
            continue
        name = f"{p.gold.instance}.{p.dimension.id}" + (f".{p.severity}" if p.severity else "")
        rows.append({"instance": name, "task": p.dimension.task, "dimension": p.dimension.id,
                     "effect": p.dimension.effect, "severity": p.severity, "prompt": p.gold.prompt,
                     "image": p.gold.image, "cluster": p.gold.cluster or p.gold.image or p.gold.instance,
                     "gold": p.gold.answer, "perturbed": text,
                     "longer": len(text) - len(p.gold.answer), "valid": "", "checked_by": "",
                     "note": said})  # fmt: skip
    coverage = [frames.coverage_row("excluded", n=n, reason=f"perturbing: {why}") for why, n in lost.items()]
    sheet = pd.DataFrame(rows, columns=list(COLUMNS))
    return sheet.astype({"severity": "Int64"}), frames.frame("coverage", coverage)


def written_change(text: str) -> tuple[str, str]:
    """The changed answer and what was changed, from the last JSON object of a reply; empty texts where there is none.

    Examples
    --------
    >>> written_change('Here: {"answer": "A red car.", "changed": "blue to red"}')
    ('A red car.', 'blue to red')
    """
    decoder = json.JSONDecoder()
    for at in [i for i, c in enumerate(text) if c == "{"][::-1]:
        try:
            value = decoder.raw_decode(text[at:])[0]
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("answer"), str) and value["answer"].strip():
            said = value.get("changed")
            return value["answer"].strip(), said.strip() if isinstance(said, str) else ""
    return "", ""


def write_sheet(sheet: pd.DataFrame, path: str | Path) -> Path:
    """Write the sheet as CSV for people.

    Raises
    ------
    AuditError
        The file is there already: it may hold people's work.
    """
    path = Path(path)
    if path.exists():
        raise AuditError("this sheet is there already and may hold people's work", file=path,
                         mend="choose another name, or move it away")  # fmt: skip
    with atomic(path) as file:
        guard_csv(sheet).to_csv(file, index=False, lineterminator="\n")
    return path
