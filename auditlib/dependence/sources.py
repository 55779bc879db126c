"""Where a structural prior comes from: vectors of the content, tables of probabilities or labels, a scorer's odds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from auditlib.dependence.probes import Folds
from auditlib.dependence.profile import CONDITIONS, LABELS
from auditlib.dependence.source_files import Embeddings, load_arrays, numbers, read_rows
from auditlib.dependence.structure import StructuralPrior
from auditlib.errors import AuditError
from auditlib.frames import LETTERS

#: fewer items with structure than this are too few to cross-fit probes on
FEWEST = 20
#: R, V, T and S may miss a sum of 1 by this, as rounded numbers do
ROUNDED = 0.02


def matched(have: Sequence[str], wanted: Sequence[str], file: Path | None) -> tuple[NDArray, NDArray]:
    """Places in ``wanted`` of the items that ``have`` holds, and their places there.

    Raises
    ------
    AuditError
        No item is in both.
    """
    at = pd.Index([str(x) for x in have]).get_indexer([str(x) for x in wanted])
    found = np.flatnonzero(at >= 0)
    if not len(found):
        mine, theirs = (x[0] if len(x) else "" for x in (list(wanted), list(have)))
        raise AuditError("no id of the structural prior is an item of the pool", file=file,
                         mend=f"give the pool's ids (pool: {str(mine)!r}, file: {str(theirs)!r})")  # fmt: skip
    return found, at[found]


def spread(prior: StructuralPrior, at: NDArray, n: int) -> StructuralPrior:
    """A prior of some items, at their places among ``n``; the others get none (uniform, weight 0)."""
    if len(at) == n and (at == np.arange(n)).all():
        return prior
    profile = np.full((n, 4), np.nan)
    profile[at] = prior.profile
    made = StructuralPrior.from_profile(profile, source=prior.source)

    def wide(x: NDArray | None) -> NDArray | None:
        if x is None:
            return None
        out = np.full((n, 4), np.nan)
        out[at] = x
        return out

    return StructuralPrior(
        made.profile, made.confidence, made.weight, wide(prior.probability), wide(prior.information), prior.source
    )


def prior_from_embeddings(
    found: Embeddings,
    items: Sequence[str],
    key: ArrayLike,
    k: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    method: str = "min",
    temperature: float = 1.0,
    dimensions: int = 64,
    folds: int = 5,
    file: Path | None = None,
) -> StructuralPrior:
    """A prior for the items of a pool by cross-fitted probes on their vectors.

    Parameters
    ----------
    items : ids. key : place of the right option, negative where it is none. k : options. groups : items that share an
        image. All of the pool, in its order; items without vectors or key get no prior.

    Raises
    ------
    AuditError
        No common item, too few with a key, fewer option vectors than options.
    """
    mine, theirs = matched(found.items, items, file)
    place, sizes = np.asarray(key)[mine], np.asarray(k, float)[mine]
    keyed = (place >= 0) & (place < sizes)
    mine, theirs, place, sizes = mine[keyed], theirs[keyed], place[keyed], sizes[keyed].astype(int)
    if len(mine) < FEWEST:
        raise AuditError(
            f"{len(mine)} items have vectors and an option as their key",
            file=file,
            mend=f"at least {FEWEST} are needed to fit probes; give labels or probabilities instead",
        )
    width = found.options.shape[1]
    if (sizes > width).any():
        first = items[mine[int((sizes > width).argmax())]]
        raise AuditError(f"item {first} shows {int(sizes.max())} options, there are vectors of {width}", file=file,
                         mend="embed every option")  # fmt: skip
    prior = StructuralPrior.from_embeddings(
        found.visual[theirs], found.textual[theirs], found.options[theirs], place, k=sizes,
        groups=None if groups is None else np.asarray(groups)[mine], method=method, temperature=temperature,
        dimensions=dimensions, folds=Folds(folds),
    )  # fmt: skip
    return spread(prior, mine, len(items))


def prior_from_probabilities(
    file: Path, items: Sequence[str], k: ArrayLike, *, method: str = "min", temperature: float = 1.0
) -> StructuralPrior:
    """From a table ``item, none, image_only, blind, full`` with the key's probability under each; npz likewise."""
    if file.suffix.lower() == ".npz":
        arrays = load_arrays(file)
        lacking = [a for a in ("item", *CONDITIONS) if a not in arrays]
        if lacking:
            raise AuditError(f"there is no array {lacking[0]!r}", file=file,
                             mend=f"arrays needed: item, {', '.join(CONDITIONS)}")  # fmt: skip
        table = pd.DataFrame({a: arrays[a] for a in ("item", *CONDITIONS)})
    else:
        table = read_rows(file, ("item", *CONDITIONS))
    p = numbers(table, CONDITIONS, file)
    whole = np.isfinite(p).all(axis=1)
    if ((p[whole] < 0) | (p[whole] > 1)).any():
        row = int(np.flatnonzero(whole & ((p < 0) | (p > 1)).any(axis=1))[0])
        raise AuditError("a probability is below 0 or above 1", file=file, row=row + 2, mend="give probabilities")
    mine, theirs = matched(table["item"][whole].tolist(), items, file)
    prior = StructuralPrior.from_probs(
        p[whole][theirs], np.asarray(k, float)[mine], method=method, temperature=temperature
    )
    return spread(prior, mine, len(items))


