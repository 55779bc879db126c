"""Ways in which an answer or an image is damaged to see whether a judge notices: forty dimensions and a neutral set.

Ids are stable; files name them in the column ``dimension``. A file may use dimensions of its own as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from auditlib.errors import AuditError

#: image to text: an answer about an image is damaged. Text to image: a picture made from a text is damaged.
TASKS = ("I2T", "T2I")


@dataclass(frozen=True)
class Dimension:
    """One way to change a gold output.

    ``what`` completes the sentence "the changed output ..."; ``effect`` is ``degrade`` or ``neutral``.
    """

    id: str
    task: str
    name: str
    what: str
    effect: str = "degrade"


def _group(task: str, effect: str, *rows: tuple[str, str, str]) -> tuple[Dimension, ...]:
    prefix = task.lower() if effect == "degrade" else f"{task.lower()}_neutral"
    return tuple(Dimension(f"{prefix}_{id}", task, name, what, effect) for id, name, what in rows)


I2T = _group(
    "I2T", "degrade",
    ("object_added", "object added", "names an object that the image does not show"),
    ("object_missing", "object missing", "leaves out an object that matters"),
    ("entity_swapped", "entity swapped", "takes one person, animal or thing for another"),
    ("colour", "wrong colour", "gives an object another colour"),
    ("material", "wrong material or state", "gives an object another material or state"),
    ("count_one", "count off by one", "counts one too many or too few"),
    ("count_large", "count far off", "gives a count that is far off"),
    ("left_right", "left and right", "exchanges left and right"),
    ("above_below", "above and below", "exchanges above and below"),
    ("depth", "depth order", "exchanges what is in front and behind"),
    ("action", "wrong action", "describes another action"),
    ("text", "text misread", "misreads text in the image"),
    ("number", "number misread", "misreads a number in the image"),
    ("trend", "trend reversed", "reverses the trend of a chart"),
    ("unit", "unit error", "gives a quantity in a wrong unit"),
    ("inference", "wrong inference", "draws a wrong conclusion from right facts"),
    ("cause", "unsupported cause", "states a cause that nothing supports"),
    ("detail", "key detail omitted", "omits the detail that the question turns on"),
    ("contradiction", "contradiction", "contradicts itself"),
    ("outside_fact", "outside fact against the image", "states an outside fact that the image contradicts"),
)  # fmt: skip

T2I = _group(
    "T2I", "degrade",
    ("object_missing", "object missing", "lacks an object that was asked for"),
    ("object_extra", "extra object", "shows an object that was not asked for"),
    ("count", "wrong count", "shows another number of objects"),
    ("colour_bound", "colour on the wrong object", "gives the colour to another object"),
    ("attribute", "attribute dropped", "drops an attribute"),
    ("left_right", "left and right", "exchanges left and right"),
    ("above_below", "above and below", "exchanges above and below"),
    ("containment", "containment", "puts an object outside what should contain it"),
    ("size", "relative size", "exchanges relative sizes"),
    ("action", "wrong action", "shows another action"),
    ("style", "wrong style", "is made in another style"),
    ("text", "wrong text", "shows wrong text"),
    ("anatomy", "anatomy", "shows an impossible body"),
    ("physics", "physics", "has shadows or supports that cannot be"),
    ("texture", "texture artefact", "shows artefacts of texture"),
    ("blur", "blur", "is blurred"),
    ("cropping", "cropping", "cuts off what was asked for"),
    ("background", "background mismatch", "has another background"),
    ("time_place", "wrong time or place", "shows another time or place"),
    ("culture", "cultural marker wrong", "shows a wrong cultural marker"),
)  # fmt: skip

NEUTRAL = (
    *_group("I2T", "neutral",
            ("paraphrase", "paraphrase", "says the same in other words"),
            ("reordering", "facts reordered", "gives independent facts in another order"),
            ("synonym", "synonym", "uses a synonym")),
    *_group("T2I", "neutral",
            ("encoding", "mild re-encoding", "is encoded again at high quality"),
            ("crop", "margin of 1 % cropped", "lacks a margin of 1 %"),
            ("seed", "another seed", "comes from another seed and is judged equal by people")),
)  # fmt: skip

DIMENSIONS: dict[str, Dimension] = {d.id: d for d in (*I2T, *T2I, *NEUTRAL)}


def dimension(id: str) -> Dimension:
    """The dimension of an id.

    Raises
    ------
    AuditError
        There is no such dimension.
    """
    try:
        return DIMENSIONS[id]
    except KeyError:
        raise AuditError(f"there is no dimension {id!r}", mend=f"one of {', '.join(DIMENSIONS)}") from None


def named(id: str) -> str:
    """Name of a dimension for people, with its task; an unknown id as it is."""
    found = DIMENSIONS.get(id)
    return f"{found.name} ({found.task})" if found else id.replace("_", " ")


def task_of(id: str) -> str:
    """``I2T``, ``T2I``, or empty for an unknown id."""
    return DIMENSIONS[id].task if id in DIMENSIONS else ""
