"""Pools that come with the package, as folders that the ordinary reader reads.

``tinysee`` lies in the package as VLMEvalKit wrote it. The two replicas are kept as one table each and written out
once, as the results folder that the toolkit would have left. The two MMGist pools are generated and written out once,
as a table of answer counts and what belongs to it; ``dependence_synthetic`` and
``sensitivity_synthetic`` likewise, as a table of replies.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import tempfile
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd

from auditlib.errors import AuditError

_DATA = Path(__file__).resolve().parent / "data"
#: raise when the layout of the written folders changes, so that older copies are not taken for the new form
_LAYOUT = "1"
_FIXED_TIME = datetime(2026, 1, 1)
_JUDGE = "gpt-4o-mini"
_CHOICE_COLUMNS = ["index", "question", "A", "B", "C", "D", "answer", "category", "l2_category"]

_POOLS = {
    "tinysee": "300 drawn items, four tiny vision-language models run with and without image; the truth is known",
    "mmstar_replica": "1,500 synthetic items and three invented models with published margins; no model was run",
    "hallusionbench_replica": "951 synthetic yes/no items and three invented models; no model was run",
    "mmgist_synthetic": "23,250 synthetic items of 18 sources and 27 invented models with published margins; no model "
    "was run",
    "mmgist_small": "1,800 synthetic items in the same proportions; no model was run",
    "dependence_synthetic": "400 synthetic items, eight invented models under four conditions, and vectors of image, "
    "question and options; no model was run",
    "sensitivity_synthetic": "320 synthetic items and five invented models under blurred, reduced and covered images "
    "and reworded questions; no model was run",
}
_BENCHMARKS = {
    "tinysee": "TinySee",
    "mmstar_replica": "MMStar",
    "hallusionbench_replica": "HallusionBench",
    "mmgist_synthetic": "MMGist",
    "mmgist_small": "MMGist",
    "dependence_synthetic": "Synthetic",
    "sensitivity_synthetic": "Synthetic",
}
#: pools of answer counts and their number of items, None for all
_CURATED = {"mmgist_synthetic": None, "mmgist_small": 1800}
#: pools that are one table of replies, with vectors of the items' content
_TABLES = ("dependence_synthetic", "sensitivity_synthetic")
#: files of a pool of answer counts beside ``counts.parquet``
COMPANIONS = ("items", "models", "truth", "votes", "readings")


def embedded_pools() -> dict[str, str]:
    """Names of the embedded pools and what each is."""
    return dict(_POOLS)


def benchmark_of(name: str) -> str:
    """The benchmark that an embedded pool holds."""
    return _BENCHMARKS[_known(name)]


def items_file(name: str) -> Path | None:
    """The benchmark's own table with pictures that an embedded pool was run on; None where there is none."""
    return _DATA / "tinysee" / "TinySee.tsv" if _known(name) == "tinysee" else None


def is_counts(name: str) -> bool:
    """Whether an embedded pool is a table of answer counts."""
    return _known(name) in _CURATED


def is_table(name: str) -> bool:
    """Whether an embedded pool is one table of replies, ``runs.parquet``."""
    return _known(name) in _TABLES


def structure_file(name: str, outputs: str | Path) -> Path | None:
    """The vectors of image, question and options that come with an embedded pool; None where there are none."""
    return materialise(name, outputs) / "structure.npz" if _known(name) == "dependence_synthetic" else None


def sensitivity_files(name: str, outputs: str | Path) -> tuple[Path, Path] | None:
    """Calls under changed images and questions, and states of layers, of an embedded pool; None for others."""
    if _known(name) != "sensitivity_synthetic":
        return None
    folder = materialise(name, outputs)
    return folder / "calls.parquet", folder / "states.npz"


def companion(name: str, what: str, outputs: str | Path) -> Path:
    """A file of :data:`COMPANIONS` of a pool of answer counts: ``votes`` of five judges in two rounds, ``readings`` of
    three people on every item, ``truth`` (what is wrong with which item), ``models``, ``items``.

    Raises
    ------
    AuditError
        The pool has no such file.
    """
    if not is_counts(name) or what not in COMPANIONS:
        raise AuditError(f"the embedded pool {name!r} has no {what}", mend=f"pools with {what}: {', '.join(_CURATED)}")
    return materialise(name, outputs) / f"{what}.csv"


