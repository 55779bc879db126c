"""A world as the files that an evaluation would have left: one long table of replies, and a params file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.frames import ABSTAINED, LETTERS
from auditlib.synth.worlds import World

#: reply of a model that gives no answer
NO_ANSWER = "I cannot tell without the image."


def world_table(world: World) -> pd.DataFrame:
    """The replies of a world as one row per item, model and condition, all text.

    Returns
    -------
    frame with columns ``item``, ``model``, ``condition``, ``prediction``, ``question``, ``answer`` (the printed key),
    ``category``, ``picture`` and, unless answers are open, an option column for each letter. Nothing in it tells what
    was planted.
    """
    t = world.truth
    facts = pd.DataFrame({
        "item": t["item"], "question": [f"Question {i} about {p}?" for i, p in zip(t["item"], t["image_key"])],
        "category": t["stratum"], "picture": t["image_key"], "answer": _names(world, world.key[:, None])[:, 0],
    })  # fmt: skip
    if not world.open:
        k = t["k"].to_numpy().astype(int)
        for j in range(int(k.max())):
            facts[LETTERS[j]] = np.where(j < k, [f"thing {i}-{j + 1}" for i in t["item"]], "")
    parts = []
    for condition, codes in (("full", world.full), ("blind", world.blind)):
        said = _names(world, codes)
        for j, model in enumerate(world.model_names):
            parts.append(facts.assign(model=model, condition=condition, prediction=said[:, j]))
    return pd.concat(parts, ignore_index=True)


def _names(world: World, codes: NDArray) -> NDArray[np.object_]:
    names = [str(c + 100) for c in range(int(codes.max(initial=0)) + 1)] if world.open else list(LETTERS)
    table = np.array([NO_ANSWER, *names], dtype=object)
    return table[np.where(codes == ABSTAINED, 0, codes.astype(int) + 1)]


def write_world(world: World, folder: str | Path) -> Path:
    """Write a world as ``replies.csv`` and ``params.yaml``, and the truth as ``truth.csv``.

    Returns
    -------
    Path
        The folder; ``auditlib run FOLDER/params.yaml`` audits it.
    """
    import yaml

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    columns = {"item": "item", "key": "answer", "stratum": "category", "prediction": "prediction"}
    columns |= {"image_key": "picture"} if world.recipe.per_image > 1 else {}
    families = [f"family {f + 1}" for f in world.family]
    params = {
        "pool": world.name.replace(" ", "_"),
        "benchmark": "Known world",
        "data": {"table": "replies.csv", "columns": columns},
        "models": [{"name": m, "family": f} for m, f in zip(world.model_names, families)],
    }
    if world.open:
        params["audit"] = {"exact": ["numeric"]}
    texts = {
        "replies.csv": world_table(world).to_csv(index=False, lineterminator="\n"),
        "truth.csv": world.truth.to_csv(index=False, lineterminator="\n"),
        "params.yaml": yaml.safe_dump(params, sort_keys=False),
    }
    for name, text in texts.items():
        work = folder / f".{name}.{os.getpid()}"
        work.write_text(text, encoding="utf-8")
        os.replace(work, folder / name)
    return folder
