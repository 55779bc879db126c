"""The cache of parsed runs: the same pool with and without it, and what makes it read a file again."""

import dataclasses
import multiprocessing
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import auditlib
from auditlib import parsed
from auditlib.params import check_params
from auditlib.parsed import ParsedCache
from auditlib.readers import dataset, vlmevalkit_runs
from auditlib.synth.embedded import materialise
from auditlib.synth.leaderboard import LeaderboardRecipe, write_leaderboard

RECIPE = LeaderboardRecipe(models=3, benchmarks=1, items=40, strata=2, families=2)


@pytest.fixture
def tree(tmp_path):
    write_leaderboard(RECIPE, tmp_path / "results")
    (tmp_path / "outputs").mkdir()
    return tmp_path / "results"


@pytest.fixture
def opened(monkeypatch):
    """Names of the result files that were opened and parsed."""
    names = []

    def counted(path):
        names.append(Path(path).name)
        return dataset.open_toolkit_table(path)

    monkeypatch.setattr(vlmevalkit_runs, "open_toolkit_table", counted)
    return names


def read(tree, **more):
    return auditlib.read_pool(tree, benchmark="Bench01", outputs=tree.parent / "outputs", **more)


def entries(tree):
    return sorted((tree.parent / "outputs" / ".cache").rglob("*.parsed"))


def same(a, b):
    """Every array, table and fact of two pools."""
    for group in ("letters", "refused", "failed", "abstained"):
        x, y = getattr(a, group), getattr(b, group)
        assert x.keys() == y.keys()
        assert all(np.array_equal(x[c], y[c]) and x[c].dtype == y[c].dtype for c in x)
    assert a.arms.keys() == b.arms.keys()
    for name, arm in a.arms.items():
        other = b.arms[name]
        assert arm.unit == other.unit
        for x, y in ((arm.hits, other.hits), (arm.trials, other.trials)):
            assert all(np.array_equal(x[c], y[c]) and x[c].dtype == y[c].dtype for c in x)
    for table in ("items", "models", "responses", "coverage"):
        pd.testing.assert_frame_equal(getattr(a, table), getattr(b, table), check_exact=True)
    if a.judgements is not None:
        pd.testing.assert_frame_equal(a.judgements, b.judgements, check_exact=True)
    assert a.inputs == b.inputs and a.provenance == b.provenance


def test_same_pool_with_and_without(tree, opened):
    plain = read(tree, cache=False)
    assert not entries(tree) and len(opened) == 6
    cold, warm = read(tree), read(tree)
    same(plain, cold)
    same(plain, warm)
    assert len(opened) == 12  # the third reading opened nothing


def test_same_pool_with_verdicts(tmp_path):
    """A pool with judged files, remarks and warnings: every table row by row."""
    outputs = tmp_path / "outputs"
    params = auditlib.load_params(Path(__file__).parents[1] / "params" / "tinysee.yaml")
    materialise(params.data.embedded, outputs)
    plain = auditlib.read_pool(params, outputs=outputs, cache=False)
    assert plain.judgements is not None and len(plain.coverage)
    same(plain, auditlib.read_pool(params, outputs=outputs))
    same(plain, auditlib.read_pool(params, outputs=outputs))


def test_filter_and_copies(tree):
    """What ``where`` leaves out, duplicates and odd replies are remarks of the reading: they come back too."""
    file = tree / "Model-001" / "Model-001_Bench01.tsv"
    lines = file.read_text().splitlines()
    lines[5] = lines[5].rsplit("\t", 1)[0] + "\tFailed to obtain answer via API."
    lines[6] = lines[6].rsplit("\t", 1)[0] + "\t"
    file.write_text("\n".join([*lines, lines[1], ""]))
    said = {"pool": "p", "benchmark": "Bench01", "data": {"folder": str(tree), "where": {"category": "stratum 01"}}}
    params = check_params(said, tree.parent / "p.yaml")
    plain, cold, warm = (
        auditlib.read_pool(params, outputs=tree.parent / "outputs", cache=c) for c in (False, *[None] * 2)
    )
    assert {"duplicate", "warning", "excluded"} <= set(plain.coverage["what"])
    same(plain, cold)
    same(plain, warm)


def test_new_model_costs_one_model(tree, opened):
    read(tree)
    more = dataclasses.replace(RECIPE, models=4)
    write_leaderboard(more, tree, only=[3], seed=8)
    # the new model's keys must be those of the benchmark
    donor = (tree / "Model-001" / "Model-001_Bench01.tsv").read_text()
    for name in ("Model-004", "Model-004_blind"):
        (tree / name / f"{name}_Bench01.tsv").write_text(donor.replace("A.", "B."))
    opened.clear()
    pool = read(tree)
    assert sorted(opened) == ["Model-004_Bench01.tsv", "Model-004_blind_Bench01.tsv"]
    assert pool.model_names[-1] == "Model-004"
    same(pool, read(tree, cache=False))


