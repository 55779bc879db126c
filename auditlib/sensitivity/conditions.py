"""Names of what was changed: family of the image's change, variant, level, seed, and the form of the question."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from auditlib.errors import AuditError

#: changes of the image, mildest level first, and what a level is
LEVELS: dict[str, tuple[float, ...]] = {
    "blur": (1, 2, 4, 8),
    "downsample": (2, 4, 8, 16),
    "noise": (0.05, 0.1, 0.2),
    "jpeg": (50, 75, 90),
    "grayscale": (),
    "tokens": (0.25, 0.5, 0.75, 0.9, 1.0),
    "occlude_evidence": (),
    "occlude_control": (),
    "occlude_grid": (),
}
UNITS = {
    "blur": "sigma, % of the shorter side",
    "downsample": "factor",
    "noise": "SD, share of the range",
    "jpeg": "100 less quality",
    "tokens": "share of patches removed",
}
#: other image in place of the own, or none: points of reference
REFERENCES = ("full", "blank", "gray", "wrong_image", "blind")
#: changes that have levels to draw a curve over, and those of the planned tests
CURVES = ("blur", "downsample", "noise", "jpeg", "tokens")
PLANNED = ("blur", "downsample", "tokens")
#: forms of the question: other words for the same, and other sets of answers
REFORMULATED = ("paraphrase", "negation", "two_options", "yes_no", "open")
EXPANDED = ("cannot_tell", "distractors", "no_options")

_NAME = re.compile(
    r"(?P<family>[a-z][a-z0-9_]*)(:(?P<variant>[a-z][a-z0-9_]*))?(@(?P<level>\d+(\.\d+)?))?(#(?P<seed>\d+))?"
    r"(\+(?P<form>[a-z][a-z_]*(-\d+)?))?"
)


@dataclass(frozen=True, order=True)
class Condition:
    """One way to put an item.

    Attributes
    ----------
    family : one of :data:`REFERENCES` or :data:`LEVELS`, or another word for a change that was made elsewhere.
    variant : for example ``random`` or ``contiguous`` of ``tokens``; ``""`` where there is only one.
    level : strength, 0 where there are no levels; a cell's number for ``occlude_grid``.
    seed : which draw of a random change.
    form : of the question: ``""`` as it is, else one of :data:`REFORMULATED` or :data:`EXPANDED`, with ``-N`` after it
        for the N-th paraphrase or N distractors.
    """

    family: str = "full"
    variant: str = ""
    level: float = 0.0
    seed: int = 0
    form: str = ""

    @property
    def name(self) -> str:
        """The condition as one word, which :func:`parse` reads again.

        Examples
        --------
        >>> Condition("tokens", "random", 0.5, 1).name, Condition("blind", form="cannot_tell").name
        ('tokens:random@0.5#1', 'blind+cannot_tell')
        """
        return (self.family + (f":{self.variant}" if self.variant else "") + (f"@{self.level:g}" if self.level else "")
                + (f"#{self.seed}" if self.seed else "") + (f"+{self.form}" if self.form else ""))  # fmt: skip

    @property
    def kind(self) -> str:
        """Form of the question without its number.

        Examples
        --------
        >>> Condition(form="distractors-4").kind
        'distractors'
        """
        return self.form.partition("-")[0]

    @property
    def number(self) -> int:
        """The number after the form's name, 0 where there is none."""
        return int(self.form.partition("-")[2] or 0)


def parse(name: str) -> Condition:
    """A condition from its name, ``family[:variant][@level][#seed][+form]``.

    Raises
    ------
    AuditError
        The name is not of this form.

    Examples
    --------
    >>> parse("blur@4+negation")
    Condition(family='blur', variant='', level=4.0, seed=0, form='negation')
    """
    found = _NAME.fullmatch(name.strip())
    if found is None:
        raise AuditError(f"{name!r} names no condition", mend="write family[:variant][@level][#seed][+form], such as "
                         "blur@4 or tokens:random@0.5#1+negation")  # fmt: skip
    g = found.groupdict()
    level = float(g["level"] or 0)
    if not math.isfinite(level):
        raise AuditError(f"the level of {name!r} is no number", mend="write it as digits")
    return Condition(g["family"], g["variant"] or "", level, int(g["seed"] or 0), g["form"] or "")


def words(family: str, variant: str = "", level: float = 0.0, form: str = "") -> str:
    """A condition in print: ``blur 4``, ``tokens (random) 0.5``, ``blind, cannot tell``."""
    text = family.replace("_", " ") + (f" ({variant.replace('_', ' ')})" if variant else "")
    text += f" {level:g}" if level else ""
    return f"{text}, {form.replace('_', ' ').replace('-', ' ')}" if form else text
