"""People's labels: which part of an item suffices, by readers none of whom sees two views of one item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from auditlib import seeds
from auditlib.calls import Picture
from auditlib.dependence.labels import compare_benchmarks, evaluate_labels
from auditlib.dependence.profile import LABELS
from auditlib.errors import AuditError
from auditlib.paths import RunPaths
from auditlib.pool import Pool
from auditlib.review.agreement import agreement
from auditlib.review.decisions import Decisions, read_decisions
from auditlib.review.files import PACKET, load_packet, write_packet
from auditlib.review.outcomes import by_item, outcomes
from auditlib.review.packets import Packet, make_packet
from auditlib.review.task import CANNOT_TELL, CONFIRMED, DEPENDENCE, OPEN

if TYPE_CHECKING:
    from auditlib.params import Params

#: sufficiency of image and question -> label
_LABEL = {(True, True): "R", (True, False): "V", (False, True): "T", (False, False): "S"}


@dataclass(frozen=True)
class Annotation:
    """What readers said.

    Attributes
    ----------
    table : one row per item: item, full, image_only, text_only (outcomes of the views), state (``labelled``,
        ``filtered``: the full item does not suffice, ``open``: readings are due), label (R, V, T, S or empty).
    agreement : kappas per view; see :func:`auditlib.review.agreement.agreement`.
    decisions : as read.
    """

    table: pd.DataFrame
    agreement: pd.DataFrame
    decisions: Decisions


def annotation_folder(paths: RunPaths) -> Path:
    """Where the packets and decisions of a pool lie."""
    return paths.folder / "annotation"


def sample_items(items: Sequence[str], size: int, rng: np.random.Generator, *, strata: ArrayLike | None = None
                 ) -> list[str]:  # fmt: skip
    """A random sample, spread over strata in proportion (largest remainders), in the order of ``items``.

    Parameters
    ----------
    size : wanted; all items where there are no more.
    """
    names = list(items)
    if size >= len(names):
        return names
    group = np.zeros(len(names), int) if strata is None else pd.factorize(np.asarray(strata, object), sort=True)[0]
    sizes = np.bincount(group)
    exact = size * sizes / sizes.sum()
    take = np.floor(exact).astype(int)
    rest = np.lexsort((rng.random(len(sizes)), take - exact))[: size - take.sum()]
    take[rest] += 1
    chosen = [rng.permutation(np.flatnonzero(group == g))[:n] for g, n in enumerate(take)]
    return [names[j] for j in np.sort(np.concatenate(chosen))]


def prepare(pool: Pool, settings: Params, paths: RunPaths, *, pictures: Mapping[str, Picture] | None = None) -> Packet:
    """Draw the sample, make the packets and write them; the same params make the same packets again.

    Parameters
    ----------
    pictures : item -> picture; by default those of the dataset file that the params name.

    Raises
    ------
    AuditError
        The params have no ``dependence.annotation``, the items have no questions or pictures, too few readers, or
        decisions on another packet lie in the folder.

    Notes
    -----
    Three readers see the whole item, five the image with the options, five the question with the options. An item
    counts where most of the first three find the whole sufficient.
    """
    from auditlib.params import AnnotationParams

    block = settings.dependence
    given = (block.annotation if block else None) or AnnotationParams()
    entries = _entries(pool)
    items = entries["item"].tolist()
    having = set(pictures) if pictures is not None else _with_picture(settings, items)
    entries = entries[entries["item"].isin(having)].reset_index(drop=True)
    if not len(entries):
        raise AuditError(f"no item of {pool.name} has a picture, so that nobody can judge the image alone",
                         mend="name the benchmark's own table with pictures as data.dataset")  # fmt: skip
    strata = pool.items.set_index("item")["stratum"].reindex(entries["item"]).astype(object).fillna("").to_numpy() \
        if pool.strata is not None else None  # fmt: skip
    rng = seeds.generator(settings.seed, settings.pool, "dependence", "annotation")
    chosen = sample_items(entries["item"].tolist(), given.items, rng, strata=strata)
    shown = partial(_pictures, settings) if pictures is None else (lambda wanted: {i: pictures[i] for i in wanted})
    packet = make_packet(DEPENDENCE, entries[entries["item"].isin(chosen)].reset_index(drop=True),
                         readers=given.readers, seed=settings.seed, pool=settings.pool, sample=0,
                         pictures=shown)  # fmt: skip
    write_packet(packet, annotation_folder(paths))
    return packet


def _entries(pool: Pool) -> pd.DataFrame:
    if "question" not in pool.items or not pool.items["question"].astype(str).str.strip().any():
        raise AuditError(f"the items of {pool.name} have no questions, so nobody can read them",
                         mend="name the benchmark's own table as data.items or data.dataset")  # fmt: skip
    out = pool.items[["item", "question"]].reset_index(drop=True)
    out["options"] = pool.items["options"].to_numpy() if "options" in pool.items else ""
    return out


def _with_picture(settings: Params, items: list[str]) -> set[str]:
    from auditlib.readers.dataset import read_images

    path = settings.data.dataset
    return set(read_images(path, items)) if path is not None and path.exists() else set()


def _pictures(settings: Params, items: list[str]) -> dict[str, Picture]:
    from auditlib.inference.images import picture_from_bytes
    from auditlib.readers.dataset import read_images

    out = {}
    for item, data in read_images(settings.data.dataset, items).items():
        try:
            out[item] = picture_from_bytes(data)
        except ValueError as e:
            raise AuditError(f"the picture of item {item} is {e}", file=settings.data.dataset,
                             mend="write that row again; png, jpeg, webp and gif are shown") from None  # fmt: skip
    return out


def read_annotation(settings: Params, paths: RunPaths) -> Annotation | None:
    """Decisions in the pool's folder and those that the params name; None where there are none yet.

    Raises
    ------
    AuditError
        A file does not fit the packet; every problem is named.
    """
    folder = annotation_folder(paths)
    block = settings.dependence
    named = list(block.annotation.decisions) if block and block.annotation else []
    files = [*sorted(folder.glob("decisions_*.csv")), *named]
    if not files:
        return None
    if not (folder / PACKET).exists():
        raise AuditError("there are decisions, but no packet that they belong to", file=folder,
                         mend="run the dependence notebook first, which writes it")  # fmt: skip
    packet = load_packet(folder, open_key=True)
    rng = seeds.generator(settings.seed, settings.pool, "dependence", "agreement")
    return annotated(packet, read_decisions(files, packet), rng=rng)


def annotated(packet: Packet, decisions: Decisions, *, rng: np.random.Generator) -> Annotation:
    """Labels from readings; the key of the packet must be open."""
    if packet.key is None:
        raise AuditError("the packet's key is sealed", mend="load it with open_key=True")
    table = label_items(by_item(outcomes(packet, decisions.table)))
    return Annotation(table, agreement(packet, decisions.table, rng=rng), decisions)


def label_items(views: pd.DataFrame) -> pd.DataFrame:
    """The label rule.

    Parameters
    ----------
    views : columns item, full, image_only, text_only: outcome of each view's readers.

    Returns
    -------
    DataFrame
        The same with ``state`` and ``label``.

    Notes
    -----
    The item counts when more than half of the readers of the whole item find it sufficient. A single view suffices
    when more than half of its readers say so: no majority either way is not sufficient. Both: R, the image only: V, the
    question only: T, neither: S.
    """
    out = views[["item", "full", "image_only", "text_only"]].copy()
    due = (out[["full", "image_only", "text_only"]] == OPEN).any(axis=1)
    out["state"] = np.where(out["full"].isin(["rejected", CANNOT_TELL]), "filtered", np.where(due, "open", "labelled"))
    bits = zip(out["image_only"].eq(CONFIRMED), out["text_only"].eq(CONFIRMED))
    out["label"] = [_LABEL[b] if s == "labelled" else "" for b, s in zip(bits, out["state"])]
    return out


def score_methods(
    truth: pd.DataFrame, predicted: Mapping[str, pd.Series], *, rng: np.random.Generator, draws: int = 10_000
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Methods against people's labels.

    Parameters
    ----------
    truth : :attr:`Annotation.table`. predicted : name -> labels by item id (R, V, T, S; empty where a method gives
        none); the first is compared with each of the others.

    Returns
    -------
    scores : method, n, accuracy, macro_f1, and F1 of each label. Items that any method leaves out count for none.
    compared : see :func:`auditlib.dependence.labels.compare_benchmarks`; ``against`` names the other method.

    Raises
    ------
    AuditError
        No labelled item has a label of every method.
    """
    known = truth[truth["state"].eq("labelled")].set_index("item")["label"]
    table = pd.DataFrame({n: s.reindex(known.index) for n, s in predicted.items()})
    known = known[table.isin(list(LABELS)).all(axis=1).to_numpy()]
    table = table.loc[known.index]
    if not len(known):
        raise AuditError("no item has both people's label and one of every method", mend="wait for the readers")
    rows = []
    for name in table:
        s = evaluate_labels(known.to_numpy(str), table[name].to_numpy(str))
        f1 = {f"f1_{z}": float(v) for z, v in zip(LABELS, s.f1)}
        rows.append({"method": name, "n": s.n, "accuracy": s.accuracy, "macro_f1": s.macro_f1} | f1)
    first, *others = table.columns
    pairs = {o: (known.to_numpy(str), table[first].to_numpy(str), table[o].to_numpy(str)) for o in others}
    compared = compare_benchmarks(pairs, rng=rng, draws=draws).rename(columns={"benchmark": "against"})
    return pd.DataFrame(rows), compared


def methods_of(items: pd.DataFrame) -> dict[str, pd.Series]:
    """Labels of a study's frame ``items`` by method: both, responses alone, structure alone (where there is any)."""
    at = items.set_index("item")
    out = {"responses and structure": at["label"], "responses alone": at["alone_label"]}
    if at["prior_label"].ne("").any():
        out["structure alone"] = at["prior_label"]
    return out
