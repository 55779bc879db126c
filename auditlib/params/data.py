"""The ``data`` block: where the runs lie."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from auditlib.frames import CONDITIONS
from auditlib.params.base import Strict

#: fields that are paths, relative to the YAML
DATA_PATHS = ("folder", "reader", "blind_folder", "table", "matrix", "counts", "items", "dataset")
TOOLKITS = Literal["vlmevalkit", "lmms-eval", "lm-eval", "inspect", "every-eval-ever"]


class DataParams(Strict):
    """Where the runs lie: exactly one of ``embedded``, ``folder``, ``table``, ``matrix``, ``counts``; or a ``dataset``
    alone, where the ``inference`` block makes all runs, ``full`` among them.

    Paths are relative to the YAML. ``columns`` maps our column names to the file's (``{item: idx, key: gold}``);
    ``item_columns`` does the same for the ``items`` file. ``prefixes`` maps a prefix of a matrix's column names to a
    condition; ``""`` or an unlisted prefix is ``full``. ``rows`` says what a row of a matrix is. ``counts`` is a long
    table of how often which answer was given; it needs ``items``.

    In a folder, ``conditions`` maps patterns of file paths (relative to the folder, ``*`` also crosses ``/``) to
    conditions or to ``skip``, first match wins, and ``blind_benchmark`` is the benchmark's (task's) name in the runs
    without image, where it differs. ``reader`` is a Python file whose ``read(folder)`` reads a folder that no toolkit
    wrote. ``where`` keeps the rows whose column has the value: ``{split: validation}``.
    """

    embedded: str | None = None
    folder: Path | None = None
    toolkit: TOOLKITS | None = None
    reader: Path | None = None
    blind_folder: Path | None = None
    blind_benchmark: str | None = None
    conditions: dict[str, str] = Field(default_factory=dict)
    where: dict[str, str] = Field(default_factory=dict)
    table: Path | None = None
    columns: dict[str, str] = Field(default_factory=dict)
    condition: str = "full"
    sheet: str | None = None
    matrix: Path | None = None
    rows: Literal["models", "items"] = "models"
    prefixes: dict[str, str] = Field(default_factory=dict)
    counts: Path | None = None
    items: Path | None = None
    item_columns: dict[str, str] = Field(default_factory=dict)
    dataset: Path | None = None

    @model_validator(mode="after")
    def _conditions_known(self) -> DataParams:
        unknown = sorted(set(self.conditions.values()) - {*CONDITIONS, "skip"})
        if unknown:
            raise ValueError(f"data.conditions names {unknown[0]!r}; conditions are {', '.join(CONDITIONS)}, or skip")
        return self

    @model_validator(mode="after")
    def _one_source(self) -> DataParams:
        given = [k for k in ("embedded", "folder", "table", "matrix", "counts") if getattr(self, k) is not None]
        given = given or (["dataset"] if self.dataset is not None else [])
        if len(given) != 1:
            raise ValueError(
                f"data needs exactly one of embedded, folder, table, matrix, counts; it has {given or 'none'}"
            )
        for key, source in (
            ("toolkit", ("folder",)),
            ("reader", ("folder",)),
            ("blind_folder", ("folder",)),
            ("blind_benchmark", ("folder",)),
            ("conditions", ("folder",)),
            ("where", ("folder", "table")),
            ("columns", ("table", "matrix", "counts")),
            ("sheet", ("table", "matrix")),
            ("item_columns", ("folder", "table", "matrix", "counts")),
            ("items", ("folder", "table", "matrix", "counts")),
            ("prefixes", ("table", "matrix")),
            ("dataset", ("embedded", "folder", "table", "dataset")),
        ):
            if getattr(self, key) and given[0] not in source:
                raise ValueError(f"data.{key} has no effect with data.{given[0]}; it goes with {' or '.join(source)}")
        without = ("toolkit", "blind_folder", "blind_benchmark", "conditions")
        if self.reader is not None and (extra := [k for k in without if getattr(self, k)]):
            raise ValueError(f"data.{extra[0]} has no effect with data.reader, which reads the whole folder")
        if self.counts is not None and self.items is None:
            raise ValueError("data.counts needs data.items, a table with one row per item")
        return self

    @property
    def has_runs(self) -> bool:
        """Whether there are runs to read; a dataset alone has none."""
        return any(v is not None for v in (self.embedded, self.folder, self.table, self.matrix, self.counts))
