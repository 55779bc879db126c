"""Pictures of a table's rows: decoded once to be hashed, then known by where they lie."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib.calls import Picture
from auditlib.errors import AuditError
from auditlib.inference import images
from auditlib.inference.cell_pictures import Cells, PictureCell
from auditlib.readers import cells
from auditlib.readers.dataset import REFERENCE_LENGTH

_FILE_NAME = re.compile(r"[^\n]{1,400}\.(?:png|jpe?g|webp|gif)", re.IGNORECASE)


class PictureFinder:
    """Pictures of a table's rows, from cells, other rows' cells, or files.

    Parameters
    ----------
    path : the table.
    folder : of the pictures that are files.
    ids : item id -> place of its row.
    table : the rows' other columns, indexed by place.
    rows : number of rows of the file.
    """

    def __init__(self, path: Path, folder: Path, ids: dict[str, int], table: pd.DataFrame, rows: int):
        self.path, self.folder, self.ids, self.table, self.rows = path, folder, ids, table, rows

    def pictures(self, cells_of: Cells, wanted: Iterable[int]) -> dict[int, tuple[Picture, ...]]:
        """Pictures of each wanted row, by its place.

        Raises
        ------
        AuditError
            A picture is no base64, no image file, missing, or meant to be another row's that has none.
        """
        found: dict[int, tuple[Picture, ...]] = {}
        refers: dict[int, int] = {}
        known = set(self.table.index)
        for source in cells_of.values():
            last = -1
            for cell in source():
                last = cell.at
                if cell.at not in known or (value := self._plain(cell.value)) is None:
                    continue
                target = self._reference(value)
                if target is not None:
                    refers[cell.at] = target
                    continue
                found[cell.at] = found.get(cell.at, ()) + tuple(self._of_cell(cell, value))
            if last + 1 != self.rows:
                what = f"rows cannot be told apart ({last + 1} or {self.rows})"
                raise AuditError(what, file=self.path, mend="write the file again with quotes round every field")
        if "image_path" in self.table.columns:
            for at, text in self.table["image_path"].items():
                if at not in found and at not in refers and text.strip():
                    names = _listed(text) or [text]
                    found[at] = tuple(self._file(str(n), at) for n in names)
        for at, target in refers.items():
            if target not in found:
                other = cells.item_ids(self.table["index"])[target]
                what = f"the picture refers to item {other!r}, which has none of its own"
                raise AuditError(what, file=self.path, row=at + 2, mend="correct the reference")
            found[at] = found[target]
        return {at: found[at] for at in wanted if at in found}

    def _plain(self, value: Any) -> Any:
        """A cell without wrapping; None where it is empty."""
        if isinstance(value, str):
            value = value.strip()
        empty = value is None or (isinstance(value, str | bytes | list) and not len(value)) or value in ("nan", "[]")
        return None if empty else value

    def _reference(self, value: Any) -> int | None:
        """Place of the row that a short text names."""
        if not isinstance(value, str) or len(value) > REFERENCE_LENGTH:
            return None
        return self.ids.get(value, self.ids.get(cells.item_ids(pd.Series([value], dtype="str")).iloc[0]))

    def _of_cell(self, cell: PictureCell, value: Any) -> Iterator[Picture]:
        listed = _listed(value)
        for place, one in enumerate([value] if listed is None else listed):
            if isinstance(one, str) and len(one) <= 400 and _FILE_NAME.fullmatch(one):
                yield self._file(one, cell.at)
                continue
            if isinstance(one, dict) and one.get("bytes") is None and one.get("path"):
                yield self._file(str(one["path"]), cell.at)
                continue
            if isinstance(one, str) and len(one) <= REFERENCE_LENGTH and listed is None:
                what = f"the picture refers to {one!r}, which is no item and no image file"
                raise AuditError(what, file=self.path, row=cell.at + 2, mend="correct the reference")
            try:
                yield images.lazy_picture(partial(_load, cell.again, None if listed is None else place), _bytes(one))
            except ValueError as e:
                what = f"the picture is {e} (it starts with {_start(one)})"
                mend = "write the row again from the source; png, jpeg, webp and gif are sent"
                raise AuditError(what, file=self.path, row=cell.at + 2, mend=mend) from None

    def _file(self, name: str, at: int) -> Picture:
        places = (Path(name), self.folder / name, self.folder / "images" / name)
        path = next((p for p in (places[1:] if not places[0].is_absolute() else places[:1]) if p.is_file()), None)
        if path is None:
            mend = "name the folder of the pictures, or correct the name"
            raise AuditError(f"there is no image file {name!r}", file=self.path, row=at + 2, mend=mend)
        try:
            return images.picture_from_path(path)
        except (OSError, ValueError) as e:
            mend = "replace it; png, jpeg, webp and gif are sent"
            raise AuditError(f"{name}: {e}", file=self.path, row=at + 2, mend=mend) from None


def _listed(value: Any) -> list[Any] | None:
    """Several pictures of one cell: a list, or the text of one; None where the cell holds one picture."""
    if isinstance(value, list):
        return value
    if not isinstance(value, str) or not value.startswith("["):
        return None
    try:
        out = json.loads(value)
    except ValueError:
        try:
            out = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    return out if isinstance(out, list) else None


def _load(again: Callable[[], Any], place: int | None) -> bytes:
    value = again()
    if place is not None:
        value = _listed(value.strip() if isinstance(value, str) else value)
        value = value[place] if value is not None and place < len(value) else b""
    return _bytes(value)


def _bytes(value: Any) -> bytes:
    """Bytes of one picture: as they are, of a mapping with ``bytes``, or of base64 text."""
    if isinstance(value, dict):
        value = value.get("bytes")
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise ValueError("neither text nor bytes")
    return images.decode_base64(value.strip())


def _start(value: Any) -> str:
    return repr(value[:12] if isinstance(value, str | bytes) else type(value).__name__)