def prior_from_labels(file: Path, items: Sequence[str], *, trust: float = 0.7) -> StructuralPrior:
    """From a table ``item, label`` (R, V, T, S), or ``item, R, V, T, S`` with probabilities.

    Raises
    ------
    AuditError
        An unknown label; four numbers that are no distribution or do not sum to 1.
    """
    table = read_rows(file, ("item",))
    if set(LABELS) <= set(table.columns):
        values = numbers(table, LABELS, file)
        given = ~np.isnan(values).all(axis=1)
        bad = given & (np.isnan(values).any(axis=1) | (values < 0).any(axis=1) | ~(values.sum(axis=1) > 0))
        if bad.any():
            raise AuditError("R, V, T and S of the row are no distribution", file=file,
                             row=int(np.flatnonzero(bad)[0]) + 2,
                             mend="give four numbers of at least 0, not all 0, or leave all four empty")  # fmt: skip
        total = values.sum(axis=1)
        off = given & (np.abs(total - 1) > ROUNDED)
        if off.any():
            at = int(np.flatnonzero(off)[0])
            raise AuditError(f"R, V, T and S of the row sum to {total[at]:.4g}", file=file, row=at + 2,
                             mend="give probabilities that sum to 1; counts and scores are not rescaled")  # fmt: skip
        mine, theirs = matched(table["item"].tolist(), items, file)
        return spread(StructuralPrior.from_profile(values[theirs], source="labels"), mine, len(items))
    table = read_rows(file, ("item", "label"))
    mine, theirs = matched(table["item"].tolist(), items, file)
    said = table["label"].astype(object).where(table["label"].notna(), "").astype(str).str.strip().str.upper()
    bad = ~said.isin([*LABELS, "", "NONE", "NAN"])
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise AuditError(f"unknown structure label {str(table['label'].iloc[at])[:60]!r}", file=file, row=at + 2,
                         mend="use R, V, T, S or leave it empty")  # fmt: skip
    said = said.where(said.isin(LABELS), "")
    return spread(StructuralPrior.from_labels(said.to_numpy(object)[theirs], trust=trust), mine, len(items))


def prior_from_logprobs(
    file: Path,
    items: Sequence[str],
    key: ArrayLike,
    k: ArrayLike,
    *,
    scorer: str | None = None,
    evaluated: Sequence[str] = (),
    method: str = "min",
    temperature: float = 1.0,
) -> StructuralPrior:
    """From runs of a model outside the pool with log-probabilities of the option letters.

    Parameters
    ----------
    file : rows item, condition, ``letter_logprobs`` (JSON: letter -> [log-probability, censored]), and model, as the
        runs that this package makes hold them (``responses.parquet``).
    scorer : which model, where the file holds several.
    evaluated : models of the pool, none of which may be the scorer: its answers would count twice.

    Notes
    -----
    Probabilities are normalised over the letters shown. A letter that the server did not list has the least listed
    value as its bound, so that its probability is an upper bound. Items that lack one of the four conditions, or whose
    reply opened with no letter, get no prior.
    """
    try:
        table = pd.read_parquet(file) if file.suffix.lower() == ".parquet" else pd.read_csv(file)
    except FileNotFoundError:
        raise AuditError("there is no such file", file=file, mend="check dependence.prior.files") from None
    except (OSError, ValueError) as e:
        raise AuditError(
            f"not readable as a table ({type(e).__name__})", file=file, mend="give csv or parquet"
        ) from None
    lacking = [c for c in ("item", "condition", "letter_logprobs") if c not in table]
    if lacking:
        raise AuditError(f"there is no column {lacking[0]!r}", file=file,
                         mend="ask the scorer with inference.logprobs on, and name its responses.parquet")  # fmt: skip
    table = _of_scorer(table, scorer, evaluated, file)
    probability = np.full((len(items), 4), np.nan)
    place = {str(x): j for j, x in enumerate(items)}
    right, sizes = np.asarray(key), np.asarray(k, float)
    for item, condition, said in zip(table["item"].astype(str), table["condition"], table["letter_logprobs"]):
        j = place.get(item)
        if j is None or condition not in CONDITIONS or not isinstance(said, str) or not said or right[j] < 0:
            continue
        try:
            found = {x: float(v[0] if isinstance(v, list) else v) for x, v in json.loads(said).items()}
        except (ValueError, TypeError, AttributeError, IndexError):
            raise AuditError(f"the log-probabilities of item {item} are no JSON of letters", file=file,
                             mend="write them as {\"A\": [-0.1, false], ...}") from None  # fmt: skip
        letters = LETTERS[: int(sizes[j])]
        if any(x not in found for x in letters) or right[j] >= len(letters):
            continue
        probability[j, CONDITIONS.index(condition)] = softmax([found[x] for x in letters])[right[j]]
    whole = np.flatnonzero(np.isfinite(probability).all(axis=1))
    if not len(whole):
        raise AuditError("the scorer has log-probabilities under all four conditions for no item of the pool",
                         file=file, mend=f"run it under {', '.join(CONDITIONS)}")  # fmt: skip
    prior = StructuralPrior.from_probs(
        probability[whole], sizes[whole], method=method, temperature=temperature, source="log-probabilities"
    )
    return spread(prior, whole, len(items))


def _of_scorer(table: pd.DataFrame, scorer: str | None, evaluated: Sequence[str], file: Path) -> pd.DataFrame:
    if "model" not in table:
        return table
    names = sorted(set(table["model"].astype(str)))
    if scorer is None and len(names) > 1:
        raise AuditError(f"the file holds {len(names)} models", file=file,
                         mend=f"name one as dependence.prior.scorer: {', '.join(names[:8])}")  # fmt: skip
    chosen = scorer or names[0]
    if chosen not in names:
        raise AuditError(f"there is no scorer {chosen!r}", file=file, mend=f"models here: {', '.join(names[:8])}")
    if chosen in evaluated:
        raise AuditError(f"the scorer {chosen!r} is a model of the pool: its evidence would count twice", file=file,
                         mend="take a model outside the pool, or exclude it with audit.exclude_models")  # fmt: skip
    return table[table["model"].astype(str).eq(chosen)]
