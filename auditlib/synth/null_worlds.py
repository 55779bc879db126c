"""Worlds in which one thing only is going on, and what each test should make of it."""

from __future__ import annotations

from dataclasses import replace

from auditlib.errors import AuditError
from auditlib.synth.worlds import Recipe, World, world

_UNLINKED = Recipe(items=300, models=3, strata=4, spread=0.0, kinds={"unlinked": 1.0}, abstain=0.0)

#: name -> recipe
NULLS: dict[str, Recipe] = {
    "zero_signal": _UNLINKED,
    "category_only": replace(_UNLINKED, spread=0.9),
    "abstention_only": replace(_UNLINKED, text=(-0.3, 0.1), abstain=(0.05, 0.4, 0.8)),
    "contamination_only": replace(_UNLINKED, kinds={"needs_image": 0.85, "contaminated": 0.15}),
}

#: what is going on in each
WORDS = {
    "zero_signal": "items differ in difficulty with and without the image, and the one says nothing of the other",
    "category_only": "official categories differ in difficulty, with and without the image alike; inside a category "
    "the one says nothing of the other",
    "abstention_only": "models without the image often give no answer, one of them mostly",
    "contamination_only": "most models recall 15% of the items; the others need their image",
}

#: tests whose null hypothesis each world does *not* meet: they should speak
FALSE_NULLS: dict[str, tuple[str, ...]] = {
    "zero_signal": (),
    "category_only": ("zero gain, pooled",),
    "abstention_only": (),
    "contamination_only": ("zero gain, pooled", "zero gain, within"),
}


def null_world(kind: str, seed: int, **changes: object) -> World:
    """A null world.

    Parameters
    ----------
    kind : one of :data:`NULLS`.
    changes : fields of the recipe to be replaced (``models``, ``k``, ``items`` ...).

    Raises
    ------
    AuditError
        There is no such world.
    """
    if kind not in NULLS:
        raise AuditError(f"there is no null world {kind!r}", mend=f"use {', '.join(NULLS)}")
    recipe = NULLS[kind]
    if "models" in changes and "abstain" not in changes and kind == "abstention_only":
        rates = [recipe.abstain[j % 3] for j in range(int(changes["models"]))]
        changes = changes | {"abstain": tuple(rates)}
    return world(replace(recipe, **changes), seed, kind)
