"""The public response tables of M3IRT, read into a tensor; paths come from the caller."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from auditlib.dependence.refinement import ContaminatedPool, contaminate
from auditlib.dependence.tensor import ResponseTensor

PREFIXES = ("<no_info>", "<no_question>", "<no_image>", "")
#: beginnings of model names
FAMILIES = {
    "qwen": ("qwen",), "gpt": ("gpt",), "gemini": ("gemini",), "claude": ("haiku", "sonnet"),
    "mistral": ("pixtral", "pixtrl"), "nova": ("nova",),
}  # fmt: skip


def read_tensor(path: Path, *, k: int = 4, tag: str = "") -> ResponseTensor:
    """One file, models sorted by name; items that lack one of the four conditions are left out."""
    table = pd.read_csv(path, index_col=0, encoding="utf-8-sig").sort_index()
    column = {name: j for j, name in enumerate(table.columns)}
    items = [name for name in column if not name.startswith("<") and all(p + name in column for p in PREFIXES)]
    values = table.to_numpy(float)
    hits = np.stack([values[:, [column[p + name] for name in items]] for p in PREFIXES], axis=2)
    families = [next((f for f, starts in FAMILIES.items() if m.startswith(starts)), "") for m in table.index]
    return ResponseTensor.from_arrays(
        hits, k=k, subjects=list(table.index), items=[tag + i for i in items], families=families
    )


def read_contaminated(folder: Path, *, k: int = 4) -> ContaminatedPool:
    """Clean and corrupted items of one benchmark."""
    clean = read_tensor(folder / f"normal_{folder.name}.csv", k=k)
    return contaminate(clean, read_tensor(folder / f"shuffled_{folder.name}.csv", k=k, tag="corrupted "))
