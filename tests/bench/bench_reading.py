"""Reading, in one run: ``python tests/bench/bench_reading.py``.

The replica's twelve workbooks through the reader's calamine path and through pandas + openpyxl (same frames, compared),
and a wide 0/1 parquet of 1,000,000 and 100,000 items x 50 models x 2 conditions, each size in a process of its own;
100,000 rows of samples as JSON lines beside a plain ``json.loads`` loop, with twice as many for the memory; 20,000 rows
of a workbook beside a plain calamine loop. Prints seconds, ratios and peaks; exits 1 when a limit is missed.
"""
# ruff: noqa: E402  threads are set before numpy is imported

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import openpyxl  # noqa: F401  the import is no part of the timing
import pandas as pd

from auditlib.params import DataParams
from auditlib.readers.files import open_table
from auditlib.readers.jsonl import read_jsonl
from auditlib.readers.lmms_eval import read_lmms_eval
from auditlib.readers.matrix import read_matrix
from auditlib.synth.embedded import materialise

LEAST_RATIO, MOST_RATIO, MOST_GIB, MODELS = 5.0, 15.0, 2.0, 50
MOST_BESIDE_PLAIN, MOST_MEMORY, ROWS, SHEET_ROWS = 3.0, 2.5, 100_000, 20_000


def workbooks(folder: Path) -> float:
    """Ratio of pandas + openpyxl to the reader over all workbooks of a results folder, best of two each."""
    paths = sorted(folder.glob("*/*.xlsx"))
    ours, theirs = [], []
    for _ in range(2):
        start = time.perf_counter()
        read = [open_table(p) for p in paths]
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        plain = [pd.read_excel(p, engine="openpyxl", dtype=str, keep_default_na=False) for p in paths]
        theirs.append(time.perf_counter() - start)
    for a, b in zip(read, plain):
        pd.testing.assert_frame_equal(a, b, check_dtype=False)
    ratio = min(theirs) / min(ours)
    print(
        f"{len(paths)} workbooks: calamine {min(ours):.2f} s, pandas + openpyxl {min(theirs):.2f} s, ratio {ratio:.1f}"
    )
    return ratio


def write_wide(path: Path, items: int) -> None:
    """A wide parquet, written in pieces so that writing needs no memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    names = [f"m{i}" for i in range(MODELS)] + [f"blind m{i}" for i in range(MODELS)]
    schema = pa.schema([("item", pa.int64()), *((n, pa.uint8()) for n in names)])
    with pq.ParquetWriter(path, schema) as writer:
        for at in range(0, items, 50_000):
            n = min(50_000, items - at)
            columns = [pa.array(np.arange(at, at + n)), *(pa.array(rng.integers(0, 2, n, np.uint8)) for _ in names)]
            writer.write_table(pa.table(columns, schema=schema))


def wide(path: Path) -> dict[str, float]:
    start = time.perf_counter()
    got = read_matrix(DataParams(matrix=path, rows="items", prefixes={"blind ": "blind"}))
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"items": len(got.items), "seconds": seconds, "gib": peak, "mean": float(got.hits["full"].mean())}


def wide_sizes(folder: Path) -> tuple[float, float]:
    """Ratio of 1,000,000 to 100,000 items, and the peak of the larger in GiB."""
    results = []
    for items in (100_000, 1_000_000):
        path = folder / f"{items}.parquet"
        write_wide(path, items)
        done = subprocess.run([sys.executable, __file__, str(path)], check=True, capture_output=True, text=True)
        results.append(json.loads(done.stdout))
        r = results[-1]
        print(
            f"wide parquet, {r['items']:,} items x {MODELS} models x 2: {r['seconds']:.2f} s, {r['gib']:.2f} GiB peak"
        )
    return results[1]["seconds"] / results[0]["seconds"], results[1]["gib"]


def write_samples(folder: Path, rows: int) -> Path:
    """A file of samples in lmms-eval's form, a prompt of a usual length on each row."""
    path = folder / str(rows) / "model" / "20260101_000000_samples_toy.jsonl"
    path.parent.mkdir(parents=True)
    with path.open("w") as stream:
        for i in range(rows):
            options = "\n".join(
                f"{letter}. {word} {i % 97}" for letter, word in zip("ABCD", ("red", "blue", "ash", "tan"))
            )
            score = {"question_id": i, "l2_category": f"level {i % 7}", "score": float(i % 3 == 0)}
            text = (
                f"{'A passage of the length that benchmarks have. ' * 6}What colour is number {i}?\n{options}\nSay it."
            )
            row = {"doc_id": i, "target": "ABCD"[i % 4], "filtered_resps": f"The answer is {'ABCD'[i % 3]}.",
                   "token_counts": [{"input_tokens": 90, "output_tokens": 5, "reasoning_tokens": 0}],
                   "doc_hash": "0" * 64, "average": score, "input": text}  # fmt: skip
            stream.write(json.dumps(row) + "\n")
    return path


