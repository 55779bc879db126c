"""Prevalence against closed forms, exact enumeration and simulation; the notebook's functions from end to end."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from builders import embedded_audit
from review_packets import packet
from scipy.stats import binom

import auditlib
from auditlib.errors import AuditError
from auditlib.kernels import run_notebook
from auditlib.paths import RunPaths, project_root
from auditlib.review import stage
from auditlib.review.outcomes import outcomes
from auditlib.review.prevalence import Probes, Stratum, corrected_prevalence, flag_recall, prevalence, rogan_gladen
from auditlib.review.session import open_session
from auditlib.stats.intervals import wilson


def test_correction_takes_back_what_misreading_does():
    """Apparent = pi Se + (1 - pi)(1 - Sp), for a grid."""
    for pi in (0.0, 0.1, 0.5, 1.0):
        for se in (0.6, 0.9, 1.0):
            for sp in (0.7, 1.0):
                assert rogan_gladen(pi * se + (1 - pi) * (1 - sp), se, sp) == pytest.approx(pi, abs=1e-12)
    assert math.isnan(rogan_gladen(0.3, 0.4, 0.6))


def test_expectation_by_enumeration():
    """With the true Se and Sp, the mean over all binomial readings is the true share."""
    n, pi, se, sp = 40, 0.2, 0.85, 0.9
    k = np.arange(n + 1)
    weight = binom.pmf(k, n, pi * se + (1 - pi) * (1 - sp))
    assert sum(w * rogan_gladen(x / n, se, sp) for x, w in zip(k, weight)) == pytest.approx(pi, abs=1e-12)


def test_strata_are_weighted_by_their_size():
    got = corrected_prevalence([Stratum(100, 100, 40), Stratum(900, 90, 9)], Probes(18, 20, 19, 20))
    assert got.apparent == pytest.approx(0.13)
    assert got.estimate == got.raw == pytest.approx((0.13 + 0.95 - 1) / 0.85)
    assert got.estimate in got.interval
    low = corrected_prevalence([Stratum(100, 100, 1)], Probes(18, 20, 18, 20))
    assert low.estimate == 0 and low.raw == pytest.approx((0.01 - 0.1) / 0.8) and low.interval.low == 0


def test_without_probes_and_with_everything_read_nothing_is_uncertain():
    got = corrected_prevalence([Stratum(50, 50, 7)])
    assert (got.estimate, got.interval.low, got.interval.high) == pytest.approx((0.14, 0.14, 0.14))
    assert "no probes" in got.note


def test_small_sample_without_probes_is_agresti_coull():
    """A vanishing sampling fraction and perfect readers: centre and width of Agresti and Coull (1998)."""
    got = corrected_prevalence([Stratum(10**9, 200, 30)])
    z2 = 1.959963984540054**2
    n, p = 200 + z2, (30 + z2 / 2) / (200 + z2)
    half = math.sqrt(z2 * p * (1 - p) / n)
    assert (got.interval.low, got.interval.high) == pytest.approx((p - half, p + half), abs=1e-6)
    assert wilson(30, 200).low in got.interval


def test_probes_alone_give_the_published_interval():
    """One large stratum: Lang and Reiczigel's formula written out."""
    k, n, probes, z = 60, 200, Probes(45, 50, 57, 60), 1.959963984540054
    p, se, sp = (k + z * z / 2) / (n + z * z), 46 / 52, 58 / 62
    pi = (p + sp - 1) / (se + sp - 1)
    v_se, v_sp = se * (1 - se) / 52, sp * (1 - sp) / 62
    centre = pi + 2 * z * z * (pi * v_se - (1 - pi) * v_sp)
    half = z * math.sqrt(p * (1 - p) / (n + z * z) + pi**2 * v_se + (1 - pi) ** 2 * v_sp) / (se + sp - 1)
    got = corrected_prevalence([Stratum(10**9, n, k)], probes).interval
    assert (got.low, got.high) == pytest.approx((centre - half, centre + half), abs=1e-6)


@pytest.mark.parametrize(
    ("strata", "probes", "why"),
    [([], None, "no items"), ([Stratum(10, 0, 0)], None, "nothing was read"),
     ([Stratum(10, 10, 5)], Probes(2, 10, 3, 10), "not called so more often")],
)  # fmt: skip
def test_no_estimate_with_the_reason(strata, probes, why):
    got = corrected_prevalence(strata, probes)
    assert math.isnan(got.estimate) and why in got.note and "none" in got.interval.method


@pytest.mark.parametrize(
    ("flagged", "unflagged", "sample", "se", "sp", "probes"),
    [((200, 60), (5000, 50), 200, 0.9, 0.95, 12), ((500, 150), (3000, 300), 200, 0.8, 0.85, 60),
     ((2000, 600), (6800, 140), 200, 0.97, 0.97, 120)],
)  # fmt: skip
def test_coverage_in_simulated_reviews(flagged, unflagged, sample, se, sp, probes, rng):
    """600 reviews of a pool with known defects; nominal 95%, standard error 0.9 points."""
    inside, recall_inside, truth = 0, 0, (flagged[1] + unflagged[1]) / (flagged[0] + unflagged[0])
    for i in range(600):
        drawn = rng.hypergeometric(unflagged[1], unflagged[0] - unflagged[1], sample)
        read = [
            rng.binomial(d, se) + rng.binomial(n - d, 1 - sp) for d, n in ((flagged[1], flagged[0]), (drawn, sample))
        ]
        known = Probes(rng.binomial(probes, se), probes, rng.binomial(probes, sp), probes)
        strata = [Stratum(flagged[0], flagged[0], read[0]), Stratum(unflagged[0], sample, read[1])]
        inside += truth in corrected_prevalence(strata, known).interval
        if i < 200:
            recall = flag_recall(*strata, known, rng=rng, draws=500).interval
            recall_inside += flagged[1] / (flagged[1] + unflagged[1]) in recall
    assert inside / 600 > 0.93
    assert recall_inside / 200 > 0.9


