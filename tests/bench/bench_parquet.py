"""A million items from a wide parquet: ``python tests/bench/bench_parquet.py``.

A parquet of 1,000,000 (and 100,000) items x 50 models x 2 conditions, one column per model and condition, is read as a
pool and taken through counts, categories, strata, nulls and intervals. Each size runs in its own process. Prints
seconds, the ratio and the peaks; exits 1 when a limit is missed.
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

MODELS, STRATA = 50, 10
MOST_RATIO, MOST_GIB = 15.0, 4.0


def write(items: int, path: Path) -> None:
    """The parquet, in pieces of 100,000 rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    for start in range(0, items, 100_000):
        n = min(100_000, items - start)
        stratum = rng.integers(0, STRATA, n)
        ease = rng.normal(size=n) + stratum / STRATA
        columns = {"id": np.arange(start, start + n).astype(str), "category": [f"s{s}" for s in stratum]}
        for prefix, level, slope in (("", 0.8, 1.0), ("blind|", -1.2, 0.7)):
            p = 1 / (1 + np.exp(-level - slope * ease))
            columns |= {f"{prefix}m{j:02d}": (rng.random(n) < p).astype(np.uint8) for j in range(MODELS)}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def run(path: Path) -> dict[str, float]:
    from scipy.stats import random_table  # noqa: F401  the import is no part of the timing

    import auditlib
    from auditlib.counts import count
    from auditlib.metrics.blocks import blocks_of, strata_labels
    from auditlib.metrics.shares import SHARES, measure
    from auditlib.params import check_params

    raw = {
        "pool": "million",
        "benchmark": "Million",
        "data": {
            "matrix": path.name,
            "rows": "items",
            "prefixes": {"blind|": "blind"},
            "columns": {"item": "id", "stratum": "category"},
        },
    }
    params = check_params(raw, path.with_name("params.yaml"))
    took, clock = {}, time.perf_counter()
    pool = auditlib.read_pool(params)
    took["read"] = time.perf_counter() - clock
    clock = time.perf_counter()
    counts, (labels, _) = count(pool, "judged"), strata_labels(pool)
    for kind, codes in (("pooled", None), ("within", labels)):
        blocks = blocks_of(counts, codes)
        place = {"arm": "judged", "models": "all", "stratum": "all", "null_kind": kind}
        for share in SHARES:
            measure(pool, share, blocks, place, family="", intervals=True)
    took["audit"] = time.perf_counter() - clock
    took["all"] = took["read"] + took["audit"]
    took["items"] = len(pool.items)
    took["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return took


def main() -> int:
    if len(sys.argv) > 1:
        print(json.dumps(run(Path(sys.argv[1]))))
        return 0
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for items in (100_000, 1_000_000):
            path = Path(folder) / f"{items}.parquet"
            write(items, path)
            out = subprocess.run([sys.executable, __file__, str(path)], capture_output=True, text=True)
            if out.returncode:
                print(out.stderr)
                return 1
            found[items] = json.loads(out.stdout)
            f = found[items]
            size = path.stat().st_size / 2**20
            print(
                f"{items:>9,} items x {MODELS} models x 2 from a parquet of {size:.0f} MiB: read {f['read']:.2f} s, "
                f"audit {f['audit']:.2f} s, peak {f['peak_gib']:.2f} GiB"
            )
    ratio, peak = found[1_000_000]["all"] / found[100_000]["all"], found[1_000_000]["peak_gib"]
    print(f"ratio of 1,000,000 to 100,000 items: {ratio:.2f} (below {MOST_RATIO:g}); peak below {MOST_GIB:g} GiB")
    return int(ratio >= MOST_RATIO or peak >= MOST_GIB)


if __name__ == "__main__":
    sys.exit(main())
