"""What there is to see of each item: facts to filter and sort by, findings, replies, votes."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib import lookup
from auditlib.errors import AuditError
from auditlib.escape import visible
from auditlib.flagged_rows import answered, flagged_findings, lettered
from auditlib.frames import ABSTENTION, CONDITIONS, SEVERITIES

if TYPE_CHECKING:
    from auditlib.auditing import Audit
    from auditlib.browse.neighbours import Group

#: columns of a table of items, beside ``item``
FACTS = ("question", "key", "answer_type", "stratum", "substratum", "source")


@dataclass(frozen=True)
class Reply:
    """One reply: ``answer`` is what was read from it, ``""`` where nothing was; ``right`` is the judge's verdict."""

    model: str
    condition: str
    answer: str
    status: str
    rule: str
    right: float | None
    judge: str
    text: str

    @property
    def state(self) -> str:
        """``read``, ``unread``, or the status of a reply that did not come back whole."""
        whole = self.status in ("", "ok")
        return ("read" if self.answer else "unread") if whole else self.status

    @property
    def verdict(self) -> str:
        """``right``, ``wrong``, or a score between; ``""`` where nobody judged."""
        if self.right is None or self.right != self.right:
            return ""
        return {1.0: "right", 0.0: "wrong"}.get(self.right, f"score {self.right:g}")


@dataclass(frozen=True)
class Finding:
    """One reason why an item is flagged; ``kind`` tells findings of one detector apart, ``facts`` is its evidence."""

    detector: str
    arm: str
    severity: str
    score: float
    message: str
    kind: str
    facts: str


@dataclass(frozen=True)
class Case:
    """One item with everything that is shown of it; texts are as the files hold them.

    ``votes`` has one row per option (or answer) in order: its name, and the models that named it per condition.
    ``tally`` is (right with the image, right without, counted models, replies per model); None where not counted.
    """

    item: str
    question: str
    key: str
    answer_type: str
    stratum: str
    substratum: str
    source: str
    category: str
    severity: str
    score: float
    options: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]
    replies: tuple[Reply, ...]
    votes: tuple[tuple[str, dict[str, tuple[str, ...]]], ...]
    tally: tuple[int, int, int, int] | None
    neighbours: tuple[Group, ...] = ()

    @property
    def conditions(self) -> tuple[str, ...]:
        """Conditions with replies, the one with the image first."""
        return in_order(r.condition for r in self.replies)

    @property
    def named_key(self) -> str:
        """The key as it stands among the votes: answers to yes-or-no questions are read in lower case."""
        return _named(self.key, self.answer_type)


class Cases:
    """The items of one audit. ``table`` has one row per item in the benchmark's order, with what filters look at:
    the facts of the item, ``category``, ``severity`` (``""`` where nothing is flagged), ``rank``, ``score``,
    ``right`` (share of counted answers that are right with the image), ``states`` (of the replies), ``words`` (what a
    search looks at)."""

    def __init__(self, audit: Audit):
        self.audit = audit
        self.findings = _findings(audit)
        self.models = lookup.model_names(audit)

    @cached_property
    def table(self) -> pd.DataFrame:
        return _table(self)

    @cached_property
    def replies(self) -> pd.DataFrame:
        """Replies of all items with ``answer`` and ``state``; empty for a pool of bare hits."""
        return _replies(self.audit, self.models)

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        return in_order(self.replies["condition"].unique())

    @cached_property
    def flagged(self) -> list[str]:
        """Flagged items, most severe and most suspicious first."""
        table = self.table[self.table["severity"].ne("")]
        return table.sort_values(["rank", "score"], ascending=[True, False], kind="stable")["item"].tolist()

    @cached_property
    def neighbours(self) -> Any:
        from auditlib.browse.neighbours import Neighbours

        return Neighbours(self.table, self.findings)

    @cached_property
    def _rows(self) -> dict[str, dict[str, Any]]:
        return {row["item"]: row for row in self.table.to_dict("records")}

    @cached_property
    def _said(self) -> dict[str, list[Reply]]:
        columns = ("item", "model", "condition", "answer", "status", "rule", "right", "judge", "text")
        out: dict[str, list[Reply]] = {}
        for item, *rest in zip(*(self.replies[c].tolist() for c in columns)):
            out.setdefault(item, []).append(Reply(*rest))
        return out

    @cached_property
    def _reasons(self) -> dict[str, list[Finding]]:
        columns = ("item", "detector", "arm", "severity", "score", "message", "kind", "facts")
        out: dict[str, list[Finding]] = {}
        for item, *rest in zip(*(self.findings[c].tolist() for c in columns)):
            out.setdefault(item, []).append(Finding(*rest))
        return out

    def row(self, item: str) -> dict[str, Any]:
        """The row of the table that is about one item."""
        return self._rows[item]

    def case(self, item: str, *, neighbours: bool = True) -> Case:
        """Everything about one item.

        Raises
        ------
        AuditError
            The audit has no such item.
        """
        if item not in self._rows:
            near = difflib.get_close_matches(item, list(self._rows), n=3, cutoff=0.3) or list(self._rows)[:3]
            raise AuditError(f"pool {self.audit.pool_name!r} has no item {item!r}",
                             mend=f"ids look like {', '.join(near)}")  # fmt: skip
        row, replies = self._rows[item], tuple(self._said.get(item, ()))
        tally = None if row["n"] != row["n"] else tuple(int(row[c]) for c in ("F", "B", "n", "R"))
        return Case(
            item=item,
            **{n: row[n] for n in (*FACTS, "category", "severity", "score", "options")},
            findings=tuple(self._reasons.get(item, ())),
            replies=replies,
            votes=votes(row["options"], _named(row["key"], row["answer_type"]), replies),
            tally=tally,
            neighbours=self.neighbours.of(item) if neighbours else (),
        )


