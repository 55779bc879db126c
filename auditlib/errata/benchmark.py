"""The items that an errata table speaks of: their keys and options, and the hash of the file they come from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from auditlib.errata.reports import Report
from auditlib.errors import AuditError
from auditlib.frames import LETTERS
from auditlib.integrity.facts import exact, known, loose, plain
from auditlib.readers.cells import key_text

if TYPE_CHECKING:
    from auditlib.auditing import Audit


@dataclass(frozen=True)
class Benchmark:
    """A benchmark's items.

    Attributes
    ----------
    name, digest : of the benchmark, and the SHA-256 of its dataset file (of id, question, options and key of the items
        where the params name no file).
    label : what an error message calls the file.
    items : item, key, and question and options where they are known.
    """

    name: str
    digest: str
    label: str
    items: pd.DataFrame

    @cached_property
    def keys(self) -> dict[str, str]:
        """Item -> key, empty where it has none."""
        keys = self.items["key"] if "key" in self.items else [""] * len(self.items)
        return {str(i): plain(k) for i, k in zip(self.items["item"], keys)}

    @cached_property
    def options(self) -> dict[str, list[str]]:
        """Item -> texts of its options, empty where they are unknown."""
        given = self.items["options"] if "options" in self.items else [None] * len(self.items)
        return {str(i): [plain(t) for t in o] if known(o) else [] for i, o in zip(self.items["item"], given)}

    @cached_property
    def by_question(self) -> dict[str, list[str]]:
        """Question, folded in case and form -> items that ask it."""
        out: dict[str, list[str]] = {}
        for item, text in zip(self.items["item"], self.items.get("question", [])):
            out.setdefault(loose(plain(text)), []).append(str(item))
        return out

    def key_of(self, item: str, said: str, *, from_zero: bool = False) -> str | None:
        """A key as this benchmark writes it: a letter, an option's text or (``from_zero``) its place; None if none.

        A benchmark whose keys are texts keeps the text.
        """
        current, options, text = self.keys[item], self.options[item], key_text(said)
        if not _letter(current):
            return said.strip() if not options or not _letter(text) else text
        if from_zero and said.strip().isdigit():
            place = int(said)
            return LETTERS[place] if place < max(len(options), 1) else None
        if _letter(text):
            return text if not options or (LETTERS.index(text) < len(options)) else None
        for form in (exact, loose):
            found = [LETTERS[i] for i, t in enumerate(options) if t and form(t) == form(said)]
            if len(found) == 1:
                return found[0]
        return None


def benchmark_of(audit: Audit) -> Benchmark:
    """The dataset file that an audit's params name, or the audit's own items.

    Raises
    ------
    AuditError
        The dataset file is missing or damaged.
    """
    from auditlib.freshness import file_hash
    from auditlib.manifest import items_digest

    path = audit.params.data.dataset if audit.params else None
    mine = audit.items
    if path is None:
        return Benchmark(audit.benchmark, items_digest(mine), f"the items of pool {audit.pool_name}", mine)
    from auditlib.readers.dataset import read_dataset

    written = read_dataset(path)
    rest = mine[~mine["item"].isin(written["item"])]
    items = pd.concat([written[written["item"].isin(mine["item"])], rest], ignore_index=True)
    return Benchmark(audit.benchmark, file_hash(path), path.name, items)


def refuse_stale(reports: Iterable[Report], benchmark: Benchmark, row_of: dict[int, int] | None = None,
                 file: object = None) -> None:  # fmt: skip
    """Refuse reports made on another key than the dataset's.

    Parameters
    ----------
    row_of : place of a report -> its row in ``file``.

    Raises
    ------
    AuditError
        ``stale``: names the first such row, and how many there are.
    """
    old = [(n, r) for n, r in enumerate(reports) if r.old_key and r.old_key != benchmark.keys.get(r.item)]
    if not old:
        return
    n, r = old[0]
    more = f" (and {len(old) - 1} more such rows)" if len(old) > 1 else ""
    raise AuditError(
        f"stale: item {r.item!r} has the key {benchmark.keys.get(r.item, '')!r} in {benchmark.label}, the report of "
        f"{r.source} was made on {r.old_key!r}{more}",
        file=file,
        row=row_of[n] if row_of else r.item,
        mend="give the dataset that the report was made on, or take the row out",
    )


def _letter(text: str) -> bool:
    return len(text) == 1 and text in LETTERS
