"""``items.html``: the flagged items on one page that needs no server, with filters, pictures and a link to each."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditlib.browse import words as w
from auditlib.browse.cases import Case, Cases
from auditlib.browse.filters import SORTS
from auditlib.browse.neighbours import WORDS
from auditlib.browse.note import OPTION, QUESTION
from auditlib.browse.pictures import data_uri, pictures_of, small
from auditlib.escape import html, json_data, visible
from auditlib.figures.pipeline import plural
from auditlib.flagged_rows import clip
from auditlib.frames import SEVERITIES
from auditlib.numerals import count
from auditlib.paths import RunPaths, atomic
from auditlib.report.flagged import MEANING
from auditlib.report.page import page

_HERE = Path(__file__).parent
#: characters of an answer that is no letter
ANSWER = 300


@dataclass(frozen=True)
class Limits:
    """What the page holds at most, so that it opens anywhere.

    Attributes
    ----------
    items, content : flagged items, and bytes of what is said of them without replies.
    replies : bytes of reply texts, all together. pictures : bytes of pictures, as they stand in the page.
    side, picture : pixels and bytes of one picture. question, option, reply : characters of one text.
    """

    items: int = 3000
    content: int = 12_000_000
    replies: int = 8_000_000
    pictures: int = 10_000_000
    side: int = 512
    picture: int = 60_000
    question: int = QUESTION
    option: int = OPTION
    reply: int = 400


def write_items(audit: Any, paths: RunPaths, limits: Limits = Limits()) -> Path:
    """Write ``items.html`` of a pool; the same bytes for the same audit.

    Items come worst severity first, then by score. Where a limit is reached, what comes later is left out (first
    items, then of the items shown the texts of replies and the pictures), and the page says how many.
    """
    content = page_content(audit, limits)
    with atomic(paths.items_html) as file:
        file.write_text(page_text(content, _links(paths)), encoding="utf-8")
    return paths.items_html


def page_content(audit: Any, limits: Limits = Limits()) -> dict[str, Any]:
    """All that the page shows, as plain data whose texts are fit to be seen."""
    cases = Cases(audit)
    order = cases.flagged
    cases.neighbours.look_at(order[: limits.items])
    place = {item: i for i, item in enumerate(cases.table["item"])}
    items: list[dict[str, Any]] = []
    content = said = 0
    silent = 0
    for item in order[: limits.items]:
        case = cases.case(item)
        entry = _entry(case, cases, place[item], limits)
        size = _size(entry)
        if content + size > limits.content:
            break
        content += size
        replies = _replies(case, cases, limits)
        if said + (size := _size(replies)) <= limits.replies:
            said += size
            entry["replies"] = replies
        else:
            silent += bool(replies)
        items.append(entry)
    shown = {e["id"] for e in items}
    _name_neighbours(items, shown, cases, limits)
    pictures, without = _pictures(audit, items, cases, limits)
    return {
        "pool": visible(audit.pool_name, newlines=False),
        "benchmark": visible(audit.benchmark, newlines=False),
        "models": [visible(m, newlines=False) for m in cases.models],
        "conditions": [[c, w.words(w.CONDITIONS, c)] for c in cases.conditions],
        "detectors": {d: w.finding(d) for d in dict.fromkeys(cases.findings["detector"])},
        "categories": w.CATEGORIES,
        "answers": w.ANSWERS,
        "states": {s: w.words(w.STATES, s) for e in items for s in e["states"]} | {"read": w.STATES["read"]},
        "severities": {s: MEANING[s] for s in SEVERITIES},
        "neighbours": WORDS,
        "sorts": {name: words for name, (words, _, _) in SORTS.items()},
        "remarks": _remarks(audit, len(order), len(items), silent, without, limits),
        "items": items,
        "pictures": pictures,
    }


def page_text(content: dict[str, Any], links: list[tuple[str, str]]) -> str:
    """The page around its content. Its policy runs the one script that stands here, and lets nothing be fetched."""
    script = (_HERE / "items.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    remarks = " ".join(content["remarks"])
    shown = " · ".join(f'<a href="{html(to)}">{html(word)}</a>' for to, word in links)
    body = (_HERE / "items.html").read_text(encoding="utf-8")
    for name, markup in (
        ("benchmark", html(content["benchmark"])),
        ("pool", html(content["pool"])),
        ("links", shown),
        ("remarks", html(remarks)),
    ):
        body = body.replace(f"{{{{{name}}}}}", markup, 1)
    body += f'<script type="application/json" id="content">{json_data(content)}</script>\n<script>{script}</script>'
    return page(
        f"{content['benchmark']}: flagged items",
        body,
        kind="items",
        style_too=(_HERE / "items.css").read_text(encoding="utf-8"),
        script=f"'sha256-{digest}'",
    )


def _links(paths: RunPaths) -> list[tuple[str, str]]:
    """Files of the pool that readers go back to; those that the report writes are there when it has ended."""
    beside = (("report.html", "report"), ("flagged.md", "as Markdown"), ("findings.csv", "findings.csv"))
    return [*beside, ("../index.html", "all pools")]


def _entry(case: Case, cases: Cases, place: int, limits: Limits) -> dict[str, Any]:
    """One item without replies and neighbours."""
    index = {m: i for i, m in enumerate(cases.models)}
    return {
        "id": visible(case.item, newlines=False),
        "item": case.item,
        "place": place,
        "question": visible(clip(case.question, limits.question)),
        "options": [[a, visible(clip(t, limits.option))] for a, t in case.options],
        "key": visible(clip(case.named_key, ANSWER), newlines=False),
        "type": case.answer_type,
        "stratum": visible(case.stratum, newlines=False),
        "facts": [visible(x, newlines=False) for x in (case.substratum, case.source)],
        "category": case.category,
        "severity": case.severity,
        "score": round(case.score, 4),
        "tally": case.tally,
        "findings": [[f.detector, f.severity, round(f.score, 4), visible(f.message), f.arm,
                      visible(clip(f.facts, 500), newlines=False)] for f in case.findings],
        "votes": [[visible(clip(name, ANSWER), newlines=False),
                   [[index[m] for m in said.get(c, ())] for c in cases.conditions]] for name, said in case.votes],
        "states": list(dict.fromkeys(r.state for r in case.replies)),
        "neighbours": [[g.kind, g.total, list(g.items)] for g in case.neighbours],
        "replies": None,
        "picture": "",
    }  # fmt: skip


def _replies(case: Case, cases: Cases, limits: Limits) -> list[list[Any]]:
    index = {m: i for i, m in enumerate(cases.models)}
    place = {c: i for i, c in enumerate(cases.conditions)}
    return [[index[r.model], place[r.condition], visible(clip(r.answer, ANSWER), newlines=False), r.state,
             r.verdict, r.judge, visible(clip(r.text, limits.reply))] for r in case.replies]  # fmt: skip


def _name_neighbours(items: list[dict[str, Any]], shown: set[str], cases: Cases, limits: Limits) -> None:
    """Neighbours as [shown id, its question where the page has no entry for it]."""
    question = dict(zip(cases.table["item"], cases.table["question"]))
    for entry in items:
        for group in entry["neighbours"]:
            group[2] = [[visible(i, newlines=False), None if visible(i, newlines=False) in shown else
                         visible(clip(question[i], 200), newlines=False)] for i in group[2]]  # fmt: skip


def _pictures(audit: Any, items: list[dict[str, Any]], cases: Cases, limits: Limits) -> tuple[dict[str, str], int]:
    """Pictures by the hash of their bytes, and how many items go without theirs; entries learn which is theirs."""
    shared = dict(zip(cases.table["item"], cases.table["image_key"]))
    keys = {e["item"]: shared[e["item"]] or f"item {e['item']}" for e in items}
    first = {key: item for item, key in reversed(keys.items())}  # each picture is read once
    pictures: dict[str, str] = {}
    theirs: dict[str, str] = {}
    used, missing = 0, set()
    for item, data in pictures_of(audit, [i for i in keys if first[keys[i]] == i]):
        made = small(data, limits.side, limits.picture)
        address = data_uri(*made) if made else ""
        if used + len(address) > limits.pictures:
            missing |= {k for k in first if (k not in theirs and shared[first[k]]) or k == keys[item]}
            break
        if not made:
            missing.add(keys[item])
            continue
        theirs[keys[item]] = name = hashlib.sha256(made[1]).hexdigest()[:16]
        used += 0 if name in pictures else len(address)
        pictures[name] = address
    for entry in items:
        entry["picture"] = theirs.get(keys[entry.pop("item")], "")
    return pictures, sum(key in missing for key in keys.values())


def _remarks(audit: Any, flagged: int, shown: int, silent: int, without: int, limits: Limits) -> list[str]:
    """What the page holds and what it leaves out, in sentences."""
    out = [
        f"{count(flagged)} of {plural(len(audit.items), 'item')} are flagged. Each is a candidate that evaluation runs "
        "point to, not a verdict: models share mistakes."
    ]
    if shown < flagged:
        out.append(
            f"This page holds the first {count(shown)}, most severe and most suspicious first (at most "
            f"{count(limits.items)} items or {limits.content / 1e6:.0f} MB); the others are in findings.csv."
        )
    if silent:
        out.append(
            f"The texts of the replies of {plural(silent, 'item')} are left out "
            f"({limits.replies / 1e6:.0f} MB are reached); the votes are whole."
        )
    if without:
        out.append(
            f"The pictures of {plural(without, 'item')} are left out: they cannot be shown, or the page holds no more "
            f"({limits.pictures / 1e6:.0f} MB in all, {limits.side} pixels and {limits.picture // 1000} kB each)."
        )
    return out


def _size(content: Any) -> int:
    """Bytes of a part of the content in the page."""
    return len(json.dumps(content, ensure_ascii=True))
