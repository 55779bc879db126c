"""One item as a reader sees it: image, options with votes, replies, reasons."""

from __future__ import annotations

import base64
import difflib
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from auditlib.errors import AuditError
from auditlib.frames import LETTERS, option_name

if TYPE_CHECKING:
    from auditlib.auditing import Audit


@dataclass(frozen=True)
class ItemView:
    """One item. ``options`` has one row per option with the votes of each condition, ``replies`` one row per reply."""

    item: str
    question: str
    key: str
    facts: dict[str, str]
    options: pd.DataFrame
    replies: pd.DataFrame
    findings: pd.DataFrame
    image: bytes | None = field(default=None, repr=False)

    def __str__(self) -> str:
        lines = [f"item {self.item}: {self.question}", f"key {self.key}"]
        lines += [f"  {r.letter} {r.text} ({r.votes})" for r in self.options.itertuples()]
        lines += [f"  {r.model} {r.condition}: {r.prediction}" for r in self.replies.itertuples()]
        return "\n".join([*lines, *(f"  {f.detector}: {f.message}" for f in self.findings.itertuples())])

    def _repr_html_(self) -> str:
        head = f"<b>item {escape(self.item)}</b> &nbsp; " + " &nbsp; ".join(
            f"{escape(k)}: {escape(v)}" for k, v in self.facts.items()
        )
        picture = ""
        if self.image:
            data = base64.b64encode(self.image).decode()
            picture = (
                f"<img alt='image of item {escape(self.item)}' style='max-width:320px;min-width:112px;"
                f"image-rendering:pixelated;border:1px solid #ccc' src='data:{_mime(self.image)};base64,{data}'>"
            )
        options = self.options.assign(key=np.where(self.options["letter"] == self.key, "key", ""))
        question = f"<p style='font-size:1.1em'>{escape(self.question)}</p>"
        body = picture + question + _table(options) + _table(self.replies)
        return f"<div style='font-family:sans-serif'>{head}{body}{_table(self.findings)}</div>"


def item_view(audit: Audit, item: str) -> ItemView:
    """Gather everything about one item.

    Raises
    ------
    AuditError
        When the pool has no such item.
    """
    at = np.flatnonzero(audit.items["item"].to_numpy() == item)
    if not len(at):
        near = difflib.get_close_matches(item, audit.items["item"].tolist(), n=3, cutoff=0.3)
        raise AuditError(
            f"pool {audit.pool_name!r} has no item {item!r}",
            mend=f"ids look like {', '.join(near or audit.items['item'].head(3))}",
        )
    facts = audit.items.iloc[at[0]]
    replies = _replies(audit, item)
    findings = audit.all_findings[audit.all_findings["item"] == item]
    findings = findings.loc[findings["flag"], ["detector", "arm", "severity", "score", "message"]].reset_index(
        drop=True
    )
    shown = {n: str(facts[n]) for n in ("stratum", "substratum", "source") if n in facts and _given(facts[n])}
    return ItemView(
        item=item,
        question=str(facts["question"]) if "question" in facts and _given(facts["question"]) else "",
        key=str(facts["key"]) if "key" in facts and _given(facts["key"]) else "",
        facts={"key": str(facts.get("key", ""))} | shown,
        options=_options(facts, replies),
        replies=replies,
        findings=findings,
        image=_image(audit, item),
    )


def _given(value: Any) -> bool:
    return not (value is None or value is pd.NA or (isinstance(value, float) and value != value) or value == "")


def _replies(audit: Audit, item: str) -> pd.DataFrame:
    columns = ["model", "condition", "letter", "answer", "rule", "status", "prediction"]
    if audit.responses is None:
        return pd.DataFrame(columns=columns)
    mine = audit.responses[audit.responses["item"] == item]
    out = mine.reindex(columns=columns)
    if audit.judgements is not None:
        j = audit.judgements[audit.judgements["item"] == item]
        verdict = {(m, c): (h, s) for m, c, h, s in zip(j["model"], j["condition"], j["hit"], j["source"])}
        pairs = [verdict.get(k, (None, "")) for k in zip(out["model"], out["condition"])]
        out["judged"] = ["" if h is None or h != h else str(int(h)) for h, _ in pairs]
        out["judged by"] = [s for _, s in pairs]
    order = {m: i for i, m in enumerate(audit.models["model"])}
    out = out.assign(_m=out["model"].map(order), _c=out["condition"].ne("full")).sort_values(
        ["_m", "_c"], kind="stable"
    )
    return out.drop(columns=["_m", "_c"]).fillna("").reset_index(drop=True)


def _options(facts: pd.Series, replies: pd.DataFrame) -> pd.DataFrame:
    options = facts.get("options")
    texts = [str(t) for t in options] if isinstance(options, list | tuple | np.ndarray) else []
    voted = [x for x in replies["letter"].astype(str) if len(x) == 1 and x in LETTERS[:-1]]
    n = max([len(texts), *(LETTERS.index(v) + 1 for v in voted)], default=0)
    rows = []
    for i in range(n):
        said = replies[replies["letter"].astype(str) == option_name(i)]
        votes = "; ".join(
            f"{c}: {', '.join(part['model'].astype(str))}" for c, part in said.groupby("condition", sort=False)
        )
        rows.append({"letter": option_name(i), "text": texts[i] if i < len(texts) else "", "votes": votes})
    return pd.DataFrame(rows, columns=["letter", "text", "votes"])


def _image(audit: Audit, item: str) -> bytes | None:
    """The item's picture, from the dataset file that the params name; None where there is none."""
    path = audit.params.data.dataset if audit.params else None
    if path is None or not path.exists():
        return None
    from auditlib.readers.dataset import read_images

    return read_images(path, [item]).get(item)


def _mime(data: bytes) -> str:
    kinds = {b"\x89PNG": "image/png", b"\xff\xd8": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}
    return next((kind for start, kind in kinds.items() if data.startswith(start)), "application/octet-stream")


def _table(frame: pd.DataFrame) -> str:
    if not len(frame):
        return ""
    head = "".join(f"<th style='text-align:left'>{escape(str(c))}</th>" for c in frame.columns)
    rows = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:left;white-space:pre-wrap'>{escape(_cell(v))}</td>" for v in r)
        + "</tr>"
        for r in frame.itertuples(index=False)
    )
    return f"<table style='margin:8px 0'><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
