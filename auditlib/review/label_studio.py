"""Label Studio: tasks and labelling interface out, exports (JSON, JSON-MIN) in."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape as xml_escape
from xml.sax.saxutils import quoteattr

import pandas as pd

from auditlib.calls import Picture
from auditlib.errors import AuditError
from auditlib.escape import visible
from auditlib.paths import atomic
from auditlib.review.packets import Packet
from auditlib.review.task import Task


def data_uri(picture: Picture) -> str:
    """A picture as a ``data:`` address."""
    return f"data:{picture.mime};base64,{base64.b64encode(picture.load()).decode('ascii')}"


def write_label_studio(packet: Packet, rows: pd.DataFrame, reader: str, path: Path) -> None:
    """Write a reader's rows as Label Studio tasks, pictures inside; the interface is in ``label_studio.xml``."""
    fields = packet.task.fields
    pictures = {d: data_uri(packet.pictures[d]) for d in set(rows["picture"]) if d}
    tasks = []
    for i, row in enumerate(rows.to_dict("records"), 1):
        shown = {f: visible(row[f]) for f in fields}
        data = {"row": row["row"], "reader": reader, "view": row["view"], **shown}
        tasks.append({"id": i, "data": data | {"picture": pictures.get(row["picture"], "")}})
    with atomic(path) as t:
        t.write_text(json.dumps(tasks, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def config(task: Task) -> str:
    """The labelling interface: picture, fields, one choice per label with its number key, a note."""
    lines = ["<View>", f"  <Header value={quoteattr(task.title)}/>"]
    if any(v.picture for v in task.views):
        lines.append('  <Image name="picture" value="$picture"/>')
    fields = task.fields
    for f in fields:
        lines += [f'  <Header size="5" value={quoteattr(f)}/>', f'  <Text name="{xml_escape(f)}" value="${f}"/>']
    lines.append(f'  <Choices name="label" toName="{fields[0]}" choice="single" required="true">')
    for i, label in enumerate(task.labels, 1):
        hint = f" hint={quoteattr(label.help)}" if label.help else ""
        name = f'value={quoteattr(label.words)} alias="{label.value}"'
        lines.append(f'    <Choice {name} hotkey="{i}"{hint}/>')
    lines += ["  </Choices>", f'  <TextArea name="note" toName="{fields[0]}" rows="2"/>', "</View>"]
    return "\n".join(lines) + "\n"


def export_rows(text: str, path: Path) -> tuple[list[dict[str, str]], list[str]]:
    """Read an export: one record per annotation with row, reader, label, note and ``line`` (its place), and notes.

    Both forms are read: full JSON (``data`` and ``annotations``) and JSON-MIN (flat records).

    Raises
    ------
    AuditError
        The file is no JSON, or no export of these packets.
    """
    try:
        tasks = json.loads(text)
    except ValueError as e:
        raise AuditError(f"no JSON ({e})", file=path, mend="export the project from Label Studio again") from None
    if not isinstance(tasks, list) or not all(isinstance(t, dict) for t in tasks):
        raise AuditError("a Label Studio export is a list of tasks", file=path, mend="export as JSON or JSON-MIN")
    out: list[dict[str, str]] = []
    skipped = 0
    for place, task in enumerate(tasks, 1):
        data = task["data"] if isinstance(task.get("data"), dict) else task
        base = {"row": _plain(data.get("row")), "reader": _plain(data.get("reader")), "line": f"task {place}"}
        if "annotations" not in task:
            out.append(base | {"label": _plain(task.get("label")), "note": _plain(task.get("note"))})
            continue
        found = [a for a in task["annotations"] or [] if isinstance(a, dict)]
        kept = [a for a in found if not a.get("was_cancelled")]
        skipped += len(found) - len(kept)
        out += [base | _annotation(a) for a in kept] or [base | {"label": "", "note": ""}]
    return out, [f"{skipped} skipped annotations are left out"] if skipped else []


def _annotation(annotation: dict[str, Any]) -> dict[str, str]:
    labels, notes = [], []
    for result in annotation.get("result") or []:
        value = result.get("value") if isinstance(result, dict) else None
        if isinstance(value, dict):
            labels += [str(x) for x in value.get("choices") or []]
            given = value.get("text") or []
            notes += [given] if isinstance(given, str) else [str(x) for x in given]
    return {"label": " | ".join(labels), "note": "; ".join(notes)}


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return " | ".join(_plain(v) for v in value)
    if isinstance(value, dict):
        return " | ".join(_plain(v) for v in value.get("choices", []))
    return "" if value is None else str(value)
