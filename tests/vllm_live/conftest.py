"""The real vLLM and TinySee's own models; without one of them the tests here are skipped and say why."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = ROOT.parent / "shared" / "peers" / "tiny_vlms"
#: of the engine: no network, a small cache of keys and values, no statistics sent
SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@pytest.fixture(scope="session")
def weights() -> Iterator[Path]:
    """The folder of the models, with the engine's settings in the environment."""
    try:
        importlib.metadata.version("vllm")  # the package: this folder has its name too
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("vLLM is not installed here: make test-vllm")
    if not WEIGHTS.is_dir():
        pytest.skip("the models' weights are not here: ../shared/peers/tiny_vlms")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        yield WEIGHTS
