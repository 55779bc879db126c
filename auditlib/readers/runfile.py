"""One file of a results folder, as every toolkit's scan reports it, and what its names say about the condition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

#: endings of a model folder, of a task, or of a sibling results folder, that mark runs without image
BLIND = ("_blind", "-blind", "_text-only", "_text_only", "-text-only", "_text")
#: kinds of files that hold a run's replies
RUNS = ("predictions", "result", "auxmatch")


@dataclass(frozen=True)
class RunFile:
    """One file of a results folder.

    ``kind`` is ``predictions``, ``result`` (multiple-choice verdicts: hit and log), ``auxmatch`` (yes/no verdicts:
    extracted and score), ``pickle``, ``dangling`` (a link that leads nowhere), ``table`` (totals and side products),
    ``foreign`` (a link to another model's file), ``leftover`` (of an unfinished run), ``rewritten`` (predictions that
    the toolkit edited) or ``unknown`` (looks like a result, but its name does not say of what).
    ``rest`` is the file's stem without the model; ``benchmark`` is empty while it is not known. ``judge`` is the judge
    of a verdict file; ``judges`` names the verdicts that a log stores beside its replies (metrics, filters, scorers).
    """

    path: Path
    model: str
    condition: str
    kind: str
    rest: str
    benchmark: str = ""
    judge: str = ""
    toolkit: str = "vlmevalkit"
    judges: tuple[str, ...] = ()


def split_blind(name: str, endings: tuple[str, ...] = BLIND) -> tuple[str, str]:
    """A name and the condition that its ending tells: ``alpha_blind`` -> ``("alpha", "blind")``."""
    for ending in endings:
        if name.endswith(ending) and len(name) > len(ending):
            return name[: -len(ending)], "blind"
    return name, "full"


def stated_condition(path: str, conditions: Mapping[str, str]) -> str | None:
    """Condition that the params state for a file (path relative to the folder, with ``/``), or None.

    Examples
    --------
    >>> stated_condition("alpha/samples_x_text_only.jsonl", {"*_text_only*": "blind"})
    'blind'
    """
    return next((c for pattern, c in conditions.items() if fnmatchcase(path, pattern)), None)