def test_content_decides(tree, opened):
    """Same size and time but another content: read again. Another time but the same content: not."""
    read(tree)
    file = tree / "Model-002" / "Model-002_Bench01.tsv"
    about, text = file.stat(), file.read_text()
    row = text.splitlines()[1]
    letter = next(c for c in row.rsplit("\t", 1)[1] if c in "ABCD")
    head, reply = row.rsplit("\t", 1)
    other = head + "\t" + reply.replace(letter, "A" if letter != "A" else "B")
    file.write_text(text.replace(row, other))
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert file.stat().st_size == about.st_size
    opened.clear()
    changed = read(tree)
    assert opened == [file.name]
    same(changed, read(tree, cache=False))
    for path in tree.rglob("*.tsv"):
        os.utime(path)
    opened.clear()
    same(changed, read(tree))
    assert not opened


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "junk", "swap"])
def test_damaged_entries_are_read_again(tree, opened, damage):
    plain = read(tree)
    files = entries(tree)
    for file in files:
        raw = file.read_bytes()
        middle = len(raw) // 2
        file.write_bytes({
            "flip": raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :],
            "cut": raw[:middle],
            "empty": b"",
            "junk": b"PAR1" * 50,
            "swap": b"\0" * 32 + raw[32:],
        }[damage])  # fmt: skip
    opened.clear()
    same(plain, read(tree))
    assert len(opened) == 6 and entries(tree) == files
    opened.clear()
    same(plain, read(tree))
    assert not opened


def test_entries_of_other_code_are_not_used(tree, opened, monkeypatch):
    read(tree)
    opened.clear()
    monkeypatch.setattr(parsed, "code_version", lambda: "another")
    read(tree)
    assert len(opened) == 6


def test_chain_and_options_decide_letters(tree):
    said = {"pool": "p", "benchmark": "Bench01", "data": {"folder": str(tree)}}
    outputs = tree.parent / "outputs"
    for chain in (["letters"], ["option_text"], ["letters"]):
        params = check_params(said | {"audit": {"exact": chain}}, tree.parent / "p.yaml")
        try:
            plain = auditlib.read_pool(params, outputs=outputs, cache=False)
        except auditlib.AuditError as e:
            with pytest.raises(auditlib.AuditError, match=e.what[:20]):
                auditlib.read_pool(params, outputs=outputs)
            continue
        same(plain, auditlib.read_pool(params, outputs=outputs))


def test_opting_out(tree, monkeypatch):
    monkeypatch.setenv(parsed.SWITCH, "off")
    read(tree)
    assert not entries(tree)
    monkeypatch.delenv(parsed.SWITCH)
    shutil.rmtree(tree.parent / "outputs")
    read(tree)  # reading alone creates no folder
    assert not (tree.parent / "outputs").exists()


def test_bounded_and_cleared(tmp_path):
    cache = ParsedCache(tmp_path, limit=2500)
    table = pd.DataFrame({"a": pd.Series(["x"] * 3, dtype="str")})
    keys = [parsed.key_of("test", i) for i in range(5)]
    for i, key in enumerate(keys):
        assert parsed.store(cache, key, {"t": table}, {"i": i})
        os.utime(parsed._path(cache, key), ns=(i, i))
    each = parsed.size(cache)[1] // 5
    assert parsed.load(cache, keys[0])[1] == {"i": 0}  # used now: the last to go
    keep = 2500 // each
    assert parsed.prune(cache) == 5 - keep
    left = [i for i, k in enumerate(keys) if parsed.load(cache, k)]
    assert left == [0, *range(5 - keep + 1, 5)]
    assert parsed.clear(cache) == keep and parsed.size(cache) == (0, 0)


def test_odd_types_come_back_exactly_or_not_at_all(tmp_path):
    cache = ParsedCache(tmp_path)
    table = pd.DataFrame({
        "text": pd.Series(["a", "", None], dtype="str"),
        "lists": pd.Series([["p", ""], [], None], dtype=object),
        "whole": pd.array([1, None, 3], dtype="Int64"),
        "half": [0.1, np.nan, 2.0],
        "yes": [True, False, True],
    })  # fmt: skip
    assert parsed.store(cache, "aa" * 32, {"t": table}, {"n": [1, "é"]})
    back, facts = parsed.load(cache, "aa" * 32)
    pd.testing.assert_frame_equal(back["t"], table, check_exact=True)
    assert [type(v) for v in back["t"]["lists"]] == [list, list, type(None)] and facts == {"n": [1, "é"]}
    for odd in ((1, 2), {1: 2}, float("nan")):  # would come back as a list, as text, as None
        column = pd.Series([odd, "text"], dtype=object)
        assert not parsed.store(cache, "bb" * 32, {"t": pd.DataFrame({"odd": column})}, {})
    assert not parsed.store(cache, "bb" * 32, {"t": table}, {"n": (1, 2)})
    assert parsed.load(cache, "bb" * 32) is None


def _write_often(folder, times):
    table = pd.DataFrame({"a": pd.Series(["word"] * 2000, dtype="str")})
    cache = ParsedCache(Path(folder))
    for _ in range(times):
        parsed.store(cache, "cc" * 32, {"t": table}, {"n": 1})
        found = parsed.load(cache, "cc" * 32)
        assert found is not None and len(found[0]["t"]) == 2000


def test_two_processes_write_one_entry(tmp_path):
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=_write_often, args=(str(tmp_path), 60)) for _ in range(2)]
    for p in both:
        p.start()
    for p in both:
        p.join()
    assert [p.exitcode for p in both] == [0, 0]
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [f"{'cc' * 31}.parsed"]
