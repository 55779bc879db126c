"""A small packet whose truth is known, for the tests of review."""

from __future__ import annotations

import io
from functools import lru_cache
from pathlib import Path

import pandas as pd
from PIL import Image

from auditlib.inference.images import picture_from_bytes
from auditlib.review.files import write_packet
from auditlib.review.packets import Packet, make_packet
from auditlib.review.task import CURATION

READERS = ("ann", "bob", "cy")
HOSTILE = (
    '</script><script>alert(1)</script> <img src=x onerror=alert(2)> $x$ =HYPERLINK("http://x.invalid") "q"; שלום\n2nd'
)


@lru_cache
def _entries(n: int) -> pd.DataFrame:
    rows = []
    for i in range(n):
        out = io.BytesIO()
        Image.new("RGB", (8, 8), (i, 2 * i, 99)).save(out, "PNG")
        text = HOSTILE if i == 0 else f"question {i}"
        rows.append({"item": f"i{i}", "question": text, "options": ["red", HOSTILE if i == 0 else "blue", "green"],
                     "key": "B", "picture": picture_from_bytes(out.getvalue())})  # fmt: skip
    return pd.DataFrame(rows)


def entries(n: int = 12) -> pd.DataFrame:
    """Items i0, i1, ... keyed B, each with a picture of its own; i0 is hostile."""
    return _entries(n).copy()


def packet(n: int = 12, seed: int = 1, sample: int = 3) -> Packet:
    """Flagged i0 to i3, probes i4 (clean) and i5 (planted, keyed A), and a sample of the rest."""
    table = entries(n).set_index("item", drop=False)
    probes = pd.DataFrame([
        table.loc["i4"].to_dict() | {"kind": "clean", "expected": "no_issue"},
        table.loc["i5"].to_dict() | {"kind": "planted", "expected": "key_error", "key": "A"},
    ])  # fmt: skip
    return make_packet(CURATION, table.reset_index(drop=True), readers=READERS, seed=seed, pool="toy",
                       flagged=["i0", "i1", "i2", "i3"], probes=probes, sample=sample,
                       proposed={"i1": "key_error"})  # fmt: skip


def written(folder: Path, **more: int) -> Packet:
    made = packet(**more)
    write_packet(made, folder)
    return made


def fill(folder: Path, reader: str, labels: dict[str, str], *, keep: bool = False) -> pd.DataFrame:
    """The reader's CSV with labels filled in, row name -> label; ``keep`` leaves the other rows in."""
    sheet = pd.read_csv(folder / f"packet_{reader}.csv", dtype=str, keep_default_na=False, encoding="utf-8-sig")
    sheet["label"] = sheet["row"].map(labels).fillna("")
    return sheet if keep else sheet[sheet["label"].ne("")]
