"""Recognise results folders by their content: which toolkit, which benchmarks, models, conditions and judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import yaml

from auditlib.errors import AuditError
from auditlib.params import Params, check_params
from auditlib.readers import discover_roots, files, layout
from auditlib.readers.discover_roots import below
from auditlib.readers.found import Found
from auditlib.readers.runfile import RunFile

#: modules whose ``scan`` lists the runs of a toolkit; VLMEvalKit's is layout.py
SCANS = {
    "lmms-eval": "auditlib.readers.lmms_eval",
    "lm-eval": "auditlib.readers.lm_eval",
    "inspect": "auditlib.readers.inspect_logs",
    "every-eval-ever": "auditlib.readers.every_eval_ever",
}
_WORDS = ("blind", "text", "noimg", "noimage", "no_image", "no-image")


@dataclass(frozen=True)
class Survey:
    """Results folders of a tree, and what of it could not be looked at."""

    founds: list[Found]
    notes: list[str]


def survey(folder: str | Path, *, toolkit: str | None = None, blind_folder: str | Path | None = None) -> Survey:
    """Look at a tree: one :class:`Found` per results folder and toolkit, and what could not be looked at.

    A folder of runs without image that belongs to another results folder is part of that one, and not one of its own.
    Results of a toolkit that cannot be read here are a note, as long as there are others.

    Parameters
    ----------
    folder : the tree.
    toolkit : look for results of this one only.
    blind_folder : folder of the runs without image, when it is no sibling with a usual name.

    Raises
    ------
    AuditError
        Nothing there is recognised: the message says what was looked for, and what lies there instead.
    """
    folder = Path(folder)
    if not folder.is_dir():
        layout.scan(folder)  # says that there is none, or that it is a file
    tree = discover_roots.look(folder)
    roots = list(tree.roots)
    if not roots or (
        (folder, "vlmevalkit") not in roots and all(kit == "vlmevalkit" and _in_folder(r, folder) for r, kit in roots)
    ):
        roots = [(folder, "vlmevalkit")]
    beside = Path(blind_folder) if blind_folder is not None else None
    kits = sorted({kit for _, kit in roots})
    founds, notes, faults = [], list(tree.notes), []
    for root, kit in roots:
        if toolkit not in (None, kit):
            continue
        try:
            found = _look(root, kit, beside)
        except AuditError as e:
            faults.append(e)
            notes.append(f"{below(root, folder)} ({kit}) is left out: {e.what}{f' ({e.mend})' if e.mend else ''}")
            continue
        if found is not None:
            founds.append(found)
    paired = {f.blind_folder.resolve() for f in founds if f.blind_folder is not None}
    founds = [f for f in founds if f.folder.resolve() not in paired]
    if founds:
        return Survey([replace(f, notes=(*f.notes, *_near(f))) for f in founds], notes)
    if faults:
        raise faults[0]
    if toolkit is not None and tree.roots and toolkit not in kits:
        raise AuditError(f"no results of {toolkit} here", file=folder, mend=f"toolkits here: {', '.join(kits)}")
    raise _unknown(folder, layout.scan(folder), tree.notes)


def discover_all(
    folder: str | Path, *, toolkit: str | None = None, blind_folder: str | Path | None = None
) -> list[Found]:
    """Results folders of a tree, as :func:`survey` finds them; a single one carries the notes of the whole tree."""
    seen = survey(folder, toolkit=toolkit, blind_folder=blind_folder)
    if len(seen.founds) > 1:
        return seen.founds
    return [replace(f, notes=(*f.notes, *seen.notes)) for f in seen.founds]


def discover(
    folder: str | Path,
    *,
    benchmark: str | None = None,
    toolkit: str | None = None,
    blind_folder: str | Path | None = None,
) -> Found:
    """Look at one results folder.

    Parameters
    ----------
    folder : a results folder, or one that holds a single results folder.
    benchmark, toolkit : which one is meant, where several lie there.
    blind_folder : folder of the runs without image, when it is no sibling with a usual name.

    Returns
    -------
    Found

    Raises
    ------
    AuditError
        Nothing there is recognised, or several results folders fit: the message lists them.

    Examples
    --------
    >>> from auditlib.synth.embedded import materialise
    >>> discover(materialise("tinysee", "outputs")).judges("TinySee")
    {'tiny-judge': 8}
    """
    return the_one(discover_all(folder, toolkit=toolkit, blind_folder=blind_folder), Path(folder), benchmark)


def the_one(founds: Sequence[Found], folder: Path, benchmark: str | None) -> Found:
    """The one results folder that is meant, or AuditError with those that fit."""
    fit = [f for f in founds if benchmark is None or benchmark in f.benchmarks]
    if len(fit) == 1:
        return fit[0]
    if not fit:
        raise AuditError(f"no run of {benchmark!r}", file=folder, mend=names_here(founds))
    said = ", ".join(f"{below(f.folder, folder)} ({f.toolkit})" for f in fit)
    raise AuditError(f"the folder holds {len(fit)} sets of results: {said}", file=folder,
                     mend="name the subfolder of one of them, or its toolkit with --toolkit")  # fmt: skip


def names_here(founds: Sequence[Found]) -> str:
    """Which benchmarks there are, as the mend of a mistake."""
    return f"benchmarks here: {', '.join(sorted({b for f in founds for b in f.benchmarks}))}"


def toolkit_of(folder: str | Path) -> str:
    """Toolkit that wrote a results folder.

    Raises
    ------
    AuditError
        None that is known, or several.
    """
    kits = sorted({f.toolkit for f in discover_all(folder)})
    if len(kits) > 1:
        raise AuditError(f"results of {len(kits)} toolkits lie here: {', '.join(kits)}", file=Path(folder),
                         mend="name one with data.toolkit")  # fmt: skip
    return kits[0]


def params_of_folder(folder: str | Path, benchmark: str | None = None) -> Params:
    """Params of a results folder without a file of their own: what :func:`write_params` would write.

    Raises
    ------
    AuditError
        The folder holds several benchmarks and none is named, or not the one that is.
    """
    from auditlib.readers.discover_params import held, params_text

    found = discover(folder, benchmark=benchmark)
    names = chief_benchmarks(found)
    if benchmark is None and len(names) > 1:
        here = f"benchmarks here: {', '.join(found.benchmarks)}"
        raise AuditError("the folder holds several benchmarks", file=folder, mend=f"name one with --benchmark; {here}")
    text = params_text(found, held(found, benchmark or names[0]), None, found.folder)
    return check_params(yaml.safe_load(text), found.folder / "params.yaml").model_copy(update={"source": None})


def chief_benchmarks(found: Found) -> list[str]:
    """Benchmarks of a results folder without those that are another's runs without image."""
    paired = {found.blind_benchmark(b) for b in found.benchmarks}
    return [b for b in found.benchmarks if b not in paired]


