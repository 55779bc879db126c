"""Fuzz the readers for a number of minutes: ``python -m tests.fuzz [MINUTES]``; exit code 1 at the first bug."""

from __future__ import annotations

import random
import sys
import time
import warnings

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS


def main(minutes: float) -> int:
    end, runs, turn = time.monotonic() + 60 * minutes, dict.fromkeys(TARGETS, 0), random.SystemRandom()
    while time.monotonic() < end:
        for name, target in TARGETS.items():
            start = turn.getrandbits(32)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    runs[name] += _round(target, start)
            except Exception:
                print(f"{name}: a bug, seed {start}", flush=True)
                raise
            if time.monotonic() >= end:
                break
    print("no crash: " + ", ".join(f"{n} {r:,}" for n, r in runs.items()))
    return 0


def _round(target, start: int) -> int:
    """Some examples of one target; returns how many."""
    done = 0

    @seed(start)
    @settings(max_examples=200, deadline=None, database=None, suppress_health_check=list(HealthCheck),
              phases=[Phase.generate, Phase.shrink], report_multiple_bugs=False)  # fmt: skip
    @given(st.data())
    def once(data):
        nonlocal done
        done += 1
        target(data.draw)

    once()
    return done


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 10))
