"""Embedded pools. Oracles: the numbers printed beside the data, and the packed tables themselves."""

from __future__ import annotations

import hashlib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from auditlib.errors import AuditError
from auditlib.params import load_params
from auditlib.readers import read_runs
from auditlib.synth import embedded

ROOT = Path(__file__).resolve().parents[1]


@cache
def read(name, outputs):
    params = load_params(ROOT / "params" / f"{name}.yaml")
    return read_runs(params.data, benchmark=params.benchmark, judge=params.judge, outputs=outputs)


def stored(runs):
    return runs.judgements.groupby(["model", "condition"])["hit_stored"].mean().round(3).to_dict()


def test_pools_are_named():
    pools = ["tinysee", "mmstar_replica", "hallusionbench_replica", "mmgist_synthetic", "mmgist_small",
             "dependence_synthetic", "sensitivity_synthetic"]  # fmt: skip
    assert list(embedded.embedded_pools()) == pools
    with pytest.raises(AuditError, match="no embedded pool 'tinysea'"):
        embedded.materialise("tinysea", "outputs")


def test_tinysee_verdicts(embedded_outputs):
    runs = read("tinysee", embedded_outputs)
    names = ("alpha", "beta", "gamma", "delta")
    full, blind = (0.900, 0.893, 0.870, 0.610), (0.263, 0.213, 0.087, 0.240)
    want = {(f"tinyvlm-{n}", "full"): f for n, f in zip(names, full)}
    want |= {(f"tinyvlm-{n}", "blind"): b for n, b in zip(names, blind)}
    assert stored(runs) == want
    gamma = runs.judgements[(runs.judgements["model"] == "tinyvlm-gamma") & (runs.judgements["condition"] == "blind")]
    assert (gamma["source"] == "random_fill").sum() == 43
    assert gamma.loc[gamma["source"] == "random_fill", "hit_stored"].sum() == 6
    assert round(gamma["hit"].sum() / 300, 3) == 0.067
    assert set(runs.judgements["source"]) == {"regex", "llm", "random_fill"}
    assert set(runs.coverage["what"]) == {"read", "warning"}


def test_tinysee_replies(embedded_outputs):
    runs = read("tinysee", embedded_outputs)
    assert len(runs.dataset) == 300 and len(runs.inputs) == 17
    assert runs.responses.groupby(["model", "condition"]).size().unique().tolist() == [300]
    blind = runs.responses[runs.responses["condition"] == "blind"]
    assert blind.groupby("model")["refused"].sum().to_dict() == {
        "tinyvlm-alpha": 0, "tinyvlm-beta": 0, "tinyvlm-delta": 0, "tinyvlm-gamma": 215}  # fmt: skip
    lost = runs.items[runs.items["item"].isin(["17", "32", "76"])]
    texts = [o["ABCD".index(k)] if "ABCD".index(k) < len(o) else "" for o, k in zip(lost["options"], lost["key"])]
    assert texts == [""] * 24


def test_tinysee_folder_holds_no_pickles_logs_or_status():
    folder = embedded.materialise("tinysee", "unused")
    kinds = {p.suffix for p in folder.rglob("*") if p.is_file()}
    assert kinds == {".tsv", ".csv", ".xlsx", ".md"}
    assert len(list(folder.glob("*/*.xlsx"))) == 16
    for path in folder.glob("*/*.xlsx"):
        with zipfile.ZipFile(path) as z:
            assert not any(b"api" in z.read(n).lower() and b"key" in z.read(n).lower() for n in z.namelist())


def test_tinysee_truth():
    planted = embedded.truth()["planted"].value_counts().to_dict()
    assert {k: planted[k] for k in ("wrong_key", "text_prior", "lookup", "near_dup", "none_key", "three_options")} == {
        "wrong_key": 15, "text_prior": 12, "lookup": 4, "near_dup": 9, "none_key": 3, "three_options": 10}  # fmt: skip
    with pytest.raises(AuditError, match="no known truth"):
        embedded.truth("mmstar_replica")