def test_recall_of_flags_closed_form(rng):
    got = flag_recall(Stratum(100, 100, 40), Stratum(900, 90, 3), None, rng=rng)
    assert got.estimate == pytest.approx(40 / (40 + 30)) and got.estimate in got.interval
    known = flag_recall(Stratum(100, 100, 40), Stratum(900, 90, 18), Probes(18, 20, 18, 20), rng=rng)
    a, b = 100 * (0.4 - 0.1) / 0.8, 900 * (0.2 - 0.1) / 0.8
    assert known.estimate == pytest.approx(a / (a + b))


def test_prevalence_frame_of_a_packet(rng):
    pack = packet(12, sample=3)
    kind = dict(zip(pack.key.rows["row"], pack.key.rows["kind"]))
    item = dict(zip(pack.key.rows["row"], pack.key.rows["item"]))
    says = {"flagged": "key_error", "planted": "key_error"}
    rows = [(r, who, "cannot_tell" if item[r] == "i3" else says.get(kind[r], "no_issue"))
            for r, who, role, _ in pack.assignment.itertuples(index=False) if role == "first"]  # fmt: skip
    found = outcomes(pack, pd.DataFrame(rows, columns=["row", "reader", "label"]))
    got = prevalence(pack, found, rng=rng).set_index("rows")
    assert got.loc["flagged", ["items", "read", "confirmed", "undecided"]].tolist() == [4, 3, 3, 1]
    assert got.loc["flagged", ["low_if", "high_if"]].tolist() == [0.75, 1.0]
    assert got.loc["unflagged", ["items", "read", "confirmed"]].tolist() == [6, 3, 0]
    assert got.at["all", "estimate"] == pytest.approx(4 / 10)
    assert got.at["recall of flags", "estimate"] == 1


# ------------------------------------------------------------------------------------------- a pool from end to end


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory):
    """The demo pool with packets, and readers who look only at whether key and first option fall together."""
    audit = embedded_audit("tinysee")
    paths = RunPaths(tmp_path_factory.mktemp("outputs"), "tinysee")
    auditlib.save_audit(audit, paths)
    settings = audit.params.model_copy(update={"curation": _curation(24)})
    return audit, settings, paths, stage.prepare(audit, settings, paths)


def _curation(sample: int):
    from auditlib.params.curation import CurationParams, ReviewParams

    return CurationParams(review=ReviewParams(unflagged=sample, readers=["ann", "bob", "cy"]))


def test_stage_from_audit_to_results(reviewed):
    audit, settings, paths, pack = reviewed
    folder = stage.review_folder(paths)
    kinds = pack.key.rows["kind"].value_counts()
    assert kinds["unflagged"] == 24 and kinds["flagged"] == len(stage.flagged_items(audit))
    assert kinds["clean"] == kinds["planted"] == math.ceil((24 + kinds["flagged"]) * 0.05 / 0.9)
    assert stage.prepare(audit, settings, paths).fingerprint == pack.fingerprint
    planted = set(pack.key.rows.loc[pack.key.rows["kind"].eq("planted"), "row"])
    for reader in pack.readers:
        session = open_session(folder, reader)
        while session.done < len(session.rows):
            session.decide("key_error" if session.row in planted else "no_issue")
    stage.prepare(audit, settings, paths)
    review = stage.load_review(settings, paths)
    final = review.probes.set_index(["reader", "measure"])
    assert final.loc[("final outcome", "sensitivity"), "estimate"] == 1
    assert review.prevalence.set_index("rows").at["all", "estimate"] == 0
    assert stage.summary(review.outcomes).to_numpy().sum() == kinds["flagged"] + 24
    assert (stage.shares(pack, review.decisions.table)["left"] == 0).all()
    assert {p.name for p in stage.save_review(review, paths)} == {
        "outcomes.csv", "agreement.csv", "probe_accuracy.csv", "prevalence.csv", "readings.csv"
    }  # fmt: skip


def test_other_settings_do_not_replace_packets_that_were_read(reviewed):
    audit, settings, paths, _ = reviewed
    (stage.review_folder(paths) / "decisions_ann.csv").touch()
    with pytest.raises(AuditError, match="another packet"):
        stage.prepare(audit, settings.model_copy(update={"curation": _curation(30)}), paths)


def test_notebook_runs_without_a_reader(tmp_path):
    """In batch the notebook writes the packets and counts what is there: nothing yet."""
    auditlib.save_audit(embedded_audit("tinysee"), RunPaths(tmp_path, "tinysee"))
    source = project_root() / "notebooks/25_review.ipynb"
    values = {"params": str(project_root() / "params/tinysee.yaml"), "outputs": str(tmp_path)}
    assert run_notebook(source, tmp_path / "copy.ipynb", values, cwd=source.parent).error == ""
    assert (tmp_path / "tinysee/review/packet_reader_1.html").exists()