def samples(folder: Path) -> dict[str, float]:
    """CPU seconds of the whole reader, of its lines and of a plain loop; growth of the peak while reading, in MiB."""
    path = next(folder.glob("*/*.jsonl"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    runs = read_lmms_eval(DataParams(folder=folder), "toy")
    whole = time.process_time() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    del runs
    start = time.process_time()
    lines = read_jsonl(path)
    ours = time.process_time() - start
    del lines
    start = time.process_time()
    with path.open("rb") as stream:
        plain = [json.loads(line) for line in stream]
    seconds = time.process_time() - start
    return {"rows": len(plain), "ours": ours, "whole": whole, "plain": seconds, "mib": grown}


def samples_sizes(folder: Path) -> tuple[float, float]:
    """Ratio of the reading of lines to a plain loop (best of three), and of the memory at twice as many rows."""
    found = []
    for rows, times in ((ROWS, 3), (2 * ROWS, 1)):
        path = write_samples(folder, rows)
        for _ in range(times):
            done = subprocess.run(
                [sys.executable, __file__, "samples", str(path.parents[1])], check=True, capture_output=True, text=True
            )
            found.append(json.loads(done.stdout))
            r = found[-1]
            print(
                f"{r['rows']:,} rows of JSON lines: {r['ours']:.2f} s of CPU, plain loop {r['plain']:.2f} s, ratio "
                f"{r['ours'] / r['plain']:.2f}; items, options, verdicts and frames too {r['whole']:.2f} s, ratio "
                f"{r['whole'] / r['plain']:.2f}, {r['mib']:.0f} MiB"
            )
    small = [r for r in found if r["rows"] == ROWS]
    ratio = min(r["ours"] for r in small) / min(r["plain"] for r in small)
    return ratio, found[-1]["mib"] / min(r["mib"] for r in small)


def sheet(folder: Path) -> float:
    """Ratio of the reader to a plain calamine loop over a workbook, best of three."""
    import python_calamine

    path = folder / "sheet.xlsx"
    words = [f"word {i}" for i in range(SHEET_ROWS)]
    pd.DataFrame(
        {"index": range(SHEET_ROWS), "question": [f"What is {w}?" for w in words],
         **{c: [f"{c} {w}" for w in words] for c in "ABCD"}, "answer": "B", "prediction": words}
    ).to_excel(path, index=False, engine="xlsxwriter")  # fmt: skip
    ours, plain = [], []
    for _ in range(3):
        start = time.perf_counter()
        rows = list(python_calamine.load_workbook(str(path)).get_sheet_by_index(0).to_python())
        plain.append(time.perf_counter() - start)
        start = time.perf_counter()
        table = open_table(path)
        ours.append(time.perf_counter() - start)
    assert len(table) == len(rows) - 1 == SHEET_ROWS
    print(f"{SHEET_ROWS:,} rows of a workbook: {min(ours):.2f} s, plain calamine loop {min(plain):.2f} s")
    return min(ours) / min(plain)


def test_reading() -> None:
    with tempfile.TemporaryDirectory() as folder:
        speed = workbooks(materialise("mmstar_replica", folder))
        ratio, gib = wide_sizes(Path(folder))
    print(f"1,000,000 : 100,000 items = {ratio:.1f}")
    assert speed >= LEAST_RATIO and ratio < MOST_RATIO and gib < MOST_GIB


def test_plain_loops() -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines, memory = samples_sizes(Path(folder))
        cells = sheet(Path(folder))
    print(f"beside a plain loop: JSON lines {lines:.2f}, workbook {cells:.2f}; memory at twice the rows {memory:.2f}")
    assert lines < MOST_BESIDE_PLAIN and cells < MOST_BESIDE_PLAIN and memory < MOST_MEMORY


if __name__ == "__main__":
    if sys.argv[1:2] == ["samples"]:
        print(json.dumps(samples(Path(sys.argv[2]))))
    elif len(sys.argv) > 1:
        print(json.dumps(wide(Path(sys.argv[1]))))
    else:
        test_reading()
        test_plain_loops()