def truth(name: str = "tinysee") -> pd.DataFrame:
    """What was planted in an embedded pool, as text: one row per item (``index`` is the item id).

    Raises
    ------
    AuditError
        The pool has no known truth.
    """
    if _known(name) != "tinysee":
        raise AuditError(f"the embedded pool {name!r} has no known truth", mend="use tinysee")
    return pd.read_csv(_DATA / "tinysee" / "truth.csv", dtype=str, keep_default_na=False)


def replica(name: str) -> pd.DataFrame:
    """The table that a replica is kept as, all text: items, and prediction, letter and hit of each model and run."""
    packed = (_DATA / "replica" / f"{_known(name)}.csv.gz").read_bytes()
    return pd.read_csv(io.BytesIO(gzip.decompress(packed)), dtype=str, keep_default_na=False)


def materialise(name: str, outputs: str | Path) -> Path:
    """The results folder of an embedded pool; a replica is written on the first call.

    Parameters
    ----------
    name : one of :func:`embedded_pools`.
    outputs : the outputs folder; a replica goes to ``.embedded/<name>/<content hash>/`` in it.

    Returns
    -------
    Path
        A folder for :func:`auditlib.readers.vlmevalkit.read_vlmevalkit`; of a pool of answer counts, the folder with
        ``counts.parquet`` and :data:`COMPANIONS`; of a table of replies, that with ``runs.parquet``, ``structure.npz``
        and ``truth.csv``.

    Raises
    ------
    AuditError
        There is no such pool.

    Notes
    -----
    Bytes are the same on every run: the workbooks carry a fixed time. The folder appears at once (it is written under
    a temporary name and renamed), so that two processes may ask for it at the same time.
    """
    if _known(name) == "tinysee":
        return _DATA / "tinysee"
    generated = name in _CURATED or name in _TABLES
    packed = _recipe(name) if generated else (_DATA / "replica" / f"{name}.csv.gz").read_bytes()
    digest = hashlib.sha256(packed + _LAYOUT.encode()).hexdigest()[:16]
    target = Path(outputs) / ".embedded" / name / digest
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{digest}.", dir=target.parent))
    try:
        work.chmod(0o755)
        if name in _CURATED:
            _write_curated(_CURATED[name], work)
        elif name == "sensitivity_synthetic":
            _write_sensitivity(work)
        elif name in _TABLES:
            _write_dependence(work)
        else:
            table = pd.read_csv(io.BytesIO(gzip.decompress(packed)), dtype=str, keep_default_na=False)
            _write_replica(table, _BENCHMARKS[name], work)
        os.replace(work, target)
    except OSError:
        if not target.is_dir():  # else another process was quicker, and its folder is the same
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def _known(name: str) -> str:
    if name not in _POOLS:
        raise AuditError(f"there is no embedded pool {name!r}", mend=f"choose one of {', '.join(_POOLS)}")
    return name


def _recipe(name: str) -> bytes:
    """The code that makes a generated pool, so that a copy made by other code is not taken for its own."""
    made = {"dependence_synthetic": ("modality.py", "dependence_pool.py"),
            "sensitivity_synthetic": ("sensitivity_worlds.py",)}  # fmt: skip
    files = [_DATA.parent / n for n in made[name]] if name in made else [*_DATA.parent.glob("curated*.py")]
    return b"".join(p.read_bytes() for p in sorted(files))


def _write_dependence(folder: Path) -> None:
    from auditlib.synth.dependence_pool import dependence_pool

    pool = dependence_pool()
    pool.runs.to_parquet(folder / "runs.parquet", index=False)
    pool.truth.to_csv(folder / "truth.csv", index=False, lineterminator="\n")
    np.savez(folder / "structure.npz", **pool.structure)


