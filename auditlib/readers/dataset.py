"""The dataset's own table (a VLMEvalKit TSV): options as written, strata, which items share a picture."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from auditlib import frames
from auditlib.errors import AuditError
from auditlib.readers import cells, choices, files
from auditlib.readers import vlmevalkit_families as families

#: an ``image`` cell of at most this many characters is the id of the row whose picture is meant
REFERENCE_LENGTH = 64
_CHUNK = 256
#: facts on which two rows of one item must agree to be copies
_FACTS = ("question", "options", "key", "stratum", "substratum", "source", "capability", "image_key")


def read_dataset(path: Path) -> pd.DataFrame:
    """Read a dataset table into an items frame; the pictures are hashed, not kept.

    Parameters
    ----------
    path : tsv, csv, xlsx, json or parquet with ``index`` and, as far as present, ``question``, ``A``..., ``answer``,
        ``category``, ``l2-category``, ``image``.

    Returns
    -------
    DataFrame
        Items contract plus ``row`` (1-based file row). Options are as written: the text ``None`` is a text.
        ``image_key`` is the SHA-256 of the picture (of the base64 text), shared by rows that refer to another row.

    Raises
    ------
    AuditError
        No ``index`` column, an id twice with different content, a picture that refers to no row.
    """
    table = pd.concat([_hash_images(chunk) for chunk in _pieces(path)])
    if not len(table):
        raise AuditError("there are no rows below the header", file=path, mend="write the file again, or leave it out")
    items = items_frame(table, path)
    if "image" in table.columns:
        items["image_key"] = _resolve(table, items, path)
    items, _ = without_copies(items, path)
    return items.reset_index(drop=True)


def open_toolkit_table(path: Path) -> pd.DataFrame:
    """A prediction or verdict file of VLMEvalKit as text, with its column names.

    Raises
    ------
    AuditError
        There is no ``prediction`` column.
    """
    table = files.open_table(path)
    table = families.restore_open(table.rename(columns=column_names(table.columns, path)))
    if "prediction" not in table.columns:
        what = f"no column 'prediction' (columns: {', '.join(table.columns[:12])})"
        mend = "this is no prediction file; remove it, or name the column 'prediction'"
        raise AuditError(what, file=path, row=1, mend=mend)
    return table


def items_frame(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Item facts of a toolkit table with VLMEvalKit's column names, one row per row of the table.

    Columns of the items contract plus ``row``. Options come from the letter columns or, where there are none, from the
    question's own text.
    """
    if "index" not in table.columns:
        mend = "name the id column 'index', or read the file as a table with columns: {item: NAME}"
        raise AuditError(
            f"no id column 'index' (columns: {', '.join(table.columns[:12])})", file=path, row=1, mend=mend
        )
    items = pd.DataFrame(index=table.index)
    items["item"] = cells.item_ids(table["index"])
    empty = items["item"] == ""
    if empty.any():
        raise AuditError("a row without id", file=path, row=int(table.index[empty][0]) + 2, mend="give it an id")
    key = cells.keys(table["answer"]) if "answer" in table.columns else pd.Series("", index=table.index)
    options = choices.from_columns(table)
    question = table["question"] if "question" in table.columns else None
    listed = families.is_mathvista(table.columns)
    if listed:
        options, key = families.mathvista_options(table)
    if question is not None and not listed and not choices.option_columns(list(table.columns)):
        items["question"], options = choices.split_questions(question, key)
    elif question is not None:
        items["question"] = question
    items["options"] = options
    if "answer" in table.columns:
        key = pd.Series(choices.text_keys(key, table["answer"], options), index=table.index, dtype="str")
    items["key"] = key
    types = choices.answer_types(options, key)
    # a list of texts is no key that a letter in brackets could be
    accepted = None if listed or "answer" not in table else families.references(table["answer"], options)
    if accepted is not None and any(accepted):
        types = ["open" if a else t for a, t in zip(accepted, types)]
        items["references"] = accepted
        items["key"] = [a[0] if a else k for a, k in zip(accepted, items["key"])]
    items["k"] = choices.counts(options, types).to_numpy()
    items["k"] = items["k"].astype("Int64")
    items["answer_type"] = types
    for ours, theirs in (
        ("stratum", ("category",)),
        ("substratum", ("l2-category", "l2_category", *(("task",) if listed else ()))),
        ("source", ("bench", "source")),
        ("capability", ("capability",)),
        ("image_key", ("image_path",)),
    ):
        name = next((c for c in theirs if c in table.columns), None)
        if name is not None:
            items[ours] = table[name].str.strip()
    cluster = _clusters(items["item"], table)
    if cluster is not None:
        items["cluster"] = cluster
    items["row"] = table.index + 2
    wanted = [c for c in dict.fromkeys((*frames.COLUMNS["items"], "references")) if c in items.columns]
    return items[[*wanted, "row"]]