def _look(root: Path, toolkit: str, beside: Path | None) -> Found | None:
    if toolkit == "vlmevalkit":
        return _look_vlmevalkit(root, beside)
    found = [f for f in _logs(root, toolkit) if f.kind != "table"]
    stated, beside = beside is not None, beside or layout.sibling_blind(root)
    extra = [replace(f, condition="blind") for f in _logs(beside, toolkit)] if beside is not None else []
    extra = [f for f in extra if f.kind in layout.RUNS]
    if not stated:
        own = {(f.model, f.benchmark) for f in found if f.condition == "blind"}
        extra = [f for f in extra if (f.model, f.benchmark) not in own]
    found += extra
    return Found(root, beside if extra else None, toolkit, tuple(found), {}) if layout.benchmark_names(found) else None


def _logs(folder: Path, toolkit: str) -> list[RunFile]:
    """Files that a toolkit's own scan lists; models of Inspect are named as its reader names them.

    That is without their providers, where this leaves them different.
    """
    found: list[RunFile] = import_module(SCANS[toolkit]).scan(folder)
    if toolkit != "inspect":
        return found
    short = {f.model: f.model.rstrip("/").rpartition("/")[2] for f in found}
    taken = Counter((b, short[m]) for b, m in {(f.benchmark, f.model) for f in found})
    return [f if taken[f.benchmark, short[f.model]] > 1 else replace(f, model=short[f.model]) for f in found]