def _write_sensitivity(folder: Path) -> None:
    from auditlib.synth import sensitivity_worlds

    world = sensitivity_worlds.draw()
    sensitivity_worlds.runs_table(world).to_parquet(folder / "runs.parquet", index=False)
    world.calls.to_parquet(folder / "calls.parquet", index=False)
    np.savez(folder / "states.npz", **sensitivity_worlds.states())


def _write_curated(items: int | None, folder: Path) -> None:
    from auditlib.synth.curated import curated

    pool = curated(items)
    pool.counts.to_parquet(folder / "counts.parquet", index=False)
    for what in COMPANIONS:
        getattr(pool, what).to_csv(folder / f"{what}.csv", index=False, lineterminator="\n")


def _write_replica(table: pd.DataFrame, benchmark: str, folder: Path) -> None:
    yesno = benchmark == "HallusionBench"
    facts = _hallusion_facts(table) if yesno else table[_CHOICE_COLUMNS]
    for column in [c for c in table.columns if c.endswith("|prediction")]:
        model, condition, _ = column.split("|")
        name = model if condition == "full" else f"{model}_blind"
        prediction, hit = table[column], table[f"{model}|{condition}|hit"]
        rows = facts.assign(prediction=prediction)
        stem = folder / name / f"{name}_{benchmark}"
        stem.parent.mkdir()
        _write_workbook(rows, stem.with_name(f"{stem.name}.xlsx"))
        if yesno:
            judged = rows.assign(extracted=_extracted(prediction, table["answer"], hit), score=hit == "1")
            _write_workbook(judged, stem.with_name(f"{stem.name}_auxmatch.xlsx"))
        else:
            log = _logs(prediction, table[f"{model}|{condition}|letter"], table["answer"], hit)
            _write_workbook(rows.assign(hit=hit, log=log), stem.with_name(f"{stem.name}_{_JUDGE}_result.xlsx"))


def _hallusion_facts(table: pd.DataFrame) -> pd.DataFrame:
    """Item columns with VLMEvalKit's six-field ids: category_subcategory_visualinput_set_figure_question.

    The set is the row number and every item has a figure of its own, because the replica holds no clusters.
    """
    index = table["category"] + "_" + table["l2_category"] + "_1_" + table["index"] + "_1_0"
    facts = table[["question", "answer", "category", "l2_category"]].rename(columns={"l2_category": "l2-category"})
    facts.insert(0, "index", index)
    return facts


def _logs(prediction: pd.Series, letter: pd.Series, answer: pd.Series, hit: pd.Series) -> np.ndarray:
    """Log cells as the toolkit writes them: the reply where the rule decided, else the judge's letter."""
    by_rule = (letter != "Z") & ((letter == answer) == (hit == "1"))
    judge = np.where(hit == "1", answer, "Z")
    return np.where(by_rule, "Match Log: " + prediction + ". ", pd.Series(judge).radd("Match Log: ") + ". ")


def _extracted(prediction: pd.Series, answer: pd.Series, hit: pd.Series) -> np.ndarray:
    """Extracted answers: the key where the verdict is a hit, else the reply's own Yes or No, else ``Unknown``.

    ``No image was provided`` is no answer, although it starts with the word.
    """
    said = prediction.str.extract(r"^(Yes|No)(?=[.,]|$)", expand=False).fillna("Unknown")
    return np.where(hit == "1", answer, said)


def _write_workbook(table: pd.DataFrame, path: Path) -> None:
    import xlsxwriter

    # texts are written as texts, so nothing can turn into a formula, a link or a number
    book = xlsxwriter.Workbook(str(path), {"strings_to_formulas": False, "strings_to_urls": False, "in_memory": True})
    book.set_properties({"created": _FIXED_TIME})
    sheet = book.add_worksheet("Sheet1")
    for at, name in enumerate(table.columns):
        values = table[name].tolist()
        write = sheet.write_string
        if table[name].dtype == bool:
            write = sheet.write_boolean
        elif name in ("index", "hit") and all(v.isdigit() for v in values):
            write, values = sheet.write_number, [int(v) for v in values]
        sheet.write_string(0, at, name)
        for row, value in enumerate(values, start=1):
            if value != "":
                write(row, at, value)
    book.close()
