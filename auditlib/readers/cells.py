"""What a cell means: values to text, item ids, letters, and the state of a prediction."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

#: the longest text an Excel cell can hold; a cell of exactly this length has lost its end
EXCEL_LIMIT = 32_767

_FAILED = re.compile(
    r"\s*(?:Failed to obtain answer|Chat Mode: Failed with all possible conversation turns|\[LMMS_EVAL_REQUEST_FAILED)"
)
_FILTERED = re.compile(r"content[_ ](?:filter|management policy|policy)|ResponsibleAIPolicyViolation", re.IGNORECASE)

_PICTURE = r"(?:image|images|picture|pictures|figure|photo|photograph|diagram|chart|graph|screenshot|attachment|file)"
_UNABLE = r"(?:can ?not|can't|could not|couldn't|do not|don't|unable to|not able to|not possible to|impossible to)"
_REFUSALS = "|".join(
    (
        rf"\b{_UNABLE} (?:\w+ ){{0,2}}(?:see|view|access|open|process|find|look at|analy[sz]e) "
        rf"(?:\w+ ){{0,3}}{_PICTURE}\b",
        rf"\bno {_PICTURE} (?:is|was|were|has been|have been|seems? to be|here|in)? ?"
        r"(?:\w+ )?(?:attached|provided|included|given|supplied|uploaded|shared|available|here|this conversation)",
        rf"\bthere (?:is|was|are|were) no {_PICTURE}\b[^.]{{0,40}}\b(?:here|attached|provided|to look at|for me)",
        rf"\b(?:the|your|any) {_PICTURE} (?:is|was|seems|appears)(?: to be)? "
        r"(?:missing|unavailable|not (?:attached|provided|included|available|visible|accessible))",
        rf"\b{_PICTURE} (?:did not|didn't|has not|hasn't|failed to) (?:come through|load|upload|arrive)",
        rf"\bwithout (?:the |an |any |seeing |access to |being able to see ){{1,3}}{_PICTURE}\b[^.]{{0,60}}{_UNABLE}",
        r"\bplease (?:re)?(?:send|attach|upload|provide|share)\b",
        r"\bi(?:'m| am) sorry,? but i\b",
        rf"\b(?:i|we) {_UNABLE} (?:help|assist|answer|comply|identify|provide an answer)",
        r"\bcannot determine the answer\b",
    )
)
_REFUSED = re.compile(_REFUSALS, re.IGNORECASE)
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_INTEGRAL = re.compile(r"[+-]?\d+\.0+")
_WRAPPED_LETTER = re.compile(r"[\s(\[{*\"'`]*([A-Za-z])[\s)\]}*\"'`.:]*")


def cell_text(value: Any) -> str:
    """One cell as text: an integral float becomes int text, an empty or missing value becomes ``""``.

    Lists and mappings become JSON, so that an option list survives any table format.

    Examples
    --------
    >>> cell_text(12.0), cell_text(None), cell_text(["a", "None"])
    ('12', '', '["a", "None"]')
    """
    if isinstance(value, str):
        return value
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        if np.isnan(value):
            return ""
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return str(value)


def column_text(values: Iterable[Any]) -> list[str]:
    """A whole column by :func:`cell_text`, quick where the cells are text already."""
    return [
        v if type(v) is str else str(int(v)) if type(v) is float and v.is_integer() else cell_text(v) for v in values
    ]


def unescape(column: pd.Series) -> pd.Series:
    """Undo ``_xHHHH_``, the spelling of control characters in a spreadsheet that was saved again as text.

    The spreadsheet reader itself decodes them; a csv made from one does not.
    """
    has = column.str.contains("_x", regex=False)
    if not has.any():
        return column
    fixed = column.copy()
    fixed[has] = [_ESCAPED.sub(_character, t) for t in column[has]]
    return fixed


def _character(spelled: re.Match[str]) -> str:
    """The character meant; half of a surrogate pair is none and stays spelled out."""
    code = int(spelled.group(1), 16)
    return spelled.group(0) if 0xD800 <= code <= 0xDFFF else chr(code)


def item_ids(column: pd.Series) -> pd.Series:
    """Item ids as text: stripped, ``12.0`` -> ``12``; leading zeros go only if every id is an integer.

    A file whose ids are all integers may have been a spreadsheet of numbers elsewhere (``007`` there is ``7``). When
    dropping zeros would make two different ids equal, they stay.

    Examples
    --------
    >>> item_ids(pd.Series([" 12.0", "007"])).tolist()
    ['12', '7']
    """
    ids = column.str.strip()
    integral = ids.str.fullmatch(_INTEGRAL)
    if integral.any():
        ids = ids.where(~integral, ids.str.replace(r"\.0+$", "", regex=True))
    if ids.str.match(r"-?0+\d").any() and ids.str.fullmatch(r"-?\d+").all():
        bare = ids.str.replace(r"^(-?)0+(?=\d)", r"\1", regex=True)
        if bare.nunique() == ids.nunique():
            ids = bare
    return ids


def key_text(value: str) -> str:
    """A key as the file gives it, stripped; a wrapped letter such as ``(A)`` or ``B.`` becomes the capital letter."""
    match = _WRAPPED_LETTER.fullmatch(value)
    return match.group(1).upper() if match else value.strip()


def keys(column: pd.Series) -> pd.Series:
    """:func:`key_text` over a column; each distinct key is looked at once."""
    return column.map({v: key_text(v) for v in column.unique()}).astype("str")


def option_list(text: str) -> list[str]:
    """Options from one cell: a JSON list or mapping of letters, or a Python literal of either; ``""`` gives none.

    Raises
    ------
    ValueError
        When the text is neither.
    """
    if not text.strip():
        return []
    try:
        value = json.loads(text)
    except ValueError:
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise ValueError("no list of options") from None
    if isinstance(value, dict):
        letters = {key_text(str(k)): cell_text(v) for k, v in value.items()}
        if any(len(k) != 1 or not k.isupper() for k in letters):
            raise ValueError("option names are not letters")
        last = max((ord(k) - ord("A") for k in letters), default=-1)
        value = [letters.get(chr(ord("A") + i), "") for i in range(last + 1)]
    if not isinstance(value, (list, tuple)):
        raise ValueError("no list of options")
    return trimmed([cell_text(v) for v in value])


def trimmed(options: list[str]) -> list[str]:
    """Options without the empty ones at the end; an empty one in between keeps its letter."""
    end = len(options)
    while end and not options[end - 1].strip():
        end -= 1
    return options[:end]


def prediction_status(predictions: pd.Series) -> pd.Series:
    """State of each raw reply: ``ok``, ``failed``, ``filtered``, ``missing`` or ``truncated``.

    A failed call is a failure sentence of the toolkit at the start of the reply, an empty cell is missing, a reply of
    exactly 32,767 characters was cut by the spreadsheet. (An unclosed think block is found when the reply is parsed.)
    """
    status = np.full(len(predictions), "ok", dtype=object)
    lengths = predictions.str.len().to_numpy()
    blank = (predictions.str.strip() == "").to_numpy()
    failed = predictions.str.match(_FAILED).to_numpy(dtype=bool)
    status[lengths == EXCEL_LIMIT] = "truncated"
    status[failed] = "failed"
    if failed.any():
        refused_by_filter = predictions[failed].str.contains(_FILTERED).to_numpy(dtype=bool)
        status[np.flatnonzero(failed)[refused_by_filter]] = "filtered"
    status[blank] = "missing"
    return pd.Series(status, index=predictions.index, dtype="str")


def refused(predictions: pd.Series) -> pd.Series:
    """Whether a reply says that the picture cannot be seen or that the model will not answer (bool).

    A phrase only: a reply may refuse and still name a letter.
    """
    plain = predictions.str.replace("’", "'", regex=False)
    return plain.str.contains(_REFUSED).astype(bool)
