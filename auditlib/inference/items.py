"""Questions to ask: items with their options and pictures, from the tables in which benchmarks are handed out."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib import frames
from auditlib.calls import Picture
from auditlib.errors import AuditError
from auditlib.frames import option_name
from auditlib.inference.cell_pictures import Cells, PictureCell, kept_cells, parquet_cells, text_cells
from auditlib.inference.item_pictures import PictureFinder
from auditlib.readers import cells, files
from auditlib.readers.dataset import column_names, items_frame, without_copies
from auditlib.readers.vlmevalkit_families import is_mathvista

_PICTURE_COLUMN = re.compile(r"image(?:_\d+)?")
_OPTION_LISTS = ("options", "choices")


@dataclass(frozen=True)
class QuestionItem:
    """One question of a benchmark.

    Attributes
    ----------
    item : id, as the audit's readers write it.
    question, options, hint : texts; options in letter order, empty where a letter has none.
    key, references, answer_type : the right answer (all accepted ones) and its kind; never part of a prompt.
    stratum, substratum, source, capability, cluster : facts for the audit.
    pictures : pictures in order, loaded when they are sent.
    row : row of the file, the header being row 1.
    """

    item: str
    question: str
    options: tuple[str, ...] = ()
    hint: str = ""
    key: str = ""
    answer_type: str = "choice"
    stratum: str = ""
    substratum: str = ""
    source: str = ""
    capability: str = ""
    cluster: str = ""
    references: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    row: int | None = None

    @property
    def letters(self) -> str:
        """Letters of the options that have a text."""
        return "".join(option_name(i) for i, text in enumerate(self.options[:26]) if text.strip())

    @property
    def k(self) -> int | None:
        """Number of options, 2 for yes/no; None where unknown."""
        return 2 if self.answer_type == "yesno" else (len(self.letters) or None)

    @property
    def image_key(self) -> str | None:
        """Hash of the picture; of the hashes, where there are several."""
        if len(self.pictures) < 2:
            return self.pictures[0].sha256 if self.pictures else None
        return hashlib.sha256("+".join(p.sha256 for p in self.pictures).encode()).hexdigest()


def read_question_items(
    path: str | Path,
    *,
    image_folder: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, str] | None = None,
) -> list[QuestionItem]:
    """Read the questions of a benchmark.

    Parameters
    ----------
    path : a table (LMUData TSV, csv, xlsx, json, jsonl, parquet), or a folder that holds one such table beside its
        pictures. ``index`` is the id; ``question``, ``A``..., ``options``, ``answer``, ``hint``, ``category``,
        ``l2-category`` as far as they are there. Pictures: ``image`` (base64, the id of the row whose picture is
        meant, bytes, or a file name; ``image_1``, ``image_2`` and so on for several) or ``image_path``.
    image_folder : folder of the pictures; the table's own folder when not given.
    columns : name in the list above -> name in the file, where it differs: ``{"index": "id", "answer": "gold"}``.
    where : column -> value; other rows are left out.

    Returns
    -------
    list of QuestionItem
        In the file's order. Each picture was read once, to hash it, and is not kept.

    Raises
    ------
    AuditError
        A row whose picture is no base64, no image file, missing, or another row's that has none; an id twice.

    Notes
    -----
    From tsv, csv and parquet files pictures are read again when they are sent; memory does not grow with their size.
    The other formats are for image files by name: base64 in them stays in memory.
    """
    path = _table_of(Path(path))
    table, cells_of, rows = _facts(path, dict(columns or {}))
    table = _with_option_columns(table)
    found = items_frame(table, path)
    found["hint"] = table["hint"] if "hint" in table.columns else ""
    for column, value in (where or {}).items():
        if column.lower() not in table.columns and column not in table.columns:
            what = f"where names the column {column!r}, which is not here (columns: {', '.join(table.columns[:12])})"
            raise AuditError(what, file=path, row=1, mend="correct where: in the params")
        found = found[table[column if column in table.columns else column.lower()][found.index].str.strip() == value]
    if not len(found):
        raise AuditError("no question is left", file=path, mend="correct where: in the params, or the file")
    ids = dict(zip(cells.item_ids(table["index"]), table.index))
    found, _ = without_copies(found, path, extra=("hint",))
    finder = PictureFinder(path, Path(image_folder) if image_folder else path.parent, ids, table, rows)
    pictures = finder.pictures(cells_of, found.index)
    return [_item(row, pictures.get(at, ())) for at, row in zip(found.index, found.to_dict("records"))]


def items_table(items: Iterable[QuestionItem]) -> pd.DataFrame:
    """Items contract of the audit, one row per item."""
    rows = [
        {
            "item": i.item, "question": i.question, "options": list(i.options), "key": i.key, "k": i.k,
            "answer_type": i.answer_type, "stratum": i.stratum, "substratum": i.substratum, "source": i.source,
            "capability": i.capability, "image_key": i.image_key, "cluster": i.cluster,
            "references": list(i.references) or None, "hint": i.hint, "row": i.row,
        }
        for i in items
    ]  # fmt: skip
    table = frames.frame("items", rows)
    empty = [c for c in ("stratum", "substratum", "source", "capability", "cluster") if not table[c].astype(bool).any()]
    empty += [c for c in ("references", "image_key") if table[c].isna().all()]
    return table.drop(columns=empty).astype({"k": "Int64", "row": "Int64"})


def _item(row: Mapping[str, Any], pictures: tuple[Picture, ...]) -> QuestionItem:
    def text(name: str) -> str:
        value = row.get(name)
        return value if isinstance(value, str) else ""

    references = row.get("references")
    return QuestionItem(
        item=row["item"],
        question=text("question"),
        options=tuple(row["options"]),
        hint=text("hint"),
        key=text("key"),
        answer_type=row["answer_type"],
        stratum=text("stratum"),
        substratum=text("substratum"),
        source=text("source"),
        capability=text("capability"),
        cluster=text("cluster"),
        references=tuple(references) if isinstance(references, list) else (),
        pictures=pictures,
        row=int(row["row"]),
    )


def _table_of(path: Path) -> Path:
    if not path.is_dir():
        return path
    tables = [
        p for p in sorted(path.iterdir()) if files.suffix(p) in files.READABLE and not p.name.startswith((".", "~"))
    ]
    if len(tables) != 1:
        what = f"{len(tables)} tables in this folder" if tables else "no table of questions in this folder"
        raise AuditError(what, file=path, mend=f"name the table: {', '.join(t.name for t in tables[:6]) or 'NAME.tsv'}")
    return tables[0]


def _facts(path: Path, ours: dict[str, str]) -> tuple[pd.DataFrame, Cells, int]:
    """The table without its pictures, as text with our column names; the picture cells; the number of rows."""
    files.check_file(path)
    kind = files.suffix(path)
    source: Callable[[str], Iterator[PictureCell]]
    if kind == ".parquet":
        table, names = _parquet(path, ours)
        source = partial(parquet_cells, path)
    elif kind in files.TEXT:
        parts = []
        for chunk in files.text_chunks(path, rows=64):
            names = _names(chunk.columns, ours, path)
            parts.append(chunk.drop(columns=[c for c in chunk.columns if _is_picture(names.get(c, ""))]))
        table = pd.concat(parts).apply(cells.unescape) if parts else pd.DataFrame()
        source = partial(text_cells, path)
    else:
        table = files.open_table(path)
        names = _names(table.columns, ours, path)
        source = partial(kept_cells, table)
        table = table.drop(columns=[c for c in table.columns if _is_picture(names.get(c, ""))])
    if not len(table):
        raise AuditError("there are no rows below the header", file=path, mend="write the file again")
    table, rows = table.rename(columns=names), int(table.index[-1]) + 1
    table = table[(table != "").any(axis=1)]
    where = sorted((n, c) for c, n in names.items() if _is_picture(n))
    return table, {n: partial(source, c) for n, c in sorted(where, key=lambda w: (len(w[0]), w[0]))}, rows


def _names(columns: Iterable[str], ours: Mapping[str, str], path: Path) -> dict[str, str]:
    """The file's names -> VLMEvalKit's."""
    columns = [str(c) for c in columns]
    lost = [theirs for theirs in ours.values() if theirs not in columns]
    if lost:
        what = f"no column {lost[0]!r} (columns: {', '.join(columns[:12])})"
        raise AuditError(what, file=path, row=1, mend="correct the column names in the params")
    stated = {theirs: name for name, theirs in ours.items()}
    rest = [c for c in columns if c not in stated]
    taken = set(stated.values())
    names = {c: n for c, n in column_names(rest, path).items() if n not in taken} | stated
    if "index" not in names.values() and (c := next((c for c in rest if names.get(c) in ("id", "question_id")), None)):
        names[c] = "index"
    return names


def _is_picture(name: str) -> bool:
    return bool(_PICTURE_COLUMN.fullmatch(name))


def _parquet(path: Path, ours: Mapping[str, str]) -> tuple[pd.DataFrame, dict[str, str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = _names(file.schema_arrow.names, ours, path)
            table = file.read(columns=[c for c in file.schema_arrow.names if not _is_picture(names.get(c, ""))])
    except (pa.ArrowException, OSError) as e:
        said = str(e).splitlines()[0]
        raise AuditError(f"not readable as parquet ({said})", file=path, mend="copy or write the file again") from None
    return pd.DataFrame({n: files.arrow_text(c) for n, c in zip(table.column_names, table.columns)}), names


def _with_option_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Options of one column as letter columns, where there are none."""
    name = next((n for n in _OPTION_LISTS if n in table.columns), None)
    if name is None or "A" in table.columns or is_mathvista(table.columns):
        return table
    try:
        lists = [cells.option_list(t) for t in table[name]]
    except ValueError:
        return table
    most = min(max((len(o) for o in lists), default=0), 26)
    letters = {option_name(i): [o[i] if i < len(o) else "" for o in lists] for i in range(most)}
    return table.assign(**{n: pd.Series(v, index=table.index, dtype="str") for n, v in letters.items()})
