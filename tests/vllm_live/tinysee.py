"""A pool of TinySee whose runs a model has still to make, and what its recorded runs and its truth say of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

import auditlib
from auditlib.frames import ABSTENTION
from auditlib.inference import stage
from auditlib.nb import start
from auditlib.pool import Pool
from auditlib.synth.embedded import truth

ROOT = Path(__file__).resolve().parents[2]
MODELS = ("tinyvlm-alpha", "tinyvlm-beta", "tinyvlm-gamma", "tinyvlm-delta")
CHAIN = ["letters", "option_text"]


def folder_of(weights: Path, model: str) -> Path:
    return weights / f"{model.removeprefix('tinyvlm-')}-vllm"


def params_file(folder: Path, models: list[dict], conditions: list[str], **inference) -> Path:
    """Params of a pool that has no other runs than those it makes."""
    block = {"models": models, "conditions": conditions, "max_tokens": 16, "timeout": 300} | inference
    content = {
        "pool": "tinysee_vllm",
        "benchmark": "TinySee",
        "data": {"dataset": str(ROOT / "auditlib/synth/data/tinysee/TinySee.tsv")},
        "inference": block,
        "audit": {"exact": CHAIN, "permutations": 99, "bootstrap": 200, "splits": 2},
    }
    file = folder / "tinysee_vllm.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def blind_run(file: Path, outputs: Path) -> stage.BlindRun:
    settings, paths, _ = start(file, outputs, {})
    return stage.blind_run(settings, paths)


@cache
def recorded() -> Pool:
    """The runs with which the models were described, made by a toolkit over a server of the same vLLM."""
    return auditlib.read_pool(ROOT / "params" / "tinysee.yaml", outputs=scratch())


@cache
def scratch() -> Path:
    import tempfile

    return Path(tempfile.mkdtemp(prefix="auditlib-vllm-"))


def accuracy(pool: Pool, model: str, condition: str) -> float:
    """Share right of the questions that were asked in the same words: three options "None" were left out of the
    recorded prompts."""
    same = ~pool.items["item"].isin(planted().index[planted()["planted"] == "none_key"]).to_numpy()
    hits = pool.arms["exact"].hits[condition][:, pool.model_names.index(model)]
    return float(np.nanmean(hits[same].astype(float)))


def letters(done: stage.BlindRun, model: str, condition: str) -> pd.Series:
    """Letter by item, ``Z`` where no option is named."""
    from auditlib.extract import extract_frame

    mine = done.responses[done.responses["model"].eq(model) & done.responses["condition"].eq(condition)]
    read = extract_frame(mine, done.items, tuple(CHAIN))
    return read.set_index("item")["letter"].fillna(ABSTENTION)


@cache
def planted() -> pd.DataFrame:
    return truth("tinysee").set_index("index")
