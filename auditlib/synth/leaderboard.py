"""A leaderboard of known truth: many models on many benchmarks, full runs and blind ones, as an evaluation's files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditlib.errors import AuditError
from auditlib.frames import ABSTAINED, LETTERS
from auditlib.paths import atomic
from auditlib.pool import Pool
from auditlib.seeds import generator
from auditlib.synth.plant import spoil
from auditlib.synth.world_files import NO_ANSWER
from auditlib.synth.worlds import Recipe, World, world

#: how models word a letter; each model keeps to one
WORDINGS = ("{}", "{}.", "({})", "Answer: {}", "The answer is {}.", "The correct option is ({}).")
FORMATS = ("tsv", "json", "xlsx")


@dataclass(frozen=True)
class LeaderboardRecipe:
    """How a leaderboard is made.

    Attributes
    ----------
    models, benchmarks, items, families : numbers of each; items are those of one benchmark.
    no_image : (smallest, largest) share of items that need no image; benchmarks lie evenly between the two.
    defects : planted in every benchmark, see :data:`auditlib.synth.plant.WORLD_DEFECTS` -> share of its items.
    strata : categories of a benchmark.
    """

    models: int = 300
    benchmarks: int = 80
    items: int = 3000
    families: int = 30
    no_image: tuple[float, float] = (0.05, 0.6)
    defects: Mapping[str, float] = field(default_factory=lambda: {"wrong_key": 0.02})
    strata: int = 6

    @property
    def model_names(self) -> list[str]:
        width = max(3, len(str(self.models)))
        return [f"Model-{j + 1:0{width}d}" for j in range(self.models)]

    @property
    def benchmark_names(self) -> list[str]:
        width = max(2, len(str(self.benchmarks)))
        return [f"Bench{b + 1:0{width}d}" for b in range(self.benchmarks)]

    def share(self, number: int) -> float:
        """Share of the items of a benchmark (counted from 0) that need no image."""
        low, high = self.no_image
        return low + (high - low) * (number / (self.benchmarks - 1) if self.benchmarks > 1 else 0.0)


def benchmark_world(recipe: LeaderboardRecipe, number: int, seed: int) -> World:
    """One benchmark of the leaderboard, counted from 0, with its planted defects.

    Raises
    ------
    AuditError
        There is no such benchmark.
    """
    if not 0 <= number < recipe.benchmarks:
        raise AuditError(f"there is no benchmark number {number}", mend=f"use 0 to {recipe.benchmarks - 1}")
    share = recipe.share(number)
    of = Recipe(
        items=recipe.items, models=recipe.models, strata=recipe.strata, families=recipe.families,
        kinds={"needs_image": 1 - share, "text_suffices": share}, vision=(-0.3, 1.6), text=(-0.1, 0.9),
        difficulty=0.6,
    )  # fmt: skip
    return spoil(world(of, seed, recipe.benchmark_names[number]), recipe.defects, seed)


def benchmark_pool(recipe: LeaderboardRecipe, number: int, seed: int) -> Pool:
    """The same benchmark as a pool of arrays, with the leaderboard's names of models."""
    made = benchmark_world(recipe, number, seed)
    pool = made.as_pool()
    models = pool.models.assign(model=recipe.model_names)
    return Pool(made.name.lower(), made.name, pool.items, models, pool.arms, pool.letters, abstained=pool.abstained)


def truth_of(made: World, recipe: LeaderboardRecipe) -> pd.DataFrame:
    """What is true of every model on one benchmark: accuracy with and without the image on the printed keys."""
    full, blind = made.hits("full"), made.hits("blind")
    return pd.DataFrame({
        "benchmark": made.name, "model": recipe.model_names, "items": len(made.key), "full": full.mean(axis=0),
        "blind": blind.mean(axis=0), "wrong_keys": int(made.planted("wrong_key").sum()),
        "no_image": float(made.of_kind("text_suffices").mean()),
    })  # fmt: skip


def write_leaderboard(
    recipe: LeaderboardRecipe,
    folder: str | Path,
    seed: int = 7,
    *,
    form: str = "tsv",
    only: Iterable[int] | None = None,
) -> pd.DataFrame:
    """Write a tree of results in VLMEvalKit's form: ``MODEL/MODEL_BENCHMARK.tsv`` and ``MODEL_blind/...``.

    Parameters
    ----------
    recipe : LeaderboardRecipe
    folder : results folder; files that lie there under the same names are replaced.
    seed : the same recipe and seed give the same bytes (tsv and json).
    form : tsv, json or xlsx (slow to write).
    only : positions of the models whose files are written; all by default.

    Returns
    -------
    DataFrame
        The truth: one row per benchmark and model, see :func:`truth_of`; also written beside the folder, as
        ``NAME_truth.csv``, where no reader takes it for a run.

    Raises
    ------
    AuditError
        An unknown form.
    """
    if form not in FORMATS:
        raise AuditError(f"results cannot be written as {form!r}", mend=f"use {', '.join(FORMATS)}")
    folder = Path(folder)
    chosen = range(recipe.models) if only is None else sorted(set(only))
    parts = []
    for number in range(recipe.benchmarks):
        made = benchmark_world(recipe, number, seed)
        parts.append(truth_of(made, recipe))
        for path, texts in _runs(made, recipe, folder, form, chosen):
            _write(path, made, texts, form)
    truth = pd.concat(parts, ignore_index=True)
    with atomic(folder.with_name(f"{folder.name}_truth.csv")) as temporary:
        truth.to_csv(temporary, index=False, lineterminator="\n")
    return truth


def _runs(
    made: World, recipe: LeaderboardRecipe, folder: Path, form: str, chosen: Iterable[int]
) -> Iterator[tuple[Path, NDArray[np.object_]]]:
    """Path and replies of each run of one benchmark."""
    wording = generator(0, "wordings").integers(0, len(WORDINGS), recipe.models)
    names = np.array([NO_ANSWER, *LETTERS], dtype=object)
    for j in chosen:
        model, words = recipe.model_names[j], WORDINGS[wording[j]]
        said = np.array([NO_ANSWER, *(words.format(letter) for letter in names[1:])], dtype=object)
        for codes, name in ((made.full, model), (made.blind, f"{model}_blind")):
            own = codes[:, j]
            yield folder / name / f"{name}_{made.name}.{form}", said[np.where(own == ABSTAINED, 0, own + 1)]


def _columns(made: World) -> dict[str, list[str]]:
    t = made.truth
    ids = t["item"].tolist()
    columns = {"index": ids, "question": [f"What does picture {i} of {made.name} show?" for i in ids]}
    for place in range(int(t["k"].max())):
        columns[LETTERS[place]] = [f"thing {i}-{place + 1}" for i in ids]
    return columns | {"answer": [LETTERS[c] for c in made.key], "category": t["stratum"].tolist()}


def _write(path: Path, made: World, texts: NDArray[np.object_], form: str) -> None:
    columns = _columns(made) | {"prediction": texts.tolist()}
    with atomic(path) as temporary:
        if form == "tsv":  # no cell holds a tab or a quote
            lines = map("\t".join, zip(*columns.values(), strict=True))
            temporary.write_text("\n".join(["\t".join(columns), *lines, ""]), encoding="utf-8")
        elif form == "json":
            pd.DataFrame(columns).to_json(temporary, orient="records")
        else:
            pd.DataFrame(columns).to_excel(temporary, index=False, engine="xlsxwriter")
