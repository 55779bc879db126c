"""The blind run of a pool: replay server, stage, own runs in the audit (oracle: TinySee's recorded files)."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from builders import embedded_audit, embedded_pool
from fault_server import FaultServer
from tiny_notebooks import wait_for

import auditlib
from auditlib import pipeline
from auditlib.counts import count
from auditlib.errors import AuditError
from auditlib.freshness import input_files, stated_params
from auditlib.inference import stage, views
from auditlib.inference.plan import RunSettings, requests_of
from auditlib.inference.store import Store
from auditlib.nb import start
from auditlib.outputs import _portable
from auditlib.params import load_params
from auditlib.paths import RunPaths, project_root
from auditlib.stages import unanswered
from auditlib.synth.server import PICTURE_TOKENS, recorded, replay

RERUN = project_root() / "params" / "tinysee_rerun.yaml"
TSV = project_root() / "auditlib/synth/data/tinysee/TinySee.tsv"
MODELS = ["tinyvlm-alpha", "tinyvlm-beta", "tinyvlm-gamma", "tinyvlm-delta"]
SECRET = "sk-planted-0123456789abcdef"


def said(condition: str) -> dict[tuple[str, str], str]:
    """Recorded replies by model and item."""
    r = embedded_pool("tinysee").responses
    r = r[r["condition"] == condition]
    return dict(zip(zip(r["model"], r["item"]), r["prediction"]))


def rerun(folder: Path, **blocks) -> Path:
    """A params file like ``tinysee_rerun.yaml``, absolute, with some blocks changed."""
    content = yaml.safe_load(RERUN.read_text())
    content["data"]["dataset"] = str(TSV)
    for name, value in blocks.items():
        content[name] = content[name] | value if isinstance(content.get(name), dict) else value
    file = folder / "rerun.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def run(file: Path, outputs: Path, limit: int | None = None) -> stage.BlindRun:
    settings, paths, n = start(file, outputs, {"limit": limit} if limit else {})
    return stage.blind_run(settings, paths, say=lambda line: None, limit=n)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """All blind runs made again, and where they lie."""
    outputs = tmp_path_factory.mktemp("whole")
    return run(RERUN, outputs), outputs


# -------------------------------------------------------------------------------------------------------- server


def post(url: str, body: dict | str) -> tuple[int, dict]:
    link = http.client.HTTPConnection(url.split("/")[2], timeout=20)
    link.request("POST", "/v1/chat/completions", body if isinstance(body, str) else json.dumps(body))
    answer = link.getresponse()
    return answer.status, json.loads(answer.read())


def test_recorded_replies_are_told_apart_by_picture_and_equal_without():
    known = recorded("tinysee")
    texts = {t for m, t, p in known if m == MODELS[0] and not p and "main colour" not in t}
    shown = {(t, p) for m, t, p in known if m == MODELS[0] and p and "main colour" not in t}
    assert (len(texts), len(shown)) == (233 + 3, 300 + 3)  # of three items the toolkit left an option out


def test_server_answers_what_was_recorded_and_makes_nothing_up():
    item = stage.read_question_items(TSV)[0]
    picture, text = next(requests_of([item], RunSettings(MODELS[1], ("full",)))).parts
    data = base64.b64encode(picture.load()).decode()
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"type": "text", "text": text},
    ]
    with replay("tinysee") as url:
        assert url.startswith("http://127.0.0.1:")
        full = post(url, {"model": MODELS[1], "messages": [{"role": "user", "content": parts}]})
        blind = post(url, {"model": MODELS[1], "messages": [{"role": "user", "content": text}]})
        listed = post(url, {"model": MODELS[1], "messages": [{"role": "user", "content": parts[1:]}]})
        unknown = post(url, {"model": MODELS[1], "messages": [{"role": "user", "content": text + " Guess."}]})
        foreign = post(url, {"model": "gpt", "messages": [{"role": "user", "content": text}]})
        broken = post(url, "{")
    for (status, body), condition in ((full, "full"), (blind, "blind"), (listed, "blind")):
        assert status == 200
        assert body["choices"][0]["message"]["content"] == said(condition)[MODELS[1], item.item]
        assert body["choices"][0].get("logprobs") is None
    words = len(text.split())
    tokens = [answer[1]["usage"]["prompt_tokens"] for answer in (full, blind, listed)]
    assert tokens == [words + PICTURE_TOKENS, words, words]
    assert (unknown[0], foreign[0], broken[0]) == (404, 404, 400)
    assert "none is made up" in unknown[1]["error"]["message"] and "'gpt'" in foreign[1]["error"]["message"]


def test_server_is_gone_after_its_block_and_replicas_have_none():
    with replay("tinysee") as url:
        pass
    with pytest.raises(OSError):
        post(url, {})
    with pytest.raises(AuditError, match="no recorded pictures"), replay("mmstar_replica"):
        pass


# --------------------------------------------------------------------------------------------------------- stage


def test_rerun_gives_the_recorded_replies(whole):
    done, _ = whole
    got = dict(zip(zip(done.responses["model"], done.responses["item"]), done.responses["prediction"]))
    assert got == said("blind") and len(got) == 1200
    assert set(done.responses["condition"]) == {"blind"}
    assert [s.asked for s in done.summaries.values()] == [300] * 4


def test_audit_of_own_runs_equals_that_of_the_files(whole):
    _, outputs = whole
    pool, theirs = auditlib.read_pool(RERUN, outputs=outputs), embedded_pool("tinysee")
    assert pool.model_names == theirs.model_names and pool.items["item"].tolist() == theirs.items["item"].tolist()
    for condition in ("full", "blind"):
        assert np.array_equal(pool.arms["exact"].hits[condition], theirs.arms["exact"].hits[condition])
        assert np.array_equal(pool.letters[condition], theirs.letters[condition])
    mine, other = count(pool, "exact"), count(theirs, "exact")
    assert np.array_equal(mine.F, other.F) and np.array_equal(mine.B, other.B)
    assert pool.arm.name == "exact", "the files' verdicts cover the runs with image only"


def test_headline_equals_that_of_the_files(whole):
    _, outputs = whole
    fast = {"audit.permutations": 99, "audit.bootstrap": 200, "audit.splits": 2}
    mine = auditlib.audit(auditlib.read_pool(load_params(RERUN, fast), outputs=outputs)).statistics
    theirs = embedded_audit("tinysee").statistics
    keys = ["metric", "policy", "models", "stratum", "null_kind", "p_method", "level"]
    columns = ["n", "estimate", "low", "high", "null", "excess", "p"]
    rows = []
    for table in (mine, theirs):
        head = table[table["arm"].eq("exact") & table["p_method"].eq("exact") & table["metric"].eq("zero_gain_share")]
        rows.append(head.fillna(dict.fromkeys(keys, "")).sort_values(keys).reset_index(drop=True)[columns])
    assert len(rows[0]) > 5
    pd.testing.assert_frame_equal(*rows)


def test_own_runs_replace_the_files_and_the_coverage_says_so(whole):
    _, outputs = whole
    pool = auditlib.read_pool(RERUN, outputs=outputs)
    blind = pool.responses[pool.responses["condition"] == "blind"]
    assert set(blind["run"]) == {f"{m}/blind" for m in MODELS} and len(pool.responses) == 2400
    gone = pool.coverage[pool.coverage["reason"].str.contains("stands in their place", na=False)]
    assert gone["n"].tolist() == [300] * 4 and set(gone["model"]) == set(MODELS)
    assert set(pool.judgements["condition"]) == {"full"}
    differ = pool.coverage[pool.coverage["reason"].str.contains("options as asked", na=False)]
    assert differ["n"].tolist() == [3]  # an option "None", which the toolkit did not show
    assert pool.items.set_index("item").loc[["17", "32", "76"], "k"].tolist() == [3, 3, 3]


def test_provenance_tells_how_the_runs_were_made(whole):
    _, outputs = whole
    pool = auditlib.read_pool(RERUN, outputs=outputs)
    facts = pool.provenance["runs"]["tinyvlm-alpha/blind"]
    assert (facts["generation"]["temperature"], facts["generation"]["max_tokens"]) == (0.0, 512)
    assert facts["prompt_version"] == "vlmevalkit-1" and facts["prompt_mode"] == "silent"
    assert facts["server_model"] == ["tinyvlm-alpha"] and facts["outcomes"] == {"ok": 300}
    assert pool.provenance["own_runs"]["prompt_mode"] == "silent"
    assert "first" not in facts, "times would make two audits of the same answers differ"


def test_views_of_a_run(whole):
    done, _ = whole
    plan = views.plan_table(done.plan)
    assert plan["calls"].tolist() == plan["answered already"].tolist() == [300] * 4
    shares = views.profile(done).set_index("model")
    assert shares["right"].to_dict() == dict(zip(MODELS, ["25.7%", "20.7%", "5.3%", "24.0%"]))
    assert shares.loc["tinyvlm-gamma", ["no option named", "declined"]].tolist().count("0.0%") <= 1
    shown = views.transcripts(done, 2)
    assert len(shown) == 8 and shown["prompt"].str.contains("Please select the correct answer").all()
    assert set(views.checks_table(done)["verdict"]) <= {"pass", "info", "warn"}


def test_missing_runs_name_the_notebook(tmp_path):
    with pytest.raises(AuditError, match=r"run notebook 00_blind_run first \('auditlib run tinysee_rerun.yaml' does\)"):
        auditlib.read_pool(RERUN, outputs=tmp_path)


def test_limit_asks_the_first_items_of_the_audit(tmp_path):
    done = run(RERUN, tmp_path, limit=12)
    first = embedded_pool("tinysee").items["item"].tolist()[:12]
    assert done.responses[done.responses["model"] == MODELS[0]]["item"].tolist() == first
    assert RunPaths(tmp_path, "tinysee_rerun.limit12").answers.exists()
    assert not (tmp_path / "tinysee_rerun").exists()
    settings, _, limit = start(RERUN, tmp_path, {"limit": 12})
    pool = auditlib.read_pool(settings, outputs=tmp_path).head(limit)
    assert np.array_equal(pool.arms["exact"].hits["blind"], embedded_pool("tinysee").arms["exact"].hits["blind"][:12])


def test_no_block_or_no_questions_is_a_mistake(tmp_path):
    settings, paths, _ = start("params/tinysee.yaml", tmp_path)
    with pytest.raises(AuditError, match="no inference block"):
        stage.plan_run(settings, paths)
    file = rerun(tmp_path, inference={"items": "nowhere.tsv"})
    settings, paths, _ = start(file, tmp_path)
    with pytest.raises(AuditError, match="file of questions does not exist"):
        stage.plan_run(settings, paths)


def test_unrecorded_model_ends_the_run_with_one_message(tmp_path):
    file = rerun(tmp_path, inference={"models": [{"name": "gemma"}]}, models=[])
    with pytest.raises(AuditError, match="no replies of model 'gemma' are recorded, only of tinyvlm-alpha"):
        run(file, tmp_path, limit=3)
    assert not RunPaths(tmp_path, "tinysee_rerun.limit3").runs.exists()


def test_pool_of_own_runs_alone(tmp_path):
    file = rerun(tmp_path, inference={"conditions": ["full", "blind"]})
    content = yaml.safe_load(file.read_text())
    content["data"] = {"dataset": str(TSV)}
    file.write_text(yaml.safe_dump(content))
    done = run(file, tmp_path, limit=20)
    checks = done.checks[done.checks["name"].eq("prompt_tokens_saved")]
    assert checks["value"].tolist() == [PICTURE_TOKENS] * 4
    settings, _, _ = start(file, tmp_path, {"limit": 20})
    pool = auditlib.read_pool(settings, outputs=tmp_path)
    for condition in ("full", "blind"):
        theirs = embedded_pool("tinysee").arms["exact"].hits[condition][:20]
        assert np.array_equal(pool.arms["exact"].hits[condition], theirs)
    content["inference"]["conditions"] = ["blind"]
    file.write_text(yaml.safe_dump(content))
    with pytest.raises(AuditError, match="data names no runs"):
        load_params(file)


def test_answers_belong_to_the_model_that_was_asked(tmp_path):
    one = [{"name": "tiny", "served_as": MODELS[0]}]
    file = rerun(tmp_path, inference={"models": one}, models=[])
    done = run(file, tmp_path, limit=5)
    assert set(done.responses["run"]) == {"tiny/blind"} and set(done.responses["model"]) == {"tiny"}
    file = rerun(tmp_path, inference={"models": [one[0] | {"served_as": MODELS[1]}]}, models=[])
    done = run(file, tmp_path, limit=5)
    assert done.summaries["tiny"].asked == 5, "another served model is asked anew"
    assert done.responses["prediction"].tolist() == [said("blind")[MODELS[1], i] for i in done.responses["item"]]


def test_judge_of_the_params_reads_the_replies(tmp_path):
    with FaultServer() as server:
        file = rerun(tmp_path, inference={"judge": {"model": "reader", "base_url": server.url, "repeats": 2}})
        done = run(file, tmp_path, limit=6)
    assert set(done.judgements["judge"]) == {"reader"}
    assert set(done.judgements["extracted"]) == {"Z"}, "that server answers with a word, which is no verdict"
    assert done.agreement == 1.0 and len(done.judgements) == 24
    settings, _, _ = start(file, tmp_path, {"limit": 6})
    verdicts = auditlib.read_pool(settings, outputs=tmp_path).judgements
    assert len(verdicts[verdicts["judge"].eq("reader")]) == 24


# -------------------------------------------------------------------------------------------- interruption, failure

INTERRUPTED = """
import sys
from auditlib.inference import stage
from auditlib.nb import start
from auditlib.outputs import _portable
settings, paths, _ = start(sys.argv[1], sys.argv[2])
stage.blind_run(settings, paths)
"""


def test_killed_run_goes_on_where_it_stopped(tmp_path):
    file = rerun(tmp_path, inference={"models": [{"name": MODELS[0]}], "rpm": 3000})
    paths = RunPaths(tmp_path / "out", "tinysee_rerun")
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, str(file), str(tmp_path / "out")],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        wait_for(lambda: paths.answers.exists() and answers(paths) >= 20, 120)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    kept = answers(paths)
    assert 20 <= kept < 300 and not paths.runs.exists()
    done = run(rerun(tmp_path, inference={"models": [{"name": MODELS[0]}]}), tmp_path / "out")
    assert done.summaries[MODELS[0]].asked == 300 - kept
    assert len(done.responses) == answers(paths) == 300


def answers(paths: RunPaths) -> int:
    try:
        with Store(paths.answers) as store:
            return len(store)
    except AuditError:  # being made
        return 0


def test_failed_calls_are_asked_again(tmp_path, monkeypatch):
    with FaultServer() as server:
        block = {"replay": None, "base_url": server.url, "models": [{"name": MODELS[0]}], "max_attempts": 1}
        file = rerun(tmp_path, inference=block)
        whole = stage.requests_of
        broken = lambda items, s: (  # noqa: E731
            r if i else type(r)(**vars_of(r) | {"parts": (f"{r.text} <<broken>>",)})
            for i, r in enumerate(whole(items, s))
        )
        monkeypatch.setattr(stage, "requests_of", broken)
        done = run(file, tmp_path, limit=4)
    failed = done.coverage[done.coverage["what"].eq("warning")]
    assert failed["n"].tolist() == [1] and "run again to ask them" in failed["reason"].iloc[0]
    assert unanswered(done.plan.paths) == "1 questions have no answer yet"


def vars_of(request) -> dict:
    return {name: getattr(request, name) for name in request.__dataclass_fields__}


# ------------------------------------------------------------------------------------------------------- pipeline


@pytest.mark.parametrize("address", [f"https://me:{SECRET}@h.invalid/v1", f"https://h.invalid/v1?key={SECRET}", "h"])
@pytest.mark.parametrize("place", ["block", "model", "judge"])
def test_addresses_hold_no_key(tmp_path, address, place):
    block = {
        "block": {"replay": None, "base_url": address},
        "model": {"models": [{"name": "m", "base_url": address}]},
        "judge": {"judge": {"model": "j", "base_url": address}},
    }
    with pytest.raises(AuditError, match="without user, query or key") as caught:
        load_params(rerun(tmp_path, inference=block[place]))
    assert SECRET not in str(caught.value)


def test_questions_are_stated_relative_to_the_params(tmp_path):
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "t.tsv").write_bytes(TSV.read_bytes())
    settings, paths, _ = start(rerun(tmp_path, inference={"items": "q/t.tsv"}), tmp_path / "out")
    assert stated_params(settings, tmp_path)["inference"]["items"] == "q/t.tsv"
    assert {p.name for p in input_files(settings, paths.outputs)} == {"TinySee.tsv", "t.tsv"}
    assert _portable(settings, paths)["inference"]["items"] == "../../q/t.tsv"


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    """Blind run and audit of a few items by the runner, with a key in the environment."""
    folder = tmp_path_factory.mktemp("batch")
    fast = {"permutations": 99, "bootstrap": 200, "splits": 2}
    block = {"api_key_env": "PLANTED_KEY", "models": [{"name": m} for m in MODELS[:2]]}
    file = rerun(folder, inference=block, models=[], audit=fast, notebooks=["00_blind_run", "10_audit"])
    events: list[tuple[str, str, str]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLANTED_KEY", SECRET)
        patch.setenv("OPENAI_API_KEY", SECRET)
        jobs = pipeline.jobs_for([file], outputs=folder / "out", limit=16)
        outcomes = pipeline.run(jobs, workers=1, say=lambda *event: events.append(event))
    return jobs, outcomes, events, folder / "out"


def test_runner_asks_then_audits_and_says_the_progress(batch):
    jobs, [outcome], events, _ = batch
    assert (outcome.code, outcome.error) == (0, "")
    assert outcome.ran == ("00_blind_run", "10_audit", "report")
    lines = [text for _, stage_, text in events if stage_ == "00_blind_run"]
    assert any(t.startswith("tinyvlm-beta: 16 of 16 answered, 0 failed") for t in lines)
    assert [row["state"] for row in pipeline.states(jobs)] == ["fresh"]


def test_manifest_states_the_runs(batch):
    *_, outputs = batch
    manifest = json.loads((outputs / "tinysee_rerun.limit16" / "manifest.json").read_text())
    facts = manifest["provenance"]["runs"]["tinyvlm-alpha/blind"]
    assert facts["generation"]["max_tokens"] == 512 and facts["outcomes"] == {"ok": 16}
    assert facts["prompt_version"] == "vlmevalkit-1" and facts["server_model"] == ["tinyvlm-alpha"]
    assert manifest["params"]["inference"]["conditions"] == ["blind"]
    assert set(manifest["stages"]) == {"00_blind_run", "10_audit"}
    assert set(manifest["runs"]) == {"responses.parquet", "items.parquet", "runs.json"}


def test_key_of_the_environment_is_in_no_file(batch):
    *_, events, outputs = batch
    files = [p for p in outputs.rglob("*") if p.is_file()]
    assert len(files) > 15
    for file in files:
        assert SECRET.encode() not in file.read_bytes(), file.name
    assert not any(SECRET in text for *_, text in events)


def test_change_of_the_questions_or_the_block_asks_again(batch, tmp_path):
    jobs, *_ = batch
    file = Path(jobs[0].params)
    before = file.read_text()
    try:
        file.write_text(before + "seed: 5\n")
        [row] = pipeline.states(jobs)
        assert (row["state"], row["why"]) == ("stale", "00_blind_run: params: seed changed")
        content = yaml.safe_load(before)
        content["inference"]["max_tokens"] = 9
        file.write_text(yaml.safe_dump(content))
        assert pipeline.states(jobs)[0]["why"] == "00_blind_run: params: inference.max_tokens changed"
    finally:
        file.write_text(before)
    assert [row["state"] for row in pipeline.states(jobs)] == ["fresh"]