def _named(key: str, answer_type: str) -> str:
    return key.lower() if answer_type == "yesno" else key


def in_order(conditions: Iterable[str]) -> tuple[str, ...]:
    """Conditions in the order of the contract, others after them."""
    given = list(dict.fromkeys(conditions))
    return tuple([c for c in CONDITIONS if c in given] + [c for c in given if c not in CONDITIONS])


def votes(
    options: Sequence[tuple[str, str]], key: str, replies: Sequence[Reply]
) -> tuple[tuple[str, dict[str, tuple[str, ...]]], ...]:
    """Who named what: one row per option, then per other answer, the key among them, and last what was not read.

    Returns
    -------
    tuple of (name, {condition: models})
        ``""`` is the name of replies without readable answer; a model stands as often as it answered so.
    """
    said: dict[str, dict[str, list[str]]] = {letter: {} for letter, _ in options}
    if not said and key and replies:
        said[key] = {}
    for r in replies:
        said.setdefault(r.answer, {}).setdefault(r.condition, []).append(r.model)
    names = sorted(said, key=lambda name: name == "")
    return tuple((name, {c: tuple(models) for c, models in said[name].items()}) for name in names)


def _findings(audit: Audit) -> pd.DataFrame:
    """Flagged findings that are counted, worst first within an item, with ``kind`` and ``facts``."""
    table = flagged_findings(audit)
    rank = table["severity"].map({s: i for i, s in enumerate(SEVERITIES)})
    table = table.assign(rank=rank).sort_values(["rank", "score"], ascending=[True, False], kind="stable")
    evidence = [json.loads(e) if isinstance(e, str) and e else {} for e in table["evidence"]]
    kinds = [f"{d}:{x}" if (x := e.get("check") or e.get("tier")) else d for d, e in zip(table["detector"], evidence)]
    return table.assign(kind=kinds, facts=[_facts(e) for e in evidence], arm=text(table["arm"])).reset_index(drop=True)


def _facts(evidence: dict[str, Any]) -> str:
    """Evidence in a short form; votes and key stand beside it."""
    shown = {k: v for k, v in evidence.items() if k not in ("votes", "key") and v is not None}
    return ", ".join(f"{k.replace('_', ' ')} {v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)}"
                     for k, v in shown.items())  # fmt: skip


