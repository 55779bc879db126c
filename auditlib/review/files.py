"""A packet on disk: one folder, with the key to the probes in a sealed sub-folder."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from auditlib.calls import Picture
from auditlib.errors import AuditError
from auditlib.escape import guard_csv
from auditlib.paths import atomic
from auditlib.review.assign import ASSIGNMENT
from auditlib.review.packets import KEY_COLUMNS, Packet, SealedKey
from auditlib.review.task import task_from_plain

PACKET, SEALED = "packet.json", Path("sealed") / "key.json"
_ENDINGS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}
_AGAIN = "write the packet again, or restore the file"


def decisions_file(folder: Path, reader: str) -> Path:
    """Where the panel keeps a reader's decisions."""
    return folder / f"decisions_{reader}.csv"


def write_packet(packet: Packet, folder: Path, thirds: Iterable[str] = ()) -> list[Path]:
    """Write a packet: for each reader a CSV, a page and a Label Studio file; returns all files.

    Parameters
    ----------
    thirds : rows whose third reading is due; they stand at the end of their reader's files.

    Raises
    ------
    AuditError
        The folder holds decisions on another packet.
    """
    from auditlib.review.label_studio import write_label_studio
    from auditlib.review.page import write_page

    _refuse_other(packet, folder)
    written = _write_base(packet, folder)
    due = list(thirds)
    for reader in packet.readers:
        mine = packet.of(reader, due)
        sheet = folder / f"packet_{reader}.csv"
        with atomic(sheet) as t:
            t.write_text(_sheet(packet, mine, reader), encoding="utf-8-sig", newline="")
        page, labels = folder / f"packet_{reader}.html", folder / f"packet_{reader}.label_studio.json"
        write_page(packet, mine, reader, page)
        write_label_studio(packet, mine, reader, labels)
        written += [sheet, page, labels]
    return [*written, folder / "label_studio.xml"]


def _sheet(packet: Packet, rows: pd.DataFrame, reader: str) -> str:
    """The CSV a reader fills in: everything shown, and empty columns label and note."""
    names = {digest: f"pictures/{picture_name(p)}" for digest, p in packet.pictures.items()}
    table = rows.drop(columns="picture").assign(picture=[names.get(d, "") for d in rows["picture"]])
    table = table.assign(reader=reader, label="", note="")
    first = ["row", "reader", "label", "note"]
    table = guard_csv(table[first + [c for c in table if c not in first]])
    out = io.StringIO()
    # every field quoted: line breaks and separators inside texts then survive a spreadsheet
    table.to_csv(out, index=False, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    return out.getvalue()


def picture_name(picture: Picture) -> str:
    """File name of a picture."""
    return picture.sha256[:20] + _ENDINGS.get(picture.mime, ".bin")


def _write_base(packet: Packet, folder: Path) -> list[Path]:
    from auditlib.review.label_studio import config

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for picture in packet.pictures.values():
        target = folder / "pictures" / picture_name(picture)
        if not target.exists():
            with atomic(target) as t:
                t.write_bytes(picture.load())
        written.append(target)
    with atomic(folder / "label_studio.xml") as t:
        t.write_text(config(packet.task), encoding="utf-8")
    digest = ""
    if packet.key is not None:
        content = {"fingerprint": packet.fingerprint, "population": dict(packet.key.population),
                   "rows": packet.key.rows.to_dict("records")}  # fmt: skip
        text = _json(content)
        digest = _sha256(text)
        with atomic(folder / SEALED) as t:
            t.write_text(text, encoding="utf-8")
            os.chmod(t, 0o600)
        written.append(folder / SEALED)
    elif (folder / PACKET).exists():
        digest = json.loads((folder / PACKET).read_text(encoding="utf-8"))["key_sha256"]
    facts = {
        "pool": packet.pool,
        "task": packet.task.as_plain(),
        "readers": list(packet.readers),
        "fingerprint": packet.fingerprint,
        "key_sha256": digest,
        "pictures": {d: {"mime": p.mime, "file": picture_name(p)} for d, p in packet.pictures.items()},
        "rows": packet.rows.to_dict("records"),
        "assignment": packet.assignment.to_dict("records"),
    }
    with atomic(folder / PACKET) as t:
        t.write_text(_json(facts), encoding="utf-8")
    return [folder / PACKET, *written]


def load_packet(folder: Path, *, open_key: bool = False) -> Packet:
    """Read a packet that :func:`write_packet` wrote.

    Parameters
    ----------
    open_key : read the sealed key too; it must be the one that was sealed.

    Raises
    ------
    AuditError
        There is no packet, it or its key is damaged, or the key has been changed since.
    """
    facts = _read(folder / PACKET)
    try:
        pictures = {d: Picture(d, p["mime"], partial(_picture, folder / "pictures" / Path(p["file"]).name, d))
                    for d, p in facts["pictures"].items()}  # fmt: skip
        task = task_from_plain(facts["task"])
        packet = Packet(facts["pool"], task, tuple(facts["readers"]),
                        pd.DataFrame(facts["rows"], columns=["row", "view", *task.fields, "picture"]),
                        pd.DataFrame(facts["assignment"], columns=list(ASSIGNMENT)), pictures)  # fmt: skip
        whole = packet.fingerprint == facts["fingerprint"]
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise AuditError(f"no packet ({type(e).__name__})", file=folder / PACKET, mend=_AGAIN) from None
    if not whole:
        raise AuditError("the packet has been changed since it was written", file=folder / PACKET, mend=_AGAIN)
    if not open_key:
        return packet
    sealed = _read(folder / SEALED)
    if _sha256((folder / SEALED).read_text(encoding="utf-8")) != facts["key_sha256"]:
        raise AuditError("the sealed key has been changed since the packet was written", file=folder / SEALED,
                         mend=_AGAIN)  # fmt: skip
    key = SealedKey(pd.DataFrame(sealed["rows"], columns=list(KEY_COLUMNS)), sealed["population"])
    return Packet(**{**packet.__dict__, "key": key})


def _refuse_other(packet: Packet, folder: Path) -> None:
    kept = sorted(folder.glob("decisions_*.csv")) if folder.is_dir() else []
    if kept and (folder / PACKET).exists() and _read(folder / PACKET).get("fingerprint") != packet.fingerprint:
        raise AuditError(f"{len(kept)} files of decisions on another packet lie here ({kept[0].name})", file=folder,
                         mend="keep the settings that made it, or move that folder away")  # fmt: skip


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise AuditError("no packet has been written here", file=path,
                         mend="run notebook 25_review first: it writes one") from None  # fmt: skip
    except (OSError, ValueError) as e:
        raise AuditError(f"not readable ({type(e).__name__})", file=path, mend=_AGAIN) from None
    if not isinstance(content, dict):
        raise AuditError("no packet", file=path, mend=_AGAIN)
    return content


def _picture(path: Path, digest: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError:
        raise AuditError("a picture of the packet is missing", file=path, mend=_AGAIN) from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise AuditError("a picture has changed since the packet was written", file=path, mend=_AGAIN)
    return data


def _json(content: Any) -> str:
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