def _look_vlmevalkit(folder: Path, blind_folder: Path | None) -> Found | None:
    found = layout.scan(folder)
    found = [f for f in found if f.kind != "table"] + _beside(folder, found)
    beside = blind_folder
    if blind_folder is not None:
        found += layout.scan(blind_folder, condition="blind")
    else:
        beside = layout.sibling_blind(folder)
        if beside is not None:
            extra = layout.scan(beside, condition="blind")
            own = {(f.model, f.benchmark) for f in found if f.condition == "blind"}
            extra = [f for f in extra if (f.model, f.benchmark) not in own and f.kind != "table"]
            found, beside = found + extra, beside if layout.benchmark_names(extra) else None
    found = [f for f in _by_content(found) if f.kind != "table"]
    names = layout.benchmark_names(found)
    datasets = {b: p for b in names if (p := folder / f"{b}.tsv").is_file()}
    return Found(folder, beside, "vlmevalkit", tuple(found), datasets) if names else None


def _in_folder(root: Path, folder: Path) -> bool:
    """Whether a results folder is only a group of models of the folder, ``FOLDER/ORG/MODEL``."""
    return root != folder and root.parent == folder and any(
        p.stem.startswith(f"{root.name}--") for p in root.glob("*/*.*")
    )  # fmt: skip


def _near(found: Found) -> list[str]:
    """Folders beside a results folder whose names speak of runs without image, but are not the usual ones."""
    home = found.folder.resolve()
    try:
        names = sorted(p.name for p in home.parent.iterdir() if p.is_dir())
    except OSError:
        return []
    used = found.blind_folder.resolve().name if found.blind_folder is not None else None
    longer = [n for n in names if n.startswith((home.name + "_", home.name + "-"))]
    # of outputs, outputs_local and outputs_local_noimage the last belongs to the second
    near = [n for n in longer if n != used and not any(n.startswith((m + "_", m + "-")) for m in longer)]
    return [
        f"{n} beside this folder may hold its runs without image; if so, write blind_folder: with its path"
        for n in near
        if any(w in n[len(home.name) :].lower() for w in _WORDS)
    ]


def _beside(folder: Path, found: list[RunFile]) -> list[RunFile]:
    """Files that lie in the folder itself: ``MODEL_BENCHMARK``, the benchmark being what follows the last ``_``."""
    if any(f.kind == "predictions" for f in found):
        return []
    stems = [
        p.stem for p in folder.iterdir() if p.is_file() and p.suffix.lower() in layout.PREDICTIONS and "_" in p.stem
    ]
    names = {s.rpartition("_")[2] for s in stems} - {"result", "auxmatch", "score", "acc"}
    return [f for n in sorted(names) for f in layout.scan(folder, n) if f.benchmark == n and f.kind != "table"]


def _by_content(found: list[RunFile]) -> list[RunFile]:
    """Tell verdict files named ``MODEL_BENCHMARK_<judge>`` from predictions by their columns.

    Only a file whose name extends another benchmark's is opened.
    """
    names = {f.benchmark for f in found if f.kind == "predictions"}
    checked: dict[str, bool] = {}
    for name in sorted(names):
        if any(name.startswith(n + "_") for n in names - {name}):
            example = next(f for f in found if f.benchmark == name and f.kind == "predictions")
            columns = set(files.open_table(example.path).columns)
            checked[name] = "prediction" in columns and not columns & {"hit", "res", "log", "extract", "score"}
    return [replace(f, kind="table") if not checked.get(f.benchmark, True) else f for f in found]


def _unknown(folder: Path, found: Iterable[RunFile], notes: Sequence[str]) -> AuditError:
    pickles = [f for f in found if f.kind == "pickle"]
    loose = sorted(p for p in folder.iterdir() if p.suffix.lower() in (".pkl", ".pickle"))
    if pickles or loose:
        return files.pickle_error(pickles[0].path if pickles else loose[0])
    unknown = [f"{f.model}/{f.path.name}" for f in found if f.kind == "unknown"]
    tables = sorted(p.name for p in folder.iterdir() if p.suffix.lower() in files.READABLE)
    mend = (
        "name the folder that holds MODEL/MODEL_BENCHMARK.xlsx of VLMEvalKit, the samples of lmms-eval or lm-eval "
        "(--log_samples), logs of Inspect, or Every Eval Ever files"
    )
    if unknown:
        mend += f" (not recognised: {', '.join(unknown[:4])})"
    if notes:
        mend += f" ({'; '.join(notes[:3])})"
    if tables:
        mend += f", or read {tables[0]} with data: {{table: ...}} in a params file"
    held = "" if any(folder.iterdir()) else ": the folder is empty"
    return AuditError(f"no results of a known toolkit here{held}", file=folder, mend=mend)
