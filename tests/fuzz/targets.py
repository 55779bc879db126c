"""What fuzzing throws at the readers: valid small result folders, damaged in structure or in bytes.

Every target takes hypothesis' ``data`` and must end well or in an :class:`AuditError`; anything else is a bug. A pool
that was read must come out the same whatever the order of rows and files.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from auditlib.errors import AuditError
from auditlib.frames import LETTERS
from auditlib.params import check_params
from auditlib.pool import Pool
from auditlib.reading import read_pool

KEYS = ["A", "B", "C", "A", "B", "C"]
REPLIES = ["A", "The answer is B.", "(C)", "", "I cannot see the image.", "<think>A?</think> B"]
QUESTION = "What is shown?\nA. red\nB. blue\nC. None\nAnswer with the option letter."
ODD = [
    "",
    " ",
    "None",
    "nan",
    "0",
    "1.0",
    "1e400",
    "-1",
    "\u00a0",
    "\ud7ff",
    "Ａ",
    "=B",
    "a\nb",
    '"',
    "\x00",
    "x" * 400,
    "[1",
    "{}",
]

text = st.text(max_size=60) | st.sampled_from([*ODD, *REPLIES, QUESTION])
scalar = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | text
values = st.recursive(scalar, lambda v: st.lists(v, max_size=3) | st.dictionaries(text, v, max_size=3), max_leaves=6)


def lmms_lines(replies: list[str]) -> list[dict[str, Any]]:
    return [{"doc_id": i, "target": k, "filtered_resps": r, "average": {"question_id": i, "score": float(r[:1] == k)},
             "acc": float(r[:1] == k), "input": QUESTION, "doc_hash": "0"}
            for i, (k, r) in enumerate(zip(KEYS, replies))]  # fmt: skip


def lm_eval_lines(replies: list[str]) -> list[dict[str, Any]]:
    doc = {"question": "What is shown?", "options": ["red", "blue", "None"], "category": "x"}
    return [{"doc_id": i, "doc": {**doc, "index": i, "answer": k}, "target": k, "arguments": {}, "resps": [[r]],
             "filtered_resps": [r[:1]], "filter": "strict", "metrics": ["exact_match"], "doc_hash": str(i),
             "exact_match": float(r[:1] == k)} for i, (k, r) in enumerate(zip(KEYS, replies))]  # fmt: skip


def table_rows(replies: list[str], condition: str) -> list[dict[str, Any]]:
    return [{"index": i, "question": "What is shown?", "A": "red", "B": "blue", "C": "None", "answer": k,
             "category": "x", "prediction": r, "condition": condition, "model": "m"}
            for i, (k, r) in enumerate(zip(KEYS, replies))]  # fmt: skip


def jsonl(rows: list[Any]) -> bytes:
    return "".join(json.dumps(r) + "\n" for r in rows).encode("utf-8", "surrogatepass")


def separated(rows: list[dict[str, Any]], mark: str = ",") -> bytes:
    columns = list(dict.fromkeys(c for r in rows for c in r))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, delimiter=mark, quoting=csv.QUOTE_ALL, restval="")
    writer.writeheader()
    writer.writerows([{k: str(v) for k, v in r.items()} for r in rows])
    return out.getvalue().encode("utf-8", "surrogatepass")


Layout = Callable[[list[str], list[str]], tuple[dict[str, list[dict[str, Any]]], dict[str, Any], Callable[..., bytes]]]


def _lmms(full: list[str], blind: list[str]):
    files = {"m/20260101_000000_samples_t.jsonl": lmms_lines(full),
             "m/20260101_000001_samples_t_text_only.jsonl": lmms_lines(blind)}  # fmt: skip
    return files, {"toolkit": "lmms-eval", "blind_benchmark": "t_text_only"}, jsonl


def _lm_eval(full: list[str], blind: list[str]):
    files = {"m/samples_t_2026-01-01T00-00-00.jsonl": lm_eval_lines(full),
             "m/samples_t_blind_2026-01-01T00-00-00.jsonl": lm_eval_lines(blind)}  # fmt: skip
    return files, {"toolkit": "lm-eval", "blind_benchmark": "t_blind"}, jsonl


def _vlmevalkit(full: list[str], blind: list[str]):
    files = {"m/m_t.tsv": table_rows(full, ""), "m_blind/m_blind_t.tsv": table_rows(blind, "")}
    return files, {"toolkit": "vlmevalkit"}, lambda rows: separated(rows, "\t")


LAYOUTS: dict[str, Layout] = {"lmms-eval": _lmms, "lm-eval": _lm_eval, "vlmevalkit": _vlmevalkit}


def _read(folder: Path, data: dict[str, Any], exact: list[str]) -> Pool:
    raw = {"pool": "fuzz", "benchmark": "t", "data": data, "audit": {"exact": exact}}
    return read_pool(check_params(raw, folder / "p.yaml"), outputs=folder / "out")


def folder_pool(folder: Path, files: dict[str, bytes], data: dict[str, Any]) -> Pool:
    for name, content in files.items():
        path = folder / "results" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return _read(folder, {"folder": "results", **data}, ["letters", "option_text"])


def same(a: Pool, b: Pool) -> None:
    assert a.items["item"].tolist() == b.items["item"].tolist() and a.model_names == b.model_names
    assert a.arm_names == b.arm_names and set(a.letters) == set(b.letters)
    for c in a.letters:
        np.testing.assert_array_equal(a.letters[c], b.letters[c])
    for name, arm in a.arms.items():
        for c in arm.hits:
            np.testing.assert_array_equal(arm.hits[c], b.arms[name].hits[c])


def damage(draw: Callable, rows: list[dict[str, Any]]) -> list[Any]:
    """Some rows with a field lost, replaced, added; rows doubled or gone."""
    rows = [dict(r) for r in rows]
    for _ in range(draw(st.integers(1, 3))):
        if not rows:
            break
        i = draw(st.integers(0, len(rows) - 1))
        field = draw(st.sampled_from(sorted(rows[i]))) if rows[i] else "x"
        match draw(st.sampled_from(["drop", "value", "new", "double", "gone", "all"])):
            case "drop":
                rows[i].pop(field, None)
            case "value":
                rows[i][field] = draw(values)
            case "new":
                rows[i][draw(text)] = draw(values)
            case "double":
                rows.insert(draw(st.integers(0, len(rows))), dict(rows[i]))
            case "gone":
                rows.pop(i)
            case "all":
                value = draw(values)
                rows = [{**r, field: value} for r in rows]
    return rows


def gash(draw: Callable, content: bytes) -> bytes:
    """Bytes lost, changed or put in."""
    at = draw(st.integers(0, max(0, len(content) - 1)))
    match draw(st.sampled_from(["cut", "lose", "put"])):
        case "cut":
            return content[:at]
        case "lose":
            return content[:at] + content[at + draw(st.integers(1, 50)) :]
    return content[:at] + draw(st.binary(max_size=12)) + content[at:]


def damaged_folder(draw: Callable, layout: str) -> None:
    """A results folder with damage: read, or refused in our own words; row and file order change nothing."""
    replies = st.lists(st.sampled_from(REPLIES) | text, min_size=6, max_size=6)
    rows, data, write = LAYOUTS[layout](draw(replies), draw(replies))
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(rows)))
        rows[name] = damage(draw, rows[name])
    files = {name: write(r) for name, r in rows.items()}
    torn = draw(st.integers(0, 3)) == 0
    if torn:
        name = draw(st.sampled_from(sorted(files)))
        files[name] = gash(draw, files[name])
    try:
        with tempfile.TemporaryDirectory() as one:
            pool = folder_pool(Path(one), files, data)
    except AuditError:
        return
    if torn:
        return
    order = draw(st.randoms(use_true_random=False))
    shuffled = {n: write(order.sample(r, len(r))) for n, r in rows.items()}
    with tempfile.TemporaryDirectory() as two:
        same(pool, folder_pool(Path(two), dict(order.sample(sorted(shuffled.items()), len(shuffled))), data))


def damaged_table(draw: Callable) -> None:
    """A long table with damage."""
    replies = st.lists(st.sampled_from(REPLIES) | text, min_size=6, max_size=6)
    rows = table_rows(draw(replies), "full") + table_rows(draw(replies), "blind")
    if draw(st.booleans()):
        rows = damage(draw, rows)
    content = separated(rows)
    torn = draw(st.integers(0, 3)) == 0
    if torn:
        content = gash(draw, content)
    order = draw(st.randoms(use_true_random=False))
    with tempfile.TemporaryDirectory() as folder:
        try:
            Path(folder, "t.csv").write_bytes(content)
            pool = _read(Path(folder), {"table": "t.csv"}, ["letters", "option_text"])
        except AuditError:
            return
        if not torn:
            Path(folder, "u.csv").write_bytes(separated(order.sample(rows, len(rows))))
            same(pool, _read(Path(folder), {"table": "u.csv"}, ["letters", "option_text"]))


def any_reply(draw: Callable) -> None:
    """Any text through every chain, other toolkit's parser and open comparison."""
    from auditlib.extract import READERS, extract
    from auditlib.extract.compat import PARSERS
    from auditlib.extract.open_answers import KINDS, matches

    reply, options = draw(st.text(max_size=300) | text), draw(st.lists(text, max_size=10))
    for chain in ([n] for n in READERS):
        found = extract(reply, options, chain)
        assert isinstance(found.value, str) and found.rule
    letters = "ABCDEFGHIJ"[: len(options)]
    for name in ("letters", "boxed", "option_text"):
        assert extract(reply, options, [name]).value in (*letters, "Z")
    for parser in PARSERS.values():
        assert parser(reply, options).value in LETTERS
    for kind in KINDS:
        assert matches(reply, draw(st.lists(text, max_size=3)), kind=kind, tolerance=0.05)[0] in (True, False, None)
    again = extract(f"  {reply}\n ", options, ["letters"])
    assert again.value == extract(reply, options, ["letters"]).value


TARGETS: dict[str, Callable[[Callable], None]] = {
    "reply": any_reply,
    "table": damaged_table,
    **{name: (lambda draw, n=name: damaged_folder(draw, n)) for name in LAYOUTS},
}
