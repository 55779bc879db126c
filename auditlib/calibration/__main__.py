"""Runs the calibration: ``python -m auditlib.calibration [nulls] [power] [k_way]``; all of them by default.

Prints the tables and writes them as CSV into ``--outputs``; ``--ship`` puts the table by options shown into the
package, where the report looks up which pools it may judge.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import pandas as pd

PARTS = ("nulls", "power", "k_way")


def main(argv: list[str] | None = None) -> int:
    """Run the parts that are asked for; 1 where a null world does not pass."""
    parser = argparse.ArgumentParser(prog="python -m auditlib.calibration", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what to run (default: all)")
    parser.add_argument("--worlds", type=int, default=500, help="null worlds of each kind (default 500)")
    parser.add_argument("--headlines", type=int, default=2000, help="the same for the headline test (default 2000)")
    parser.add_argument("--known", type=int, default=60, help="worlds of each options x models (default 60)")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes (default 2)")
    parser.add_argument("--seed", type=int, default=20261129)
    parser.add_argument("--outputs", type=Path, default=Path("outputs/calibration"))
    parser.add_argument("--ship", action="store_true", help="write the table by options shown into the package")
    a = parser.parse_args(argv)
    # processes inherit these; several threads of linear algebra would fight over the cores
    os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
    failed = False
    for part in a.parts or PARTS:
        began = time.perf_counter()
        if part == "nulls":
            from auditlib.calibration.nulls import null_tables

            made = null_tables(a.worlds, a.headlines, a.seed, jobs=a.jobs)
            tables = {f"nulls_{k}": t for k, t in vars(made).items()}
            failed |= bool(len(made.failed))
        elif part == "power":
            from auditlib.calibration.power import power_tables

            tables = power_tables(max(2, a.known // 3), a.seed, jobs=a.jobs)
        else:
            from auditlib.calibration.k_way import table_of
            from auditlib.detectors.calibrated import TABLE

            table = table_of(a.known, a.seed, a.jobs)
            tables = {"k_way": table}
            if a.ship:
                _write(table, TABLE)
        for name, table in tables.items():
            _write(table, a.outputs / f"{name}.csv")
            print(f"\n{name}\n{table.round(4).to_string(index=False)}")
        print(f"\n{part}: {time.perf_counter() - began:.0f} s")
    print(f"\nTables: {a.outputs}")
    return int(failed)


def _write(table: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    work = path.with_name(f".{path.name}.{os.getpid()}")
    table.to_csv(work, index=False, lineterminator="\n")
    os.replace(work, path)


if __name__ == "__main__":
    sys.exit(main())
