"""What of a prompt is left under each condition: the one place where pictures and text are taken away or replaced."""

from __future__ import annotations

from auditlib.calls import PROMPT_MODES, Part, Picture
from auditlib.frames import CONDITIONS

#: conditions that put another picture in the place of the item's own
REPLACED = ("blank", "gray", "wrong_image")
#: conditions under which a picture is sent
WITH_PICTURE = ("full", "image_only", *REPLACED)
#: added under ``told_to_guess``; the silent mode adds nothing. It holds under every condition, so that the text stays
#: the same with and without picture.
GUESS = "If something that you need is not shown, such as an image, do not refuse: give your best guess."


def ablate(
    parts: tuple[Part, ...],
    condition: str,
    *,
    question_parts: frozenset[int] = frozenset(),
    replacements: tuple[Picture, ...] = (),
    prompt_mode: str = "silent",
) -> tuple[Part, ...]:
    """The parts of a prompt that a condition leaves.

    Parameters
    ----------
    parts : text and pictures of the full prompt, in order.
    condition : one of :data:`~auditlib.frames.CONDITIONS`.
    question_parts : places of the text parts that hold the question (hint included); taken away by ``image_only`` and
        ``none``, which keep the options and the closing line.
    replacements : one picture for each picture of the prompt, for :data:`REPLACED`.
    prompt_mode : ``silent``, or ``told_to_guess``: :data:`GUESS` is added, under every condition.

    Returns
    -------
    Text parts are never edited: the text of ``blind`` equals that of ``full``. Nothing is left (an empty tuple) where
    a question without options is taken away.

    Raises
    ------
    ValueError
        An unknown condition or mode, or too few replacements.
    """
    if condition not in CONDITIONS:
        raise ValueError(f"condition is {condition!r}, expected one of {', '.join(CONDITIONS)}")
    if prompt_mode not in PROMPT_MODES:
        raise ValueError(f"prompt_mode is {prompt_mode!r}, expected one of {', '.join(PROMPT_MODES)}")
    pictures = [i for i, p in enumerate(parts) if isinstance(p, Picture)]
    if condition in REPLACED:
        if len(replacements) < len(pictures):
            raise ValueError(f"{len(pictures)} pictures to replace, {len(replacements)} given")
        place = dict(zip(pictures, replacements))
        kept = tuple(place.get(i, p) for i, p in enumerate(parts))
    else:
        gone = set(pictures) if condition in ("blind", "none") else set()
        gone |= set(question_parts) if condition in ("image_only", "none") else set()
        kept = tuple(p for i, p in enumerate(parts) if i not in gone)
    return (*kept, GUESS) if kept and prompt_mode == "told_to_guess" else kept


def joined(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Parts in which neighbouring texts are one text, a line end between them; the whole text stays the same."""
    out: list[Part] = []
    for part in parts:
        last = out[-1] if out else None
        if isinstance(part, str) and isinstance(last, str):
            out[-1] = f"{last}\n{part}"
        else:
            out.append(part)
    return tuple(out)
