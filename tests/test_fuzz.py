"""A short run of every fuzzing target with fixed examples; ``make fuzz`` goes on for ten minutes with random ones."""

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_no_crash_but_our_own_errors_and_no_order_that_matters(name):
    @settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def once(data):
        TARGETS[name](data.draw)

    once()
