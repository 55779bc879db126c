"""Figures: what is drawn equals the saved audit, whatever the pool; files repeat; foreign names are literal."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from builders import embedded_audit
from demo_audit import HOSTILE_MODEL, bare, demo
from scipy.stats import mannwhitneyu

from auditlib.figures import FIGURES, Lacking, captions, glyphs, save_figures, style
from auditlib.figures.arms import prepare_flow
from auditlib.figures.nulls import prepare_no_gain
from auditlib.figures.profile import prepare_pool_size
from auditlib.lookup import one
from auditlib.paths import RunPaths

BLIND = {n for n, f in FIGURES.items() if "blind" in f.needs}


def frame_of(name: str, audit) -> pd.DataFrame:
    return FIGURES[name].prepare(audit)


def texts(ax) -> list[str]:
    return [t.get_text() for t in ax.figure.findobj(plt.Text) if t.get_text().strip()]


def drawable_names(audit) -> set[str]:
    names = set()
    for name, figure in FIGURES.items():
        try:
            figure.prepare(audit)
            names.add(name)
        except Lacking as why:
            assert str(why)
    return names


# --- which figures a pool has ---


def test_a_pool_with_everything_has_every_figure():
    assert drawable_names(demo(design=True)) == set(FIGURES)


def test_full_runs_only_lack_what_needs_a_blind_run_and_say_so():
    audit = demo(blind=False, judged=False)
    assert drawable_names(audit) == {"fig1_pipeline", "fig3b_strata_unanimous", "blind_profile", "key_letters"}
    for name in BLIND:
        with pytest.raises(Lacking, match="no blind run"):
            frame_of(name, audit)


def test_one_model_without_categories_judge_or_design():
    got = drawable_names(demo(models=1, strata=0, judged=False))
    assert {"fig2a_full_vs_blind", "fig2b_null", "fig2c_no_gain", "blind_profile"} <= got
    assert not got & {"fig3a_strata_excess", "fig3b_strata_unanimous", "fig4b_disagreements", "arm_flow", "fig5a_roc"}


def test_bare_hits_have_no_letters_but_the_gain():
    got = drawable_names(bare())
    assert {"fig2a_full_vs_blind", "fig2b_null", "fig2c_no_gain", "pool_size", "blind_profile"} <= got
    assert not got & {"key_letters", "fig3b_strata_unanimous", "fig4b_disagreements"}


# --- the numbers drawn ---


def test_cells_hold_every_item_and_lie_in_their_cell():
    audit = demo(design=True)
    frame, counts = frame_of("fig2a_full_vs_blind", audit), audit.counts[audit.counts["arm"] == "judged"]
    assert frame["items"].sum() == len(counts) == 120
    assert frame.loc[frame["zero_gain"], "items"].sum() == (counts["F"] == counts["B"]).sum()
    ax = FIGURES["fig2a_full_vs_blind"].draw(frame)
    dots = np.concatenate([c.get_offsets() for c in ax.collections])
    assert len(dots) == 120
    cells = np.round(dots * 3).astype(int)
    drawn = pd.DataFrame(cells, columns=["B", "F"]).value_counts().to_dict()
    assert drawn == {(r.B, r.F): r.items for r in frame.itertuples()}


def test_null_histogram_counts_every_draw_and_marks_mean_and_observed():
    audit = demo(design=True)
    frame = frame_of("fig2b_null", audit)
    assert list(dict.fromkeys(frame["null_kind"])) == ["within", "pooled"]
    for kind, part in frame.groupby("null_kind"):
        row = one(audit.statistics, "zero_gain_share", arm="judged", null_kind=kind, models="all", stratum="all",
                  policy="wrong")  # fmt: skip
        assert part["draws"].sum() == 99
        assert part["null"].iloc[0] == row["null"] and part["p"].iloc[0] == row["p"] and row["p_method"] == "exact"
    ax = FIGURES["fig2b_null"].draw(frame)
    observed = [c for c in ax.collections if len(c.get_segments()) and c.get_colors()[0][0] > 0.8]
    assert {seg[0][0] for c in observed for seg in c.get_segments()} == {frame["observed"].iloc[0]}


def test_no_gain_bars_are_the_counts_of_ties():
    audit = demo(design=True)
    counts = audit.counts[audit.counts["arm"] == "judged"]
    ties = counts.loc[counts["F"] == counts["B"], "F"].value_counts()
    frame = frame_of("fig2c_no_gain", audit)
    assert frame["n"].tolist() == [ties.get(k, 0) for k in range(4)]
    ax = FIGURES["fig2c_no_gain"].draw(frame)
    assert [p.get_height() for p in ax.patches] == frame["n"].tolist()
    # excess of the whole set = sum of its parts (the null mean is additive over disjoint cells)
    whole = one(audit.statistics, "zero_gain_share", arm="judged", null_kind="within", models="all", stratum="all")
    assert frame["excess"].sum() == pytest.approx(whole["excess"], abs=1e-12)


def test_profile_shares_sum_to_one_and_hold_the_accuracy():
    audit = demo(design=True)
    frame = frame_of("blind_profile", audit)
    assert frame[["correct", "wrong", "unparseable", "refused", "failed"]].sum(axis=1).to_numpy() == pytest.approx(1)
    for r in frame.itertuples():
        row = one(audit.statistics, "accuracy", models=r.model, level=r.condition, arm="judged")
        assert r.correct == pytest.approx(row["estimate"])


def test_disagreements_equal_a_count_over_the_replies():
    audit = demo(design=True)
    keys = dict(zip(audit.items["item"], audit.items["key"]))
    on = ["item", "model", "condition", "sample"]
    both = audit.responses.merge(audit.judgements[[*on, "hit"]], on=on)
    differ = both["letter"].eq(both["item"].map(keys)) != both["hit"].eq(1)
    want = both[differ].groupby(["model", "condition"]).size()
    for r in frame_of("fig4b_disagreements", audit).itertuples():
        assert (r.full, r.blind) == (want.get((r.model, "full"), 0), want.get((r.model, "blind"), 0))


def test_flow_is_the_cross_table_of_both_arms():
    audit = demo(design=True)
    wide = audit.counts.pivot(index="item", columns="arm", values="category").astype(str)
    want = pd.crosstab(wide["judged"], wide["exact"]).stack()
    frame = prepare_flow(audit).set_index(["judged", "parser"])["items"]
    assert frame[frame > 0].to_dict() == want[want > 0].to_dict()


def test_roc_area_is_the_rank_statistic():
    audit = demo(design=True)
    frame = frame_of("fig5a_roc", audit)
    counts = audit.counts[audit.counts["arm"] == "judged"]
    gain = counts["F"] - counts["B"]
    vd = counts["design"].eq("VD")
    u = mannwhitneyu(gain[vd], gain[~vd]).statistic / (vd.sum() * (~vd).sum())
    area = np.trapezoid(frame["true_positive_rate"], frame["false_positive_rate"])
    assert area == pytest.approx(u) == pytest.approx(frame["auc"].iloc[0])


def test_categories_are_sorted_by_excess_and_share_one_order():
    audit = demo(design=True)
    excess, votes = frame_of("fig3a_strata_excess", audit), frame_of("fig3b_strata_unanimous", audit)
    parts = excess[excess["kind"] == "category"]
    assert parts["excess"].is_monotonic_decreasing and parts["stratum"].tolist() == votes["stratum"].tolist()
    assert excess["kind"].tolist()[-2:] == ["within", "pooled"]


def test_without_a_blind_run_categories_are_sorted_by_the_unanimous_rate():
    votes = frame_of("fig3b_strata_unanimous", demo(blind=False, judged=False))
    assert votes["estimate"].is_monotonic_decreasing and set(votes["sorted_by"]) == {"estimate"}


def test_pool_size_ends_at_the_whole_pool():
    audit = demo(design=True)
    frame = frame_of("pool_size", audit)
    last = frame[frame["models"] == 3].set_index("quantity")["estimate"]
    row = one(audit.statistics, "zero_gain_share", arm="judged", null_kind="pooled", models="all", stratum="all")
    assert last["raw share"] == pytest.approx(row["estimate"]) and last["excess"] == pytest.approx(row["excess"])


# --- the published figures (numbers printed in the paper's figures 2 to 5) ---


def test_published_figures_of_the_replica():
    audit = embedded_audit("mmstar_replica")
    ties = frame_of("fig2c_no_gain", audit)
    assert (ties["n"].sum(), ties["n"].iloc[0], ties["n"].iloc[-1]) == (303, 164, 26)
    strata = frame_of("fig3a_strata_excess", audit).set_index("stratum")["excess"] * 100
    assert list(strata.index[:2]) == ["science & technology", "math"] and strata.index[5] == "coarse perception"
    assert [round(v, 1) for v in strata.iloc[[0, 1, 5]]] == [7.5, 6.6, -1.7]
    votes = frame_of("fig3b_strata_unanimous", audit).set_index("stratum")["estimate"] * 100
    assert round(votes["coarse perception"], 1) == 11.6 and round(votes["fine-grained perception"], 1) == 14.4
    pairs = frame_of("fig4b_disagreements", audit).set_index("model")
    assert pairs.sum(axis=1).to_dict() == {"InternVL3-8B": 0, "Ristretto-3B": 0, "gpt-5-nano": 229}
    flow = frame_of("arm_flow", audit)
    assert flow.loc[flow["judged"] != flow["parser"], "items"].sum() == 122
    shares = frame_of("fig4a_arm_shares", audit).pivot(index="category", columns="arm", values="estimate")
    assert round((shares["judged"] - shares["exact"]).abs().max() * 100, 1) == 2.1
    zero = frame_of("bounds", audit).set_index("share").loc["zero_gain"]
    assert [round(zero[c] * 100, 1) for c in ("wrong", "bound_low", "bound_high")] == [20.2, 7.0, 43.1]


# --- drawing ---


@pytest.mark.parametrize("name", FIGURES)
def test_every_text_stays_inside_the_picture(name):
    ax = FIGURES[name].draw(frame_of(name, demo(design=True, hostile=True)))
    inside(ax)


def inside(ax, slack: float = 2.0) -> None:
    """All that is laid out, and the words that take no part in the layout, lie within the canvas (pixels)."""
    fig = ax.figure
    fig.draw_without_rendering()
    tight = fig.get_tightbbox()
    edges = np.array([tight.x0, tight.y0, fig.get_figwidth() - tight.x1, fig.get_figheight() - tight.y1]) * fig.dpi
    assert edges.min() > -slack, edges
    box = fig.bbox
    for t in [*ax.texts, ax.xaxis.label, ax.yaxis.label]:
        if t.get_text().strip():
            e = t.get_window_extent()
            within = (
                e.x0 >= box.x0 - slack and e.x1 <= box.x1 + slack and e.y0 >= box.y0 - slack and e.y1 <= box.y1 + slack
            )
            assert within, t.get_text()


def test_fifty_models_and_sixty_categories_with_long_names_fit():
    names = [f"some-vendor/a-rather-long-model-name-{j}B-Instruct-preview" for j in range(50)]
    profile = pd.DataFrame([{"model": m, "condition": c, "n": 100, "correct": 0.5, "wrong": 0.2, "unparseable": 0.1,
                             "refused": 0.1, "failed": 0.1, "arm": "judged"} for m in names
                            for c in ("full", "blind")])  # fmt: skip
    inside(FIGURES["blind_profile"].draw(profile))
    pairs = pd.DataFrame({"model": names, "full": range(50), "blind": 3})
    inside(FIGURES["fig4b_disagreements"].draw(pairs))
    strata = pd.DataFrame({"stratum": [f"category with a rather long official name, number {i}" for i in range(60)],
                           "kind": "category", "arm": "judged", "n": 40, "estimate": 0.2, "null": 0.1,
                           "excess": np.linspace(0.3, -0.1, 60), "excess_low": np.nan, "excess_high": np.nan, "p": 0.5,
                           "q": 0.5})  # fmt: skip
    ax = FIGURES["fig3a_strata_excess"].draw(strata)
    inside(ax)
    assert len({t for t in texts(ax) if t.startswith("category")}) == 60  # shortened names stay different


def test_shares_of_a_million_items_are_drawn_as_discs():
    grid = pd.DataFrame([{"F": f, "B": b, "n": 50, "R": 1, "items": 400, "full": f / 50, "blind": b / 50,
                          "zero_gain": f == b, "arm": "judged"} for f in range(51) for b in range(51)])  # fmt: skip
    ax = FIGURES["fig2a_full_vs_blind"].draw(grid)
    assert sum(len(c.get_offsets()) for c in ax.collections) == 51 * 51
    assert "one dot" not in FIGURES["fig2a_full_vs_blind"].caption(grid)


def test_axes_that_are_given_are_used_and_returned():
    fig, axes = plt.subplots(1, 2)
    frame = frame_of("fig2c_no_gain", demo(design=True))
    assert FIGURES["fig2c_no_gain"].draw(frame, ax=axes[1]) is axes[1]
    assert plt.get_fignums() == [fig.number] and not axes[0].patches


def test_hostile_names_are_drawn_literally():
    ax = FIGURES["fig4b_disagreements"].draw(frame_of("fig4b_disagreements", demo(design=True, hostile=True)))
    label = next(t for t in ax.get_yticklabels() if t.get_text() == HOSTILE_MODEL)
    assert label.get_parse_math() is False and label.get_usetex() is False
    ax.figure.draw_without_rendering()


def test_the_style_does_not_leak():
    before = plt.rcParams["font.size"]
    FIGURES["fig2c_no_gain"].draw(frame_of("fig2c_no_gain", demo(design=True)))
    assert plt.rcParams["font.size"] == before and plt.rcParams["text.parse_math"] is True


def test_characters_without_a_glyph_are_spelled_out():
    assert glyphs.drawable("a 🚀 b", system=False) == "a ⟨U+1F680⟩ b"
    assert glyphs.drawable("שלום مرحبا 😀 é κ ≥", system=False) == "שלום مرحبا 😀 é κ ≥"
    assert glyphs.drawable("a\u202eb", system=False) == "a⟨U+202E⟩b"
    assert glyphs.drawable("👩\u200d🚀", system=False).replace("\u200d", "") == "⟨U+1F469⟩⟨U+1F680⟩"


def test_long_names_lose_their_middle():
    assert glyphs.short("x" * 20 + "y" * 20, 11) == "xxxxxx…yyyy"
    assert len(glyphs.short("some-vendor/model-name-with-a-long-tail-72B", 30)) == 30


# --- files ---


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> tuple[RunPaths, pd.DataFrame]:
    paths = RunPaths(tmp_path_factory.mktemp("figures"), "demo")
    return paths, save_figures(demo(blind=False, judged=False), paths)


def test_each_drawn_figure_has_four_files_and_a_caption(saved):
    paths, table = saved
    assert table["name"].tolist() == list(FIGURES)
    for r in table.itertuples():
        files = [paths.figures / f"{r.name}.{e}" for e in ("pdf", "svg", "png", "csv")]
        assert all(f.exists() for f in files) if r.state == "drawn" else not any(f.exists() for f in files)
        assert (r.caption if r.state == "drawn" else r.reason).strip()


def test_numbers_lie_beside_the_picture(saved):
    paths, _ = saved
    frame = frame_of("key_letters", demo(blind=False, judged=False))
    read = pd.read_csv(paths.figures / "key_letters.csv")
    pd.testing.assert_frame_equal(read, frame, check_dtype=False)


def test_pdf_embeds_truetype_and_carries_no_date(saved):
    paths, _ = saved
    for file in paths.figures.glob("*.pdf"):
        data = file.read_bytes()
        assert b"/CIDFontType2" in data or b"/TrueType" in data
        assert b"/Type3" not in data and b"CreationDate" not in data and b"ModDate" not in data
    for file in paths.figures.glob("*.svg"):
        assert not re.search(
            r"<dc:date>|https?://(?!www\.w3\.org|creativecommons|purl\.org|matplotlib\.org)", file.read_text()
        )


def test_two_runs_write_the_same_bytes(saved, tmp_path):
    paths, _ = saved
    again = RunPaths(tmp_path, "demo")
    names = ["fig3b_strata_unanimous", "key_letters"]
    save_figures(demo(blind=False, judged=False), again, names)
    for name in names:
        for e in ("pdf", "svg", "png", "csv"):
            a, b = ((p.figures / f"{name}.{e}").read_bytes() for p in (paths, again))
            assert a == b, f"{name}.{e}"


def test_the_page_shows_all_figures_and_fetches_nothing(saved):
    paths, table = saved
    html = (paths.figures / "index.html").read_text(encoding="utf-8")
    for r in table.itertuples():
        assert r.title.replace("'", "&#x27;") in html
    assert html.count("<img") == (table["state"] == "drawn").sum() == html.count("data:image/")
    assert "<script" not in html and not re.search(r'(src|href)="https?:', html)


def test_a_figure_that_is_lacking_loses_its_old_files(tmp_path):
    paths = RunPaths(tmp_path, "demo")
    paths.figures.mkdir(parents=True)
    stale = paths.figures / "fig2b_null.png"
    stale.write_bytes(b"old")
    table = save_figures(demo(blind=False, judged=False), paths, ["fig2b_null"])
    assert table["state"].tolist() == ["not drawn"] and not stale.exists()


def test_the_command_draws_from_a_saved_audit(tmp_path, capsys):
    from auditlib.outputs import save_audit
    from auditlib.report.again import again

    paths = RunPaths(tmp_path, "demo")
    save_audit(demo(blind=False, judged=False), paths)
    assert again([str(paths.folder), "key_letters"], "figures", FIGURES, save_figures) == 0
    assert (paths.figures / "key_letters.svg").exists() and "key_letters" in capsys.readouterr().out
    assert again([str(paths.folder), "fig9"], "figures", FIGURES, save_figures) == 2
    assert "fig2b_null" in capsys.readouterr().err
    assert again([str(tmp_path / "nothing")], "figures", FIGURES, save_figures) == 2


def test_style_file_is_part_of_the_package():
    assert Path(style.__file__).with_name("audit.mplstyle").exists()


def test_captions_name_the_null_behind_an_excess():
    for strata, words in ((3, "inside the official categories"), (0, "over all items (pooled null)")):
        audit = demo(strata=strata)
        assert words in captions.excess_composition(prepare_no_gain(audit))
        assert "excess (pooled null)" in captions.pool_size(prepare_pool_size(audit))