def test_mmstar_replica(embedded_outputs):
    runs = read("mmstar_replica", embedded_outputs)
    assert stored(runs) == {
        ("InternVL3-8B", "full"): 0.696, ("Ristretto-3B", "full"): 0.653, ("gpt-5-nano", "full"): 0.674,
        ("InternVL3-8B", "blind"): 0.238, ("Ristretto-3B", "blind"): 0.295, ("gpt-5-nano", "blind"): 0.142}  # fmt: skip
    assert set(runs.judgements["source"]) == {"regex", "llm"}
    hits = runs.judgements.pivot_table(index="item", columns="condition", values="hit", aggfunc="sum")
    assert (hits["full"] == hits["blind"]).sum() == 303
    assert ((hits["full"] == 0) & (hits["blind"] == 0)).sum() == 164
    items = runs.items.drop_duplicates("item")
    assert len(items) == 1500 and items["stratum"].value_counts().tolist() == [250] * 6 and set(items["k"]) == {4}


def test_hallusionbench_replica(embedded_outputs):
    runs = read("hallusionbench_replica", embedded_outputs)
    items = runs.items.drop_duplicates("item")
    assert len(items) == 951 and items["stratum"].value_counts().to_dict() == {"VD": 591, "VS": 360}
    assert items["item"].str.count("_").eq(5).all() and "cluster" not in items.columns
    assert set(items["answer_type"]) == {"yesno"}
    hits = runs.judgements.pivot_table(index="item", columns="condition", values="hit", aggfunc="sum")
    assert round(100 * (hits["full"] == hits["blind"]).mean(), 2) == 23.87
    assert set(runs.judgements["source"]) == {"regex", "unknown"}


@pytest.mark.parametrize("name", ["mmstar_replica", "hallusionbench_replica"])
def test_written_folder_holds_the_packed_table(name, embedded_outputs):
    """Every prediction and verdict of the packed table comes back through the reader."""
    packed = pd.read_csv(Path(embedded.__file__).parent / "data" / "replica" / f"{name}.csv.gz", dtype=str,
                         keep_default_na=False)  # fmt: skip
    runs = read(name, embedded_outputs)
    for (model, condition), group in runs.responses.groupby(["model", "condition"]):
        assert group["prediction"].tolist() == packed[f"{model}|{condition}|prediction"].tolist()
        verdicts = runs.judgements[(runs.judgements["model"] == model) & (runs.judgements["condition"] == condition)]
        assert verdicts["hit"].astype(int).astype(str).tolist() == packed[f"{model}|{condition}|hit"].tolist()


def digest(folder):
    return {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.rglob("*.*")
            if p.is_file()}  # fmt: skip


def test_bytes_repeat_and_writers_do_not_meet(tmp_path):
    name = "hallusionbench_replica"
    with ThreadPoolExecutor(3) as pool:
        folders = list(pool.map(lambda _: embedded.materialise(name, tmp_path / "one"), range(3)))
    assert len(set(folders)) == 1
    assert [p.name for p in folders[0].parent.iterdir()] == [folders[0].name]  # no temporary folder is left
    other = embedded.materialise(name, tmp_path / "two")
    assert digest(folders[0]) == digest(other)
    assert len(digest(other)) == 12
    stamp = (other / "gpt-5-nano" / "gpt-5-nano_HallusionBench.xlsx").stat().st_mtime_ns
    embedded.materialise(name, tmp_path / "two")
    assert (other / "gpt-5-nano" / "gpt-5-nano_HallusionBench.xlsx").stat().st_mtime_ns == stamp


def test_wrong_benchmark_for_an_embedded_pool(tmp_path):
    data = load_params(ROOT / "params" / "tinysee.yaml").data
    with pytest.raises(AuditError, match="write benchmark: TinySee"):
        read_runs(data, benchmark="MMStar", outputs=tmp_path)


def test_packed_data_are_small():
    folder = Path(embedded.__file__).parent / "data" / "replica"
    assert sum(p.stat().st_size for p in folder.iterdir()) < 600_000
