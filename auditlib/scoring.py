"""From responses to integer arrays: where each reply stands, and the arms that score it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditlib.errors import AuditError
from auditlib.frames import LETTERS, MISSING, letter_codes
from auditlib.pool import Arm


class Cells:
    """Places of responses in (items, models) arrays, per condition."""

    def __init__(self, items: pd.DataFrame, models: pd.DataFrame, responses: pd.DataFrame):
        self.shape = (len(items), len(models))
        responses = responses[responses["model"].isin(models["model"])]
        if "sample" not in responses:
            responses = responses.assign(sample=0)
        self.responses = responses
        self.i = pd.Index(items["item"]).get_indexer(responses["item"])
        self.j = pd.Index(models["model"]).get_indexer(responses["model"])
        self.conditions = sorted(set(responses["condition"]), key=lambda c: (c != "full", c != "blind", c))
        clash = responses.duplicated(["item", "model", "condition", "sample"])
        if clash.any():
            row = responses[clash].iloc[0]
            raise AuditError(
                f"item {row['item']} of {row['model']} ({row['condition']}) was answered twice",
                file=row.get("run"),
                row=row.get("row"),
                mend="keep one of the two rows, or give them different sample numbers",
            )

    def of(self, condition: str) -> np.ndarray:
        return self.responses["condition"].eq(condition).to_numpy()

    def letters(self, condition: str) -> np.ndarray:
        """Letter of the first sample of each cell; MISSING where there is no usable reply."""
        codes = letter_codes(self.responses["letter"])
        usable = self.responses["status"].eq("ok").to_numpy() & self.of(condition)
        first = self.responses["sample"].eq(
            self.responses.groupby(["item", "model", "condition"])["sample"].transform("min")
        )
        out = np.full(self.shape, MISSING, np.int8)
        here = usable & first.to_numpy()
        out[self.i[here], self.j[here]] = codes[here]
        return out

    def abstained(self, condition: str, answer_type: pd.Series, unread: np.ndarray | None = None) -> np.ndarray:
        """Usable replies that give no answer: no option letter, neither yes nor no on a yes/no item, or ``unread``."""
        r = self.responses
        yesno = answer_type.eq("yesno").to_numpy()[self.i]
        said = r["letter"].where(~yesno, r["answer"]).astype(object)
        none = said.isna() | said.eq("Z")
        none = none.to_numpy() & answer_type.isin(["choice", "yesno"]).to_numpy()[self.i]
        if unread is not None:
            none |= unread
        if "abstained" in r:  # the run's own flag
            none |= r["abstained"].fillna(False).astype(bool).to_numpy()
        here = self.of(condition) & r["status"].eq("ok").to_numpy() & none
        out = np.zeros(self.shape, bool)
        out[self.i[here], self.j[here]] = True
        return out

    def flag(self, column: str, condition: str) -> np.ndarray:
        out = np.zeros(self.shape, bool)
        if column in self.responses:
            here = self.of(condition) & self.responses[column].fillna(False).astype(bool).to_numpy()
            out[self.i[here], self.j[here]] = True
        return out

    def not_ok(self, condition: str) -> np.ndarray:
        out = np.zeros(self.shape, bool)
        here = self.of(condition) & self.responses["status"].ne("ok").to_numpy()
        out[self.i[here], self.j[here]] = True
        return out

    def count(self, values: np.ndarray, condition: str) -> np.ndarray:
        """Sum of whole numbers over the samples of each cell."""
        out = np.zeros(self.shape, np.int16)
        here = self.of(condition)
        np.add.at(out, (self.i[here], self.j[here]), values[here].astype(np.int16, casting="unsafe"))
        return out if out.max(initial=0) > 255 else out.astype(np.uint8)


def _counted(cells: Cells, hit: np.ndarray, usable: np.ndarray, name: str, *, failed_wrong: bool, unit: int = 1) -> Arm:
    """An arm from what each reply gains, in parts (``unit`` parts are a full hit)."""
    ok = cells.responses["status"].eq("ok").to_numpy()
    trial = usable & (ok | failed_wrong)
    hits = {c: cells.count(np.where(ok & trial, hit, 0), c) for c in cells.conditions}
    return Arm(name, hits, {c: cells.count(trial * unit, c) for c in cells.conditions}, unit)


def exact_arm(cells: Cells, items: pd.DataFrame, *, failed_wrong: bool) -> Arm:
    """Hits by letter, over the items whose key is a letter."""
    keys = items["key"].to_numpy(dtype=object)[cells.i] if "key" in items else np.array([None] * len(cells.i))
    letter = cells.responses["letter"].astype(object).where(cells.responses["letter"].notna(), "").to_numpy()
    known = np.array([isinstance(k, str) and len(k) == 1 and k in LETTERS[:-1] for k in keys], bool)
    return _counted(cells, known & (letter == keys), known, "exact", failed_wrong=failed_wrong)


def yesno_arm(cells: Cells, items: pd.DataFrame, *, failed_wrong: bool) -> Arm:
    keys = items["key"].astype(str).str.lower().to_numpy(dtype=object)[cells.i]
    mine = items["answer_type"].eq("yesno").to_numpy()[cells.i]
    answer = cells.responses["answer"].astype(object).where(cells.responses["answer"].notna(), "").to_numpy()
    return _counted(cells, mine & (answer == keys), mine, "exact_yesno", failed_wrong=failed_wrong)


def open_verdicts(cells: Cells, items: pd.DataFrame, tolerance: float) -> np.ndarray:
    """Whether each reply to an open item gives an accepted answer.

    Returns
    -------
    float array, shape (replies,): 1, 0, -1 where the reply cannot be read, NaN where the item is not open, has no
    accepted answer, or there was no reply.
    """
    from auditlib.extract.open_answers import KINDS, matches

    out = np.full(len(cells.i), np.nan)
    open_item = (~items["answer_type"].isin(["choice", "yesno"])).to_numpy()
    keys = _texts(items, "key")
    lists = items["references"] if "references" in items else [None] * len(items)
    accepted = [tuple(r) if isinstance(r, list | tuple) and len(r) else (k,) if k else () for r, k in zip(lists, keys)]
    named = [t if t in (*KINDS, "numeric", "integer", "float") else "auto" for t in _texts(items, "answer_type")]
    ok = cells.responses["status"].eq("ok").to_numpy()
    seen: dict[tuple[str, int], float] = {}
    for row, (i, text) in enumerate(zip(cells.i.tolist(), cells.responses["prediction"].tolist())):
        if not ok[row] or not open_item[i] or not accepted[i]:
            continue
        if (text, i) not in seen:
            verdict, _ = matches(text, accepted[i], kind=named[i], tolerance=tolerance)
            seen[text, i] = -1.0 if verdict is None else float(verdict)
        out[row] = seen[text, i]
    return out


def _texts(items: pd.DataFrame, column: str) -> list[str]:
    return [v if isinstance(v, str) else "" for v in items[column]] if column in items else [""] * len(items)


def open_arm(cells: Cells, verdicts: np.ndarray, items: pd.DataFrame, *, failed_wrong: bool) -> Arm | None:
    """Hits on open items by comparison with the accepted answers; None where no reply could be compared."""
    if np.isnan(verdicts).all():
        return None
    keyed = np.array([bool(k) for k in _texts(items, "key")])
    if "references" in items:
        keyed |= np.array([isinstance(r, list | tuple) and len(r) > 0 for r in items["references"]])
    mine = keyed & (~items["answer_type"].isin(["choice", "yesno"])).to_numpy()
    return _counted(cells, verdicts == 1, mine[cells.i], "exact_open", failed_wrong=failed_wrong)


def judged_arm(cells: Cells, judgements: pd.DataFrame, *, failed_wrong: bool) -> Arm | None:
    """The judged arm. A random fill is no verdict: the reply counts as an abstention, wrong like any other.

    Graded verdicts are counted in parts of their common denominator. Verdicts on groups of items (``level`` circular)
    are no verdicts on an item and play no part.
    """
    if "level" in judgements:
        judgements = judgements[judgements["level"] != "circular"]
    if "sample" not in judgements:
        judgements = judgements.assign(sample=0)
    on = ["item", "model", "condition", "sample"]
    verdicts = judgements.drop_duplicates(on)
    joined = cells.responses[on].merge(verdicts[[*on, "hit", "source"]], on=on, how="left")
    hit, source = joined["hit"].to_numpy(dtype=float), joined["source"].to_numpy(dtype=object)
    fill = source == "random_fill"
    usable = ~np.isnan(hit) | fill
    if not usable.any():
        return None
    unit = common_denominator(hit[~np.isnan(hit)])
    parts = np.rint(np.where(fill | np.isnan(hit), 0.0, hit) * unit).astype(np.int64)
    return _counted(cells, parts, usable, "judged", failed_wrong=failed_wrong, unit=unit)


#: the finest step in which graded verdicts are counted when they have no small common denominator
FINEST = 100


def common_denominator(scores: np.ndarray) -> int:
    """The smallest whole number up to 60 of which every score in [0, 1] is a multiple; else :data:`FINEST`.

    Scores may have been printed with three decimals: .333 is a third.

    Examples
    --------
    >>> common_denominator(np.array([0, 1.0])), common_denominator(np.array([0, 0.3, 0.9, 1]))
    (1, 10)
    >>> common_denominator(np.array([0.333, 0.6666667, 1]))
    3
    """
    values = np.unique(scores)
    for unit in range(1, 61):
        if (np.abs(values * unit - np.rint(values * unit)) <= 5.1e-4 * unit).all():
            return unit
    return FINEST


def rounded(scores: np.ndarray, unit: int) -> int:
    """How many scores are no multiple of 1/unit, so that counting them in parts moves them."""
    return int((np.abs(scores * unit - np.rint(scores * unit)) > 5.1e-4 * unit).sum())