def _replies(audit: Audit, models: Sequence[str]) -> pd.DataFrame:
    columns = ["item", "model", "condition", "answer", "status", "rule", "right", "judge", "text", "state"]
    given = audit.responses
    if given is None or not len(given):
        return pd.DataFrame({c: pd.Series(dtype=object) for c in columns})
    place = {c: i for i, c in enumerate(in_order(given["condition"].unique()))}
    order = np.lexsort((given["condition"].map(place), given["model"].map({m: i for i, m in enumerate(models)})))
    given = given.iloc[order]
    letter = given["letter"].astype(object).where(given["letter"].notna(), "").replace(ABSTENTION, "")
    read = letter.ne("") | ~answered(given)
    out = pd.DataFrame({"item": given["item"], "model": given["model"], "condition": given["condition"]})
    out["answer"] = letter.where(read, text(given["answer"])) if "answer" in given else letter
    for name, theirs in (("status", "status"), ("rule", "rule"), ("text", "prediction")):
        out[name] = text(given[theirs]) if theirs in given else ""
    whole = out["status"].isin(["", "ok"])
    out["state"] = np.where(out["answer"].ne(""), "read", "unread")
    out["state"] = out["state"].where(whole, out["status"])
    return _judged(out, given, audit).reset_index(drop=True)


def _judged(out: pd.DataFrame, given: pd.DataFrame, audit: Audit) -> pd.DataFrame:
    """With the verdict of the pool's judge on each reply, where there is one."""
    verdicts = audit.judgements
    if verdicts is None or not len(verdicts):
        return out.assign(right=None, judge="")
    wanted = audit.params.judge if audit.params else None
    if "judge" in verdicts and wanted in set(verdicts["judge"]):
        verdicts = verdicts[verdicts["judge"].eq(wanted)]
    keys = [c for c in ("item", "model", "condition", "sample") if c in verdicts and c in given]
    first = verdicts.drop_duplicates(keys)
    found = given[keys].merge(first[[*keys, "hit", "source"]], on=keys, how="left")
    return out.assign(
        right=[None if h != h else float(h) for h in found["hit"]], judge=text(found["source"]).to_numpy()
    )


def _table(cases: Cases) -> pd.DataFrame:
    audit = cases.audit
    items = audit.items
    out = pd.DataFrame({"item": items["item"].astype(str)})
    for name in (*FACTS, "image_key", "cluster"):
        out[name] = text(items[name]) if name in items else ""
    options = items["options"] if "options" in items else [None] * len(items)
    out["options"] = [_shown(lettered(o)) for o in options]
    counts = audit.counts[audit.counts["arm"].eq(audit.arm)] if len(audit.counts) else audit.counts
    counts = counts.drop_duplicates("item").set_index("item")
    for name in ("F", "B", "n", "R"):
        out[name] = counts[name].reindex(out["item"]).to_numpy(float) if name in counts else np.nan
    category = (
        counts["category"].astype(object).reindex(out["item"]) if "category" in counts else pd.Series("", out.index)
    )
    out["category"] = text(category).to_numpy()
    first = cases.findings.drop_duplicates("item").set_index("item")
    out["severity"] = text(first["severity"].reindex(out["item"])).to_numpy()
    out["rank"] = out["severity"].map({s: i for i, s in enumerate(SEVERITIES)}).fillna(len(SEVERITIES)).astype(int)
    out["score"] = first["score"].reindex(out["item"]).fillna(0.0).to_numpy(float)
    states = cases.replies.groupby("item", sort=False)["state"].agg(lambda s: tuple(dict.fromkeys(s)))
    out["states"] = [s if isinstance(s, tuple) else () for s in states.reindex(out["item"])]
    out["right"] = out["F"] / (out["n"] * out["R"])
    said = cases.findings.groupby("item", sort=False)["message"].agg(" ".join).reindex(out["item"])
    texts = zip(out["item"], out["question"], out["options"], out["stratum"], text(said))
    out["words"] = [searched(i, q, *(t for _, t in o), s, m) for i, q, o, s, m in texts]
    return out.reset_index(drop=True)


def _shown(options: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Options up to the last that has a text."""
    last = max((i for i, (_, t) in enumerate(options) if t), default=-1)
    return tuple(options[: last + 1])


def searched(*texts: str) -> str:
    """Texts as a search sees them: as they are shown, case folded, on one line."""
    return " ".join(visible(" ".join(texts), newlines=False).lower().split())


def text(values: Any) -> pd.Series:
    """Cells as text, missing ones empty."""
    values = pd.Series(values).astype(object)
    return values.where(values.notna(), "").astype(str)
