"""A packet as one HTML file: works offline, keeps decisions in the browser, hands them over as a CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from auditlib.escape import html, json_data, visible
from auditlib.paths import atomic
from auditlib.review.label_studio import data_uri
from auditlib.review.packets import Packet

_TEMPLATE = Path(__file__).with_name("page.html")


def write_page(packet: Packet, rows: pd.DataFrame, reader: str, path: Path) -> None:
    """Write a reader's rows as a page.

    Texts travel as JSON inside the page and are set as text, never as markup; the page's policy lets nothing be
    fetched or sent.
    """
    page = _TEMPLATE.read_text(encoding="utf-8")
    title = f"{packet.task.title} {packet.pool}, {reader}" if packet.pool else f"{packet.task.title} {reader}"
    with atomic(path) as t, open(t, "w", encoding="utf-8") as out:
        head, tail = page.replace("{{title}}", html(title)).split("{{data}}")
        out.write(head)
        out.write(json_data(_content(packet, rows, reader)))
        out.write(tail)


def _content(packet: Packet, rows: pd.DataFrame, reader: str) -> dict[str, Any]:
    task = packet.task
    views = {v.name: v for v in task.views}
    shown = []
    for row in rows.to_dict("records"):
        fields = [[f, visible(row[f])] for f in views[row["view"]].fields if row[f]]
        shown.append({"row": row["row"], "fields": fields, "picture": row["picture"]})
    wanted = dict.fromkeys(r["picture"] for r in shown if r["picture"])
    return {
        "packet": packet.fingerprint,
        "reader": reader,
        "title": task.title,
        "instructions": task.instructions,
        "labels": [{"value": x.value, "words": x.words, "help": x.help} for x in task.labels],
        "rows": shown,
        "pictures": {d: data_uri(packet.pictures[d]) for d in wanted},
    }