def without_copies(items: pd.DataFrame, path: Path, extra: tuple[str, ...] = ()) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Drop repeated rows of one id: the rows that stay, and the copies.

    Raises
    ------
    AuditError
        Two rows of one id differ in an item fact or in one of the ``extra`` columns.
    """
    repeated = items["item"].duplicated()
    if not repeated.any():
        return items, items[repeated]
    compared = [c for c in dict.fromkeys((*_FACTS, *extra)) if c in items.columns]
    group = items[items["item"].duplicated(keep=False)]
    first = group.drop_duplicates("item").set_index("item")
    for column in compared:
        before = group["item"].map(first[column])
        differs = [a is not b and a != b and not (_none(a) and _none(b)) for a, b in zip(before, group[column])]
        if any(differs):
            bad = group[differs].iloc[0]
            raise AuditError(
                f"item {bad['item']!r} occurs twice with different {column}; the first is row "
                f"{first.at[bad['item'], 'row']}",
                file=path,
                row=int(bad["row"]),
                mend="keep the right row, or give them different ids",
            )
    return items[~repeated], items[repeated]


def _none(value: object) -> bool:
    return value is None or value is pd.NA or value != value


def read_images(path: Path, ids: Iterable[str]) -> dict[str, bytes]:
    """Pictures of some items, decoded; ids without a picture are left out.

    The file is read in pieces, so that a large dataset does not have to fit in memory.
    """
    wanted = {str(i) for i in ids}
    found: dict[str, str] = {}
    references: dict[str, str] = {}
    for _ in range(2):
        looking = (wanted | set(references.values())) - set(found)
        for chunk in _pieces(path):
            if "image" not in chunk.columns or "index" not in chunk.columns:
                return {}
            chunk = chunk[["index", "image"]].assign(index=cells.item_ids(chunk["index"]))
            for item, image in chunk[chunk["index"].isin(looking)].itertuples(index=False):
                if 0 < len(image) <= REFERENCE_LENGTH:
                    references[item] = cells.item_ids(pd.Series([image], dtype="str")).iloc[0]
                elif image:
                    found[item] = image
        if not set(references.values()) - set(found):
            break
    texts = {i: found.get(i) or found.get(references.get(i, "")) for i in wanted}
    return {i: decoded for i, t in sorted(texts.items()) if t and (decoded := _decode(t))}


def _pieces(path: Path) -> Iterator[pd.DataFrame]:
    """The table in pieces of rows where the format allows, with VLMEvalKit's column names."""
    text = files.suffix(path) in files.TEXT
    for chunk in files.text_chunks(path, rows=_CHUNK) if text else (files.open_table(path),):
        yield chunk.rename(columns=column_names(chunk.columns, path))


def _decode(text: str) -> bytes | None:
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        return base64.b64decode(text, validate=False)
    except (binascii.Error, ValueError):
        return None


def column_names(columns: Iterable[str], path: Path) -> dict[str, str]:
    """Column names as VLMEvalKit reads them: lower case, except single capital letters.

    Raises
    ------
    AuditError
        Two names are the same then.
    """
    names: dict[str, str] = {}
    seen: dict[str, str] = {}
    for c in columns:
        name = c.strip() if len(c.strip()) == 1 and c.strip().isupper() else c.strip().lower()
        if name and name in seen:
            what = f"columns {seen[name]!r} and {c!r} have the same name (capitals do not count)"
            raise AuditError(what, file=path, row=1, mend="rename or remove one of them")
        names[c], seen[name] = name, c
    return names


def _hash_images(table: pd.DataFrame) -> pd.DataFrame:
    if "image" not in table.columns:
        return table
    short = [t if len(t) <= REFERENCE_LENGTH else "#" + hashlib.sha256(t.encode()).hexdigest() for t in table["image"]]
    return table.assign(image=pd.Series(short, index=table.index, dtype="str"))


def _resolve(table: pd.DataFrame, items: pd.DataFrame, path: Path) -> pd.Series:
    """Replace a reference to another row by that row's picture."""
    own = table["image"].str.strip()
    hashed = own.str.startswith("#")
    pictures = dict(zip(items.loc[hashed, "item"], own[hashed].str[1:]))
    refers = (own != "") & ~hashed
    target = cells.item_ids(own.where(refers, "0"))
    keys = own.str[1:].where(hashed, target.map(pictures))
    lost = refers & keys.isna()
    if lost.any():
        at = lost.idxmax()
        raise AuditError(
            f"the picture refers to item {own[at]!r}, which has none",
            file=path,
            row=int(at) + 2,
            mend="correct the reference",
        )
    return keys.where(own != "", None)


def _clusters(ids: pd.Series, table: pd.DataFrame) -> pd.Series | None:
    """Items that belong together: rotations of a circular set, questions on one figure of a HallusionBench set."""
    if "g_index" in table.columns:
        base = cells.item_ids(table["g_index"])
    elif ids.str.fullmatch(r"\d+").all() and (numbers := ids.astype("int64")).max() >= 1_000_000:
        base = (numbers % 1_000_000).astype("str")
        if not set(base) <= set(ids):
            return None
    elif ids.str.fullmatch(r"V[DS](?:_[^_]*){5}").all():
        fields = ids.str.split("_", expand=True)
        base = fields[0] + "_" + fields[1] + "_" + fields[3] + "_" + fields[4]
    else:
        return None
    return base if base.duplicated().any() else None
