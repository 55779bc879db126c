"""Small results folders of each toolkit, four items full and blind, in the layouts that the toolkits write."""

from __future__ import annotations

import json
from pathlib import Path

from case_files import inspect_log, lines

OPTIONS = ["red", "blue", "green", "grey"]
KEYS = "BACD"
LM_TIME = "2026-01-01T00-00-00.000000"


def lmms_eval(folder: Path, *, models=("one", "two"), tasks=("mmstar", "mmstar_text_only")) -> Path:
    """Each model's folder with a dated file per task; of the second task only the last answer is right."""
    for model in models:
        for n, task in enumerate(tasks):
            rows = []
            for i, key in enumerate(KEYS):
                said = key if n == 0 else "D"
                asked = f"What is seen in {i}?\n" + "\n".join(f"{x}. {o}" for x, o in zip("ABCD", OPTIONS))
                rows.append({"doc_id": i, "target": key, "filtered_resps": said, "doc_hash": "74", "input": asked,
                             "acc": float(said == key)})  # fmt: skip
            lines(folder / model / f"20260101_00000{n}_samples_{task}.jsonl", rows)
    return folder


def lm_eval(folder: Path, *, models=("one", "two"), task="mmstar_text") -> Path:
    """Two filters, of which the strict one finds one answer less."""
    for model in models:
        rows = []
        for name in ("strict-letter", "flexible-letter"):
            for i, key in enumerate(KEYS):
                lost = name == "strict-letter" and i == 3
                doc = {"index": i, "question": f"What is seen in {i}?", "options": OPTIONS, "answer": key}
                rows.append({"doc_id": i, "doc": doc, "target": key, "arguments": {"gen_args_0": {}},
                             "resps": [[f"{key} it is"]], "filtered_resps": ["[invalid]" if lost else key],
                             "filter": name, "metrics": ["exact_match"], "exact_match": float(not lost)})  # fmt: skip
        lines(folder / model / f"samples_{task}_{LM_TIME}.jsonl", rows)
        totals = {"exact_match,strict-letter": 0.75, "exact_match,flexible-letter": 1.0, "alias": task}
        (folder / model / f"results_{LM_TIME}.json").write_text(json.dumps({"results": {task: totals}}))
    return folder


def inspect(folder: Path, *, models=("one", "two"), task="mmstar") -> Path:
    """One log per model and condition, told apart by the task's argument ``blind``."""
    for model in models:
        for blind in (False, True):
            samples = [{"id": i, "choices": OPTIONS, "target": k, "said": "D" if blind else k, "answer": k,
                        "value": "C" if not blind or k == "D" else "I"} for i, k in enumerate(KEYS)]  # fmt: skip
            name = f"2026-01-01T00-00-00_{task}_{model}{'_b' * blind}.json"
            inspect_log(folder / name, samples, model=f"mock/{model}", blind=blind, task=task)
    return folder


def every_eval_ever(folder: Path, *, models=("one", "two"), name="mmstar") -> Path:
    """Instance files of another writer below BENCHMARK/DEVELOPER/MODEL, conditions in the metadata."""
    for model in models:
        for condition in ("full", "blind"):
            rows = []
            for i, key in enumerate(KEYS):
                said = key if condition == "full" else "D"
                rows.append(
                    {"schema_version": "instance_level_eval_0.2.2", "evaluation_id": f"{name}/{model}",
                     "model_id": model, "evaluation_name": name, "sample_id": str(i), "interaction_type": "single_turn",
                     "input": {"raw": f"What is seen in {i}?", "reference": [key], "choices": OPTIONS},
                     "output": {"raw": [said]}, "evaluation": {"score": float(said == key), "is_correct": said == key},
                     "answer_attribution": [{"turn_idx": 0, "source": "output.raw", "extracted_value": said,
                                             "extraction_method": "regex", "is_terminal": True}],
                     "metadata": {"condition": condition}})  # fmt: skip
            lines(folder / name / "dev" / model / f"{condition}_samples.jsonl", rows)
    return folder


def everything(folder: Path) -> Path:
    """A tree with results of all toolkits, but VLMEvalKit, and what is none of theirs."""
    lmms_eval(folder / "lmms" / "logs")
    lm_eval(folder / "lm" / "results")
    inspect(folder / "inspect" / "logs")
    every_eval_ever(folder / "exchange")
    (folder / "notes.json").write_text(json.dumps({"eval": 1}))
    (folder / "lmms" / "table.csv").write_text("a,b\n1,2\n")
    return folder
