"""Reading, in one run: ``python tests/bench/bench_reading.py``.

The replica's twelve workbooks through the reader's calamine path and through pandas + openpyxl (same frames, compared),
and a wide 0/1 parquet of 1,000,000 and 100,000 items x 50 models x 2 conditions, each size in a process of its own.
Prints seconds, ratios and peaks; exits 1 when a limit is missed.
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
from auditlib.readers.matrix import read_matrix
from auditlib.synth.embedded import materialise

LEAST_RATIO, MOST_RATIO, MOST_GIB, MODELS = 5.0, 15.0, 2.0, 50


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


def test_reading() -> None:
    with tempfile.TemporaryDirectory() as folder:
        speed = workbooks(materialise("mmstar_replica", folder))
        ratio, gib = wide_sizes(Path(folder))
    print(f"1,000,000 : 100,000 items = {ratio:.1f}")
    assert speed >= LEAST_RATIO and ratio < MOST_RATIO and gib < MOST_GIB


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(wide(Path(sys.argv[1]))))
    else:
        test_reading()
