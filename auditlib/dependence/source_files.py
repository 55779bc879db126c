"""Files that a structural prior is read from: arrays of embeddings, tables with a row per item."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from auditlib.errors import AuditError

ARRAYS = ("visual", "textual", "options")


@dataclass(frozen=True)
class Embeddings:
    """Vectors of a benchmark's content.

    Attributes
    ----------
    items : ids, shape (items,). visual, textual : shape (items, d). options : shape (items, K, d).
    source : a word or two.
    """

    items: tuple[str, ...]
    visual: NDArray[np.float64]
    textual: NDArray[np.float64]
    options: NDArray[np.float64]
    source: str = "embeddings"


def make_embeddings(items: Sequence[str], visual: ArrayLike, textual: ArrayLike, options: ArrayLike, *,
                    source: str = "embeddings", file: Path | None = None) -> Embeddings:  # fmt: skip
    """Checked vectors.

    Raises
    ------
    AuditError
        Shapes that do not match the items, values that are no numbers, an item twice.
    """
    try:
        v, t, o = (np.asarray(x, float) for x in (visual, textual, options))
    except (TypeError, ValueError):
        raise AuditError("the embeddings are not arrays of numbers of one length each", file=file,
                         mend="give visual and textual (items, d) and options (items, K, d)") from None  # fmt: skip
    names = tuple(map(str, items))
    for name, x, dims in (("visual", v, 2), ("textual", t, 2), ("options", o, 3)):
        if x.ndim != dims or len(x) != len(names):
            raise AuditError(f"embeddings {name} have shape {x.shape} for {len(names)} items", file=file,
                             mend=f"give {'(items, d)' if dims == 2 else '(items, K, d)'}")  # fmt: skip
        bad = ~np.isfinite(x).reshape(len(x), -1).all(axis=1)
        if bad.any() and name != "options":
            raise AuditError(f"embeddings {name} of {int(bad.sum())} items hold NaN or infinity, first "
                             f"{names[int(bad.argmax())]}", file=file,
                             mend="embed these items again, or leave them out of the file")  # fmt: skip
    # an option that an item does not have is NaN throughout; part of a vector is damage
    part = (~np.isfinite(o)).any(axis=2) & ~np.isnan(o).all(axis=2)
    if part.any():
        raise AuditError(f"embeddings options of {int(part.any(axis=1).sum())} items hold NaN or infinity, first "
                         f"{names[int(part.any(axis=1).argmax())]}", file=file,
                         mend="embed these options again, or leave the items out of the file")  # fmt: skip
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise AuditError(f"item {twice!r} stands twice among the embeddings", file=file, mend="give one row per item")
    return Embeddings(names, v, t, np.nan_to_num(o, nan=0.0), source)


def read_embeddings(files: Sequence[Path], items: Sequence[str]) -> Embeddings:
    """Precomputed vectors.

    Parameters
    ----------
    files : one ``.npz`` with arrays ``item``, ``visual``, ``textual``, ``options``; one ``.parquet`` with these columns
        (lists, for the options lists of lists); or three ``.npy`` files of those stems, in the order of ``items``.
    items : ids of the pool in its order, which ``.npy`` files are in.

    Raises
    ------
    AuditError
        A file is missing, damaged or of another kind, an array is lacking or of another shape.
    """
    kinds = {f.suffix.lower() for f in files}
    if kinds == {".npy"}:
        by = {f.stem: f for f in files}
        lacking = [a for a in ARRAYS if a not in by]
        if lacking:
            raise AuditError(f"there is no {lacking[0]}.npy among the files", file=files[0],
                             mend="name visual.npy, textual.npy and options.npy")  # fmt: skip
        return make_embeddings(items, *(load_arrays(by[a]) for a in ARRAYS), file=by["visual"])
    if len(files) != 1 or kinds - {".npz", ".parquet"}:
        raise AuditError(f"{len(files)} files of embeddings ({', '.join(sorted(kinds)) or 'none'})",
                         file=files[0] if files else None,
                         mend="give one .npz or .parquet, or visual.npy, textual.npy and options.npy")  # fmt: skip
    [file] = files
    if kinds == {".npz"}:
        arrays = load_arrays(file)
        lacking = [a for a in ("item", *ARRAYS) if a not in arrays]
        if lacking:
            raise AuditError(
                f"there is no array {lacking[0]!r}",
                file=file,
                mend="write it with numpy.savez(file, item=..., visual=..., textual=..., options=...)",
            )
        return make_embeddings(arrays["item"], *(arrays[a] for a in ARRAYS), file=file)
    table = read_rows(file, ("item", *ARRAYS))
    try:
        v, t = (np.stack(table[a].to_list()) for a in ARRAYS[:2])
        rows = [np.stack(o) for o in table["options"]]
    except (TypeError, ValueError):
        raise AuditError(
            "the columns visual, textual and options hold lists of different lengths, or no lists",
            file=file,
            mend="give one vector each, and a list of vectors for the options",
        ) from None
    most = max(len(o) for o in rows)
    options = np.full((len(rows), most, rows[0].shape[1]), np.nan)
    for j, o in enumerate(rows):
        if o.shape[1] != options.shape[2]:
            raise AuditError(f"option vectors have {o.shape[1]} and {options.shape[2]} places", file=file, row=j + 2,
                             mend="embed all options with one model")  # fmt: skip
        options[j, : len(o)] = o
    return make_embeddings(table["item"], v, t, options, file=file)


def load_arrays(file: Path) -> dict[str, NDArray] | NDArray:
    """Arrays of a numpy file; nothing is ever unpickled."""
    try:
        found = np.load(file, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        with found:
            return {n: found[n] for n in found.files}
    except FileNotFoundError:
        raise AuditError("there is no such file", file=file, mend="check dependence.prior.files") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as e:
        why = "it holds Python objects, which are not loaded" if "pickle" in str(e) else type(e).__name__
        raise AuditError(f"not readable as numpy arrays ({why})", file=file,
                         mend="save plain numbers, and item ids as text (dtype U)") from None  # fmt: skip


def read_rows(file: Path, needed: Sequence[str]) -> pd.DataFrame:
    """A CSV or parquet with one row per item.

    Raises
    ------
    AuditError
        The file is missing or damaged, a column lacks, an item stands twice.
    """
    try:
        table = pd.read_parquet(file) if file.suffix.lower() == ".parquet" else pd.read_csv(
            file, dtype=str, keep_default_na=False, sep="\t" if file.suffix.lower() == ".tsv" else ",")  # fmt: skip
    except FileNotFoundError:
        raise AuditError("there is no such file", file=file, mend="check dependence.prior.files") from None
    except (OSError, ValueError) as e:
        raise AuditError(
            f"not readable as a table ({type(e).__name__})", file=file, mend="give csv or parquet"
        ) from None
    if file.suffix.lower() != ".parquet" and not isinstance(table.index, pd.RangeIndex):
        raise AuditError("rows hold more cells than the header", file=file, row=1, mend="name every column once")
    lacking = [c for c in needed if c not in table]
    if lacking:
        raise AuditError(f"there is no column {lacking[0]!r}", file=file, row=1,
                         mend=f"columns needed: {', '.join(needed)}")  # fmt: skip
    table = table.assign(item=table["item"].astype(str).str.strip())
    twice = table["item"].duplicated()
    if twice.any():
        raise AuditError(f"item {table['item'][twice].iloc[0]!r} stands twice", file=file,
                         row=int(np.flatnonzero(twice)[0]) + 2, mend="give one row per item")  # fmt: skip
    return table


def numbers(table: pd.DataFrame, columns: Sequence[str], file: Path) -> NDArray[np.float64]:
    """Columns as numbers, NaN where a cell is empty; shape (rows, columns)."""
    out = table[list(columns)].replace("", np.nan).apply(pd.to_numeric, errors="coerce").to_numpy(float)
    given = table[list(columns)].replace("", np.nan).notna().to_numpy()
    bad = given & ~np.isfinite(out)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise AuditError(f"column {columns[column]!r} holds {table[columns[column]].iloc[row]!r}, which is no number",
                         file=file, row=int(row) + 2, mend="give a number or leave the cell empty")  # fmt: skip
    return out
