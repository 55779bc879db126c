"""Two audits, or two versions of a dataset: exactly what was changed shows, with the paired numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from builders import runs
from scipy.stats import binomtest

import auditlib
from auditlib.__main__ import main
from auditlib.diff.compare import compare
from auditlib.diff.items import item_changes
from auditlib.diff.paired import paired_numbers, shared
from auditlib.diff.said import short
from auditlib.diff.sides import audit_side, load_side, pool_again
from auditlib.diff.write import write_difference
from auditlib.errata.patch import patch
from auditlib.errata.table import read_errata
from auditlib.errors import AuditError
from auditlib.outputs import load_audit, save_audit
from auditlib.params import Params
from auditlib.paths import RunPaths
from auditlib.pool import Pool
from auditlib.reading import pool_of

N = 24
QUICK = {"permutations": 99, "bootstrap": 200, "splits": 2}


def replies(seed: int, keys: list[str], skill: float) -> list[str]:
    rng = np.random.default_rng(seed)
    return [k if rng.random() < skill else "ABCD"[rng.integers(4)] for k in keys]


KEYS = list(np.random.default_rng(1).choice(list("ABCD"), N))


def audited(outputs, name: str, keys=KEYS, *, models=("ann", "bob", "cid"), ids=None, benchmark="Toy", judged=False,
            settings=None, **more):  # fmt: skip
    """Audit a small pool, save it, and give its folder; the replies are made from :data:`KEYS`, whatever the keys."""
    said = {}
    for n, m in enumerate(("ann", "bob", "cid", "dee")):
        if m in models:
            said[m, "full"] = replies(n, KEYS, 0.9 - 0.2 * n)[: len(keys)]
            said[m, "blind"] = replies(n + 9, KEYS, 0.3)[: len(keys)]
    for m in models:  # items 3 and 8: all models agree on D, whatever the key
        for i in (3, 8):
            said[m, "full"][i] = "D"
    verdicts = {k: [float(a == b) for a, b in zip(v, KEYS)] for k, v in said.items()} if judged else None
    params = {"pool": name, "benchmark": benchmark, "data": {"embedded": "tinysee"}, "audit": QUICK}
    pool = pool_of(runs(said, list(keys), ids=ids, judged=verdicts, **more), Params(**params | (settings or {})))
    save_audit(auditlib.audit(pool), RunPaths(outputs, name))
    return outputs / name


def with_keys(changes: dict[int, str]) -> list[str]:
    return [changes.get(i, k) for i, k in enumerate(KEYS)]


WRONG = with_keys({3: "A", 8: "B"})
RIGHT = with_keys({3: "D", 8: "D"})


@pytest.fixture(scope="module")
def patched(tmp_path_factory):
    """An audit with two wrong keys, and the one with these mended."""
    out = tmp_path_factory.mktemp("diff")
    return audited(out, "before", WRONG), audited(out, "after", RIGHT)


@pytest.fixture(scope="module")
def difference(patched):
    a, b = (load_side(f, f.parent) for f in patched)
    return compare(a, b)


# ------------------------------------------------------------------------------------------------ audits


def test_exactly_the_mended_items_show(difference):
    assert difference.items.to_numpy().tolist() == [
        ["3", "changed", "key", "A", "D"],
        ["8", "changed", "key", "B", "D"],
    ]
    assert set(difference.findings["item"]) == {"3", "8"} == set(difference.categories["item"])
    consensus = difference.findings[difference.findings["detector"].eq("consensus_error")]
    assert consensus["change"].tolist() == ["vanished", "vanished"] and not difference.same
    assert (consensus["before"] == ["all 3 voters say D, the key says A", "all 3 voters say D, the key says B"]).all()


def test_paired_numbers_are_those_of_the_runs(difference):
    full = difference.paired[difference.paired["quantity"].eq("accuracy") & difference.paired["condition"].eq("full")]
    for n, row in enumerate(full.to_dict("records")):
        said = np.array(replies(n, KEYS, 0.9 - 0.2 * n), object)
        said[[3, 8]] = "D"
        before, after = (float((said == np.array(k, object)).mean()) for k in (WRONG, RIGHT))
        assert (row["before"], row["after"]) == pytest.approx((before, after))
        assert (row["gained"], row["lost"], row["items"]) == (2, 0, N)
        assert row["p"] == pytest.approx(binomtest(0, 2).pvalue) == 0.5 and row["p_method"] == "exact McNemar"
        # 2 gains among 24: the bootstrap count is binomial(24, 2/24) over 24
        assert row["low"] == 0 and row["high"] == pytest.approx(5 / N, abs=1.01 / N)


def test_shares_are_those_of_the_audits(difference, patched):
    shares = difference.paired.set_index("quantity")
    for folder, side in zip(patched, ("before", "after")):
        saved = load_audit(RunPaths(folder.parent, folder.name))
        for name in ("zero_gain_share", "text_only_share", "visual_dependent_share"):
            wanted = saved.statistic(name, arm="exact", policy="wrong", null_kind="pooled")["estimate"].iloc[0]
            assert shares.loc[name, side] == pytest.approx(wanted)


def test_ranks_are_those_of_either_side(difference):
    board = difference.ranks.set_index("model")
    full = difference.paired[difference.paired["condition"].eq("full")].set_index("model")
    assert board["score_before"].to_dict() == pytest.approx(full["before"].to_dict())
    assert (board["rank_before"] == (-board["score_before"]).rank()).all()
    assert (board["low_before"] <= board["rank_before"]).all() and (board["rank_after"] <= board["high_after"]).all()


def test_the_saved_frames_give_the_pool_back(tmp_path):
    folder = audited(tmp_path, "p", judged=True)
    again, why = pool_again(load_audit(RunPaths(tmp_path, folder.name)))
    said = {("ann", "full"): replies(0, KEYS, 0.9)}
    said["ann", "full"][3] = said["ann", "full"][8] = "D"
    assert why == "" and set(again.arms) == {"exact", "judged"}
    assert again.arms["exact"].hits["full"][:, 0].tolist() == [int(a == b) for a, b in zip(said["ann", "full"], KEYS)]
    assert (again.arms["judged"].hits["full"] == again.arms["exact"].hits["full"]).all()


def test_one_audit_with_itself_has_no_difference(patched, tmp_path, capsys):
    assert main(["diff", str(patched[0]), str(patched[0]), "--to", str(tmp_path / "same")]) == 0
    assert "No difference: 24 items alike, 3 models scored alike." in capsys.readouterr().out
    made = tmp_path / "same"
    assert not (made / "items.csv").exists() and "No difference" in (made / "diff.html").read_text()


def test_another_pool_name_alone_is_no_difference(patched, tmp_path):
    other = audited(tmp_path, "renamed", WRONG)
    found = compare(*(load_side(f, f.parent) for f in (patched[0], other)))
    changed = found.statistics[found.statistics["change"].eq("estimate")]
    assert found.same, changed["metric"].tolist()


def test_settings_that_differ_are_said(patched, tmp_path, capsys):
    more = {"judge": "gpt", "audit": QUICK | {"exact": ["letters", "boxed"], "failed": "wrong"}}
    other = audited(tmp_path, "other", WRONG, settings=more)
    assert main(["diff", str(patched[0]), str(other), "--to", str(tmp_path / "d")]) == 0
    [line] = [x for x in capsys.readouterr().out.splitlines() if x.startswith("Settings differ")]
    changed = "judge none → gpt; audit.exact letters → letters, boxed; audit.failed missing → wrong"
    assert line == f"Settings differ ({changed}): a difference of the numbers may be theirs and not the runs'."
    assert "audit.failed missing → wrong" in (tmp_path / "d" / "diff.html").read_text()
    assert not any("Settings" in s for s in short(compare(*(load_side(f, f.parent) for f in patched))))


def test_verdicts_that_do_not_follow_a_key_are_said(tmp_path):
    a, b = (audited(tmp_path, n, k, judged=True) for n, k in (("a", WRONG), ("b", RIGHT)))
    found = compare(load_side(a, tmp_path), load_side(b, tmp_path))
    said = "\n".join(short(found))
    assert "Shared items (judged): every model scores as before; stored verdicts do not follow a changed key." in said
    assert "Accuracy with the image (exact): 3 of 3 models changed" in said


def test_shared_models_and_items_only(tmp_path):
    a = audited(tmp_path, "a", WRONG, models=("ann", "bob", "cid"))
    b = audited(tmp_path, "b", RIGHT[:-2], models=("ann", "bob", "dee"))
    found = compare(load_side(a, tmp_path), load_side(b, tmp_path))
    assert found.left_out == {"cid": "a", "dee": "b"} and found.shared_models == ("ann", "bob")
    assert set(found.paired["model"]) == {"all", "ann", "bob"} and set(found.paired["items"]) == {N - 2}
    assert found.items[found.items["change"].eq("removed")]["item"].tolist() == ["22", "23"]
    # zero gain of the two shared models on the 22 shared items, counted by hand
    pools = [pool_again(load_audit(RunPaths(tmp_path, n)))[0] for n in ("a", "b")]
    for pool, side in zip(pools, ("before", "after")):
        columns = [pool.model_names.index(m) for m in ("ann", "bob")]
        f, g = (pool.arms["exact"].hits[c][: N - 2, columns].sum(axis=1) for c in ("full", "blind"))
        row = found.paired.set_index("quantity").loc["zero_gain_share"]
        assert row[side] == pytest.approx(float((f == g).mean()))
    said = "\n".join(short(found))
    assert "left out: cid (only in a); dee (only in b)" in said and "2 removed" in said
    assert set(found.ranks["items_before"]) == {N} and set(found.ranks["items_after"]) == {N - 2}


def test_clusters_are_drawn_and_flipped_together():
    rng = np.random.default_rng(3)
    hits = rng.integers(0, 2, (40, 2)).astype(np.uint8)
    after = hits.copy()
    after[:10] = 1
    items = pd.DataFrame({"item": [str(i) for i in range(40)], "cluster": [str(i // 10) for i in range(40)]})
    a, b = (Pool.from_hits(h, items=items, models=["m", "n"], name="p") for h in (hits, after))
    found = paired_numbers(shared(a, b), seed=1)
    assert found["clusters"].tolist() == [4, 4] and set(found["p_method"]) == {"exact sign flips"}
    # one cluster of four moves: half of the sign patterns reach the sum on either side, so p = 1
    assert found["p"].tolist() == [1.0, 1.0]
    free = paired_numbers(shared(*(dataclasses.replace(p, items=items[["item"]]) for p in (a, b))), seed=1)
    assert (free["high"] - free["low"] < found["high"] - found["low"]).all()
    assert free["p"].tolist() == pytest.approx([binomtest(0, int(g)).pvalue for g in free["gained"]])


def test_audits_whose_runs_are_unknown_compare_what_they_saved():
    rng = np.random.default_rng(5)
    hits = rng.integers(0, 2, (2, 30, 3)).astype(np.uint8)
    other = hits.copy()
    other[0, 4] = 1
    other[1, 4] = 0
    hits[1, 4] = 1
    a, b = (audit_side(auditlib.audit(Pool.from_hits(*h, name="p", benchmark="Toy"))) for h in (hits, other))
    found = compare(a, b)
    assert found.categories["item"].tolist() == ["4"] and found.categories["after"].tolist() == ["visual_dependent"]
    assert found.categories[["full_after", "blind_before", "of_after"]].to_numpy().tolist() == [[3, 3, 3]]
    assert not len(found.paired) and any("accuracies and ranks are not compared" in n for n in found.notes)
    alike = compare(a, a)
    assert alike.same and short(alike) == ["No difference: 30 items alike; single replies were not compared."]


@pytest.mark.parametrize(
    ("more", "words"),
    [({"benchmark": "Other"}, "is on Toy, .* is on Other"), ({"ids": [f"x{i}" for i in range(N)]}, "share no item")],
)
def test_strangers_are_one_clear_error(tmp_path, patched, more, words):
    other = audited(tmp_path, "other", **more)
    with pytest.raises(AuditError, match=words):
        compare(*(load_side(f, f.parent) for f in (patched[0], other)))


def test_paths_that_are_no_side(tmp_path, patched, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "d.tsv").write_text("index\tanswer\n0\tA\n")
    for path, words in ((tmp_path / "empty", "no audit is saved"), (tmp_path / "gone.tsv", "no such file"),
                        (tmp_path / "d.tsv", "compare two audits, or two dataset files")):  # fmt: skip
        assert main(["diff", str(patched[0]), str(path), "--to", str(tmp_path / "o")]) == 2
        assert words in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


# ------------------------------------------------------------------------------------------------ items


def test_every_fact_of_an_item_is_compared():
    a = pd.DataFrame({"item": ["1", "2", "3", "4"], "question": ["q", "q", "q", "q"], "key": ["A", "B", "A", None],
                      "options": [["x", "y"], ["x", "y"], np.array(["x", "y"]), None],
                      "stratum": ["s", "s", "s", None], "image_key": ["p1", "p2", "p3", None]})  # fmt: skip
    b = pd.DataFrame({"item": ["5", "4", "3", "2"], "question": ["q", "q", "q?", "q"], "key": ["A", "", "A", "B"],
                      "options": [["x"], None, ["x", "y"], ["y", "x"]], "stratum": ["s", "", "t", "s"],
                      "image_key": ["p5", None, "p3", "p9"]})  # fmt: skip
    found, notes = item_changes(a, b)
    assert found[["item", "change", "what"]].to_numpy().tolist() == [
        ["1", "removed", ""], ["2", "changed", "options"], ["2", "changed", "picture"], ["3", "changed", "question"],
        ["3", "changed", "official category"], ["5", "added", ""]]  # fmt: skip
    assert found.loc[1, ["before", "after"]].tolist() == ["A) x; B) y", "A) y; B) x"] and notes == []
    assert item_changes(a, b.drop(columns="image_key"))[1] == [
        "pictures are known of one side only and not compared"]  # fmt: skip


def test_two_versions_of_a_dataset(tmp_path, capsys):
    rows = [f"{i}\tWhich {i}?\tred\tblue\t{'AB'[i % 2]}\tcolour" for i in range(6)]
    head = "index\tquestion\tA\tB\tanswer\tcategory"
    (tmp_path / "v1.tsv").write_text("\n".join([head, *rows]) + "\n")
    table = tmp_path / "errata.csv"
    table.write_text("item,old_key,proposed_key,reason,status\n2,A,B,wrong_key,confirmed\n"
                     "5,B,,no_right_option,confirmed\n")  # fmt: skip
    patch(read_errata(table), table, tmp_path / "v1.tsv", tmp_path / "v2.tsv", drop=True)
    assert main(["diff", str(tmp_path / "v1.tsv"), str(tmp_path / "v2.tsv"), "--to", str(tmp_path / "d")]) == 0
    assert "Items: 5 shared; 1 changed (key of 1), 0 added, 1 removed." in capsys.readouterr().out
    assert (tmp_path / "d" / "items.csv").read_text().splitlines() == [
        "item,change,what,before,after", "2,changed,key,A,B", "5,removed,,,"]  # fmt: skip
    assert main(["diff", str(tmp_path / "v1.tsv"), str(tmp_path / "v1.tsv"), "--outputs", str(tmp_path)]) == 0
    assert "No difference: 6 items alike." in capsys.readouterr().out
    assert (tmp_path / "diff" / "v1_v1" / "diff.html").exists()


# ------------------------------------------------------------------------------------------------ pages


def test_files_hold_the_frames_and_the_page_fetches_nothing(difference, tmp_path):
    made = tmp_path / "d"
    write_difference(difference, made)
    (made / "gone.csv").write_text("of an earlier comparison")
    (made / "mine.csv").write_text("of somebody else")
    with (made / "files.txt").open("a") as listing:
        listing.write("gone.csv\n")
    written = write_difference(difference, made)
    assert written[-1].name == "diff.html"
    assert not (made / "gone.csv").exists() and (made / "mine.csv").exists()
    assert pd.read_csv(made / "paired.csv")["difference"].tolist() == pytest.approx(
        difference.paired["difference"].tolist()
    )
    page, text = (made / "diff.html").read_text(), (made / "diff.md").read_text()
    for part in ("2 changed (key of 2)", "Ranks, exact arm", "Items in another category", "vanished"):
        assert part in page and part in text
    assert "http" not in page.replace("http-equiv", "") and "<script" not in page


def test_foreign_text_is_shown_and_does_nothing(tmp_path):
    hostile = "<script>alert(1)</script> | `x` =1+1"
    options = [["red", "blue", "green", "white"]] * N
    a = audited(tmp_path, "a", options=options)
    b = audited(tmp_path, "b", options=[[hostile, *o[1:]] if i == 5 else o for i, o in enumerate(options)])
    found = compare(load_side(a, tmp_path), load_side(b, tmp_path))
    assert found.items["what"].tolist() == ["options"]
    write_difference(found, tmp_path / "o")
    page, text = ((tmp_path / "o" / f"diff.{e}").read_text() for e in ("html", "md"))
    assert "<script>" not in page and "&lt;script&gt;" in page and r"\<script\>" in text
    line = next(x for x in text.splitlines() if "alert" in x)
    assert line.replace(r"\|", "").count("|") == 6


def test_sides_keep_plain_names(patched):
    audit = load_audit(RunPaths(patched[0].parent, patched[0].name))
    assert audit_side(audit, "a/b ../c").name == "a-b-..-c"


def test_a_folder_of_other_files_is_left_alone(difference, tmp_path):
    (tmp_path / "items.csv").write_text("mine")
    with pytest.raises(AuditError, match="did not make"):
        write_difference(difference, tmp_path)
    assert (tmp_path / "items.csv").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1
